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

fn main() {
    assert_eq!((larger(1.0, 2.0), root(-4.0), root(4.0), limit(0.5), limit(3.0)), (2.0, 0.0, 2.0, 1.5, 1.0));
    assert_eq!((halved(8.0, 60), halved(8.0, 2), kept(3.0)), ((1.0, true), (2.0, false), 3.0));
}
