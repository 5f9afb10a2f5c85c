//! Plugins that are shared libraries.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use minitensor::plugin::host::{self, Library, Metadata};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::built::BuiltOp;
use crate::error::Result;
use crate::{exit, log};

/// A plugin library that is loaded into the process.
#[pyclass(module = "minitensor", frozen)]
struct PluginLibrary(Library);

#[pymethods]
impl PluginLibrary {
    /// Calls the plugin's `init`, and returns the ops that it defines; none is registered yet.
    fn init(&self, py: Python<'_>) -> Result<Vec<BuiltOp>> {
        let ops = exit::detach(py, || self.0.init());
        log::flush(py);
        Ok(ops?.into_iter().map(BuiltOp).collect())
    }

    /// Calls the plugin's `fini`.
    fn fini(&self, py: Python<'_>) -> Result<()> {
        let done = exit::detach(py, || self.0.fini());
        log::flush(py);
        Ok(done?)
    }
}

/// Reads the metadata of a library from its file, without running any of its code.
#[pyfunction]
fn _inspect_library(py: Python<'_>, path: PathBuf) -> Result<Bound<'_, PyDict>> {
    let metadata = exit::detach(py, || Metadata::read(&path))?;
    let (info, said) = (&metadata.info, PyDict::new(py));
    said.set_item("name", &info.name)?;
    said.set_item("version", info.version.to_string())?;
    said.set_item("description", &info.description)?;
    said.set_item("author", &info.author)?;
    let minimum = metadata.has_minimum.then(|| info.min_minitensor_version.to_string());
    said.set_item("min_minitensor_version", minimum)?;
    said.set_item("max_minitensor_version", info.max_minitensor_version.map(|v| v.to_string()))?;
    said.set_item("abi", format!("{}.{}", metadata.abi.0, metadata.abi.1))?;
    said.set_item("built_with", &metadata.built_with)?;
    Ok(said)
}

static IS_ANY_OPEN: AtomicBool = AtomicBool::new(false);

/// True if any library is loaded.
pub fn is_any_open() -> bool {
    IS_ANY_OPEN.load(Ordering::Relaxed)
}

/// Loads a library into the process, if it is a plugin that this minitensor supports.
#[pyfunction]
fn _open_library(py: Python<'_>, path: PathBuf) -> Result<PluginLibrary> {
    let library = exit::detach(py, || Library::open(&path))?;
    IS_ANY_OPEN.store(true, Ordering::Relaxed);
    Ok(PluginLibrary(library))
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    host::set_log(log::write);
    m.add_class::<PluginLibrary>()?;
    m.add_function(wrap_pyfunction!(_inspect_library, m)?)?;
    m.add_function(wrap_pyfunction!(_open_library, m)?)?;
    Ok(())
}
