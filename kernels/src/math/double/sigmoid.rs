//! Sigmoid curves in doubles.

use super::exp::{reduced, reduced_less_one};
use crate::math::binary::Binary64;
use crate::math::bits::{clamp, least, power_of_bits};
use crate::math::sigmoid::curves;

curves! {
    f64 Binary64, reduced, reduced_less_one, power_of_bits, bias 1023, bits 96, sigmoid 760.0, silu 1e250, tanh 40.0
}
