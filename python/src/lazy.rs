//! The compiled part of `mt.lazy`.

use minitensor::lazy;
use pyo3::prelude::*;

use crate::error::Result;
use crate::runtime::gil;

/// Turns lazy mode on or off for this thread, and returns whether it was on.
#[pyfunction]
fn _set_lazy(is_on: bool) -> bool {
    lazy::set_lazy(is_on)
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    lazy::set_detach(gil::release);
    m.add_function(wrap_pyfunction!(_set_lazy, m)?)?;
    Ok(())
}
