//! Sigmoid curves of either float: quotients of 1, or of 1 − eᵗ, by 1 + eᵗ, where the sum has two parts. Its large part
//! divides; what the quotient leaves is divided again, by multiplying with the inverse.

/// `sigmoid` and `tanh` of a float, from the mantissa of an exponential, the same less one, and a power of two by its bits.
/// `bias` is that of an exponent, 2^`bits` the divisor of the sum; farther arguments than those given change nothing.
macro_rules! curves {
    ($float:ident, $mantissa:ident, $mantissa_less_one:ident, $power:ident, bias $bias:literal, bits $bits:literal,
     sigmoid $far:literal, tanh $far_tanh:literal) => {
        /// `1 / (1 + e⁻ˣ)`; the sum is taken a small power of two times, so that it doesn't overflow.
        #[inline(always)]
        pub fn sigmoid(x: $float) -> $float {
            const ONE: $float = 1.0 / (1u128 << $bits) as $float;
            let (high, low, n) = $mantissa::<{ $bias - $bits }>(-clamp(x, -$far, 60.0));
            let scale = $power(n.bits);
            let below = low.mul_add(scale, high.mul_add(scale, ONE));
            let quotient = ONE / below;
            let high = high * scale;
            let (more, less) = if high > ONE { (high, ONE) } else { (ONE, high) };
            let rest = low.mul_add(scale, (more - below) + less);
            let left = rest.mul_add(-quotient, quotient.mul_add(-below, ONE));
            (quotient / ONE).mul_add(left, quotient)
        }

        /// (1 − eᵗ) / (1 + eᵗ) with t = −2 |x|.
        #[inline(always)]
        pub fn tanh(x: $float) -> $float {
            let (r, rest, n) = $mantissa_less_one::<$bias>(clamp(-2.0 * x.abs(), -$far_tanh, 0.0));
            let scale = $power(n.bits);
            let (r, rest) = (scale * r, scale * rest);
            let (over, under) = (1.0 - scale, 1.0 + scale);
            let (above, below) = ((over - r) - rest, (under + r) + rest);
            // 1 ± a small power of two has lost some of it.
            let above_rest = (((over - above) - r) - rest) + ((1.0 - over) - scale);
            let below_rest = (((1.0 - below) + scale) + r) + rest;
            let inverse = 1.0 / below;
            let quotient = above * inverse;
            let left = quotient.mul_add(-below, above) + quotient.mul_add(-below_rest, above_rest);
            inverse.mul_add(left, quotient).copysign(x)
        }
    };
}
pub(super) use curves;
