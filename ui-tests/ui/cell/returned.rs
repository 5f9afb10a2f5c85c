use minitensor::prelude::*;

/// A list.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn list<T: Float>(x: &[T]) -> Vec<T> {
    x.to_vec()
}

/// A number for the elements of a row.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn row<T: Float>(x: &[T]) -> T {
    x[0]
}

/// One number for two outputs.
#[custom_op(shape = (x: [.., n]) -> (a: [..], b: [..]))]
pub fn one_of_two<T: Float>(x: &[T]) -> T {
    x[0]
}

/// A size.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn size<T: Float>(x: &[T]) -> usize {
    x.len()
}

fn main() {}
