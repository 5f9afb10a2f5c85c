//! [`Dispatcher`]: which calls on tensors of PyTorch may skip PyTorch's dispatcher.
//!
//! These are calls on plain tensors, whose memory has their values, while PyTorch need not see a call, since it does not
//! compile, trace or transform a function.

use minitensor::{Error, Tensor};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use smallvec::SmallVec;

use super::library::Library;
use crate::error::Result;
use crate::tensor::interchange::copy::Copy;
use crate::tensor::interchange::exchange::ExchangeApi;

/// The functions of PyTorch that tell its state.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Functions {
    /// The classes of plain tensors, without their subclasses. The first is that of tensors.
    classes: Vec<Py<PyType>>,
    /// The functions whose results are true if PyTorch must see a call.
    observers: Vec<Py<PyAny>>,
    /// The variables of the module of forward mode, where `_current_level` is negative outside of this mode.
    forward_ad: Py<PyDict>,
    is_grad_enabled: Py<PyAny>,
    /// Whether a tensor is a batch within `vmap`.
    is_batched: Py<PyAny>,
    /// Whether the values of a tensor are the negative or the conjugate of those in its memory.
    is_neg: Py<PyAny>,
    is_conj: Py<PyAny>,
}

/// PyTorch's dispatcher.
pub struct Dispatcher {
    /// The library of PyTorch's tensors.
    pub library: Library,
    functions: Functions,
}

static DISPATCHER: PyOnceLock<Dispatcher> = PyOnceLock::new();

impl Dispatcher {
    /// PyTorch's dispatcher, if PyTorch need not see calls now.
    #[inline]
    pub fn unobserving(py: Python<'_>) -> Result<Option<&Dispatcher>> {
        let Some(dispatcher) = DISPATCHER.get(py) else { return Ok(None) };
        for observer in &dispatcher.functions.observers {
            if observer.bind(py).call0()?.is_truthy()? {
                return Ok(None);
            }
        }
        let level = dispatcher.functions.forward_ad.bind(py).get_item(intern!(py, "_current_level"))?;
        Ok(level.map_or(Ok(true), |level| level.lt(0))?.then_some(dispatcher))
    }

    /// Whether autograd records calls.
    pub fn is_grad_enabled(&self, py: Python<'_>) -> Result<bool> {
        Ok(self.functions.is_grad_enabled.bind(py).call0()?.is_truthy()?)
    }

    /// Whether autograd records a call on these objects; `None` if the dispatcher must see them.
    #[inline]
    pub fn records<'a, 'py: 'a>(
        &self,
        py: Python<'py>,
        objects: impl Iterator<Item = Borrowed<'a, 'py, PyAny>> + Clone,
    ) -> Result<Option<bool>> {
        let objects = objects.filter(|object| !object.is_none());
        let mut requires_grad = false;
        for object in objects.clone() {
            if !self.is_tensor(&object) {
                return Ok(None);
            }
            requires_grad = requires_grad || object.getattr(intern!(py, "requires_grad"))?.is_truthy()?;
        }
        if !requires_grad || !self.is_grad_enabled(py)? {
            return Ok(Some(false));
        }
        for object in objects {
            if self.functions.is_batched.bind(py).call1((object,))?.is_truthy()? {
                return Ok(None);
            }
        }
        Ok(Some(true))
    }

    /// Tensors over the memory of plain tensors on devices of ours, which may be absent; `None` if there are others.
    #[inline]
    pub fn tensors<'a, 'py: 'a>(
        &self,
        objects: impl Iterator<Item = Option<Borrowed<'a, 'py, PyAny>>>,
    ) -> Result<Option<Tensors>> {
        let mut tensors = Tensors::new();
        for object in objects {
            let Some(object) = object.filter(|object| !object.is_none()) else {
                tensors.push(None);
                continue;
            };
            match self.tensor(&object)? {
                Some(tensor) => tensors.push(Some(tensor)),
                None => return Ok(None),
            }
        }
        Ok(Some(tensors))
    }

    /// True for a tensor of PyTorch that is no instance of a subclass.
    #[inline]
    fn is_tensor(&self, object: &Bound<'_, PyAny>) -> bool {
        let class = object.get_type();
        self.functions.classes.iter().any(|of_tensors| class.is(of_tensors))
    }

    /// A tensor over the memory of a plain tensor.
    #[inline]
    fn tensor(&self, object: &Bound<'_, PyAny>) -> Result<Option<Tensor>> {
        if !self.is_tensor(object) {
            return Ok(None);
        }
        // PyTorch does not export wrappers, nor tensors of other layouts. An export has the values in memory.
        let Ok(tensor) = self.library.tensor(object, Copy::IfNeeded) else { return Ok(None) };
        let Functions { is_neg, is_conj, .. } = &self.functions;
        let is = |property: &Py<PyAny>| property.bind(object.py()).call1((object,))?.is_truthy();
        let is_lazy = is(is_neg)? || tensor.dtype().is_complex() && is(is_conj)?;
        Ok((!is_lazy).then_some(tensor))
    }
}

/// The tensors of a call, with a place for each that is absent.
pub type Tensors = SmallVec<[Option<Tensor>; 4]>;

/// Makes PyTorch's dispatcher known. `functions` has the items of [`Functions`].
#[pyfunction]
fn _set_dispatcher(py: Python<'_>, functions: Functions) -> Result<()> {
    let class = functions.classes.first().ok_or_else(|| Error::value("a dispatcher has a class of tensors"))?;
    let library = ExchangeApi::of(class.bind(py)).map_or(Library::PyTorch, Library::Exchange);
    let _ = DISPATCHER.set(py, Dispatcher { library, functions });
    Ok(())
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_set_dispatcher, m)?)?;
    Ok(())
}
