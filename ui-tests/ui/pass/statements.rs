//! Statements under a condition on data.

#![deny(warnings)]

use minitensor::prelude::*;

/// The larger, after a swap.
#[custom_op]
pub fn larger<T: Float>(mut x: T, mut y: T) -> T {
    if x < y { std::mem::swap(&mut x, &mut y) }
    x
}

/// An early result.
#[custom_op]
pub fn root<T: Float>(x: T) -> T {
    if x < 0.0 { return 0.0; } else { x.sqrt() }
}

/// Assignments in both branches, without semicolons.
#[custom_op]
pub fn limit<T: Float>(x: T) -> T {
    let mut y = x;
    if x > 1.0 { y = 1.0 } else { y += 1.0 }
    y
}

/// A loop that ends at another turn for each element.
#[custom_op]
pub fn halved<T: Float>(x: T, #[default = 60] limit: usize) -> (T, T::Mask) {
    let (mut y, mut ended) = (x.abs(), false);
    for _ in 0..limit {
        if y <= 1.0 {
            ended = true;
            break;
        }
        y *= 0.5;
    }
    (y, ended)
}

#[op_fn]
fn first_above<T: Float>(x: T, limits: [T; 3]) -> T {
    for limit in limits {
        let is_above = limit > x;
        if !is_above {
            continue;
        }
    }
    x
}

/// A helper with `continue`.
#[custom_op]
pub fn kept<T: Float>(x: T) -> T {
    first_above(x, [x, x + 1.0, x + 2.0])
}

/// Types of tuples, arrays and vectors, and loops over lists.
#[custom_op]
pub fn collected<T: Float>(x: T, taps: &[f64]) -> T {
    let (mut total, mut count): (T, usize) = (0.0, 0);
    let mut pair: [T; 2] = [0.0; 2];
    let mut many: Vec<T> = vec![1.0, x];
    let mut plain = [0.0; 2];
    pair[1] = 2.0 * x;
    many[0] = x + pair[0];
    plain[0] = x;
    for tap in taps {
        total += tap * x;
        count += 1;
    }
    total + pair[1] * many[0] + plain[0] + plain[1] + count
}

/// A fold over a range, and an optional tensor before a required attribute.
#[custom_op]
pub fn folded<T: Float>(x: T, weight: Option<T>, scale: f64) -> T {
    let series = (1..4).fold(0.0, |total, k| total + x / k);
    match weight {
        Some(weight) => scale * weight * series,
        None => scale * series,
    }
}

/// Folds and lists of plain numbers remain plain, also where names and types resemble those of elements.
#[custom_op]
pub fn plain<T: Float>(x: T, taps: &[f64], counts: &[i64], n: usize) -> T {
    let squares = (0..n).map(|x| x * x).sum::<usize>();
    let norm = taps.iter().map(|x| x * x).sum::<f64>();
    let count = (0..n).fold(0, |count, _| count + 1);
    let harmonic = (1..=n).fold(0.0, |sum, k| sum + 1.0 / k as f64);
    let power = (0..n).fold(1.0, |power, _| power * x);
    let line = (0..n).fold(x, |line, k| line + k * x);
    let horner = taps.iter().fold(x, |sum, tap| sum * x + *tap);
    let weighted = taps.iter().enumerate().fold(0.0, |sum, (i, tap)| sum + *tap * i as f64);
    let mut totals = vec![0i64; 2];
    counts.iter().for_each(|k| totals[0] += *k);
    let mut table = [[0i64; 2]; 2];
    for k in counts {
        table[1][0] += *k;
    }
    x * squares + norm + count + harmonic + power + line + horner - weighted + totals[0] + table[1][0]
}

fn main() {
    assert_eq!((larger(1.0, 2.0), root(-4.0), root(4.0), limit(0.5), limit(3.0)), (2.0, 0.0, 2.0, 1.5, 1.0));
    assert_eq!((halved(8.0, 60), halved(8.0, 2), kept(3.0)), ((1.0, true), (2.0, false), 3.0));
    assert_eq!((collected(2.0, &[0.5, 1.5]), folded(6.0, None, 2.0), folded(6.0, Some(0.5), 2.0)), (16.0, 22.0, 11.0));
    assert_eq!(folded::op().signature(), "folded(x, weight=None, *, scale)");
    assert_eq!(plain(2.0, &[1.0, 2.0], &[1, 2], 2), 2.0 + 5.0 + 2.0 + 1.5 + 4.0 + 4.0 + 12.0 - 2.0 + 3.0 + 3.0);
}
