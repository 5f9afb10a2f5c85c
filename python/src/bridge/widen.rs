//! [`widened`]: inputs of 32 bits for ops that take 64 bits.

use minitensor::op::DTypeRule;
use minitensor::{DType, Device, OpDef, Result, Tensor};

/// The dtype of half the size.
pub fn narrow(dtype: DType) -> Option<DType> {
    Some(match dtype {
        DType::I64 => DType::I32,
        DType::U64 => DType::U32,
        DType::F64 => DType::F32,
        DType::C128 => DType::C64,
        _ => return None,
    })
}

/// The dtype of twice the size.
pub fn wide(dtype: DType) -> Option<DType> {
    DType::ALL.iter().copied().find(|d| narrow(*d) == Some(dtype))
}

/// Converts inputs to the dtype that the op fixes for them, if they are of half its size. JAX has no dtypes of 64 bits unless they
/// are enabled, so it could not pass an index otherwise.
pub fn widened(op: &OpDef, inputs: &mut [Option<Tensor>]) -> Result<()> {
    for (i, input) in inputs.iter_mut().enumerate() {
        if let (DTypeRule::Fixed(dtype), Some(t)) = (op.parameter(i).dtype, &*input)
            && narrow(dtype) == Some(t.dtype())
        {
            *input = Some(match t.device() {
                Device::Meta => Tensor::empty(t.shape().clone(), dtype, Device::Meta)?,
                _ => t.cast(dtype)?,
            });
        }
    }
    Ok(())
}
