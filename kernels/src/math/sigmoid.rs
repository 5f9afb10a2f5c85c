//! Sigmoid curves of either float type: quotients by 1 + eᵗ, where eᵗ = 2ⁿ (1 + r + c) with an integer n and |r| ≤ ½ ln
//! 2.
//!
//! The divisor has two parts. The quotient by the high part is corrected by its remainder times the inverse.

/// `sigmoid`, `silu` and `tanh` of a float type. They use the three parts of e⁻ᵗ (`reduced`) and
/// of eᵗ (`reduced_less_one`, which is accurate near 0) and a power of two made from its bits. `bias` is that of an exponent.
/// 1 + eᵗ is computed 2^−`bits` times, so that it does not overflow. Arguments beyond `far` return the result of `far`.
/// `large` is negligible beside a number whose quotient overflows.
macro_rules! curves {
    ($float:ident $binary:ident, $reduced:ident, $reduced_less_one:ident, $power:ident, bias $bias:literal,
     bits $bits:literal, sigmoid $far:literal, silu $large:literal, tanh $far_tanh:literal) => {
        /// `numerator / (1 + e⁻ˣ)` for −`far` ≤ x ≤ 60.
        #[inline(always)]
        fn over_one_plus_exp<F: $binary>(numerator: F, x: F) -> F {
            const ONE: $float = 1.0 / (1u128 << $bits) as $float;
            let (r, curve, n) = $reduced::<F, { $bias - $bits }>(x);
            let scale = $power::<F>(n.bits);
            let below = (r + curve).mul_add(scale, scale + ONE);
            // `scale` − `below` is exact unless `scale` is negligible.
            let rest = curve.mul_add(scale, r.mul_add(scale, (scale - below) + ONE));
            let inverse = F::of(1.0) / below;
            let quotient = numerator * inverse;
            // With this sign, −0 gives −0.
            let excess = rest.mul_add(quotient, quotient.mul_add(below, -numerator));
            (-excess).mul_add(inverse, quotient) * ONE
        }

        /// `1 / (1 + e⁻ˣ)`.
        #[inline(always)]
        pub fn sigmoid<F: $binary>(x: F) -> F {
            over_one_plus_exp(F::of(1.0), clamp(x, -$far, 60.0))
        }

        /// `x / (1 + e⁻ˣ)`, with full accuracy even where `sigmoid` is denormal.
        #[inline(always)]
        pub fn silu<F: $binary>(x: F) -> F {
            let far = F::of(-$far);
            let numerator = F::select(x.less(far), far, x);
            let result = over_one_plus_exp(numerator, least(numerator, 60.0));
            // The second operand is smaller, unless x is so large that it is x. If the quotient then overflows, `result`
            // is NaN, and the comparison fails.
            let least = x - $large;
            F::select(least.less(result), result, least)
        }

        /// (1 − eᵗ) / (1 + eᵗ) with t = −2 |x|.
        #[inline(always)]
        pub fn tanh<F: $binary>(x: F) -> F {
            let (t, far) = (x.abs() * -2.0, F::of(-$far_tanh));
            let (r, curve, n) = $reduced_less_one::<F, $bias>(F::select(t.less(far), far, t));
            let scale = $power::<F>(n.bits);
            let over = F::of(1.0) - scale;
            let above = curve.mul_add(-scale, r.mul_add(-scale, over));
            // Adding a small power of two to 1 loses digits.
            let above_rest = curve.mul_add(-scale, r.mul_add(-scale, over - above)) + ((F::of(1.0) - over) - scale);
            // The divisor is 2 less the dividend.
            let below = F::of(2.0) - above;
            let below_rest = ((F::of(2.0) - below) - above) - above_rest;
            let inverse = F::of(1.0) / below;
            let quotient = above * inverse;
            let left = quotient.mul_add(-below_rest, quotient.mul_add(-below, above)) + above_rest;
            inverse.mul_add(left, quotient).copysign(x)
        }
    };
}
pub(super) use curves;
