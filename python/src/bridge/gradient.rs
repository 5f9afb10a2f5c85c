//! Gradients of calls that another framework has recorded.

use minitensor::op::{functional_gradient, results_read};
use minitensor::{Error, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::infer::attributes;
use super::library::{Library, separate};
use crate::error::Result;
use crate::ops::lookup;
use crate::runtime::call;
use crate::tensor::interchange::copy::Copy;

/// The gradients of a call of the order `len(wrt)`, on arrays of one library. `arrays` has the cotangents of all orders, the
/// highest first, then the inputs of the call. `wrt[k - 1]` selects the tensors of the function of order k - 1 whose gradients are
/// returned. `results` has the results of the call that the definition's `results_read` selects, or is empty if they are not known.
#[pyfunction]
fn _gradient<'py>(
    py: Python<'py>,
    name: &str,
    arrays: &Bound<'py, PyList>,
    attrs: &Bound<'py, PyDict>,
    wrt: Vec<Vec<bool>>,
    results: &Bound<'py, PyList>,
) -> Result<Vec<Bound<'py, PyAny>>> {
    let op = lookup::find(py, name)?;
    let attrs = attributes(&op, attrs)?;
    let mut library = None;
    let mut tensor = |array: Bound<'py, PyAny>| -> Result<Option<Tensor>> {
        if array.is_none() {
            return Ok(None);
        }
        let Some(of) = Library::of(&array)? else {
            let class = array.get_type().fully_qualified_name()?;
            return Err(Error::type_(format!("op '{name}': its gradient takes arrays, got {class}")).into());
        };
        library = Some(of);
        Ok(Some(of.tensor(&array, Copy::IfNeeded)?))
    };
    let tensors = arrays.iter().map(&mut tensor).collect::<Result<Vec<_>>>()?;
    let mut kept = results.iter().map(tensor).collect::<Result<Vec<_>>>()?.into_iter();
    let known: Vec<Option<Tensor>> = match kept.len() {
        0 => Vec::new(),
        _ => results_read(&op).into_iter().map(|is_read| if is_read { kept.next().flatten() } else { None }).collect(),
    };
    let wrt: Vec<&[bool]> = wrt.iter().map(Vec::as_slice).collect();
    // Without arrays there is no gradient.
    let library = library.unwrap_or(Library::NumPy);
    let _stream = library.enter_stream(py, tensors.iter().flatten())?;
    let mut gradients = call::pass(py, name, || functional_gradient(&op, &attrs, &wrt, &tensors, &known))?;
    let inputs: Vec<Tensor> = tensors.into_iter().chain(known).flatten().collect();
    separate(&inputs, &mut gradients)?;
    gradients.into_iter().map(|t| library.array(py, t)).collect()
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_gradient, m)?)?;
    Ok(())
}
