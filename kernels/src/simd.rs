//! Loops compiled once per level of the instruction set, and the choice among them.
//!
//! A plain scalar loop vectorizes when its body is branch-free; `clones!` compiles it for each [`Level`]. Rust
//! neither reorders nor contracts floating-point arithmetic, so every level computes the same bits.

use std::sync::atomic::{AtomicU8, Ordering};

/// A level of the instruction set that loops are compiled for; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// What every CPU of the target has: SSE2 on x86-64; NEON, which includes fused products, on aarch64.
    Baseline = 1,
    /// AVX2, FMA and F16C.
    Avx2 = 2,
    /// AVX-512 F, VL, DQ and BW.
    Avx512 = 3,
}

impl Level {
    /// Every level of the target, the lowest first.
    #[cfg(target_arch = "x86_64")]
    pub const ALL: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    /// Every level of the target, the lowest first.
    #[cfg(not(target_arch = "x86_64"))]
    pub const ALL: [Level; 1] = [Level::Baseline];

    /// The name that `MINITENSOR_SIMD` knows it by.
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

/// The level in use as its number, 0 until it is chosen.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level that loops run at. The first call chooses it, unless [`choose`] or [`set_level`] did before.
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

/// Makes all loops from now on run at the level that the environment variable `MINITENSOR_SIMD` names, or at the highest
/// that the CPU has if that is lower, or if the variable is not set or empty. Returns the level.
///
/// # Errors
/// If the variable has another value than the [name](Level::name) of one of the target's levels.
pub fn choose() -> Result<Level, String> {
    let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    let wanted = named.map(|name| Level::from_name(&name.to_string_lossy())).transpose()?;
    Ok(set_level(wanted.unwrap_or(detected())))
}

/// Makes all loops from now on run at `wanted`, or the highest level below it that the CPU has, which is returned.
pub fn set_level(wanted: Level) -> Level {
    let level = wanted.min(detected());
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

/// The levels that the CPU has, the lowest first.
pub fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| *level <= detected())
}

/// The highest level that the CPU has.
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

/// The highest level that the CPU has.
#[cfg(not(target_arch = "x86_64"))]
pub fn detected() -> Level {
    Level::Baseline
}

/// Declares a function that is compiled for every level and picks the one in use.
///
/// ```text
/// clones! { <[M: Map, A]> fn name(m: &M, out: &mut [A]) -> Ret where […] if [worth cloning] { body } }
/// ```
///
/// The arguments are those of the compiled functions too, so a `&mut` among them tells LLVM that it aliases nothing.
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

            // Where the condition is a constant and false, the clones are never reached and so never compiled.
            if clones!(@worth $($worth)?) {
                match $crate::simd::level() {
                    // SAFETY: a level is in use only if the CPU was found to have its features.
                    #[cfg(target_arch = "x86_64")]
                    $crate::simd::Level::Avx512 => unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    $crate::simd::Level::Avx2 => unsafe { avx2($($arg),*) },
                    _ => baseline($($arg),*),
                }
            } else {
                baseline($($arg),*)
            }
        }
    };
}
pub(crate) use clones;

/// Something that is worth compiling for every level, with all that is inlined into it.
pub trait AtLevel {
    /// What it gives.
    type Output;
    /// Whether it is compiled for every level.
    const VECTORIZE: bool;
    /// Does it. Mark it `#[inline(always)]`, and what it calls, closures excepted: they stay at the baseline.
    fn run(self) -> Self::Output;
}

clones! {
    /// Does something at the [level] in use.
    pub <[L: AtLevel]> fn at_level(this: L) -> L::Output where [] if [L::VECTORIZE] {
        this.run()
    }
}
