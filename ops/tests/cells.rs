//! Derived gradients of cell ops agree with finite differences and with formulas.

use minitensor::autograd::{Options, grad};
use minitensor::op::Arg;
use minitensor::prelude::*;
use minitensor::testing::{GradCheck, Sample, gradcheck, opcheck};
use minitensor::{OpRef, dispatch};
use minitensor_ops as _;

/// `hᵢ = aᵢ · hᵢ₋₁ + bᵢ`.
#[custom_op(shape = (a: [.., n], b: [.., n]) -> [.., n])]
pub fn recurrence<T: Float>(a: &[T], b: &[T], out: &mut [T]) {
    let mut h = T::zero();
    for i in 0..a.len() {
        h = a[i] * h + b[i];
        out[i] = h;
    }
}

/// The same with its gradient as a formula, which calls the op on reversed rows.
#[custom_op(
    shape = (a: [.., n], b: [.., n]) -> [.., n],
    backward = |d| {
        let g = flip(recurrence(flip(roll(a, -1, -1), -1), flip(d, -1)), -1);
        a: g * crop(pad(out, [1, 0]), [0, 1]),
        b: g,
    },
)]
pub fn recurrence_by_hand<T: Float>(a: &[T], b: &[T], out: &mut [T]) {
    recurrence(a, b, out);
}

fn softmin<T: Float>(a: T, b: T, c: T) -> T {
    let least = a.minimum(b).minimum(c);
    least - ((least - a).exp() + (least - b).exp() + (least - c).exp()).log()
}

/// The soft-DTW distance of two sequences, from the matrix of the distances of their elements.
#[custom_op(shape = (d: [.., m, n]) -> [..] where m > 0, n > 0)]
pub fn soft_dtw<T: Float>(d: ArrayView2<T>, out: &mut T) {
    let far: T = minitensor::kernels::lit(1e4);
    let (m, n) = d.dim();
    let mut row = vec![far; n + 1];
    row[0] = T::zero();
    for i in 0..m {
        let mut diagonal = row[0];
        row[0] = far;
        for j in 0..n {
            let up = row[j + 1];
            row[j + 1] = d[[i, j]] + softmin(up, row[j], diagonal);
            diagonal = up;
        }
    }
    *out = row[n];
}

const WINDOW: [f64; 3] = [0.25, 0.5, 0.25];

/// A smoothed row in units of its size, from constants and functions of numbers.
#[custom_op(shape = (x: [.., n]) -> [.., n] where n > 2)]
pub fn smoothed<T: Float>(x: &[T], out: &mut [T]) {
    use std::f64::consts::FRAC_1_SQRT_2;
    let size = (x.len() as f64).sqrt();
    for i in 0..x.len() {
        let mut sum: T = 0.0;
        for k in 0..3 {
            sum += x[(i + k) % x.len()] * WINDOW[k];
        }
        out[i] = sum * FRAC_1_SQRT_2 / size;
    }
}

/// The logarithm of the sum over all label sequences of a linear-chain CRF.
#[custom_op(shape = (emission: [.., n, k], transition: [k, k]) -> [..] where n > 0, k > 0)]
pub fn crf_forward<T: Float>(emission: ArrayView2<T>, transition: ArrayView2<T>, out: &mut T) {
    let (n, k) = emission.dim();
    let log_sum = |terms: &[T]| terms.iter().skip(1).fold(terms[0], |sum, term| sum.logaddexp(*term));
    let mut alpha: Vec<T> = (0..k).map(|j| emission[[0, j]]).collect();
    for i in 1..n {
        let next = (0..k).map(|j| {
            let terms: Vec<T> = (0..k).map(|l| alpha[l] + transition[[l, j]]).collect();
            log_sum(&terms) + emission[[i, j]]
        });
        alpha = next.collect();
    }
    *out = log_sum(&alpha);
}

/// A Kalman filter with one state, and the logarithm of the likelihood of its observations.
#[custom_op(shape = (z: [.., n], noise: [], drift: []) -> (state: [.., n], fit: [..]))]
pub fn kalman<T: Float>(z: &[T], noise: &T, drift: &T, state: &mut [T], fit: &mut T) {
    let (mut x, mut p) = (T::zero(), T::one());
    let (noise, drift) = (noise.exp(), drift.exp());
    *fit = T::zero();
    for (z, state) in z.iter().zip(state) {
        p += drift;
        let spread = p + noise;
        let gain = p / spread;
        let miss = *z - x;
        x += gain * miss;
        p = (T::one() - gain) * p;
        *state = x;
        *fit -= spread.log() + miss * miss / spread;
    }
}

