//! [`Rule`]: how a recorded step is repeated, and how it passes adjoints on, for one cell and for many.

use std::marker::PhantomData;

use super::function::Function;
use super::tape::{Differentiable, Node};
use crate::number::Dual;
use crate::runtime::simd::clones;

/// The rule of a step.
pub(super) struct Rule<S: 'static> {
    /// Adds what the step contributes to the adjoints of its operands: `(step, values, adjoint of the step, adjoints)`.
    pub pull: fn(&Node<S>, &[S], S, &mut [S]),
    /// The same for many cells at once. `None` for leaves, and for numbers without lanes.
    pub lanes: Option<LaneRule<S>>,
    /// Whether the step takes much longer than an arithmetic operation.
    pub is_dear: bool,
}

/// The rule of a step for many cells. Node `k` has the values from `k · lanes` on.
pub(super) struct LaneRule<S: 'static> {
    /// Computes the step: `(step, its index, values, lanes)`.
    pub compute: fn(&Node<S>, usize, &mut [S], usize),
    /// Adds to the adjoints of its operands: `(step, its index, values, adjoints, lanes)`.
    pub pull: fn(&Node<S>, usize, &[S], &mut [S], usize),
}

/// The rule of a leaf: a variable or a constant.
pub(super) struct Leaf<S>(PhantomData<S>);

impl<S: Differentiable> Leaf<S> {
    pub const RULE: &'static Rule<S> = &Rule { pull: |_, _, _, _| {}, lanes: None, is_dear: false };
}

/// The rule of a function.
pub(super) struct Of<F, S, const N: usize>(PhantomData<(F, S)>);

impl<F: Function<S, N> + Function<Dual<S>, N>, S: Differentiable, const N: usize> Of<F, S, N> {
    pub const RULE: &'static Rule<S> = &Rule {
        pull: Self::pull,
        lanes: if S::HAS_LANES {
            Some(LaneRule { compute: Self::compute_lanes, pull: Self::pull_lanes })
        } else {
            None
        },
        is_dear: F::IS_DEAR,
    };

    fn pull(node: &Node<S>, values: &[S], adjoint: S, adjoints: &mut [S]) {
        let mut x = [S::zero(); N];
        for (x, id) in x.iter_mut().zip(node.operands) {
            *x = values[id as usize];
        }
        macro_rules! pull {
            ($($k:literal)*) => {$(
                if $k < N && node.needs($k) {
                    let part = contribution_at_level(PhantomData::<F>, Operand::<$k>, x, node.parameter(), adjoint);
                    adjoints[node.operands[$k] as usize] += part;
                }
            )*};
        }
        pull!(0 1 2);
    }

    fn compute_lanes(node: &Node<S>, at: usize, values: &mut [S], lanes: usize) {
        let (before, rest) = values.split_at_mut(at * lanes);
        compute(PhantomData::<F>, operands::<S, N>(node, before, lanes), node.parameter(), &mut rest[..lanes]);
    }

    fn pull_lanes(node: &Node<S>, at: usize, values: &[S], adjoints: &mut [S], lanes: usize) {
        let x = operands::<S, N>(node, values, lanes);
        let (before, rest) = adjoints.split_at_mut(at * lanes);
        let adjoint = &rest[..lanes];
        // One operand at a time, because all of them may be the same step.
        macro_rules! pull {
            ($($k:literal)*) => {$(
                if $k < N && node.needs($k) {
                    let place = &mut before[node.operands[$k] as usize * lanes..][..lanes];
                    pull(PhantomData::<F>, Operand::<$k>, x, node.parameter(), adjoint, place);
                }
            )*};
        }
        pull!(0 1 2);
    }
}

/// The operand at a position.
struct Operand<const K: usize>;

fn operands<'a, S, const N: usize>(node: &Node<S>, values: &'a [S], lanes: usize) -> [&'a [S]; N] {
    std::array::from_fn(|k| &values[node.operands[k] as usize * lanes..][..lanes])
}

/// The adjoint of operand `K`, as far as this step contributes to it. An adjoint of 0 contributes 0, even where the derivative is
/// infinite. The derivative of a holomorphic function is conjugated.
#[inline(always)]
fn contribution<F: Function<Dual<S>, N>, S: Differentiable, const N: usize, const K: usize>(
    x: [S; N],
    parameter: i64,
    adjoint: S,
) -> S {
    if F::CONJUGATES {
        return adjoint.conj();
    }
    let mut duals = [Dual::constant_of(S::zero()); N];
    for k in 0..N {
        duals[k] = if k == K { Dual::variable(x[k]) } else { Dual::constant_of(x[k]) };
    }
    F::at(duals, parameter).tangent.conj().chain(adjoint)
}

clones! {
    /// The value of a function. An expensive one is compiled for each level, because baseline code lacks fused products.
    pub(super) <[F, S, const N: usize]> fn value(_f: PhantomData<F>, x: [S; N], parameter: i64) -> S
    where [F: Function<S, N>, S: Differentiable] if [F::IS_DEAR] {
        F::at(x, parameter)
    }
}

clones! {
    <[F, S, const N: usize, const K: usize]>
    fn contribution_at_level(_f: PhantomData<F>, _k: Operand<K>, x: [S; N], parameter: i64, adjoint: S) -> S
    where [F: Function<Dual<S>, N>, S: Differentiable] if [F::IS_DEAR] {
        contribution::<F, S, N, K>(x, parameter, adjoint)
    }
}

clones! {
    <[F, S, const N: usize]> fn compute(_f: PhantomData<F>, x: [&[S]; N], parameter: i64, out: &mut [S])
    where [F: Function<S, N>, S: Differentiable] {
        let lanes = out.len();
        let mut cell = [S::zero(); N];
        for l in 0..lanes {
            for k in 0..N {
                cell[k] = x[k][l];
            }
            out[l] = F::at(cell, parameter);
        }
    }
}

clones! {
    <[F, S, const N: usize, const K: usize]>
    fn pull(_f: PhantomData<F>, _k: Operand<K>, x: [&[S]; N], parameter: i64, adjoint: &[S], place: &mut [S])
    where [F: Function<Dual<S>, N>, S: Differentiable] {
        let lanes = place.len();
        let mut cell = [S::zero(); N];
        for l in 0..lanes {
            for k in 0..N {
                cell[k] = x[k][l];
            }
            place[l] += contribution::<F, S, N, K>(cell, parameter, adjoint[l]);
        }
    }
}
