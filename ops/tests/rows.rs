//! Row ops as users write them pass opcheck. A cell op reduces over its batch.

// A slice of one owned tensor reads better than `from_ref`.
#![allow(clippy::cloned_ref_to_slice_refs)]

use minitensor::prelude::*;
use minitensor::testing::{Sample, opcheck};
use minitensor_ops as _;

#[path = "../../ui-tests/ui/pass/rows.rs"]
mod users;

use users::{huber_rows, norm_of, ranked_probability, tempered};

#[test]
fn rows_pass_opcheck() -> Result<()> {
    users::main()?;
    for op in [tempered::op(), huber_rows::op(), norm_of::op(), ranked_probability::op()] {
        opcheck(&op, &[]).into_result()?;
    }
    let x = Tensor::from_vec(vec![1.0, 2.0, 4.0, -1.0, 0.5, 0.25], [2, 3])?;
    let t = Tensor::from_vec(vec![1.0, 2.0], [2])?;
    let (p, _) = tempered::call(&x, &t, -1, false)?;
    let sample = Sample { inputs: vec![Some(x), Some(p), None], attrs: vec![0.5.into(), false.into()] };
    opcheck(&huber_rows::op(), &[sample]).into_result()
}

/// Halves the mean ten times.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
fn calmed<R: Row>(x: R) -> R {
    let mut y = x;
    for _ in 0..10 {
        y = y - y.mean() * 0.5;
    }
    y
}

#[test]
fn more_reductions_depend_on_one_another_than_a_compiled_loop_has() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, 2.0, 6.0, -1.0, 0.0, 4.0], [2, 3])?;
    let part = 1.0 - 0.5f64.powi(10);
    let expected = [1.0 - 3.0 * part, 2.0 - 3.0 * part, 6.0 - 3.0 * part, -1.0 - part, -part, 4.0 - part];
    let y = calmed::call(&x)?.to_vec::<f64>()?;
    assert!(y.iter().zip(expected).all(|(y, e)| (y - e).abs() < 1e-6), "{y:?}");
    opcheck(&calmed::op(), &[]).into_result()
}

/// A sum with optional weights.
#[custom_op(shape = (x: [.., n], w: [.., n]) -> [..], axis = -1)]
fn weighted<R: Row>(x: R, w: Option<R>, #[default = true] doubled: bool) -> R {
    let x = if let Some(w) = w { x * w } else { x };
    let sum = x.sum();
    if doubled { sum + sum } else { sum }
}

#[test]
fn an_optional_row_may_be_absent_along_any_axis() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, 2.0, 4.0, -1.0, 0.5, 0.25], [2, 3])?;
    let w = Tensor::from_vec(vec![1.0, 0.0, 2.0, 3.0, 4.0, 8.0], [2, 3])?;
    for (w, axis, doubled, expected) in [
        (None, -1, true, vec![14.0, -0.5]),
        (None, 0, false, vec![0.0, 2.5, 4.25]),
        (Some(&w), -1, false, vec![9.0, 1.0]),
        (Some(&w), 0, true, vec![-4.0, 4.0, 20.0]),
    ] {
        assert_eq!(weighted::call(&x, w, axis, doubled, false)?.to_vec::<f64>()?, expected, "axis {axis}");
    }
    opcheck(&weighted::op(), &[]).into_result()
}

#[op_fn]
fn doubled<R: Row>(x: R) -> R {
    2.0 * x
}

/// The output has a value for each element, but a helper hides this from the macro.
#[custom_op(shape = (x: [.., n]) -> (total: [..]))]
fn hidden<R: Row>(x: R) -> R {
    doubled(x)
}

#[test]
fn a_result_along_the_row_for_an_output_without_it_raises_and_names_both() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, 2.0], [1, 2])?;
    let error = hidden::call(&x).expect_err("the result does not fit").to_string();
    assert!(error.contains("op 'hidden'") && error.contains("'total'"), "{error}");
    let finding = opcheck(&hidden::op(), &[]).into_result().expect_err("opcheck calls it").to_string();
    assert!(finding.contains("'total'"), "{finding}");
    Ok(())
}

/// The product of a row.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn product<R: Row>(x: R) -> R {
    x.prod()
}

/// The partial derivatives of `Πᵢ xᵢ` by the elements at these positions: the product of the others.
fn of_others(x: &[f64], places: &[usize]) -> f64 {
    let is_distinct = places.iter().enumerate().all(|(k, place)| !places[..k].contains(place));
    let others = x.iter().enumerate().filter(|(i, _)| !places.contains(i)).map(|(_, x)| x);
    if is_distinct { others.product() } else { 0.0 }
}

#[test]
fn products_with_zeros_have_all_derivatives_up_to_the_third() -> Result<()> {
    use minitensor::autograd::{Options, grad};
    const ALL: Options = Options { retain_graph: true, create_graph: true };
    for x in [[2.0, 0.0, 3.0, 5.0], [2.0, 0.0, 3.0, 0.0], [0.0, 0.0, 3.0, 0.0], [0.0; 4], [2.0, -1.0, 3.0, 0.5]] {
        let leaf = Tensor::from_vec(x.to_vec(), [4])?.with_requires_grad()?;
        for y in [product::call(&leaf)?, minitensor_ops::reduction::prod::call(&leaf, None, false, None)?] {
            assert_eq!(y.item::<f64>()?, x.iter().product::<f64>());
            let slope = |y: &Tensor, i: usize| -> Result<(Tensor, f64)> {
                let all = grad(&[y.clone()], &[leaf.clone()], &[], ALL)?[0].clone().expect("it depends on x");
                let one = Tensor::from_vec((0..4).map(|k| f64::from(u8::from(k == i))).collect(), [4])?;
                let chosen = minitensor_ops::arithmetic::multiply::call(&all, &one)?;
                let chosen = minitensor_ops::reduction::sum::call(&chosen, None, false, None)?;
                let value = chosen.item::<f64>()?;
                Ok((chosen, value))
            };
            for i in 0..4 {
                let (first, value) = slope(&y, i)?;
                assert_eq!(value, of_others(&x, &[i]), "{x:?} {i}");
                for j in 0..4 {
                    let (second, value) = slope(&first, j)?;
                    assert_eq!(value, of_others(&x, &[i, j]), "{x:?} {i} {j}");
                    for k in 0..4 {
                        let (_, value) = slope(&second, k)?;
                        assert!((value - of_others(&x, &[i, j, k])).abs() < 1e-12, "{x:?} {i} {j} {k}: {value}");
                    }
                }
            }
        }
    }
    Ok(())
}

/// The position of the largest element.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn place_of_largest<R: Row>(x: R) -> R::Index {
    x.argmax().to_index()
}

#[test]
fn an_empty_row_has_no_position() -> Result<()> {
    let empty = Tensor::from_vec(Vec::<f64>::new(), [2, 0])?;
    let error = place_of_largest::call(&empty).expect_err("there is no element").to_string();
    assert!(error.contains("op 'place_of_largest'") && error.contains("the rows are empty"), "{error}");
    assert_eq!(place_of_largest::call(&Tensor::from_vec(Vec::<f64>::new(), [0, 0])?)?.numel(), 0);
    Ok(())
}
