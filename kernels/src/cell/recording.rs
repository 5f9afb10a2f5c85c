//! [`Recording`]: the steps of one cell, with places in memory for their numbers.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;

use super::lanes::FEWEST_LANES;
use super::tape::{Differentiable, MOST, Node};
use crate::runtime::stop::{filled, vec_for};

/// The steps of a body whose control flow does not depend on its numbers.
///
/// A long body is divided into segments. Only the numbers that other segments use, such as the state of a recurrence, have a place of
/// their own: they are the checkpoints. The others share the places of a segment, and are computed again for the gradient.
pub struct Recording<S: 'static> {
    /// The steps, without variables and constants. Their operands are places in memory.
    pub(super) steps: Vec<Node<S>>,
    pub(super) segments: Vec<Segment>,
    pub(super) constants: Vec<(usize, S)>,
    /// The place of each variable and result, by its place on the tape.
    places: Vec<u32>,
    /// The places of the results.
    pub(super) results: Vec<usize>,
    /// The places of the variables that no result depends on.
    pub(super) unused: Vec<usize>,
    /// The number of places that last. Those of a segment follow.
    pub(super) lasting: usize,
    /// The number of places of the longest segment.
    pub(super) longest: usize,
    is_dear: bool,
}

/// Some steps, one after the other.
#[derive(Default)]
pub(super) struct Segment {
    /// The steps. The number of the first is in the first place of a segment.
    pub steps: Range<usize>,
    /// The steps whose numbers last, each with its place.
    pub kept: Vec<(usize, usize)>,
    /// Those among them to whose adjoints later segments, or cotangents of results, add.
    pub pulled_kept: Vec<(usize, usize)>,
    /// The steps that some result depends on, in reverse order.
    pub pulled: Vec<u32>,
}

/// The most steps of a body that is one segment.
const SHORT: usize = 1 << 13;
/// The number of steps of a segment of a longer body.
const SEGMENT: usize = 1 << 10;
/// The most bytes for values and adjoints. A longer body runs one cell at a time.
const MOST_MEMORY: usize = 512 << 20;
/// The place of a number that has none.
const NOWHERE: u32 = u32::MAX;

