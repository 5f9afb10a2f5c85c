//! The error type: a kind and a message.

use std::fmt;

pub use minitensor_schema::message::counted;

/// An error. The message names the op, the argument, the expected and the received value, and a remedy.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    /// A wrapped exception of the host language.
    foreign: Option<std::sync::Arc<dyn std::any::Any + Send + Sync>>,
}

/// The kind of an error, named after the corresponding Python exception.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// A wrong type or dtype, a wrong number of arguments, or an unknown keyword.
    Type,
    /// An invalid value, such as a mismatched shape or an attribute outside of its domain.
    Value,
    /// An index out of range.
    Index,
    /// Insufficient memory.
    Memory,
    /// An operation that is invalid in the current state.
    Runtime,
    /// An operation that is not implemented.
    NotImplemented,
}

/// The result of fallible functions of minitensor.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Seed name of [`Error`].
pub type MinitensorError = Error;

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {$(
        $(#[$doc])*
        #[cold]
        pub fn $name(message: impl Into<String>) -> Error { Error::new(ErrorKind::$kind, message) }
    )*};
}

impl Error {
    /// An error of this kind.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, message: message.into(), foreign: None }))
    }

    constructors! {
        /// A wrong type or number of arguments.
        type_ => Type;
        /// An invalid value.
        value => Value;
        /// An index out of range.
        index => Index;
        /// Insufficient memory.
        memory => Memory;
        /// An invalid operation in the current state.
        runtime => Runtime;
        /// Not implemented.
        not_implemented => NotImplemented;
    }

    /// Two shapes that must be equal differ.
    #[cold]
    pub fn shape_mismatch(expected: Vec<usize>, got: Vec<usize>) -> Error {
        Error::value(format!("shapes differ: expected {expected:?}, got {got:?}"))
    }

    /// Wraps an exception of the host language, which is later raised again unchanged.
    #[cold]
    pub fn foreign(message: impl Into<String>, exception: impl std::any::Any + Send + Sync) -> Error {
        let mut error = Error::runtime(message);
        error.0.foreign = Some(std::sync::Arc::new(exception));
        error
    }

    /// The wrapped exception, if there is one of this type.
    pub fn as_foreign<E: 'static>(&self) -> Option<&E> {
        self.0.foreign.as_deref()?.downcast_ref()
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Prefixes the message, as in `op 'x': …`, unless it has this prefix already.
    #[cold]
    pub fn context(mut self, before: impl fmt::Display) -> Error {
        let before = before.to_string();
        if !self.0.message.starts_with(&before) {
            self.0.message = format!("{before}: {}", self.0.message);
        }
        self
    }

    /// Adds the position of the call in the user's code.
    #[cold]
    pub(crate) fn called_at(mut self, place: &str) -> Error {
        self.0.message = format!("{} (called at {place})", self.0.message);
        self
    }

    /// Replaces the op `part` in the message by the op `name`, of which it is an internal part.
    pub fn renamed(mut self, part: &str, name: &str) -> Error {
        self.0.message = self.0.message.replace(&format!("op '{part}'"), &format!("op '{name}'"));
        self
    }
}

/// The message of a panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}Error: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {}

impl From<minitensor_schema::Sentence> for Error {
    #[cold]
    fn from(sentence: minitensor_schema::Sentence) -> Error {
        Error::value(sentence.to_string())
    }
}