/// One step of an LSTM: `h` and `c` are its state, and the rows of `w` are the gates.
#[custom_op(shape = (x: [.., i], h: [.., n], c: [.., n], w: [4 * n, i + n], b: [4 * n]) -> (h_new: [.., n], c_new: [.., n]))]
pub fn lstm_step<T: Float>(
    x: &[T],
    h: &[T],
    c: &[T],
    w: ArrayView2<T>,
    b: Option<&[T]>,
    h_new: &mut [T],
    c_new: &mut [T],
) {
    let n = h.len();
    let gate = |row: usize| {
        let mut sum = b.map_or(T::zero(), |b| b[row]);
        for (k, v) in x.iter().chain(h).enumerate() {
            sum += w[[row, k]] * *v;
        }
        sum
    };
    for j in 0..n {
        let (i, f, g, o) = (gate(j), gate(n + j), gate(2 * n + j), gate(3 * n + j));
        c_new[j] = f.sigmoid() * c[j] + i.sigmoid() * g.tanh();
        h_new[j] = o.sigmoid() * c_new[j].tanh();
    }
}

/// A running value that grows by positive elements, and is multiplied by the others.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn branching<T: Float>(x: &[T], out: &mut [T]) {
    let mut value = T::one();
    for (x, out) in x.iter().zip(out) {
        value = if *x > T::zero() { value + *x * x.exp() } else { value * *x };
        *out = value;
    }
}

fn uniform(shape: &[usize], seed: u64) -> Result<Tensor> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as f64 / (1u64 << 31) as f64 * 1.6 - 0.8
    };
    let n = shape.iter().product();
    Tensor::from_vec((0..n).map(|_| next()).collect::<Vec<f64>>(), shape)
}

fn samples(all: &[&[&[usize]]]) -> Result<Vec<Sample>> {
    let tensors = |shapes: &[&[usize]]| -> Result<Vec<Option<Tensor>>> {
        shapes.iter().enumerate().map(|(i, shape)| uniform(shape, i as u64 + 3).map(Some)).collect()
    };
    all.iter().map(|shapes| Ok(Sample { inputs: tensors(shapes)?, attrs: vec![] })).collect()
}

#[test]
fn a_recurrence_has_the_gradient_of_its_formula() -> Result<()> {
    for shape in [&[3, 5][..], &[200, 7], &[1]] {
        let [a, b] = [uniform(shape, 1)?.with_requires_grad()?, uniform(shape, 2)?.with_requires_grad()?];
        let cotangent = Some(uniform(shape, 3)?);
        let derived = grad(
            &[recurrence::call(&a, &b)?],
            &[a.clone(), b.clone()],
            std::slice::from_ref(&cotangent),
            Options::default(),
        )?;
        let by_hand = grad(&[recurrence_by_hand::call(&a, &b)?], &[a, b], &[cotangent], Options::default())?;
        for (derived, by_hand) in derived.iter().zip(&by_hand) {
            let [x, y] = [derived, by_hand].map(|g| g.as_ref().expect("a gradient").to_vec::<f64>());
            for (x, y) in x?.into_iter().zip(y?) {
                assert!((x - y).abs() < 1e-14, "{x} {y}");
            }
        }
    }
    Ok(())
}

#[test]
fn several_batch_dimensions_are_cells_side_by_side_whatever_their_strides() -> Result<()> {
    let (a, b) = (uniform(&[5, 4, 1, 6, 3], 1)?, uniform(&[5, 1, 1, 6, 3], 2)?);
    let flat = |t: &Tensor| t.broadcast_view(a.shape()).copied()?.reshape_view(&[120, 3]);
    let expected = all_of(&recurrence::op(), &[flat(&a)?, flat(&b)?])?;
    let views = [a.detach(), a.permute_view(&[3, 1, 2, 0, 4])?.copied()?.permute_view(&[3, 1, 2, 0, 4])?];
    for view in views {
        let all = all_of(&recurrence::op(), &[view, b.detach()])?;
        assert_eq!(all[..2], expected[..2]);
        for (k, g) in all[2].iter().enumerate() {
            let parts = (0..4).map(|j| expected[2][((k / 18 * 4 + j) * 18) + k % 18]);
            assert!((g - parts.sum::<f64>()).abs() < 1e-14);
        }
    }
    Ok(())
}

#[test]
fn constants_and_functions_of_numbers_are_elements() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, 2.0, 4.0, 8.0], [4])?;
    let expected = [2.25, 4.5, 5.25, 3.0].map(|sum: f64| sum * 0.5f64.sqrt() / 2.0);
    for (found, expected) in smoothed::call(&x)?.to_vec::<f64>()?.into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-15, "{found}, {expected}");
    }
    opcheck(&smoothed::op(), &[]).into_result()
}

#[test]
fn derived_gradients_pass_opcheck() -> Result<()> {
    opcheck(&recurrence::op(), &samples(&[&[&[2, 3], &[2, 3]], &[&[70, 4], &[70, 4]]])?).into_result()?;
    opcheck(&recurrence_by_hand::op(), &[]).into_result()?;
    opcheck(&soft_dtw::op(), &samples(&[&[&[3, 4]], &[&[70, 2, 3]]])?).into_result()?;
    opcheck(&crf_forward::op(), &samples(&[&[&[2, 3, 2], &[2, 2]], &[&[66, 3, 2], &[2, 2]]])?).into_result()?;
    opcheck(&kalman::op(), &samples(&[&[&[2, 4], &[], &[]], &[&[65, 3], &[], &[]]])?).into_result()?;
    let lstm = samples(&[&[&[2, 3], &[2, 2], &[2, 2], &[8, 5], &[8]], &[&[65, 1], &[65, 2], &[65, 2], &[8, 3], &[8]]])?;
    opcheck(&lstm_step::op(), &lstm).into_result()?;
    opcheck(&branching::op(), &samples(&[&[&[3, 4]], &[&[70, 5]]])?).into_result()
}

