//! [`Lanes`]: the recorded steps, repeated for many cells side by side.

use super::tape::{Differentiable, Node};
use crate::runtime::stop::vec_for;

/// The steps of a body whose control flow does not depend on its numbers.
pub struct Recording<S: 'static> {
    nodes: Vec<Node<S>>,
    constants: Vec<(usize, S)>,
    dear: usize,
}

/// The most cells at a time: the loop over them amortizes the call of a step.
const MOST_LANES: usize = 64;
/// The fewest cells at a time.
const FEWEST_LANES: usize = 16;
/// The bytes for values and adjoints that the number of cells is reduced for.
const MEMORY: usize = 8 << 20;
/// The most bytes. A longer body runs one cell at a time.
const MOST_MEMORY: usize = 256 << 20;
/// A thread keeps this number of bytes for later calls.
const KEPT: usize = 16 << 20;

impl<S: Differentiable> Recording<S> {
    pub(super) fn of(nodes: &[Node<S>], values: &[S]) -> Option<Recording<S>> {
        if 2 * size_of::<S>() * nodes.len() * FEWEST_LANES > MOST_MEMORY {
            return None;
        }
        let mut recording = Recording { nodes: vec_for(nodes.len()), constants: vec![], dear: 0 };
        for (at, (node, value)) in nodes.iter().zip(values).enumerate() {
            recording.nodes.push(*node);
            recording.dear += usize::from(node.rule.is_dear);
            if node.rule.lanes.is_none() && node.needed == 0 {
                recording.constants.push((at, *value));
            }
        }
        Some(recording)
    }

    /// The number of steps.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether a considerable part of the steps takes much longer than arithmetic, so that lanes are faster than compiled code for one cell.
    pub fn is_dear(&self) -> bool {
        self.dear * 16 >= self.nodes.len()
    }
}

/// The memory for some cells of a [`Recording`]. The values of each step for all cells are contiguous.
pub struct Lanes<'a, S: Differentiable> {
    recording: &'a Recording<S>,
    lanes: usize,
    /// The values of all steps, then the adjoints.
    memory: Vec<S>,
}

impl<'a, S: Differentiable> Lanes<'a, S> {
    /// Memory for up to `cells` cells at a time.
    pub fn new(recording: &'a Recording<S>, cells: usize, with_adjoints: bool) -> Lanes<'a, S> {
        let steps = recording.nodes.len() * if with_adjoints { 2 } else { 1 };
        let mut lanes = MOST_LANES;
        while lanes > FEWEST_LANES && (lanes / 2 >= cells || size_of::<S>() * steps * lanes > MEMORY) {
            lanes /= 2;
        }
        let mut memory = S::steps().with_borrow_mut(|steps| std::mem::take(&mut steps.lanes));
        if memory.capacity() < steps * lanes {
            memory = vec_for(steps * lanes);
        }
        memory.resize(steps * lanes, S::zero());
        for (at, constant) in &recording.constants {
            memory[at * lanes..][..lanes].fill(*constant);
        }
        Lanes { recording, lanes, memory }
    }

    /// The number of cells at a time.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// The values of a step.
    pub fn values(&self, place: usize) -> &[S] {
        &self.memory[place * self.lanes..][..self.lanes]
    }

    /// The values of consecutive variables.
    pub fn variables_mut(&mut self, first: usize, count: usize) -> &mut [S] {
        &mut self.memory[first * self.lanes..][..count * self.lanes]
    }

    /// The adjoints of a step.
    pub fn adjoints(&self, place: usize) -> &[S] {
        &self.memory[(self.recording.nodes.len() + place) * self.lanes..][..self.lanes]
    }

    /// Computes the values of all steps from those of the variables.
    pub fn compute(&mut self) {
        for (at, node) in self.recording.nodes.iter().enumerate() {
            if let Some(rule) = &node.rule.lanes {
                (rule.compute)(node, at, &mut self.memory, self.lanes);
            }
        }
    }

    /// Sets all adjoints to 0.
    pub fn clear(&mut self) {
        self.memory[self.recording.nodes.len() * self.lanes..].fill(S::zero());
    }

    /// Adds the cotangents of a result to its adjoints, for the first cells.
    pub fn seed(&mut self, place: usize, cotangents: impl Iterator<Item = S>) {
        let adjoints = &mut self.memory[(self.recording.nodes.len() + place) * self.lanes..][..self.lanes];
        adjoints.iter_mut().zip(cotangents).for_each(|(adjoint, cotangent)| *adjoint += cotangent);
    }

    /// Computes the adjoints of all steps from those of the results.
    pub fn pull(&mut self) {
        let (values, adjoints) = self.memory.split_at_mut(self.recording.nodes.len() * self.lanes);
        for (at, node) in self.recording.nodes.iter().enumerate().rev() {
            if let Some(rule) = &node.rule.lanes {
                (rule.pull)(node, at, values, adjoints, self.lanes);
            }
        }
    }
}

impl<S: Differentiable> Drop for Lanes<'_, S> {
    fn drop(&mut self) {
        if self.memory.capacity() * size_of::<S>() <= KEPT {
            S::steps().with_borrow_mut(|steps| steps.lanes = std::mem::take(&mut self.memory));
        }
    }
}
