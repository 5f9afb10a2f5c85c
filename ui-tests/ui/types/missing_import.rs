use minitensor::custom_op;

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T) -> T {
    x.exp()
}

fn main() {}
