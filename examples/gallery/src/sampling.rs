//! Distributions over the elements of a row.

use minitensor_plugin_sdk::prelude::*;

/// The softmax of a row at a temperature.
#[op_fn]
fn softmax<R: Row>(x: R, temperature: f64) -> R {
    let e = ((x - x.max().detach()) / temperature).exp();
    e / e.sum()
}

/// A sparse softmax: the projection onto the probability simplex (Martins and Astudillo, 2016).
#[custom_op(shape = (x: [.., n]) -> [.., n], axis = -1)]
pub fn sparsemax<R: Row>(x: R) -> R {
    let z = -(-x).sort();
    let rank = z.position() + 1;
    let support = if 1 + rank * z > z.cumsum() { 1.0 } else { 0.0 };
    (x - ((z * support).sum() - 1) / support.sum()).maximum(0)
}

/// The 1.5-entmax, between softmax and sparsemax (Peters, Niculae and Martins, 2019).
#[custom_op(shape = (x: [.., n]) -> [.., n], axis = -1)]
pub fn entmax15<R: Row>(x: R) -> R {
    let x = (x - x.max().detach()) / 2;
    let z = -(-x).sort();
    let rank = z.position() + 1;
    let mean = z.cumsum() / rank;
    let spread = z.square().cumsum() - rank * mean.square();
    let threshold = mean - ((1 - spread) / rank).maximum(0).sqrt();
    let size = (if threshold <= z { 1.0 } else { 0.0 }).sum();
    (x - threshold.take(size - 1)).maximum(0).square()
}

/// Softmax of a row that sees the positions up to `last` only, as in a decoder (Vaswani et al., 2017).
#[custom_op(shape = (x: [.., n], last: [..]) -> [.., n] where temperature > 0.0)]
pub fn causal_softmax<R: Row>(x: R, last: R::Index, #[default = 1.0] temperature: f64) -> R {
    let x = if x.position() > x.position().at(last) { -R::infinity() } else { x };
    softmax(x, temperature)
}

/// Softmax of logits with Gumbel noise from uniform numbers: a differentiable sample (Jang, Gu and Poole, 2017).
#[custom_op(shape = (logits: [.., n], uniform: [.., n]) -> [.., n] where temperature > 0.0)]
pub fn gumbel_softmax<R: Row>(logits: R, uniform: R, #[default = 1.0] temperature: f64) -> R {
    let tiny = 2f64.powi(-20);
    let uniform = uniform.clip(tiny, 1.0 - tiny);
    softmax(logits - (-uniform.log()).log(), temperature)
}

/// The `k` largest elements; the others are 0. Equal elements stay together.
#[custom_op(shape = (x: [.., n]) -> [.., n] where k > 0, k <= n)]
pub fn top_k_mask<R: Row>(x: R, k: usize) -> R {
    let least = x.sort().take(x.count() - k);
    if x < least { 0.0 } else { x }
}

/// Nucleus sampling: which of the probabilities `p` form the smallest set with a sum of at least `mass`
/// (Holtzman et al., 2020).
#[custom_op(shape = (p: [.., n]) -> [.., n] where mass > 0.0, mass <= 1.0)]
pub fn nucleus<R: Row>(p: R, #[default = 0.9] mass: f64) -> R::Mask {
    let order = (-p).argsort();
    let sorted = p.take(order);
    let before = (sorted.cumsum() - sorted).put(order);
    before < mass
}
