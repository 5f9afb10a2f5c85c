//! Conversions between the element types in memory, as NumPy's `astype` does them.
//!
//! Integers wrap when narrowed. A float saturates to an integer, and NaN becomes 0. The imaginary part is dropped.
//! Every nonzero value is true.

use half::{bf16, f16};
use num_complex::Complex;

use crate::number::Truth;

/// A type whose elements convert to `B`.
pub trait Cast<B>: Copy + Send + Sync + 'static {
    /// The element as a `B`.
    fn cast(self) -> B;
}

/// Source types of a conversion to a half format. The value is rounded from `f32` if that represents it exactly, else
/// from `f64`.
trait Round: Copy {
    /// Converts to an `f32` that rounds to the same half.
    fn narrow(self) -> f32;
    #[inline(always)]
    fn to_f16(self) -> f16 {
        f32_to_f16(self.narrow())
    }
    #[inline(always)]
    fn to_bf16(self) -> bf16 {
        f32_to_bf16(self.narrow())
    }
}

impl Round for f32 {
    #[inline(always)]
    fn narrow(self) -> f32 {
        self
    }
}

impl Round for f64 {
    /// Rounds to odd: the last bit records whether lower bits were set, so that the second rounding is correct.
    #[inline(always)]
    fn narrow(self) -> f32 {
        let near = self as f32;
        let bits = near.to_bits() - (near.abs() as f64 > self.abs()) as u32;
        let exact = near as f64 == self || self.is_nan();
        if exact { near } else { f32::from_bits(bits | 1) }
    }
}

/// The conversion of the `half` crate tests the CPU's features for every element; this one vectorizes.
#[inline(always)]
fn f16_to_f32(half: f16) -> f32 {
    let bits = half.to_bits() as u32;
    let magnitude = bits & 0x7fff;
    // The biases of the exponents differ by 112. The multiplication also normalizes subnormals.
    let finite = (f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = 0x7f80_0000 | magnitude << 13;
    let magnitude = if magnitude < 0x7c00 { finite } else { special };
    f32::from_bits(magnitude | (bits & 0x8000) << 16)
}

/// A `bf16` is the upper half of an `f32`. The conversion of the `half` crate also makes NaN quiet.
#[inline(always)]
fn bf16_to_f32(half: bf16) -> f32 {
    f32::from_bits((half.to_bits() as u32) << 16)
}

/// Rounds to nearest, ties to even.
#[inline(always)]
fn f32_to_f16(float: f32) -> f16 {
    let bits = float.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    // Adding ½ shifts the digits of a subnormal into place and rounds them.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(126 << 23);
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    let finite = if magnitude < 113 << 23 { subnormal } else { normal };
    let magnitude = if magnitude < 143 << 23 { finite } else { special };
    f16::from_bits((magnitude | bits >> 16 & 0x8000) as u16)
}

/// Rounds to nearest, ties to even. The conversion of the `half` crate has more branches, which hinder vectorization.
#[inline(always)]
fn f32_to_bf16(float: f32) -> bf16 {
    let bits = float.to_bits();
    let odd = bits >> 16 & 1;
    let finite = bits.wrapping_add(0x7fff + odd) >> 16;
    let nan = bits >> 16 | 0x40;
    bf16::from_bits(if float.is_nan() { nan } else { finite } as u16)
}

macro_rules! cast {
    ($a:ty, $x:ident => { $($b:ty: $value:expr;)* }) => {$(
        impl Cast<$b> for $a {
            #[inline(always)]
            #[allow(clippy::unnecessary_cast)]
            fn cast(self) -> $b {
                let $x = self;
                $value
            }
        }
    )*};
}

/// Every conversion of a real `$a`, from its value as a primitive number. `$wide` is the float that is rounded.
macro_rules! real {
    ($($a:ident via $wide:ident: |$x:ident| $value:expr;)*) => {$(
        cast!($a, $x => {
            i8: ($value) as i8; i16: ($value) as i16; i32: ($value) as i32; i64: ($value) as i64;
            u8: ($value) as u8; u16: ($value) as u16; u32: ($value) as u32; u64: ($value) as u64;
            f32: ($value) as f32; f64: ($value) as f64;
            Complex<f32>: Complex::new(($value) as f32, 0.0); Complex<f64>: Complex::new(($value) as f64, 0.0);
        });
        truth!($a $wide $x $value);
    )*};
}

/// The targets that some types convert to without arithmetic.
macro_rules! truth {
    (bool $wide:ident $x:ident $value:expr) => {
        cast!(bool, x => { Truth: x.into(); f16: (x as u8 as f32).to_f16(); bf16: (x as u8 as f32).to_bf16(); });
    };
    (Truth $wide:ident $x:ident $value:expr) => {
        cast!(Truth, x => {
            Truth: x; f16: (x.get() as u8 as f32).to_f16(); bf16: (x.get() as u8 as f32).to_bf16();
        });
    };
    (f16 $wide:ident $x:ident $value:expr) => {
        cast!(f16, x => { Truth: (f16_to_f32(x) != 0.0).into(); f16: x; bf16: f16_to_f32(x).to_bf16(); });
    };
    (bf16 $wide:ident $x:ident $value:expr) => {
        cast!(bf16, x => { Truth: (bf16_to_f32(x) != 0.0).into(); f16: bf16_to_f32(x).to_f16(); bf16: x; });
    };
    ($a:ident $wide:ident $x:ident $value:expr) => {
        cast!($a, x => { Truth: (x != 0 as $a).into(); f16: (x as $wide).to_f16(); bf16: (x as $wide).to_bf16(); });
    };
}

real! {
    bool via f32: |x| x as u8;
    Truth via f32: |x| x.get() as u8;
    i8 via f32: |x| x;
    i16 via f32: |x| x;
    i32 via f64: |x| x;
    i64 via f64: |x| x;
    u8 via f32: |x| x;
    u16 via f32: |x| x;
    u32 via f64: |x| x;
    u64 via f64: |x| x;
    f16 via f32: |x| f16_to_f32(x);
    bf16 via f32: |x| bf16_to_f32(x);
    f32 via f32: |x| x;
    f64 via f64: |x| x;
}

macro_rules! complex {
    ($($part:ident)*) => {$(
        cast!(Complex<$part>, z => {
            Truth: (z.re != 0.0 || z.im != 0.0).into();
            i8: z.re as i8; i16: z.re as i16; i32: z.re as i32; i64: z.re as i64;
            u8: z.re as u8; u16: z.re as u16; u32: z.re as u32; u64: z.re as u64;
            f16: z.re.to_f16(); bf16: z.re.to_bf16();
            f32: z.re as f32; f64: z.re as f64;
            Complex<f32>: Complex::new(z.re as f32, z.im as f32);
            Complex<f64>: Complex::new(z.re as f64, z.im as f64);
        });
    )*};
}
complex!(f32 f64);
