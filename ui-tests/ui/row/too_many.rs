use minitensor::prelude::*;

/// Adds nine rows up.
#[custom_op(shape = (a: [.., n], b: [.., n], c: [.., n], d: [.., n], e: [.., n], f: [.., n], g: [.., n], h: [.., n], i: [.., n]) -> [.., n])]
pub fn nine<R: Row>(a: R, b: R, c: R, d: R, e: R, f: R, g: R, h: R, i: R) -> R {
    a + b + c + d + e + f + g + h + i
}

fn main() {}
