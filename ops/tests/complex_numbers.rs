//! Ops with complex and real numbers: values against formulas by hand, gradients by `opcheck`.

use minitensor::autograd::grad;
use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops as _;
use minitensor_ops::conversion::complex;

/// `|z|`.
#[custom_op(name = "complex_numbers::magnitude")]
pub fn magnitude<T: Float>(z: Complex<T>) -> T {
    z.re().hypot(z.im())
}

/// The complex number with polar coordinates.
#[custom_op(name = "complex_numbers::polar")]
pub fn polar<T: Float>(r: T, phi: T) -> Complex<T> {
    Complex::from_polar(r, phi)
}

/// Several results of both kinds.
#[custom_op(name = "complex_numbers::several", dtype = (z: Complex<T>, x: T) -> (scaled: Complex<T>, size: T, is_small: T::Mask))]
pub fn several<T: Float>(z: Complex<T>, x: T, #[default = 2.0] by: f64) -> (Complex<T>, T, T::Mask) {
    let w = by * z / (1.0 + x * x) + 1.0 - z.conj() * Complex::i();
    (w, w.abs() + z.norm_sqr(), w.abs() < 3.0)
}

/// One step of the iteration of a Julia set, with an optional constant and the power as an attribute.
#[custom_op(name = "complex_numbers::julia", where n >= 0)]
pub fn julia<T: Float>(z: Complex<T>, c: Option<Complex<T>>, #[default = 2] n: i64) -> Complex<T> {
    let w = z.powi(n);
    match c {
        Some(c) => w + c,
        None => w,
    }
}

/// Branches, loops and assignments.
#[custom_op(name = "complex_numbers::newton")]
pub fn newton<T: Float>(z: Complex<T>, #[default = 20] steps: usize) -> (Complex<T>, T) {
    let mut w = z;
    let mut taken = 0.0 * z.re;
    for _ in 0..steps {
        let step = (w * w * w - 1.0) / (3.0 * w * w);
        if step.abs() < 1e-9 {
            break;
        }
        w -= step;
        taken += 1.0;
    }
    let root: Complex<T> = if w.im() < 0.0 { w.conj() } else { w };
    (if w == 0 { 0.0 } else { root }, taken)
}

/// The functions.
#[custom_op(name = "complex_numbers::functions")]
pub fn functions<T: Float>(z: Complex<T>) -> Complex<T> {
    let near = z.exp() + z.log() * z.sqrt() - (z.sin() * z.cosh()).tanh();
    helper(near, 0.5) / z.recip() + z.arg() + z.pow(Complex::new(1.5, 0.5))
}

#[op_fn]
fn helper<T: Float>(z: Complex<T>, scale: f64) -> Complex<T> {
    let size = z.abs();
    if size > 10.0 { scale * z } else { z * 2.0 }
}

/// `z²`, with its derivative as a formula.
#[custom_op(name = "complex_numbers::squared", backward = |d| { z: 2 * d * z.conj() * factor, weight: none })]
pub fn squared<T: Float>(z: Complex<T>, weight: T, #[default = 1.0] factor: f64) -> Complex<T> {
    factor * z * z + weight.detach()
}

/// The real part, without a gradient.
#[custom_op(name = "complex_numbers::without", backward = none)]
pub fn without<T: Float>(z: Complex<T>) -> T {
    z.re()
}

/// A complex number times itself that often.
#[custom_op(name = "complex_numbers::times")]
pub fn times<T: Float, U: Int>(z: Complex<T>, n: U) -> Complex<T> {
    let doubled = if n > 1 { z * z } else { z };
    if n < 1 { 1 } else { doubled }
}

/// `(z − 1) / (z + 1)`, by a helper that is not written for complex numbers only.
#[custom_op(name = "complex_numbers::moebius")]
pub fn moebius<T: Float>(z: Complex<T>, x: T) -> (Complex<T>, T) {
    (quotient(z), quotient(x))
}

#[op_fn]
fn quotient<S: Field>(z: S) -> S {
    (z - 1.0) / (z + 1.0)
}

