//! Ops in Python: the functions of `mt.ops`, methods, operators, and ops that are written in Python.
//!
//! [`module`] keeps `mt.ops` up to date with the registry. [`function`] calls an op: [`binding`] assigns the arguments,
//! [`tensor_arg`] and [`attr`] convert them, [`returns`] converts the result.

mod array_args;
pub mod attr;
mod binding;
mod by_name;
pub mod custom_op;
mod describe;
mod docstring;
pub mod function;
pub mod function_object;
mod getattr;
pub mod lookup;
mod method;
mod method_def;
pub mod module;
mod namespace;
// PyO3's expansion of a table of methods calls unsafe functions; the file itself has none.
#[allow(unsafe_op_in_unsafe_fn)]
mod operator;
mod python_op;
mod returns;
mod tensor_arg;
mod ufunc;
mod undispatched;

use pyo3::prelude::*;

use crate::error::Result;

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    by_name::install(m)?;
    custom_op::install(m)?;
    describe::install(m)?;
    getattr::install(m)?;
    module::install(m)?;
    python_op::install(m)?;
    method::install(m)
}
