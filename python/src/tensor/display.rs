//! `repr`, `format` and the display in notebooks.

use minitensor::{Device, Error};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use super::class::PyTensor;
use crate::error::{Result, catch_panics};

#[pymethods]
impl PyTensor {
    fn __repr__(&self) -> Result<String> {
        if self.is_empty_shell() {
            return Ok("tensor(<uninitialized>)".into());
        }
        let core = self.core()?;
        if core.device() != Device::Meta {
            core.expect_values()?;
        }
        Ok(catch_panics("repr()", || Ok(core.to_string()))?)
    }

    fn _repr_html_(&self) -> Result<String> {
        let core = self.core()?;
        let text = self.__repr__()?.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        Ok(format!(
            "<div><pre style=\"margin:0\">{text}</pre><small>shape {} · {} · {}</small></div>",
            core.shape(),
            core.dtype(),
            core.device()
        ))
    }

    fn __format__<'py>(&self, py: Python<'py>, spec: &str) -> Result<Bound<'py, PyAny>> {
        if spec.is_empty() {
            return Ok(self.__repr__()?.into_bound_py_any(py)?);
        }
        if self.core()?.numel() != 1 {
            return Err(Error::type_(format!(
                "the format '{spec}' needs a tensor with one element, got shape {}",
                self.core()?.shape()
            ))
            .into());
        }
        Ok(self.item(py)?.call_method1("__format__", (spec,))?)
    }
}
