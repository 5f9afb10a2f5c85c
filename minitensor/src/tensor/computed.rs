//! Creation of tensors whose elements are computed from their positions.

use minitensor_kernels::threads::parallel_for;

use super::{Device, Shape, Tensor};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::stop::stoppable;

/// The fewest elements for a thread.
const GRAIN: usize = 32 * 1024;

/// A pointer that threads share. Each thread writes to different elements.
struct Shared<T>(*mut T);

// SAFETY: threads write to disjoint elements, and the elements are `Send`.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

impl Tensor {
    /// A contiguous tensor that consists of `f(0)`, `f(1)`, …, with `N` elements each. Elements that exceed the shape are
    /// dropped. `f` runs on several threads.
    pub fn from_fn<T: Scalar, const N: usize>(
        shape: impl Into<Shape>,
        f: impl Fn(usize) -> [T; N] + Sync,
    ) -> Result<Tensor> {
        let out = Tensor::empty(shape, T::DTYPE, Device::Cpu)?;
        let (n, first) = (out.numel(), Shared(out.data_ptr().cast::<T>()));
        stoppable(|| {
            parallel_for(n.div_ceil(N), GRAIN.div_ceil(N), |groups| {
                for group in groups {
                    let (start, elements) = (group * N, f(group));
                    let count = N.min(n - start);
                    // SAFETY: only this group writes to these elements. They are in the tensor, which is not shared yet.
                    unsafe { first.get().add(start).copy_from_nonoverlapping(elements.as_ptr(), count) };
                }
            });
            Ok(())
        })?;
        Ok(out)
    }
}
