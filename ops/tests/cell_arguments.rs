//! Derived gradients of cell ops with every kind of argument: optional, fixed and half dtypes, saved and shared outputs, an axis,
//! computed dimensions, complex numbers.

use minitensor::autograd::{Options, grad};
use minitensor::kernels::threads::set_num_threads;
use minitensor::kernels::{lit, rows};
use minitensor::prelude::*;
use minitensor::testing::{GradCheck, Sample, gradcheck, opcheck};
use minitensor_ops as _;

/// The score of a label sequence in a linear-chain CRF.
#[custom_op(shape = (emission: [.., n, k], transition: [k, k], labels: [.., n], valid: [.., n]) -> [..])]
pub fn path_score<T: Float>(
    emission: ArrayView2<T>,
    transition: ArrayView2<T>,
    labels: &[i64],
    valid: Option<&[bool]>,
    #[default = 1.0] scale: f64,
    out: &mut T,
) -> Result<()> {
    let k = emission.dim().1 as i64;
    if let Some(label) = labels.iter().find(|label| !(0..k).contains(*label)) {
        return Err(Error::index(format!("label {label} is out of range for {k} labels")));
    }
    *out = T::zero();
    for (i, label) in labels.iter().enumerate().filter(|(i, _)| valid.is_none_or(|valid| valid[*i])) {
        *out += emission[[i, *label as usize]] * lit::<T>(scale);
        if i > 0 {
            *out += transition[[labels[i - 1] as usize, *label as usize]];
        }
    }
    Ok(())
}

/// The median of the elements, its index, and the number of elements.
#[custom_op(shape = (x: [.., n]) -> (out: [..], place: [..], [save] rest: [.., n]) where n > 0, axis = -1)]
pub fn median<T: Real>(x: &[T], out: &mut T, place: &mut i64, rest: &mut [T]) {
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|a, b| x[*a].partial_cmp(&x[*b]).unwrap_or(std::cmp::Ordering::Equal));
    *place = order[x.len() / 2] as i64;
    *out = x[*place as usize];
    rest.copy_from_slice(x);
}

/// The cumulative product.
#[custom_op(shape = (x: [.., n]) -> [.., n], axis = -1)]
pub fn products<T: Num>(x: &[T], out: &mut [T]) {
    let mut product = T::one();
    for (x, out) in x.iter().zip(out) {
        product *= *x;
        *out = product * x.conj();
    }
}

/// The sum of the squares over the batch, weighted.
#[custom_op(shape = (x: [.., n], w: [n]) -> (squares: [n], total: [..]))]
pub fn batch_squares<T: Float>(x: &[T], w: &[T], squares: &mut [T], total: &mut T) {
    *total = rows::dot(x, w);
    for ((x, w), sum) in x.iter().zip(w).zip(squares) {
        *sum += *w * x.square();
    }
}

/// The products of adjacent pairs, repeated.
#[custom_op(shape = (x: [.., n]) -> [.., count, n / 2])]
pub fn pairs<T: Float>(x: &[T], count: usize, mut out: ArrayViewMut2<T>) {
    for r in 0..count {
        for (k, pair) in x.chunks_exact(2).enumerate() {
            out[[r, k]] = pair[0] * pair[1];
        }
    }
}

/// A long sum, which compiled code computes on several threads, of a sorted row.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn sorted_sum<T: Float>(x: &[T], out: &mut T) {
    let mut sorted = x.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let least = sorted.first().copied().unwrap_or_default();
    *out = rows::sum_map(&sorted, |x| x.square()) * least;
}

/// The product of the first two elements.
#[custom_op(shape = (x: [.., n], y: [.., n]) -> [..] where n > 1)]
pub fn first_two<T: Float>(x: &[T], y: &[T], out: &mut T) {
    let _unused = x.iter().fold(T::one(), |product, x| product * *x);
    *out = x[0] * y[1];
}

