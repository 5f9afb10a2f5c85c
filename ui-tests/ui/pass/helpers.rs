//! Helpers of ops: their bodies are written like those of ops.

use minitensor::prelude::*;

mod parts {
    use minitensor::prelude::*;

    /// A number, an attribute and a mask as parameters, and a tuple as the result.
    #[op_fn]
    pub fn split<T: Float>(x: T, limit: f64, swap: bool) -> (T, T) {
        let low = if x < limit { x } else { limit };
        let high = x - low;
        if swap { (high, low) } else { (low, high) }
    }

    #[op_fn]
    pub fn is_outside<T: Real>(x: T, lo: f64, hi: f64) -> T::Mask {
        x < lo || x > hi
    }

    #[op_fn]
    pub fn negated_where<T: Num>(x: T, mask: T::Mask) -> T {
        if mask { -x } else { x }
    }
}

/// Calls another helper, takes a function and an optional number, and has a loop.
#[op_fn]
fn series<T: Float>(x: T, terms: usize, start: Option<f64>, f: impl Fn(T) -> T) -> T {
    let mut term: T = 1.0;
    let mut total = match start {
        Some(start) => start,
        None => 0.0,
    };
    for i in 0..terms {
        total += f(term);
        term = term * x / (i + 1);
    }
    parts::negated_where(total, parts::is_outside(total, -100.0, 100.0))
}

/// A row and a number for each row.
#[op_fn]
fn standardized<R: Row>(x: R, eps: f64) -> (R, R) {
    let m = x.mean();
    let spread = ((x - m).square().mean() + eps).sqrt();
    (if spread > 0 { (x - m) / spread } else { 0.0 }, m)
}

/// Positions in a row, and a where clause.
#[op_fn]
fn picked<R>(x: R, at: R::Index) -> R
where
    R: Row,
{
    2.0 * x.at(at)
}

/// Machine numbers: loops, indices, comparisons and `if` are those of Rust.
#[op_fn]
pub fn smoothed<T: Float>(x: &[T], out: &mut [T], keep: f64) -> T {
    let (mut average, mut weight) = (0.0, 0.0);
    for (i, (o, v)) in out.iter_mut().zip(x).enumerate() {
        weight = keep * weight + 1.0;
        average = if i == 0 { *v } else { keep * average + (1.0 - keep) * *v };
        *o = average;
        if *o > 1.5 {
            *o = 2.0 * *o - 1.5;
        }
    }
    let halves: Vec<T> = x.iter().map(|v| *v * 0.5).collect();
    let half = x.len() / 2;
    let last = if half + 1 < x.len() { halves[half + 1] - 1.0 } else { 0.0 };
    last.max(0.0) + weight
}

/// Helpers of elements at the elements of a cell.
#[op_fn]
fn clipped<T: Float>(x: T, limit: f64) -> T {
    if x > limit { limit } else { x }
}

/// Numbers may be converted explicitly.
#[op_fn]
pub fn scaled<T: Float>(x: T) -> T {
    x * minitensor::kernels::lit(0.5) + minitensor::kernels::lit::<T>(0.25)
}

/// By helpers.
#[custom_op(dtype = (x: T) -> (low: T, high: T))]
pub fn parts_of<T: Float>(x: T, #[default = 0.5] limit: f64) -> (T, T) {
    parts::split(x, limit, true)
}

/// By a helper that calls helpers.
#[custom_op]
pub fn exp_like<T: Float>(x: T, #[default = 5] terms: usize, start: Option<f64>) -> T {
    series(x, terms, start, |t| 2.0 * t)
}

/// By a helper of rows.
#[custom_op(shape = (x: [.., n], at: [..]) -> (y: [.., n], m: [..]) where eps >= 0.0)]
pub fn standardized_rows<R: Row>(x: R, at: R::Index, #[default = 1e-5] eps: f64) -> (R, R) {
    let (y, m) = standardized(x, eps);
    (y, m + picked(y, at))
}

/// By a helper of cells.
#[custom_op(shape = (x: [.., n]) -> (out: [.., n], last: [..]), backward = none)]
pub fn smoothed_cells<T: Float>(x: &[T], out: &mut [T], last: &mut T, #[default = 0.9] keep: f64) {
    *last = smoothed(x, out, keep);
    for o in out.iter_mut() {
        *o = clipped(*o + minitensor::kernels::lit::<T>(0.25), 2.0);
    }
}

pub fn main() -> Result<()> {
    let x = Tensor::from_vec(vec![0.25, 1.0], [2])?;
    let (high, low) = parts_of::call(&x, 0.5)?;
    assert_eq!((high.to_vec::<f64>()?, low.to_vec::<f64>()?), (vec![0.0, 0.5], vec![0.25, 0.5]));
    // A helper stays a function of numbers.
    assert_eq!(parts::split(1.0f32, 0.25, false), (0.25, 0.75));
    assert!(parts::is_outside(7i64, 0, 5));
    assert_eq!(scaled(1.0), 0.75);
    let y = exp_like::call(&x, 3, Some(1.0))?.to_vec::<f64>()?;
    assert_eq!(y, [1.0 + 2.0 * (1.0 + 0.25 + 0.03125), 6.0]);
    let (out, last) = smoothed_cells::call(&Tensor::from_vec(vec![1.0, 3.0, 5.0], [1, 3])?, 0.5)?;
    assert_eq!(out.to_vec::<f64>()?, [1.25, 2.0, 2.0]);
    assert_eq!(last.to_vec::<f64>()?, [3.25]);
    Ok(())
}
