//! Converts errors to Python exceptions and back.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use minitensor::error::panic_text;
use minitensor::stop::stopped;
use minitensor::{Error, ErrorKind};
use pyo3::exceptions::*;
use pyo3::prelude::*;

/// An exception to raise. `?` converts errors of both languages to it.
pub struct Exception(pub PyErr);

/// The result of functions that Python calls.
pub type Result<T> = std::result::Result<T, Exception>;

impl Exception {
    /// The same exception, whose message begins with what it is about.
    #[cold]
    pub fn about(self, py: Python<'_>, what: fmt::Arguments<'_>) -> Exception {
        let class = self.0.get_type(py);
        // The exceptions of other libraries may need other arguments than a message.
        let is_plain = [
            py.get_type::<PyTypeError>(),
            py.get_type::<PyValueError>(),
            py.get_type::<PyBufferError>(),
            py.get_type::<PyRuntimeError>(),
        ]
        .iter()
        .any(|plain| class.is(plain));
        if !is_plain {
            return self;
        }
        let named = PyErr::from_type(class, (format!("{what}: {}", self.0.value(py)),));
        named.set_cause(py, self.0.cause(py));
        named.into()
    }
}

impl From<PyErr> for Exception {
    fn from(error: PyErr) -> Exception {
        Exception(error)
    }
}

impl From<Exception> for PyErr {
    fn from(exception: Exception) -> PyErr {
        exception.0
    }
}

impl From<pyo3::CastError<'_, '_>> for Exception {
    fn from(error: pyo3::CastError<'_, '_>) -> Exception {
        Exception(error.into())
    }
}

impl From<Error> for Exception {
    /// An exception that was raised in Python is raised again unchanged, with its type and traceback.
    fn from(error: Error) -> Exception {
        if let Some(exception) = error.as_foreign::<PyErr>() {
            return Exception(Python::attach(|py| exception.clone_ref(py)));
        }
        let message = error.message().to_owned();
        Exception(match error.kind() {
            ErrorKind::Type => PyTypeError::new_err(message),
            ErrorKind::Value => PyValueError::new_err(message),
            ErrorKind::Index => PyIndexError::new_err(message),
            ErrorKind::Memory => PyMemoryError::new_err(message),
            ErrorKind::Runtime => PyRuntimeError::new_err(message),
            ErrorKind::NotImplemented => PyNotImplementedError::new_err(message),
        })
    }
}

impl From<Exception> for Error {
    /// An exception that passes through the core.
    fn from(exception: Exception) -> Error {
        Error::foreign(exception.0.to_string(), exception.0)
    }
}

/// Runs `f`, which may panic or stop early. A panic becomes an error that names `name`.
pub fn catch_panics<T>(name: &str, f: impl FnOnce() -> minitensor::Result<T>) -> minitensor::Result<T> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| Err(panicked(name, payload)))
}

#[cold]
pub fn panicked(name: &str, payload: Box<dyn Any + Send>) -> Error {
    stopped(payload).unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        Error::runtime(format!("{name} panicked: {text}; this is a bug in its definition or in minitensor"))
    })
}
