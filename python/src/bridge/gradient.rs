//! Gradients of calls that another framework has recorded.

use minitensor::op::{functional_gradient, results_read};
use minitensor::{Attr, Error, OpDef, OpRef, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

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
    let mut tensor = |array: Bound<'py, PyAny>| tensor(&op, &array, &mut library);
    let tensors = arrays.iter().map(&mut tensor).collect::<Result<Vec<_>>>()?;
    let kept = results.iter().map(tensor).collect::<Result<Vec<_>>>()?;
    let known = if kept.is_empty() { kept } else { known(&results_read(&op), kept) };
    let wrt: Vec<&[bool]> = wrt.iter().map(Vec::as_slice).collect();
    gradients(py, &op, &attrs, &wrt, tensors, known, library)
}

/// The first-order gradients of the calls of one op, on arrays that belong to one library.
#[pyclass(frozen, module = "minitensor._minitensor")]
struct _DirectGradient {
    op: OpRef,
    reads: Vec<bool>,
}

#[pymethods]
impl _DirectGradient {
    #[new]
    fn new(py: Python<'_>, name: &str) -> Result<Self> {
        let op = lookup::find(py, name)?;
        Ok(_DirectGradient { reads: results_read(&op), op })
    }

    /// The gradients of the last arguments of a call, which are its inputs; `None` for those that `needs` does not select, and
    /// for those without derivatives. `saved` has the results of the call that its gradient reads, then the inputs.
    fn compute<'py>(
        &self,
        py: Python<'py>,
        cotangents: &Bound<'py, PyTuple>,
        saved: &Bound<'py, PyTuple>,
        needs: &Bound<'py, PyTuple>,
        attrs: &Bound<'py, PyDict>,
    ) -> Result<Bound<'py, PyTuple>> {
        let attrs = attributes(&self.op, attrs)?;
        let mut library = None;
        let mut tensor = |array: Bound<'py, PyAny>| tensor(&self.op, &array, &mut library);
        let count = self.reads.iter().filter(|is_read| **is_read).count();
        let mut tensors = cotangents.iter().map(&mut tensor).collect::<Result<Vec<_>>>()?;
        let mut saved = saved.iter().map(tensor).collect::<Result<Vec<_>>>()?;
        let inputs = saved.split_off(count);
        let first = needs.len() - inputs.len();
        let is_wanted = |(k, t): (usize, &Option<Tensor>)| -> Result<bool> {
            let is_differentiable = t.as_ref().is_some_and(|t| t.dtype().is_differentiable());
            Ok(is_differentiable && needs.get_item(first + k)?.is_truthy()?)
        };
        let wrt = inputs.iter().enumerate().map(is_wanted).collect::<Result<Vec<_>>>()?;
        if !wrt.contains(&true) {
            return Ok(PyTuple::new(py, needs.iter().map(|_| None::<Bound<'py, PyAny>>))?);
        }
        tensors.extend(inputs);
        let known = known(&self.reads, saved);
        let mut found = gradients(py, &self.op, &attrs, &[&wrt], tensors, known, library)?.into_iter();
        let all = (0..needs.len()).map(|k| if k >= first && wrt[k - first] { found.next() } else { None });
        Ok(PyTuple::new(py, all.collect::<Vec<_>>())?)
    }
}

/// The tensor over the memory of an array, whose library is noted; `None` for None.
fn tensor(op: &OpDef, array: &Bound<'_, PyAny>, library: &mut Option<Library>) -> Result<Option<Tensor>> {
    if array.is_none() {
        return Ok(None);
    }
    let Some(of) = Library::of(array)? else {
        let class = array.get_type().fully_qualified_name()?;
        return Err(Error::type_(format!("op '{}': its gradient takes arrays, got {class}", op.name)).into());
    };
    *library = Some(of);
    Ok(Some(of.tensor(array, Copy::IfNeeded)?))
}

/// A place for each result of a call, with those that its gradient reads.
fn known(reads: &[bool], kept: Vec<Option<Tensor>>) -> Vec<Option<Tensor>> {
    let mut kept = kept.into_iter();
    reads.iter().map(|is_read| if *is_read { kept.next().flatten() } else { None }).collect()
}

fn gradients<'py>(
    py: Python<'py>,
    op: &OpRef,
    attrs: &[Attr],
    wrt: &[&[bool]],
    tensors: Vec<Option<Tensor>>,
    known: Vec<Option<Tensor>>,
    library: Option<Library>,
) -> Result<Vec<Bound<'py, PyAny>>> {
    // Without arrays there is no gradient.
    let library = library.unwrap_or(Library::NumPy);
    let _entered = library.enter(py, tensors.iter().flatten())?;
    let mut gradients = call::pass(py, &op.name, || functional_gradient(op, attrs, wrt, &tensors, &known))?;
    let inputs: Vec<Tensor> = tensors.into_iter().chain(known).flatten().collect();
    separate(&inputs, &mut gradients)?;
    gradients.into_iter().map(|t| library.array(py, t)).collect()
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_gradient, m)?)?;
    m.add_class::<_DirectGradient>()?;
    Ok(())
}
