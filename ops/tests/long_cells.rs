//! Gradients of long cells, which are computed in segments if there are several cells. They have the same bits as those of a single cell,
//! which is computed in another way.

use minitensor::autograd::{Options, grad};
use minitensor::prelude::*;
use minitensor_ops as _;

/// A filter with feedback from the element before and from one far before, and weights that all steps use.
#[custom_op(name = "long_cells::filtered", shape = (x: [.., n], w: [.., k]) -> (out: [.., n], last: [..]) where n > 0, k == 2)]
fn filtered<T: Float>(x: &[T], w: &[T], out: &mut [T], last: &mut T) {
    let mut h = x[0];
    for i in 0..x.len() {
        let far = if i >= 700 { out[i - 700] } else { T::zero() };
        h = h * w[0] + (x[i] - far * w[1]).tanh() * 0.5 - 0.0 * x[i];
        out[i] = h;
    }
    *last = h.square() + out[0];
}

/// The sum of products of neighbours, of which only one number is a result.
#[custom_op(name = "long_cells::energy", shape = (x: [.., n], scale: [n]) -> [..] where n > 0)]
fn energy<T: Float>(x: &[T], scale: &[T], out: &mut T) {
    let mut total = T::zero();
    for i in 1..x.len() {
        total += x[i] * x[i - 1] * scale[i];
    }
    *out = total;
}

fn sample(count: usize, phase: f64) -> Vec<f64> {
    (0..count).map(|at| ((at * 7 + 3) as f64 * 1.7 + phase).sin()).collect()
}

/// The gradients of `Σ weights · results` by all inputs.
fn gradients(f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor]) -> Result<Vec<Vec<f64>>> {
    let inputs: Vec<Tensor> = inputs.iter().map(|x| x.clone().with_requires_grad()).collect::<Result<_>>()?;
    let results = f(&inputs)?;
    let weights = |y: &Tensor| Tensor::from_vec(vec![0.75; y.shape().iter().product()], y.shape()).map(Some);
    let weights: Vec<Option<Tensor>> = results.iter().map(weights).collect::<Result<_>>()?;
    let all = grad(&results, &inputs, &weights, Options::default())?;
    all.into_iter().map(|g| g.expect("a gradient").to_vec::<f64>()).collect()
}

/// `Σ weights · results`.
fn weighted(f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor]) -> Result<f64> {
    let results = f(inputs)?.iter().map(Tensor::to_vec::<f64>).collect::<Result<Vec<_>>>()?;
    Ok(results.iter().flatten().sum::<f64>() * 0.75)
}

const CELLS: usize = 20;

#[test]
fn many_cells_have_the_gradients_of_each_cell() -> Result<()> {
    let f = |x: &[Tensor]| filtered::call(&x[0], &x[1]).map(|(out, last)| vec![out, last]);
    // About 8 steps for each element: one segment, several, and a last one of few steps.
    for n in [1, 900, 1100, 2049, 6000] {
        let (x, w) = (sample(CELLS * n, 0.0), sample(CELLS * 2, 1.0));
        let of = |x: &[f64], w: &[f64], cells: usize| -> Result<[Tensor; 2]> {
            Ok([Tensor::from_vec(x.to_vec(), [cells, n])?, Tensor::from_vec(w.to_vec(), [cells, 2])?])
        };
        let all = gradients(f, &of(&x, &w, CELLS)?)?;
        for (cell, (x, w)) in x.chunks(n).zip(w.chunks(2)).enumerate() {
            let one = gradients(f, &of(x, w, 1)?)?;
            assert_eq!(all[0][cell * n..][..n], one[0], "x of cell {cell} of {n} elements");
            assert_eq!(all[1][cell * 2..][..2], one[1], "w of cell {cell} of {n} elements");
        }
        // The derivative in one direction.
        let (v, step) = (sample(CELLS * n, 2.0), 1e-6);
        let moved = |by: f64| {
            let x: Vec<f64> = x.iter().zip(&v).map(|(x, v)| x + by * v).collect();
            weighted(f, &of(&x, &w, CELLS)?)
        };
        let (expected, found) =
            ((moved(step)? - moved(-step)?) / (2.0 * step), all[0].iter().zip(&v).map(|(g, v)| g * v).sum::<f64>());
        assert!((expected - found).abs() < 1e-6 * (1.0 + expected.abs()), "{n}: {found}, expected {expected}");
    }
    Ok(())
}

#[test]
fn an_input_that_all_cells_share_has_the_sum_of_their_gradients() -> Result<()> {
    let n = 5000;
    let f = |x: &[Tensor]| energy::call(&x[0], &x[1]).map(|y| vec![y]);
    let (x, scale) = (sample(CELLS * n, 0.0), sample(n, 1.0));
    let all = gradients(f, &[Tensor::from_vec(x.clone(), [CELLS, n])?, Tensor::from_vec(scale.clone(), [n])?])?;
    for (cell, row) in x.chunks(n).enumerate() {
        let y = |at: usize| if at == 0 || at >= n { 0.0 } else { scale[at] * 0.75 };
        let before = |at: usize| if at == 0 { 0.0 } else { row[at - 1] * y(at) };
        let after = |at: usize| if at + 1 == n { 0.0 } else { row[at + 1] * y(at + 1) };
        for at in 0..n {
            let (found, expected) = (all[0][cell * n + at], before(at) + after(at));
            assert!((found - expected).abs() < 1e-14, "x at {at} of cell {cell}: {found}, expected {expected}");
        }
    }
    for at in 0..n {
        let expected: f64 = x.chunks(n).map(|row| if at == 0 { 0.0 } else { row[at] * row[at - 1] * 0.75 }).sum();
        assert!((all[1][at] - expected).abs() < 1e-13, "scale at {at}: {}, expected {expected}", all[1][at]);
    }
    Ok(())
}
