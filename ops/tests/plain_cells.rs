//! Bodies of cells that are Rust for `f64`: the same text, compiled for `f64`, is the reference.

// Lists of both kinds are tested.
#![allow(clippy::useless_vec)]

use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops as _;

const WEIGHTS: [f64; 3] = [0.25, 0.5, 0.25];

/// A point with its speed.
struct Point<T> {
    place: T,
    speed: T,
}

/// `Σ xᵢ wᵢ`
#[op_fn]
fn scaled_dot<T: Float>(x: &[T], w: &[T], scale: T) -> T {
    x.iter().zip(w).map(|(x, w)| x * w).sum::<T>() * scale
}

/// Numbers that do not depend on the elements.
fn ramp<T>(x: &[T]) -> impl Iterator<Item = f64> {
    (0..x.len()).map(|i| i as f64 / 4.0)
}

/// Each body as an op that returns a number, and as a function of `f64`.
macro_rules! bodies {
    ($($name:ident($x:ident, $y:ident) { $($body:tt)* })*) => {
        mod ops {
            use super::*;
            $(
                /// A body that is plain Rust.
                #[custom_op(shape = (x: [.., n], y: [.., n]) -> [..] where n > 2)]
                pub fn $name<T: Float>($x: &[T], $y: &[T]) -> T { $($body)* }
            )*
        }
        mod plain {
            use super::*;
            type T = f64;
            $(pub fn $name($x: &[T], $y: &[T]) -> T { $($body)* })*
        }
        #[test]
        fn the_body_of_a_cell_is_plain_rust() -> Result<()> {
            let (x, y) = (vec![0.75, -1.5, 2.25, 0.5, 1.25], vec![1.5, 0.25, -0.5, 2.0, 0.125]);
            let tensor = |v: &Vec<f64>| Tensor::from_vec(v.clone(), [v.len()]);
            $(
                let ours = ops::$name::call(&tensor(&x)?, &tensor(&y)?)?.to_vec::<f64>()?;
                assert_eq!(ours, [plain::$name(&x, &y)], "{}", stringify!($name));
                opcheck(&ops::$name::op(), &[]).into_result()?;
            )*
            Ok(())
        }
    };
}

