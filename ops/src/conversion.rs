//! Copies, dtype conversions, and the parts of complex numbers.

use minitensor::prelude::*;

/// Converts the elements to another dtype, as NumPy's `astype` does.
#[custom_op(alias = "cast", backward = |d| { x: d })]
pub fn astype(x: &Tensor, dtype: DType) -> Result<Tensor> {
    if x.dtype().is_complex() && !dtype.is_complex() && dtype != DType::Bool {
        return Err(Error::type_(format!(
            "op 'astype' would lose the imaginary parts of {} in {dtype}; take real(x) first",
            x.dtype()
        )));
    }
    if x.dtype() == dtype { Ok(x.clone()) } else { x.cast(dtype) }
}

/// A copy.
#[custom_op(alias = "copy", backward = |d| { x: d })]
pub fn clone(x: &Tensor) -> Result<Tensor> {
    x.copied()
}

/// Copies the elements to the device named `to`. `source` names the device of `x`, to which the gradient is copied.
#[custom_op(name = "device::copy", backward = |g| { x: device::copy(g, source, to) })]
pub fn copy_to_device(x: &Tensor, #[default = "cpu"] to: &str, #[default = "cpu"] source: &str) -> Result<Tensor> {
    let _ = source;
    if x.device() == Device::Meta { x.copied() } else { x.to_device(Device::parse(to)?) }
}

/// Zeros with the shape and dtype of `x`.
#[custom_op(backward = |d| { x: zeros_like(d) })]
pub fn zeros_like(x: &Tensor) -> Result<Tensor> {
    Tensor::zeros(x.shape().clone(), x.dtype(), x.device())
}

/// The tensor itself if it is contiguous in row-major order, else a contiguous copy.
#[custom_op(backward = |d| { x: d })]
pub fn contiguous(x: &Tensor) -> Result<Tensor> {
    x.contiguous()
}

/// Copies `source` into `x`.
#[custom_op(name = "copy_", backward = |d| { x: zeros_like(d), source: d })]
pub fn copy_into<T: Element>(x: &mut T, source: T) {
    *x = source;
}

/// The complex conjugate of every element; [`conj()`] returns real tensors without a copy.
#[custom_op(name = "conversion::conj", backward = |d| { x: d.conj() })]
pub fn conj_elements<T: Num>(x: T) -> T {
    x.conj()
}

/// The complex conjugate. Returns real tensors unchanged.
#[custom_op(alias = "conj_physical", backward = |d| { x: d.conj() })]
pub fn conj(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() { conj_elements::call(x) } else { Ok(x.clone()) }
}

/// The real part, as a view.
#[custom_op(backward = |d| { x: d })]
pub fn real(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() { x.part_view(0) } else { Ok(x.clone()) }
}

/// The imaginary part, as a view.
#[custom_op(backward = |d| { x: complex(zeros_like(d), d) })]
pub fn imag(x: &Tensor) -> Result<Tensor> {
    x.part_view(1)
}

/// `re + i·im`.
#[custom_op(backward = |d| { re: d.real(), im: d.imag() })]
pub fn complex(re: &Tensor, im: &Tensor) -> Result<Tensor> {
    let dtype = match (re.dtype(), im.dtype()) {
        (DType::F32, DType::F32) => DType::C64,
        (DType::F64, DType::F64) => DType::C128,
        (a, b) => {
            return Err(Error::type_(format!("op 'complex' takes two parts of float32 or float64, got {a} and {b}")));
        }
    };
    let shape = re.shape().broadcast(im.shape()).ok_or_else(|| {
        Error::value(format!("the parts have shapes {} and {}, which don't broadcast", re.shape(), im.shape()))
    })?;
    let out = Tensor::empty(shape.clone(), dtype, re.device())?;
    out.part_view(0)?.copy_from(&re.broadcast_view(&shape))?;
    out.part_view(1)?.copy_from(&im.broadcast_view(&shape))?;
    Ok(out)
}
