//! The polygamma functions, which neither `std` nor `libm` provides.

use std::f64::consts::PI;

/// The highest supported derivative of digamma.
const MAX_ORDER: usize = 12;

/// The Bernoulli numbers B₂, B₄, … of the asymptotic series.
const BERNOULLI: [f64; 10] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
    -174611.0 / 330.0,
];

/// ψ(x) = d/dx ln Γ(x). At the poles: ∓∞ at ±0, NaN at the negative integers.
pub(crate) fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return -f64::INFINITY.copysign(x);
    }
    if x < 0.0 {
        // ψ(x) = ψ(1 − x) − π cot πx
        return match x == x.floor() {
            true => f64::NAN,
            false => digamma(1.0 - x) - PI * cot_pi(x),
        };
    }
    if x == f64::INFINITY {
        return x;
    }
    let mut x = x;
    let mut sum = 0.0;
    // ψ(x) = ψ(x + 1) − 1/x, until the series below converges.
    while x < 10.0 {
        sum -= x.recip();
        x += 1.0;
    }
    let inverse_square = (x * x).recip();
    let mut power = 1.0;
    let mut series = 0.0;
    for (k, bernoulli) in BERNOULLI.iter().enumerate() {
        power *= inverse_square;
        series += bernoulli / (2 * k + 2) as f64 * power;
    }
    sum + x.ln() - 0.5 / x - series
}

/// The `order`-th derivative of [`digamma`]; NaN for orders above [`MAX_ORDER`].
pub(crate) fn polygamma(x: f64, order: u32) -> f64 {
    let n = order as usize;
    if n == 0 {
        return digamma(x);
    }
    if n > MAX_ORDER || x.is_nan() || x == f64::NEG_INFINITY {
        return f64::NAN;
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    if x <= 0.0 && x == x.floor() {
        // An odd derivative rises to +∞ on both sides of a pole; an even one changes its sign there.
        return if n % 2 == 1 { f64::INFINITY } else { f64::NAN };
    }
    if x < 0.0 {
        // The reflection formula of ψ, differentiated n times.
        let mirrored = polygamma(1.0 - x, order);
        return if n % 2 == 1 { -mirrored } else { mirrored } - PI * cot_pi_derivative(x, n);
    }
    // ψ⁽ⁿ⁾(x) = (−1)ⁿ⁺¹ n! ζ(n + 1, x). ζ is the sum of its first terms and the Euler–Maclaurin series of the others.
    let mut x = x;
    let mut zeta = 0.0;
    while x < 10.0 + n as f64 {
        zeta += x.powi(-(order as i32) - 1);
        x += 1.0;
    }
    let mut term = x.powi(-(order as i32));
    zeta += term / n as f64 + 0.5 * term / x;
    // term = (n + 1) … (n + 2k − 1) / ((2k)! xⁿ⁺²ᵏ)
    term /= x * x * 2.0;
    for (k, bernoulli) in (1..).zip(BERNOULLI) {
        term *= if k == 1 { (n + 1) as f64 } else { 1.0 };
        zeta += bernoulli * term;
        let grow = ((n + 2 * k) * (n + 2 * k + 1)) as f64;
        term *= grow / (((2 * k + 1) * (2 * k + 2)) as f64 * x * x);
    }
    let factorial: f64 = (1..=n).map(|k| k as f64).product();
    if n % 2 == 1 { factorial * zeta } else { -factorial * zeta }
}

/// cot πx. The period is subtracted first, while that is exact.
fn cot_pi(x: f64) -> f64 {
    (PI * (x - x.round())).tan().recip()
}

/// dⁿ/dxⁿ cot πx, a polynomial in c = cot πx, since dc/dx = −π (1 + c²).
fn cot_pi_derivative(x: f64, n: usize) -> f64 {
    let mut polynomial = [0.0; MAX_ORDER + 2];
    polynomial[1] = 1.0;
    for _ in 0..n {
        let mut next = [0.0; MAX_ORDER + 2];
        for k in 1..polynomial.len() {
            let slope = -PI * k as f64 * polynomial[k];
            next[k - 1] += slope;
            if k + 1 < next.len() {
                next[k + 1] += slope;
            }
        }
        polynomial = next;
    }
    let c = cot_pi(x);
    polynomial.iter().rev().fold(0.0, |sum, coefficient| sum * c + coefficient)
}

pub(crate) fn digamma_f32(x: f32) -> f32 {
    digamma(x as f64) as f32
}

pub(crate) fn polygamma_f32(x: f32, order: u32) -> f32 {
    polygamma(x as f64, order) as f32
}
