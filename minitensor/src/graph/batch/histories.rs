//! [`Histories`]: what a run with a batch needs besides the graph. A graph refers to tensors by their windows, but the
//! gradient also depends on the history of each: a detached tensor has the window of its original.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::autograd::{Edge, is_grad_enabled};
use crate::error::Result;
use crate::graph::recorder::Recorder;
use crate::graph::{Source, ValueId};
use crate::tensor::{Storage, Tensor};

/// The history of a call.
pub struct History {
    /// Whether gradients were recorded.
    pub is_recorded: bool,
    /// For each argument, whether it has no history, or one that begins in the function.
    pub is_cut: SmallVec<[bool; 4]>,
}

/// The histories of all calls.
pub struct Histories {
    calls: Vec<History>,
    /// The results that have a history, by its last node.
    results: HashMap<(u64, usize), ValueId>,
    /// The memory of tensors that may differ between examples.
    differing: HashSet<*const Storage>,
    all_differ: bool,
}

impl Histories {
    pub fn new(all_differ: bool) -> Histories {
        Histories { calls: Vec::new(), results: HashMap::new(), differing: HashSet::new(), all_differ }
    }

    /// Adds the history of the next call.
    pub fn push(&mut self, history: History) {
        self.calls.push(history);
    }

    /// Removes all calls but the first ones.
    pub fn truncate(&mut self, calls: usize) {
        self.calls.truncate(calls);
    }

    pub fn into_calls(self) -> Vec<History> {
        self.calls
    }

    /// Whether all tensors may differ, because another recording is interrupted.
    pub fn all_differ(&self) -> bool {
        self.all_differ
    }

    /// Whether the elements of a tensor may differ between examples.
    pub fn differ(&self, t: &Tensor) -> bool {
        self.all_differ || self.differing.contains(&Arc::as_ptr(t.storage()))
    }

    pub fn note_difference(&mut self, t: &Tensor) {
        self.differing.insert(Arc::as_ptr(t.storage()));
    }
}

impl Recorder {
    /// The value of a tensor, and whether it is without the history of that value.
    pub fn handle(&mut self, t: &Tensor) -> Result<(ValueId, bool)> {
        if self.histories.is_none() || !is_grad_enabled() {
            return Ok((self.operand(t)?, false));
        }
        let edge = if t.requires_grad() { t.edge()? } else { None };
        match edge {
            None => Ok((self.operand(t)?, true)),
            Some(Edge::Node(node, k)) if node.sequence >= self.first_node => {
                let known = self.histories.as_ref().and_then(|h| h.results.get(&(node.sequence, k)).copied());
                match known.filter(|id| self.with_window(t).any(|other| other == *id)) {
                    Some(id) => Ok((id, false)),
                    None => Ok((self.operand(t)?, false)),
                }
            }
            Some(_) => {
                let is_it = |id: &ValueId| {
                    let is_given = matches!(self.graph.value(*id).source, Source::Input(_) | Source::Captured(_));
                    is_given && self.held[id.at()].has_edge_of(t)
                };
                if let Some(id) = self.with_window(t).find(is_it) {
                    return Ok((id, false));
                }
                if self.is_new(t) || self.is_of_argument(t) {
                    // A leaf that the function made.
                    return Ok((self.operand(t)?, true));
                }
                let number = self.captured().count();
                Ok((self.insert(t, Source::Captured(number)), false))
            }
        }
    }

    /// Whether a result has a history other than that of the value with its window.
    pub fn has_own_history(&self, t: &Tensor) -> bool {
        let Some(histories) = &self.histories else { return false };
        let is_known = |node: u64, k: usize| histories.results.contains_key(&(node, k));
        matches!(t.edge(), Ok(Some(Edge::Node(node, k))) if node.sequence >= self.first_node && !is_known(node.sequence, k))
    }

    /// Adds a result of a call.
    pub fn insert_result(&mut self, t: &Tensor) -> ValueId {
        let id = self.insert(t, Source::Computed);
        if let (Some(histories), Ok(Some(Edge::Node(node, k)))) = (&mut self.histories, t.edge()) {
            histories.results.insert((node.sequence, k), id);
        }
        id
    }
}