#[test]
fn second_derivatives_agree_with_differences_and_third_raise() -> Result<()> {
    let check = |orders, op: OpRef, shapes: &[&[usize]]| {
        let inputs: Vec<Tensor> =
            shapes.iter().enumerate().map(|(i, s)| uniform(s, i as u64)).collect::<Result<_>>()?;
        let call = |t: &[Tensor]| {
            let args: Vec<Arg<'_>> = t.iter().map(Arg::from).collect();
            Ok(dispatch(&op, &args, &[])?.into_vec())
        };
        gradcheck(&call, &inputs, GradCheck { orders, ..GradCheck::default() })
    };
    for (op, shapes) in [
        (recurrence::op(), &[&[2, 4][..], &[2, 4]][..]),
        (soft_dtw::op(), &[&[2, 3, 2]]),
        (crf_forward::op(), &[&[2, 3, 2], &[2, 2]]),
        (kalman::op(), &[&[2, 3], &[], &[]]),
        (lstm_step::op(), &[&[2, 1], &[2, 2], &[2, 2], &[8, 3], &[8]]),
        (branching::op(), &[&[3, 5]]),
    ] {
        check(2, op.clone(), shapes)?;
        let error = check(3, op.clone(), shapes).expect_err("no third derivative").to_string();
        let expected = format!(
            "op '{0}.vjp.vjp' has no gradient: derivatives of the cell op '{0}' exist up to the second",
            op.name
        );
        assert!(error.contains(&expected), "{error}");
    }
    Ok(())
}

/// The results of a call, and the gradients of its inputs.
fn all_of(op: &OpRef, inputs: &[Tensor]) -> Result<Vec<Vec<f64>>> {
    let leaves: Vec<Tensor> = inputs.iter().map(|t| t.detach().with_requires_grad()).collect::<Result<_>>()?;
    let args: Vec<Arg<'_>> = leaves.iter().map(Arg::from).collect();
    let outputs = dispatch(op, &args, &[])?.into_vec();
    let ones = outputs.iter().map(|t| Tensor::ones(t.shape().clone(), t.dtype(), t.device()).map(Some));
    let gradients = grad(&outputs, &leaves, &ones.collect::<Result<Vec<_>>>()?, Options::default())?;
    let all = outputs.iter().map(|t| t.detach()).chain(gradients.into_iter().flatten());
    all.map(|t| minitensor_ops::conversion::astype::call(&t, DType::F64)?.to_vec()).collect()
}

#[test]
fn cells_side_by_side_have_the_bits_of_single_cells() -> Result<()> {
    let cells = 70;
    for (op, shapes) in [
        (recurrence::op(), &[&[4][..], &[4]][..]),
        (soft_dtw::op(), &[&[5, 3]]),
        (crf_forward::op(), &[&[4, 2]]),
        (kalman::op(), &[&[6]]),
        (lstm_step::op(), &[&[1], &[2], &[2]]),
        (branching::op(), &[&[5]]),
    ] {
        for dtype in [DType::F32, DType::F64] {
            let further: &[&[usize]] = match &*op.name {
                "crf_forward" => &[&[2, 2]],
                "kalman" => &[&[], &[]],
                "lstm_step" => &[&[8, 3], &[8]],
                _ => &[],
            };
            let of = |shape: &[usize], seed| minitensor_ops::conversion::astype::call(&uniform(shape, seed)?, dtype);
            let batched: Vec<Tensor> = shapes
                .iter()
                .zip(0..)
                .map(|(shape, seed)| of(&[&[cells][..], shape].concat(), seed))
                .collect::<Result<_>>()?;
            let weights: Vec<Tensor> =
                further.iter().zip(10..).map(|(shape, seed)| of(shape, seed)).collect::<Result<_>>()?;
            let all = all_of(&op, &[&batched[..], &weights].concat())?;
            for cell in 0..cells {
                let part = |t: &Tensor| t.slice_view(0, cell, 1, 1);
                let one: Vec<Tensor> = batched.iter().map(part).collect::<Result<_>>()?;
                let one = all_of(&op, &[&one[..], &weights].concat())?;
                // The gradients of weights are sums over cells.
                for (all, one) in all.iter().zip(&one).filter(|(all, one)| all.len() == cells * one.len()) {
                    assert_eq!(&all[cell * one.len()..][..one.len()], one, "{} {dtype}, cell {cell}", op.name);
                }
            }
        }
    }
    Ok(())
}
