use minitensor::prelude::*;

/// One of three.
#[custom_op]
pub fn pick<T: Num, U: Num, V: Num>(x: T, y: U, z: V) -> T {
    if y == 0.into() { x } else { -x }
}

fn main() {}
