//! Bodies over whole tensors that are written with operators, methods and slices.

use minitensor::attr::Attr;
use minitensor::op::{Arg, infer};
use minitensor::prelude::*;
use minitensor::testing::{Sample, opcheck};
use minitensor_ops as _;
use minitensor_ops::loss::Reduction;

/// Scaled dot-product attention.
#[custom_op(dtype = (q: T, k: T, v: T, mask: T) -> T where T: Float)]
pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>, scale: Option<f64>) -> Result<Tensor> {
    let scale = scale.unwrap_or(1.0 / (q.shape()[q.ndim() - 1] as f64).sqrt());
    let mut scores = q.matmul(k.matrix_transpose()) * scale;
    if let Some(mask) = mask {
        scores = scores + mask;
    }
    Ok(scores.softmax(-1).matmul(v))
}

/// The cosine similarity along an axis.
#[custom_op]
pub fn cosine(x: &Tensor, y: &Tensor, #[default = -1] axis: i64) -> Result<Tensor> {
    Ok((x * y).sum(axis) / ((x * x).sum(axis = axis) * (y * y).sum(axis)).sqrt())
}

/// The same by a closure, which may fail.
#[custom_op]
pub fn cosine_by_closure(x: &Tensor, y: &Tensor, #[default = -1] axis: i64) -> Result<Tensor> {
    let dot = |a: &Tensor, b: &Tensor| Ok((a * b).sum(axis));
    Ok(dot(x, y)? / (dot(x, x)? * dot(y, y)?).sqrt()?)
}

/// All operators.
#[custom_op]
pub fn operators(x: &Tensor, y: &Tensor, #[default = 2] n: i64, #[default = 0.5] c: f64) -> Result<Vec<Tensor>> {
    let mut sum = x;
    let doubled = sum + sum;
    sum = &doubled;
    let mut total = sum.clone();
    total += y;
    total *= n;
    total -= 1;
    total /= 2.0;
    let smaller = x < y || !(x <= y) && x != 0;
    Ok(vec![total, -x, x % n, c - x, (x * c)?, smaller, ops::where_(x > 0, x, y)])
}

/// The elementwise maximum of any number of tensors, times their number.
#[custom_op]
pub fn largest_of(tensors: &[&Tensor]) -> Result<Tensor> {
    let (first, rest) = tensors.split_first().ok_or_else(|| Error::value("takes at least one tensor"))?;
    let mut largest = *first;
    for tensor in rest {
        largest = largest.maximum(tensor);
    }
    let again = rest.iter().try_fold((*first).clone(), |largest: Tensor, tensor| Ok(largest.maximum(tensor)))?;
    let squares = tensors.iter().map(|t| Ok(t * t)).collect::<Result<Vec<_>>>()?;
    Ok((largest + again) / 2 * tensors.len() + 0 * ops::stack(squares, axis = 0).sum(0))
}

/// Slices, several outputs, and lists.
#[custom_op]
pub fn parts(x: &Tensor, #[default = 1] i: i64, #[default = 2] n: usize) -> Result<Vec<Tensor>> {
    let (top, _) = x.topk(k = n);
    let (least, mut places);
    (least, places) = (-x).topk(1)?;
    places += 10;
    let ends = ops::concat([x[(.., ..n)], -top, least], -1);
    let &[rows, columns] = x.shape().dims() else { return Ok(vec![x[(0, 0)]]) };
    Ok(vec![
        ends,
        places,
        x[0],
        x[-1],
        x[(.., i)],
        x[i..],
        x[(i..i + 1, -2..)],
        x[(.., None, i)],
        x[(None, ..)],
        x[..].reshape([columns, rows]),
        x.reshape(x.shape()),
        x[(0.., 0)],
        ops::stack(vec![x, x], 0),
    ])
}

/// A slice times another.
#[custom_op]
pub fn corners(x: &Tensor) -> Result<Tensor> {
    Ok(x[(.., 1..)] * x[(0, None, ..-1)])
}

/// Branches return a tensor, and a reference to one.
#[custom_op]
pub fn branches(x: &Tensor, w: Option<&Tensor>, #[default = Reduction::Sum] reduction: Reduction) -> Result<Tensor> {
    let y = match w {
        Some(w) if w.ndim() > 0 => x * w,
        Some(_) | None => x,
    };
    let y = if x.numel() == 0 { x } else { y.clone() } + ops::scaled(&y, 0.0);
    let z: Tensor = doubled(&y)?;
    Ok(z.mse(0 * y, reduction = reduction))
}

/// `x · by`.
#[custom_op]
pub fn scaled<T: Num>(x: T, by: f64) -> T {
    x * by
}

