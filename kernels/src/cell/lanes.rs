//! [`Lanes`]: the recorded steps, repeated for many cells side by side.

use super::tape::{Differentiable, Node, Tape};
use crate::runtime::stop::filled;

/// The steps of a body whose control flow does not depend on its numbers, and the memory for a number of cells.
///
/// The values of step `k` for all cells are contiguous. The variables are the first steps, in the order in which the tape made
/// them.
pub struct Lanes<S: 'static> {
    nodes: Vec<Node<S>>,
    lanes: usize,
    values: Vec<S>,
    adjoints: Vec<S>,
}

/// The most cells at a time: the loop over them amortizes the call of a step.
const MOST_LANES: usize = 64;
/// The fewest cells at a time.
const FEWEST_LANES: usize = 16;
/// The bytes for values and adjoints that the number of cells is reduced for.
const MEMORY: usize = 2 << 20;
/// The most bytes. A longer body runs one cell at a time.
const MOST_MEMORY: usize = 256 << 20;

impl<S: Differentiable> Lanes<S> {
    /// The steps on the tape, for up to `cells` cells. `None` if they may differ between cells, or take too much memory.
    pub fn of(tape: &Tape<S>, cells: usize) -> Option<Lanes<S>> {
        if !S::HAS_LANES || tape.has_branched() || cells < 2 {
            return None;
        }
        let bytes = 2 * size_of::<S>() * tape.len().max(1);
        if bytes * FEWEST_LANES > MOST_MEMORY {
            return None;
        }
        let mut lanes = MOST_LANES;
        while lanes > FEWEST_LANES && (lanes / 2 >= cells || bytes * lanes > MEMORY) {
            lanes /= 2;
        }
        S::steps().with_borrow(|steps| {
            let nodes = steps.nodes.clone();
            let mut values = filled(S::zero(), nodes.len() * lanes);
            for (constant, place) in steps.values.iter().zip(values.chunks_exact_mut(lanes)) {
                place.fill(*constant);
            }
            Some(Lanes { adjoints: filled(S::zero(), nodes.len() * lanes), nodes, lanes, values })
        })
    }

    /// The number of cells at a time.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// The values of a step.
    pub fn values(&self, place: usize) -> &[S] {
        &self.values[place * self.lanes..][..self.lanes]
    }

    /// The values of all variables, of which each has one for each lane.
    pub fn variables_mut(&mut self) -> &mut [S] {
        &mut self.values
    }

    /// The adjoints of a step.
    pub fn adjoints(&self, place: usize) -> &[S] {
        &self.adjoints[place * self.lanes..][..self.lanes]
    }

    /// Computes the values of all steps from those of the variables.
    pub fn compute(&mut self) {
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(rule) = &node.rule.lanes {
                (rule.compute)(node, at, &mut self.values, self.lanes);
            }
        }
    }

    /// Sets all adjoints to 0.
    pub fn clear(&mut self) {
        self.adjoints.fill(S::zero());
    }

    /// Adds the cotangents of a result to its adjoints, for the first cells.
    pub fn seed(&mut self, place: usize, cotangents: impl Iterator<Item = S>) {
        let adjoints = &mut self.adjoints[place * self.lanes..][..self.lanes];
        adjoints.iter_mut().zip(cotangents).for_each(|(adjoint, cotangent)| *adjoint += cotangent);
    }

    /// Computes the adjoints of all steps from those of the results.
    pub fn pull(&mut self) {
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if let Some(rule) = &node.rule.lanes {
                (rule.pull)(node, at, &self.values, &mut self.adjoints, self.lanes);
            }
        }
    }
}
