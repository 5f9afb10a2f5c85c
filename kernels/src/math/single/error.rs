//! The error function.

use super::bits::power_of_two;
use super::exp::mantissa_of_sum;
use super::polynomial::{long_polynomial, polynomial};
use crate::math::bits::{clamp, select};

/// erf(x) / x − 1 by x² over |x| ≤ 0.9.
const ERF: [f32; 7] = [0.12837917, -0.37612635, 0.11283715, -0.026860507, 0.0052038566, -0.0008175608, 8.51297e-05];

/// −ln(erfc x) / x − 2 by x − 1 over 0.9 ≤ x ≤ 4.
const ERF_TAIL: [f32; 6] = [-0.15039447, 0.7893619, 0.053742297, -0.012170816, 0.0021456159, -0.00021412711];

#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let near = x.mul_add(long_polynomial(x * x, &ERF), x);
    let a = clamp(x.abs(), 0.0, 4.0);
    let (high, low, n) = mantissa_of_sum::<127>(-2.0 * a, a, -polynomial(a - 1.0, &ERF_TAIL));
    let far = (high + low).mul_add(-power_of_two(n.bits), 1.0);
    select(a < 0.9, near, far.copysign(x))
}
