//! Sigmoid curves in doubles.

use super::exp::{fused_mantissa, mantissa_less_one};
use crate::math::bits::{clamp, power_of_bits};
use crate::math::sigmoid::curves;

curves! { f64, fused_mantissa, mantissa_less_one, power_of_bits, bias 1023, bits 64, sigmoid 750.0, tanh 40.0 }
