//! Row ops whose step is written in the body: `R::scan`. They are compared with loops, and with methods that have the same results.

use minitensor::autograd::{Options, grad};
use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops as _;

/// Exponential smoothing: `yᵢ = yᵢ₋₁ + a · (xᵢ − yᵢ₋₁)`.
#[custom_op(name = "scans::smooth", shape = (x: [.., n]) -> [.., n])]
fn smooth<R: Row>(x: R, #[default = 0.25] a: f64) -> R {
    R::scan(x, |before, x| before + a * (x - before))
}

/// The running mean and variance, by Welford's method.
#[custom_op(name = "scans::moments", shape = (x: [.., n]) -> (mean: [.., n], var: [.., n]), axis = -1)]
fn moments<R: Row>(x: R) -> (R, R) {
    let (count, mean, m2) = R::scan((1.0, x, 0.0), |(count, mean, m2), (one, x, _)| {
        let count = count + one;
        let distance = x - mean;
        let mean = mean + distance / count;
        (count, mean, m2 + distance * (x - mean))
    });
    (mean, m2 / count)
}

/// The log-likelihood of the states of a chain with two states, forwards (Rabiner, 1989). `stay` is the probability of no change.
#[custom_op(name = "scans::two_states", shape = (a: [.., n], b: [.., n], stay: [..]) -> [.., n])]
fn two_states<R: Row>(a: R, b: R, stay: R) -> R {
    let (same, other) = (stay.log(), (1.0 - stay).log());
    let (a, b) =
        R::scan((a, b), |(p, q), (a, b)| ((p + same).logaddexp(q + other) + a, (p + other).logaddexp(q + same) + b));
    a.logaddexp(b)
}

/// A sum that begins again where the row is negative or `reset` is true.
#[custom_op(name = "scans::segments", shape = (x: [.., n], reset: [.., n]) -> [.., n], dtype = (x: R, reset: bool) -> R)]
fn segments<R: Row>(x: R, reset: R::Mask) -> R {
    R::scan(x, |sum, x| if reset || x < 0.0 { x } else { sum + x })
}

/// A counter that saturates, in integers.
#[custom_op(name = "scans::saturating", shape = (x: [.., n]) -> [.., n])]
fn saturating<R: IntRow>(x: R, #[default = 10] limit: i64) -> R {
    R::scan(x, |sum, x| {
        let next = sum + x;
        if next > limit { limit } else { next }
    })
}

/// An oscillator with damping, by one step of Euler's method for each force.
#[custom_op(name = "scans::oscillator", shape = (force: [.., n]) -> [.., n])]
fn oscillator<R: Row>(force: R, #[default = 0.1] dt: f64) -> R {
    let (place, _) = R::scan((0.0, force * dt), |(place, speed), (_, push)| {
        let speed = speed + push - dt * (place.sin() + 0.3 * speed);
        (place + dt * speed, speed)
    });
    place
}

/// Numbers from −1 to 1 that do not repeat soon.
fn sample(rows: usize, n: usize, phase: f64) -> Result<(Vec<Vec<f64>>, Tensor)> {
    let number = |at: usize| ((at * 7 + 3) as f64 * 1.7 + phase).sin();
    let all: Vec<f64> = (0..rows * n).map(number).collect();
    Ok((all.chunks(n.max(1)).map(<[f64]>::to_vec).collect(), Tensor::from_vec(all, [rows, n])?))
}

/// A few rows are computed one after the other, and many short ones side by side.
const SHAPES: [[usize; 2]; 6] = [[1, 1], [1, 7], [3, 40], [2, 1000], [150, 12], [0, 5]];

