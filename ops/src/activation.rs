//! Activation functions.

use minitensor::prelude::*;

/// The formula of [`gelu()`].
#[derive(AttrEnum, Clone, Copy, Debug, PartialEq)]
pub enum Approximate {
    /// Uses the error function.
    None,
    /// Uses a hyperbolic tangent.
    Tanh,
}

/// `max(x, 0)`; its derivative at 0 is 0.
#[custom_op(inplace)]
pub fn relu<T: Real>(x: T) -> T {
    if x <= 0 { 0 } else { x }
}

/// `min(max(x, 0), 6)`.
#[custom_op]
pub fn relu6<T: Real>(x: T) -> T {
    if x <= 0 {
        0
    } else if x >= 6 {
        6
    } else {
        x
    }
}

/// `x` if it is positive, else `negative_slope · x`.
#[custom_op(inplace)]
pub fn leaky_relu<T: Float>(x: T, #[default = 0.01] negative_slope: f64) -> T {
    if x > 0.0 { x } else { x * negative_slope }
}

/// `x` if it is positive, else `alpha · (eˣ − 1)` (Clevert et al., 2015).
#[custom_op]
pub fn elu<T: Float>(x: T, #[default = 1.0] alpha: f64) -> T {
    if x > 0.0 { x } else { alpha * x.expm1() }
}

/// The self-normalizing ELU (Klambauer et al., 2017), with its two constants.
#[custom_op(precompiled)]
pub fn selu<T: Float>(x: T) -> T {
    1.0507009873554805 * (if x > 0.0 { x } else { 1.6732632423543772 * x.expm1() })
}

/// `1 / (1 + e⁻ˣ)`, accurate in both tails.
#[custom_op(inplace)]
pub fn sigmoid<T: Field>(x: T) -> T {
    x.sigmoid()
}

/// `ln σ(x)`, without overflow.
#[custom_op(alias = "logsigmoid", precompiled)]
pub fn log_sigmoid<T: Float>(x: T) -> T {
    x.log_sigmoid()
}

/// `ln(1 + eˣ)`, without overflow.
#[custom_op(precompiled)]
pub fn softplus<T: Float>(x: T) -> T {
    x.softplus()
}

/// `x / (1 + |x|)`.
// The derived gradient, `(1 − |y|) / (1 + |x|)`, would lose digits where |y| is almost 1.
#[custom_op(backward = |d| { x: activation::softsign_vjp(d, x) }, precompiled)]
pub fn softsign<T: Float>(x: T) -> T {
    x / (1.0 + x.abs())
}

/// The gradient of [`softsign()`]: `d / (1 + |x|)²`.
#[custom_op(name = "activation::softsign_vjp", precompiled)]
pub fn softsign_vjp<T: Float>(d: T, x: T) -> T {
    d * (1.0 + x.abs()).recip().square()
}

/// `x · f(x)` for an `f` that tends to `eˣ` for very negative x. There `f` is evaluated closer to 0, so that it isn't
/// denormal, which would lose digits.
#[op_fn]
fn times_tail<T: Float>(x: T, f: impl Fn(T) -> T) -> T {
    let is_far = x < -80.0;
    let near = if is_far { 40.0 } else { 0.0 };
    let scale = if is_far { (-40.0_f64).exp() } else { 1.0 };
    x * f(x + near) * scale
}

/// Swish (SiLU): `x · σ(x)` (Ramachandran et al., 2017).
#[custom_op(alias = "silu", inplace)]
pub fn swish<T: Float>(x: T) -> T {
    x.silu()
}

/// `x · tanh(ln(1 + eˣ))` (Misra, 2019).
#[custom_op(precompiled)]
pub fn mish<T: Float>(x: T) -> T {
    times_tail(x, |x| x.softplus().tanh())
}

/// The Gaussian error linear unit, `x · Φ(x)` (Hendrycks and Gimpel, 2016). `approximate="tanh"` computes
/// `x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
#[custom_op(precompiled)]
pub fn gelu<T: Float>(x: T, #[default = Approximate::None] approximate: Approximate) -> T {
    match approximate {
        Approximate::None => x * x.normal_cdf(),
        Approximate::Tanh => {
            let inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
            // Equals x/2 · (1 + tanh(inner)), but without cancellation for negative x.
            x * (2.0 * inner).sigmoid()
        }
    }
}

/// `x · min(max(x + 3, 0), 6) / 6` (Howard et al., 2019).
#[custom_op(precompiled)]
pub fn hardswish<T: Float>(x: T) -> T {
    if x <= -3.0 {
        0.0
    } else if x >= 3.0 {
        x
    } else {
        x * (x + 3.0) / 6.0
    }
}

/// `min(max(x / 6 + 1/2, 0), 1)`.
#[custom_op(precompiled)]
pub fn hardsigmoid<T: Float>(x: T) -> T {
    if x <= -3.0 {
        0.0
    } else if x >= 3.0 {
        1.0
    } else {
        x / 6.0 + 0.5
    }
}
