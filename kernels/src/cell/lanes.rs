//! [`Lanes`]: the recorded steps, repeated for many cells side by side.

use super::recording::{Recording, Segment};
use super::tape::Differentiable;
use crate::runtime::stop::vec_for;

/// The most cells at a time: the loop over them amortizes the call of a step.
const MOST_LANES: usize = 64;
/// The fewest cells at a time.
pub(super) const FEWEST_LANES: usize = 16;
/// The bytes for values and adjoints that the number of cells is reduced for.
const MEMORY: usize = 8 << 20;
/// A thread keeps this number of bytes for later calls.
const KEPT: usize = 16 << 20;

/// The memory for some cells of a [`Recording`]. The numbers of each place for all cells are contiguous.
pub struct Lanes<'a, S: Differentiable> {
    recording: &'a Recording<S>,
    lanes: usize,
    /// The values of all places, then the adjoints.
    memory: Vec<S>,
}

impl<'a, S: Differentiable> Lanes<'a, S> {
    /// Memory for up to `cells` cells at a time.
    pub fn new(recording: &'a Recording<S>, cells: usize, with_adjoints: bool) -> Lanes<'a, S> {
        let places = recording.memory() * if with_adjoints { 2 } else { 1 };
        let mut lanes = MOST_LANES;
        while lanes > FEWEST_LANES && (lanes / 2 >= cells || size_of::<S>() * places * lanes > MEMORY) {
            lanes /= 2;
        }
        let mut memory = S::steps().with_borrow_mut(|steps| std::mem::take(&mut steps.lanes));
        if memory.capacity() < places * lanes {
            memory = vec_for(places * lanes);
        }
        memory.resize(places * lanes, S::zero());
        let mut all = Lanes { recording, lanes, memory };
        for (place, constant) in &recording.constants {
            all.memory[place * lanes..][..lanes].fill(*constant);
        }
        for place in recording.unused.iter().filter(|_| with_adjoints) {
            all.memory[(recording.memory() + place) * lanes..][..lanes].fill(S::zero());
        }
        all
    }

    /// The number of cells at a time.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// The values of a variable or result, by its place on the tape.
    pub fn values(&self, at: usize) -> &[S] {
        &self.memory[self.recording.place_of(at) * self.lanes..][..self.lanes]
    }

    /// The values of consecutive variables.
    pub fn variables_mut(&mut self, first: usize, count: usize) -> &mut [S] {
        &mut self.memory[self.recording.place_of(first) * self.lanes..][..count * self.lanes]
    }

    /// The adjoints of a variable.
    pub fn adjoints(&self, at: usize) -> &[S] {
        &self.memory[(self.recording.memory() + self.recording.place_of(at)) * self.lanes..][..self.lanes]
    }

    /// Computes the values of all steps from those of the variables.
    pub fn compute(&mut self) {
        self.recording.segments.iter().for_each(|segment| self.segment(segment));
    }

    /// Computes the values of a segment.
    fn segment(&mut self, segment: &Segment) {
        let Recording { steps, lasting, .. } = self.recording;
        for (at, node) in steps[segment.steps.clone()].iter().enumerate() {
            if let Some(rule) = &node.rule.lanes {
                (rule.compute)(node, lasting + at, &mut self.memory, self.lanes);
            }
        }
        for (from, to) in &segment.kept {
            self.memory.copy_within(from * self.lanes..(from + 1) * self.lanes, to * self.lanes);
        }
    }

    /// Sets the adjoints of the results to 0. Those of other steps are written before they are read.
    pub fn clear(&mut self) {
        for place in &self.recording.results {
            self.memory[(self.recording.memory() + place) * self.lanes..][..self.lanes].fill(S::zero());
        }
    }

    /// Adds the cotangents of a result to its adjoints, for the cells from `lane` on.
    #[inline(always)]
    pub fn seed<const N: usize>(&mut self, at: usize, lane: usize, cotangents: [S; N]) {
        let first = (self.recording.memory() + self.recording.place_of(at)) * self.lanes + lane;
        let adjoints = self.memory[first..][..N].iter_mut();
        adjoints.zip(cotangents).for_each(|(adjoint, cotangent)| *adjoint += cotangent);
    }

    /// Computes the adjoints of all variables from those of the results. The values of the last segment are there.
    pub fn pull(&mut self) {
        let Recording { steps, segments, lasting, .. } = self.recording;
        for (k, segment) in segments.iter().enumerate().rev() {
            if k + 1 < segments.len() {
                self.segment(segment);
            }
            let (values, adjoints) = self.memory.split_at_mut(self.recording.memory() * self.lanes);
            for (to, from) in &segment.pulled_kept {
                adjoints.copy_within(from * self.lanes..(from + 1) * self.lanes, to * self.lanes);
            }
            for step in &segment.pulled {
                let (node, at) = (&steps[*step as usize], lasting + *step as usize - segment.steps.start);
                if let Some(rule) = &node.rule.lanes {
                    (rule.pull)(node, at, values, adjoints, self.lanes);
                }
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
