//! The passes that compute the vector-Jacobian product of rows.
//!
//! Let `rₖ = redₖ over i of fₖ(xᵢ, r)`, where each depends on reductions before it only, and `yᵢ = h(xᵢ, r)`. The adjoints
//! of the reductions are, from the last to the first,
//!
//! `r̄ₖ = Σᵢ ȳᵢ ∂h/∂rₖ + Σ_{m>k} r̄ₘ Σᵢ redₘ′(i) ∂fₘ/∂rₖ`,
//!
//! and those of the inputs `x̄ᵢ = ȳᵢ ∂h/∂xᵢ + Σₖ r̄ₖ redₖ′(i) ∂fₖ/∂xᵢ`, where `red′` is 1 for a sum, the share of a winner for
//! max and min, the product of the others for a product. All sums over `i` that the first formula needs are gathered in one
//! pass; every partial derivative comes from the body at dual numbers, in one direction at a time.

use std::cell::Cell;

use super::Reduction;
use super::body::{Body, Computed, MOST_REDUCTIONS, Operand, Wrong};
use super::gathered::{Gathered, LANES};
use super::lane::Lane;
use super::pass::{Arguments, Found, Met, Pass, ahead, blocks, gather, nothing, passes, put};
use super::scope::{Scope, Structure, scope};
use crate::dual::Dual;
use crate::simd::clones;
use crate::stream::fence;

/// What the gradient of a row body gets besides the inputs, and what it gives.
#[derive(Clone, Copy, Debug)]
pub struct Cotangents<T, const I: usize, const O: usize> {
    /// Those of the outputs.
    pub outputs: [Operand<*const T>; O],
    /// Those of the inputs, to be written; null where none is wanted.
    pub inputs: [Operand<*mut T>; I],
    /// Which of these all rows share, so that they are added up.
    pub shared: [bool; I],
}

/// Sums for the adjoints: `Σ ȳ ∂h/∂rₖ` for each `k`, then the number of winners of each, then `Σ red′ₘ ∂fₘ/∂rₖ` for each
/// pair.
const SUMS: usize = 2 * MOST_REDUCTIONS + MOST_REDUCTIONS * (MOST_REDUCTIONS - 1) / 2;
const WINNERS: usize = MOST_REDUCTIONS;

/// The place of the sum for a pair `k < m`.
const fn pair(m: usize, k: usize) -> usize {
    2 * MOST_REDUCTIONS + m * (m - 1) / 2 + k
}

/// The sums that a structure needs.
fn sums(structure: &Structure) -> [Option<Reduction>; SUMS] {
    let mut sums = [None; SUMS];
    for k in 0..structure.reductions {
        sums[k] = Some(Reduction::Sum);
        sums[WINNERS + k] = extreme(structure.kinds[k].0).then_some(Reduction::Sum);
        for m in k + 1..structure.reductions {
            sums[pair(m, k)] = (structure.kinds[m].1 > structure.kinds[k].1).then_some(Reduction::Sum);
        }
    }
    sums
}

/// One evaluation of the body at dual numbers.
struct Slopes<T, const O: usize> {
    /// The derivatives of the outputs, where they aren't known to be 0.
    outputs: [Option<T>; O],
    /// Those of the reductions' arguments.
    tangents: [Option<T>; MOST_REDUCTIONS],
    met: Met<T>,
}

/// A body at dual numbers.
struct InRow<'a, T, B, const I: usize, const X: usize, const O: usize> {
    body: &'a B,
    arguments: &'a Arguments<T, I, X>,
    cotangents: &'a [*const T; O],
    /// Those of the next row.
    next: &'a [*const T; O],
    known: &'a [T; MOST_REDUCTIONS],
    kept: *mut T,
    running: *mut T,
    /// The adjoints of what running sums add up: a row for each reduction.
    carried: *mut T,
}

