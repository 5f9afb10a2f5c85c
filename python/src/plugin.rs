//! Plugins that are shared libraries.

use std::path::PathBuf;

use minitensor::plugin::host::{self, Library, Metadata};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Result;
use crate::ops::custom_op::CustomOp;
use crate::runtime::{call, gil, log};

/// A plugin library that is loaded into the process.
#[pyclass(module = "minitensor", frozen)]
struct PluginLibrary(Library);

#[pymethods]
impl PluginLibrary {
    /// Calls the plugin's `init`, and returns the ops that it defines; none is registered yet.
    fn init(&self, py: Python<'_>) -> Result<Vec<CustomOp>> {
        let ops = gil::detach(py, || self.0.init());
        log::flush(py);
        Ok(ops?.into_iter().map(CustomOp).collect())
    }

    /// Calls the plugin's `fini`.
    fn fini(&self, py: Python<'_>) -> Result<()> {
        let done = gil::detach(py, || self.0.fini());
        log::flush(py);
        Ok(done?)
    }
}

/// Reads the metadata of a library from its file, without running any of its code.
#[pyfunction]
fn _inspect_library(py: Python<'_>, path: PathBuf) -> Result<Bound<'_, PyDict>> {
    let metadata = gil::detach(py, || Metadata::read(&path))?;
    let (info, metadata_of) = (&metadata.info, PyDict::new(py));
    metadata_of.set_item("name", &info.name)?;
    metadata_of.set_item("version", info.version.to_string())?;
    metadata_of.set_item("description", &info.description)?;
    metadata_of.set_item("author", &info.author)?;
    let minimum = metadata.has_minimum.then(|| info.min_minitensor_version.to_string());
    metadata_of.set_item("min_minitensor_version", minimum)?;
    metadata_of.set_item("max_minitensor_version", info.max_minitensor_version.map(|v| v.to_string()))?;
    metadata_of.set_item("abi", format!("{}.{}", metadata.abi.0, metadata.abi.1))?;
    metadata_of.set_item("built_with", &metadata.built_with)?;
    Ok(metadata_of)
}

/// Loads a library into the process, if it is a plugin that this minitensor supports.
#[pyfunction]
fn _open_library(py: Python<'_>, path: PathBuf) -> Result<PluginLibrary> {
    let library = gil::detach(py, || Library::open(&path))?;
    call::set_has_libraries();
    Ok(PluginLibrary(library))
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    host::set_log(log::write);
    m.add_class::<PluginLibrary>()?;
    m.add_function(wrap_pyfunction!(_inspect_library, m)?)?;
    m.add_function(wrap_pyfunction!(_open_library, m)?)?;
    Ok(())
}
