//! What bridges to other frameworks need: calls on their arrays, gradients without recorded calls, and definitions as data.

mod call;
pub mod class;
mod definition;
pub mod dispatcher;
mod encoded;
mod gradient;
pub mod infer;
pub mod library;
mod program;
mod threads;
mod widen;
mod xla;
mod xla_api;

use pyo3::prelude::*;

use crate::error::Result;

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    call::install(m)?;
    definition::install(m)?;
    dispatcher::install(m)?;
    encoded::install(m)?;
    gradient::install(m)?;
    infer::install(m)?;
    program::install(m)?;
    threads::install(m)?;
    xla::install(m)
}
