//! Numbers of Rust beside elements in the bodies of cells: indices, lengths, constants, and functions of elements.

use minitensor::prelude::*;
use minitensor_ops as _;

#[op_fn]
fn half<T: Float>(x: T) -> T {
    x * 0.5
}

fn real(k: usize) -> f64 {
    k as f64
}

/// Sums and products of elements and numbers of Rust.
#[custom_op(name = "cell_numbers::mixed", shape = (x: [.., n]) -> [.., n] where n > 0)]
fn mixed<T: Float>(x: &[T], #[default = 2] k: i64, #[default = 3] m: usize, out: &mut [T]) {
    const W: [f64; 3] = [0.25, 0.5, 0.25];
    const K: usize = 2;
    let n = x.len();
    for i in 0..n {
        out[i] = x[i] * i + half(x[i]) * 2.0 - x[i] / n + W[i % 3] * x[i];
        for w in [0.25, 0.5] {
            out[i] += w * x[i];
        }
        out[i] = out[i] * k + m * out[i] + K * x[i] + 3.0 * real(i) * x[i];
    }
    for (i, v) in x.iter().enumerate() {
        out[i] += *v * (i + 1) * 2;
    }
    for i in (1..n).rev() {
        let before = i - 1;
        out[before] += x[i] * before;
    }
    let mut best = 0;
    for i in 0..n {
        if x[i] > x[best] {
            best = i;
        }
    }
    out[0] += x[best] * best;
    let mut total = 0.0;
    for v in [x[0], x[best]] {
        total += v * 2;
    }
    out[0] += total;
    let mut positive = 0;
    for v in x {
        if *v > 0.0 {
            positive += 1;
        }
    }
    out[0] += x[0] * positive;
    out[0] *= 1.0 / n as f64;
}

/// The sizes of a matrix, and integers that are computed from them, beside elements.
#[custom_op(name = "cell_numbers::sizes", shape = (x: [.., h, w], at: [.., 2]) -> [..] where h > 0, w > 0)]
fn sizes<T: Float>(x: ArrayView2<T>, at: &[T], out: &mut T) {
    let (h, w) = x.dim();
    let (row, column) = ((at[0] as usize).min(h - 1), (at[1] as usize).min(w - 1));
    let (mut sum, mut count) = (x[[row, column]], 1);
    for i in 0..row {
        sum += x[[i, column]];
        count += 1;
    }
    let top = (row + 1).min(h);
    *out =
        sum / count + (at[0] - row) * (h as T) + at[1] * x.shape()[1] + at[0] * top + at[1].minimum(w - 1) * w.pow(2);
}

#[test]
fn sizes_beside_elements_are_elements() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    let at = Tensor::from_vec(vec![1.5, 2.25], [2])?;
    // The mean of 6 and 3, then 0.5 · 2, 2.25 · 3, 1.5 · 2 and 2 · 9.
    assert_eq!(sizes::call(&x, &at)?.to_vec::<f64>()?, [4.5 + 1.0 + 6.75 + 3.0 + 18.0]);
    minitensor::testing::opcheck(&sizes::op(), &[]).into_result()
}

#[test]
fn numbers_beside_elements_are_elements() -> Result<()> {
    let x = [1.0, -2.0, 3.0, 0.5];
    let ours = mixed::call(&Tensor::from_vec(x.to_vec(), [4])?, 2, 3)?.to_vec::<f64>()?;
    let mut expected = [0.0; 4];
    for (i, x) in x.iter().enumerate() {
        let f = i as f64;
        let first = x * f + x - x / 4.0 + [0.25, 0.5, 0.25][i % 3] * x + 0.25 * x + 0.5 * x;
        expected[i] = first * 2.0 + 3.0 * first + 2.0 * x + 3.0 * f * x + x * (f + 1.0) * 2.0;
    }
    for i in 1..4 {
        expected[i - 1] += x[i] * (i - 1) as f64;
    }
    // The largest element, twice the first and the largest, and the number of positive elements.
    expected[0] = (expected[0] + 3.0 * 2.0 + (2.0 + 6.0) + 3.0) / 4.0;
    assert_eq!(ours, expected);
    minitensor::testing::opcheck(&mixed::op(), &[]).into_result()?;
    Ok(())
}
