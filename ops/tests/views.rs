//! Recorded mutations of tensors and of their views: each sees the changes of the others, and so do gradients.

// A slice of one owned tensor reads better than `from_ref`.
#![allow(clippy::cloned_ref_to_slice_refs)]

use minitensor::autograd::{NoGrad, Options, backward, grad};
use minitensor::testing::{GradCheck, gradcheck};
use minitensor::{DType, Device, Result, Tensor};
use minitensor_ops::arithmetic::{add, multiply, negative, square};
use minitensor_ops::conversion::{clone, complex, copy_into, imag, real};
use minitensor_ops::exponential::exp;
use minitensor_ops::indexing::slice;
use minitensor_ops::reduction::sum;
use minitensor_ops::shape::{expand, permute_dims, reshape, squeeze};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.to_vec(), [values.len()]).and_then(Tensor::with_requires_grad).expect("a leaf")
}

fn plain(values: &[f64], shape: &[usize]) -> Tensor {
    Tensor::from_vec(values.to_vec(), shape).expect("as many values as the shape says")
}

fn values(t: &Tensor) -> Vec<f64> {
    t.detach().to_vec::<f64>().expect("float64 values")
}

fn gradient(t: &Tensor) -> Vec<f64> {
    values(&t.grad().expect("a gradient"))
}

fn pass(t: &Tensor) -> Result<()> {
    backward(&[sum::call(t, None, false, None)?], &[], Options::default())
}

fn row(x: &Tensor, at: i64) -> Result<Tensor> {
    squeeze::call(&slice::call(x, 0, Some(at), Some(at + 1), 1)?, Some(&[0]))
}

