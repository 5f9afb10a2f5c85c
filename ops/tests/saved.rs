//! The tensors that a recorded call saves for its gradient.

// A slice of one owned tensor reads better than `from_ref`.
#![allow(clippy::cloned_ref_to_slice_refs)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use minitensor::autograd::{NoGrad, Options, backward};
use minitensor::kernels::program::Program;
use minitensor::kernels::{Const, Element, Field, lit};
use minitensor::op::{Arg, dispatch_one};
use minitensor::testing::{GradCheck, gradcheck};
use minitensor::{CustomOpBuilder, DType, OpRef, Result, Tensor, registry};
use minitensor_ops as _;

const LENGTH: usize = 1 << 18;

/// Memory is counted for the whole process, so the tests run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.to_vec(), [values.len()]).and_then(Tensor::with_requires_grad).expect("a leaf")
}

fn op(name: &str) -> OpRef {
    registry::get(name).expect("a built-in op")
}

fn unary(name: &str, x: &Tensor) -> Result<Tensor> {
    let op = op(name);
    let attrs = (0..op.attrs.len()).map(|i| op.default_attr(i)).collect::<Result<Vec<_>>>()?;
    dispatch_one(&op, &[x.into()], &attrs)
}

fn in_place(name: &str, x: &Tensor) -> Result<()> {
    minitensor::dispatch(&op(name), &[x.into()], &[]).map(|_| ())
}

fn with_number(name: &str, x: &Tensor, number: f64) -> Result<Tensor> {
    dispatch_one(&op(name), &[x.into(), Arg::Number(Const::Float(number))], &[])
}

fn pass(t: &Tensor) -> Result<()> {
    let ones = Tensor::ones(t.shape().clone(), t.dtype(), t.device())?;
    backward(&[t.clone()], &[Some(ones)], Options::default())
}

fn gradient(t: &Tensor) -> Vec<f64> {
    t.grad().expect("a gradient").to_vec::<f64>().expect("float64")
}

/// The number of tensors of `LENGTH` elements that a chain of twenty calls saves, besides its input and its result.
fn kept_by_a_chain(step: impl Fn(&Tensor) -> Result<Tensor>) -> Result<i64> {
    let x = Tensor::ones([LENGTH], DType::F32, Default::default())?.with_requires_grad()?;
    let before = minitensor::tensor::allocated_bytes();
    let mut y = step(&x)?;
    for _ in 1..20 {
        y = step(&y)?;
    }
    let bytes = minitensor::tensor::allocated_bytes() as i64 - before as i64;
    Ok((bytes as f64 / (4 * LENGTH) as f64).round() as i64 - 1)
}

#[test]
fn what_no_gradient_reads_is_not_kept() -> Result<()> {
    let _alone = alone();
    let half = Tensor::ones([LENGTH], DType::F32, Default::default())?;
    assert_eq!(kept_by_a_chain(|h| with_number("add", h, 2.0))?, 0);
    assert_eq!(kept_by_a_chain(|h| with_number("multiply", h, 2.0))?, 0);
    assert_eq!(kept_by_a_chain(|h| with_number("divide", h, 2.0))?, 0);
    assert_eq!(kept_by_a_chain(|h| unary("negative", h))?, 0);
    // The factor is one tensor that exists already.
    assert_eq!(kept_by_a_chain(|h| dispatch_one(&op("multiply"), &[h.into(), (&half).into()], &[]))?, 0);
    assert_eq!(kept_by_a_chain(|h| dispatch_one(&op("subtract"), &[h.into(), (&half).into()], &[]))?, 0);
    // Each result is saved, in place of the sum that it was computed from.
    assert_eq!(kept_by_a_chain(|h| unary("exp", &with_number("multiply", h, -1.0)?))?, 19);
    assert_eq!(kept_by_a_chain(|h| unary("relu", &with_number("add", h, 1.0)?))?, 19);
    Ok(())
}

#[test]
fn an_input_that_no_gradient_reads_may_change() -> Result<()> {
    let _alone = alone();
    let x = leaf(&[1.0, -2.0]);
    let h = unary("positive", &x)?;
    let y = with_number("add", &h, 2.0)?;
    let z = with_number("multiply", &h, 3.0)?;
    in_place("negative_", &h)?;
    pass(&dispatch_one(&op("add"), &[(&y).into(), (&z).into()], &[])?)?;
    assert_eq!(gradient(&x), [4.0, 4.0]);
    Ok(())
}

/// Ops whose gradient needs the output and not the input, and some with the opposite need.
#[test]
fn an_output_that_suffices_is_kept_instead_of_the_input() -> Result<()> {
    let _alone = alone();
    for (name, keeps_output) in [
        ("exp", true),
        ("exp2", true),
        ("sqrt", true),
        ("tan", true),
        ("cbrt", true),
        ("relu", true),
        ("relu6", false),
        ("sigmoid", false),
        ("expm1", false),
        ("leaky_relu", false),
        ("log", false),
        ("square", false),
    ] {
        for spoils_output in [false, true] {
            let x = leaf(&[0.25, 0.5]);
            let h = unary("positive", &x)?;
            let y = unary(name, &h)?;
            let z = with_number("multiply", &y, 1.0)?;
            in_place("negative_", if spoils_output { &y } else { &h })?;
            assert_eq!(pass(&z).is_err(), keeps_output == spoils_output, "{name}, output changed: {spoils_output}");
        }
    }
    Ok(())
}

