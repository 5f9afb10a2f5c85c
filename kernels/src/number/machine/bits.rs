//! The functions of the bits of machine numbers.

#[cfg(feature = "engine")]
use crate::code::{Format, Number};

/// Division of the bits of floats, for which no CPU has an instruction for vectors.
pub(crate) trait Division {
    fn quotient(self, other: Self) -> Self;
    fn rest(self, other: Self) -> Self;
}

macro_rules! division {
    ($($t:ident)*) => {$(
        impl Division for $t {
            #[inline(always)]
            fn quotient(self, other: Self) -> Self {
                $t::from_bits(self.to_bits().checked_div(other.to_bits()).unwrap_or(0))
            }
            #[inline(always)]
            fn rest(self, other: Self) -> Self {
                $t::from_bits(self.to_bits().checked_rem(other.to_bits()).unwrap_or(0))
            }
        }
    )*};
}
division!(f32 f64);

#[cfg(feature = "engine")]
impl<N: Format> Division for Number<N> {
    fn quotient(self, _: Self) -> Self {
        self.refused()
    }
    fn rest(self, _: Self) -> Self {
        self.refused()
    }
}

/// The methods of [`Float`](crate::Float) that compute with the bits of a [`Binary`](crate::math::binary::Binary), which are a `$word`.
macro_rules! bit_functions {
    ($native:ident $word:ident) => {
        #[inline(always)]
        fn of_bits(bits: u64) -> Self {
            Binary::from_bits(Word::of(bits as $word))
        }
        #[inline(always)]
        fn bits(function: $crate::BitFunction, a: Self, b: Self) -> Self {
            use $crate::number::BitFunction;
            use $crate::number::machine::bits::Division;
            const HALF: u32 = $word::BITS / 2;
            const SIZE: $native = (1u64 << HALF) as $native;
            // The numbers from this one on, up to twice as many, have no fraction.
            const WHOLE: $native = (1u64 << ($native::MANTISSA_DIGITS - 1)) as $native;
            let word = |bits: $word| <Self as Binary>::Bits::of(bits);
            let (x, y, low) = (Binary::to_bits(a), Binary::to_bits(b), word($word::MAX >> HALF));
            let halves = |x: <Self as Binary>::Bits| (x >> HALF, x & low);
            let shifted = |shifted| {
                <<Self as Binary>::Bits as Word>::select(Word::less(y, word($word::BITS as $word)), shifted, word(0))
            };
            let count = y & word($word::BITS as $word - 1);
            Binary::from_bits(match function {
                BitFunction::And => x & y,
                BitFunction::Or => x | y,
                BitFunction::Xor => x ^ y,
                BitFunction::Add => x.wrapping_add(y),
                BitFunction::Subtract => x.wrapping_sub(y),
                BitFunction::Multiply => {
                    let ((x1, x0), (y1, y0)) = (halves(x), halves(y));
                    (x0 * y0).wrapping_add((x1 * y0).wrapping_add(x0 * y1) << HALF)
                }
                BitFunction::Divide => return a.quotient(b),
                BitFunction::Remainder => return a.rest(b),
                BitFunction::ShiftLeft => shifted(x.shifted_left(count)),
                BitFunction::ShiftRight => shifted(x.shifted_right(count)),
                BitFunction::OfNumber => {
                    let (least, most): (Self, Self) = (Binary::of(-(SIZE * SIZE / 2.0)), Binary::of(SIZE * SIZE));
                    let is_held = Binary::less_equal(least, a) & Binary::less(a, most);
                    let whole: Self = Binary::select(is_held, Binary::trunc(a), Binary::of(0.0));
                    let high = Binary::floor(whole * (1.0 / SIZE));
                    let rest = whole - high * SIZE;
                    let high = Binary::to_bits(high + 1.5 * WHOLE) << HALF;
                    high | (Binary::to_bits(rest + WHOLE) & low)
                }
                BitFunction::ToNumber => {
                    let number = |half| <Self as Binary>::from_bits(half | word(WHOLE.to_bits())) - WHOLE;
                    let (high, low) = halves(x);
                    return number(high) * SIZE + number(low);
                }
            })
        }
        #[inline(always)]
        fn bits_equal(self, other: Self) -> Self::Mask {
            Word::equal(Binary::to_bits(self), Binary::to_bits(other))
        }
        #[inline(always)]
        fn bits_less(self, other: Self) -> Self::Mask {
            Word::less(Binary::to_bits(self), Binary::to_bits(other))
        }
    };
}
pub(crate) use bit_functions;