impl<S: Differentiable> Recording<S> {
    /// The recording of the nodes of a tape. `None` if it takes too much memory.
    pub(super) fn of(nodes: &[Node<S>], values: &[S], results: impl Iterator<Item = usize>) -> Option<Recording<S>> {
        let is_step = |at: usize| nodes[at].rule.lanes.is_some();
        let count = (0..nodes.len()).filter(|at| is_step(*at)).count();
        let segment = if count > SHORT { SEGMENT } else { SHORT };
        // For each node, the number of steps before it.
        let mut orders: Vec<u32> = vec_for(nodes.len());
        for at in 0..nodes.len() {
            orders.push(orders.last().map_or(0, |before| before + u32::from(is_step(at - 1))));
        }
        let segment_of = |at: usize| orders[at] as usize / segment;
        let mut has_adjoint = filled(false, nodes.len());
        let mut all_results = vec![];
        for at in results {
            if !std::mem::replace(&mut has_adjoint[at], true) {
                all_results.push(at);
            }
        }
        let mut lasts = filled(false, nodes.len());
        all_results.iter().for_each(|at| lasts[*at] = count > SHORT);
        for (at, node) in nodes.iter().enumerate() {
            lasts[at] |= !is_step(at);
            for operand in &node.operands[..node.rule.operands] {
                lasts[*operand as usize] |= segment_of(*operand as usize) != segment_of(at);
            }
        }
        let mut recording = Recording {
            steps: vec_for(count),
            segments: (0..count.div_ceil(segment)).map(|_| Segment::default()).collect(),
            constants: vec![],
            places: filled(NOWHERE, nodes.len()),
            results: vec![],
            unused: vec![],
            lasting: 0,
            longest: count.min(segment),
            is_dear: nodes.iter().filter(|node| node.rule.is_dear).count() * 16 >= nodes.len(),
        };
        recording.place(nodes, values, &lasts);
        if 2 * size_of::<S>() * recording.memory() * FEWEST_LANES > MOST_MEMORY {
            return None;
        }
        let place_of = |recording: &Recording<S>, at: usize, user: usize| match lasts[at]
            && (!is_step(at) || segment_of(at) != user)
        {
            true => recording.places[at],
            false => (recording.lasting + orders[at] as usize % segment) as u32,
        };
        for at in (0..nodes.len()).filter(|at| is_step(*at)) {
            let (mut node, user) = (nodes[at], segment_of(at));
            for operand in &mut node.operands[..nodes[at].rule.operands] {
                *operand = place_of(&recording, *operand as usize, user);
            }
            recording.steps.push(node);
        }
        for (k, part) in recording.segments.iter_mut().enumerate() {
            part.steps = k * segment..count.min((k + 1) * segment);
        }
        for at in (0..nodes.len()).filter(|at| is_step(*at) && lasts[*at]) {
            let kept = (recording.lasting + orders[at] as usize % segment, recording.places[at] as usize);
            recording.segments[segment_of(at)].kept.push(kept);
        }
        // In reverse order: which steps have adjoints, and which step is the first to add to one.
        let mut entered = recording.segments.len();
        for at in (0..nodes.len()).rev() {
            let node = &nodes[at];
            if !is_step(at) {
                if node.needed != 0 && !has_adjoint[at] {
                    recording.unused.push(recording.places[at] as usize);
                }
                continue;
            }
            let user = segment_of(at);
            if user < entered {
                entered = user;
                // What later segments have added to.
                let steps = (0..=at).rev().take_while(|at| !is_step(*at) || segment_of(*at) == user);
                let kept: Vec<usize> = steps.filter(|at| is_step(*at) && lasts[*at] && has_adjoint[*at]).collect();
                let pair =
                    |at: usize| (recording.lasting + orders[at] as usize % segment, recording.places[at] as usize);
                recording.segments[user].pulled_kept = kept.into_iter().map(pair).collect();
            }
            if !has_adjoint[at] {
                continue;
            }
            recording.segments[user].pulled.push(orders[at]);
            for k in 0..MOST {
                if node.needs(k) && !std::mem::replace(&mut has_adjoint[node.operands[k] as usize], true) {
                    recording.steps[orders[at] as usize].first |= 1 << k;
                }
            }
        }
        for at in all_results {
            let place = place_of(&recording, at, usize::MAX) as usize;
            recording.places[at] = place as u32;
            recording.results.push(place);
        }
        Some(recording)
    }

    /// Gives places to the numbers that last. Equal constants share one.
    fn place(&mut self, nodes: &[Node<S>], values: &[S], lasts: &[bool]) {
        let mut known = HashMap::new();
        for at in (0..nodes.len()).filter(|at| lasts[*at]) {
            let (node, value) = (&nodes[at], values[at]);
            // Zeros and NaN share ranks.
            let is_unique = value.compare(S::zero()).is_some_and(|order| order != Ordering::Equal);
            let is_constant = node.rule.lanes.is_none() && node.needed == 0;
            let place = match is_constant && is_unique {
                true => *known.entry(value.rank()).or_insert(self.lasting),
                false => self.lasting,
            };
            if is_constant && place == self.lasting {
                self.constants.push((place, value));
            }
            self.places[at] = place as u32;
            self.lasting = self.lasting.max(place + 1);
        }
    }

    /// The place in memory of a variable or result, by its place on the tape.
    pub(super) fn place_of(&self, at: usize) -> usize {
        self.places[at] as usize
    }

    /// The number of steps.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The number of places in memory for the numbers of a cell.
    pub(super) fn memory(&self) -> usize {
        self.lasting + self.longest
    }

    /// Whether many steps take much longer than arithmetic, so that lanes are faster than compiled code for one cell.
    pub fn is_dear(&self) -> bool {
        self.is_dear
    }
}