impl<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> InRow<'_, T, B, I, X, O> {
    /// The body in pass `P` where the reduction `direction` varies, or the input `wrt`.
    ///
    /// # Safety
    /// The position is in the row, or the row is empty.
    #[inline(always)]
    unsafe fn at<const P: usize>(&self, position: usize, direction: usize, wrt: usize) -> Slopes<T, O> {
        let n = self.arguments.n;
        let (kept, running) = (self.kept.wrapping_add(position), self.running.wrapping_add(position));
        scope!(scope: T, known self.known, kept kept, running running, direction direction, position position, count n);
        // SAFETY: by contract.
        let x = unsafe { self.arguments.element(&B::ALONG, position) };
        let mut inputs = [Dual::constant_of(Lane::<T, P>::outside(T::ZERO)); I];
        for i in 0..I {
            let value = Lane::new(x[i], B::ALONG[i], &scope);
            inputs[i] = if i == wrt { Dual::variable(value) } else { Dual::constant_of(value) };
        }
        let results = self.body.eval(inputs, self.arguments.at);
        let mut slopes =
            Slopes { outputs: [None; O], tangents: [None; MOST_REDUCTIONS], met: scope.met(B::REDUCTIONS) };
        for k in 0..O {
            slopes.outputs[k] = results[k].tangent.known();
        }
        for k in 0..B::REDUCTIONS {
            slopes.tangents[k] = scope.tangent[k].get();
        }
        slopes
    }

    /// `Σ ȳ ∂h` over the outputs that do (or do not) go along the row, where it isn't known to be 0.
    ///
    /// # Safety
    /// As for [`InRow::at`].
    #[inline(always)]
    unsafe fn pulled(&self, slopes: &Slopes<T, O>, position: usize, along: bool) -> Option<T> {
        let mut sum = None;
        for k in 0..O {
            if let (Some(slope), true) = (slopes.outputs[k], B::GIVES[k] == along) {
                // SAFETY: by contract.
                let cotangent = unsafe { *self.cotangents[k].add(if along { position } else { 0 }) };
                sum = added(sum, cotangent * slope);
            }
        }
        sum
    }

    /// The sums for the adjoints, over a block.
    ///
    /// # Safety
    /// The positions are in the row.
    #[inline(always)]
    unsafe fn adjoin<const P: usize>(&self, start: usize, len: usize, lanes: &mut [[T; LANES]; SUMS]) {
        for j in 0..len {
            directions!(B, B::REDUCTIONS, k => {
                // SAFETY: by contract; `len` is at most LANES, which the compiler doesn't see.
                unsafe {
                    let slopes = self.at::<P>(start + j, k, usize::MAX);
                    if let Some(part) = self.pulled(&slopes, start + j, true) {
                        *lanes[k].get_unchecked_mut(j) += part;
                    }
                    if extreme(slopes.met.kinds[k].0) {
                        *lanes[WINNERS + k].get_unchecked_mut(j) += self.share(&slopes, k);
                    }
                    for m in k + 1..B::REDUCTIONS {
                        if let Some(tangent) = slopes.tangents[m] {
                            *lanes[pair(m, k)].get_unchecked_mut(j) += self.share(&slopes, m) * tangent;
                        }
                    }
                }
            });
        }
    }

    /// What a change of a reduction's argument here changes the reduction by; of winners as if there were one.
    #[inline(always)]
    fn share(&self, slopes: &Slopes<T, O>, k: usize) -> T {
        let (argument, result) = (slopes.met.arguments[k], self.known[k]);
        match slopes.met.kinds[k].0 {
            Reduction::Sum | Reduction::Cumsum | Reduction::ReverseCumsum => T::one(),
            Reduction::Prod => result / argument,
            Reduction::Max | Reduction::Min => T::select(argument.equal(result), T::one(), T::ZERO),
        }
    }

    /// The adjoint of a reduction's argument here.
    ///
    /// # Safety
    /// As for [`InRow::at`].
    #[inline(always)]
    unsafe fn adjoint(&self, slopes: &Slopes<T, O>, k: usize, position: usize, adjoints: &[T; MOST_REDUCTIONS]) -> T {
        match B::RUNS && slopes.met.kinds[k].0.is_running() {
            // SAFETY: by contract.
            true => unsafe { *self.carried.add(k * self.arguments.n + position) },
            false => adjoints[k] * self.share(slopes, k),
        }
    }

    /// What an input's cotangent is here, but for outputs of one number for each row.
    ///
    /// # Safety
    /// The position is in the row.
    #[inline(always)]
    unsafe fn pull<const P: usize>(&self, position: usize, wrt: usize, adjoints: &[T; MOST_REDUCTIONS]) -> T {
        // SAFETY: by contract.
        let slopes = unsafe { self.at::<P>(position, usize::MAX, wrt) };
        // SAFETY: as above.
        let mut sum = unsafe { self.pulled(&slopes, position, true) };
        for k in 0..B::REDUCTIONS {
            if let Some(tangent) = slopes.tangents[k] {
                // SAFETY: as above.
                sum = added(sum, unsafe { self.adjoint(&slopes, k, position, adjoints) } * tangent);
            }
        }
        sum.unwrap_or(T::ZERO)
    }
}

