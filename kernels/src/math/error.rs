//! The error function and related functions, for either float type.

/// `erf`, `erfc` and `normal_cdf` of a float type, from its tables `ERF`, `ERF_TAIL`, `ERF_NEAR`, `ERFC`, `NORMAL` and
/// `NORMAL_NEAR`: polynomials, exponentials in parts, and a product with a power of two that is rounded once (`sunk`).
/// `far` begins where `near` ends; beyond `end` the result is constant.
macro_rules! errors {
    ($float:ident, $polynomial:ident, tail $short:ident, $of_sum:ident::<$bias:literal>, $of_square:ident, $power:ident,
     erf far $erf_far:literal end $erf_end:literal, erfc pole $erfc_pole:literal end $erfc_end:literal,
     normal pole $normal_pole:literal end $normal_end:literal, coefficients $coefficients:literal) => {
        #[inline(always)]
        pub fn erf(x: $float) -> $float {
            let near = x.mul_add($polynomial(x * x, &ERF), x);
            let a = clamp(x.abs(), 0.0, $erf_end);
            let (high, low, n) = $of_sum::<$bias>(-2.0 * a, a, -$short(a - 1.0, &ERF_TAIL));
            let far = (high + low).mul_add(-$power(n.bits), 1.0);
            select(a < $erf_far, near, far.copysign(x))
        }

        /// e^−s p(1 / (a + pole)) / (a + pole) for s = `square` + `rest`, where p changes little (after Shepherd and
        /// Laframboise, 1981). Each of the three factors has two parts.
        #[inline(always)]
        fn tail(a: $float, pole: $float, square: $float, rest: $float, table: &[$float; $coefficients]) -> $float {
            let [middle, first, first_rest, second, second_rest, higher @ ..] = table;
            let below = a + pole;
            let inverse = 1.0 / below;
            // The error of the inverse, and the error of the difference.
            let left = (a - (below - pole)).mul_add(-inverse, inverse.mul_add(-below, 1.0));
            let t = inverse - middle;
            let t_rest = inverse.mul_add(left, inverse - (t + middle));
            let linear = second.mul_add(t, *first);
            let slope = t.mul_add(2.0 * higher[0], *second);
            let curve = (t * t).mul_add($polynomial(t, higher), second_rest.mul_add(t, *first_rest));
            let slow = linear + curve;
            let slow_rest = second.mul_add(t, first - linear) + (curve - (slow - linear));
            let ratio = slow * inverse;
            let lacking = left.mul_add(slow, t_rest.mul_add(slope, slow_rest));
            let ratio_rest = inverse.mul_add(lacking, slow.mul_add(inverse, -ratio));
            let (r, small, n) = $of_square::<SINKING>(square, rest);
            let high = ratio.mul_add(r, ratio);
            let low = ratio.mul_add(small, ratio.mul_add(r, ratio - high));
            sunk(high + (1.0 + r + small).mul_add(ratio_rest, low), n)
        }

        #[inline(always)]
        pub fn erfc(x: $float) -> $float {
            let a = clamp(x.abs(), 0.0, $erfc_end);
            let square = a * a;
            let right = tail(a, $erfc_pole, square, a.mul_add(a, -square), &ERFC);
            let far = select(x < 0.0, 2.0 - right, right);
            let near = 1.0 - x.mul_add($polynomial(square, &ERF_NEAR), x);
            select(a < 0.475, near, far)
        }

        /// Φ(x), the probability that a standard normal variable is below x.
        #[inline(always)]
        pub fn normal_cdf(x: $float) -> $float {
            let a = clamp(x.abs(), 0.0, $normal_end);
            let half = 0.5 * a;
            let square = half * a;
            let left = tail(a, $normal_pole, square, half.mul_add(a, -square), &NORMAL);
            let far = select(x > 0.0, 1.0 - left, left);
            let near = x.mul_add($polynomial(x * x, &NORMAL_NEAR), 0.5);
            select(a < 0.3, near, far)
        }
    };
}
pub(super) use errors;
