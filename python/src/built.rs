//! [`BuiltOp`]: an op as an object of Python, which can be registered, taken away, and registered again.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use minitensor::{OpDef, OpRef, registry};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::error::Result;
use crate::function::Function;
use crate::{exit, ops};

/// An op that was built, and not necessarily registered.
#[pyclass(module = "minitensor", frozen)]
pub struct BuiltOp(pub OpRef);

#[pymethods]
impl BuiltOp {
    /// The op behind a function that `register` or `@mt.custom_op` gave; None if there is none, or it is built in.
    #[staticmethod]
    fn of(function: &Bound<'_, PyAny>) -> Option<BuiltOp> {
        Function::op_of(function).filter(|op| matches!(op, OpRef::Shared(_))).map(BuiltOp)
    }

    /// The name it is registered under.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Its other names.
    #[getter]
    fn aliases(&self) -> Vec<&str> {
        self.0.aliases.iter().map(AsRef::as_ref).collect()
    }

    /// Whether it is the gradient of another op.
    #[getter]
    fn is_gradient(&self) -> bool {
        self.0.is_gradient()
    }

    /// Whether it is this very op that has its name.
    #[getter]
    fn is_registered(&self) -> bool {
        registry::has(&self.0)
    }

    /// Puts it into the registry, and gives its function `mt.ops.<name>`.
    fn register<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        exit::detach(py, || registry::register(Arc::new(self.0.clone())))?;
        let function = ops::add(py, &self.0).and_then(|function| note(py, [self.0.clone()]).map(|()| function));
        if function.is_err() {
            self.unregister(py)?;
        }
        function
    }

    /// Takes it away if it is there; tensors and graphs made with it stay valid.
    fn unregister(&self, py: Python<'_>) -> Result<()> {
        ops::unregister_all(py, std::slice::from_ref(&self.0), None)
    }

    fn __eq__(&self, other: &BuiltOp) -> bool {
        self.0.is(&other.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        std::ptr::from_ref::<OpDef>(&self.0).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("BuiltOp('{}')", self.0.name)
    }
}

/// Registers ops, all or none. What is there already stays. `plugin` owns them all from now on.
#[pyfunction]
#[pyo3(signature = (ops, plugin=None))]
fn _register_ops(py: Python<'_>, ops: Vec<PyRef<'_, BuiltOp>>, plugin: Option<&str>) -> Result<()> {
    let new = ops::register_all(py, &references(&ops), plugin)?;
    note(py, new)
}

/// Takes ops away that are there; who looks for one of them is told the reason, after its name.
#[pyfunction]
#[pyo3(signature = (ops, reason=None))]
fn _unregister_ops(py: Python<'_>, ops: Vec<PyRef<'_, BuiltOp>>, reason: Option<&str>) -> Result<()> {
    ops::unregister_all(py, &references(&ops), reason)
}

fn references(ops: &[PyRef<'_, BuiltOp>]) -> Vec<OpRef> {
    ops.iter().map(|op| op.0.clone()).collect()
}

thread_local! {
    /// Where ops are noted that Python registers on this thread, for each block of `all_or_none` that it is in.
    static NOTED: RefCell<Vec<Py<PyList>>> = const { RefCell::new(Vec::new()) };
}

fn note(py: Python<'_>, ops: impl IntoIterator<Item = OpRef>) -> Result<()> {
    let list = NOTED.with_borrow(|lists| lists.last().map(|list| list.clone_ref(py)));
    if let Some(list) = list {
        ops.into_iter().try_for_each(|op| list.bind(py).append(BuiltOp(op)))?;
    }
    Ok(())
}

/// `with all_or_none() as ops:` notes the ops that are registered inside, and takes them away again if an exception leaves
/// the block.
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
        NOTED.with_borrow_mut(|lists| lists.push(list.clone_ref(py)));
        list
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<()> {
        let list = NOTED.with_borrow_mut(Vec::pop);
        match list {
            Some(list) if !kind.is_none() => _unregister_ops(py, list.extract(py)?, None),
            _ => Ok(()),
        }
    }
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_class::<BuiltOp>()?;
    m.add_class::<AllOrNone>()?;
    m.add_function(wrap_pyfunction!(_register_ops, m)?)?;
    m.add_function(wrap_pyfunction!(_unregister_ops, m)?)?;
    Ok(())
}
