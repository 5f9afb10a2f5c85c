//! The `shape` clause as data: named core dimensions, arithmetic on them, predicates.

use std::fmt;

use crate::op::def::{List, Text};

/// The core dimensions of every argument: `(x: [.., n], w: [n, m]) -> [.., m]`.
#[derive(Clone, Debug)]
pub struct CoreShapes {
    /// One for each input.
    pub inputs: List<Dims>,
    /// One for each output, saved ones included.
    pub outputs: List<Dims>,
    /// The clause as it is written, for docs and errors.
    pub text: Text,
}

/// The dimensions of one argument.
#[derive(Clone, Debug)]
pub struct Dims {
    /// Whether batch dimensions stand before the core (`..`).
    pub batch: bool,
    /// The core dimensions.
    pub core: List<Dim>,
}

/// One dimension, or a number in a predicate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dim {
    /// A name bound by the first input that has it.
    Name(&'static str),
    /// A number.
    Int(i64),
    /// A number that isn't whole; predicates only.
    Float(f64),
    /// The value of the attribute of that position.
    Attr(u8),
    /// Arithmetic; division must have no remainder.
    Op(Arithmetic, &'static [Dim; 2]),
}

/// Arithmetic on dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
}

/// What must hold: `k <= n`.
#[derive(Clone, Copy, Debug)]
pub struct Predicate {
    /// The left side.
    pub left: Dim,
    /// How they compare.
    pub relation: Relation,
    /// The right side.
    pub right: Dim,
    /// As it is written.
    pub text: &'static str,
}

/// How two numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Relation {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

impl fmt::Display for CoreShapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
