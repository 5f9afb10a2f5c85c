use minitensor::prelude::*;

/// Swish (SiLU): `x · σ(x)`.
#[custom_op(alias = "silu", inplace)]
pub fn swish<T: Float>(x: T) -> T {
    x * x.sigmoid()
}

/// `x` raised to the power `y`.
#[custom_op]
pub fn power<T: Float>(x: T, y: T) -> T {
    x.pow(y)
}

/// Limits every element to `[lo, hi]`.
#[custom_op(inplace)]
pub fn clamp<T: Real>(x: T, #[default = f64::NEG_INFINITY] lo: f64, #[default = f64::INFINITY] hi: f64) -> T {
    if x < lo { lo } else if x > hi { hi } else { x }
}

/// One SGD step, in place: `&mut` is what makes it so.
#[custom_op]
pub fn sgd_step<T: Float>(p: &mut T, v: &mut T, g: T, lr: f64, #[default = 0.9] momentum: f64) {
    *v = *v * momentum + g;
    *p = *p - *v * lr;
}

/// Which `gelu`.
#[derive(Clone, Copy, Debug, PartialEq, AttrEnum)]
pub enum Approximate {
    None,
    Tanh,
}

/// GELU.
#[custom_op(since = 2)]
pub fn gelu<T: Float>(x: T, #[default = Approximate::None] approximate: Approximate) -> T {
    match approximate {
        Approximate::None => 0.5 * x * (1.0 + (x * std::f64::consts::FRAC_1_SQRT_2).erf()),
        Approximate::Tanh => {
            const C: f64 = 0.044715;
            0.5 * x * (1.0 + (0.7978845608028654 * (x + C * x.powi(3))).tanh())
        }
    }
}

/// Whether `a` is less than `b`.
#[custom_op]
pub fn less<T: Real>(a: T, b: T) -> T::Mask {
    a < b
}

/// `x` where the condition holds, else `y`.
#[custom_op(name = "where")]
pub fn where_<T: Element>(condition: T::Mask, x: T, y: T) -> T {
    if condition { x } else { y }
}

/// Neither, both, and literals.
#[custom_op(name = "demo::logic")]
pub fn logic<T: Float>(x: T, flag: bool, #[default = 3] n: usize) -> T {
    let c = 2.0;
    let mut acc = 0.0;
    for i in 0..n {
        acc += x * i + c;
    }
    let big = x > 1.0 && !(x > 2.0 || flag);
    if flag { acc } else if big { -1.0 } else { x.max(0.0) }
}

/// Sine and cosine.
#[custom_op(dtype = (x: T) -> (sin: T, cos: T) where T: f32 | f64)]
pub fn sin_cos<T: Float>(x: T) -> (T, T) {
    (x.sin(), x.cos())
}

/// Adds a bias, if there is one.
#[custom_op]
pub fn biased<T: Num>(x: T, bias: Option<T>, #[default = 1] scale: f64, limit: Option<f64>) -> T {
    let y = if let Some(b) = bias { x + b } else { x };
    match limit {
        Some(limit) => y * limit * scale,
        None => y * scale,
    }
}

/// Scales by powers of two.
#[custom_op]
pub fn ldexp<T: Float, U: Int>(x: T, e: U) -> T {
    if e > 0 { x * 2.0 } else { x }
}

/// A number of the first as the second.
#[custom_op]
pub fn bits<T: Int>(x: T, y: T) -> T {
    (x & y) | (x ^ 3) | x << y | !x
}

/// Its own formula.
#[custom_op(backward = |d_out| { x: d_out * out * (1.0 - out) })]
pub fn logistic<T: Float>(x: T) -> T {
    x.sigmoid()
}

/// An op may be defined wherever a function may be.
fn an_op_in_a_function() -> minitensor::OpRef {
    #![deny(warnings)]
    /// Twice `x`, called as Python calls its keywords in Rust.
    #[custom_op(name = "double")]
    fn r#loop<T: Num>(x: T, #[default = 2] r#type: i64, #[default = "a"] mode: &str) -> T {
        if mode == "a" { x * r#type } else { 2 * x }
    }
    assert_eq!(r#loop(2.0f32, 3, "a"), 6.0);
    r#loop::op()
}

fn main() {
    assert_eq!(an_op_in_a_function().attrs[0].name, "type");
    assert_eq!(clamp(3.0f32, 0.0, 1.0), 1.0);
    assert_eq!(where_(true, 1u8, 2), 1);
    assert_eq!(Approximate::Tanh.word(), "tanh");
    assert_eq!(sin_cos(0.0f64), (0.0, 1.0));
    assert_eq!(logic(1.5f64, false, 1), -1.0);
    assert_eq!(swish::op().name, "swish");
    assert_eq!(swish::op().doc, "Swish (SiLU): `x · σ(x)`.");
    assert_eq!(gelu::op().since, 2);
}
