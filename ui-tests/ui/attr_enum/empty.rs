use minitensor::prelude::*;

#[derive(Clone, Copy, AttrEnum)]
pub enum Mode {}

fn main() {}
