//! Neighbouring cells as the columns of a table, for kernels that take them together.

use super::operand::CellOperand;
use crate::tensor::{Shape, Strides};

/// The fewest cells of a table. Fewer are copied, one after the other.
const FEWEST: usize = 8;

/// Makes the last batch dimension of all operands the columns of tables, if their memory is such tables. Returns the batch without it.
pub fn of(batch: &Shape, operands: &mut [Option<CellOperand>]) -> Option<Shape> {
    let (&cells, outer) = batch.split_last()?;
    if cells < FEWEST || !operands.iter().flatten().all(|o| o.row_stride(cells).is_some()) {
        return None;
    }
    for operand in operands.iter_mut().flatten() {
        let Some(stride) = operand.row_stride(cells) else { continue };
        operand.put_columns(cells, stride);
    }
    Some(outer.into())
}

impl CellOperand {
    /// The distance between the rows of a table whose columns are neighbouring cells, if memory is such a table.
    fn row_stride(&self, cells: usize) -> Option<isize> {
        let core = self.core_shape.iter().zip(self.core_strides.iter()).filter(|(size, _)| **size != 1);
        let mut merged: Option<(isize, isize)> = None;
        for (size, stride) in core.rev() {
            merged = match merged {
                None => Some((*stride, *stride * *size as isize)),
                Some((first, next)) if *stride == next => Some((first, next * *size as isize)),
                Some(_) => return None,
            };
        }
        let stride = merged.map_or(cells as isize, |(stride, _)| stride);
        let is_table = self.dtype == self.compute
            && !self.is_changed
            && self.step() == 1
            && stride >= cells as isize
            && !self.core_shape.contains(&0);
        is_table.then_some(stride)
    }

    fn put_columns(&mut self, cells: usize, stride: isize) {
        self.batch.pop();
        let sizes: Shape = self.sizes.iter().copied().chain([cells]).collect();
        let mut strides = Strides::from_elem(stride, sizes.len());
        strides[sizes.len() - 1] = 1;
        (self.core_shape, self.core_strides) = (sizes.clone(), strides.clone());
        (self.sizes, self.strides, self.packed) = (sizes, strides, false);
    }
}
