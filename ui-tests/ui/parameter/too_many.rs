use minitensor::prelude::*;

/// A sum.
#[custom_op]
#[rustfmt::skip]
pub fn sum13<T: Num>(a: T, b: T, c: T, d: T, e: T, f: T, g: T, h: T, i: T, j: T, k: T, l: T, m: T) -> T {
    a + b + c + d + e + f + g + h + i + j + k + l + m
}

fn main() {}
