//! The process and the interpreter: the GIL, signals, forks, logging, memory, and streams of devices.

pub mod allocator;
pub mod call;
pub mod fork;
pub mod gil;
pub mod log;
pub mod signals;
pub mod stream;
#[cfg(wraps_personality)]
mod unwind;

use pyo3::prelude::*;

use crate::error::Result;

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    signals::install(m.py())?;
    gil::install(m)?;
    fork::install(m)?;
    stream::install(m)
}
