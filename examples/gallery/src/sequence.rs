//! Recurrences along a sequence, as in reinforcement learning and state space models.

use minitensor_plugin_sdk::prelude::*;

/// The exponential moving average `yᵢ = decay·yᵢ₋₁ + (1 − decay)·xᵢ`.
#[custom_op(shape = (x: [.., n]) -> [.., n] where decay >= 0.0, decay <= 1.0, axis = -1)]
pub fn moving_average<R: Row>(x: R, #[default = 0.9] decay: f64) -> R {
    ((1 - decay) * x).recurrence(decay)
}

/// The return `Rᵢ = rᵢ + gamma·Rᵢ₊₁` of rewards (Sutton and Barto, 1998).
#[custom_op(shape = (reward: [.., n]) -> [.., n])]
pub fn discounted_return<R: Row>(reward: R, #[default = 0.99] gamma: f64) -> R {
    reward.reverse_recurrence(gamma)
}

/// The λ-return: a mean of all n-step returns, from rewards and the values of the next states (Sutton, 1988).
#[custom_op(shape = (reward: [.., n], next_value: [.., n]) -> [.., n])]
pub fn lambda_return<R: Row>(
    reward: R,
    next_value: R,
    #[default = 0.99] gamma: f64,
    #[default = 0.95] decay: f64,
) -> R {
    let is_last = next_value.position() == next_value.count() - 1;
    let bootstrap = if is_last { next_value } else { (1 - decay) * next_value };
    (reward + gamma * bootstrap).reverse_recurrence(gamma * decay)
}

/// Generalized advantages of rewards and values (Schulman et al., 2016).
#[custom_op(shape = (reward: [.., n], value: [.., n], continues: [.., n]) -> [.., n])]
pub fn advantages<R: Row>(
    reward: R,
    value: R,
    continues: R,
    #[default = 0.99] gamma: f64,
    #[default = 0.95] decay: f64,
) -> R {
    let error = reward + gamma * value.shift(-1) * continues - value;
    error.reverse_recurrence(gamma * decay * continues)
}

/// V-trace targets with importance weights that are clipped at 1 (Espeholt et al., 2018).
#[custom_op(shape = (reward: [.., n], value: [.., n], next_value: [.., n], log_ratio: [.., n]) -> [.., n])]
pub fn vtrace<R: Row>(reward: R, value: R, next_value: R, log_ratio: R, #[default = 0.99] gamma: f64) -> R {
    let weight = log_ratio.exp().minimum(1);
    let error = weight * (reward + gamma * next_value - value);
    value + error.reverse_recurrence(gamma * weight)
}

/// A diagonal selective state space: `hᵢ = exp(−stepᵢ·rate)·hᵢ₋₁ + stepᵢ·xᵢ` (Gu and Dao, 2023).
#[custom_op(shape = (x: [.., n], step: [.., n], rate: [..]) -> [.., n])]
pub fn selective_scan<R: Row>(x: R, step: R, rate: R) -> R {
    (step * x).recurrence((-step * rate).exp())
}

/// The attention of RWKV without a maximum: weights `exp(keyⱼ − decay·(i − j))` of the past values (Peng et al., 2023).
#[custom_op(shape = (key: [.., n], value: [.., n], decay: [..]) -> [.., n])]
pub fn wkv<R: Row>(key: R, value: R, decay: R) -> R {
    let weight = (key - key.max().detach()).exp();
    let keep = (-decay).exp();
    (weight * value).recurrence(keep) / weight.recurrence(keep)
}
