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

impl Segment {
    fn of(steps: Range<usize>) -> Segment {
        Segment { steps, kept: vec![], pulled_kept: vec![], pulled: vec![] }
    }
}

/// The most steps of a body that is one segment.
const SHORT: usize = 1 << 13;
/// The number of steps of a segment of a longer body.
const SEGMENT: usize = 1 << 10;
/// The most bytes for values and adjoints. A longer body runs one cell at a time.
const MOST_MEMORY: usize = 512 << 20;
/// The place of a number that has none.
const NOWHERE: u32 = u32::MAX;

/// How the nodes of a tape are divided into segments.
struct Division {
    /// The number of steps before each node.
    orders: Vec<u32>,
    /// The number of steps of a segment.
    segment: usize,
    /// For each node, whether its number has a place of its own.
    lasts: Vec<bool>,
}

impl Division {
    fn of<S: Differentiable>(nodes: &[Node<S>], results: &[usize]) -> Division {
        let mut orders = vec_for(nodes.len());
        let mut count = 0;
        for node in nodes {
            orders.push(count);
            count += u32::from(node.is_step());
        }
        let is_long = count as usize > SHORT;
        let segment = if is_long { SEGMENT } else { SHORT };
        let mut division = Division { orders, segment, lasts: filled(false, nodes.len()) };
        results.iter().for_each(|at| division.lasts[*at] = is_long);
        for (at, node) in nodes.iter().enumerate() {
            division.lasts[at] |= !node.is_step();
            for operand in node.operands() {
                division.lasts[*operand as usize] |= division.segment_of(*operand as usize) != division.segment_of(at);
            }
        }
        division
    }

    fn segment_of(&self, at: usize) -> usize {
        self.orders[at] as usize / self.segment
    }

    /// The place of a step among those of its segment.
    fn within(&self, at: usize) -> usize {
        self.orders[at] as usize % self.segment
    }
}

impl<S: Differentiable> Recording<S> {
    /// The recording of the nodes of a tape. `None` if it takes too much memory.
    pub(super) fn of(nodes: &[Node<S>], values: &[S], results: impl Iterator<Item = usize>) -> Option<Recording<S>> {
        let mut has_adjoint = filled(false, nodes.len());
        let results: Vec<usize> = results.filter(|at| !std::mem::replace(&mut has_adjoint[*at], true)).collect();
        let division = Division::of(nodes, &results);
        let count = nodes.iter().filter(|node| node.is_step()).count();
        let segments = (0..count).step_by(division.segment);
        let segments = segments.map(|start| Segment::of(start..count.min(start + division.segment))).collect();
        let mut recording = Recording {
            steps: vec_for(count),
            segments,
            constants: vec![],
            places: filled(NOWHERE, nodes.len()),
            results: vec![],
            unused: vec![],
            lasting: 0,
            longest: count.min(division.segment),
            is_dear: nodes.iter().filter(|node| node.rule.is_dear).count() * 16 >= nodes.len(),
        };
        recording.place(nodes, values, &division.lasts);
        if 2 * size_of::<S>() * recording.memory() * FEWEST_LANES > MOST_MEMORY {
            return None;
        }
        recording.add_steps(nodes, &division);
        recording.find_uses(nodes, &division, has_adjoint);
        for at in results {
            if !division.lasts[at] {
                recording.places[at] = (recording.lasting + division.within(at)) as u32;
            }
            recording.results.push(recording.place_of(at));
        }
        Some(recording)
    }

    /// Adds the steps, with places as operands. A step reads a number of its own segment where that computes it.
    fn add_steps(&mut self, nodes: &[Node<S>], division: &Division) {
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.is_step()) {
            let mut step = *node;
            for (place, operand) in step.operands.iter_mut().zip(node.operands()) {
                let operand = *operand as usize;
                let is_near = nodes[operand].is_step() && division.segment_of(operand) == division.segment_of(at);
                *place = match is_near {
                    true => (self.lasting + division.within(operand)) as u32,
                    false => self.places[operand],
                };
            }
            self.steps.push(step);
            if division.lasts[at] {
                let kept = (self.lasting + division.within(at), self.place_of(at));
                self.segments[division.segment_of(at)].kept.push(kept);
            }
        }
    }

    /// Finds the steps that the results depend on, and for each adjoint the step that is the first to add to it.
    fn find_uses(&mut self, nodes: &[Node<S>], division: &Division, mut has_adjoint: Vec<bool>) {
        // The adjoints at the places that last, to which later segments and results have added.
        let mut is_added = filled(false, self.lasting);
        let lasting = |at: &usize| division.lasts[*at] && has_adjoint[*at];
        (0..nodes.len()).filter(lasting).for_each(|at| is_added[self.place_of(at)] = true);
        let mut entered = self.segments.len();
        for (at, node) in nodes.iter().enumerate().rev() {
            if !node.is_step() {
                if node.needed != 0 && !has_adjoint[at] {
                    self.unused.push(self.place_of(at));
                }
                continue;
            }
            let own = division.segment_of(at);
            let segment = &mut self.segments[own];
            if own < entered {
                entered = own;
                segment.pulled_kept = segment.kept.iter().filter(|(_, place)| is_added[*place]).copied().collect();
            }
            if !has_adjoint[at] {
                continue;
            }
            segment.pulled.push(division.orders[at]);
            for k in 0..MOST {
                let operand = node.operands[k] as usize;
                if node.needs(k) && !std::mem::replace(&mut has_adjoint[operand], true) {
                    self.steps[division.orders[at] as usize].first |= 1 << k;
                    if division.lasts[operand] {
                        is_added[self.places[operand] as usize] = true;
                    }
                }
            }
        }
    }

    /// Gives places to the numbers that last. Equal constants share one.
    fn place(&mut self, nodes: &[Node<S>], values: &[S], lasts: &[bool]) {
        let mut known = HashMap::new();
        for at in (0..nodes.len()).filter(|at| lasts[*at]) {
            let (node, value) = (&nodes[at], values[at]);
            // Zeros and NaN share ranks.
            let is_unique = value.compare(S::zero()).is_some_and(|order| order != Ordering::Equal);
            let is_constant = !node.is_step() && node.needed == 0;
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
