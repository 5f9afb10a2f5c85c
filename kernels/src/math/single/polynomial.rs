//! Polynomials with fused products.

use crate::math::binary::Binary32;

/// `c₀ + c₁ x + c₂ x² + …`, in independent pairs of coefficients, with Horner's scheme over the pairs.
#[inline(always)]
pub fn polynomial<F: Binary32, const N: usize>(x: F, c: &[f32; N]) -> F {
    let square = x * x;
    let (pairs, last) = c.as_chunks::<2>();
    let mut sum = last.first().copied().map(F::of);
    for &[a, b] in pairs.iter().rev() {
        let pair = x.mul_add(F::of(b), F::of(a));
        sum = Some(match sum {
            Some(above) => above.mul_add(square, pair),
            None => pair,
        });
    }
    sum.unwrap_or(F::of(0.0))
}
