//! Four floats in an array, which the compiler vectorizes for any CPU. Products and sums are rounded separately,
//! because fused products are slow on CPUs without the instruction.

use super::{Register, Task};
use crate::number::Cast;
use crate::number::scalar::{Float, Machine};

const LANES: usize = 4;

/// Four floats.
#[derive(Clone, Copy)]
pub(crate) struct Portable<T>([T; LANES]);

impl<T: Float + Machine + Cast<T>> Portable<T> {
    #[inline(always)]
    fn from_fn(lane: impl FnMut(usize) -> T) -> Self {
        Portable(std::array::from_fn(lane))
    }
}

impl<T: Float + Machine + Cast<T>> Register for Portable<T> {
    type Element = T;
    const LANES: usize = LANES;
    const ROWS: usize = 4;
    const WIDTH: usize = 2;

    #[inline(never)]
    unsafe fn run<J: Task>(task: J) -> J::Output {
        // SAFETY: by contract.
        unsafe { task.run() }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self::from_fn(|_| T::zero())
    }

    #[inline(always)]
    unsafe fn splat(from: *const T) -> Self {
        // SAFETY: by contract.
        Self::from_fn(|_| unsafe { *from })
    }

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: by contract.
        Self::from_fn(|lane| unsafe { *from.add(lane) })
    }

    #[inline(always)]
    unsafe fn load_part(from: *const T, n: usize) -> Self {
        // SAFETY: by contract.
        Self::from_fn(|lane| if lane < n { unsafe { *from.add(lane) } } else { T::zero() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: by contract.
        unsafe { to.copy_from_nonoverlapping(self.0.as_ptr(), LANES) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut T, n: usize) {
        // SAFETY: by contract.
        unsafe { to.copy_from_nonoverlapping(self.0.as_ptr(), n) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        Self::from_fn(|lane| self.0[lane] + other.0[lane])
    }

    #[inline(always)]
    unsafe fn plus_product(self, x: Self, y: Self) -> Self {
        Self::from_fn(|lane| self.0[lane] + x.0[lane] * y.0[lane])
    }

    #[inline(always)]
    unsafe fn transpose(from: *const T, from_step: isize, to: *mut T, to_step: usize) {
        for row in 0..LANES {
            for column in 0..LANES {
                // SAFETY: by contract.
                unsafe { *to.add(column * to_step + row) = *from.offset(row as isize * from_step).add(column) };
            }
        }
    }
}
