//! Ops whose programs depend on static attributes and optional inputs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minitensor::attr::FromAttr;
use minitensor::kernels::RealRow;
use minitensor::kernels::program::Program;
use minitensor::op::Value;
use minitensor::{Attr, AttrKind, CustomOp, CustomOpBuilder, OpRef, Result, Tensor};
use minitensor_ops as _;

fn of_two(write: impl Fn(&[Attr], &[bool]) -> Result<Program> + Send + Sync + 'static) -> Result<OpRef> {
    let builder = CustomOpBuilder::new("variants::op", 2).optional(1).attr("times", AttrKind::Int, Some(1i64.into()));
    builder.programs(write)?.build().map(CustomOp::definition)
}

fn call(op: &OpRef, given: &[&Tensor], attrs: &[(&str, Value<'_>)]) -> Result<Vec<f64>> {
    let args: Vec<Value<'_>> = given.iter().map(|t| (*t).into()).collect();
    let (inputs, attrs) = minitensor::op::bind(op, &args, attrs)?;
    minitensor::dispatch(op, &inputs, &attrs)?.into_vec()[0].to_vec::<f64>()
}

fn error(result: Result<impl Sized>) -> String {
    result.err().map_or_else(String::new, |e| e.to_string())
}

#[test]
fn a_program_is_written_once_for_each_choice() -> Result<()> {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let op = of_two(move |attrs, given| {
        count.fetch_add(1, Ordering::Relaxed);
        let (times, has_y) = (i64::from_attr(&attrs[0])?, given[1]);
        Ok(Program::write(&["x", "y"], &[], |v, _| {
            let product = (0..times).fold(v[0], |product, _| product * v[0]);
            vec![("out".into(), if has_y { product + v[1] } else { product }.into())]
        }))
    })?;
    let x = Tensor::from_vec(vec![3.0], [1])?;
    for _ in 0..3 {
        assert_eq!(call(&op, &[&x], &[])?, [9.0]);
        assert_eq!(call(&op, &[&x, &x], &[])?, [12.0]);
        assert_eq!(call(&op, &[&x], &[("times", 2i64.into())])?, [27.0]);
    }
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    Ok(())
}

#[test]
fn a_program_that_does_not_fit_its_op_is_an_error() -> Result<()> {
    let one = |name: &str| Program::write(&[name], &[], |v, _| vec![("out".into(), v[0].into())]);
    assert_eq!(error(of_two(move |_, _| Ok(one("x")))), "op 'variants::op': the program has 1 input, expected 2");
    let reads = |_: &[Attr], _: &[bool]| {
        Ok(Program::write(&["x", "y"], &[], |v, _| vec![("out".into(), (v[0] + v[1]).into())]))
    };
    assert_eq!(error(of_two(reads)), "op 'variants::op': the program reads 'y', which is not given");
    let uniform = |_: &[Attr], _: &[bool]| {
        Ok(Program::write(&["x", "y"], &["b"], |v, u| vec![("out".into(), (v[0] + u[0]).into())]))
    };
    assert_eq!(error(of_two(uniform)), "op 'variants::op': the program has 1 uniform, expected 0");
    let later = of_two(|attrs, _| {
        let outputs = i64::from_attr(&attrs[0])?;
        let out = |k: i64| format!("out{k}");
        Ok(Program::write(&["x", "y"], &[], |v, _| (0..outputs).map(|k| (out(k), v[0].into())).collect()))
    })?;
    let x = Tensor::from_vec(vec![3.0], [1])?;
    assert_eq!(
        error(call(&later, &[&x, &x], &[("times", 2i64.into())])),
        "op 'variants::op' with times=2: the program has 2 outputs, expected 1"
    );
    Ok(())
}

#[test]
fn which_outputs_are_rows_does_not_depend_on_a_choice() -> Result<()> {
    let write = |attrs: &[Attr], _: &[bool]| {
        let is_sum = bool::from_attr(&attrs[0])?;
        Ok(Program::write(&["x"], &[], |v, _| vec![("out".into(), if is_sum { v[0].sum() } else { v[0] }.into())]))
    };
    let builder = || CustomOpBuilder::new("variants::rows", 1).attr("is_sum", AttrKind::Bool, Some(false.into()));
    let x = Tensor::from_vec(vec![1.0, 2.0], [2])?;
    let op = builder().row_programs(None, write)?.build()?.definition();
    let message = error(call(&op, &[&x], &[("is_sum", true.into())]));
    assert!(
        message.starts_with("op 'variants::rows' with is_sum=True: output 'out' is a number for each row"),
        "{message}"
    );
    let op = builder().row_programs(Some("(x: [.., n]) -> [.., n]"), write)?.build()?.definition();
    assert_eq!(call(&op, &[&x], &[("is_sum", true.into())])?, [3.0, 3.0]);
    Ok(())
}