impl<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> Pass<T>
    for InRow<'_, T, B, I, X, O>
{
    const REDUCTIONS: usize = B::REDUCTIONS;
    const RUNS: bool = B::RUNS;

    #[inline(always)]
    fn len(&self) -> usize {
        self.arguments.n
    }

    #[inline(always)]
    unsafe fn meet<const P: usize>(&self, position: usize) -> Met<T> {
        // SAFETY: by contract.
        unsafe { self.at::<P>(position, usize::MAX, usize::MAX) }.met
    }
}

/// A sum that may not have begun: nothing is added to a 0 that only stands for no number.
#[inline(always)]
fn added<T: Computed>(sum: Option<T>, part: T) -> Option<T> {
    Some(match sum {
        Some(sum) => sum + part,
        None => part,
    })
}

#[inline(always)]
fn extreme(reduction: Reduction) -> bool {
    matches!(reduction, Reduction::Max | Reduction::Min)
}

/// Runs `$do` with `$k` as each number below the bound: as a constant, so that the loops over a row know what varies in them. A
/// body that may have any number of passes has one loop for all directions, as these would be many.
macro_rules! directions {
    ($body:ty, $bound:expr, $k:ident => $do:expr) => {{
        macro_rules! direction {
            ($number:literal) => {
                if $number < $bound {
                    let $k: usize = $number;
                    $do
                }
            };
        }
        if <$body>::LEVELS.0 == <$body>::LEVELS.1 {
            direction!(0);
            direction!(1);
            direction!(2);
            direction!(3);
            direction!(4);
            direction!(5);
            direction!(6);
            direction!(7);
        } else {
            for $k in 0..$bound {
                $do
            }
        }
    }};
}
use directions;

/// The adjoints of all reductions, once all of them are known.
///
/// # Safety
/// The arguments are those of a row.
#[inline(always)]
unsafe fn adjoints<T: Computed, B: Body<I, X, O>, const P: usize, const I: usize, const X: usize, const O: usize>(
    row: &InRow<'_, T, B, I, X, O>,
    structure: &Structure,
    kinds: &[Option<Reduction>; SUMS],
    gathered: &mut Gathered<T, SUMS>,
) -> [T; MOST_REDUCTIONS] {
    let (n, reductions) = (row.arguments.n, structure.reductions);
    gathered.begin(kinds, n);
    blocks!(n, start, len => {
        // SAFETY: by contract.
        unsafe { row.adjoin::<P>(start, len, &mut gathered.lanes) };
        gathered.block(kinds);
    });
    let sums = gathered.finish(kinds);
    let mut adjoints = [T::ZERO; MOST_REDUCTIONS];
    // Outputs of one number for each row depend on reductions, at no position in particular.
    directions!(B, B::REDUCTIONS, k => {
        // SAFETY: as above; an empty row has a place for what is kept.
        unsafe {
            let slopes = row.at::<P>(0, k, usize::MAX);
            adjoints[k] = row.pulled(&slopes, 0, false).map_or(sums[k], |part| sums[k] + part);
        }
    });
    for k in (0..reductions).rev() {
        for m in k + 1..reductions {
            adjoints[k] += adjoints[m].chain(sums[pair(m, k)]);
        }
        if extreme(structure.kinds[k].0) {
            let winners = sums[WINNERS + k];
            adjoints[k] = T::select(winners.equal(T::ZERO), T::ZERO, adjoints[k] / winners);
        }
    }
    adjoints
}

/// The same where some of them are running: from the last to the first, each in a pass of its own, as the adjoints of what a
/// running sum adds up are running sums in the other direction.
///
/// # Safety
/// As for [`adjoints`].
#[inline(always)]
unsafe fn adjoints_in_turn<
    T: Computed,
    B: Body<I, X, O>,
    const P: usize,
    const I: usize,
    const X: usize,
    const O: usize,
