use minitensor::prelude::*;

#[derive(AttrEnum, Clone, Copy, Debug)]
pub enum Mode {
    Sum,
}

/// An op.
#[custom_op]
pub fn op<T: Float>(x: T, #[default = Mode::Max] m: Mode) -> T {
    x
}

fn main() {}
