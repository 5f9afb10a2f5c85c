//! [`CustomOp`]: a handle of an op in Python. The op can be registered, unregistered, and registered again.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use minitensor::{OpDef, OpRef, registry};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::{function_object, module};
use crate::error::Result;
use crate::runtime::gil;

/// A custom op, which is not necessarily registered.
#[pyclass(module = "minitensor", frozen)]
pub struct CustomOp(pub OpRef);

#[pymethods]
impl CustomOp {
    /// The op of a function that `register` or `@mt.custom_op` returned; None if there is none or if it is built in.
    #[staticmethod]
    fn of(function: &Bound<'_, PyAny>) -> Option<CustomOp> {
        function_object::op_of(function).filter(|op| matches!(op, OpRef::Shared(_))).map(CustomOp)
    }

    /// The name of the op.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The aliases of the op.
    #[getter]
    fn aliases(&self) -> Vec<&str> {
        self.0.aliases.iter().map(AsRef::as_ref).collect()
    }

    /// True if the op is the gradient of another op.
    #[getter]
    fn is_gradient(&self) -> bool {
        self.0.is_gradient()
    }

    /// True if this op, and not another one with its name, is registered.
    #[getter]
    fn is_registered(&self) -> bool {
        registry::has(&self.0)
    }

    /// Registers the op, and returns its function `mt.ops.<name>`.
    fn register<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        gil::detach(py, || registry::register(Arc::new(self.0.clone())))?;
        let add = || {
            let function = module::add(py, &self.0)?;
            record(py, [self.0.clone()])?;
            module::notify(py)?;
            Ok(function)
        };
        let function = add();
        if function.is_err() {
            self.unregister(py)?;
        }
        function
    }

    /// Unregisters the op if it is registered. Tensors and graphs that use it stay valid.
    fn unregister(&self, py: Python<'_>) -> Result<()> {
        module::unregister_all(py, std::slice::from_ref(&self.0), None)
    }

    fn __eq__(&self, other: &CustomOp) -> bool {
        self.0.is(&other.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        std::ptr::from_ref::<OpDef>(&self.0).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("CustomOp('{}')", self.0.name)
    }
}

/// Registers all of the ops, or none. Ops that are already registered stay registered. `plugin` becomes the owner of
/// all of them.
#[pyfunction]
#[pyo3(signature = (ops, plugin=None))]
fn _register_ops(py: Python<'_>, ops: Vec<PyRef<'_, CustomOp>>, plugin: Option<&str>) -> Result<()> {
    let new = module::register_all(py, &references(&ops), plugin)?;
    record(py, new)
}

/// Unregisters the ops that are registered. Later lookups of their names report the reason.
#[pyfunction]
#[pyo3(signature = (ops, reason=None))]
fn _unregister_ops(py: Python<'_>, ops: Vec<PyRef<'_, CustomOp>>, reason: Option<&str>) -> Result<()> {
    module::unregister_all(py, &references(&ops), reason)
}

fn references(ops: &[PyRef<'_, CustomOp>]) -> Vec<OpRef> {
    ops.iter().map(|op| op.0.clone()).collect()
}

thread_local! {
    /// The lists of ops that Python registers on this thread, one for each `all_or_none` block that is active.
    static REGISTERED: RefCell<Vec<Py<PyList>>> = const { RefCell::new(Vec::new()) };
}

fn record(py: Python<'_>, ops: impl IntoIterator<Item = OpRef>) -> Result<()> {
    let list = REGISTERED.with_borrow(|lists| lists.last().map(|list| list.clone_ref(py)));
    if let Some(list) = list {
        ops.into_iter().try_for_each(|op| list.bind(py).append(CustomOp(op)))?;
    }
    Ok(())
}

/// `with all_or_none() as ops:` collects the ops that are registered in the block. If an exception leaves the block, it
/// unregisters them.
#[pyclass(module = "minitensor", frozen, name = "all_or_none")]
struct AllOrNone;

#[pymethods]
impl AllOrNone {
    #[new]
    fn new() -> AllOrNone {
        AllOrNone
    }

    fn __enter__(&self, py: Python<'_>) -> Py<PyList> {
        let list = PyList::empty(py).unbind();
        REGISTERED.with_borrow_mut(|lists| lists.push(list.clone_ref(py)));
        list
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<()> {
        let list = REGISTERED.with_borrow_mut(Vec::pop);
        match list {
            Some(list) if !kind.is_none() => _unregister_ops(py, list.extract(py)?, None),
            _ => Ok(()),
        }
    }
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_class::<CustomOp>()?;
    m.add_class::<AllOrNone>()?;
    m.add_function(wrap_pyfunction!(_register_ops, m)?)?;
    m.add_function(wrap_pyfunction!(_unregister_ops, m)?)?;
    Ok(())
}
