//! Sigmoid curves in singles.

use super::bits::power_of_two;
use super::exp::{mantissa_less_one, reduced};
use crate::math::binary::Binary32;
use crate::math::bits::{clamp, least};
use crate::math::sigmoid::curves;

curves! {
    f32 Binary32, reduced, mantissa_less_one, power_of_two, bias 127, bits 32, sigmoid 110.0, silu 1e21, tanh 20.0
}
