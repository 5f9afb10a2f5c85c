//! Element and row ops of all kinds that a model file contains. `test_save_plugin_ops.py` saves, loads and compares them.

use minitensor_plugin_sdk::prelude::*;

/// The negative log-likelihood of the target class, and the entropy of the distribution.
#[custom_op(name = "kinds::nll", shape = (logits: [.., n], target: [..]) -> (loss: [..], entropy: [..]))]
fn nll<R: Row>(logits: R, target: R::Index) -> (R, R) {
    let log_p = logits - logits.logsumexp();
    (-log_p.at(target), -(log_p.exp() * log_p).sum())
}

/// The element at a position, scaled. The position comes before the number.
#[custom_op(name = "kinds::scaled_at", shape = (at: [..], scale: [..], x: [.., n], shift: [..]) -> [..])]
fn scaled_at<R: Row>(at: R::Index, scale: R, x: R, shift: Option<R>) -> R {
    let y = x.at(at) * scale + x.mean();
    if let Some(shift) = shift { y + shift } else { y }
}

/// The largest element that a mask keeps, its position, which elements are below it, and whether any is negative.
#[custom_op(
    name = "kinds::top_of",
    shape = (x: [.., n], kept: [.., n]) -> (top: [..], at: [..], below: [.., n], has_negative: [..]) where n > 0,
)]
fn top_of<R: Row>(x: R, kept: Option<R::Mask>) -> (R, R::Index, R::Mask, R::Mask) {
    let kept = if let Some(kept) = kept { if kept { x } else { -R::infinity() } } else { x };
    (kept.max(), kept.argmax().to_index(), kept < kept.max(), R::any(x < 0.0))
}

/// `x / scale` as eight bits.
#[custom_op(name = "kinds::quantize", dtype = (x: T, scale: T) -> (steps: i8))]
fn quantize<T: Float>(x: T, scale: T) -> T {
    (x / scale).round()
}

/// `steps · scale`, and whether `steps` is positive.
#[custom_op(name = "kinds::dequantize", dtype = (steps: i8, scale: T) -> (y: T, is_positive: T::Mask))]
fn dequantize<T: Float>(steps: T, scale: T) -> (T, T::Mask) {
    (steps * scale, steps > 0.0)
}

/// Each row as eight bits, and its scale.
#[custom_op(
    name = "kinds::quantize_rows",
    dtype = (x: R) -> (steps: u8, scale: R),
    shape = (x: [.., n]) -> (steps: [.., n], scale: [..]),
)]
fn quantize_rows<R: Row>(x: R) -> (R, R) {
    let scale = (x.max() - x.min()) / 255.0 + 1e-3;
    ((x - x.min()) / scale, scale)
}

/// The softmax of a row of small integers.
#[custom_op(
    name = "kinds::softmax_of_steps",
    dtype = (steps: u8, scale: R) -> R,
    shape = (steps: [.., n], scale: [..]) -> [.., n],
)]
fn softmax_of_steps<R: Row>(steps: R, scale: R) -> R {
    let e = ((steps - steps.max()) * scale).exp();
    e / e.sum()
}

/// `x` where a mask is true or absent, and `x · slope` elsewhere.
#[custom_op(name = "kinds::leaky_where")]
fn leaky_where<T: Float>(x: T, keep: Option<T::Mask>, #[default = 0.1] slope: f64) -> T {
    if let Some(keep) = keep { if keep { x } else { x * slope } } else { x.sin() }
}

/// Updates an exponential moving average with `x`, and returns the change.
#[custom_op(name = "kinds::update_average", where decay >= 0.0, decay <= 1.0)]
fn update_average<T: Float>(average: &mut T, x: T, #[default = 0.9] decay: f64) -> T {
    let before = *average;
    *average = decay * *average + (1.0 - decay) * x;
    *average - before
}

/// Swaps two tensors, and adds their product to both.
#[custom_op(name = "kinds::swap")]
fn swap<T: Real>(x: &mut T, y: &mut T) {
    let (before, product) = (*x, *x * *y);
    *x = *y + product;
    *y = before + product;
}

/// `x · sin x`.
#[custom_op(name = "kinds::wave", inplace)]
fn wave<T: Float>(x: T) -> T {
    x * x.sin()
}

