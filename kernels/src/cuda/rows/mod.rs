//! [`RowKernel`]: the kernel of a program over rows.

mod schedule;
mod writer;

use self::schedule::Schedule;
use self::writer::Writer;
use super::Source;
use super::lines::{Lines, Type};
use crate::program::{Instruction, Program};

/// Which threads compute the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowShape {
    /// The threads of a row, a power of two.
    pub lanes: u32,
    /// The rows that a block computes at a time.
    pub rows: u32,
    /// The number of neighbouring elements that a thread reads together. The length of rows is a multiple of it.
    pub vector: u32,
    /// The elements of a row that a thread keeps in registers, a multiple of `vector`; 0 if it reads them again for each reduction.
    pub items: u32,
    /// Whether several blocks compute a row, each a section: neighbouring elements or, unless rows are beside each other, every so many.
    /// There is one kernel for each reduction that the next ones need, and `items` is 0.
    pub is_split: bool,
    /// Whether neighbouring threads compute neighbouring rows, because elements of a row are not neighbours in memory.
    pub is_beside: bool,
}

/// An input of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowInput {
    /// The type of its numbers in memory.
    pub memory: Type,
    /// Whether all elements of a row are one number in memory.
    pub is_single: bool,
}

/// What an output of a program over rows is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowOutput {
    /// A number for each element.
    Row(Type),
    /// A number for each row.
    Number(Type),
    /// The sum of the numbers of each element over all rows. The kernel writes partial sums, one row for each row that the grid computes at
    /// a time, of the type that it computes in.
    SharedRow,
    /// The sum of the numbers of all rows, as such partial sums.
    SharedNumber,
}

impl RowOutput {
    fn is_row(self) -> bool {
        matches!(self, RowOutput::Row(_) | RowOutput::SharedRow)
    }
}

/// How a kernel computes rows.
///
/// Its argument is a struct of 64-bit fields: the number of rows, their length, and the sizes of the batch dimensions; then for each operand
/// its address and its strides in elements along these dimensions, followed, for an operand of rows, by its stride along the row. A
/// shared output has only its address. Then come the other uniforms, by their bits. If rows are split, the address of partial results, the
/// number of sections and their length precede the operands. There are as many partial results as reductions, rows and sections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowKernel {
    /// The type of the numbers that it computes.
    pub compute: Type,
    /// The number of batch dimensions, at least 1.
    pub rank: usize,
    /// The threads.
    pub shape: RowShape,
    /// The inputs that are rows.
    pub inputs: Vec<Option<RowInput>>,
    /// The types of the first uniforms in memory, which have one value for each row.
    pub numbers: Vec<Option<Type>>,
    /// How many of the last `numbers` are positions in the row. If there are any, the address of a `u64` follows the sizes, to which the
    /// kernel writes 1 if a position is out of range.
    pub positions: usize,
    /// The outputs that are wanted.
    pub outputs: Vec<Option<RowOutput>>,
}

impl RowKernel {
    /// Its sources for a program whose inputs at the positions `masks` are truth values: kernels that are launched one after the other. `None`
    /// if there are none.
    pub fn sources(&self, program: &Program, masks: &[usize]) -> Option<Vec<Source>> {
        let lines = Lines::of(program, self.compute, masks)?;
        let schedule = Schedule::of(&lines);
        // A number for each row must not differ along it.
        for (output, id) in self.outputs.iter().zip(&lines.outputs) {
            if output.is_some_and(|output| !output.is_row()) && schedule.is_element[*id] {
                return None;
            }
        }
        let depth = schedule.levels.iter().copied().max().unwrap_or(0);
        let stages = if self.shape.is_split { 0 } else { depth }..=depth;
        let write = |stage: usize| {
            let mut text = String::new();
            let writer = Writer { kernel: self, schedule: &schedule, stage, text: &mut text };
            let is_split = writer.is_split();
            writer.write(program.uniforms().len()).ok()?;
            Some(Source { text, threads: self.threads(), is_split })
        };
        stages.map(write).collect()
    }

    /// The number of reductions of a program.
    pub fn reductions(program: &Program) -> usize {
        program.instructions().iter().filter(|i| matches!(i, Instruction::Reduce(..))).count()
    }

    /// The threads of a block.
    pub fn threads(&self) -> u32 {
        self.shape.lanes * self.shape.rows
    }
}
