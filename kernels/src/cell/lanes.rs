//! [`Lanes`]: the recorded steps, repeated for many cells side by side.

use super::tape::{Differentiable, MOST, Node};
use crate::runtime::stop::{filled, vec_for};

/// The steps of a body whose control flow does not depend on its numbers.
pub struct Recording<S: 'static> {
    nodes: Vec<Node<S>>,
    constants: Vec<(usize, S)>,
    /// The steps that some result depends on, in reverse order, besides leaves.
    pulled: Vec<u32>,
    /// The places of the results.
    results: Vec<usize>,
    /// The variables that no result depends on.
    unused: Vec<usize>,
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
    pub(super) fn of(nodes: &[Node<S>], values: &[S], results: impl Iterator<Item = usize>) -> Option<Recording<S>> {
        if 2 * size_of::<S>() * nodes.len() * FEWEST_LANES > MOST_MEMORY {
            return None;
        }
        let nodes_of = vec_for(nodes.len());
        let mut recording =
            Recording { nodes: nodes_of, constants: vec![], pulled: vec![], results: vec![], unused: vec![], dear: 0 };
        for (at, (node, value)) in nodes.iter().zip(values).enumerate() {
            recording.nodes.push(*node);
            recording.dear += usize::from(node.rule.is_dear);
            if node.rule.lanes.is_none() && node.needed == 0 {
                recording.constants.push((at, *value));
            }
        }
        recording.find_uses(results);
        Some(recording)
    }

    /// Finds the steps that the results depend on, and for each adjoint the step that is the first to add to it.
    fn find_uses(&mut self, results: impl Iterator<Item = usize>) {
        let mut has_adjoint = filled(false, self.nodes.len());
        for place in results {
            if !std::mem::replace(&mut has_adjoint[place], true) {
                self.results.push(place);
            }
        }
        for (at, node) in self.nodes.iter_mut().enumerate().rev() {
            if node.rule.lanes.is_none() {
                if node.needed != 0 && !has_adjoint[at] {
                    self.unused.push(at);
                }
                continue;
            }
            if !has_adjoint[at] {
                continue;
            }
            self.pulled.push(at as u32);
            for k in 0..MOST {
                if node.needs(k) && !std::mem::replace(&mut has_adjoint[node.operands[k] as usize], true) {
                    node.first |= 1 << k;
                }
            }
        }
    }

    /// The number of steps.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether many steps take much longer than arithmetic, so that lanes are faster than compiled code for one cell.
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
        for at in recording.unused.iter().filter(|_| with_adjoints) {
            memory[(recording.nodes.len() + at) * lanes..][..lanes].fill(S::zero());
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

    /// Sets the adjoints of the results to 0. Those of other steps are written before they are read.
    pub fn clear(&mut self) {
        for place in &self.recording.results {
            self.memory[(self.recording.nodes.len() + place) * self.lanes..][..self.lanes].fill(S::zero());
        }
    }

    /// Adds the cotangents of a result to its adjoints, for the cells from `lane` on.
    #[inline(always)]
    pub fn seed<const N: usize>(&mut self, place: usize, lane: usize, cotangents: [S; N]) {
        let first = (self.recording.nodes.len() + place) * self.lanes + lane;
        let adjoints = self.memory[first..][..N].iter_mut();
        adjoints.zip(cotangents).for_each(|(adjoint, cotangent)| *adjoint += cotangent);
    }

    /// Computes the adjoints of all steps from those of the results.
    pub fn pull(&mut self) {
        let (values, adjoints) = self.memory.split_at_mut(self.recording.nodes.len() * self.lanes);
        for at in &self.recording.pulled {
            let node = &self.recording.nodes[*at as usize];
            if let Some(rule) = &node.rule.lanes {
                (rule.pull)(node, *at as usize, values, adjoints, self.lanes);
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
