//! [`PartLoop`]: a loop over elements of which some inputs come in parts.

use minitensor_kernels::program::Storage;
use smallvec::SmallVec;

use super::operand::ElementOperand;
use super::{Block, ElementLoop, FEWEST_STORED, Loop, merge, stored};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::OutputPart;
use crate::tensor::{Shape, Tensor};

/// Computes the parts of outputs whose inputs are complete. Other inputs and outputs are read and written in place.
pub struct PartLoop<'a, 'k> {
    kernel: &'a dyn Loop,
    made: Option<Box<dyn Loop + 'k>>,
    operands: Vec<ElementOperand>,
    inputs: usize,
    /// The inputs that come in parts.
    of_parts: &'a [usize],
    sizes: SmallVec<[usize; 6]>,
}

impl<'a, 'k> PartLoop<'a, 'k> {
    /// `None` if some input or output would have to be copied. All inputs broadcast to the shape, which is that of the outputs.
    /// A row has `width` elements, along the last axis or several of the last axes.
    pub fn new(
        kernel: &'a ElementLoop<'k>,
        (shape, width): (&Shape, usize),
        inputs: &[Option<&Tensor>],
        of_parts: &'a [usize],
        outputs: &[Option<&Tensor>],
        output_dtypes: &[DType],
    ) -> Option<PartLoop<'a, 'k>> {
        let axis = (0..=shape.len()).rfind(|axis| shape[*axis..].iter().product::<usize>() == width)?;
        let of = |t: &Tensor| ElementOperand::of(t, shape, kernel.compute(t.dtype()));
        let nothing = |dtype: DType| ElementOperand::nothing(dtype, kernel.compute(dtype));
        let mut operands: Vec<ElementOperand> = Vec::with_capacity(inputs.len() + outputs.len());
        operands.extend(inputs.iter().map(|t| t.map_or_else(|| nothing(DType::F64), of)));
        operands.extend(outputs.iter().zip(output_dtypes).map(|(t, dtype)| t.map_or_else(|| nothing(*dtype), of)));
        // Rows and columns remain axes of their own, because a part has some of them.
        let rows: Vec<SmallVec<[isize; 6]>> =
            operands.iter_mut().map(|o| o.strides.drain(..axis.min(o.strides.len())).collect()).collect();
        let sizes = merge(&shape[axis..].iter().copied().collect(), &mut operands);
        if sizes[..] != [1, width] {
            return None;
        }
        let columns: SmallVec<[Option<isize>; 8]> = operands.iter().map(|o| o.strides.last().copied()).collect();
        operands.iter_mut().zip(rows).for_each(|(operand, rows)| operand.strides = rows);
        let mut sizes = merge(&shape[..axis].iter().copied().collect(), &mut operands);
        sizes.push(width);
        operands.iter_mut().zip(columns).for_each(|(operand, stride)| operand.strides.extend(stride));
        for i in of_parts {
            operands[*i].strides[sizes.len() - 1] = 1;
        }
        let is_large = shape.numel() >= FEWEST_STORED;
        let made = if is_large { stored(kernel, &sizes, &mut operands, inputs.len(), false) } else { None };
        for operand in operands.iter_mut().filter(|o| o.wanted) {
            operand.direct = matches!(operand.storage, Storage::One | Storage::EveryOther) || operand.steps_by(1);
        }
        let is_fit = |o: &ElementOperand| o.direct || !o.wanted && o.data.is_null();
        let (ins, outs) = operands.split_at(inputs.len());
        let is_fit = ins.iter().all(is_fit) && outs.iter().all(|o| o.direct);
        is_fit.then_some(PartLoop { kernel: kernel.run, made, operands, inputs: inputs.len(), of_parts, sizes })
    }

    /// Computes the elements of a part.
    pub fn run(&self, part: OutputPart) -> Result<()> {
        let kernel = self.made.as_deref().unwrap_or(self.kernel);
        let rank = self.sizes.len();
        let height = self.sizes[rank - 2];
        let mut row = part.row;
        while row < part.row + part.rows {
            let rows = (part.row + part.rows - row).min(height - row % height);
            let block = Block { start: self.place(row, part.column), rows, columns: part.columns };
            let data = part.data.wrapping_offset((row - part.row) as isize * part.step);
            let place = |(i, o): (usize, &ElementOperand)| match self.of_parts.contains(&i) {
                true => (data.cast_mut(), part.step),
                false if o.wanted => (o.at(&block), o.row_step(part.columns)),
                false => (o.data, 0),
            };
            let (places, steps): (SmallVec<[*mut u8; 8]>, SmallVec<[isize; 8]>) =
                self.operands.iter().enumerate().map(place).unzip();
            let (ins, outs) = places.split_at(self.inputs);
            let ins: SmallVec<[*const u8; 8]> = ins.iter().map(|place| place.cast_const()).collect();
            kernel.run_rows(rows, part.columns, &ins, outs, &steps)?;
            row += rows;
        }
        Ok(())
    }

    /// The index of an element.
    fn place(&self, mut row: usize, column: usize) -> SmallVec<[usize; 6]> {
        let mut start = SmallVec::from_elem(column, self.sizes.len());
        for (at, size) in start.iter_mut().zip(&self.sizes).rev().skip(1) {
            *at = row % size;
            row /= size;
        }
        start
    }
}
