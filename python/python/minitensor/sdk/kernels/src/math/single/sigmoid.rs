//! Sigmoid curves in singles.

use super::bits::power_of_two;
use super::exp::{mantissa, mantissa_less_one};
use crate::math::bits::clamp;
use crate::math::sigmoid::curves;

curves! { f32, mantissa, mantissa_less_one, power_of_two, bias 127, bits 32, sigmoid 104.0, tanh 20.0 }
