//! Bool tensors over memory that contains other bytes than 0 and 1.

use std::sync::Arc;

use minitensor::kernels::Truth;
use minitensor::prelude::*;
use minitensor_ops::indexing::{gather, where_};

/// The number of true elements, and the sum of the bytes that the body receives.
#[custom_op(name = "masks::count", shape = (x: [.., n]) -> (count: [..], bytes: [..]), backward = none)]
fn count_both(x: &[bool], count: &mut i64, bytes: &mut i64) {
    *count = x.iter().filter(|truth| **truth).count() as i64;
    *bytes = x.iter().map(|truth| *truth as i64).sum();
}

/// The boolean as a number.
#[custom_op(name = "masks::to_number", shape = (x: [..]) -> [..], backward = none)]
fn to_number(x: &bool, out: &mut i64) {
    *out = *x as i64;
}

/// The number of true elements, for any dtype.
#[custom_op(name = "masks::count_all", shape = (x: [.., n]) -> [..], backward = none)]
fn count_all<T: Element>(x: &[T], out: &mut i64) {
    *out = x.iter().filter(|v| v.truthy()).count() as i64;
}

/// A mask with these bytes.
fn mask(bytes: Vec<u8>, shape: &[usize]) -> Tensor {
    let bytes = Tensor::from_vec(bytes, shape).expect("as many bytes as the shape says");
    let (storage, strides) = (Arc::clone(bytes.storage()), bytes.strides().iter().copied().collect());
    // SAFETY: shape, strides and offset are those of a valid tensor of bytes. Any byte is a valid bool element.
    unsafe { Tensor::from_parts(storage, bytes.shape().clone(), strides, bytes.offset(), DType::Bool) }
}

#[test]
fn bodies_of_bools_see_zeros_and_ones() -> Result<()> {
    let m = mask(vec![0, 1, 2, 255, 0, 128], &[2, 3]);
    for m in [m.clone(), m.permute_view(&[1, 0])?.copied()?.permute_view(&[1, 0])?] {
        let (count, bytes) = count_both::call(&m)?;
        assert_eq!((count.to_vec::<i64>()?, bytes.to_vec::<i64>()?), (vec![2, 2], vec![2, 2]));
        assert_eq!(to_number::call(&m)?.to_vec::<i64>()?, [0, 1, 1, 1, 0, 1]);
        assert_eq!(count_all::call(&m)?.to_vec::<i64>()?, [2, 2]);
        assert_eq!(m.to_vec::<bool>()?, [false, true, true, true, false, true]);
    }
    Ok(())
}

#[test]
fn masks_choose_by_truth() -> Result<()> {
    let m = mask(vec![0, 1, 2, 255], &[4]);
    let (a, b) = (Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], [4])?, Tensor::scalar(9.0));
    assert_eq!(where_::call(&m, &a, &b)?.to_vec::<f64>()?, [9.0, 2.0, 3.0, 4.0]);
    let index = Tensor::from_vec(vec![3i64, 0], [2])?;
    assert_eq!(gather::call(&m, &index, -1)?.to_vec::<Truth>()?, [Truth::from(true), Truth::from(false)]);
    assert_eq!(m.cast(DType::F16)?.cast(DType::I32)?.to_vec::<i32>()?, [0, 1, 1, 1]);
    Ok(())
}

/// The smaller number, the larger one, and whether they were in order.
#[custom_op]
fn in_order<T: Real>(x: T, y: T) -> (T, T, T::Mask) {
    if x <= y {
        (x, y, true)
    } else if y < x {
        let (low, high) = if y < 0 { (y, x + 0) } else { (1 * y, x) };
        (low, high, false)
    } else {
        (x, y, x == y)
    }
}

/// Whether `x` is in the interval that belongs to its sign.
#[custom_op]
fn is_inside<T: Real>(x: T, limit: T) -> T::Mask {
    let inside = if x < 0 { -limit <= x } else { x <= limit };
    if limit < 0 { false } else { inside }
}

#[test]
fn an_if_on_data_selects_tuples_and_masks() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, 2.0, -3.0, f64::NAN], [4])?;
    let y = Tensor::from_vec(vec![2.0, 1.0, -4.0, 0.0], [4])?;
    let (low, high, sorted) = in_order::call(&x, &y)?;
    assert_eq!(low.to_vec::<f64>()?[..3], [1.0, 1.0, -4.0]);
    assert_eq!(high.to_vec::<f64>()?[..3], [2.0, 2.0, -3.0]);
    assert_eq!(sorted.to_vec::<bool>()?, [true, false, false, false]);
    assert!(low.to_vec::<f64>()?[3].is_nan());
    assert_eq!(is_inside::call(&x, &y)?.to_vec::<bool>()?, [true, false, false, false]);
    for op in [in_order::op(), is_inside::op()] {
        minitensor::testing::opcheck(&op, &[]).into_result()?;
    }
    Ok(())
}

/// A condition as a number.
#[custom_op(name = "masks::counted")]
pub fn counted<T: Float>(x: T, y: T) -> T {
    x * (x > 0.0) as T + y * (x > y) as f64
}

#[test]
fn a_condition_is_one_or_zero() -> Result<()> {
    let x = Tensor::from_vec(vec![-1.0, 0.5, 2.0], [3])?;
    let y = Tensor::from_vec(vec![-2.0, 1.0, 1.0], [3])?;
    assert_eq!(counted::call(&x, &y)?.to_vec::<f64>()?, [-2.0, 0.5, 3.0]);
    minitensor::testing::opcheck(&counted::op(), &[]).into_result()
}
