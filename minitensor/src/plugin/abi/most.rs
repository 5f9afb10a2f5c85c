//! The limits of all lengths, in bytes for texts and in items for lists. Nothing above its limit is read.

/// The name of an op, an argument, a dimension or a word.
pub const NAME: usize = 255;
/// The path of a source file.
pub const FILE: usize = 4096;
/// A shape clause or a backward clause.
pub const CLAUSE: usize = 1 << 16;
/// The documentation of an op.
pub const DOC: usize = 1 << 20;
/// An error or a log message.
pub const SENTENCE: usize = 1 << 20;
/// A text attribute.
pub const TEXT: usize = 1 << 24;
/// A program as JSON.
pub const PROGRAM: usize = 1 << 26;
/// The inputs, attributes, outputs, dtype variables or aliases of an op.
pub const PARTS: usize = 64;
/// The dimensions of a tensor.
pub const DIMS: usize = 64;
/// The candidates of a tuned attribute.
pub const CANDIDATES: usize = minitensor_schema::check::MOST_CANDIDATES;
/// The possible words of an attribute.
pub const WORDS: usize = 1024;
/// The dtypes of a variable.
pub const DTYPES: usize = super::numbers::DTYPES.len();
/// The kernels of an op: one for each combination of dtypes.
pub const KERNELS: usize = minitensor_schema::check::MOST_KERNELS;
/// The tensors of a variadic input, or the items of a list attribute.
pub const LIST: usize = 1 << 20;
