use minitensor::op::{Arg, dispatch};
use minitensor::{DType, Device, Result, Tensor, registry};
use minitensor_ops as ops;

fn t(values: &[f64], shape: &[usize]) -> Tensor {
    Tensor::from_vec(values.to_vec(), shape).unwrap()
}

#[test]
fn swish_runs_and_differentiates() -> Result<()> {
    let x = t(&[-1.0, 0.0, 2.0], &[3]).with_requires_grad()?;
    let y = ops::activation::swish::call(&x)?;
    println!("{y}");
    minitensor::autograd::backward(&[y], &[Some(t(&[1.0; 3], &[3]))], Default::default())?;
    println!("{}", x.grad().unwrap());
    let g = x.grad().unwrap().to_vec::<f64>()?;
    let s = |x: f64| 1.0 / (1.0 + (-x).exp());
    for (x, g) in [-1.0, 0.0, 2.0].iter().zip(g) {
        let want = s(*x) * (1.0 + x * (1.0 - s(*x)));
        assert!((g - want).abs() < 1e-12);
    }
    Ok(())
}

#[test]
fn reductions_over_axes() -> Result<()> {
    let x = t(&(0..24).map(f64::from).collect::<Vec<_>>(), &[2, 3, 4]).with_requires_grad()?;
    let s = ops::reduction::sum::call(&x, Some(&[0, 2]), false, None)?;
    assert_eq!(s.to_vec::<f64>()?, [60.0, 92.0, 124.0]);
    let m = ops::reduction::max::call(&x, Some(&[1]), true)?;
    assert_eq!(m.shape().dims(), [2, 1, 4]);
    minitensor::autograd::backward(&[ops::reduction::sum::call(&m, None, false, None)?], &[], Default::default())?;
    println!("{}", x.grad().unwrap());
    Ok(())
}

#[test]
fn everything_is_registered() {
    registry::check().unwrap();
    println!("{}", registry::list().len());
    let mm = registry::get("matmul").unwrap();
    let x = Tensor::ones([2, 3], DType::F32, Device::Cpu).unwrap();
    let out = dispatch(&mm, &[Arg::Tensor(&x), Arg::Tensor(&x)], &[]);
    println!("{}", out.unwrap_err());
    println!("{}", registry::get("swich").unwrap_err());
}

#[test]
fn a_chain_of_a_million_drops() -> Result<()> {
    let x = t(&[1.0], &[1]).with_requires_grad()?;
    let mut y = x.clone();
    let start = std::time::Instant::now();
    for _ in 0..1_000_000 {
        y = ops::arithmetic::negative::call(&y)?;
    }
    println!("forward {:?}", start.elapsed());
    minitensor::autograd::backward(&[y.clone()], &[], Default::default())?;
    println!("backward {:?}", start.elapsed());
    drop(y);
    println!("drop {:?}", start.elapsed());
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [1.0]);
    Ok(())
}
