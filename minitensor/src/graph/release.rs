//! Gives back memory during a recording, so that the first call of a function needs about as much as one without a graph.
//!
//! A recorder holds the tensor of each value, because the address of its memory identifies it. Once nothing else refers to the memory, no
//! call can use the value any more. Then the recorder forgets the address, and keeps the shape and dtype only. If the gradient of the
//! function reads the value, it is computed again for the first call.

use std::sync::Arc;

use smallvec::SmallVec;

use super::ir::{Graph, Source, Value, ValueId};
use super::recorder::Recorder;
use crate::tensor::{Device, Tensor};

/// The least memory in bytes that calls allocate before unused memory is looked for.
const LEAST: usize = 1 << 20;

/// When memory is given back.
#[derive(Default)]
pub(super) struct Release {
    /// The first value whose memory may be given back.
    first: usize,
    /// The bytes of memory allocated since the last search, and how many lead to the next one. The number grows with the memory in use,
    /// so that all searches together take linear time.
    grown: usize,
    most: usize,
}

impl Recorder {
    /// Keeps the memory of all values so far.
    pub fn keep_values(&mut self) {
        self.release.first = self.graph.values.len();
    }

    /// Whether the memory of a value was given back.
    fn is_released(&self, id: ValueId) -> bool {
        self.held[id.at()].device() == Device::Meta && self.graph.value(id).device != Device::Meta
    }

    /// For each value, whether its memory was given back, and the calls that compute it cannot run once more.
    pub fn lost(&self, function: &Graph) -> Vec<bool> {
        let written = function.written();
        let is_given = |v: &Value| matches!(v.source, Source::Input(_) | Source::Captured(_) | Source::Constant(_));
        let is_fixed = |id: ValueId| !written.get(function.memory(id)).copied().unwrap_or_default();
        let mut repeats: Vec<bool> = function.values.iter().map(is_given).collect();
        for call in &function.calls {
            let is_repeated = call.is_pure() && call.reads().all(|id| repeats[id.at()] && is_fixed(id));
            call.computes().for_each(|id| repeats[id.at()] = is_repeated);
        }
        (0..repeats.len()).map(|at| self.is_released(ValueId(at as u32)) && !repeats[at]).collect()
    }

    /// The graph that computes those of the values again whose memory was given back. `None` if there are none.
    pub fn again(&self, function: &Graph, values: &[ValueId]) -> Option<Graph> {
        let outputs: Vec<ValueId> = values.iter().copied().filter(|id| self.is_released(*id)).collect();
        let mut is_needed = vec![false; function.values.len()];
        outputs.iter().for_each(|id| is_needed[id.at()] = true);
        let mut calls = Vec::new();
        for call in function.calls.iter().rev() {
            if call.computes().any(|id| is_needed[id.at()]) {
                call.reads().for_each(|id| is_needed[id.at()] = true);
                calls.push(call.clone());
            }
        }
        calls.reverse();
        let mut values = function.values.clone();
        for value in values.iter_mut().filter(|v| matches!(v.source, Source::Key(..))) {
            value.source = Source::Computed;
        }
        (!outputs.is_empty()).then(|| Graph { values, calls, outputs }.compact())
    }

    /// Notes new memory.
    pub(super) fn note_memory(&mut self, bytes: usize) {
        self.release.grown = self.release.grown.saturating_add(bytes);
    }

    /// Gives back memory that nothing else refers to.
    pub fn release_unused(&mut self) {
        // A batch, and another process, need all values.
        if self.release.grown < self.release.most.max(LEAST) || self.histories.is_some() || self.is_portable {
            return;
        }
        let mut in_use = 0_usize;
        let mut unused: Vec<(*const _, SmallVec<[ValueId; 2]>)> = Vec::new();
        for (memory, (_, ids)) in &self.memories {
            let Some(first) = ids.first().filter(|id| id.at() >= self.release.first) else { continue };
            match self.is_unused(ids) {
                true => unused.push((*memory, ids.iter().copied().collect())),
                false => in_use = in_use.saturating_add(self.held[first.at()].storage().bytes()),
            }
        }
        for (memory, ids) in unused {
            let Ok(empty) = ids.iter().map(|id| self.held[id.at()].meta()).collect::<Result<Vec<Tensor>, _>>() else {
                continue;
            };
            // Otherwise, a later tensor at this address would be taken for the value.
            self.memories.remove(&memory);
            for (id, empty) in ids.into_iter().zip(empty) {
                let held = std::mem::replace(&mut self.held[id.at()], empty);
                self.forget_window(&held);
            }
        }
        (self.release.grown, self.release.most) = (0, in_use / 16);
    }

    /// Whether only the recorder refers to the memory of these values, which are all of this memory.
    fn is_unused(&self, ids: &[ValueId]) -> bool {
        let is_computed = |id: &ValueId| matches!(self.graph.value(*id).source, Source::Computed);
        let mut tensors: SmallVec<[&Tensor; 4]> = SmallVec::new();
        for t in ids.iter().map(|id| &self.held[id.at()]) {
            if !tensors.iter().any(|other| other.is(t)) {
                tensors.push(t);
            }
        }
        let is_held = |t: &Tensor| tensors.iter().any(|other| other.is(t));
        let views = tensors.iter().filter(|t| t.origin().is_some_and(|origin| is_held(&origin.whole))).count();
        let references: usize = tensors.iter().map(|t| t.references()).sum();
        ids.iter().all(is_computed)
            && references == ids.len() + views
            && Arc::strong_count(tensors[0].storage()) == tensors.len()
    }
}
