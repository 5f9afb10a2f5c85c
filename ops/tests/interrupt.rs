//! Long calls stop on request. The request is for the whole process, so this file has only one test.

use minitensor::kernels::Const;
use minitensor::kernels::threads::set_num_threads;
use minitensor::{DType, Device, Result, Tensor, interrupt};
use minitensor_ops::arithmetic::add;
use minitensor_ops::exponential::exp;
use minitensor_ops::indexing::{gather, nonzero, tril, triu};
use minitensor_ops::linalg::matmul;
use minitensor_ops::random::{integers, normal, uniform};
use minitensor_ops::reduction::cumsum;
use minitensor_ops::sorting::sort;
use minitensor_ops::unique::unique_values;

type Case<'a> = (&'a str, Box<dyn Fn() -> Result<Tensor> + 'a>);

#[test]
fn a_long_call_stops_when_it_is_asked_to() -> Result<()> {
    // The calling thread polls between its own chunks. With one thread, it runs all of them.
    set_num_threads(1);
    let n = 1 << 20;
    let x = Tensor::full([n], Const::Float(0.5), DType::F32, Device::Cpu)?;
    let square = Tensor::ones([1 << 10, 1 << 10], DType::F32, Device::Cpu)?;
    let narrow = Tensor::ones([n, 32], DType::F32, Device::Cpu)?;
    let index = Tensor::zeros([n], DType::I64, Device::Cpu)?;
    let key = Tensor::from_vec(vec![1_u64, 2], [2])?;
    let cases: Vec<Case<'_>> = vec![
        ("add", Box::new(|| add::call(&x, &x))),
        ("exp", Box::new(|| exp::call(&x))),
        ("sort", Box::new(|| Ok(sort::call(&x, -1, false)?.0))),
        ("cumsum", Box::new(|| cumsum::call(&x, -1, None))),
        ("cumsum of columns", Box::new(|| cumsum::call(&narrow, 0, None))),
        ("gather", Box::new(|| gather::call(&x, &index, -1))),
        ("nonzero", Box::new(|| nonzero::call(&x, None, 0))),
        ("nonzero of a size", Box::new(|| nonzero::call(&x, Some(n), 0))),
        ("unique_values", Box::new(|| unique_values::call(&x, None, None))),
        ("tril", Box::new(|| tril::call(&square, 0))),
        ("triu", Box::new(|| triu::call(&square, 0))),
        ("matmul", Box::new(|| matmul::call(&square, &square))),
        ("uniform", Box::new(|| uniform::call(&key, &[n as i64], DType::F32))),
        ("normal", Box::new(|| normal::call(&key, &[n as i64], DType::F16))),
        ("integers", Box::new(|| integers::call(&key, 0, 9, &[n as i64]))),
        ("full", Box::new(|| Tensor::full([n], Const::Int(1), DType::F64, Device::Cpu))),
        ("zeros", Box::new(|| Tensor::zeros([64 * n], DType::F64, Device::Cpu))),
        ("cast", Box::new(|| x.cast(DType::F64))),
        ("from_fn", Box::new(|| Tensor::from_fn([n], |i| [i as f64]))),
    ];
    for (name, call) in &cases {
        interrupt::request();
        let stopped = call();
        interrupt::clear();
        assert!(stopped.as_ref().is_err_and(|e| e.message().ends_with("interrupted")), "{name}: {stopped:?}");
        call()?;
    }
    Ok(())
}
