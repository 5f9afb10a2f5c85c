use minitensor::prelude::*;

#[derive(Clone, Copy, AttrEnum)]
pub struct Mode;

fn main() {}