/// `[[1, 2, 3], [4, 5, 6]]`, computed from a leaf.
fn computed() -> Result<(Tensor, Tensor)> {
    let a = leaf(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let x = reshape::call(&multiply::call(&a, &plain(&[1.0], &[1]))?, &[2, 3])?;
    Ok((a, clone::call(&x)?))
}

#[test]
fn a_change_of_a_view_is_a_change_of_the_whole() -> Result<()> {
    let (a, x) = computed()?;
    let w = leaf(&[10.0, 20.0, 30.0]);
    let second = row(&x, 1)?;
    multiply::call_(&second, &w)?;
    assert_eq!(values(&x), [1.0, 2.0, 3.0, 40.0, 100.0, 180.0]);
    pass(&square::call(&x)?)?;
    // d(a²)/da = 2a in the first row; d((a w)²) = 2 a w² and 2 a² w in the second.
    assert_eq!(gradient(&a), [2.0, 4.0, 6.0, 800.0, 4000.0, 10800.0]);
    assert_eq!(gradient(&w), [320.0, 1000.0, 2160.0]);
    Ok(())
}

#[test]
fn a_change_of_the_whole_is_a_change_of_its_views() -> Result<()> {
    let (a, x) = computed()?;
    let (second, turned) = (row(&x, 1)?, permute_dims::call(&x, &[1, 0])?);
    let corner = slice::call(&turned, 0, Some(0), Some(1), 1)?;
    exp::call_(&x)?;
    pass(&second)?;
    let e = |v: f64| v.exp();
    assert_eq!(gradient(&a), [0.0, 0.0, 0.0, e(4.0), e(5.0), e(6.0)]);
    a.set_grad(None)?;
    let (a, x2) = computed()?;
    let views = [row(&x2, 1)?, permute_dims::call(&x2, &[1, 0])?];
    negative::call_(&x2)?;
    pass(&multiply::call(&views[1], &plain(&[1.0, 10.0, 2.0, 20.0, 3.0, 30.0], &[3, 2]))?)?;
    assert_eq!(gradient(&a), [-1.0, -2.0, -3.0, -10.0, -20.0, -30.0]);
    drop((corner, views));
    Ok(())
}

#[test]
fn a_plain_tensor_gets_the_history_of_what_is_written_to_its_views() -> Result<()> {
    let w = leaf(&[2.0]);
    let buffer = plain(&[0.0; 6], &[2, 3]);
    let (first, second) = (row(&buffer, 0)?, row(&buffer, 1)?);
    add::call_(&first, &w)?;
    assert!(buffer.requires_grad() && !buffer.is_leaf() && second.requires_grad() && !second.is_leaf());
    add::call_(&second, &multiply::call(&w, &w)?)?;
    assert_eq!(values(&buffer), [2.0, 2.0, 2.0, 4.0, 4.0, 4.0]);
    pass(&multiply::call(&first, &second)?)?;
    // 3 w³
    assert_eq!(gradient(&w), [36.0]);
    Ok(())
}

#[test]
fn views_of_views_and_siblings_that_overlap_share_one_history() -> Result<()> {
    let a = leaf(&[1.0, 2.0, 3.0, 4.0]);
    let x = clone::call(&a)?;
    let (left, right) = (slice::call(&x, 0, None, Some(3), 1)?, slice::call(&x, 0, Some(1), None, 1)?);
    let middle = slice::call(&left, 0, Some(1), None, 1)?;
    square::call_(&middle)?;
    assert_eq!(values(&right), [4.0, 9.0, 4.0]);
    multiply::call_(&right, &right.detach().copied()?)?;
    negative::call_(&left)?;
    assert_eq!(values(&x), [-1.0, -16.0, -81.0, 16.0]);
    pass(&x)?;
    // −a; −4 a², because the copy of a² is a constant; 4 a.
    assert_eq!(gradient(&a), [-1.0, -16.0, -54.0, 4.0]);
    Ok(())
}

#[test]
fn derivatives_of_changed_views_agree_with_differences() -> Result<()> {
    let f = |t: &[Tensor]| {
        let x = multiply::call(&t[0], &t[0])?;
        let first = row(&x, 0)?;
        multiply::call_(&first, &t[1])?;
        let turned = permute_dims::call(&x, &[1, 0])?;
        let column = slice::call(&turned, 0, Some(1), Some(3), 1)?;
        square::call_(&column)?;
        multiply::call_(&x, &multiply::call(&t[0], &plain(&[0.5], &[1]))?)?;
        Ok(vec![x, first, column])
    };
    let x = plain(&[0.3, -0.7, 0.2, 0.9, -0.4, 0.6], &[2, 3]);
    let w = plain(&[0.5, 1.5, -0.8], &[3]);
    gradcheck(&f, &[x, w], GradCheck { orders: 2, ..GradCheck::default() })
}

#[test]
fn parts_of_complex_numbers_are_views() -> Result<()> {
    let (a, b) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    let z = complex::call(&a, &b)?;
    let part = imag::call(&z)?;
    multiply::call_(&part, &a)?;
    assert_eq!(values(&imag::call(&z)?), [3.0, 8.0]);
    pass(&add::call(&real::call(&z)?, &square::call(&imag::call(&z)?)?)?)?;
    // a + (a b)²
    assert_eq!(gradient(&a), [19.0, 65.0]);
    assert_eq!(gradient(&b), [6.0, 32.0]);
    Ok(())
}

#[test]
fn an_expanded_view_gathers_what_its_elements_get() -> Result<()> {
    let a = leaf(&[1.0, 2.0]);
    let x = clone::call(&a)?;
    let wide = expand::call(&reshape::call(&x, &[2, 1])?, &[2, 3])?;
    square::call_(&x)?;
    pass(&wide)?;
    assert_eq!(gradient(&a), [6.0, 12.0]);
    Ok(())
}

#[test]
fn a_recorded_change_of_a_view_of_a_leaf_is_refused() -> Result<()> {
    let x = leaf(&[1.0, 2.0]);
    let error = negative::call_(&slice::call(&x, 0, None, Some(1), 1)?).unwrap_err();
    assert!(error.message().contains("a leaf that requires a gradient"), "{error}");
    assert_eq!(values(&x), [1.0, 2.0]);
    // Without recording, as an optimizer does. The view has the history of the current leaf.
    let view = slice::call(&x, 0, None, Some(1), 1)?;
    {
        let _quiet = NoGrad::new();
        negative::call_(&x)?;
    }
    pass(&square::call(&view)?)?;
    assert_eq!(gradient(&x), [-2.0, 0.0]);
    Ok(())
}

#[test]
fn a_view_that_was_made_unrecorded_is_not_changed_by_a_recorded_call() -> Result<()> {
    let w = leaf(&[2.0]);
    let x = plain(&[1.0, 1.0], &[2]);
    let view = {
        let _quiet = NoGrad::new();
        slice::call(&x, 0, None, Some(1), 1)?
    };
    let error = multiply::call_(&view, &w).unwrap_err();
    assert!(error.message().contains("under no_grad()"), "{error}");
    assert_eq!(values(&x), [1.0, 1.0]);
    // The view nevertheless follows a change of its base.
    multiply::call_(&x, &w)?;
    pass(&view)?;
    assert_eq!(gradient(&w), [1.0]);
    Ok(())
}

#[test]
fn what_was_saved_of_a_view_is_guarded_against_changes_of_the_whole() -> Result<()> {
    let (_, x) = computed()?;
    let first = row(&x, 0)?;
    let y = square::call(&first)?;
    negative::call_(&row(&x, 1)?)?;
    let error = pass(&y).unwrap_err();
    assert!(error.message().contains("op 'square'"), "{error}");
    Ok(())
}

#[test]
fn a_detached_tensor_is_no_view() -> Result<()> {
    let (_, x) = computed()?;
    let w = leaf(&[2.0]);
    let apart = x.detach();
    multiply::call_(&apart, &w)?;
    let error = square::call(&x).unwrap_err();
    assert!(error.message().contains("through another tensor that shares its memory"), "{error}");
    Ok(())
}

#[test]
fn hooks_of_a_view_see_the_gradient_after_a_change_of_the_whole() -> Result<()> {
    let (a, x) = computed()?;
    let first = row(&x, 0)?;
    negative::call_(&x)?;
    first.retain_grad()?;
    pass(&square::call(&first)?)?;
    assert_eq!(gradient(&first), [-2.0, -4.0, -6.0]);
    assert_eq!(gradient(&a), [2.0, 4.0, 6.0, 0.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn changes_of_views_that_save_one_another_are_freed() -> Result<()> {
    let before = minitensor::tensor::allocated_bytes() as i64;
    for _ in 0..50 {
        let a = Tensor::ones([2, 1 << 16], DType::F32, Device::Cpu)?.with_requires_grad()?;
        let x = clone::call(&a)?;
        let (first, second) = (row(&x, 0)?, row(&x, 1)?);
        multiply::call_(&first, &second)?;
        copy_into::call(&second, &first)?;
    }
    let more = minitensor::tensor::allocated_bytes() as i64 - before;
    assert!(more < 10 << 20, "{more} bytes are kept");
    Ok(())
}

#[test]
fn the_gradient_of_a_gradient_goes_through_a_change_of_a_view() -> Result<()> {
    let a = leaf(&[2.0, 3.0]);
    let x = multiply::call(&a, &a)?;
    let head = slice::call(&x, 0, None, Some(1), 1)?;
    multiply::call_(&head, &slice::call(&a, 0, None, Some(1), 1)?)?;
    let create = Options { retain_graph: true, create_graph: true };
    let total = sum::call(&x, None, false, None)?;
    let first = grad(&[total], &[a.clone()], &[], create)?.remove(0).expect("a gradient");
    assert_eq!(values(&first), [12.0, 6.0]);
    let second = grad(&[sum::call(&first, None, false, None)?], &[a], &[], create)?.remove(0).expect("a gradient");
    assert_eq!(values(&second), [12.0, 2.0]);
    Ok(())
}

#[test]
fn a_result_is_no_view_of_what_only_the_op_has_seen() -> Result<()> {
    use minitensor_ops::linalg::matmul;
    let (a, w) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    let vector = matmul::call(&a, &w.detach())?;
    multiply::call_(&vector, &plain(&[2.0], &[]))?;
    assert_eq!(vector.grad_fn_name().as_deref(), Some("multiply_"));
    let total = sum::call(&a, None, true, None)?;
    square::call_(&total)?;
    assert_eq!(total.grad_fn_name().as_deref(), Some("square_"));
    backward(&[vector], &[], Options::default())?;
    backward(&[total], &[], Options::default())?;
    assert_eq!(gradient(&a), [12.0, 14.0]);
    Ok(())
}
