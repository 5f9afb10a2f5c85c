//! Iteration over a tensor: its elements along the first axis, each created on demand.

use minitensor::Error;
use pyo3::prelude::*;

use super::class::PyTensor;
use crate::error::Result;

/// What `iter(tensor)` returns.
#[pyclass(module = "minitensor")]
pub struct TensorIterator {
    tensor: Py<PyTensor>,
    next: usize,
    len: usize,
}

impl TensorIterator {
    pub fn of(tensor: Bound<'_, PyTensor>) -> Result<TensorIterator> {
        let first = tensor.get().core()?.shape().first().copied();
        let len =
            first.ok_or_else(|| Error::type_("a 0-d tensor cannot be iterated over; use item() for its value"))?;
        Ok(TensorIterator { tensor: tensor.unbind(), next: 0, len })
    }
}

#[pymethods]
impl TensorIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.next == self.len {
            return Ok(None);
        }
        let at = self.next;
        self.next += 1;
        self.tensor.bind(py).get_item(at).map(Some)
    }

    fn __length_hint__(&self) -> usize {
        self.len - self.next
    }
}
