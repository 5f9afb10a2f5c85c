//! The passes that compute rows.

use std::cell::Cell;

use super::Reduction;
use super::lane::Lane;
use super::pass::{
    Body, Computed, Gathered, LANES, MOST_LEVELS, MOST_REDUCTIONS, Operand, Outside, Scope, Structure, Wrong, scope,
};
use crate::simd::clones;

/// Runs `$do` for the blocks of a row, `$len` elements from `$start` on, at most [`LANES`].
macro_rules! blocks {
    ($n:expr, $start:ident, $len:ident => $do:expr) => {{
        let mut $start = 0;
        while $start < $n {
            let $len = if $start + LANES <= $n { LANES } else { $n - $start };
            $do
            $start += LANES;
        }
    }};
}
pub(super) use blocks;

/// The arguments of one row.
pub(super) struct Arguments<T, const I: usize, const X: usize> {
    pub n: usize,
    pub inputs: [*const T; I],
    pub at: [i64; X],
}

impl<T: Computed, const I: usize, const X: usize> Arguments<T, I, X> {
    /// # Safety
    /// All operands have that row, of `n` elements where they go along.
    #[inline(always)]
    pub unsafe fn of(
        n: usize,
        row: usize,
        inputs: &[Operand<*const T>; I],
        at: &[Operand<*const i64>; X],
    ) -> Result<Self, Wrong> {
        let mut arguments = Arguments { n, inputs: [std::ptr::null(); I], at: [0; X] };
        for i in 0..I {
            arguments.inputs[i] = inputs[i].row(row);
        }
        for x in 0..X {
            // SAFETY: the caller's promise.
            let index = unsafe { *at[x].row(row) };
            if index < 0 || index as usize >= n {
                return Err(Wrong::Outside(Outside { argument: x, index, len: n }));
            }
            arguments.at[x] = index;
        }
        Ok(arguments)
    }

    /// The inputs' elements at a position. An absent input is null, and an empty row has none: these are 0.
    ///
    /// # Safety
    /// The position is in the row, or the row is empty.
    #[inline(always)]
    pub unsafe fn element(&self, along: &[bool; I], position: usize) -> [T; I] {
        let mut x = [T::ZERO; I];
        for i in 0..I {
            if !self.inputs[i].is_null() && (!along[i] || self.n > 0) {
                // SAFETY: by contract.
                x[i] = unsafe { *self.inputs[i].add(if along[i] { position } else { 0 }) };
            }
        }
        x
    }
}

/// Reductions and dear functions that were found for a row so far.
pub(super) struct Found<T> {
    pub known: [T; MOST_REDUCTIONS],
    /// A row for each dear function.
    pub kept: Vec<T>,
    pub gathered: Gathered<T, MOST_REDUCTIONS>,
}

impl<T: Computed> Found<T> {
    pub fn new(structure: &Structure, n: usize) -> Self {
        // What is kept is written before it is read: it need not be zeros, but they cost nothing.
        let kept = vec![T::ZERO; structure.kept * n.max(1)];
        Found { known: [T::ZERO; MOST_REDUCTIONS], kept, gathered: Gathered::new() }
    }

    /// What was gathered is known.
    #[inline(always)]
    pub fn learn(&mut self, kinds: &[Option<Reduction>; MOST_REDUCTIONS]) {
        let results = self.gathered.finish(kinds);
        for k in 0..MOST_REDUCTIONS {
            if kinds[k].is_some() {
                self.known[k] = results[k];
            }
        }
    }
}

/// Gathers the reductions of pass `P` over a block.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn block<T: Computed, B: Body<I, X, O>, const P: usize, const I: usize, const X: usize, const O: usize>(
    body: &B,
    arguments: &Arguments<T, I, X>,
    start: usize,
    known: &[T; MOST_REDUCTIONS],
    kept: *mut T,
    lanes: &mut [[T; LANES]; MOST_REDUCTIONS],
    len: usize,
) {
    let n = arguments.n;
    for j in 0..len {
        let position = start + j;
        scope!(scope: T, known known, kept kept.wrapping_add(position), direction usize::MAX, position position, count n);
        // SAFETY: the position is in the row.
        let x = unsafe { arguments.element(&B::ALONG, position) };
        let mut inputs = [Lane::<T, P>::outside(T::ZERO); I];
        for i in 0..I {
            inputs[i] = Lane::new(x[i], B::ALONG[i], &scope);
        }
        let _ = body.eval(inputs, arguments.at);
        for k in 0..B::REDUCTIONS {
            let (reduction, level) = scope.kind[k].get();
            if level == P {
                // SAFETY: `len` is at most LANES, which the compiler doesn't see.
                let lane = unsafe { lanes[k].get_unchecked_mut(j) };
                *lane = reduction.combine(*lane, scope.argument[k].get());
            }
        }
    }
}

/// All reductions of pass `P`.
///
/// # Safety
/// The arguments have a row of `n` elements.
#[inline(always)]
unsafe fn gather<T: Computed, B: Body<I, X, O>, const P: usize, const I: usize, const X: usize, const O: usize>(
    body: &B,
    arguments: &Arguments<T, I, X>,
    structure: &Structure,
    found: &mut Found<T>,
) {
    let (n, kinds) = (arguments.n, structure.of_pass(P));
    // Copied: beside the lanes in memory, it could be taken for something that changes with them.
    let known = found.known;
    let Found { kept, gathered, .. } = found;
    gathered.begin(&kinds, n);
    blocks!(n, start, len => {
        // SAFETY: by contract.
        unsafe { block::<T, B, P, I, X, O>(body, arguments, start, &known, kept.as_mut_ptr(), &mut gathered.lanes, len) };
        gathered.block(&kinds);
    });
    found.learn(&kinds);
}