bodies! {
    lists_of_literals(x, y) {
        scaled_dot(x, &vec![0.5; x.len()], 2.0) + scaled_dot(y, &[0.25, -1.5, 3.0], -0.5) + scaled_dot(&x[1..], &vec![1.5, 2.5], 1.0)
    }
    functions_of_f64(x, y) {
        let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let roots: Vec<T> = y.iter().copied().map(f64::abs).map(f64::tanh).collect::<Vec<f64>>();
        let total = roots.iter().sum::<f64>() + x.iter().map(|v| v * 2.0).product::<f64>();
        largest * f64::max(0.5, x[0]) + f64::powi(x[1] - y[0], 3) + total + f64::min(x[2], f64::max(y[0], 1.5))
    }
    functions_of_known_numbers(x, y) {
        let (two, list) = (2.0, [0.5, 1.5, 4.0]);
        let largest = list.iter().copied().fold(0.0, f64::max);
        let roots = list.iter().copied().map(f64::sqrt).sum::<f64>();
        x[0] * f64::sqrt(two) + y[0] * f64::max(two, 3.0) + x[1] * largest + y[1] * roots + x[2] * ramp(x).sum::<f64>()
    }
    remainders(x, y) {
        let mut turn = x[0] + 7.0;
        turn %= 2.5;
        for v in y {
            turn += *v;
            turn %= 2.0;
        }
        turn
    }
    parts_of_angles(x, y) {
        let mut total = 0.0;
        for k in 0..x.len() {
            let (s, c) = (k as f64 / x.len() as f64).sin_cos();
            total += c * x[k] + s * y[k] + s;
        }
        total
    }
    lists_by_a_closure(x, y) {
        let m: Array2<T> = Array2::from_shape_fn((x.len(), y.len()), |(i, j)| if i == j { 1.0 } else { 0.0 });
        let w: Vec<T> = (0..x.len()).map(|i| if i == 0 { 1.0 } else { -0.5 }).collect();
        m[[1, 1]] * x[1] + m[[0, 1]] * y[0] + w[0] * y[2] + w[1]
    }
    moments(x, y) {
        let (sum, squares) = x.iter().zip(y).fold((0.0, 0.0), |(s, q), (x, &y)| (s + x, q + y * y));
        squares - sum * sum * 0.5
    }
    counted_fold(x, y) {
        let (sum, count) = x.iter().fold((0.0, 0), |(s, k), v| (s + v * y[0], k + 1));
        sum / count as f64
    }
    pairs(x, y) {
        let mut pairs = vec![(0.0, 0.0); x.len()];
        for i in 0..x.len() {
            pairs[i].0 = x[i];
            pairs[i].1 = 2.0 * y[i];
        }
        let mut total = 0.0;
        for (a, b) in &pairs {
            total += a * b + a / 2.0;
        }
        total + pairs[0].1
    }
    ranked(x, y) {
        let mut all: Vec<(T, usize)> = Vec::new();
        for (i, &v) in x.iter().enumerate() {
            all.push((v * 2.0, i));
        }
        all.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal));
        let mut total = 0.0;
        for (rank, (v, at)) in all.iter().enumerate() {
            total += v * y[*at] * rank as f64;
        }
        total
    }
    fibonacci(x, y) {
        let (mut a, mut b) = (0.0, 1.0);
        for (x, y) in x.iter().zip(y) {
            (a, b) = (b * y, a + x);
        }
        a - b
    }
    tuple_of_sums(x, y) {
        let mut p = (0.0, 0, 1.0);
        for v in x {
            p.0 += v;
            p.1 += 1;
            p.2 *= y[0];
        }
        p.0 / p.1 as f64 + p.2
    }
    transfer(x, y) {
        let mut m = [[0.0; 2]; 2];
        for (v, w) in x.iter().zip(y) {
            m[0][1] += v;
            m[1][0] -= w * 0.5;
        }
        m[0][1] * m[1][0] - m[0][0]
    }
    table(x, y) {
        let n = x.len();
        let mut best = vec![vec![0.0; n]; n];
        for i in 1..n {
            for j in 1..n {
                best[i][j] = best[i - 1][j - 1] + x[i] * y[j];
            }
        }
        best[n - 1][n - 1]
    }
    references(x, y) {
        let mut total = x[0];
        for (a, b) in x.iter().zip(y) {
            total += a * b - a / b + (a - 1.0) * (2.0 + b) - -a;
            total *= b;
            total -= a;
        }
        total
    }
    sums(x, y) {
        let n = x.len() as f64;
        let mean = x.iter().sum::<T>() / n;
        let product: T = y.iter().product();
        let spread: T = x.iter().map(|v| (v - mean) * (v - mean)).sum();
        let steps: T = x.windows(2).map(|w| (w[1] - w[0]).abs()).sum();
        spread / n + product * steps
    }
    extremes(x, y) {
        let largest = x.iter().fold(f64::NEG_INFINITY, |a, v| a.max(*v));
        let least = x.iter().copied().reduce(|a, b| a.min(b)).unwrap();
        (largest - least) * y[0].clamp(-1.0, 1.0)
    }
    methods(x, y) {
        let mut total = 0.0;
        for v in x {
            let w = v.abs().max(0.5);
            if w.is_finite() && !w.is_nan() {
                total += w.ln() + w.powf(y[0].abs()) + w.ln_1p() * w.exp_m1() + w.powi(2) - v.min(0.0);
            }
        }
        total
    }
    weighted(x, y) {
        let mut total = 0.0;
        for (v, w) in x.iter().zip(WEIGHTS) {
            total += v * w;
        }
        for k in 0..3 {
            total += WEIGHTS[k] * y[k] / T::from(2.0);
        }
        total
    }
    mean_square(x, y) {
        x.iter().map(|v| v * v).sum::<T>() / 2.0 + y.iter().rev().map(|v| v * 0.5).sum::<T>() / y.len() as f64
    }
    best(x, y) {
        let mut best = (0.0, 0);
        for (i, &v) in x.iter().enumerate() {
            if v > best.0 {
                best = (v, i);
            }
        }
        best.0 * y[best.1]
    }
    assigned(x, y) {
        let n = x.len();
        let mut p = vec![(0.0, 1.0); n + 1];
        let mut m = [[0.0; 2]; 2];
        for i in 0..n {
            p[i + 1] = (p[i].0 + x[i], p[i].1 * 0.5 + y[i]);
            m = [[x[i], 1.0], m[0]];
        }
        p[n].0 - p[n].1 + m[0][0] * m[1][1]
    }
    points(x, y) {
        let mut p = Point { place: 0.0, speed: 1.0 };
        for (v, w) in x.iter().zip(y) {
            p.speed += v;
            p.place += 0.25 * p.speed;
            p = Point { speed: p.speed * w, ..p };
        }
        let end = Point { place: x[0] / 2.0, speed: 2.0 * y[0] };
        p.place * end.speed + end.place
    }
    closures(x, y) {
        let double = |v: T| v * 2.0;
        let at = |k: usize| x[k] * y[0];
        let cross = |a: (T, T), b: (T, T)| a.0 * b.1 - a.1 * b.0;
        if cross((x[0], x[1]), (1.0, 2.0)) <= 0.0 { double(2.0) + at(0) } else { 2.0 * at(1) - double(x[0]) }
    }
    matrices(x, y) {
        let mut rows: Vec<Vec<T>> = (0..2).map(|i| if i == 0 { x.to_vec() } else { y.to_vec() }).collect();
        for (i, row) in rows.iter_mut().enumerate() {
            row[i] += 0.5;
            row.swap(0, 1);
        }
        if rows[0][0] == 0.0 { 1.0 } else { rows[0][0] * rows[1][1] }
    }
    slices(x, y) {
        let mut total = 0.0;
        for w in x.windows(2) {
            if let [p, q] = w {
                total += (p - q) * 0.5;
            }
        }
        let [a, b, ..] = y else { return 0.0 };
        match x {
            [first, .., last] => total * a + 2.0 * first * b - last,
            _ => 1.0,
        }
    }
    splits(x, y) {
        let (head, rest) = x.split_first().unwrap();
        rest.iter().fold(*head, |a, v| a * 0.5 + v) * y.first().copied().unwrap_or(0.0)
    }
    scanned(x, y) {
        let running: T = x
            .iter()
            .scan(0.0, |s, v| {
                *s += v;
                Some(*s * 0.5)
            })
            .sum();
        running + y.iter().take_while(|v| **v > 0.0).fold(1.0, |a, v| a * v)
    }
    halved(x, y) {
        let mut s = x[2] * 8.0;
        let r = loop {
            s *= 0.5;
            if s < 1.0 {
                break s * 2.0;
            }
        };
        r * 3.0 + y[0]
    }
    floats(x, y) {
        let weights: Vec<f64> = (0..3).map(|i| 0.5 * i as f64).collect();
        let sum = weights.iter().sum::<f64>();
        let mut total = 0.0;
        for (v, w) in x.iter().zip(&weights) {
            total += v * w;
        }
        let k = (x.len() as f64).sqrt() as usize;
        let at = y.iter().position(|v| *v > 0.5).unwrap_or(0);
        weights.iter().rev().fold(0.0, |s, c| s * y[at] + c) + y[k] * sum + total
    }
    swapped(x, y) {
        let n = x.len();
        let mut before = vec![0.0; n];
        let mut now = vec![0.0; n];
        for &v in y {
            for j in 1..n {
                now[j] = before[j - 1] + v * x[j];
            }
            std::mem::swap(&mut before, &mut now);
        }
        before[n - 1] - std::mem::replace(&mut now[1], 0.5)
    }
    counted(x, y) {
        let positive = x.iter().fold(0.0, |c, v| if *v > 0.0 { c + 1.0 } else { c });
        let mut copies = [0.0; 3];
        copies.copy_from_slice(&y[..3]);
        positive * copies[0] / 2.0
    }
    largest(x, y) {
        let mut all: Vec<(T, usize)> = x.iter().copied().zip(0..).collect();
        all.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(std::cmp::Ordering::Equal));
        all.iter().take(2).map(|(v, _)| v).sum::<T>() * 0.5 * y[all[0].1]
    }
    early(x, y) {
        if x[0] > 100.0 {
            return 0.0;
        }
        let mut c = 0.0;
        for v in x {
            if v > &0.0 {
                c += 1.0;
            }
        }
        c * y[0]
    }
}

