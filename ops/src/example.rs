//! Example ops for demonstrations and measurements of definitions; models don't need them.

use minitensor::prelude::*;

/// `tanh(x·y + z)·σ(y) − z/2`: a chain of functions that is computed in one pass over memory.
#[custom_op(name = "example::chain")]
pub fn chain<T: Float>(x: T, y: T, z: T) -> T {
    (x * y + z).tanh() * y.sigmoid() - 0.5 * z
}

/// The entropy `−Σ p ln p` of the softmax of every row.
#[custom_op(name = "example::entropy", shape = (logits: [.., n]) -> [..], axis = -1)]
pub fn entropy<R: Row>(logits: R) -> R {
    let log_p = logits - logits.logsumexp();
    let p = log_p.exp();
    -(if p > 0.0 { p * log_p } else { 0.0 }).sum()
}
