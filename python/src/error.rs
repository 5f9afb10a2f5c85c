//! Converts errors to Python exceptions and back.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use minitensor::error::panic_text;
use minitensor::stop::stopped;
use minitensor::{Error, ErrorKind};
use pyo3::exceptions::*;
use pyo3::prelude::*;

/// An exception to raise. `?` converts errors of both languages to it.
pub struct Raised(pub PyErr);

/// The result of functions that Python calls.
pub type Result<T> = std::result::Result<T, Raised>;

impl From<PyErr> for Raised {
    fn from(error: PyErr) -> Raised {
        Raised(error)
    }
}

impl From<Raised> for PyErr {
    fn from(raised: Raised) -> PyErr {
        raised.0
    }
}

impl From<pyo3::CastError<'_, '_>> for Raised {
    fn from(error: pyo3::CastError<'_, '_>) -> Raised {
        Raised(error.into())
    }
}

impl From<Error> for Raised {
    /// An exception that was raised in Python is raised again unchanged, with its type and traceback.
    fn from(error: Error) -> Raised {
        if let Some(exception) = error.as_foreign::<PyErr>() {
            return Raised(Python::attach(|py| exception.clone_ref(py)));
        }
        let message = error.message().to_owned();
        Raised(match error.kind() {
            ErrorKind::Type => PyTypeError::new_err(message),
            ErrorKind::Value => PyValueError::new_err(message),
            ErrorKind::Index => PyIndexError::new_err(message),
            ErrorKind::Memory => PyMemoryError::new_err(message),
            ErrorKind::Runtime => PyRuntimeError::new_err(message),
            ErrorKind::NotImplemented => PyNotImplementedError::new_err(message),
        })
    }
}

impl From<Raised> for Error {
    /// An exception that passes through the core.
    fn from(raised: Raised) -> Error {
        Error::foreign(raised.0.to_string(), raised.0)
    }
}

/// Runs `f`, which may panic or stop early. A panic becomes an error that names `who`.
pub fn guarded<T>(who: &str, f: impl FnOnce() -> minitensor::Result<T>) -> minitensor::Result<T> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| Err(panicked(who, payload)))
}

#[cold]
pub fn panicked(who: &str, payload: Box<dyn Any + Send>) -> Error {
    stopped(payload).unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        Error::runtime(format!("{who} panicked: {text}; this is a fault in its definition or in minitensor"))
    })
}
