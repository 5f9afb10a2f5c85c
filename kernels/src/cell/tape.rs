//! [`Tape`]: the recorded steps of one cell, and the sweep in reverse order.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt::Debug;
use std::thread::LocalKey;

use num_complex::Complex;

use super::number::Traced;
use super::recording::Recording;
use super::rule::{Leaf, Rule};
use crate::number::Dual;
use crate::number::scalar::{Element, Machine, Num};
use crate::runtime::serial::Serial;
use crate::runtime::stop::{Stop, filled};

/// A number that a tape differentiates: a float, a complex number, or a dual number of these.
pub trait Differentiable: Num + Element<Mask = bool> + Default + Debug + Send + Sync + 'static {
    /// Whether [`Lanes`](super::Lanes) run at this number.
    const HAS_LANES: bool = false;
    /// The number of bits of a [rank](Differentiable::rank).
    const RANK_BITS: u32;
    /// The order of the values. `None` for NaN, and for complex numbers.
    fn compare(self, other: Self) -> Option<Ordering>;
    /// The [rank](Machine::rank) of the value.
    fn rank(self) -> u64;
    /// The value [without its fraction](Machine::truncated).
    fn truncated(self) -> i128;
    /// The tape of this thread.
    #[doc(hidden)]
    fn steps() -> &'static LocalKey<RefCell<Steps<Self>>>;
}

/// The first column is the type, the second that of the number whose order and rank it has, and the third that number.
macro_rules! differentiable {
    ($($t:ty, $of:ty, |$x:ident| $number:expr, $lanes:literal, |$a:ident, $b:ident| $compare:expr;)*) => {$(
        impl Differentiable for $t {
            const HAS_LANES: bool = $lanes;
            const RANK_BITS: u32 = <$of as Machine>::RANK_BITS;
            #[inline]
            fn compare(self, other: Self) -> Option<Ordering> {
                let ($a, $b) = (self, other);
                $compare
            }
            #[inline]
            fn rank(self) -> u64 {
                let $x = self;
                Machine::rank($number)
            }
            #[inline]
            fn truncated(self) -> i128 {
                let $x = self;
                Machine::truncated($number)
            }
            fn steps() -> &'static LocalKey<RefCell<Steps<Self>>> {
                thread_local!(static STEPS: RefCell<Steps<$t>> = const { RefCell::new(Steps::new()) });
                &STEPS
            }
        }
    )*};
}
differentiable! {
    f32, f32, |x| x, true, |x, y| x.partial_cmp(&y);
    f64, f64, |x| x, true, |x, y| x.partial_cmp(&y);
    Complex<f32>, Complex<f32>, |x| x, false, |_x, _y| None;
    Complex<f64>, Complex<f64>, |x| x, false, |_x, _y| None;
    Dual<f32>, f32, |x| x.value, false, |x, y| x.value.partial_cmp(&y.value);
    Dual<f64>, f64, |x| x.value, false, |x, y| x.value.partial_cmp(&y.value);
    Dual<Complex<f32>>, Complex<f32>, |x| x.value, false, |_x, _y| None;
    Dual<Complex<f64>>, Complex<f64>, |x| x.value, false, |_x, _y| None;
}

/// The place of a number that is on no tape: a constant.
pub(super) const NOWHERE: u32 = u32::MAX;
/// The place of a number that was computed from numbers of a tape of another thread.
pub(super) const ELSEWHERE: u32 = u32::MAX - 1;
/// The largest number of operands.
pub(super) const MOST: usize = 3;

/// One recorded step.
pub struct Node<S: 'static> {
    pub(super) rule: &'static Rule<S>,
    /// The steps whose results it takes. A step with a parameter has one operand, then the halves of the parameter.
    pub(super) operands: [u32; MOST],
    /// A bit for each operand that depends on a variable. For a leaf, whether it is a variable.
    pub(super) needed: u8,
    /// In a recording, a bit for each operand whose adjoint this step is the first to add to.
    pub(super) first: u8,
}

impl<S> Clone for Node<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Node<S> {}

impl<S> Node<S> {
    /// The operands of a step of one operand and a parameter.
    pub(super) fn with_parameter(operand: u32, parameter: i64) -> [u32; MOST] {
        [operand, parameter as u32, (parameter >> 32) as u32]
    }

    /// Whether it is no leaf, for numbers with lanes.
    pub(super) fn is_step(&self) -> bool {
        self.rule.lanes.is_some()
    }

    /// The steps whose results it takes, without a parameter.
    pub(super) fn operands(&self) -> &[u32] {
        &self.operands[..self.rule.operands]
    }

    /// Whether the adjoint of an operand is needed.
    #[inline(always)]
    pub(super) fn needs(&self, operand: usize) -> bool {
        self.needed >> operand & 1 != 0
    }

    /// Whether the adjoint of an operand has no value before this step adds to it.
    #[inline(always)]
    pub(super) fn is_first(&self, operand: usize) -> bool {
        self.first >> operand & 1 != 0
    }

    #[inline(always)]
    pub(super) fn parameter(&self) -> i64 {
        i64::from(self.operands[2] as i32) << 32 | i64::from(self.operands[1])
    }
}

/// The steps of the cell that is being recorded on a thread.
pub struct Steps<S: 'static> {
    nodes: Vec<Node<S>>,
    values: Vec<S>,
    /// The memory of [`Lanes`](super::Lanes), kept for later calls.
    pub(super) lanes: Vec<S>,
    is_open: bool,
    has_branched: bool,
    has_lost: bool,
}

impl<S> Steps<S> {
    const fn new() -> Steps<S> {
        Steps {
            nodes: Vec::new(),
            values: Vec::new(),
            lanes: Vec::new(),
            is_open: false,
            has_branched: false,
            has_lost: false,
        }
    }
}

