//! Ops over lists of tensors, with a shape clause.

use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops::arithmetic::add;

/// The sum of vectors of one length.
#[custom_op(name = "lists::total", shape = (vectors: [.., n]) -> [.., n])]
fn total(vectors: &[&Tensor]) -> Result<Tensor> {
    let Some((first, others)) = vectors.split_first() else {
        return Err(Error::value("takes at least one vector"));
    };
    let mut sum = (*first).clone();
    for vector in others {
        sum = add::call(&sum, vector)?;
    }
    Ok(sum)
}

fn vector(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.to_vec(), [values.len()]).expect("a vector")
}

#[test]
fn every_tensor_of_a_list_has_the_shape_of_the_list() -> Result<()> {
    let (a, b, c) = (vector(&[1.0, 2.0]), vector(&[3.0, 4.0]), vector(&[5.0, 9.0]));
    assert_eq!(total::call(&[&a, &b, &c])?.to_vec::<f64>()?, [9.0, 15.0]);
    let rows = Tensor::from_vec(vec![0.0, 0.0, 2.0, 2.0], [2, 2])?;
    assert_eq!(total::call(&[&rows, &a])?.to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0]);

    let error = total::call(&[&a, &b, &vector(&[1.0])]).expect_err("a length that differs").to_string();
    assert!(
        error.contains("'vectors' of shape (1,) does not match: expected size 2 for dimension n, got 1"),
        "{error}"
    );
    let scalar = Tensor::from_vec(vec![1.0], [])?;
    let error = total::call(&[&a, &scalar]).expect_err("no dimension").to_string();
    assert!(error.contains("expected at least 1 dimension"), "{error}");
    let error = total::call(&[]).expect_err("no vector").to_string();
    assert!(error.contains("dimension n is unknown, because no argument that has it was passed"), "{error}");
    opcheck(&total::op(), &[]).into_result()
}
