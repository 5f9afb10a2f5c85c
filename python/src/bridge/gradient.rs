//! Gradients of calls that another framework has recorded.

use minitensor::op::functional_gradient;
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
/// returned.
#[pyfunction]
fn _gradient<'py>(
    py: Python<'py>,
    name: &str,
    arrays: &Bound<'py, PyList>,
    attrs: &Bound<'py, PyDict>,
    wrt: Vec<Vec<bool>>,
) -> Result<Vec<Bound<'py, PyAny>>> {
    let op = lookup::find(py, name)?;
    let attrs = attributes(&op, attrs)?;
    let mut library = None;
    let mut tensors = Vec::with_capacity(arrays.len());
    for array in arrays.iter() {
        if array.is_none() {
            tensors.push(None);
            continue;
        }
        let Some(of) = Library::of(&array)? else {
            let class = array.get_type().fully_qualified_name()?;
            return Err(Error::type_(format!("op '{name}': its gradient takes arrays, got {class}")).into());
        };
        library = Some(of);
        tensors.push(Some(of.tensor(&array, Copy::IfNeeded)?));
    }
    let wrt: Vec<&[bool]> = wrt.iter().map(Vec::as_slice).collect();
    let mut gradients = call::pass(py, name, || functional_gradient(&op, &attrs, &wrt, &tensors))?;
    let inputs: Vec<Tensor> = tensors.into_iter().flatten().collect();
    separate(&inputs, &mut gradients)?;
    // Without arrays there is no gradient.
    let library = library.unwrap_or(Library::NumPy);
    gradients.into_iter().map(|t| library.array(py, t)).collect()
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_gradient, m)?)?;
    Ok(())
}
