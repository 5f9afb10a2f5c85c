//! [`Registers`]: which value each register holds.

use super::form::Id;

/// A value: the node, and the copy of the body that computes it.
pub type Value = (Id, usize);

/// The registers of one kind.
#[derive(Debug)]
pub struct Registers {
    held: Vec<Option<Value>>,
    first: usize,
    /// Registers that the current instruction needs.
    pinned: Vec<usize>,
}

impl Registers {
    /// Free registers, numbered from `first` to `end`.
    pub fn new(first: usize, end: usize) -> Registers {
        Registers { held: vec![None; end], first, pinned: vec![] }
    }

    /// Keeps the value of a register until [`unpin`](Registers::unpin).
    pub fn pin(&mut self, register: usize) {
        self.pinned.push(register);
    }

    /// Ends all pins.
    pub fn unpin(&mut self) {
        self.pinned.clear();
    }

    /// The register for a new value: a free one, or the one whose value is used last.
    pub fn choose(&self, next_use: impl Fn(Value) -> u32) -> usize {
        let usable = (self.first..self.held.len()).filter(|at| !self.pinned.contains(at));
        let farthest = usable.max_by_key(|at| self.held[*at].map_or(u32::MAX, &next_use));
        // An instruction pins fewer registers than there are.
        farthest.unwrap_or(self.first)
    }

    /// Sets the value of a register, and returns the value that it held.
    pub fn hold(&mut self, register: usize, value: Option<Value>) -> Option<Value> {
        std::mem::replace(&mut self.held[register], value)
    }
}