#[op_fn]
fn doubled(x: &Tensor) -> Result<Tensor> {
    let two = 1.0 + 1.0;
    Ok(two * x)
}

fn tensor(values: &[f64], shape: &[usize]) -> Tensor {
    Tensor::from_vec(values.to_vec(), shape).expect("a tensor")
}

fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.cast(DType::F64).and_then(|t| t.to_vec()).expect("values")
}

#[test]
fn attention_agrees_with_sums_by_hand() -> Result<()> {
    let (q, k) = ([1.0, 2.0, 0.5, -1.0], [0.3, -0.2, 1.5, 0.7]);
    let (v, mask) = ([1.0, 10.0, 3.0, 30.0], [0.0, -1.0, 0.5, 0.0]);
    let [q_, k_, v_, mask_] = [q, k, v, mask].map(|values| tensor(&values, &[2, 2]));
    let mut expected = vec![];
    for i in 0..2 {
        let score =
            |j: usize| ((q[2 * i] * k[2 * j] + q[2 * i + 1] * k[2 * j + 1]) / 2f64.sqrt() + mask[2 * i + j]).exp();
        let (a, b) = (score(0), score(1));
        expected.extend([(a * v[0] + b * v[2]) / (a + b), (a * v[1] + b * v[3]) / (a + b)]);
    }
    let out = attention::call(&q_, &k_, &v_, Some(&mask_), None)?;
    for (got, expected) in values(&out).iter().zip(&expected) {
        assert!((got - expected).abs() < 1e-12, "{got} is not {expected}");
    }
    assert_eq!(values(&attention::call(&q_, &k_, &v_, None, Some(0.0))?), [2.0, 20.0, 2.0, 20.0]);
    Ok(())
}

#[test]
fn operators_are_ops() -> Result<()> {
    let (x, y) = (tensor(&[-1.0, 0.0, 5.0], &[3]), tensor(&[2.0, 0.0, 4.0], &[3]));
    let out: Vec<_> = operators::call(&x, &y, 2, 0.5)?.iter().map(values).collect();
    assert_eq!(out[0], [-0.5, -0.5, 13.5]);
    assert_eq!(out[1], [1.0, 0.0, -5.0]);
    assert_eq!(out[2], [1.0, 0.0, 1.0]);
    assert_eq!(out[3], [1.5, 0.5, -4.5]);
    assert_eq!(out[4], [-0.5, 0.0, 2.5]);
    assert_eq!(out[5], [1.0, 0.0, 1.0]);
    assert_eq!(out[6], [2.0, 0.0, 5.0]);
    Ok(())
}

#[test]
fn a_number_does_not_change_the_dtype() -> Result<()> {
    let twice = |dtype| {
        let x = tensor(&[1.0, 3.0], &[2]).cast(dtype)?;
        Ok::<_, Error>((doubled(&x)?.dtype(), largest_of::call(&[&x])?, operators::call(&x, &x, 2, 1.0)?))
    };
    for dtype in [DType::F32, DType::F64, DType::F16, DType::Bf16] {
        let (_, largest, all) = twice(dtype)?;
        assert_eq!((largest.dtype(), all[1].dtype(), all[5].dtype()), (dtype, dtype, DType::Bool));
        assert_eq!(values(&largest), [1.0, 3.0]);
    }
    let (_, largest, all) = twice(DType::I32)?;
    // Division of integers is in float32.
    assert_eq!((largest.dtype(), all[1].dtype(), all[2].dtype()), (DType::F32, DType::I32, DType::I32));
    let z = Tensor::from_vec(vec![1.0, 2.0], [2])?.cast(DType::C64)?;
    assert_eq!(doubled(&z)?.dtype(), DType::C64);
    Ok(())
}

#[test]
fn closures_and_lists_of_tensors() -> Result<()> {
    let (x, y) = (tensor(&[3.0, 4.0], &[2]), tensor(&[4.0, 3.0], &[2]));
    assert_eq!(cosine::call(&x, &y, -1)?.item::<f64>()?, 0.96);
    assert_eq!(cosine_by_closure::call(&x, &y, -1)?.item::<f64>()?, 0.96);
    assert_eq!(values(&largest_of::call(&[&x, &y])?), [8.0, 8.0]);
    Ok(())
}

