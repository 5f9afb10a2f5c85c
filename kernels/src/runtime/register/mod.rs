//! Registers of floats, in which tiles and rows are computed.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod job;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod pairs;
#[cfg(not(target_arch = "aarch64"))]
mod portable;

pub(crate) use job::{Job, Tiled, in_registers};
#[cfg(target_arch = "x86_64")]
pub(crate) use pairs::Pairs;
#[cfg(not(target_arch = "aarch64"))]
pub(crate) use portable::Portable;

use crate::number::Cast;
use crate::number::scalar::{Float, Machine};

/// A computation in registers.
pub(crate) trait Task {
    /// The result.
    type Output;
    /// Runs the computation. Mark it `#[inline(always)]`, so that it is compiled for the instructions of
    /// [`Register::run`].
    ///
    /// # Safety
    /// As documented by the type; the CPU has the instructions of the register.
    unsafe fn run(self) -> Self::Output;
}

/// A register of floats.
///
/// # Safety
/// Of every function: the CPU has the instructions, and memory holds as many elements as are read or written.
pub(crate) trait Register: Copy {
    /// The type of its lanes.
    type Element: Float + Machine + Cast<Self::Element>;
    /// The number of elements in a register.
    const LANES: usize;
    /// The maximum number of rows in a tile. The sums of a tile, a row of `b` and an element of `a` fill the registers
    /// of the CPU.
    const ROWS: usize;
    /// The maximum number of registers in a row of a tile.
    const WIDTH: usize;
    /// Runs a task in a function that is compiled for the register's instructions.
    unsafe fn run<T: Task>(task: T) -> T::Output;
    /// Zeros.
    unsafe fn zero() -> Self;
    /// One element in every lane.
    unsafe fn splat(from: *const Self::Element) -> Self;
    /// Loads contiguous elements.
    unsafe fn load(from: *const Self::Element) -> Self;
    /// Loads `n` contiguous elements; the other lanes are 0. `n` is at most [`LANES`](Register::LANES).
    unsafe fn load_part(from: *const Self::Element, n: usize) -> Self;
    /// Stores to contiguous elements.
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
    /// The lanes of even index of `self`, then those of `other`.
    #[inline(always)]
    unsafe fn evens(self, other: Self) -> Self {
        let (mut lanes, mut evens) = ([Self::Element::default(); 32], [Self::Element::default(); 16]);
        // SAFETY: no register has more than 16 lanes.
        unsafe {
            self.store(lanes.as_mut_ptr());
            other.store(lanes.as_mut_ptr().add(Self::LANES));
            (0..Self::LANES).for_each(|i| evens[i] = lanes[2 * i]);
            Self::load(evens.as_ptr())
        }
    }
    /// The lanes of `self` and `other` in turn, in two registers.
    #[inline(always)]
    unsafe fn zip(self, other: Self) -> (Self, Self) {
        let (mut lanes, mut zipped) = ([[Self::Element::default(); 16]; 2], [Self::Element::default(); 32]);
        // SAFETY: no register has more than 16 lanes.
        unsafe {
            self.store(lanes[0].as_mut_ptr());
            other.store(lanes[1].as_mut_ptr());
            (0..2 * Self::LANES).for_each(|i| zipped[i] = lanes[i % 2][i / 2]);
            (Self::load(zipped.as_ptr()), Self::load(zipped.as_ptr().add(Self::LANES)))
        }
    }
    /// Transposes a square with as many rows as lanes: the rows are `from_step` apart, the columns are written
    /// `to_step` apart.
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
