//! [`Plan`]: the operands of a call and the kernel that computes its cells.

use super::choice::Choice;
use super::operand::CellOperand;
use super::walk::Cells;
use crate::attr::Attr;
use crate::error::Result;
use crate::op::OpDef;
use crate::stop::parallel_for;
use crate::tensor::Shape;

pub struct Plan {
    /// The inputs, then the outputs.
    pub operands: Vec<Option<CellOperand>>,
    pub batch: Shape,
    pub choice: Choice,
    /// The fewest cells for a thread.
    pub grain: usize,
    /// The largest number of cells that the kernel gets at once.
    pub together: usize,
}

impl Plan {
    pub fn run(&self, op: &OpDef, attrs: &[Attr]) -> Result<()> {
        let Plan { operands, batch, choice, grain, together } = self;
        let kernel = choice.kernel();
        parallel_for(batch.numel(), *grain, |range| {
            let cells = Cells {
                operands,
                batch,
                kernel,
                is_of_columns: choice.is_of_columns,
                attrs,
                part: range.start / grain,
                together: *together,
            };
            cells.run(range).map_err(|error| error.context(format!("op '{}'", op.name)))
        })
    }
}
