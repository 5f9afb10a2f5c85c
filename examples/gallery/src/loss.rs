//! Losses for training.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

use minitensor_plugin_sdk::prelude::*;

/// The focal loss of a logit for a label in [0, 1] (Lin et al., 2017).
#[custom_op(where focus >= 0.0)]
pub fn focal_loss<T: Float>(logit: T, label: T, #[default = 0.25] alpha: f64, #[default = 2.0] focus: f64) -> T {
    let positive = alpha * label * (focus * (-logit).log_sigmoid()).exp() * (-logit).softplus();
    let negative = (1.0 - alpha) * (1.0 - label) * (focus * logit.log_sigmoid()).exp() * logit.softplus();
    positive + negative
}

/// The quantile or pinball loss (Koenker and Bassett, 1978).
#[custom_op(where quantile > 0.0, quantile < 1.0)]
pub fn pinball_loss<T: Float>(prediction: T, target: T, #[default = 0.5] quantile: f64) -> T {
    let error = target - prediction;
    (quantile * error).maximum((quantile - 1.0) * error)
}

/// `ln(cosh(prediction − target))`, without overflow.
#[custom_op]
pub fn log_cosh<T: Float>(prediction: T, target: T) -> T {
    let error = (prediction - target).abs();
    error + (-2.0 * error).exp().log1p() - LN_2
}

/// The wing loss of landmarks: logarithmic within `width`, linear beyond (Feng et al., 2018).
#[custom_op(where width > 0.0, curvature > 0.0)]
pub fn wing_loss<T: Float>(
    prediction: T,
    target: T,
    #[default = 10.0] width: f64,
    #[default = 2.0] curvature: f64,
) -> T {
    let error = (prediction - target).abs();
    let near = width * (error / curvature).log1p();
    let step = width - width * (width / curvature).log1p();
    if error < width { near } else { error + step }
}

/// The general robust loss with shape `alpha`, such as 1 for pseudo-Huber and −2 for Geman-McClure (Barron, 2019).
#[custom_op(where scale > 0.0)]
pub fn barron_loss<T: Float>(x: T, #[default = 1.0] alpha: f64, #[default = 1.0] scale: f64) -> T {
    let z = (x / scale).square();
    if alpha == 2.0 {
        0.5 * z
    } else if alpha == 0.0 {
        (0.5 * z).log1p()
    } else {
        let b = (alpha - 2.0).abs();
        b / alpha * (0.5 * alpha * (z / b).log1p()).exp_m1()
    }
}

/// The negative log-likelihood of deep evidential regression (Amini et al., 2020): that of a Student-t distribution.
#[custom_op]
pub fn evidential_loss<T: Float>(target: T, mean: T, evidence: T, alpha: T, beta: T) -> T {
    let omega = 2.0 * beta * (1.0 + evidence);
    let error = (target - mean).square() * evidence / omega;
    0.5 * (PI * omega / evidence).log() + (alpha + 0.5) * error.log1p() + alpha.lgamma() - (alpha + 0.5).lgamma()
}

/// The continuous ranked probability score of a normal distribution (Gneiting et al., 2005).
#[custom_op]
pub fn normal_crps<T: Float>(mean: T, deviation: T, target: T) -> T {
    let z = (target - mean) / deviation;
    deviation * (z * (z * FRAC_1_SQRT_2).erf() + 2.0 * z.normal_pdf() - PI.powf(-0.5))
}

/// One minus the soft Dice coefficient of probabilities and labels (Milletari, Navab and Ahmadi, 2016).
#[custom_op(shape = (p: [.., n], label: [.., n]) -> [..] where smooth > 0.0)]
pub fn dice_loss<R: Row>(p: R, label: R, #[default = 1.0] smooth: f64) -> R {
    1 - (2 * p.dot(label) + smooth) / (p.dot(p) + label.dot(label) + smooth)
}

/// One minus the Tversky index, with weights for false positives and false negatives (Salehi et al., 2017).
#[custom_op(shape = (p: [.., n], label: [.., n]) -> [..] where smooth > 0.0)]
pub fn tversky_loss<R: Row>(
    p: R,
    label: R,
    #[default = 0.3] false_positive: f64,
    #[default = 0.7] false_negative: f64,
    #[default = 1.0] smooth: f64,
) -> R {
    let hit = p.dot(label);
    let wrong = false_positive * p.dot(1 - label) + false_negative * label.dot(1 - p);
    1 - (hit + smooth) / (hit + wrong + smooth)
}

/// Cross-entropy plus the first term of its Taylor series, `epsilon · (1 − p)` (Leng et al., 2022).
#[custom_op(shape = (logits: [.., n], target: [..]) -> [..])]
pub fn poly1_loss<R: Row>(logits: R, target: R::Index, #[default = 1.0] epsilon: f64) -> R {
    let log_p = (logits - logits.logsumexp()).at(target);
    epsilon * (1 - log_p.exp()) - log_p
}

/// Cross-entropy with the target distribution `(1 − smoothing) · one-hot + smoothing / n` (Szegedy et al., 2016).
#[custom_op(shape = (logits: [.., n], target: [..]) -> [..] where smoothing >= 0.0, smoothing <= 1.0)]
pub fn smoothed_cross_entropy<R: Row>(logits: R, target: R::Index, #[default = 0.1] smoothing: f64) -> R {
    let log_p = logits - logits.logsumexp();
    -(1 - smoothing) * log_p.at(target) - smoothing * log_p.mean()
}

/// The triplet loss of embeddings: the margin by which the positive is not closer than the negative (Schroff et al., 2015).
#[custom_op(shape = (anchor: [.., n], positive: [.., n], negative: [.., n]) -> [..])]
pub fn triplet_loss<R: Row>(anchor: R, positive: R, negative: R, #[default = 1.0] margin: f64) -> R {
    let distance = |x: R| (anchor - x).square().sum();
    (distance(positive) - distance(negative) + margin).maximum(0)
}

/// The contrastive loss of two embeddings whose likeness is 1 or 0 (Hadsell, Chopra and LeCun, 2006).
#[custom_op(shape = (x: [.., n], y: [.., n], likeness: [..]) -> [..] where margin > 0.0, eps > 0.0)]
pub fn contrastive_loss<R: Row>(
    x: R,
    y: R,
    likeness: R,
    #[default = 1.0] margin: f64,
    #[default = 1e-12] eps: f64,
) -> R {
    let squared = (x - y).square().sum();
    let near = (margin - (squared + eps).sqrt()).maximum(0);
    0.5 * (likeness * squared + (1 - likeness) * near.square())
}