>(
    row: &InRow<'_, T, B, I, X, O>,
    structure: &Structure,
    gathered: &mut Gathered<T, SUMS>,
) -> [T; MOST_REDUCTIONS] {
    let (n, mut adjoints) = (row.arguments.n, [T::ZERO; MOST_REDUCTIONS]);
    directions!(B, B::REDUCTIONS, backwards => {
        let k = B::REDUCTIONS - 1 - backwards;
        let kind = structure.kinds[k].0;
        let mut kinds = [None; SUMS];
        if !kind.is_running() {
            (kinds[0], kinds[1]) = (Some(Reduction::Sum), extreme(kind).then_some(Reduction::Sum));
        }
        gathered.begin(&kinds, n);
        blocks!(n, start, len => {
            for j in 0..len {
                // SAFETY: by contract; `len` is at most LANES.
                unsafe {
                    let slopes = row.at::<P>(start + j, k, usize::MAX);
                    let mut part = row.pulled(&slopes, start + j, true);
                    for m in k + 1..B::REDUCTIONS {
                        if let Some(tangent) = slopes.tangents[m] {
                            part = added(part, row.adjoint(&slopes, m, start + j, &adjoints) * tangent);
                        }
                    }
                    let (lane, part) = (gathered.lanes[0].get_unchecked_mut(j), part.unwrap_or(T::ZERO));
                    *lane = if kind.is_running() { part } else { *lane + part };
                    if extreme(kind) {
                        *gathered.lanes[1].get_unchecked_mut(j) += row.share(&slopes, k);
                    }
                }
            }
            if kind.is_running() {
                // SAFETY: there is a row for each reduction.
                unsafe { put(&gathered.lanes[0], row.carried.add(k * n + start), len, false) };
            }
            gathered.block(&kinds);
        });
        if kind.is_running() {
            let other = if kind == Reduction::Cumsum { Reduction::ReverseCumsum } else { Reduction::Cumsum };
            // SAFETY: as above.
            other.accumulate(unsafe { std::slice::from_raw_parts_mut(row.carried.add(k * n), n) });
        } else {
            let sums = gathered.finish(&kinds);
            // SAFETY: as above; an empty row has a place for what is kept.
            let part = unsafe { row.pulled(&row.at::<P>(0, k, usize::MAX), 0, false) };
            adjoints[k] = part.map_or(sums[0], |part| sums[0] + part);
            if extreme(kind) {
                adjoints[k] = T::select(sums[1].equal(T::ZERO), T::ZERO, adjoints[k] / sums[1]);
            }
        }
    });
    adjoints
}

/// Writes the cotangents of the inputs: block by block, so that no store can be taken for one to what is read.
///
/// # Safety
/// The arguments are those of a row, and `places` are the inputs' cotangents, or null.
#[inline(always)]
unsafe fn give<T: Computed, B: Body<I, X, O>, const P: usize, const I: usize, const X: usize, const O: usize>(
    row: &InRow<'_, T, B, I, X, O>,
    adjoints: &[T; MOST_REDUCTIONS],
    places: &[*mut T; I],
    shared: &[bool; I],
    large: &[bool; I],
    gathered: &mut Gathered<T, I>,
) {
    let (n, kinds) = (row.arguments.n, B::ALONG.map(|along| (!along).then_some(Reduction::Sum)));
    gathered.begin(&kinds, n);
    blocks!(n, start, len => {
        row.arguments.ahead(&B::ALONG, start, len);
        ahead(&B::GIVES, row.cotangents, row.next, start, len);
        for j in 0..len {
            directions!(B, I, q => {
                // SAFETY: by contract.
                let here = unsafe { row.pull::<P>(start + j, q, adjoints) };
                // SAFETY: `len` is at most LANES.
                let lane = unsafe { gathered.lanes[q].get_unchecked_mut(j) };
                *lane = if B::ALONG[q] { here } else { *lane + here };
            });
        }
        for q in 0..I {
            if B::ALONG[q] && !places[q].is_null() {
                let place = places[q].wrapping_add(start);
                if shared[q] {
                    for j in 0..len {
                        // SAFETY: by contract.
                        unsafe { *gathered.lanes[q].get_unchecked_mut(j) += *place.add(j) };
                    }
                }
                // SAFETY: by contract.
                unsafe { put(&gathered.lanes[q], place, len, large[q]) };
            }
        }
        gathered.block(&kinds);
    });
    let sums = gathered.finish(&kinds);
    directions!(B, I, q => {
        if !B::ALONG[q] && !places[q].is_null() {
            // SAFETY: as above.
            let (slopes, place) = unsafe { (row.at::<P>(0, usize::MAX, q), &mut *places[q]) };
            // SAFETY: as above.
            let here = unsafe { row.pulled(&slopes, 0, false) }.map_or(sums[q], |part| sums[q] + part);
            *place = if shared[q] { *place + here } else { here };
        }
    });
}

