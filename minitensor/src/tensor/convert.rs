//! Copies and dtype conversions, without history.

use minitensor_kernels as kernels;

use super::{Device, Tensor, transfer};
use crate::autograd::NoGrad;
use crate::dtype::{DType, Kind};
use crate::error::Result;
use crate::graph::record;
use crate::lazy::call::copies_by_calls;
use crate::op::by_name::names;
use crate::op::{OpName, Value};
use crate::stop::stoppable;

impl Tensor {
    /// A contiguous copy.
    pub fn copied(&self) -> Result<Tensor> {
        if record::records(self) || copies_by_calls(self) {
            return without_history(&names::CLONE, &[self.into()]);
        }
        self.cast(self.dtype())
    }

    /// A contiguous copy in another dtype, converted as NumPy's `astype` does.
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        if record::records(self) || copies_by_calls(self) {
            // A conversion to the same dtype must be a copy, too.
            return match dtype == self.dtype() {
                true => self.copied(),
                false => without_history(&names::ASTYPE, &[self.into(), dtype.into()]),
            };
        }
        let out = Tensor::empty(self.shape().clone(), dtype, self.device())?;
        stoppable(|| out.copy_from(self))?;
        Ok(out)
    }

    /// The tensor on a device: itself if it is there, or a contiguous copy. Without history.
    pub fn to_device(&self, device: Device) -> Result<Tensor> {
        if device == self.device() {
            return Ok(self.detach());
        }
        if device != Device::Meta {
            self.expect_values()?;
        }
        let out = Tensor::empty(self.shape().clone(), self.dtype(), device)?;
        stoppable(|| out.copy_from(self))?;
        Ok(out)
    }

    /// Overwrites the elements with those of a tensor of the same shape, of any device and dtype. It updates neither history
    /// nor version, so it is for tensors that were just created.
    pub fn copy_from(&self, source: &Tensor) -> Result<()> {
        debug_assert_eq!(self.shape(), source.shape());
        transfer::copy(source, self)
    }
}

/// Calls an op by which a graph records a copy.
#[cold]
fn without_history(op: &OpName, args: &[Value<'_>]) -> Result<Tensor> {
    let _mode = NoGrad::new();
    op.call(args, &[])
}

/// Copies elements between memory of any two dtypes.
///
/// # Safety
/// As for [`kernels::copy()`], for elements of these dtypes.
pub(crate) unsafe fn copy_elements(
    shape: &[usize],
    (from, src): (DType, *const u8),
    src_strides: &[isize],
    (to, dst): (DType, *mut u8),
    dst_strides: &[isize],
) {
    with_dtype!(from, A => with_dtype!(to, B => {
        // SAFETY: by contract.
        unsafe { kernels::copy::<A, B>(shape, src.cast(), src_strides, dst.cast(), dst_strides) }
    }));
}

/// Whether `to` can represent every value of `from`.
pub fn cast_is_lossless(from: DType, to: DType) -> bool {
    from.promote(to) == to
        && !(to.kind() == Kind::Float
            && matches!(from.kind(), Kind::Signed | Kind::Unsigned)
            && from.size() >= to.size())
}
