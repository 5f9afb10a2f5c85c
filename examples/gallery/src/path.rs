//! Dynamic programs over paths.

use minitensor_plugin_sdk::prelude::*;

/// The negative logarithm of the sum of `e⁻ˣ`.
fn softmin<T: Float>(a: T, b: T, c: T) -> T {
    let least = a.minimum(b).minimum(c);
    least - ((least - a).exp() + (least - b).exp() + (least - c).exp()).log()
}

/// The soft-DTW distance of two sequences, from the distances `d` of their elements (Cuturi and Blondel, 2017).
#[custom_op(shape = (d: [.., m, n]) -> [..] where m > 0, n > 0)]
pub fn soft_dtw<T: Float>(d: ArrayView2<T>) -> T {
    let far: T = 1e4;
    let (m, n) = d.dim();
    let mut row = vec![far; n + 1];
    row[0] = 0.0;
    for i in 0..m {
        let mut diagonal = std::mem::replace(&mut row[0], far);
        for j in 0..n {
            let up = row[j + 1];
            row[j + 1] = d[[i, j]] + softmin(up, row[j], diagonal);
            diagonal = up;
        }
    }
    row[n]
}

/// The edit distance with costs of substitutions and of gaps, smoothed to have a gradient (Saigo et al., 2004).
#[custom_op(shape = (substitution: [.., m, n], gap: [..]) -> [..])]
pub fn soft_edit_distance<T: Float>(substitution: ArrayView2<T>, gap: &T) -> T {
    let (m, n) = substitution.dim();
    let mut row: Vec<T> = vec![0.0; n + 1];
    for j in 0..n {
        row[j + 1] = row[j] + gap;
    }
    for i in 0..m {
        let mut diagonal = row[0];
        row[0] = diagonal + gap;
        for j in 0..n {
            let up = row[j + 1];
            row[j + 1] = softmin(up + gap, row[j] + gap, diagonal + substitution[[i, j]]);
            diagonal = up;
        }
    }
    row[n]
}

/// The recursion over all sequences of labels. `join` joins the scores of all ways to a label.
fn over_labels<T: Float>(score: ArrayView2<T>, transition: ArrayView2<T>, join: fn(&[T]) -> T) -> T {
    let k = score.ncols();
    let mut joined = score.row(0).to_vec();
    for score in score.outer_iter().skip(1) {
        let ways = |to: usize| (0..k).map(|from| joined[from] + transition[[from, to]]).collect::<Vec<T>>();
        joined = (0..k).map(|to| score[to] + join(&ways(to))).collect();
    }
    join(&joined)
}

/// The logarithm of the sum over all sequences of labels of a conditional random field (Lafferty et al., 2001). Its
/// gradient is the marginal probabilities.
#[custom_op(shape = (score: [.., n, k], transition: [k, k]) -> [..] where n > 0, k > 0)]
pub fn crf_partition<T: Float>(score: ArrayView2<T>, transition: ArrayView2<T>) -> T {
    over_labels(score, transition, log_sum)
}

/// The score of the best sequence of labels (Viterbi, 1967). Its gradient marks this sequence.
#[custom_op(shape = (score: [.., n, k], transition: [k, k]) -> [..] where n > 0, k > 0)]
pub fn viterbi<T: Float>(score: ArrayView2<T>, transition: ArrayView2<T>) -> T {
    over_labels(score, transition, largest)
}

/// Connectionist temporal classification: the loss of a sequence of labels, aligned in any way, with 0 as the blank
/// (Graves et al., 2006).
#[custom_op(shape = (log_p: [.., n, k], label: [.., m]) -> [..] where n > 0, k > 0)]
pub fn ctc<T: Float>(log_p: ArrayView2<T>, label: &[i64]) -> Result<T> {
    let (n, k) = log_p.dim();
    if let Some(wrong) = label.iter().find(|l| !(1..k as i64).contains(l)) {
        return Err(Error::index(format!("takes labels from 1 to {}, got {wrong}", k - 1)));
    }
    let far: T = -1e4;
    let states = 2 * label.len() + 1;
    let label_of = |state: usize| if state.is_multiple_of(2) { 0 } else { label[state / 2] as usize };
    let mut alpha = vec![far; states];
    for state in 0..states.min(2) {
        alpha[state] = log_p[[0, label_of(state)]];
    }
    for i in 1..n {
        for state in (0..states).rev() {
            let step = if state >= 1 { alpha[state - 1] } else { far };
            let may_skip = state >= 3 && label_of(state) != 0 && label_of(state) != label_of(state - 2);
            let skip = if may_skip { alpha[state - 2] } else { far };
            alpha[state] = log_p[[i, label_of(state)]] - softmin(-alpha[state], -step, -skip);
        }
    }
    Ok(-log_sum(&alpha[states.saturating_sub(2)..]))
}

/// The means of a Kalman filter of a random walk, from its variance and that of the measurements (Kalman, 1960).
#[custom_op(shape = (z: [.., n], process: [..], noise: [..]) -> [.., n])]
pub fn kalman<T: Float>(z: &[T], process: &T, noise: &T, out: &mut [T]) {
    let (mut mean, mut variance) = (T::zero(), T::one());
    for (out, z) in out.iter_mut().zip(z) {
        variance += *process;
        let gain: T = variance / (variance + *noise);
        mean = mean + gain * (*z - mean);
        variance = (1.0 - gain) * variance;
        *out = mean;
    }
}

/// The largest element.
fn largest<T: Float>(x: &[T]) -> T {
    x[1..].iter().fold(x[0], |a, b| a.maximum(*b))
}

/// The logarithm of the sum of `eˣ`.
fn log_sum<T: Float>(x: &[T]) -> T {
    let top = largest(x);
    top + x.iter().fold(T::zero(), |total, x| total + (*x - top).exp()).log()
}
