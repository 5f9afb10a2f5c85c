//! The compiled part of `mt.tuning`.

use minitensor::tuning;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::Result;

/// The values by class.
#[pyfunction]
fn _tuned(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for (class, values) in tuning::choices() {
        all.set_item(class, PyTuple::new(py, values)?)?;
    }
    Ok(all)
}

#[pyfunction]
fn _clear_tuned(py: Python<'_>) -> Result<()> {
    Ok(py.detach(tuning::clear)?)
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_tuned, m)?)?;
    Ok(m.add_function(wrap_pyfunction!(_clear_tuned, m)?)?)
}