/// The normalized row, and its length.
#[custom_op(name = "complex_numbers::normalized", shape = (z: [.., n], w: [n]) -> (out: [.., n], length: [..]))]
pub fn normalized<R: Row>(z: Complex<R>, w: R) -> (Complex<R>, R) {
    let length = (w * z.norm_sqr()).sum().sqrt();
    (z / length, length)
}

/// `z` over its length, which the gradient holds constant.
#[custom_op(name = "complex_numbers::direction")]
pub fn direction<T: Float>(z: Complex<T>) -> Complex<T> {
    z / z.abs().detach()
}

fn numbers(parts: &[(f64, f64)]) -> Result<Tensor> {
    let (re, im): (Vec<f64>, Vec<f64>) = parts.iter().copied().unzip();
    complex::call(&Tensor::from_vec(re, [parts.len()])?, &Tensor::from_vec(im, [parts.len()])?)
}

fn parts(z: &Tensor) -> Result<Vec<(f64, f64)>> {
    let z = z.cast(DType::C128)?;
    let (re, im) = (z.part_view(0)?.to_vec::<f64>()?, z.part_view(1)?.to_vec::<f64>()?);
    Ok(re.into_iter().zip(im).collect())
}

#[test]
fn an_op_takes_complex_numbers_and_returns_real_ones_and_the_other_way_round() -> Result<()> {
    let z = numbers(&[(3.0, 4.0), (-5.0, 12.0)])?;
    assert_eq!(magnitude::call(&z)?.to_vec::<f64>()?, [5.0, 13.0]);
    assert_eq!(magnitude(Complex::new(3.0_f32, 4.0)), 5.0);
    let (r, phi) = (Tensor::from_vec(vec![2.0], [1])?, Tensor::from_vec(vec![0.0, 1.0], [2])?);
    assert_eq!(parts(&polar::call(&r, &phi)?)?, [(2.0, 0.0), (2.0 * 1f64.cos(), 2.0 * 1f64.sin())]);
    Ok(())
}

#[test]
fn dtypes_correspond_and_are_promoted() -> Result<()> {
    let z = numbers(&[(3.0, 4.0)])?;
    let small = z.cast(DType::C64)?;
    assert_eq!(magnitude::call(&small)?.dtype(), DType::F32);
    let (x, y) = (Tensor::from_vec(vec![1.0_f32], [1])?, Tensor::from_vec(vec![1.0], [1])?);
    assert_eq!(polar::call(&x, &x)?.dtype(), DType::C64);
    assert_eq!(polar::call(&x, &y)?.dtype(), DType::C128);
    let (scaled, size, is_small) = several::call(&small, &y, 2.0)?;
    assert_eq!((scaled.dtype(), size.dtype(), is_small.dtype()), (DType::C128, DType::F64, DType::Bool));
    // A real tensor is a complex one without an imaginary part.
    assert_eq!(magnitude::call(&Tensor::from_vec(vec![-3.0], [1])?)?.to_vec::<f64>()?, [3.0]);
    assert_eq!(magnitude::call(&Tensor::from_vec(vec![-3_i64], [1])?)?.dtype(), DType::F32);
    let half = x.cast(DType::F16)?;
    for error in [magnitude::call(&half), polar::call(&half, &half)] {
        let error = error.expect_err("no complex dtype has such parts").to_string();
        assert!(error.contains("float16") && error.contains("float32"), "{error}");
    }
    Ok(())
}

