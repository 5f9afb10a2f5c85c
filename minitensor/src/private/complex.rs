//! The real and the imaginary parts of the tensors of an op with complex and real numbers.

use crate::error::Result;
use crate::op::OpName;
use crate::tensor::Tensor;

static REAL: OpName = OpName::new("real");
static IMAG: OpName = OpName::new("imag");
static ZEROS_LIKE: OpName = OpName::new("zeros_like");
static COMPLEX: OpName = OpName::new("complex");

/// The real and the imaginary part. That of a real tensor is 0.
///
/// # Errors
/// Those of the ops that are called.
pub fn parts(z: &Tensor) -> Result<(Tensor, Tensor)> {
    let part = |op: &OpName| op.call(&[z.into()], &[]);
    if z.dtype().is_complex() { Ok((part(&REAL)?, part(&IMAG)?)) } else { Ok((z.clone(), part(&ZEROS_LIKE)?)) }
}

/// The same for an optional tensor.
///
/// # Errors
/// Those of the ops that are called.
pub fn optional_parts(z: Option<&Tensor>) -> Result<(Option<Tensor>, Option<Tensor>)> {
    Ok(z.map(parts).transpose()?.unzip())
}

/// The complex tensor with these parts.
///
/// # Errors
/// Those of the op that is called.
pub fn joined(re: &Tensor, im: &Tensor) -> Result<Tensor> {
    COMPLEX.call(&[re.into(), im.into()], &[])
}
