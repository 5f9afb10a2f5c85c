//! [`Rule`]: how a recorded step is repeated, and how it passes adjoints on, for one cell and for many.

use std::marker::PhantomData;

use super::function::Function;
use super::tape::{Differentiable, MOST, Node};
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
    /// The number of its operands.
    pub operands: usize,
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
    pub const RULE: &'static Rule<S> = &Rule { pull: |_, _, _, _| {}, lanes: None, is_dear: false, operands: 0 };
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
        operands: N,
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
        let [x, y, z] = operands(node, before, N, lanes);
        compute(PhantomData::<[F; N]>, x, y, z, node.parameter(), &mut rest[..lanes]);
    }

    fn pull_lanes(node: &Node<S>, at: usize, values: &[S], adjoints: &mut [S], lanes: usize) {
        let [x, y, z] = operands(node, values, N, lanes);
        let (before, rest) = adjoints.split_at_mut(at * lanes);
        let adjoint = &rest[..lanes];
        // One operand at a time, because all of them may be the same step.
        macro_rules! pull {
            ($($k:literal)*) => {$(
                if $k < N && node.needs($k) {
                    let place = &mut before[node.operands[$k] as usize * lanes..][..lanes];
                    let is_first = node.is_first($k);
                    pull(PhantomData::<[F; N]>, Operand::<$k>, x, y, z, node.parameter(), adjoint, is_first, place);
                }
            )*};
        }
        pull!(0 1 2);
    }
}

/// The operand at a position.
struct Operand<const K: usize>;

/// The values of the operands. The first stands for those that a step does not have.
fn operands<'a, S>(node: &Node<S>, values: &'a [S], count: usize, lanes: usize) -> [&'a [S]; MOST] {
    std::array::from_fn(|k| {
        let operand = node.operands[if k < count { k } else { 0 }];
        &values[operand as usize * lanes..][..lanes]
    })
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
    <[F, S, const N: usize]>
    fn compute(_f: PhantomData<[F; N]>, x: &[S], y: &[S], z: &[S], parameter: i64, out: &mut [S])
    where [F: Function<S, N>, S: Differentiable] {
        let lanes = out.len();
        let (x, y, z) = (&x[..lanes], &y[..lanes], &z[..lanes]);
        for l in 0..lanes {
            out[l] = F::at(first([x[l], y[l], z[l]]), parameter);
        }
    }
}

clones! {
    <[F, S, const N: usize, const K: usize]>
    fn pull(
        _f: PhantomData<[F; N]>, _k: Operand<K>, x: &[S], y: &[S], z: &[S], parameter: i64, adjoint: &[S], is_first: bool,
        place: &mut [S],
    )
    where [F: Function<Dual<S>, N>, S: Differentiable] {
        let lanes = place.len();
        let (x, y, z, adjoint) = (&x[..lanes], &y[..lanes], &z[..lanes], &adjoint[..lanes]);
        for l in 0..lanes {
            let before = if is_first { S::zero() } else { place[l] };
            place[l] = before + contribution::<F, S, N, K>(first([x[l], y[l], z[l]]), parameter, adjoint[l]);
        }
    }
}

/// The first items.
#[inline(always)]
fn first<S: Copy, const N: usize>(all: [S; MOST]) -> [S; N] {
    let mut first = [all[0]; N];
    first.copy_from_slice(&all[..N]);
    first
}
