//! Gradients of calls that another framework has recorded.

use std::sync::Arc;

use minitensor::op::{functional_gradient, results_read};
use minitensor::{Attr, Error, OpDef, OpRef, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::dispatcher::{Dispatcher, Tensors};
use super::infer::attributes;
use super::library::{Library, separate};
use crate::error::Result;
use crate::ops::function::Function;
use crate::ops::{lookup, module};
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
    let tensors = arrays.iter().map(&mut tensor).collect::<Result<Tensors>>()?;
    let kept = results.iter().map(tensor).collect::<Result<Tensors>>()?;
    let known = if kept.is_empty() { kept } else { known(&results_read(&op), kept) };
    let wrt: Vec<&[bool]> = wrt.iter().map(Vec::as_slice).collect();
    // Without arrays there is no gradient.
    gradients(py, &op, &attrs, &wrt, tensors, known, library.unwrap_or(Library::NumPy))
}

/// The first-order gradients of the calls of one op on tensors of PyTorch, without PyTorch's dispatcher.
#[pyclass(frozen, module = "minitensor._minitensor")]
struct _DirectGradient {
    function: Arc<Function>,
    reads: Vec<bool>,
}

#[pymethods]
impl _DirectGradient {
    #[new]
    fn new(py: Python<'_>, name: &str) -> Result<Self> {
        let op = lookup::find(py, name)?;
        Ok(_DirectGradient { reads: results_read(&op), function: module::function(py, &op)? })
    }

    /// The gradients of the last arguments of a call, which are its inputs; `None` for those that `needs` does not select, and
    /// for those without derivatives. `saved` has the results of the call that its gradient reads, then the inputs. The result is
    /// NotImplemented if the dispatcher or autograd must see the computation, or if the op is not registered any more.
    fn compute<'py>(
        &self,
        py: Python<'py>,
        cotangents: &Bound<'py, PyTuple>,
        saved: &Bound<'py, PyTuple>,
        needs: &Bound<'py, PyTuple>,
        attrs: &Bound<'py, PyDict>,
    ) -> Result<Bound<'py, PyAny>> {
        let op = &self.function.op;
        let not_implemented = || Ok(py.NotImplemented().into_bound(py));
        let Some(dispatcher) = Dispatcher::unobserving(py)? else { return not_implemented() };
        if !self.function.is_live() || dispatcher.is_grad_enabled(py)? {
            return not_implemented();
        }
        let tensors = |tuple: &Bound<'py, PyTuple>| dispatcher.tensors(tuple.iter_borrowed().map(Some));
        let (Some(mut tensors), Some(mut saved)) = (tensors(cotangents)?, tensors(saved)?) else {
            return not_implemented();
        };
        let inputs: Tensors = saved.drain(self.reads.iter().filter(|is_read| **is_read).count()..).collect();
        let first = needs.len() - inputs.len();
        let is_wanted = |(k, t): (usize, &Option<Tensor>)| -> Result<bool> {
            let is_differentiable = t.as_ref().is_some_and(|t| t.dtype().is_differentiable());
            Ok(is_differentiable && needs.get_item(first + k)?.is_truthy()?)
        };
        let wrt = inputs.iter().enumerate().map(is_wanted).collect::<Result<Vec<_>>>()?;
        tensors.extend(inputs);
        let mut found = Vec::new();
        if wrt.contains(&true) {
            let known = known(&self.reads, saved);
            found = gradients(py, op, &attributes(op, attrs)?, &[&wrt], tensors, known, dispatcher.library)?;
        }
        let mut found = found.into_iter();
        let all = (0..needs.len()).map(|k| if k >= first && wrt[k - first] { found.next() } else { None });
        Ok(PyTuple::new(py, all.collect::<Vec<_>>())?.into_any())
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
fn known(reads: &[bool], kept: Tensors) -> Tensors {
    let mut kept = kept.into_iter();
    reads.iter().map(|is_read| if *is_read { kept.next().flatten() } else { None }).collect()
}

fn gradients<'py>(
    py: Python<'py>,
    op: &OpRef,
    attrs: &[Attr],
    wrt: &[&[bool]],
    tensors: Tensors,
    known: Tensors,
    library: Library,
) -> Result<Vec<Bound<'py, PyAny>>> {
    let _entered = library.enter(py, tensors.iter().flatten())?;
    let mut gradients = call::pass(py, &op.name, || functional_gradient(op, attrs, wrt, &tensors, &known))?;
    separate(tensors.iter().chain(&known).flatten(), &mut gradients)?;
    gradients.into_iter().map(|t| library.array(py, t)).collect()
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_gradient, m)?)?;
    m.add_class::<_DirectGradient>()?;
    Ok(())
}
