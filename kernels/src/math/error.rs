//! The error function and related functions, for either float type.

/// `erf`, `erfc`, `normal_cdf` and `normal_pdf` of a float type, from its tables `ERF`, `ERF_TAIL`, `ERFC_OVER`,
/// `ERFC_UNDER`, `NORMAL_OVER` and `NORMAL_UNDER`: polynomials, exponentials in parts, and a product with a power of two
/// that is rounded once (`sunk`). `erf` computes two formulas; the second holds from `far` on. Beyond `end` the result
/// is constant. `top rest` is √(2/π) less its nearest float.
macro_rules! errors {
    ($float:ident $binary:ident, $word:ident, $polynomial:ident, tail $short:ident, $of_sum:ident::<$bias:literal>,
     $of_square:ident, $power:ident, erf far $erf_far:literal end $erf_end:literal, erfc end $erfc_end:literal,
     normal end $normal_end:literal top rest $top_rest:literal) => {
        #[inline(always)]
        pub fn erf<F: $binary>(x: F) -> F {
            let near = x.mul_add($polynomial(x * x, &ERF), x);
            let a = least(x.abs(), $erf_end);
            let (high, low, n) = $of_sum::<F, $bias>(a * -2.0, a, -$short(a - 1.0, &ERF_TAIL));
            let far = (high + low).mul_add(-$power::<F>(n.bits), F::of(1.0));
            F::select(a.less(F::of($erf_far)), near, far.copysign(x))
        }

        /// 2ᵏ e^−s / (1 + a (slope + p(a) / q(a))) for s = `square` + `rest`, where k is `BIAS` − `SINKING`. The divisor is
        /// 1 / (eʸ² erfc y) for the y with y² = s. Its rounding errors are small, because p / q is small beside the line,
        /// which is exact. Divisor and dividend have two parts.
        #[inline(always)]
        fn tail<F: $binary, const BIAS: $word, const N: usize>(
            a: F,
            slope: $float,
            square: F,
            rest: F,
            over: &[$float; N],
            under: &[$float; N],
        ) -> F {
            let slope = F::of(slope);
            let bent = $short(a, over) / $short(a, under);
            let line = a.mul_add(slope, F::of(1.0));
            let below = a.mul_add(bent, line);
            let below_rest = a.mul_add(bent, line - below) + a.mul_add(slope, F::of(1.0) - line);
            let (r, small, n) = $of_square::<F, BIAS>(square, rest);
            let above = r + 1.0;
            let above_rest = (r - (above - 1.0)) + small;
            let inverse = F::of(1.0) / below;
            let ratio = above * inverse;
            let left = ratio.mul_add(-below_rest, ratio.mul_add(-below, above)) + above_rest;
            sunk(left.mul_add(inverse, ratio), n)
        }

        #[inline(always)]
        pub fn erfc<F: $binary>(x: F) -> F {
            let a = least(x.abs(), $erfc_end);
            let square = a * a;
            let right = tail::<F, SINKING, _>(a, 1.5, square, a.mul_add(a, -square), &ERFC_OVER, &ERFC_UNDER);
            F::select(x.less(F::of(0.0)), F::of(2.0) - right, right)
        }

        /// Φ(x), the probability that a standard normal variable is below x.
        #[inline(always)]
        pub fn normal_cdf<F: $binary>(x: F) -> F {
            let a = least(x.abs(), $normal_end);
            let half = a * 0.5;
            let square = half * a;
            let rest = half.mul_add(a, -square);
            let left = tail::<F, { SINKING - 1 }, _>(a, 1.109375, square, rest, &NORMAL_OVER, &NORMAL_UNDER);
            F::select(F::of(0.0).less(x), F::of(1.0) - left, left)
        }

        /// e^−½x² / √(2π), the density of the standard normal distribution. It shares the exponential of `normal_cdf`.
        #[inline(always)]
        pub fn normal_pdf<F: $binary>(x: F) -> F {
            // Twice the density at 0, in two parts.
            const TOP: $float = 0.797_884_560_802_865_4_f64 as $float;
            const REST: $float = $top_rest;
            let (top, top_rest) = (F::of(TOP), F::of(REST));
            let a = least(x.abs(), $normal_end);
            let half = a * 0.5;
            let square = half * a;
            let (r, small, n) = $of_square::<F, { SINKING - 1 }>(square, half.mul_add(a, -square));
            let high = top.mul_add(r, top);
            let low = small.mul_add(top, top.mul_add(r, top - high)) + top_rest.mul_add(r, top_rest);
            sunk(high + low, n)
        }
    };
}
pub(super) use errors;