clones! {
    <[T, B, const I: usize, const X: usize, const O: usize]>
    fn run(
        computes: &B,
        n: usize,
        rows: usize,
        cotangents: &Cotangents<T, I, O>,
        inputs: &[Operand<*const T>; I],
        at: &[Operand<*const i64>; X],
    ) -> Result<(), Wrong>
    where [T: Computed, B: Body<I, X, O>] if [T::VECTORIZE] {
        let structure = Structure::of_dual::<T, B, I, X, O>(computes)?;
        let (mut found, kinds, mut gathered) = (Found::new(&structure, n), sums(&structure), Gathered::new());
        let (mut given_back, mut carried) = (Gathered::new(), structure.rows_of_sums::<T>(n));
        let nothing = nothing(n, inputs);
        let mut large = [false; I];
        for q in 0..I {
            large[q] = cotangents.inputs[q].is_large && !cotangents.shared[q];
        }
        for row in 0..rows {
            // SAFETY: `vjp` was promised these rows.
            let arguments = unsafe { Arguments::of(n, row, inputs, at, &B::ALONG, &nothing)? };
            let (mut given, mut next) = ([std::ptr::null(); O], [std::ptr::null(); O]);
            for k in 0..O {
                given[k] = cotangents.outputs[k].row(row);
                next[k] = cotangents.outputs[k].row(row + 1);
            }
            passes!(B, P => {
                let (known, kept, running) = (found.known, found.kept.as_mut_ptr(), found.running.as_mut_ptr());
                let carried = carried.as_mut_ptr();
                let here = InRow {
                    body: computes, arguments: &arguments, cotangents: &given, next: &next, known: &known, kept,
                    running, carried,
                };
                if P < B::LEVELS.1 && P < structure.levels {
                    gather::<T, _, P>(&here, &structure, &mut found);
                } else if P >= B::LEVELS.0 && P == structure.levels {
                    // SAFETY: as above; in the last pass all that is kept is known.
                    unsafe {
                        let adjoints = match B::RUNS {
                            true => adjoints_in_turn::<T, B, P, I, X, O>(&here, &structure, &mut gathered),
                            false => adjoints::<T, B, P, I, X, O>(&here, &structure, &kinds, &mut gathered),
                        };
                        let mut places = [std::ptr::null_mut(); I];
                        for q in 0..I {
                            if !cotangents.inputs[q].data.is_null() {
                                places[q] = cotangents.inputs[q].row(row);
                            }
                        }
                        // What is kept is complete since the adjoints' pass, if there is any reduction.
                        if B::LEVELS.1 > 0 && structure.reductions > 0 {
                            give::<T, B, { P + 1 }, I, X, O>(&here, &adjoints, &places, &cotangents.shared, &large, &mut given_back);
                        } else if B::LEVELS.0 == 0 {
                            give::<T, B, P, I, X, O>(&here, &adjoints, &places, &cotangents.shared, &large, &mut given_back);
                        }
                    }
                }
            });
        }
        if large.contains(&true) {
            fence();
        }
        Ok(())
    }
}

/// Computes the vector-Jacobian products of `rows` rows of `n` elements.
///
/// # Safety
/// As for [`forward`](super::forward()); the outputs are the inputs' cotangents.
pub unsafe fn vjp<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
    body: &B,
    n: usize,
    rows: usize,
    cotangents: &Cotangents<T, I, O>,
    inputs: &[Operand<*const T>; I],
    at: &[Operand<*const i64>; X],
) -> Result<(), Wrong> {
    const { assert!(I <= MOST_REDUCTIONS) };
    run(body, n, rows, cotangents, inputs, at)
}
