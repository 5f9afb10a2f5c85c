use minitensor::prelude::*;

/// One step.
#[custom_op(backward = auto)]
pub fn step<T: Float>(p: &mut T, g: T, lr: f64) {
    *p = *p - g * lr;
}

fn main() {}
