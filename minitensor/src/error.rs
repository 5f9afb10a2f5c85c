//! The one error type: which kind of mistake, and the sentence a user reads.

use std::fmt;

/// What went wrong, in the words a user reads: the op, the argument, what was expected, what came, a way out.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    /// An exception of the host language, carried through unharmed.
    foreign: Option<std::sync::Arc<dyn std::any::Any + Send + Sync>>,
}

/// The kind of an error, named for the Python exception it becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// A wrong type: of an argument, a dtype, a count of arguments, an unknown keyword.
    Type,
    /// A value that doesn't fit: shapes, attributes out of their domain.
    Value,
    /// An index out of range.
    Index,
    /// More memory than there is.
    Memory,
    /// A thing asked for at the wrong time or place.
    Runtime,
    /// Something that isn't there yet or can't be had.
    NotImplemented,
}

/// What every fallible function of minitensor returns.
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
    /// An error of a kind.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, message: message.into(), foreign: None }))
    }

    constructors! {
        /// A wrong type or number of arguments.
        type_ => Type;
        /// A value that doesn't fit.
        value => Value;
        /// An index out of range.
        index => Index;
        /// Not enough memory.
        memory => Memory;
        /// The wrong time or place.
        runtime => Runtime;
        /// Not to be had.
        not_implemented => NotImplemented;
    }

    /// Two shapes that should have been one.
    #[cold]
    pub fn shape_mismatch(expected: Vec<usize>, got: Vec<usize>) -> Error {
        Error::value(format!("shapes differ: expected {expected:?}, got {got:?}"))
    }

    /// Wraps an exception of the host language, which comes out again as it was.
    #[cold]
    pub fn foreign(message: impl Into<String>, exception: impl std::any::Any + Send + Sync) -> Error {
        let mut error = Error::runtime(message);
        error.0.foreign = Some(std::sync::Arc::new(exception));
        error
    }

    /// The wrapped exception, if one of that type is inside.
    pub fn as_foreign<E: 'static>(&self) -> Option<&E> {
        self.0.foreign.as_deref()?.downcast_ref()
    }

    /// Its kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Puts words before the message, once: `op 'x': …`.
    #[cold]
    pub fn context(mut self, before: impl fmt::Display) -> Error {
        let before = before.to_string();
        if !self.0.message.starts_with(&before) {
            self.0.message = format!("{before}: {}", self.0.message);
        }
        self
    }

    /// The same about the op `name`, which is computed by the op `part`, of which a caller need not know.
    pub fn renamed(mut self, part: &str, name: &str) -> Error {
        self.0.message = self.0.message.replace(&format!("op '{part}'"), &format!("op '{name}'"));
        self
    }
}

/// What a panic says.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

/// `1 tensor`, `2 tensors`.
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
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
