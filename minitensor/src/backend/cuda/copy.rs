//! Copies, conversions and constants, as programs over elements.

use std::any::Any;
use std::sync::{Arc, LazyLock};

use minitensor_kernels::program::Program;
use minitensor_kernels::{Const, Element};

use super::device::CudaDevice;
use super::{elements, type_of};
use crate::backend::programs::{Elements, ProgramCall};
use crate::dtype::{DType, Kind};
use crate::error::Result;
use crate::tensor::Tensor;

/// `out = x`.
static SAME: LazyLock<Arc<Program>> =
    LazyLock::new(|| Arc::new(Program::write(&["x"], &[], |x, _| vec![("out".into(), x[0].into())])));
/// `out = value`.
static VALUE: LazyLock<Arc<Program>> =
    LazyLock::new(|| Arc::new(Program::write(&[], &["value"], |_, u| vec![("out".into(), u[0].into())])));

/// Copies elements between tensors of one shape. Returns false for a conversion of complex numbers.
pub fn run(device: &CudaDevice, from: &Tensor, to: &Tensor) -> Result<bool> {
    let bytes = from.numel() * from.dtype().size();
    if from.dtype() == to.dtype() && from.is_contiguous() && to.is_contiguous() {
        // SAFETY: both have these bytes, one after the other.
        unsafe { device.driver().copy(from.data_ptr(), to.data_ptr(), bytes, device.stream())? };
        return Ok(true);
    }
    if from.dtype().kind() == Kind::Complex && from.dtype() == to.dtype() {
        let part = |k: usize| run(device, &from.part_view(k)?, &to.part_view(k)?);
        return Ok(part(0)? && part(1)?);
    }
    submit(device, &SAME, from.dtype().compute(), &[Some(from)], to, &[])
}

/// Fills a tensor with a number.
pub fn fill(device: &CudaDevice, t: &Tensor, value: Const) -> Result<bool> {
    if t.is_contiguous() && matches!(value, Const::Int(0) | Const::Bool(false)) {
        let bytes = t.numel() * t.dtype().size();
        // SAFETY: the tensor has these bytes.
        unsafe { device.driver().zero(t.data_ptr(), bytes, device.stream())? };
        return Ok(true);
    }
    let bits = match t.dtype().compute() {
        DType::F32 => f32::constant(value).to_bits().into(),
        DType::F64 => f64::constant(value).to_bits(),
        DType::U64 => u64::constant(value),
        DType::Bool => bool::constant(value).into(),
        // Narrower ones are the lower bits.
        _ => i64::constant(value) as u64,
    };
    let dtype = match t.dtype().compute() {
        dtype @ (DType::F32 | DType::F64 | DType::U64 | DType::Bool) => dtype,
        _ => DType::I64,
    };
    submit(device, &VALUE, dtype, &[], t, &[bits])
}

fn submit(
    device: &CudaDevice,
    program: &Arc<Program>,
    dtype: DType,
    inputs: &[Option<&Tensor>],
    to: &Tensor,
    uniforms: &[u64],
) -> Result<bool> {
    if type_of(dtype).is_none() {
        return Ok(false);
    }
    let owner: Arc<dyn Any + Send + Sync> = program.clone();
    let call = ProgramCall { op: "copy", program, owner: &owner, dtype, masks: &[], device: to.device(), uniforms };
    elements::run(device, &call, &Elements { shape: to.shape(), inputs, outputs: &[Some(to)] })
}
