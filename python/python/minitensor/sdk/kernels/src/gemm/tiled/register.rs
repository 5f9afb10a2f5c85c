//! Registers of floats: what tiles and rows are computed in.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(not(target_arch = "aarch64"))]
mod portable;

#[cfg(not(target_arch = "aarch64"))]
pub(crate) use portable::Portable;

use crate::cast::Cast;
use crate::scalar::{Float, Machine};

/// Something that is computed in registers.
pub(crate) trait Task {
    /// What it returns.
    type Output;
    /// Computes it. Mark it `#[inline(always)]`, so that it is compiled for the instructions of [`Register::run`].
    ///
    /// # Safety
    /// As the type says; the CPU has the instructions of the register.
    unsafe fn run(self) -> Self::Output;
}

/// A register of floats.
///
/// # Safety
/// Of every function: the CPU has the instructions, and memory holds as many elements as are read or written.
pub(crate) trait Register: Copy {
    /// The type of its lanes.
    type Element: Float + Machine + Cast<Self::Element>;
    /// How many elements it holds.
    const LANES: usize;
    /// The rows of a tile, at most. The sums of a tile, a row of `b` and an element of `a` fill the registers of the CPU.
    const ROWS: usize;
    /// The registers in a row of a tile, at most.
    const WIDTH: usize;
    /// Runs a task in a function that is compiled for the register's instructions.
    unsafe fn run<T: Task>(task: T) -> T::Output;
    /// Zeros.
    unsafe fn zero() -> Self;
    /// One element in every lane.
    unsafe fn splat(from: *const Self::Element) -> Self;
    /// Loads neighbouring elements.
    unsafe fn load(from: *const Self::Element) -> Self;
    /// Loads `n` neighbouring elements; the other lanes are 0. `n` is at most [`LANES`](Register::LANES).
    unsafe fn load_part(from: *const Self::Element, n: usize) -> Self;
    /// Stores to neighbouring elements.
    unsafe fn store(self, to: *mut Self::Element);
    /// Stores the first `n` lanes. `n` is at most [`LANES`](Register::LANES).
    unsafe fn store_part(self, to: *mut Self::Element, n: usize);
    /// `self + other`.
    unsafe fn plus(self, other: Self) -> Self;
    /// `self + x · y`, rounded once.
    unsafe fn plus_product(self, x: Self, y: Self) -> Self;
    /// The sum of the lanes.
    #[inline(always)]
    unsafe fn sum(self) -> Self::Element {
        let mut lanes = [Self::Element::default(); 16];
        // SAFETY: no register has more lanes.
        unsafe { self.store(lanes.as_mut_ptr()) };
        lanes[..Self::LANES].iter().fold(Self::Element::default(), |sum, x| sum + *x)
    }
    /// Copies a square of as many rows as lanes, each `from_step` after the one before, as its columns.
    unsafe fn transpose(from: *const Self::Element, from_step: isize, to: *mut Self::Element, to_step: usize);
}

/// The functions of a [`Register`] that are one instruction each.
macro_rules! register {
    (
        $register:ty, $element:ty, $lanes:literal, tiles of $rows:literal by $width:literal, $features:literal,
        $zero:expr, $splat:expr, $load:ident $store:ident $add:ident $fma:ident
    ) => {
        type Element = $element;
        const LANES: usize = $lanes;
        const ROWS: usize = $rows;
        const WIDTH: usize = $width;

        #[target_feature(enable = $features)]
        unsafe fn run<T: Task>(task: T) -> T::Output {
            // SAFETY: by contract.
            unsafe { task.run() }
        }

        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: by contract.
            unsafe { ($zero)() }
        }

        #[inline(always)]
        unsafe fn splat(from: *const $element) -> Self {
            // SAFETY: by contract.
            unsafe { ($splat)(from) }
        }

        #[inline(always)]
        unsafe fn load(from: *const $element) -> Self {
            // SAFETY: by contract.
            unsafe { $load(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut $element) {
            // SAFETY: by contract.
            unsafe { $store(to, self) }
        }

        #[inline(always)]
        unsafe fn plus(self, other: Self) -> Self {
            // SAFETY: by contract.
            unsafe { $add(self, other) }
        }

        #[inline(always)]
        unsafe fn plus_product(self, x: Self, y: Self) -> Self {
            // SAFETY: by contract.
            unsafe { $fma(x, y, self) }
        }
    };
}
use register;
