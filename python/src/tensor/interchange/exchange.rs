//! DLPack's exchange API: the functions that the type of an array offers to exchange its objects without calls of Python.
//!
//! Its structures are those of `dlpack.h`, version 1.3.

use std::ffi::c_void;

use minitensor::Tensor;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::dlpack::{self, Versioned};
use crate::error::Result;

/// `DLPackExchangeAPI`, up to the functions that are used here.
#[repr(C)]
pub struct ExchangeApi {
    major: u32,
    minor: u32,
    previous: *const ExchangeApi,
    allocator: *const c_void,
    from_object: unsafe extern "C" fn(*mut ffi::PyObject, *mut *mut Versioned) -> i32,
    to_object: unsafe extern "C" fn(*mut Versioned, *mut *mut ffi::PyObject) -> i32,
}

impl ExchangeApi {
    /// The functions of the type of an array, if it offers them in a supported version.
    pub fn of(object: &Bound<'_, PyAny>) -> Option<&'static ExchangeApi> {
        let py = object.py();
        let capsule = object.get_type().getattr(pyo3::intern!(py, "__dlpack_c_exchange_api__")).ok()?;
        // SAFETY: the name determines the type of the pointer. DLPack requires that the structure lives as long as the process.
        let mut api = unsafe {
            let name = c"dlpack_exchange_api";
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
                return None;
            }
            ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()).cast::<ExchangeApi>().as_ref()?
        };
        while api.major != dlpack::VERSION.0 {
            // SAFETY: the header of every version has a pointer to an older one, or null.
            api = unsafe { api.previous.as_ref()? };
        }
        Some(api)
    }

    /// A tensor over the memory of an array.
    pub fn tensor(&self, object: &Bound<'_, PyAny>) -> Result<Tensor> {
        let mut managed = std::ptr::null_mut();
        // SAFETY: the function takes an object of its type, and fills in the pointer or sets an exception.
        let status = unsafe { (self.from_object)(object.as_ptr(), &raw mut managed) };
        if status != 0 || managed.is_null() {
            return Err(raised(object.py(), "the array cannot be exported by DLPack"));
        }
        // SAFETY: the pointer is new, and nothing else deletes it.
        unsafe { dlpack::adopt(managed) }
    }

    /// An array over the memory of a tensor.
    pub fn object<'py>(&self, py: Python<'py>, tensor: Tensor) -> Result<Bound<'py, PyAny>> {
        let managed = dlpack::lend(tensor);
        let mut object = std::ptr::null_mut();
        // SAFETY: the function takes over the array, and fills in the pointer or sets an exception.
        let status = unsafe { (self.to_object)(managed, &raw mut object) };
        if status != 0 || object.is_null() {
            return Err(raised(py, "the result cannot be imported by DLPack"));
        }
        // SAFETY: the object is new.
        Ok(unsafe { Bound::from_owned_ptr(py, object) })
    }
}

/// The exception that a function of C has set.
#[cold]
fn raised(py: Python<'_>, otherwise: &'static str) -> crate::error::Exception {
    PyErr::take(py).unwrap_or_else(|| PyBufferError::new_err(otherwise)).into()
}
