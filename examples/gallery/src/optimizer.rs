//! Steps of optimizers, which change their tensors in place.

use minitensor_plugin_sdk::prelude::*;

/// Lion: the sign of an interpolated momentum (Chen et al., 2023).
#[custom_op]
pub fn lion_step<T: Float>(
    p: &mut T,
    m: &mut T,
    g: T,
    lr: f64,
    #[default = 0.9] beta1: f64,
    #[default = 0.99] beta2: f64,
    #[default = 0.0] weight_decay: f64,
) {
    let direction = (beta1 * *m + (1.0 - beta1) * g).sign();
    *p -= lr * (direction + weight_decay * *p);
    *m = beta2 * *m + (1.0 - beta2) * g;
}

/// Adagrad: steps shrink with the sum of squared gradients (Duchi, Hazan and Singer, 2011).
#[custom_op]
pub fn adagrad_step<T: Float>(p: &mut T, total: &mut T, g: T, lr: f64, #[default = 1e-10] eps: f64) {
    *total += g * g;
    *p -= lr * g / ((*total).sqrt() + eps);
}

/// SignSGD: the sign of the gradient only (Bernstein et al., 2018).
#[custom_op]
pub fn sign_sgd_step<T: Float>(p: &mut T, g: T, lr: f64) {
    *p -= lr * g.sign();
}

/// RMSprop: the gradient over a moving root mean square (Tieleman and Hinton, 2012).
#[custom_op(where decay >= 0.0, decay <= 1.0)]
pub fn rmsprop_step<T: Float>(
    p: &mut T,
    v: &mut T,
    g: T,
    lr: f64,
    #[default = 0.99] decay: f64,
    #[default = 1e-8] eps: f64,
) {
    *v = decay * *v + (1.0 - decay) * g * g;
    *p -= lr * g / ((*v).sqrt() + eps);
}

/// Adadelta: steps in the units of the parameter, without a learning rate (Zeiler, 2012).
#[custom_op(where eps > 0.0, decay >= 0.0, decay <= 1.0)]
pub fn adadelta_step<T: Float>(
    p: &mut T,
    v: &mut T,
    u: &mut T,
    g: T,
    #[default = 0.9] decay: f64,
    #[default = 1e-6] eps: f64,
) {
    *v = decay * *v + (1.0 - decay) * g * g;
    let step = ((*u + eps) / (*v + eps)).sqrt() * g;
    *u = decay * *u + (1.0 - decay) * step * step;
    *p -= step;
}

/// The update of LAMB: a direction, scaled by the ratio of the lengths of parameter and direction (You et al., 2020).
#[custom_op(shape = (p: [.., n], direction: [.., n]) -> [.., n] where eps > 0.0)]
pub fn trust_ratio<R: Row>(p: R, direction: R, #[default = 1e-6] eps: f64) -> R {
    direction * ((p.dot(p) + eps) / (direction.dot(direction) + eps)).sqrt()
}

/// A gradient over Adafactor's estimate of its second moment, the product of the moments `row` and `column` over the mean
/// of the columns (Shazeer and Stern, 2018).
#[custom_op(shape = (g: [.., n], row: [..], column: [n]) -> [.., n] where eps > 0.0)]
pub fn adafactor_scale<R: Row>(g: R, row: R, column: R, #[default = 1e-12] eps: f64) -> R {
    g * (row * column / column.mean()).maximum(eps).rsqrt()
}
