//! Polynomials with fused products.

/// `c₀ + c₁ x + c₂ x² + …`, in independent pairs of coefficients, with Horner's scheme over the pairs.
#[inline(always)]
pub fn polynomial<const N: usize>(x: f32, c: &[f32; N]) -> f32 {
    let square = x * x;
    let (pairs, last) = c.as_chunks::<2>();
    let mut sum = last.first().copied();
    for &[a, b] in pairs.iter().rev() {
        let pair = b.mul_add(x, a);
        sum = Some(match sum {
            Some(above) => above.mul_add(square, pair),
            None => pair,
        });
    }
    sum.unwrap_or_default()
}

/// A long polynomial, in blocks of four (Estrin's scheme): a shorter dependency chain and one more product.
#[inline(always)]
pub fn long_polynomial<const N: usize>(x: f32, c: &[f32; N]) -> f32 {
    let square = x * x;
    let (blocks, rest) = c.as_chunks::<4>();
    let mut sum = match *rest {
        [a] => Some(a),
        [a, b] => Some(b.mul_add(x, a)),
        [a, b, c] => Some(c.mul_add(square, b.mul_add(x, a))),
        _ => None,
    };
    for &[a, b, c, d] in blocks.iter().rev() {
        let block = d.mul_add(x, c).mul_add(square, b.mul_add(x, a));
        sum = Some(match sum {
            Some(above) => above.mul_add(square * square, block),
            None => block,
        });
    }
    sum.unwrap_or_default()
}