/// The outputs, in the pass after the last reduction: block by block, so that no store can be taken for one to what is read.
///
/// # Safety
/// The arguments have a row of `n` elements, and the outputs room for one.
#[inline(always)]
unsafe fn write<T: Computed, B: Body<I, X, O>, const P: usize, const I: usize, const X: usize, const O: usize>(
    body: &B,
    arguments: &Arguments<T, I, X>,
    found: &Found<T>,
    outputs: &[*mut T; O],
) {
    let (known, kept) = (&found.known, found.kept.as_ptr().cast_mut());
    let mut lanes = [[T::ZERO; LANES]; O];
    if B::GIVES.contains(&true) {
        blocks!(arguments.n, start, len => {
            for j in 0..len {
                // SAFETY: by contract.
                let results = unsafe { element::<T, B, P, I, X, O>(body, arguments, known, kept, start + j) };
                for k in 0..O {
                    // SAFETY: as above, and `len` is at most LANES, which the compiler doesn't see.
                    unsafe { *lanes[k].get_unchecked_mut(j) = results[k] };
                }
            }
            for k in 0..O {
                if B::GIVES[k] {
                    // SAFETY: by contract.
                    unsafe { put(&lanes[k], outputs[k].wrapping_add(start), len) };
                }
            }
        });
    }
    // SAFETY: by contract.
    let results = unsafe { element::<T, B, P, I, X, O>(body, arguments, known, kept, 0) };
    for k in 0..O {
        if !B::GIVES[k] {
            // SAFETY: by contract.
            unsafe { *outputs[k] = results[k] };
        }
    }
}

/// The outputs at one position.
///
/// # Safety
/// The position is in the row, or the row is empty.
#[inline(always)]
unsafe fn element<T: Computed, B: Body<I, X, O>, const P: usize, const I: usize, const X: usize, const O: usize>(
    body: &B,
    arguments: &Arguments<T, I, X>,
    known: &[T; MOST_REDUCTIONS],
    kept: *mut T,
    position: usize,
) -> [T; O] {
    scope!(scope: T, known known, kept kept.wrapping_add(position), direction usize::MAX, position position, count arguments.n);
    // SAFETY: by contract.
    let x = unsafe { arguments.element(&B::ALONG, position) };
    let mut inputs = [Lane::<T, P>::outside(T::ZERO); I];
    for i in 0..I {
        inputs[i] = Lane::new(x[i], B::ALONG[i], &scope);
    }
    let results = body.eval(inputs, arguments.at);
    let mut values = [T::ZERO; O];
    for k in 0..O {
        values[k] = results[k].value();
    }
    values
}

/// Copies a block to memory.
///
/// # Safety
/// There is room for `len` elements.
#[inline(always)]
pub(super) unsafe fn put<T: Copy>(lanes: &[T; LANES], place: *mut T, len: usize) {
    // SAFETY: by contract.
    unsafe {
        match len {
            LANES => *place.cast::<[T; LANES]>() = *lanes,
            _ => std::slice::from_raw_parts_mut(place, len).copy_from_slice(&lanes[..len]),
        }
    }
}

/// Runs `$do` with `$p` as the number of each pass that a body may have.
macro_rules! passes {
    ($body:ty, $p:ident => $do:expr) => {{
        macro_rules! pass {
            ($number:literal) => {
                if $number < <$body>::LEVELS.1 + 1 {
                    const $p: usize = $number;
                    $do
                }
            };
        }
        pass!(0);
        pass!(1);
        pass!(2);
        pass!(3);
        pass!(4);
    }};
}
pub(super) use passes;

clones! {
    <[T, B, const I: usize, const X: usize, const O: usize]>
    fn run(
        computes: &B,
        n: usize,
        rows: usize,
        inputs: &[Operand<*const T>; I],
        at: &[Operand<*const i64>; X],
        outputs: &[Operand<*mut T>; O],
    ) -> Result<(), Wrong>
    where [T: Computed, B: Body<I, X, O>] if [T::VECTORIZE] {
        let structure = Structure::of::<T, B, I, X, O>(computes)?;
        let mut found = Found::new(&structure, n);
        for row in 0..rows {
            // SAFETY: `forward` was promised these rows.
            let arguments = unsafe { Arguments::of(n, row, inputs, at)? };
            let mut places = [std::ptr::null_mut(); O];
            for k in 0..O {
                places[k] = outputs[k].row(row);
            }
            passes!(B, P => {
                // SAFETY: as above.
                unsafe {
                    if P < B::LEVELS.1 && P < structure.levels {
                        gather::<T, B, P, I, X, O>(computes, &arguments, &structure, &mut found);
                    } else if P >= B::LEVELS.0 && P == structure.levels {
                        write::<T, B, P, I, X, O>(computes, &arguments, &found, &places);
                    }
                }
            });
        }
        Ok(())
    }
}

/// Computes `rows` rows of `n` elements.
///
/// # Safety
/// Every operand has so many rows: of `n` elements where the body says that it goes along the row, of one elsewhere. An
/// absent input is null with a step of 0. Outputs overlap nothing.
pub unsafe fn forward<T: Computed, B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
    body: &B,
    n: usize,
    rows: usize,
    inputs: &[Operand<*const T>; I],
    at: &[Operand<*const i64>; X],
    outputs: &[Operand<*mut T>; O],
) -> Result<(), Wrong> {
    const { assert!(B::REDUCTIONS <= MOST_REDUCTIONS && MOST_LEVELS == 4) };
    run(body, n, rows, inputs, at, outputs)
}
