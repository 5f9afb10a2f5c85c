//! Functions that call themselves.

use minitensor::prelude::*;
use minitensor::registry;
use minitensor::testing::opcheck;
use minitensor_ops as _;

/// The sum of a row, by halves.
#[op_fn]
fn by_halves<T: Float>(x: &[T]) -> T {
    match x.len() {
        0 => 0.0,
        1 => x[0],
        n => by_halves(&x[..n / 2]) + by_halves(&x[n / 2..]),
    }
}

/// The sum of a row.
#[custom_op(name = "recursion::sum", shape = (x: [.., n]) -> [..])]
fn sum<T: Float>(x: &[T]) -> T {
    by_halves(x)
}

/// `Hₙ(x) = 2 x Hₙ₋₁(x) − 2 (n − 1) Hₙ₋₂(x)`
#[op_fn]
fn hermite<T: Float>(x: T, n: i64) -> T {
    if n == 0 {
        1.0
    } else if n == 1 {
        2.0 * x
    } else {
        2.0 * x * hermite(x, n - 1) - 2 * (n - 1) * hermite(x, n - 2)
    }
}

/// `H₄(x) = 16 x⁴ − 48 x² + 12`
#[custom_op(name = "recursion::hermite4")]
fn hermite4<T: Float>(x: T) -> T {
    hermite(x, 4)
}

/// `x` to the power of two to the power of `n`.
#[op_fn]
fn squared(x: &Tensor, n: i64) -> Result<Tensor> {
    if n == 0 { Ok(x.clone()) } else { squared(&(x * x), n - 1) }
}

/// `x⁸`
#[custom_op(name = "recursion::eighth")]
fn eighth(x: &Tensor) -> Result<Tensor> {
    squared(x, 3)
}

#[test]
fn a_function_may_call_itself() -> Result<()> {
    let numbers = [0.5, -1.25, 2.0, 0.75, -0.5];
    let x = Tensor::from_vec(numbers.to_vec(), [5])?;
    assert_eq!(sum::call(&x)?.to_vec::<f64>()?, [1.5]);
    assert_eq!(hermite4::call(&x)?.to_vec::<f64>()?, numbers.map(|x: f64| 16.0 * x.powi(4) - 48.0 * x * x + 12.0));
    assert_eq!(eighth::call(&x)?.to_vec::<f64>()?, numbers.map(|x: f64| x.powi(8)));
    [sum::op(), hermite4::op(), eighth::op()].iter().try_for_each(|op| opcheck(op, &[]).into_result())
}

/// The remainder of a division by one. The condition depends on data, so both branches are computed.
#[op_fn]
fn endless<T: Float>(x: T) -> T {
    if x < 1.0 { x } else { endless(x - 1.0) }
}

/// The fraction of `x`.
#[custom_op(name = "recursion::fraction")]
fn fraction<T: Float>(x: T) -> T {
    endless(x)
}

/// The remainder of a division by one, in one cell. The number of steps depends on data.
#[op_fn]
fn remainder<T: Float>(x: &[T], steps: T) -> T {
    if x[0] - steps < 1.0 { x[0] - steps } else { remainder(x, steps + 1.0) }
}

/// The fraction of `x`, in a cell.
#[custom_op(name = "recursion::cell", shape = (x: [.., 1]) -> [..])]
fn cell<T: Float>(x: &[T]) -> T {
    remainder(x, 0.0)
}

#[test]
fn a_recursion_without_end_is_an_error() -> Result<()> {
    registry::check()?;
    let x = Tensor::from_vec(vec![2.5, 1e15], [2, 1])?;
    for (result, op, function) in
        [(fraction::call(&x), "recursion::fraction", "endless"), (cell::call(&x), "recursion::cell", "remainder")]
    {
        let error = result.expect_err("it has no end").to_string();
        let expected = format!(
            "op '{op}': the function '{function}' calls itself too often: its calls take more than 1024 KiB of stack"
        );
        assert!(error.starts_with(&expected), "{error}");
    }
    // The functions may be called again.
    assert_eq!(cell::call(&Tensor::from_vec(vec![2.5], [1, 1])?)?.to_vec::<f64>()?, [0.5]);
    Ok(())
}
