//! [`Arrays`]: arrays of other libraries among the arguments of a call.

use minitensor::OpDef;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyTuple};

use super::binding::{Slots, argument};
use crate::bridge::class::Class;
use crate::bridge::library::Library;
use crate::error::Result;
use crate::tensor::class::PyTensor;

/// The arrays among the arguments of a call, which determine the results.
#[derive(Default)]
pub struct Arrays<'py> {
    /// The library of the arrays, which is that of the results.
    pub library: Option<Library>,
    /// The function of a bridge that computes the call.
    pub bridge: Option<Bound<'py, PyAny>>,
    /// The array of a subclass of NumPy's arrays whose class the results get, and its priority.
    wrapper: Option<(Bound<'py, PyAny>, f64)>,
}

impl<'py> Arrays<'py> {
    /// The arrays among the arguments; `None` if a tensor of ours is among them.
    pub fn among(py: Python<'py>, op: &OpDef, slots: &Slots) -> Result<Option<Arrays<'py>>> {
        let mut arrays = Arrays::default();
        for i in 0..op.inputs.len() {
            let Some(object) = argument(py, slots, i) else { continue };
            let has_tensor = match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
                (Ok(list), _) => arrays.add_all(list.iter())?,
                (_, Ok(tuple)) => arrays.add_all(tuple.iter())?,
                _ => arrays.add(&object)?,
            };
            if has_tensor {
                return Ok(None);
            }
        }
        Ok(Some(arrays))
    }

    fn add_all(&mut self, mut items: impl Iterator<Item = Bound<'py, PyAny>>) -> Result<bool> {
        items.try_fold(false, |found, item| Ok(found || self.add(&item)?))
    }

    /// Considers an argument; true if it is a tensor of ours.
    fn add(&mut self, object: &Bound<'py, PyAny>) -> Result<bool> {
        if object.is_instance_of::<PyTensor>() {
            return Ok(true);
        }
        if object.is_none() || is_number(object) {
            return Ok(false);
        }
        if Library::is_plain_array(object) {
            self.library.get_or_insert(Library::NumPy);
            return Ok(false);
        }
        let class = Class::of(object)?;
        if self.bridge.is_none() {
            self.bridge = class.bridge.as_ref().map(|bridge| bridge.bind(object.py()).clone());
        }
        if self.library.is_none() {
            self.library = class.library;
        }
        if class.wraps {
            let priority = object.getattr("__array_priority__").and_then(|p| p.extract()).unwrap_or(0.0);
            if self.wrapper.as_ref().is_none_or(|(_, highest)| priority > *highest) {
                self.wrapper = Some((object.clone(), priority));
            }
        }
        Ok(false)
    }

    /// Gives a result the class that the results of NumPy's functions have.
    pub fn wrap(&self, result: Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        match &self.wrapper {
            Some((wrapper, _)) => Ok(wrapper.call_method1("__array_wrap__", (result,))?),
            None => Ok(result),
        }
    }
}

/// True for a number of exactly Python's types. NumPy's `float64` is a `float`, and `complex128` a `complex`.
pub fn is_number(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyComplex>()
}
