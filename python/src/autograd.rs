//! Autograd in Python: `backward`, `grad`, hooks, and the recording state.

use std::sync::Arc;

use minitensor::autograd::{self, Options, is_grad_enabled, set_grad_enabled};
use minitensor::{Error, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{Exception, Result};
use crate::runtime::{call, gil};
use crate::tensor::class::PyTensor;

/// The handle of a hook; it removes the hook.
#[pyclass(module = "minitensor", frozen)]
struct HookHandle(Box<dyn Fn() + Send + Sync>);

#[pymethods]
impl HookHandle {
    /// Removes the hook.
    fn remove(&self) {
        (self.0)();
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.remove();
    }
}

/// The core's tensor of a Python object; an error if the object isn't a tensor.
fn tensor_of(object: &Bound<'_, PyAny>, what: &str) -> Result<Tensor> {
    let tensor = object.cast::<PyTensor>().map_err(|_| {
        let class = object.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
        PyTypeError::new_err(format!("{what} must be a Tensor, got {class}; make one with mt.asarray()"))
    })?;
    Ok(tensor.get().core()?.clone())
}

/// One tensor, or a list or tuple of tensors and `None`.
fn tensors(object: &Bound<'_, PyAny>, what: &str) -> Result<Vec<Option<Tensor>>> {
    let items: Vec<Bound<'_, PyAny>> = match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => vec![object.clone()],
    };
    items.iter().map(|o| if o.is_none() { Ok(None) } else { tensor_of(o, what).map(Some) }).collect()
}

fn required_tensors(object: &Bound<'_, PyAny>, what: &str) -> Result<Vec<Tensor>> {
    let missing = || PyTypeError::new_err(format!("{what} must be a Tensor, got None"));
    tensors(object, what)?.into_iter().map(|t| t.ok_or_else(|| missing().into())).collect()
}

#[pymethods]
impl PyTensor {
    /// True if operations on this tensor are recorded.
    #[getter]
    fn requires_grad(&self) -> Result<bool> {
        Ok(self.core()?.requires_grad())
    }

    #[setter(requires_grad)]
    fn assign_requires_grad(&self, value: bool) -> Result<()> {
        Ok(self.core()?.set_requires_grad(value)?)
    }

    /// Sets whether this tensor requires a gradient, and returns the tensor itself.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_(slf: Bound<'_, Self>, requires_grad: bool) -> Result<Bound<'_, Self>> {
        slf.get().assign_requires_grad(requires_grad)?;
        Ok(slf)
    }

    /// True if the user created this tensor; false if it was computed from tensors that require gradients.
    #[getter]
    fn is_leaf(&self) -> Result<bool> {
        Ok(self.core()?.is_leaf())
    }

    /// The name of the op that computed this tensor, if it was recorded.
    #[getter]
    fn grad_fn(&self) -> Result<Option<String>> {
        Ok(self.core()?.grad_fn_name())
    }

    /// The accumulated gradient of a leaf, or `None`.
    #[getter]
    fn grad(&self) -> Result<Option<PyTensor>> {
        Ok(self.core()?.grad().map(Into::into))
    }

    #[setter(grad)]
    fn assign_grad(&self, value: Option<&Bound<'_, PyAny>>) -> Result<()> {
        let grad = value.map(|v| tensor_of(v, "grad")).transpose()?;
        Ok(self.core()?.set_grad(grad)?)
    }

    #[deleter(grad)]
    fn delete_grad(&self) -> Result<()> {
        Ok(self.core()?.set_grad(None)?)
    }

    /// Clears the gradient, or with `set_to_none=False` replaces it by zeros.
    #[pyo3(signature = (set_to_none=true))]
    fn zero_grad(&self, set_to_none: bool) -> Result<()> {
        let core = self.core()?;
        let zeros = match core.grad() {
            Some(g) if !set_to_none => Some(Tensor::zeros(g.shape().clone(), g.dtype(), g.device())?),
            _ => None,
        };
        Ok(core.set_grad(zeros)?)
    }

    /// A tensor with the same memory and without history.
    fn detach(&self) -> Result<PyTensor> {
        Ok(self.core()?.detach().into())
    }

    /// Keeps the gradient of this tensor even if it is not a leaf.
    fn retain_grad(&self) -> Result<()> {
        Ok(self.core()?.retain_grad()?)
    }

    /// Calls `hook(grad)` whenever a gradient of this tensor is computed. If the hook returns a tensor, it replaces the
    /// gradient.
    fn register_hook(&self, hook: Py<PyAny>) -> Result<HookHandle> {
        let run = move |grad: &Tensor| -> minitensor::Result<Option<Tensor>> {
            gil::attach(|py| {
                let result = hook.call1(py, (PyTensor::from(grad.clone()),)).map_err(Exception::from)?;
                let result = result.bind(py);
                if result.is_none() { Ok(None) } else { tensor_of(result, "the result of a hook").map(Some) }
            })
            .map_err(|e: Exception| Error::from(e))
        };
        let handle = self.core()?.register_hook(Arc::new(run))?;
        Ok(HookHandle(Box::new(move || handle.remove())))
    }

    /// Computes the gradients of the leaves from which this tensor was computed, and adds them to their `grad`.
    ///
    /// `gradient` is the cotangent, with the shape of this tensor. It is optional if the tensor has one element. The
    /// graph is released during the pass unless `retain_graph` is true. With `create_graph`, the pass is recorded, for
    /// gradients of gradients. If the pass fails, no `grad` changes.
    #[pyo3(signature = (gradient=None, retain_graph=None, create_graph=false))]
    fn backward(
        &self,
        py: Python<'_>,
        gradient: Option<&Bound<'_, PyAny>>,
        retain_graph: Option<bool>,
        create_graph: bool,
    ) -> Result<()> {
        let options = Options { retain_graph: retain_graph.unwrap_or(create_graph), create_graph };
        let cotangent = gradient.filter(|g| !g.is_none()).map(|g| tensor_of(g, "gradient")).transpose()?;
        let output = self.core()?;
        call::pass(py, "backward()", || autograd::backward(std::slice::from_ref(output), &[cotangent], options))
    }
}

