use minitensor::prelude::*;

/// An op.
#[custom_op(shape = (x: [.., n]) -> [.., n], backward = none)]
pub fn op<T: Float>(x: &[T], out: &mut [T]) {
    let v = x.first().ok_or(Error::value("empty"))?;
    out[0] = *v;
}

fn main() {}