/// The sum of the elements with optional weights, times an optional number, and the sums of the rows of a matrix.
#[custom_op(
    name = "plain_cells::weighed",
    shape = (a: [.., m, n], weight: [.., n], times: [..]) -> [..] where m > 0, n > 0,
)]
fn weighed<T: Float>(a: ArrayView2<T>, weight: Option<&[T]>, times: Option<&T>) -> T {
    let mut total = a.row(0).sum() * 0.5;
    for row in a.rows() {
        for (j, v) in row.iter().enumerate() {
            let w = match weight {
                Some(weight) => weight[j],
                None => 1.0,
            };
            total += v * w;
        }
    }
    total * times.copied().unwrap_or(2.0) + times.map_or(0.0, |t| t * 3.0)
}

#[test]
fn optional_inputs_are_elements() -> Result<()> {
    let a = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], [2, 2])?;
    let (weight, times) = (Tensor::from_vec(vec![0.5, 2.0], [2])?, Tensor::from_vec(vec![4.0], [])?);
    assert_eq!(weighed::call(&a, None, None)?.to_vec::<f64>()?, [(1.5 + 10.0) * 2.0]);
    assert_eq!(weighed::call(&a, Some(&weight), Some(&times))?.to_vec::<f64>()?, [(1.5 + 14.0) * 4.0 + 12.0]);
    opcheck(&weighed::op(), &[]).into_result()
}

