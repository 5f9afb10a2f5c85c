//! Elementwise loops: run an element body over contiguous memory.

use std::mem::MaybeUninit;

use crate::number::scalar::Machine;
use crate::runtime::simd::clones;

/// One step of an elementwise loop: an element body with its types and attributes.
pub trait Map: Sync {
    /// One element of every input, as a tuple.
    type In: Load;
    /// One element of every output, as a tuple.
    type Out: Store;
    /// True if the loop is compiled for every SIMD level.
    const VECTORIZE: bool = <Self::In as Load>::VECTORIZE;
    /// The body. Mark it `#[inline(always)]`: it is inlined into every loop that [`map`] compiles to.
    fn eval(&self, x: Self::In) -> Self::Out;
}

/// Tuples of up to 12 machine numbers, loaded one from each input.
pub trait Load: Copy {
    /// The size in bytes of an element of each input.
    const SIZES: &'static [usize];
    /// True if at least one of the types requests a loop for every SIMD level.
    const VECTORIZE: bool;
    /// The typed start pointers of the inputs.
    type Pointers: Copy;
    /// Casts the pointers to their types.
    fn pointers(ins: &[*const u8]) -> Self::Pointers;
    /// The `i`-th element of every input.
    ///
    /// # Safety
    /// Every pointer must be valid for reading `i + 1` elements.
    unsafe fn load(pointers: Self::Pointers, i: usize) -> Self;
}

/// Tuples of 1 to 8 machine numbers, stored one to each output.
pub trait Store: Sized {
    /// The size in bytes of an element of each output.
    const SIZES: &'static [usize];
    /// Fills `n` elements of every output from the inputs.
    ///
    /// # Safety
    /// As for [`map`], and no input may overlap an output.
    unsafe fn run<M: Map<Out = Self>>(m: &M, n: usize, ins: <M::In as Load>::Pointers, outs: &[*mut u8]);
}

/// Runs `m` over `n` elements, at the current [level](crate::runtime::simd::level).
///
/// # Safety
/// `ins[k]` and `outs[k]` must point to `n` contiguous, initialized, aligned elements of the k-th type of `In` and
/// `Out`. An output may be the same memory as an input with elements of the same size (in place). Otherwise, outputs
/// must overlap neither inputs nor each other.
#[inline]
pub unsafe fn map<M: Map>(m: &M, n: usize, ins: &[*const u8], outs: &[*mut u8]) {
    debug_assert_eq!(ins.len(), M::In::SIZES.len(), "inputs of a map");
    debug_assert_eq!(outs.len(), M::Out::SIZES.len(), "outputs of a map");
    let in_place = in_place(ins, outs);
    // SAFETY: the caller's contract; the inputs passed to `run` don't overlap the outputs.
    let run = |n, ins: &[_], outs: &[_]| unsafe { M::Out::run(m, n, M::In::pointers(ins), outs) };
    // SAFETY: the caller's contract.
    unsafe {
        match in_place {
            _ if n == 0 => {}
            0 => run(n, ins, outs),
            1 | 2 => in_blocks::<2>(&run, n, ins, outs, M::In::SIZES, M::Out::SIZES),
            _ => in_blocks::<12>(&run, n, ins, outs, M::In::SIZES, M::Out::SIZES),
        }
    }
}

/// The number of inputs that are also outputs.
fn in_place(ins: &[*const u8], outs: &[*mut u8]) -> usize {
    ins.iter().filter(|input| outs.contains(&input.cast_mut())).count()
}

/// The size in bytes of the block that is copied from one input.
const BLOCK: usize = 2048;

/// An aligned buffer for a block of one input.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Block(#[allow(dead_code)] [MaybeUninit<u8>; BLOCK]);

/// A loop over the given number of elements, from inputs to outputs.
type Run<'a> = &'a dyn Fn(usize, &[*const u8], &[*mut u8]);