/// A sum that is computed on another thread.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn elsewhere<T: Float>(x: &[T], out: &mut T) {
    let sum = std::thread::scope(|scope| scope.spawn(|| x.iter().fold(T::zero(), |sum, x| sum + *x)).join());
    *out = sum.unwrap_or_default();
}

fn tensor(values: &[f64], shape: &[usize]) -> Result<Tensor> {
    Tensor::from_vec(values.to_vec(), shape)
}

fn ramp(shape: &[usize]) -> Result<Tensor> {
    let n: usize = shape.iter().product();
    tensor(&(0..n).map(|i| ((i * 7919) % 101) as f64 / 101.0 - 0.45).collect::<Vec<_>>(), shape)
}

fn gradients(outputs: &[Tensor], inputs: &[&Tensor]) -> Result<Vec<Vec<f64>>> {
    let ones = outputs.iter().map(|t| Tensor::ones(t.shape().clone(), t.dtype(), t.device()).map(Some));
    let inputs: Vec<Tensor> = inputs.iter().map(|t| (*t).clone()).collect();
    let found = grad(outputs, &inputs, &ones.collect::<Result<Vec<_>>>()?, Options::default())?;
    found.iter().map(|g| g.as_ref().expect("a gradient").to_vec::<f64>()).collect()
}

#[test]
fn labels_masks_and_attributes_have_no_gradient_but_choose_it() -> Result<()> {
    let labels = Tensor::from_vec(vec![0i64, 1, 1, 1, 0, 1], [2, 3])?;
    let valid = Tensor::from_vec(vec![true, false, true, true, true, true], [2, 3])?;
    let (e, t) = (ramp(&[2, 3, 2])?.with_requires_grad()?, ramp(&[2, 2])?.with_requires_grad()?);
    for valid in [None, Some(&valid)] {
        let inputs = vec![Some(e.detach()), Some(t.detach()), Some(labels.clone()), valid.cloned()];
        opcheck(&path_score::op(), &[Sample { inputs, attrs: vec![2.0.into()] }]).into_result()?;
    }
    let g = gradients(&[path_score::call(&e, &t, &labels, Some(&valid), 2.0)?], &[&e, &t])?;
    assert_eq!(g[0], [2.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 2.0, 2.0, 0.0, 0.0, 2.0]);
    assert_eq!(g[1], [0.0, 1.0, 1.0, 1.0]);
    Ok(())
}

#[test]
fn every_kind_of_output_passes_opcheck() -> Result<()> {
    opcheck(&median::op(), &[]).into_result()?;
    opcheck(&products::op(), &[]).into_result()?;
    opcheck(&pairs::op(), &[Sample { inputs: vec![Some(ramp(&[3, 6])?)], attrs: vec![2.into()] }]).into_result()?;
    opcheck(&sorted_sum::op(), &[]).into_result()?;
    let shared = |t: &[Tensor]| batch_squares::call(&t[0], &t[1]).map(|(squares, total)| vec![squares, total]);
    gradcheck(&shared, &[ramp(&[70, 3])?, ramp(&[3])?], GradCheck::default())
}

