//! The `axis` clause of bodies over whole tensors, and of ops that consist of two: with computed or complex numbers.

use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops::arithmetic::multiply;
use minitensor_ops::conversion::complex;
use minitensor_ops::shape::{permute_dims, reshape};

/// `x` minus its mean.
#[custom_op(name = "axis::centered", shape = (x: [.., n]) -> [.., n], axis = -1)]
fn centered(x: &Tensor) -> Result<Tensor> {
    Ok(x - x.mean(axis = -1, keepdims = true))
}

/// The largest of all minus the smallest, and each element minus the smallest.
#[custom_op(name = "axis::spread", shape = (x: [.., n]) -> (range: [..], above: [.., n]), axis = None)]
fn spread(x: &Tensor) -> Result<(Tensor, Tensor)> {
    Ok((x.max(axis = -1) - x.min(axis = -1), x - x.min(axis = -1, keepdims = true)))
}

/// The first elements, weighted.
#[custom_op(name = "axis::head", shape = (x: [.., n], w: [m]) -> [.., m], where m <= n, axis = -1)]
fn head(x: &Tensor, w: &Tensor) -> Result<Tensor> {
    Ok(x[(.., 0..w.shape()[0])] * w)
}

/// A sample from a relaxed categorical distribution (Jang et al., 2017), shifted by the position of its row.
#[custom_op(name = "axis::gumbel_softmax", shape = (logits: [.., n]) -> (sample: [.., n], total: [..]), axis = -1)]
fn gumbel_softmax<R: Row>(logits: R, #[uniform] u: R, #[position(-2)] row: R) -> (R, R) {
    let y = logits * row - (-(u.maximum(1e-20)).log()).log();
    let e = (y - y.max().detach()).exp();
    (e / e.sum(), y.sum())
}

/// The normalized row, and its length.
#[custom_op(name = "axis::normalized", shape = (z: [.., n], w: [n]) -> (out: [.., n], length: [..]), axis = -1)]
fn normalized<R: Row>(z: Complex<R>, w: R) -> (Complex<R>, R) {
    let length = (w * z.norm_sqr()).sum().sqrt();
    (z / length, length)
}

fn random(shape: &[usize]) -> Result<Tensor> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    Tensor::from_vec((0..shape.iter().product()).map(|_| next()).collect(), shape)
}

/// The tensor with axis 1 of three last, and back.
fn last(t: &Tensor) -> Result<Tensor> {
    permute_dims::call(t, &[0, 2, 1])
}

fn assert_same(a: &Tensor, b: &Tensor) -> Result<()> {
    assert_eq!(a.shape(), b.shape());
    let values = |t: &Tensor| -> Result<Vec<f64>> {
        if !t.dtype().is_complex() {
            return t.to_vec::<f64>();
        }
        Ok([t.part_view(0)?.to_vec::<f64>()?, t.part_view(1)?.to_vec::<f64>()?].concat())
    };
    let (a, b) = (values(a)?, values(b)?);
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-14 * a.abs().max(1.0)), "{a:?}\n{b:?}");
    Ok(())
}

#[test]
fn a_body_over_tensors_gets_the_axis_last() -> Result<()> {
    let x = random(&[3, 4, 5])?;
    for axis in [1, -2] {
        assert_same(&centered::call(&x, axis)?, &last(&centered::call(&last(&x)?, -1)?)?)?;
    }
    let w = random(&[2])?;
    assert_same(&head::call(&x, &w, 1)?, &last(&head::call(&last(&x)?, &w, -1)?)?)?;
    let error = centered::call(&x, 3).expect_err("there are three axes").to_string();
    assert!(error.contains("axis::centered") && error.contains('3'), "{error}");
    Ok(())
}

#[test]
fn several_axes_are_one() -> Result<()> {
    let x = random(&[3, 4, 5])?;
    let moved = permute_dims::call(&x, &[1, 0, 2])?;
    let flat = reshape::call(&moved, &[4, 15])?;
    for keepdims in [false, true] {
        let (range, above) = spread::call(&x, Some(&[0, 2]), keepdims)?;
        let (expected, rest) = spread::call(&flat, Some(&[1]), false)?;
        let shape: &[i64] = if keepdims { &[1, 4, 1] } else { &[4] };
        assert_same(&range, &reshape::call(&expected, shape)?)?;
        let rest = reshape::call(&rest, &[4, 3, 5])?;
        assert_same(&above, &permute_dims::call(&rest, &[1, 0, 2])?)?;
    }
    let (range, _) = spread::call(&x, None, false)?;
    assert!(range.shape().is_empty());
    Ok(())
}

#[test]
fn computed_numbers_are_those_of_the_moved_tensor() -> Result<()> {
    let (x, key) = (random(&[3, 4, 5])?, Tensor::from_vec(vec![7_u64, 9], [2])?);
    let (sample, row) = gumbel_softmax::call(&x, Some(&key), 1, false)?;
    let (expected, expected_row) = gumbel_softmax::call(&last(&x)?, Some(&key), -1, false)?;
    assert_same(&sample, &last(&expected)?)?;
    assert_same(&row, &expected_row)?;
    let (_, kept) = gumbel_softmax::call(&x, Some(&key), 1, true)?;
    assert_eq!(&kept.shape()[..], [3, 1, 5]);
    Ok(())
}

#[test]
fn complex_rows_lie_along_any_axis() -> Result<()> {
    let (re, im, w) = (random(&[3, 4, 5])?, random(&[3, 4, 5])?, random(&[4])?);
    let z = complex::call(&re, &im)?;
    let w = multiply::call(&w, &w)?;
    let (out, length) = normalized::call(&z, &w, 1, false)?;
    let (expected, expected_length) = normalized::call(&last(&z)?, &w, -1, false)?;
    assert_same(&out, &last(&expected)?)?;
    assert_same(&length, &expected_length)
}

#[test]
fn opcheck_accepts_them() -> Result<()> {
    for op in [centered::op(), spread::op(), head::op(), gumbel_softmax::op(), normalized::op()] {
        opcheck(&op, &[]).into_result()?;
    }
    Ok(())
}

/// Each row times a number.
#[custom_op(name = "axis::scaled", shape = (x: [.., n], by: [..]) -> (out: [.., n], total: [..]), axis = -1)]
fn scaled<R: Row>(x: R, by: R) -> (R, R) {
    (x * by, (x * by).sum())
}

#[test]
fn a_number_for_each_row_has_no_more_batch_dimensions() -> Result<()> {
    let x = random(&[2, 4])?;
    let (_, total) = scaled::call(&x, &random(&[2])?, -1, false)?;
    assert_eq!(&total.shape()[..], [2]);
    let error = scaled::call(&x, &random(&[3, 2])?, -1, false).expect_err("too many dimensions").to_string();
    assert!(error.contains("'by' of shape (3, 2)") && error.contains("only 1 batch dimension"), "{error}");
    Ok(())
}