/// Copies inputs that are also outputs, block by block, into buffers that fit the L1 cache. `N` is the most inputs of
/// this kind. The loop then may assume that nothing overlaps, which it needs in order to vectorize.
///
/// # Safety
/// As for [`map`], for elements of these sizes.
unsafe fn in_blocks<const N: usize>(
    run: Run<'_>,
    n: usize,
    ins: &[*const u8],
    outs: &[*mut u8],
    in_sizes: &[usize],
    out_sizes: &[usize],
) {
    let mut aside = [const { Block([MaybeUninit::uninit(); BLOCK]) }; N];
    let mut block_ins = [std::ptr::null(); 12];
    let mut block_outs = [std::ptr::null_mut(); 8];
    let widest = in_sizes.iter().copied().max().unwrap_or(1);
    let step = BLOCK / widest;
    for start in (0..n).step_by(step) {
        let length = step.min(n - start);
        let mut free = aside.iter_mut();
        for ((&input, size), block_in) in ins.iter().zip(in_sizes).zip(&mut block_ins) {
            // SAFETY: start < n.
            *block_in = unsafe { input.add(start * size) };
            if outs.contains(&input.cast_mut()) {
                let block = free.next().map_or(std::ptr::null_mut(), |block| (&raw mut *block).cast::<u8>());
                // SAFETY: there are as many blocks as inputs of this kind. `length` elements are within the input and,
                // by the choice of `step`, within a block.
                unsafe { block.copy_from_nonoverlapping(*block_in, length * size) };
                *block_in = block;
            }
        }
        for ((&output, size), block_out) in outs.iter().zip(out_sizes).zip(&mut block_outs) {
            // SAFETY: start < n.
            *block_out = unsafe { output.add(start * size) };
        }
        run(length, &block_ins[..ins.len()], &block_outs[..outs.len()]);
    }
}

macro_rules! load {
    ($($t:ident $k:tt),*) => {
        impl<$($t: Machine),*> Load for ($($t,)*) {
            const SIZES: &'static [usize] = &[$(size_of::<$t>()),*];
            const VECTORIZE: bool = $($t::VECTORIZE)||*;
            type Pointers = ($(*const $t::Stored,)*);
            #[inline(always)]
            fn pointers(ins: &[*const u8]) -> Self::Pointers {
                ($(ins[$k].cast::<$t::Stored>(),)*)
            }
            #[inline(always)]
            unsafe fn load(pointers: Self::Pointers, i: usize) -> Self {
                // SAFETY: the caller's contract.
                unsafe { ($($t::load(*pointers.$k.add(i)),)*) }
            }
        }
    };
}

macro_rules! store {
    ($($t:ident $k:tt $out:ident),*) => {
        impl<$($t: Machine),*> Store for ($($t,)*) {
            const SIZES: &'static [usize] = &[$(size_of::<$t>()),*];
            #[inline]
            unsafe fn run<F: Map<Out = Self>>(m: &F, n: usize, ins: <F::In as Load>::Pointers, outs: &[*mut u8]) {
                clones! {
                    <[F, $($t),*]> fn fill(m: &F, ins: <F::In as Load>::Pointers, n: usize, $($out: &mut [$t::Stored]),*)
                    where [F: Map<Out = ($($t,)*)>, $($t: Machine),*] if [F::VECTORIZE] {
                        $(let $out = &mut $out[..n];)*
                        for i in 0..n {
                            // SAFETY: the contract of `run`: the inputs have n elements.
                            let x = unsafe { F::In::load(ins, i) };
                            let y = m.eval(x);
                            $($out[i] = y.$k.store();)*
                        }
                    }
                }
                // SAFETY: the caller's contract; no other pointer accesses the outputs.
                unsafe { fill(m, ins, n, $(std::slice::from_raw_parts_mut(outs[$k].cast::<$t::Stored>(), n)),*) }
            }
        }
    };
}

/// `tuples!(macro; [a] [b] …)` calls `macro!(a)`, `macro!(a, b)`, …
macro_rules! tuples {
    ($callback:ident; $([$($item:tt)*])*) => {
        tuples!(@ $callback; []; $([$($item)*])*);
    };
    (@ $callback:ident; [$($seen:tt)*]; [$($item:tt)*] $($rest:tt)*) => {
        $callback!($($seen)* $($item)*);
        tuples!(@ $callback; [$($seen)* $($item)*,]; $($rest)*);
    };
    (@ $callback:ident; [$($seen:tt)*];) => {};
}

impl Load for () {
    const SIZES: &'static [usize] = &[];
    const VECTORIZE: bool = false;
    type Pointers = ();
    #[inline(always)]
    fn pointers(_ins: &[*const u8]) {}
    #[inline(always)]
    unsafe fn load(_pointers: (), _i: usize) {}
}

tuples!(load; [A 0] [B 1] [C 2] [D 3] [E 4] [G 5] [H 6] [I 7] [J 8] [K 9] [L 10] [N 11]);
tuples!(store; [A 0 a] [B 1 b] [C 2 c] [D 3 d] [E 4 e] [G 5 g] [H 6 h] [I 7 i_]);
