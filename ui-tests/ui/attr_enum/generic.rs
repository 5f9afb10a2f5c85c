use minitensor::prelude::*;

#[derive(Clone, Copy, AttrEnum)]
pub enum Mode<const N: usize> {
    Fast,
}

fn main() {}
