//! The programs of ops as data, from which another framework makes functions of its own.

use minitensor::kernels::program::{Program, Symbol};
use minitensor::kernels::{Element, Num, RealRow, Row, lit};
use minitensor::op::{Argument, Arguments, Body, Core};
use minitensor::registry;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::infer::attributes;
use crate::error::{Result, catch_panics};

/// The program of a call with these attributes and inputs, or of its gradients with respect to the inputs `wrt`. `None` if the op has
/// none.
///
/// A dictionary: `program` is JSON. `inputs` and `uniforms` are its arguments: `("input", position)`, `("cotangent", position)` or
/// `("number", value)`. `is_of_rows` is whether inputs have one value per element of a row, and uniforms one per row.
/// `returns_rows` is whether each output of the op has one value per element of a row.
#[pyfunction]
#[pyo3(signature = (name, attrs, given, wrt=None))]
fn _program<'py>(
    py: Python<'py>,
    name: &str,
    attrs: &Bound<'py, PyDict>,
    given: Vec<bool>,
    wrt: Option<Vec<usize>>,
) -> Result<Option<Bound<'py, PyDict>>> {
    let op = registry::get(name)?;
    let attrs = attributes(&op, attrs)?;
    let is_given = |i: usize| given.get(i).copied().unwrap_or_default();
    let found = catch_panics(&op.name, || match &wrt {
        None => op.forward(&attrs, is_given),
        Some(wrt) => op.backward(&attrs, is_given, wrt),
    })?;
    let Some(Arguments { program, inputs, uniforms }) = found else { return Ok(None) };
    let out = PyDict::new(py);
    out.set_item("program", program.to_json())?;
    let data = |all: Vec<Argument>| all.into_iter().map(|a| argument(py, a)).collect::<Result<Vec<_>>>();
    out.set_item("inputs", data(inputs)?)?;
    out.set_item("uniforms", data(uniforms)?)?;
    out.set_item("is_of_rows", matches!(op.body, Body::Cell(_)))?;
    out.set_item("returns_rows", op.outputs.iter().map(|o| o.core == Core::Slice).collect::<Vec<bool>>())?;
    Ok(Some(out))
}

fn argument<'py>(py: Python<'py>, argument: Argument) -> Result<Bound<'py, PyAny>> {
    Ok(match argument {
        Argument::Input(i) => ("input", i).into_bound_py_any(py)?,
        Argument::Cotangent(k) => ("cotangent", k).into_bound_py_any(py)?,
        Argument::Number(value) => ("number", value).into_bound_py_any(py)?,
    })
}

/// Functions of rows as programs: their names, inputs, uniforms and results.
macro_rules! row_functions {
    ($($name:literal ($($x:ident),* $(; $u:ident)?) $y:expr;)*) => {
        vec![$(($name, Program::write(&[$(stringify!($x)),*], &[$(stringify!($u))?], |x, u| {
            let ([$($x),*], [$($u)?]) = (x, u) else { return vec![] };
            vec![("out".into(), $y.into())]
        }).to_json())),*]
    };
}

/// The functions of the rows of `mt.row_op`, as programs in JSON: those of [`Row`].
#[pyfunction]
fn _row_functions() -> Vec<(&'static str, String)> {
    row_functions! {
        "sum" (x) x.sum();
        "mean" (x) x.mean();
        "prod" (x) x.prod();
        "max" (x) x.max();
        "min" (x) x.min();
        "argmax" (x) x.argmax();
        "argmin" (x) x.argmin();
        "cumsum" (x) x.cumsum();
        "reverse_cumsum" (x) x.reverse_cumsum();
        "cumprod" (x) x.cumprod();
        "cummax" (x) x.cummax();
        "cummin" (x) x.cummin();
        "recurrence" (x, coefficients) x.recurrence(*coefficients);
        "reverse_recurrence" (x, coefficients) x.reverse_recurrence(*coefficients);
        "reverse" (x) x.reverse();
        "sort" (x) x.sort();
        "argsort" (x) x.argsort();
        "take" (x, index) x.take(*index);
        "put" (x, index) x.put(*index);
        "logsumexp" (x) x.logsumexp();
        "var" (x; correction) x.var(*correction);
        "std" (x; correction) x.std(*correction);
        "any" (x) Symbol::any(x.truthy());
        "all" (x) Symbol::all(x.truthy());
        "dot" (x, y) x.dot(*y);
        "at" (x; index) Symbol::select(Symbol::any(x.stands_at(*index)), x.at(*index), lit(f64::NAN));
        "count" (x) x.count();
        "position" (x) x.position();
        "detach" (x) x.detach();
    }
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_program, m)?)?;
    m.add_function(wrap_pyfunction!(_row_functions, m)?)?;
    Ok(())
}
