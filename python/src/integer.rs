//! [`Integer`]: an integer argument of a Python function.

use minitensor::Error;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::error::Result;

/// An integer argument of a function. If it doesn't fit 64 bits, it is rejected later, where the function is known.
pub enum Integer {
    Number(i64),
    /// Too large: its text in Python.
    TooLarge(String),
}

impl<'py> FromPyObject<'_, 'py> for Integer {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<i64>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                Ok(Integer::TooLarge(object.str()?.to_string_lossy().into_owned()))
            }
            other => other.map(Integer::Number),
        }
    }
}

impl Integer {
    /// The number; `function` and `argument` name the function and its argument in the error.
    pub fn get(&self, function: &str, argument: &str) -> Result<i64> {
        match self {
            Integer::Number(number) => Ok(*number),
            Integer::TooLarge(shown) => {
                Err(Error::value(format!("{function}: {argument} is {shown}, which does not fit into int64")).into())
            }
        }
    }
}
