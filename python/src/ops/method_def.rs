//! [`MethodDef`] and [`enter`]: how CPython calls an op.

use std::cell::UnsafeCell;
use std::ffi::{CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use minitensor::{Error, OpRef};
use pyo3::ffi;
use pyo3::prelude::*;

use super::docstring;
use crate::error::{Exception, Result, panicked};

/// The signature of C functions that Python calls with an array of arguments.
pub type FastCall = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// A `PyMethodDef`, with the texts that it points to.
pub struct MethodDef {
    def: UnsafeCell<ffi::PyMethodDef>,
    _texts: [CString; 2],
}

impl MethodDef {
    /// The definition of a function or method with this name.
    pub fn new(name: &str, signature: &str, op: &OpRef, call: FastCall) -> Result<Box<MethodDef>> {
        let nul = |_| {
            Error::value(format!("op '{}': the name and the documentation must not contain NUL characters", op.name))
        };
        let text = |s: String| CString::new(s).map_err(nul);
        let texts = [text(name.to_owned())?, text(format!("{signature}\n--\n\n{}", docstring::doc(op)))?];
        let def = ffi::PyMethodDef {
            ml_name: texts[0].as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: call },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS as c_int,
            ml_doc: texts[1].as_ptr(),
        };
        Ok(Box::new(MethodDef { def: UnsafeCell::new(def), _texts: texts }))
    }

    pub fn as_ptr(&self) -> *mut ffi::PyMethodDef {
        self.def.get()
    }
}

/// Runs a call from C: an error or a panic becomes an exception.
///
/// # Safety
/// The interpreter is attached.
#[inline]
pub unsafe fn enter(
    op: &OpRef,
    f: impl for<'py> FnOnce(Python<'py>) -> Result<Bound<'py, PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: the caller's contract.
    let py = unsafe { Python::assume_attached() };
    let result = catch_unwind(AssertUnwindSafe(|| f(py)));
    match result {
        Ok(Ok(object)) => object.into_ptr(),
        Ok(Err(exception)) => {
            exception.0.restore(py);
            std::ptr::null_mut()
        }
        Err(panic) => {
            Exception::from(panicked(&format!("op '{}'", op.name), panic)).0.restore(py);
            std::ptr::null_mut()
        }
    }
}
