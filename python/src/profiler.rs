//! The recorder of `mt.profiler.profile`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use minitensor::profiler::Profile;
use pyo3::prelude::*;

use crate::dtype::{self, PyDType};
use crate::error::Result;
use crate::runtime::gil;

/// Records calls from its creation until `stop`.
#[pyclass(module = "minitensor", name = "_Profile", frozen)]
struct PyProfile(Mutex<Profile>);

/// The dtype and shape of a tensor.
type Described<'py> = (Bound<'py, PyDType>, Vec<usize>);
/// Name, inputs, bytes, thread; start, duration and self time in nanoseconds.
type Record<'py> = (String, Vec<Described<'py>>, usize, u64, u64, u64, u64);

impl PyProfile {
    fn lock(&self) -> MutexGuard<'_, Profile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyProfile {
    #[new]
    fn new() -> PyProfile {
        PyProfile(Mutex::new(Profile::start()))
    }

    /// Stops recording.
    fn stop(&self, py: Python<'_>) {
        gil::detach(py, || self.lock().stop());
    }

    /// The calls that have ended, in the order of their starts.
    fn events<'py>(&self, py: Python<'py>) -> Result<Vec<Record<'py>>> {
        let events = gil::detach(py, || self.lock().events());
        let mut described = Vec::with_capacity(events.len());
        for event in events {
            let mut inputs = Vec::with_capacity(event.inputs.len());
            for (dtype, shape) in event.inputs {
                inputs.push((dtype::object(py, dtype)?, shape.to_vec()));
            }
            let [start, duration, self_time] =
                [event.start, event.duration, event.self_time].map(|time| time.as_nanos() as u64);
            described.push((event.name, inputs, event.bytes, event.thread, start, duration, self_time));
        }
        Ok(described)
    }
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_class::<PyProfile>()?;
    Ok(())
}