/// Rows shifted to mean 0, and scaled.
#[custom_op(name = "kinds::centered", shape = (x: [.., n], scale: [..]) -> [.., n], inplace)]
fn centered<R: Row>(x: R, scale: R) -> R {
    (x - x.mean()) * scale
}

/// Reverses rows in place, and returns their first elements after that.
#[custom_op(name = "kinds::reverse_rows", shape = (x: [.., n]) -> (first: [..]) where n > 0, axis = -1)]
fn reverse_rows<T: Num>(x: &mut [T], first: &mut T) {
    x.reverse();
    *first = x[0];
}

/// The bitwise exclusive or of a row.
#[custom_op(name = "kinds::parity", shape = (x: [.., n]) -> [..], axis = None)]
fn parity<T: Int>(x: Columns<T>, out: &mut [T]) {
    out.fill(T::zero());
    for i in 0..x.height() {
        out.iter_mut().zip(x.row(i)).for_each(|(all, v)| *all = all.bitwise_xor(*v));
    }
}

/// Each element plus the one before it.
#[custom_op(name = "kinds::pairs", shape = (x: [.., n]) -> [.., n], axis = -1, backward = none)]
fn pairs<T: Num>(x: Columns<T>, mut out: ColumnsMut<T>) {
    for i in 0..x.height() {
        let before = x.row(i.saturating_sub(1));
        out.row(i).iter_mut().zip(x.row(i)).zip(before).for_each(|((out, v), w)| *out = *v + *w);
    }
}

/// The sum of squares.
#[custom_op(name = "kinds::power", shape = (x: [.., n]) -> [..], axis = None, combine = add)]
fn power<R: Row>(x: R) -> R {
    x.square().sum()
}

/// A hash of two integers.
#[custom_op(name = "kinds::hash")]
fn hash<T: Int>(x: T, y: T) -> T {
    let z = (x * 31 + y) ^ (x << 3);
    if z > y { z - (y >> 1) * z } else { !z + x.floor_divide(y | 1) + z.powi(5).remainder(y | 1) }
}

/// `exp(scale · x)` where the bits of an integer of any dtype say so, and `x³` elsewhere.
#[custom_op(name = "kinds::bent_by")]
fn bent_by<T: Float, U: Int>(x: T, e: U, #[default = 0.5] scale: f64) -> T {
    if (e & 5) * 3 > e { (x * scale).exp() } else { x * x * x }
}

/// `|x|`, and an integer of any dtype whose bits are inverted where `x` is negative.
#[custom_op(name = "kinds::signed_bits")]
fn signed_bits<T: Float, U: Int>(x: T, e: U, keep: Option<T::Mask>) -> (T, U) {
    let e = if x < 0.0 { !e } else { e * 3 + 1 };
    (x.abs(), if let Some(keep) = keep { if keep { e } else { 7 } } else { e })
}

/// A float, and an integer of a third dtype, chosen by conditions on the others.
#[custom_op(
    name = "kinds::graded",
    dtype = (x: T, level: U, code: V) -> (y: T, next: V) where U: i32 | i64, V: u8 | i16,
)]
fn graded<T: Float, U: Int, V: Int>(x: T, level: U, code: V, #[default = 0.5] scale: f64) -> (T, V) {
    let next = if level > 1 { code * 3 + 1 } else { code };
    (if next > 4 { (x * scale).exp() } else { x * x }, next)
}

/// Each dtype depends on conditions of the other, so no program computes it in two parts.
#[custom_op(name = "kinds::entangled")]
fn entangled<T: Float, U: Int>(x: T, e: U) -> (T, U) {
    let more = if x > 0.5 { e + 1 } else { e };
    (if more > 2 { x } else { -x }, more)
}

/// `x + value · y`, at every dtype of numbers.
#[custom_op(name = "kinds::axpy")]
fn axpy<T: Num>(x: T, y: T, #[default = 2.0] value: f64) -> T {
    x + value * y
}

/// `x` where it equals `y`, and `z` elsewhere, at every dtype.
#[custom_op(name = "kinds::where_equal")]
fn where_equal<T: Element>(x: T, y: T, z: T) -> T {
    if x == y { x } else { z }
}

plugin! {}
