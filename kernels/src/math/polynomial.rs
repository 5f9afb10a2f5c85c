//! Polynomials, evaluated with short dependency chains.

/// [`polynomial`] with fused products.
#[inline(always)]
pub fn fused_polynomial<const N: usize>(x: f64, c: &[f64; N]) -> f64 {
    let x2 = x * x;
    let x4 = x2 * x2;
    let (blocks, rest) = c.as_chunks::<4>();
    let mut sum = match *rest {
        [a] => Some(a),
        [a, b] => Some(b.mul_add(x, a)),
        [a, b, c] => Some(c.mul_add(x2, b.mul_add(x, a))),
        _ => None,
    };
    for &[a, b, c, d] in blocks.iter().rev() {
        let block = d.mul_add(x, c).mul_add(x2, b.mul_add(x, a));
        sum = Some(match sum {
            Some(above) => above.mul_add(x4, block),
            None => block,
        });
    }
    sum.unwrap_or_default()
}

/// `c₀ + c₁ x + c₂ x² + …`, in independent blocks of four coefficients (Estrin's scheme, then Horner's over the
/// blocks).
#[inline(always)]
pub fn polynomial<const N: usize>(x: f64, c: &[f64; N]) -> f64 {
    let x2 = x * x;
    let x4 = x2 * x2;
    let (blocks, rest) = c.as_chunks::<4>();
    let mut sum = match *rest {
        [a] => Some(a),
        [a, b] => Some(a + b * x),
        [a, b, c] => Some(a + b * x + c * x2),
        _ => None,
    };
    for &[a, b, c, d] in blocks.iter().rev() {
        let block = (a + b * x) + (c + d * x) * x2;
        sum = Some(match sum {
            Some(above) => block + above * x4,
            None => block,
        });
    }
    sum.unwrap_or(0.0)
}
