//! The compiled part of `mt.save` and `mt.load`: definitions of ops and recorded functions as data.
//!
//! | module | contents |
//! |---|---|
//! | [`definition`] | an op as JSON, and an op from JSON |
//! | [`read`] | reads JSON without trust |
//! | [`graph`] | a recorded function as dictionaries and lists |
//! | [`memory`] | the elements of tensors as bytes, and the state of the random numbers |

mod definition;
mod graph;
pub mod memory;
mod read;

use pyo3::prelude::*;

use crate::error::Result;

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    definition::install(m)?;
    graph::install(m)?;
    memory::install(m)
}
