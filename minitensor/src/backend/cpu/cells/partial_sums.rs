//! [`PartialSums`]: an output that is the sum over all cells.

use super::operand::CellOperand;
use crate::backend::shapes::CallShapes;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::Core;
use crate::tensor::{Layout, Shape, Tensor, copy_elements};

/// An output that is the sum over all cells. Parts of the cells have partial sums, which are added in order: the result does
/// not depend on the number of threads.
pub struct PartialSums {
    output: Tensor,
    /// The partial sums, in the compute dtype.
    parts: Tensor,
}

impl PartialSums {
    /// Memory for this number of partial sums of a dtype.
    pub fn new(output: &Tensor, dtype: DType, count: usize) -> Result<PartialSums> {
        let shape: Shape = [count.max(1)].into_iter().chain(output.shape().iter().copied()).collect();
        let parts = Tensor::zeros(shape, dtype, output.device())?;
        Ok(PartialSums { output: output.detach(), parts })
    }

    /// The first partial sum as an argument of the kernel.
    pub fn operand(&self, shapes: &CallShapes, core: Core) -> CellOperand {
        let shape = self.output.shape().clone();
        let strides = shape.contiguous_strides();
        let first = self.parts.with_layout(Layout { shape, strides, offset: self.parts.offset() });
        let part = first.numel() * first.dtype().size();
        CellOperand { part, ..CellOperand::new(shapes, &first, first.dtype(), false, first.ndim(), core, true) }
    }

    /// Adds the partial sums, and writes the result to the output.
    pub fn finish(&self) {
        let n = self.output.numel();
        // Booleans have no sum: there is one part, or the last one remains.
        with_dtype!(@ self.parts.dtype(), T, {
            // SAFETY: the parts are private, contiguous and of this dtype, and all kernels have returned.
            let all = unsafe { std::slice::from_raw_parts_mut(self.parts.data_ptr().cast::<T>(), self.parts.numel()) };
            let (sum, rest) = all.split_at_mut(n);
            for part in rest.chunks_exact(n.max(1)) {
                sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += *part);
            }
        }; I8 I16 I32 I64 U8 U16 U32 U64 F32 F64 C64 C128; else {});
        let (shape, strides) = (self.output.shape(), self.output.strides());
        let sum = (self.parts.dtype(), self.parts.data_ptr().cast_const());
        let place = (self.output.dtype(), self.output.data_ptr());
        // SAFETY: both have these elements.
        unsafe { copy_elements(shape, sum, &shape.contiguous_strides(), place, strides) }
    }
}
