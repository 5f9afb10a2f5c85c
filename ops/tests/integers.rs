//! Ops of floats with tensors that are stored as integers.

use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops as _;

/// The nearest multiple of `scale`, as a number of steps: `round(x / scale)`, clamped to eight bits.
#[custom_op(dtype = (x: T, scale: T) -> (steps: i8))]
fn quantized<T: Float>(x: T, scale: T) -> T {
    (x / scale).round().maximum(-128.0).minimum(127.0)
}

/// `scale · (steps − zero)`.
#[custom_op(dtype = (steps: u8, scale: T) -> T)]
fn dequantized<T: Float>(steps: T, scale: T, #[default = 0] zero: i64) -> T {
    scale * (steps - zero)
}

/// The position of an element on a grid of `n` steps, and how often it was moved.
#[custom_op(dtype = (x: T, count: i32) -> (place: i64, moves: i32))]
fn binned<T: Float>(x: T, count: T, n: usize) -> (T, T) {
    ((x * n as f64).floor(), count + 1.0)
}

/// Eight bits for each element of a row, and the scale of the row.
#[custom_op(dtype = (x: R) -> (steps: i8, scale: R), shape = (x: [.., n]) -> (steps: [.., n], scale: [..]), axis = -1)]
fn quantized_rows<R: Row>(x: R) -> (R, R) {
    let scale = x.abs().max() / 127.0;
    let safe = if scale > 0.0 { scale } else { 1.0 };
    ((x / safe).round(), scale)
}

/// The product of a row of floats with a row of integers.
#[custom_op(dtype = (x: R, steps: i8) -> R, shape = (x: [.., n], steps: [.., n]) -> [..])]
fn weighted<R: Row>(x: R, steps: R) -> R {
    x.dot(steps)
}

/// The elements of any dtype.
fn values(t: &Tensor) -> Result<Vec<i64>> {
    t.cast(DType::I64)?.to_vec()
}

#[test]
fn numbers_are_stored_as_integers() -> Result<()> {
    let x = Tensor::from_vec(vec![0.26, -0.74, 100.0, f64::NEG_INFINITY, 0.0, -0.1], [2, 3])?;
    let scale = Tensor::from_vec(vec![0.5], [1])?;
    let steps = quantized::call(&x, &scale)?;
    assert_eq!((steps.dtype(), values(&steps)?), (DType::I8, vec![1, -1, 127, -128, 0, 0]));
    let columns = minitensor_ops::shape::transpose::call(&x, 0, 1)?;
    assert_eq!(values(&quantized::call(&columns, &scale)?)?, [1, -128, -1, 0, 127, 0]);
    let steps = Tensor::from_vec(vec![0u8, 128, 255], [3])?;
    for dtype in [DType::F16, DType::Bf16, DType::F32, DType::F64] {
        let y = dequantized::call(&steps, &scale.cast(dtype)?, 128)?;
        assert_eq!((y.dtype(), y.cast(DType::F64)?.to_vec::<f64>()?), (dtype, vec![-64.0, 0.0, 63.5]));
    }
    let count = Tensor::from_vec(vec![7i32, 8], [2])?;
    let (place, count) = binned::call(&Tensor::from_vec(vec![0.5f32, 0.99], [2])?, &count, 10)?;
    assert_eq!((values(&place)?, values(&count)?), (vec![5, 9], vec![8, 9]));
    assert_eq!((place.dtype(), count.dtype()), (DType::I64, DType::I32));
    Ok(())
}

#[test]
fn rows_are_stored_as_integers_along_any_axis() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, -2.0, 4.0, 0.5, 0.0, -127.0], [2, 3])?;
    let (steps, scale) = quantized_rows::call(&x, -1, false)?;
    assert_eq!((steps.dtype(), values(&steps)?), (DType::I8, vec![32, -64, 127, 0, 0, -127]));
    assert_eq!(scale.to_vec::<f64>()?, [4.0 / 127.0, 1.0]);
    let (steps, _) = quantized_rows::call(&x, 0, false)?;
    assert_eq!(values(&steps)?, [127, -127, 4, 64, 0, -127]);
    let product = weighted::call(&x, &Tensor::from_vec(vec![1i8, 2, -3], [3])?)?;
    assert_eq!(product.to_vec::<f64>()?, [-15.0, 381.5]);
    Ok(())
}

#[test]
fn the_function_itself_computes_numbers() {
    assert_eq!(quantized(0.26, 0.5), 1.0);
    assert_eq!(dequantized(1.0, 2.0, 0), 2.0);
}

#[test]
fn ops_with_integers_pass_opcheck() -> Result<()> {
    for op in [quantized::op(), dequantized::op(), binned::op(), quantized_rows::op(), weighted::op()] {
        opcheck(&op, &[]).into_result()?;
    }
    Ok(())
}

#[test]
fn another_integer_dtype_is_an_error() -> Result<()> {
    let steps = Tensor::from_vec(vec![1i64, 2], [2])?;
    let error = dequantized::call(&steps, &Tensor::from_vec(vec![1.0], [1])?, 0).expect_err("it is int64").to_string();
    assert!(error.contains("op 'dequantized': 'steps' takes uint8, got int64"), "{error}");
    Ok(())
}
