//! Parts and variants of attention.

use minitensor_plugin_sdk::prelude::*;

/// Softmax of a row of scores that are not masked.
#[op_fn]
fn softmax_where<R: Row>(keep: R::Mask, scores: R) -> R {
    let scores = if keep { scores } else { -R::infinity() };
    let e = (scores - scores.max().detach()).exp();
    e / e.sum()
}

/// Causal weights with a penalty that is linear in the distance from the query (ALiBi; Press, Smith and Lewis, 2022).
#[custom_op(shape = (scores: [.., n], query: [..], slope: [..]) -> [.., n])]
pub fn alibi_weights<R: Row>(scores: R, query: R::Index, slope: R) -> R {
    let distance = scores.position().at(query) - scores.position();
    softmax_where(distance >= 0, scores - slope * distance)
}

/// Weights of the keys at most `radius` positions from the query (Longformer; Beltagy, Peters and Cohan, 2020).
#[custom_op(shape = (scores: [.., n], query: [..]) -> [.., n])]
pub fn window_weights<R: Row>(scores: R, query: R::Index, #[default = 128] radius: usize) -> R {
    let distance = (scores.position().at(query) - scores.position()).abs();
    softmax_where(distance <= radius, scores)
}

/// Rotary position embedding: pairs of elements, rotated by angles in proportion to the position (Su et al., 2021).
#[custom_op(shape = (x: [.., n], position: [..]) -> [.., n] where base > 0.0)]
pub fn rotary<R: Row>(x: R, position: R, #[default = 10000.0] base: f64) -> R {
    let i = x.position();
    let is_even = i.remainder(2) == 0;
    let pair = (i / 2).floor();
    let angle = position * (-2 * pair / x.count() * base.ln()).exp();
    let partner = if is_even { -x.shift(-1) } else { x.shift(1) };
    x * angle.cos() + partner * angle.sin()
}

/// Attention in linear time: `φ(q)·(φ(k)ᵀ·v)`, normalized, where φ(x) = elu(x) + 1 (Katharopoulos et al., 2020).
#[custom_op(dtype = (query: T, key: T, value: T) -> T where T: Float)]
pub fn linear_attention(query: &Tensor, key: &Tensor, value: &Tensor) -> Result<Tensor> {
    let (query, key) = (query.elu() + 1, (key.elu() + 1).matrix_transpose());
    let total = key.sum(axis = -1, keepdims = true);
    Ok(query.matmul(key.matmul(value)) / query.matmul(total))
}

/// Causal linear attention of one head as a recurrence over its matrix of state (Katharopoulos et al., 2020).
#[custom_op(shape = (query: [.., n, d], key: [.., n, d], value: [.., n, m]) -> [.., n, m])]
pub fn causal_linear_attention<T: Float>(
    query: ArrayView2<T>,
    key: ArrayView2<T>,
    value: ArrayView2<T>,
    mut out: ArrayViewMut2<T>,
) {
    let (d, m) = (query.ncols(), value.ncols());
    let mut state = vec![T::zero(); d * m];
    for i in 0..query.nrows() {
        for b in 0..m {
            let mut read: T = 0.0;
            for a in 0..d {
                let cell = &mut state[a * m + b];
                *cell += key[[i, a]] * value[[i, b]];
                read += query[[i, a]] * *cell;
            }
            out[[i, b]] = read;
        }
    }
}
