//! Prices of options, and indicators of price series.

use minitensor_plugin_sdk::prelude::*;

/// The price of a European call (Black and Scholes, 1973). Its gradients are the Greeks.
#[custom_op]
pub fn black_scholes<T: Float>(spot: T, strike: T, time: T, rate: T, volatility: T) -> T {
    let deviation = volatility * time.sqrt();
    let forward = ((spot / strike).log() + rate * time) / deviation;
    // Beyond 40 deviations a probability is 0 or 1, also in the limit of no time or no volatility.
    let is_above = (forward + 0.5 * deviation).clip(-40.0, 40.0).normal_cdf();
    let is_paid = (forward - 0.5 * deviation).clip(-40.0, 40.0).normal_cdf();
    spot * is_above - strike * (-rate * time).exp() * is_paid
}

/// The volatility at which [`black_scholes()`] returns `price`, by some of Newton's steps (Manaster and Koehler, 1982).
#[custom_op(where tolerance > 0.0)]
pub fn implied_volatility<T: Float>(
    price: T,
    spot: T,
    strike: T,
    time: T,
    rate: T,
    #[default = 20] steps: usize,
    #[default = 1e-9] tolerance: f64,
) -> T {
    let root = time.sqrt();
    let forward = (spot / strike).log() + rate * time;
    let mut volatility = (2.0 * forward.abs()).sqrt().maximum(0.2 * root) / root;
    for _ in 0..steps {
        let error = black_scholes(spot, strike, time, rate, volatility) - price;
        let vega = spot * root * (forward / (volatility * root) + 0.5 * volatility * root).normal_pdf();
        volatility -= error / vega;
        if error.abs() < tolerance * spot {
            break;
        }
    }
    volatility
}

/// The price of an American put on a binomial tree (Cox, Ross and Rubinstein, 1979).
#[custom_op(shape = (spot: [..], strike: [..], time: [..], rate: [..], volatility: [..]) -> [..] where steps > 0)]
pub fn binomial_put<T: Float>(
    spot: &T,
    strike: &T,
    time: &T,
    rate: &T,
    volatility: &T,
    #[default = 32] steps: usize,
) -> T {
    let step: T = time / steps;
    let up: T = (volatility * step.sqrt()).exp();
    let growth: T = (rate * step).exp();
    let p: T = (growth - up.recip()) / (up - up.recip());
    let payoff = |ups: i64| (strike - spot * up.powi(ups)).maximum(0.0);
    let steps = steps as i64;
    let mut value: Vec<T> = (0..=steps).map(|i| payoff(2 * i - steps)).collect();
    for level in (0..steps).rev() {
        for i in 0..=level {
            let held = (p * value[i as usize + 1] + (1.0 - p) * value[i as usize]) / growth;
            value[i as usize] = held.maximum(payoff(2 * i - level));
        }
    }
    value[0]
}

/// The largest loss from a peak, as a part of the peak (Magdon-Ismail and Atiya, 2004).
#[custom_op(shape = (price: [.., n]) -> [..] where n > 0, axis = -1)]
pub fn max_drawdown<R: Row>(price: R) -> R {
    (1 - price / price.cummax()).max()
}

/// The relative strength index of prices, from moving averages of gains and losses (Wilder, 1978).
#[custom_op(shape = (price: [.., n]) -> [.., n] where period >= 1.0)]
pub fn rsi<R: Row>(price: R, #[default = 14.0] period: f64) -> R {
    let change = if price.position() == 0 { 0.0 } else { price - price.shift(1) };
    let gain = change.maximum(0).recurrence(1 - 1 / period);
    let loss = (-change).maximum(0).recurrence(1 - 1 / period);
    let total = gain + loss;
    if total == 0 { 50.0 } else { 100 * gain / total }
}

/// The mean excess return over its deviation (Sharpe, 1966).
#[custom_op(shape = (returns: [.., n]) -> [..] where n > 0, eps > 0.0, axis = -1)]
pub fn sharpe_ratio<R: Row>(returns: R, #[default = 0.0] risk_free: f64, #[default = 1e-12] eps: f64) -> R {
    (returns.mean() - risk_free) / (returns.var(0) + eps).sqrt()
}
