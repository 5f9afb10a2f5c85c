//! Optimizer steps. Each modifies its tensors in place, in one pass over memory.

use minitensor::prelude::*;

/// One step of stochastic gradient descent: `v ← momentum·v + g`, `p ← p − lr·v` (with Nesterov's momentum
/// `p ← p − lr·(g + momentum·v)`); weight decay adds `weight_decay·p` to the gradient.
#[custom_op(where momentum >= 0.0, weight_decay >= 0.0)]
pub fn sgd_step<T: Float>(
    p: &mut T,
    v: &mut T,
    g: T,
    lr: f64,
    #[default = 0.0] momentum: f64,
    #[default = false] nesterov: bool,
    #[default = 0.0] weight_decay: f64,
) {
    let g = g + weight_decay * *p;
    *v = momentum * *v + g;
    let direction = if nesterov { g + momentum * *v } else { *v };
    *p -= lr * direction;
}

/// One step of Adam (Kingma and Ba, 2015). `correction1` and `correction2` are `1 − beta1ᵗ` and `1 − beta2ᵗ` at step
/// `t`. If `decoupled` is true, weight decay shrinks `p` itself (AdamW; Loshchilov and Hutter, 2019); otherwise it is
/// added to the gradient.
#[custom_op(
    where eps >= 0.0, weight_decay >= 0.0, correction1 > 0.0, correction2 > 0.0, beta1 >= 0.0, beta1 < 1.0, beta2 >= 0.0,
    beta2 < 1.0
)]
pub fn adam_step<T: Float>(
    p: &mut T,
    m: &mut T,
    v: &mut T,
    g: T,
    lr: f64,
    correction1: f64,
    correction2: f64,
    #[default = 0.9] beta1: f64,
    #[default = 0.999] beta2: f64,
    #[default = 1e-8] eps: f64,
    #[default = 0.0] weight_decay: f64,
    #[default = false] decoupled: bool,
) {
    let decay = weight_decay * *p;
    let g = if decoupled { g } else { g + decay };
    *m = beta1 * *m + (1.0 - beta1) * g;
    *v = beta2 * *v + (1.0 - beta2) * g * g;
    // m / correction1 / (√(v / correction2) + eps), with one division for each element.
    let step = (1.0 / correction1) * *m / ((1.0 / correction2.sqrt()) * (*v).sqrt() + eps);
    *p -= lr * (if decoupled { step + decay } else { step });
}
