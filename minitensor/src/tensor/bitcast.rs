//! The bits of elements as another dtype.

use super::Tensor;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result, counted};

impl Tensor {
    /// The same memory with its bits as elements of another dtype of the same size, without history. Complex dtypes are
    /// not supported.
    pub fn bitcast(&self, dtype: DType) -> Result<Tensor> {
        let is_complex = [self.dtype(), dtype].iter().any(|d| d.kind() == Kind::Complex);
        if is_complex || self.dtype().size() != dtype.size() {
            return Err(Error::type_(format!(
                "bitcast takes two real dtypes of one size, got {} ({}) and {dtype} ({})",
                self.dtype(),
                counted(self.dtype().size(), "byte"),
                counted(dtype.size(), "byte")
            )));
        }
        // An access to the elements, for a graph that is being recorded: it has no call that gives these.
        self.data_ptr();
        let (storage, shape, strides) = (self.storage().clone(), self.shape().clone(), self.strides().into());
        // SAFETY: the elements are the same bytes. Real dtypes of one size have one alignment, and all their bits are valid.
        Ok(unsafe { Tensor::from_parts(storage, shape, strides, self.offset(), dtype) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_shared_and_only_sizes_that_differ_are_rejected() -> Result<()> {
        let x = Tensor::from_vec(vec![1.0_f32, -0.0], [2])?;
        let bits = x.slice_view(0, 1, 2, -1)?.bitcast(DType::U32)?;
        assert_eq!(bits.to_vec::<u32>()?, [0x8000_0000, 0x3f80_0000]);
        assert!(bits.shares_storage(&x));
        assert_eq!(bits.bitcast(DType::F32)?.to_vec::<f32>()?, [-0.0, 1.0]);
        for wrong in [DType::F64, DType::I16, DType::C64] {
            let error = x.bitcast(wrong).expect_err("another size").to_string();
            assert!(error.contains("got float32 (4 bytes) and"), "{error}");
        }
        Ok(())
    }
}