/// The mean and the sum of squares, where the largest element is, and whether it is positive.
#[custom_op(
    name = "plain_cells::described",
    shape = (x: [.., n]) -> (scaled: [.., n], mean: [..], at: [..], positive: [..]) where n > 0,
    dtype = (x: T) -> (T, T, i64, bool),
)]
fn described<T: Float>(x: &[T], scaled: &mut [T]) -> Result<(T, i64, bool)> {
    let mut at = 0;
    for i in 0..x.len() {
        scaled[i] = 2.0 * x[i];
        if x[i] > x[at] {
            at = i;
        }
    }
    if x.len() > 100 {
        return Err(Error::value("takes at most 100 elements"));
    }
    if x.len() == 1 {
        return Ok((0.0, 0, x[0] > 0.0));
    }
    Ok((x.iter().sum() / x.len(), at as i64, x[at] > 0.0))
}

#[test]
fn numbers_that_a_cell_returns_are_results() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, -2.0, 4.0, -1.0, -3.0, -2.0], [2, 3])?;
    let (scaled, mean, at, positive) = described::call(&x)?;
    assert_eq!(scaled.to_vec::<f64>()?, [2.0, -4.0, 8.0, -2.0, -6.0, -4.0]);
    assert_eq!(mean.to_vec::<f64>()?, [1.0, -2.0]);
    assert_eq!(at.to_vec::<i64>()?, [2, 0]);
    assert_eq!(positive.to_vec::<bool>()?, [true, false]);
    let long = Tensor::from_vec(vec![0.0; 101], [101])?;
    assert!(described::call(&long).is_err_and(|error| error.to_string().contains("at most 100")));
    opcheck(&described::op(), &[]).into_result()
}

/// The largest element. Only the gradient reads where it is.
#[custom_op(
    name = "plain_cells::largest",
    shape = (x: [.., n]) -> (out: [..], [save] place: [..]) where n > 0,
    backward = |d| { x: scatter(d.unsqueeze(-1), place.unsqueeze(-1), n) },
)]
fn largest<T: Float>(x: &[T]) -> (T, i64) {
    let mut at = 0;
    for i in 0..x.len() {
        if x[i] > x[at] {
            at = i;
        }
    }
    (x[at], at as i64)
}

#[test]
fn a_returned_number_may_be_saved() -> Result<()> {
    let x = Tensor::from_vec(vec![0.5, 3.0, -1.0, -2.0, -4.0, -1.0], [2, 3])?;
    assert_eq!(largest::call(&x)?.to_vec::<f64>()?, [3.0, -1.0]);
    opcheck(&largest::op(), &[]).into_result()
}

/// The mean, with `room` numbers of memory.
#[custom_op(name = "plain_cells::mean_with", shape = (x: [.., n]) -> [..] where n > 0)]
fn mean_with<T: Float>(x: &[T], room: usize) -> T {
    let mut sums = vec![0.0; room];
    for value in x {
        sums[0] += value;
    }
    sums[0] / x.len()
}

#[test]
fn a_list_that_is_too_large_is_an_error() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, 3.0], [2])?;
    assert_eq!(mean_with::call(&x, 4)?.to_vec::<f64>()?, [2.0]);
    for room in [1 << 50, usize::MAX] {
        let error = mean_with::call(&x, room).expect_err("there is no such memory").to_string();
        assert!(error.contains("cannot allocate"), "{error}");
    }
    Ok(())
}
