//! Polynomials, evaluated with short dependency chains.

use super::binary::{Binary, Binary64};

/// [`polynomial`] with fused products.
#[inline(always)]
pub fn fused_polynomial<F: Binary, const N: usize>(x: F, c: &[F::Native; N]) -> F {
    let x2 = x * x;
    let x4 = x2 * x2;
    let (blocks, rest) = c.as_chunks::<4>();
    let mut sum = match *rest {
        [a] => Some(F::of(a)),
        [a, b] => Some(x.mul_add(F::of(b), F::of(a))),
        [a, b, c] => Some(x2.mul_add(F::of(c), x.mul_add(F::of(b), F::of(a)))),
        _ => None,
    };
    for &[a, b, c, d] in blocks.iter().rev() {
        let block = x.mul_add(F::of(d), F::of(c)).mul_add(x2, x.mul_add(F::of(b), F::of(a)));
        sum = Some(match sum {
            Some(above) => above.mul_add(x4, block),
            None => block,
        });
    }
    sum.expect("a polynomial has coefficients")
}

/// `c₀ + c₁ x + c₂ x² + …`, in independent blocks of four coefficients (Estrin's scheme, then Horner's over the
/// blocks).
#[inline(always)]
pub fn polynomial<F: Binary64, const N: usize>(x: F, c: &[f64; N]) -> F {
    let x2 = x * x;
    let x4 = x2 * x2;
    let (blocks, rest) = c.as_chunks::<4>();
    let mut sum = match *rest {
        [a] => Some(F::of(a)),
        [a, b] => Some(x * b + a),
        [a, b, c] => Some(x * b + a + x2 * c),
        _ => None,
    };
    for &[a, b, c, d] in blocks.iter().rev() {
        let block = (x * b + a) + (x * d + c) * x2;
        sum = Some(match sum {
            Some(above) => block + above * x4,
            None => block,
        });
    }
    sum.unwrap_or(F::of(0.0))
}
