//! Lazy mode with bodies that read elements. The tests share the postponed calls, so they run one after the other.

use std::sync::{Mutex, PoisonError};

use minitensor::kernels::threads::{parallel_for, set_num_threads};
use minitensor::lazy::Lazy;
use minitensor::prelude::*;
use minitensor::random::manual_seed;
use minitensor_ops::arithmetic::{add, multiply};
use minitensor_ops::random::uniform;
use minitensor_ops::reduction::sum;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn first(x: &Tensor) -> Result<f32> {
    Ok(x.view::<f32>()?.first().copied().unwrap_or_default())
}

/// Reads elements on this thread, on threads of the pool, and on threads of its own.
#[custom_op(name = "lazy_test::read_on_threads", backward = none)]
fn read_on_threads(x: &Tensor) -> Result<Tensor> {
    let total = Mutex::new(first(x)?);
    let count = || {
        if let (Ok(mut total), Ok(value)) = (total.lock(), first(x)) {
            *total += value;
        }
    };
    parallel_for(64, 1, |range| range.for_each(|_| count()));
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(count))));
    let total = *total.lock().unwrap_or_else(PoisonError::into_inner);
    Tensor::from_vec(vec![total], [1])
}

/// Reads an element, and returns a view.
#[custom_op(name = "lazy_test::tail", backward = none)]
fn tail(x: &Tensor) -> Result<Tensor> {
    x.slice_view(0, usize::from(first(x)? > 0.0), x.shape()[0] - 1, 1)
}

/// Reads an element, and draws a number.
#[custom_op(name = "lazy_test::noise", backward = none)]
fn noise(x: &Tensor) -> Result<Tensor> {
    let size = if first(x)? > 0.0 { 2 } else { 3 };
    let key = minitensor::random::next_key(size, minitensor::random::Block::Floats, x.device())?;
    uniform::call(&key, &[size as i64], DType::F32)
}

fn numbers() -> Result<Tensor> {
    Tensor::from_vec(vec![1.0_f32, 2.0, 3.0], [3])
}

#[test]
fn bodies_read_their_inputs_on_any_thread() -> Result<()> {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    set_num_threads(4);
    let x = numbers()?;
    let result = {
        let _lazy = Lazy::new();
        let y = multiply::call(&x, &x)?;
        add::call(&read_on_threads::call(&y)?, &read_on_threads::call(&x)?)?
    };
    assert_eq!(result.to_vec::<f32>()?, [2.0 * 69.0]);
    Ok(())
}

#[test]
fn a_body_that_returns_a_view_returns_a_view() -> Result<()> {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let x = numbers()?;
    let _lazy = Lazy::new();
    let y = multiply::call(&x, &x)?;
    let rest = tail::call(&y)?;
    assert!(rest.shares_storage(&y));
    assert_eq!(rest.to_vec::<f32>()?, [4.0, 9.0]);
    Ok(())
}

#[test]
fn random_numbers_are_drawn_in_the_order_of_the_calls() -> Result<()> {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let x = numbers()?;
    let run = || -> Result<[Tensor; 3]> {
        manual_seed(5);
        let y = multiply::call(&x, &x)?;
        let (a, b) = (noise::call(&y)?, noise::call(&x)?);
        Ok([sum::call(&noise::call(&a)?, None, false, None)?, a, b])
    };
    let expected = run()?;
    let got = {
        let _lazy = Lazy::new();
        run()?
    };
    for (a, b) in got.iter().zip(&expected) {
        assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
    }
    Ok(())
}
