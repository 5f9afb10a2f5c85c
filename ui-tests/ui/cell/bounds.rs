use minitensor::prelude::*;

/// An order that complex numbers lack.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn order<T: Num>(x: &[T]) -> T {
    if x[0] > x[1] { x[0] } else { x[1] }
}

/// A root that integers lack.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn root<T: Real>(x: &[T]) -> T {
    x[0].sqrt()
}

/// A method of Rust's own numbers.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn sign<T: Float>(x: &[T]) -> T {
    x.iter().map(|v| v.signum()).sum()
}

/// Elements in a number of Rust.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn total<T: Float>(x: &[T]) -> T {
    let mut total: f64 = 0.0;
    for v in x {
        total += v;
    }
    x[0] * total
}

/// An error of Rust.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn fails<T: Float>(x: &[T]) -> Result<T, String> {
    x.first().copied().ok_or("empty".to_owned())
}

fn main() {}
