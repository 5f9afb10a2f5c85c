//! [`OverRows`]: how a program over elements is used for the elements of rows.

use smallvec::SmallVec;

use crate::row::Reduction;

/// How a program over elements is used for the elements of rows. Its machine code may have a loop over rows: the uniforms of each row
/// hold the numbers of that row.
#[derive(Clone, Debug, Default)]
pub struct OverRows {
    /// Whether there is a loop over rows.
    pub has_loop: bool,
    /// The reductions, to which the last inputs and outputs belong, with the uniforms to which a loop over rows writes their results.
    pub reductions: Vec<(Reduction, usize)>,
}

/// The positions in the row strides, an array of integers for a loop over rows. A stride is the distance in bytes from one row to the next.
impl OverRows {
    /// The number of rows.
    pub const NUMBER: usize = 0;
    /// The stride of the uniforms.
    pub const UNIFORMS: usize = 1;
    /// The masks of the vectors in the last block of a row, if that is not a whole block. A block has at most 8 vectors.
    pub const MASKS: usize = 2;
    /// The strides of the inputs, then of the outputs.
    pub const OPERANDS: usize = OverRows::MASKS + 8;
}

/// Calls `run` with the inputs and outputs of each row. `steps` are the bytes from one row to the next of each input, then of each output.
/// The first error ends the loop.
pub fn row_by_row<E>(
    rows: usize,
    inputs: &[*const u8],
    outputs: &[*mut u8],
    steps: &[isize],
    mut run: impl FnMut(&[*const u8], &[*mut u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut inputs: SmallVec<[*const u8; 8]> = inputs.into();
    let mut outputs: SmallVec<[*mut u8; 4]> = outputs.into();
    let (of_inputs, of_outputs) = steps.split_at(inputs.len());
    for _ in 0..rows {
        run(&inputs, &outputs)?;
        inputs.iter_mut().zip(of_inputs).for_each(|(place, step)| *place = place.wrapping_offset(*step));
        outputs.iter_mut().zip(of_outputs).for_each(|(place, step)| *place = place.wrapping_offset(*step));
    }
    Ok(())
}
