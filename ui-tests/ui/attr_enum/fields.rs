use minitensor::prelude::*;

#[derive(Clone, Copy, AttrEnum)]
pub enum Mode {
    Fast,
    Exact(usize),
    Slow { factor: f64 },
}

fn main() {}