#[test]
fn slices_select_like_those_of_python() -> Result<()> {
    let x = tensor(&[0.0, 1.0, 2.0, 10.0, 11.0, 12.0], &[2, 3]);
    let out = parts::call(&x, 1, 2)?;
    let expected: [(&[usize], &[f64]); 13] = [
        (&[2, 5], &[0.0, 1.0, -2.0, -1.0, 0.0, 10.0, 11.0, -12.0, -11.0, -10.0]),
        (&[2, 1], &[10.0, 10.0]),
        (&[3], &[0.0, 1.0, 2.0]),
        (&[3], &[10.0, 11.0, 12.0]),
        (&[2], &[1.0, 11.0]),
        (&[1, 3], &[10.0, 11.0, 12.0]),
        (&[1, 2], &[11.0, 12.0]),
        (&[2, 1], &[1.0, 11.0]),
        (&[1, 2, 3], &[0.0, 1.0, 2.0, 10.0, 11.0, 12.0]),
        (&[3, 2], &[0.0, 1.0, 2.0, 10.0, 11.0, 12.0]),
        (&[2, 3], &[0.0, 1.0, 2.0, 10.0, 11.0, 12.0]),
        (&[2], &[0.0, 10.0]),
        (&[2, 2, 3], &[0.0, 1.0, 2.0, 10.0, 11.0, 12.0, 0.0, 1.0, 2.0, 10.0, 11.0, 12.0]),
    ];
    for (k, (got, (shape, expected))) in out.iter().zip(expected).enumerate() {
        assert_eq!((got.shape().dims(), &values(got)[..]), (shape, expected), "part {k}");
    }
    let error = parts::call(&x, 3, 2).expect_err("there is no column 3").to_string();
    assert!(error.contains("index 3 is out of range for axis 1 of size 3"), "{error}");
    let error = parts::call(&tensor(&[1.0], &[1]), 0, 1).expect_err("one axis").to_string();
    assert!(error.contains("an index of 2 axes for a tensor of shape (1,)"), "{error}");
    Ok(())
}

#[test]
fn branches_and_helpers() -> Result<()> {
    let (x, w) = (tensor(&[1.0, 2.0], &[2]), tensor(&[3.0, 1.0], &[2]));
    assert_eq!(branches::call(&x, None, Reduction::Sum)?.item::<f64>()?, 20.0);
    assert_eq!(branches::call(&x, Some(&w), Reduction::Mean)?.item::<f64>()?, 26.0);
    Ok(())
}

#[test]
fn shapes_are_inferred_without_values() -> Result<()> {
    let x = tensor(&[0.0; 12], &[2, 2, 3]);
    let [out] = &infer(&attention::op(), &[Arg::from(&x), Arg::from(&x), Arg::from(&x), Arg::None], &[Attr::None])?[..]
    else {
        panic!("attention has one output")
    };
    assert_eq!((out.shape().dims(), out.device()), (&[2, 2, 3][..], Device::Meta));
    Ok(())
}

#[test]
fn gradients_follow_from_the_ops() -> Result<()> {
    let matrix = |shape: &[usize]| {
        let count: usize = shape.iter().product();
        tensor(&(0..count).map(|i| (i as f64 * 1.7).sin()).collect::<Vec<_>>(), shape)
    };
    let sample =
        |tensors: Vec<Tensor>, attrs: Vec<Attr>| Sample { inputs: tensors.into_iter().map(Some).collect(), attrs };
    let (q, k, mask) = (matrix(&[2, 3]), matrix(&[4, 3]), matrix(&[2, 4]));
    opcheck(&attention::op(), &[sample(vec![q.clone(), k.clone(), matrix(&[4, 2]), mask], vec![Attr::None])])
        .into_result()?;
    for op in [cosine::op(), cosine_by_closure::op()] {
        opcheck(&op, &[sample(vec![q.clone(), q.clone()], vec![Attr::Int(-1)])]).into_result()?;
    }
    opcheck(&corners::op(), &[sample(vec![k], vec![])]).into_result()
}

/// `2a`, `3b` and `4c`: none of them depends on the others.
#[custom_op]
fn multiples(a: &Tensor, b: &Tensor, c: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    Ok((a * 2, b * 3, c * 4))
}

#[test]
fn an_output_that_does_not_depend_on_an_input_has_no_gradient_for_it() -> Result<()> {
    use minitensor::autograd::grad;

    let [a, b, c] = [1.0, 2.0, 3.0].map(|value| tensor(&[value], &[1]));
    let a = a.with_requires_grad()?;
    let (x, y, z) = multiples::call(&a, &b, &c)?;
    assert!(x.requires_grad() && !y.requires_grad() && !z.requires_grad());
    let sum = (minitensor_ops::arithmetic::add::call(&x, &y))?;
    let grads = grad(&[sum], &[a], &[None], Default::default())?;
    assert_eq!(values(grads[0].as_ref().expect("a gradient")), [2.0]);
    opcheck(&multiples::op(), &[]).into_result()
}
