//! [`Job`]: a computation in the registers of the current level.

use super::Register;
use crate::number::Cast;
use crate::number::scalar::{Float, Machine};
#[cfg(target_arch = "x86_64")]
use crate::runtime::simd::Level;
use crate::runtime::simd::level;

/// The float types that registers hold, with the registers of each level.
pub(crate) trait Tiled: Machine + Float + Cast<Self> {
    /// The registers of AVX-512.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Register<Element = Self>;
    /// The registers of AVX2.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Register<Element = Self>;
    /// The registers of every CPU of the target.
    type Baseline: Register<Element = Self>;
}

macro_rules! tiled {
    ($float:ty: $avx512:ident $avx2:ident $neon:ident) => {
        impl Tiled for $float {
            #[cfg(target_arch = "x86_64")]
            type Avx512 = std::arch::x86_64::$avx512;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = std::arch::x86_64::$avx2;
            #[cfg(target_arch = "aarch64")]
            type Baseline = std::arch::aarch64::$neon;
            #[cfg(not(target_arch = "aarch64"))]
            type Baseline = super::Portable<$float>;
        }
    };
}
tiled! { f32: __m512 __m256 float32x4_t }
tiled! { f64: __m512d __m256d float64x2_t }

/// A computation in the registers of the current [level](crate::runtime::simd::level).
pub(crate) trait Job<T> {
    /// The result.
    type Output;
    /// Runs the computation.
    ///
    /// # Safety
    /// As documented by the type; the CPU has the instructions of `R`.
    unsafe fn run<R: Register<Element = T>>(self) -> Self::Output;
}

/// Runs a job.
///
/// # Safety
/// As for its [`Job::run`].
pub(crate) unsafe fn in_registers<T: Tiled, J: Job<T>>(job: J) -> J::Output {
    // SAFETY: the caller's contract, and a level is current only if the CPU supports it.
    unsafe {
        match level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => job.run::<T::Avx512>(),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => job.run::<T::Avx2>(),
            _ => job.run::<T::Baseline>(),
        }
    }
}
