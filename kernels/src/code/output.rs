//! [`Output`]: how an output is stored.

use super::form::{Form, Op, Width};
use crate::program::Storage;

/// How an output is stored in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A truth value, as a byte.
    Truth,
    /// A number.
    Number(Storage),
}

impl Output {
    /// The size in bytes of an element, for numbers of this width.
    pub fn size(self, width: Width) -> usize {
        match self {
            Output::Truth => 1,
            Output::Number(storage) => storage.step(width as usize),
        }
    }

    /// Whether storing it needs a vector register besides that of its value.
    pub fn needs_helper(self) -> bool {
        match self {
            Output::Truth => true,
            Output::Number(storage) => storage.is_lowest_bits(),
        }
    }
}

impl Form {
    /// How each output is stored: as `stored` says, if it is a number. An output that needs more instructions gets another node.
    pub fn outputs_stored(&mut self, stored: &[Storage], width: Width) -> Vec<Output> {
        let mut outputs = Vec::with_capacity(stored.len());
        for (at, storage) in stored.iter().enumerate() {
            let id = self.outputs[at];
            let op = self.nodes[id as usize].op;
            match (op, storage) {
                (_, Storage::BFloat16) => self.outputs[at] = self.bfloat16(id),
                (op, storage) if storage.is_narrow() && !op.is_truth() => self.outputs[at] = self.lowest(id, *storage),
                // A value of its own, because storing another output may overwrite the input.
                (Op::Input(..), _) => self.outputs[at] = self.add(Op::Or, width, &[id, id]),
                _ => {}
            }
            outputs.push(if op.is_truth() { Output::Truth } else { Output::Number(*storage) });
        }
        outputs
    }
}