/// Returns the gradients of `outputs` with respect to `inputs`, as a tuple. No others are computed: the `grad` of leaves does not change, and
/// the hooks of other tensors do not run.
///
/// `outputs` and `inputs` are tensors or lists of tensors; `grad_outputs` are the cotangents. An input on which no
/// output depends raises an error, or has the gradient `None` with `allow_unused`.
///
/// >>> import minitensor as mt
/// >>> x = mt.Tensor([1.0, 2.0], requires_grad=True)
/// >>> (g,) = mt.grad((x * x).sum(), x, create_graph=True)
/// >>> mt.grad(g.sum(), x)[0]
/// tensor([2., 2.])
#[pyfunction]
#[pyo3(signature = (outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=false, allow_unused=false))]
fn grad<'py>(
    py: Python<'py>,
    outputs: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyAny>,
    grad_outputs: Option<&Bound<'py, PyAny>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    allow_unused: bool,
) -> Result<Bound<'py, PyTuple>> {
    let (outputs, inputs) = (required_tensors(outputs, "outputs")?, required_tensors(inputs, "inputs")?);
    let cotangents = grad_outputs.map_or(Ok(Vec::new()), |g| tensors(g, "grad_outputs"))?;
    let options = Options { retain_graph: retain_graph.unwrap_or(create_graph), create_graph };
    let grads = call::pass(py, "grad()", || autograd::grad(&outputs, &inputs, &cotangents, options))?;
    if let Some(i) = grads.iter().position(Option::is_none)
        && !allow_unused
    {
        return Err(Error::runtime(format!(
            "grad: the outputs do not depend on inputs[{i}]; pass allow_unused=True to get None for it"
        ))
        .into());
    }
    Ok(PyTuple::new(py, grads.into_iter().map(|g| g.map(PyTensor::from)))?)
}

/// Whether the histories of `outputs` reach a leaf that is not one of `known`.
#[pyfunction]
fn _reaches_others(outputs: &Bound<'_, PyAny>, known: &Bound<'_, PyAny>) -> Result<bool> {
    let (outputs, known) = (required_tensors(outputs, "outputs")?, required_tensors(known, "known")?);
    Ok(autograd::reaches_others(&outputs, &known)?)
}

/// Turns recording on or off for this thread, and returns the previous state.
#[pyfunction]
fn _set_grad_enabled(enabled: bool) -> bool {
    set_grad_enabled(enabled)
}

/// True if operations on this thread are recorded for gradients.
#[pyfunction(name = "is_grad_enabled")]
fn is_recording() -> bool {
    is_grad_enabled()
}

/// Sets the seed of the random number generator, a 64-bit integer.
#[pyfunction]
fn manual_seed(seed: i128) -> Result<()> {
    if seed < i64::MIN.into() || seed > u64::MAX.into() {
        return Err(Error::value(format!("manual_seed takes a 64-bit integer, got {seed}")).into());
    }
    minitensor::random::manual_seed(seed as u64);
    Ok(())
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_class::<HookHandle>()?;
    m.add_function(wrap_pyfunction!(grad, m)?)?;
    m.add_function(wrap_pyfunction!(_reaches_others, m)?)?;
    m.add_function(wrap_pyfunction!(_set_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(is_recording, m)?)?;
    m.add_function(wrap_pyfunction!(manual_seed, m)?)?;
    Ok(())
}