#[test]
fn a_median_has_its_gradient_at_its_place_along_any_axis() -> Result<()> {
    let x = tensor(&[5.0, 1.0, 3.0, 2.0, 9.0, 4.0], &[3, 2])?.with_requires_grad()?;
    let (y, place) = median::call(&x, 0, true)?;
    assert_eq!((y.to_vec::<f64>()?, place.to_vec::<i64>()?), (vec![5.0, 2.0], vec![0, 1]));
    assert_eq!(gradients(&[y], &[&x])?[0], [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn one_of_several_outputs_may_be_used() -> Result<()> {
    let (x, w) = (ramp(&[4, 3])?.with_requires_grad()?, ramp(&[3])?.with_requires_grad()?);
    let (_, total) = batch_squares::call(&x, &w)?;
    let (values, weights) = (x.detach().to_vec::<f64>()?, w.detach().to_vec::<f64>()?);
    let g = gradients(&[total], &[&x, &w])?;
    assert_eq!(g[0], weights.repeat(4));
    let g = gradients(&[batch_squares::call(&x, &w)?.0], &[&x, &w])?;
    let expected: Vec<f64> = values.iter().zip(weights.iter().cycle()).map(|(x, w)| 2.0 * x * w).collect();
    assert!(g[0].iter().zip(&expected).all(|(g, e)| (g - e).abs() < 1e-15), "{g:?} {expected:?}");
    Ok(())
}

#[test]
fn a_gradient_of_weights_has_the_same_bits_for_any_number_of_threads() -> Result<()> {
    let (x, w) = (ramp(&[5000, 7])?, ramp(&[7])?.with_requires_grad()?);
    let mut all = vec![];
    for threads in [1, 2, 3, 8] {
        set_num_threads(threads);
        let (squares, total) = batch_squares::call(&x, &w)?;
        all.push(gradients(&[squares, total], &[&w])?.remove(0));
    }
    set_num_threads(0);
    assert!(all.iter().all(|g| g == &all[0]), "{all:?}");
    Ok(())
}

#[test]
fn half_floats_are_differentiated_in_float32() -> Result<()> {
    let x = ramp(&[6, 5])?;
    let of = |dtype| -> Result<Vec<f64>> {
        let x = minitensor_ops::conversion::astype::call(&x, DType::F16)?;
        let x = minitensor_ops::conversion::astype::call(&x, dtype)?.with_requires_grad()?;
        let y = minitensor_ops::reduction::sum::call(&products::call(&x, -1)?, None, false, Some(DType::F32))?;
        let g = grad(&[y], &[x], &[None], Options::default())?.remove(0).expect("a gradient");
        minitensor_ops::conversion::astype::call(&g, DType::F64)?.to_vec()
    };
    let (half, wide) = (of(DType::F16)?, of(DType::F32)?);
    assert!(half.iter().zip(&wide).all(|(h, w)| (h - w).abs() <= 6e-4 * w.abs()), "{half:?} {wide:?}");
    Ok(())
}

#[test]
fn a_long_row_is_recorded_on_one_thread() -> Result<()> {
    let x = ramp(&[300_000])?.with_requires_grad()?;
    let g = gradients(&[sorted_sum::call(&x)?], &[&x])?.remove(0);
    let values = x.detach().to_vec::<f64>()?;
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    let first = values.iter().position(|x| *x == least).expect("a least element");
    for (i, (g, x)) in g.iter().zip(&values).enumerate().filter(|(i, _)| *i != first) {
        assert!((g - 2.0 * x * least).abs() < 1e-12, "element {i}: {g}");
    }
    Ok(())
}

#[test]
fn elements_that_no_result_depends_on_have_a_zero_gradient() -> Result<()> {
    let (x, y) = (ramp(&[70, 3])?.with_requires_grad()?, ramp(&[70, 3])?.with_requires_grad()?);
    for _ in 0..2 {
        // Another op leaves its numbers in the memory of the thread.
        gradients(&[products::call(&x, -1)?], &[&x])?;
        let g = gradients(&[first_two::call(&x, &y)?], &[&x, &y])?;
        let (a, b) = (x.detach().to_vec::<f64>()?, y.detach().to_vec::<f64>()?);
        for cell in 0..70 {
            assert_eq!(g[0][3 * cell..][..3], [b[3 * cell + 1], 0.0, 0.0]);
            assert_eq!(g[1][3 * cell..][..3], [0.0, a[3 * cell], 0.0]);
        }
    }
    Ok(())
}

#[test]
fn a_body_that_computes_on_other_threads_raises() -> Result<()> {
    let x = ramp(&[3])?.with_requires_grad()?;
    let y = elsewhere::call(&x)?;
    let error = gradients(&[y], &[&x]).expect_err("steps of another thread").to_string();
    assert!(
        error.contains("the gradient of op 'elsewhere' is not available: its body computes on other threads"),
        "{error}"
    );
    Ok(())
}
