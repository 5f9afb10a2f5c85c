//! Logarithms of probability densities.

use std::f64::consts::{PI, TAU};

use minitensor_plugin_sdk::prelude::*;

/// Student's distribution with `freedom` degrees of freedom (Student, 1908).
#[custom_op]
pub fn student_t_log_pdf<T: Float>(x: T, freedom: T) -> T {
    let half = 0.5 * (freedom + 1.0);
    half.lgamma() - (0.5 * freedom).lgamma() - 0.5 * (PI * freedom).log() - half * (x.square() / freedom).log1p()
}

/// The distribution of the largest of many (Gumbel, 1935).
#[custom_op]
pub fn gumbel_log_pdf<T: Float>(x: T, location: T, scale: T) -> T {
    let z = (x - location) / scale;
    -z - (-z).exp() - scale.log()
}

/// The logarithm of the Bessel function I₀, by its trapezoidal sum over angles.
#[op_fn]
fn log_bessel<T: Float>(x: T, points: usize) -> T {
    let mut total: T = 0.0;
    for i in 0..points {
        let angle = TAU * (i as f64 + 0.5) / points as f64;
        total += (x * (angle.cos() - 1.0)).exp();
    }
    x + (total / points).log()
}

/// The normal distribution on a circle (von Mises, 1918). Its integral is a sum over `points` angles.
#[custom_op(where points > 0)]
pub fn von_mises_log_pdf<T: Float>(angle: T, mean: T, concentration: T, #[default = 32] points: usize) -> T {
    concentration * (angle - mean).cos() - log_bessel(concentration, points) - TAU.ln()
}

/// The gamma distribution with a shape and a rate.
#[custom_op]
pub fn gamma_log_pdf<T: Float>(x: T, shape: T, rate: T) -> T {
    shape * rate.log() + (shape - 1.0) * x.log() - rate * x - shape.lgamma()
}

/// The beta distribution on [0, 1].
#[custom_op]
pub fn beta_log_pdf<T: Float>(x: T, a: T, b: T) -> T {
    (a - 1.0) * x.log() + (b - 1.0) * (-x).log1p() + (a + b).lgamma() - a.lgamma() - b.lgamma()
}

/// The distribution of the ratio of two normal numbers (Cauchy, 1853).
#[custom_op]
pub fn cauchy_log_pdf<T: Float>(x: T, location: T, scale: T) -> T {
    -(PI * scale).log() - ((x - location) / scale).square().log1p()
}

/// The logistic distribution, whose distribution function is a sigmoid (Verhulst, 1845).
#[custom_op]
pub fn logistic_log_pdf<T: Float>(x: T, location: T, scale: T) -> T {
    let z = (x - location) / scale;
    z.log_sigmoid() + (-z).log_sigmoid() - scale.log()
}

/// The number of failures before `successes` successes, as a log-probability (Greenwood and Yule, 1920).
#[custom_op]
pub fn negative_binomial_log_pmf<T: Float>(failures: T, successes: T, logit: T) -> T {
    let ways = (failures + successes).lgamma() - (failures + 1.0).lgamma() - successes.lgamma();
    ways + successes * logit.log_sigmoid() + failures * (-logit).log_sigmoid()
}