#[test]
fn gradients_by_way_of_outputs_are_those_by_way_of_inputs() -> Result<()> {
    let _alone = alone();
    for name in ["exp", "exp2", "sqrt", "tan", "cbrt", "relu", "tanh", "reciprocal"] {
        let x = Tensor::from_vec(vec![0.3, 0.7, 1.1], [3])?;
        let call = |t: &[Tensor]| Ok(vec![unary(name, &t[0])?]);
        gradcheck(&call, &[x], GradCheck { orders: 3, ..GradCheck::default() }).map_err(|e| e.context(name))?;
    }
    for (x, expected) in [(f64::NAN, 1.0), (-0.0, 0.0), (0.0, 0.0), (f64::INFINITY, 1.0), (-1.0, 0.0), (1e-300, 1.0)] {
        let x = leaf(&[x]);
        pass(&unary("relu", &x)?)?;
        assert_eq!(gradient(&x), [expected], "at {x}");
    }
    Ok(())
}

/// A 16-bit result has fewer digits than the gradient needs.
#[test]
fn an_output_in_a_narrow_format_does_not_serve_for_a_computed_one() -> Result<()> {
    let _alone = alone();
    let numbers: Vec<f64> = (0..256).map(|i| f64::from(i) / 100.0 - 1.0).collect();
    for dtype in [DType::F16, DType::Bf16] {
        let x = Tensor::from_vec(numbers.clone(), [numbers.len()])?.cast(dtype)?;
        let exact: Vec<f64> = x.cast(DType::F64)?.to_vec::<f64>()?.iter().map(|v| 3.0 * v.exp()).collect();
        let rounded = Tensor::from_vec(exact, [numbers.len()])?.cast(dtype)?;
        let x = x.with_requires_grad()?;
        let y = unary("exp", &x)?;
        let three = Tensor::ones(y.shape().clone(), DType::F32, y.device())?;
        let three = with_number("multiply", &three, 3.0)?.cast(dtype)?;
        backward(&[y], &[Some(three)], Options::default())?;
        let close = x.grad().unwrap().cast(DType::F64)?.to_vec::<f64>()?;
        let agree = close.iter().zip(rounded.cast(DType::F64)?.to_vec::<f64>()?).filter(|(a, b)| **a == *b).count();
        assert!(agree >= 250, "{dtype}: {agree} of 256 are rounded once");
    }
    Ok(())
}

#[test]
fn an_op_in_place_copies_no_old_value_that_its_gradient_does_not_read() -> Result<()> {
    let _alone = alone();
    for name in ["exp_", "relu_", "sqrt_", "negative_"] {
        let x = Tensor::ones([LENGTH], DType::F64, Default::default())?.with_requires_grad()?;
        let h = with_number("add", &x, 1.0)?;
        let before = minitensor::tensor::allocated_bytes() as i64;
        in_place(name, &h)?;
        let more = minitensor::tensor::allocated_bytes() as i64 - before;
        assert!(more < LENGTH as i64, "{name} keeps {more} bytes");
        pass(&h)?;
        let expected = match name {
            "exp_" => 2.0f64.exp(),
            "relu_" => 1.0,
            "sqrt_" => 0.5 / 2.0f64.sqrt(),
            _ => -1.0,
        };
        assert!((gradient(&x)[7] - expected).abs() < 1e-15, "{name}");
    }
    Ok(())
}

#[test]
fn an_output_that_was_changed_since_raises_and_is_named() -> Result<()> {
    let _alone = alone();
    let x = leaf(&[1.0]);
    let h = unary("positive", &x)?;
    in_place("exp_", &h)?;
    let y = with_number("add", &h, 0.0)?;
    {
        let _quiet = NoGrad::new();
        in_place("negative_", &h)?;
    }
    let error = pass(&y).unwrap_err();
    assert!(error.message().contains("op 'exp_': 'out'"), "{error}");
    Ok(())
}

/// The inputs that a gradient reads depend on the attributes and on the inputs that need one.
#[test]
fn each_kind_of_call_saves_what_it_needs() -> Result<()> {
    let _alone = alone();
    let body = Program::write(&["x", "y"], &["scale"], |v, u| {
        let positive = minitensor::kernels::Real::greater(v[1], lit(0));
        vec![("out".into(), Element::select(positive, v[0] * u[0], v[0].exp()).into())]
    });
    let op: OpRef = CustomOpBuilder::from_program("scaled_or_exp", body)?.build()?.definition();
    let call = |x: &Tensor, y: &Tensor| dispatch_one(&op, &[x.into(), y.into()], &[2.0.into()]);
    let (a, b) = (leaf(&[1.0, 2.0]), leaf(&[1.0, -1.0]));
    let (x, y) = (unary("positive", &a)?, unary("positive", &b)?);
    let out = call(&x, &y.detach())?;
    pass(&out)?;
    assert_eq!(gradient(&a), [2.0, 2.0f64.exp()]);
    let out = call(&x.detach(), &y)?;
    in_place("negative_", &x)?;
    pass(&out)?;
    assert_eq!(gradient(&b), [0.0, 0.0]);
    Ok(())
}
