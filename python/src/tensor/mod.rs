//! The class `mt.Tensor`, apart from the methods and operators that are ops, which are in [`crate::ops`].

pub mod class;
mod constructor;
mod conversion;
mod creation;
mod display;
mod index;
mod index_part;
pub mod interchange;
mod iterator;
mod pickle;

use pyo3::prelude::*;

use crate::error::Result;

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_class::<class::PyTensor>()?;
    creation::install(m)?;
    interchange::dlpack::install(m)?;
    pickle::install(m)
}