impl<S: Differentiable> Steps<S> {
    /// Records a step, and returns its place.
    fn push(&mut self, rule: &'static Rule<S>, operands: [u32; MOST], needed: u8, value: S) -> u32 {
        if !self.is_open {
            return ELSEWHERE;
        }
        let at = self.nodes.len();
        if at == self.nodes.capacity() || at == self.values.capacity() {
            let more = at.max(64);
            let is_full = at >= NOWHERE as usize / 2
                || self.nodes.try_reserve(more).is_err()
                || self.values.try_reserve(more).is_err();
            if is_full {
                Stop::OutOfMemory(at + more, size_of::<Node<S>>() + size_of::<S>()).raise()
            }
        }
        self.nodes.push(Node { rule, operands, needed, first: 0 });
        self.values.push(value);
        at as u32
    }
}

/// Records a step of which at least one operand is on the tape.
pub(super) fn push<S: Differentiable, const N: usize>(
    rule: &'static Rule<S>,
    x: [Traced<S>; N],
    parameter: i64,
    value: S,
) -> Traced<S> {
    let node = S::steps().with_borrow_mut(|steps| {
        let mut operands = Node::<S>::with_parameter(0, parameter);
        let mut needed = 0;
        for (k, (operand, x)) in operands.iter_mut().zip(x).enumerate() {
            if x.node < ELSEWHERE {
                *operand = x.node;
                needed |= 1 << k;
            } else {
                steps.has_lost |= x.node == ELSEWHERE;
                *operand = steps.push(Leaf::RULE, [0; MOST], 0, x.value);
            }
        }
        steps.push(rule, operands, needed, value)
    });
    Traced { value, node }
}

/// Notes that the control flow of the body may depend on a number of the tape.
pub(super) fn branch<S: Differentiable>() {
    S::steps().with_borrow_mut(|steps| steps.has_branched = true);
}

/// An open tape of this thread. It records one cell after another.
pub struct Tape<S: Differentiable> {
    adjoints: Vec<S>,
    /// The steps of a tape that was open before, because a body called another op.
    outer: Option<Steps<S>>,
    _serial: Serial,
}

/// A tape that takes more memory is freed when it is closed.
const KEPT: usize = 1 << 16;

impl<S: Differentiable> Tape<S> {
    /// Opens the tape of this thread.
    pub fn open() -> Tape<S> {
        let outer = S::steps().with_borrow_mut(|steps| {
            let outer = steps.is_open.then(|| std::mem::replace(steps, Steps::new()));
            steps.is_open = true;
            outer
        });
        let mut tape = Tape { adjoints: Vec::new(), outer, _serial: Serial::new() };
        tape.clear();
        tape
    }

    /// Removes all steps.
    pub fn clear(&mut self) {
        S::steps().with_borrow_mut(|steps| {
            steps.nodes.clear();
            steps.values.clear();
            steps.has_branched = false;
            steps.has_lost = false;
        });
    }

    /// A variable of differentiation.
    pub fn variable(&mut self, value: S) -> Traced<S> {
        let node = S::steps().with_borrow_mut(|steps| steps.push(Leaf::RULE, [0; MOST], 1, value));
        Traced { value, node }
    }

    /// The number of steps.
    pub fn len(&self) -> usize {
        S::steps().with_borrow(|steps| steps.nodes.len())
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the body compared or tested numbers of the tape, so that its steps may differ between cells.
    pub fn has_branched(&self) -> bool {
        S::steps().with_borrow(|steps| steps.has_branched)
    }

    /// Whether a result was computed on another thread, whose steps this tape does not have.
    pub fn has_lost(&self, results: impl IntoIterator<Item = Traced<S>>) -> bool {
        S::steps().with_borrow(|steps| steps.has_lost) || results.into_iter().any(|x| x.node == ELSEWHERE)
    }

    /// The steps that lead to some results, if they are the same for every cell. `None` if the body may have branched, for numbers without lanes, and for too
    /// many steps.
    pub fn recording(&self, results: impl IntoIterator<Item = Traced<S>>) -> Option<Recording<S>> {
        S::steps().with_borrow(|steps| match S::HAS_LANES && !steps.has_branched {
            true => Recording::of(&steps.nodes, &steps.values, results.into_iter().filter_map(Traced::place)),
            false => None,
        })
    }

    /// Computes the adjoints of all steps: the derivatives of `Σ cotangent · result`.
    pub fn pull(&mut self, results: impl IntoIterator<Item = (Traced<S>, S)>) {
        S::steps().with_borrow(|steps| {
            if self.adjoints.capacity() < steps.nodes.len() {
                self.adjoints = filled(S::zero(), steps.nodes.len());
            }
            self.adjoints.clear();
            self.adjoints.resize(steps.nodes.len(), S::zero());
            for (result, cotangent) in results {
                if let Some(adjoint) = self.adjoints.get_mut(result.node as usize) {
                    *adjoint += cotangent;
                }
            }
            for (at, node) in steps.nodes.iter().enumerate().rev() {
                (node.rule.pull)(node, &steps.values, self.adjoints[at], &mut self.adjoints);
            }
        });
    }

    /// The adjoint of a variable. 0 for a constant.
    pub fn adjoint(&self, x: Traced<S>) -> S {
        self.adjoints.get(x.node as usize).copied().unwrap_or_else(S::zero)
    }
}

impl<S: Differentiable> Drop for Tape<S> {
    fn drop(&mut self) {
        S::steps().with_borrow_mut(|steps| {
            steps.is_open = false;
            if let Some(outer) = self.outer.take() {
                *steps = outer;
            } else if steps.nodes.capacity() > KEPT {
                (steps.nodes, steps.values) = (Vec::new(), Vec::new());
            }
        });
    }
}