/// Asserts that the rows of a result are close to those of a loop.
fn assert_rows(op: &str, y: &Tensor, expected: impl Iterator<Item = Vec<f64>>) -> Result<()> {
    let expected: Vec<f64> = expected.flatten().collect();
    let y = y.to_vec::<f64>()?;
    assert_eq!(y.len(), expected.len(), "{op}");
    for (at, (y, expected)) in y.iter().zip(expected).enumerate() {
        assert!((y - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{op} at {at}: {y}, expected {expected}");
    }
    Ok(())
}

#[test]
fn scans_pass_opcheck() -> Result<()> {
    for op in [smooth::op(), moments::op(), two_states::op(), segments::op(), saturating::op(), oscillator::op()] {
        opcheck(&op, &[]).into_result()?;
    }
    Ok(())
}

#[test]
fn scans_are_loops() -> Result<()> {
    for [rows, n] in SHAPES {
        let (x, tensor) = sample(rows, n, 0.0)?;
        let smoothed = x.iter().map(|x| {
            let mut y = x[0];
            x.iter()
                .enumerate()
                .map(|(i, x)| {
                    if i == 0 {
                        y
                    } else {
                        y += 0.25 * (x - y);
                        y
                    }
                })
                .collect()
        });
        assert_rows("smooth", &smooth::call(&tensor, 0.25)?, smoothed)?;
        let of_parts = |f: fn(&[f64]) -> f64| x.iter().map(move |x| (1..=n).map(|k| f(&x[..k])).collect::<Vec<f64>>());
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        let var = |x: &[f64]| {
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64
        };
        let (means, vars) = moments::call(&tensor, -1)?;
        assert_rows("mean", &means, of_parts(mean))?;
        assert_rows("var", &vars, of_parts(var))?;
        let swung = x.iter().map(|x| {
            let (mut place, mut speed) = (0.0f64, x[0] * 0.1);
            let mut all = vec![place];
            for force in &x[1..] {
                speed += force * 0.1 - 0.1 * (place.sin() + 0.3 * speed);
                place += 0.1 * speed;
                all.push(place);
            }
            all
        });
        assert_rows("oscillator", &oscillator::call(&tensor, 0.1)?, swung)?;
        let reset: Vec<bool> = (0..rows * n).map(|at| at % 5 == 3).collect();
        let summed = x.iter().zip(reset.chunks(n)).map(|(x, reset)| {
            let mut sum = x[0];
            let next = |(i, (x, reset)): (usize, (&f64, &bool))| {
                sum = if i == 0 || *reset || *x < 0.0 { *x } else { sum + x };
                sum
            };
            x.iter().zip(reset).enumerate().map(next).collect()
        });
        let reset = Tensor::from_vec(reset.clone(), [rows, n])?;
        assert_rows("segments", &segments::call(&tensor, &reset)?, summed)?;
    }
    Ok(())
}

#[test]
fn likelihoods_are_sums_over_all_paths() -> Result<()> {
    let (n, stay) = (6, 0.7f64);
    let ((a, tensor_a), (b, tensor_b)) = (sample(2, n, 0.0)?, sample(2, n, 1.0)?);
    let y = two_states::call(&tensor_a, &tensor_b, &Tensor::from_vec(vec![stay; 2], [2])?)?;
    let likelihood = |row: usize, length: usize| {
        let path = |path: usize| {
            let state = |i: usize| path >> i & 1;
            let log: f64 = (0..length).map(|i| if state(i) == 0 { a[row][i] } else { b[row][i] }).sum();
            let moves: f64 =
                (1..length).map(|i| if state(i) == state(i - 1) { stay.ln() } else { (1.0 - stay).ln() }).sum();
            (log + moves).exp()
        };
        (0..1 << length).map(path).sum::<f64>().ln()
    };
    assert_rows("two_states", &y, (0..2).map(|row| (1..=n).map(|length| likelihood(row, length)).collect()))
}

#[test]
fn scans_of_integers_are_exact() -> Result<()> {
    let x: Vec<i8> = (0..600).map(|i| (i * 37 % 23) as i8 - 9).collect();
    let y = saturating::call(&Tensor::from_vec(x.clone(), [20, 30])?, 10)?;
    let expected = x.chunks(30).flat_map(|x| {
        let mut sum = x[0];
        x.iter().enumerate().map(move |(i, x)| {
            sum = if i == 0 { *x } else { (sum + x).min(10) };
            sum
        })
    });
    assert_eq!(y.to_vec::<i8>()?, expected.collect::<Vec<i8>>());
    Ok(())
}

#[test]
fn scans_go_along_any_axis() -> Result<()> {
    let (rows, x) = sample(12, 7, 0.0)?;
    let columns: Vec<f64> = (0..7).flat_map(|j| rows.iter().map(move |row| row[j])).collect();
    let (down, _) = moments::call(&Tensor::from_vec(columns, [7, 12])?, 0)?;
    let (across, _) = moments::call(&x, -1)?;
    let across = across.to_vec::<f64>()?;
    let turned: Vec<f64> = (0..7).flat_map(|j| across.chunks(7).map(move |row| row[j])).collect();
    assert_eq!(down.to_vec::<f64>()?, turned);
    Ok(())
}

/// A filter with a coefficient for each position, which all rows share.
#[custom_op(name = "scans::filter", shape = (x: [.., n], a: [n]) -> [.., n])]
fn filter<R: Row>(x: R, a: R) -> R {
    R::scan(x, |before, x| a * before + x)
}

#[test]
fn a_row_that_all_rows_share_has_the_sum_of_their_gradients() -> Result<()> {
    for [rows, n] in [[3, 5], [40, 7], [300, 9]] {
        let (x, tensor) = sample(rows, n, 0.0)?;
        let (a, _) = sample(1, n, 1.0)?;
        let shared = Tensor::from_vec(a[0].clone(), [n])?.with_requires_grad()?;
        let y = filter::call(&tensor, &shared)?;
        let ones = Tensor::from_vec(vec![1.0; rows * n], [rows, n])?;
        let found = grad(&[y], &[shared], &[Some(ones)], Options::default())?;
        let mut expected = vec![0.0; n];
        for x in &x {
            let mut h = x.clone();
            (1..n).for_each(|i| h[i] += a[0][i] * h[i - 1]);
            let mut d = 1.0;
            for i in (1..n).rev() {
                expected[i] += d * h[i - 1];
                d = 1.0 + d * a[0][i];
            }
        }
        assert_rows("filter", found[0].as_ref().expect("a gradient"), std::iter::once(expected))?;
    }
    Ok(())
}

#[op_fn]
fn decayed<R: Row>(before: R, x: R) -> R {
    0.5 * before + x
}

/// A running sum that halves, and begins from `start`.
#[custom_op(name = "scans::from_start", shape = (x: [.., n], start: [..]) -> [.., n])]
pub fn from_start<R: Row>(x: R, start: R) -> R {
    R::scan(if x.position() == 0 { decayed(start, x) } else { x }, |before, x| decayed(before, x))
}

#[test]
fn a_scan_may_begin_from_a_value() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], [2, 2])?;
    let start = Tensor::from_vec(vec![8.0, -2.0], [2])?;
    assert_eq!(from_start::call(&x, &start)?.to_vec::<f64>()?, [5.0, 4.5, 2.0, 5.0]);
    opcheck(&from_start::op(), &[]).into_result()
}