#[test]
fn values_agree_with_formulas() -> Result<()> {
    let (z, x) = (numbers(&[(0.5, -1.0), (2.0, 0.25)])?, Tensor::from_vec(vec![1.0, 3.0], [2])?);
    let (scaled, size, is_small) = several::call(&z, &x, 4.0)?;
    // 4z / (1 + x²) + 1 − i z̄, computed by hand.
    let expected = [(3.0, -2.5), (1.55, -1.9)];
    let (sizes, is_small) = (size.to_vec::<f64>()?, is_small.to_vec::<bool>()?);
    for (k, (got, want)) in parts(&scaled)?.iter().zip(expected).enumerate() {
        assert!((got.0 - want.0).abs() < 1e-14 && (got.1 - want.1).abs() < 1e-14, "{got:?}, expected {want:?}");
        let length = f64::hypot(want.0, want.1);
        assert!((sizes[k] - length - [1.25, 4.0625][k]).abs() < 1e-14);
        assert_eq!(is_small[k], length < 3.0);
    }
    let c = numbers(&[(0.0, 1.0)])?;
    let (quotient, real) = moebius::call(&c, &x)?;
    assert_eq!((parts(&quotient)?[0], real.to_vec::<f64>()?), ((0.0, 1.0), vec![0.0, 0.5]));
    assert_eq!(parts(&julia::call(&z, Some(&c), 2)?)?, [(-0.75, 0.0), (3.9375, 2.0)]);
    assert_eq!(parts(&julia::call(&z, None, 1)?)?, parts(&z)?);
    let (root, taken) = newton::call(&numbers(&[(1.0, 0.0), (-1.0, 1.0), (-1.0, -1.0)])?, 20)?;
    for (got, want) in parts(&root)?.iter().zip([(1.0, 0.0), (-0.5, 0.75f64.sqrt()), (-0.5, 0.75f64.sqrt())]) {
        assert!((got.0 - want.0).abs() < 1e-12 && (got.1 - want.1).abs() < 1e-12, "{got:?} {want:?}");
    }
    assert_eq!(taken.to_vec::<f64>()?[0], 0.0);
    Ok(())
}

#[test]
fn gradients_are_those_of_pytorch() -> Result<()> {
    // That of |z| is z / |z|, and that of z² is the conjugate of 2z times the cotangent.
    let z = numbers(&[(3.0, 4.0)])?.with_requires_grad()?;
    let gradient = |y: Tensor, d: Option<Tensor>| -> Result<Vec<(f64, f64)>> {
        parts(grad(&[y], std::slice::from_ref(&z), &[d], Default::default())?[0].as_ref().expect("a gradient"))
    };
    let got = gradient(magnitude::call(&z)?, None)?;
    assert!((got[0].0 - 0.6).abs() < 1e-15 && (got[0].1 - 0.8).abs() < 1e-15, "{got:?}");
    let d = numbers(&[(0.5, 2.0)])?;
    assert_eq!(gradient(julia::call(&z, None, 2)?, Some(d))?, [(0.5 * 6.0 + 2.0 * 8.0, 2.0 * 6.0 - 0.5 * 8.0)]);
    Ok(())
}

#[test]
fn a_formula_is_that_of_complex_tensors() -> Result<()> {
    let z = numbers(&[(3.0, 4.0)])?.with_requires_grad()?;
    let weight = Tensor::from_vec(vec![1.0], [1])?;
    let y = squared::call(&z, &weight, 0.5)?;
    assert_eq!(parts(&y)?, [(-2.5, 12.0)]);
    let gradient = grad(&[y], std::slice::from_ref(&z), &[Some(numbers(&[(1.0, 1.0)])?)], Default::default())?;
    assert_eq!(parts(gradient[0].as_ref().expect("a gradient"))?, [(7.0, -1.0)]);
    let y = without::call(&z)?;
    let error = grad(&[y], &[z], &[None], Default::default()).expect_err("there is no gradient").to_string();
    assert!(error.contains("complex_numbers::without"), "{error}");
    opcheck(&squared::op(), &[]).into_result()
}

#[test]
fn integers_beside_complex_numbers() -> Result<()> {
    let (z, n) = (numbers(&[(1.0, 2.0)])?, Tensor::from_vec(vec![0_i64, 1, 2], [3])?);
    assert_eq!(parts(&times::call(&z, &n)?)?, [(1.0, 0.0), (1.0, 2.0), (-3.0, 4.0)]);
    opcheck(&times::op(), &[]).into_result()
}

#[test]
fn opcheck_accepts_them() -> Result<()> {
    for op in
        [magnitude::op(), polar::op(), several::op(), julia::op(), functions::op(), normalized::op(), direction::op()]
    {
        opcheck(&op, &[]).into_result()?;
    }
    Ok(())
}
