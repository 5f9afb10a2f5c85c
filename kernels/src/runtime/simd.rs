//! Loops that are compiled once per level of the instruction set, and the choice among them.
//!
//! A plain scalar loop vectorizes if its body is free of branches; `clones!` compiles it for each [`Level`]. Rust
//! neither reorders nor contracts floating-point arithmetic, so every level computes the same bits.

use std::sync::atomic::{AtomicU8, Ordering};

/// A level of the instruction set that loops are compiled for. Each level includes the lower ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// The instructions that every CPU of the target has: SSE2 on x86-64; NEON, including fused products, on aarch64.
    Baseline = 1,
    /// AVX2, FMA and F16C.
    Avx2 = 2,
    /// AVX-512 F, VL, DQ and BW.
    Avx512 = 3,
}

impl Level {
    /// Every level of the target, in ascending order.
    #[cfg(target_arch = "x86_64")]
    pub const ALL: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    /// Every level of the target, in ascending order.
    #[cfg(not(target_arch = "x86_64"))]
    pub const ALL: [Level; 1] = [Level::Baseline];

    /// The name of the level in `MINITENSOR_SIMD`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Baseline if cfg!(target_arch = "aarch64") => "neon",
            Level::Baseline => "baseline",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    fn from_name(name: &str) -> Result<Level, String> {
        Level::ALL.into_iter().find(|level| level.name() == name).ok_or_else(|| {
            let names = Level::ALL.map(Level::name).join(", ");
            format!(
                "the environment variable {VARIABLE} is {name:?}, which is not a SIMD level of this processor's \
                 architecture: set it to one of {names}, or unset it"
            )
        })
    }
}

/// The environment variable that names the level to use.
const VARIABLE: &str = "MINITENSOR_SIMD";

/// The number of the current level; 0 until it is chosen.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The current level. The first call chooses it, unless [`choose`] or [`set_level`] already did.
///
/// # Panics
/// If [`choose`] fails.
#[inline(always)]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Baseline,
        2 => Level::Avx2,
        3 => Level::Avx512,
        _ => first_level(),
    }
}

#[cold]
fn first_level() -> Level {
    choose().unwrap_or_else(|message| panic!("{message}"))
}

/// Sets the level to the one that the environment variable `MINITENSOR_SIMD` names, or to the highest that the CPU
/// supports if that is lower or if the variable is unset or empty. Returns the level.
///
/// # Errors
/// If the value of the variable is not the [name](Level::name) of a level of the target.
pub fn choose() -> Result<Level, String> {
    let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    let wanted = named.map(|name| Level::from_name(&name.to_string_lossy())).transpose()?;
    Ok(set_level(wanted.unwrap_or(detected())))
}

/// Sets the level to `wanted`, or to the highest level below it that the CPU supports. Returns the level.
pub fn set_level(wanted: Level) -> Level {
    let level = wanted.min(detected());
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

/// The levels that the CPU supports, in ascending order.
pub fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| *level <= detected())
}

/// The highest level that the CPU supports.
#[cfg(target_arch = "x86_64")]
pub fn detected() -> Level {
    macro_rules! has {
        ($($feature:tt)*) => { true $(&& std::is_x86_feature_detected!($feature))* };
    }
    if !has!("avx2" "fma" "f16c") {
        Level::Baseline
    } else if !has!("avx512f" "avx512vl" "avx512dq" "avx512bw") {
        Level::Avx2
    } else {
        Level::Avx512
    }
}

/// The highest level that the CPU supports.
#[cfg(not(target_arch = "x86_64"))]
pub fn detected() -> Level {
    Level::Baseline
}

/// Declares a function that is compiled for every level and dispatches to the current one.
///
/// ```text
/// clones! { <[M: Map, A]> fn name(m: &M, out: &mut [A]) -> Ret where […] if [worth cloning] { body } }
/// ```
///
/// The compiled functions take the same arguments, so a `&mut` among them tells LLVM that it aliases nothing.
macro_rules! clones {
    (@worth) => { true };
    (@worth $worth:expr) => { $worth };
    (
        $(#[$meta:meta])*
        $vis:vis <[$($generics:tt)*]> fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?
        where [$($bounds:tt)*] $(if [$worth:expr])? $body:block
    ) => {
        $(#[$meta])*
        #[inline]
        #[allow(clippy::too_many_arguments)]
        $vis fn $name<$($generics)*>($($arg: $ty),*) $(-> $ret)? where $($bounds)* {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body<$($generics)*>($($arg: $ty),*) $(-> $ret)? where $($bounds)* $body

            #[inline(never)]
            #[allow(clippy::too_many_arguments)]
            fn baseline<$($generics)*>($($arg: $ty),*) $(-> $ret)? where $($bounds)* {
                body($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            #[allow(clippy::too_many_arguments)]
            fn avx2<$($generics)*>($($arg: $ty),*) $(-> $ret)? where $($bounds)* {
                body($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,f16c")]
            #[allow(clippy::too_many_arguments)]
            fn avx512<$($generics)*>($($arg: $ty),*) $(-> $ret)? where $($bounds)* {
                body($($arg),*)
            }

            // If the condition is constantly false, the clones are unreachable and are not compiled.
            if clones!(@worth $($worth)?) {
                match $crate::runtime::simd::level() {
                    // SAFETY: a level is current only if the CPU supports its features.
                    #[cfg(target_arch = "x86_64")]
                    $crate::runtime::simd::Level::Avx512 => unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    $crate::runtime::simd::Level::Avx2 => unsafe { avx2($($arg),*) },
                    _ => baseline($($arg),*),
                }
            } else {
                baseline($($arg),*)
            }
        }
    };
}
pub(crate) use clones;

/// A computation that is compiled for every level, with everything that is inlined into it.
pub trait AtLevel {
    /// The result.
    type Output;
    /// True if the computation is compiled for every level.
    const VECTORIZE: bool;
    /// Runs the computation. Mark it and the functions that it calls `#[inline(always)]`. Closures are the exception:
    /// they are always compiled for the baseline.
    fn run(self) -> Self::Output;
}

clones! {
    /// Runs a computation at the current [level].
    pub <[L: AtLevel]> fn at_level(this: L) -> L::Output where [] if [L::VECTORIZE] {
        this.run()
    }
}
