use minitensor::prelude::*;

/// A sum of a series.
#[custom_op(tune = [terms = [8, 16]])]
pub fn series<T: Float>(x: T, terms: usize) -> T {
    x.powi(terms as i32)
}

fn main() {}
