//! The `shape` and `where` clauses as data: named core dimensions, arithmetic on them, conditions.

use std::fmt;

use crate::signature::{List, Text};

/// The core dimensions of every argument: `(x: [.., n], w: [n, m]) -> [.., m]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreShapes {
    /// One for each input.
    pub inputs: List<Dims>,
    /// One for each output, including saved ones.
    pub outputs: List<Dims>,
    /// The clause, for docs and errors.
    pub text: Text,
}

/// The dimensions of one argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Dims {
    /// Whether batch dimensions precede the core (`..`).
    pub batch: bool,
    /// The core dimensions.
    pub core: List<Dim>,
}

/// One dimension, or a number in a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Dim {
    /// A name bound by the first input that has it.
    Name(Text),
    /// A number.
    Int(i64),
    /// A number that is not an integer, in conditions only.
    Float(f64),
    /// The value of the attribute at that position.
    Attr(u8),
    /// Arithmetic on two dimensions. Division must have no remainder.
    Op(Arithmetic, List<Dim>),
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

/// A condition: `k <= n`.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// The left side.
    pub left: Dim,
    /// The comparison.
    pub relation: Relation,
    /// The right side.
    pub right: Dim,
    /// The condition, for docs and errors.
    pub text: Text,
}

/// A comparison of two numbers.
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

impl Arithmetic {
    /// All operations, each with its operator.
    pub const SIGNS: [(&'static str, Arithmetic); 4] =
        [("+", Arithmetic::Add), ("-", Arithmetic::Sub), ("*", Arithmetic::Mul), ("/", Arithmetic::Div)];

    /// The operation with that operator.
    pub fn of_sign(sign: &str) -> Option<Arithmetic> {
        Arithmetic::SIGNS.iter().find(|(s, _)| *s == sign).map(|(_, op)| *op)
    }
}

impl Relation {
    /// All relations, each with its operator.
    pub const SIGNS: [(&'static str, Relation); 6] = [
        ("<", Relation::Less),
        ("<=", Relation::LessEqual),
        (">", Relation::Greater),
        (">=", Relation::GreaterEqual),
        ("==", Relation::Equal),
        ("!=", Relation::NotEqual),
    ];

    /// The relation with that operator.
    pub fn of_sign(sign: &str) -> Option<Relation> {
        Relation::SIGNS.iter().find(|(s, _)| *s == sign).map(|(_, relation)| *relation)
    }
}

impl CoreShapes {
    /// The dimensions of a flat input. Every tensor of a list has the dimensions of the list.
    pub fn input(&self, flat: usize) -> &Dims {
        &self.inputs[flat.min(self.inputs.len() - 1)]
    }

    /// The dimensions of an output. Every tensor of a list has the dimensions of the list.
    pub fn output(&self, flat: usize) -> &Dims {
        &self.outputs[flat.min(self.outputs.len() - 1)]
    }
}

impl fmt::Display for CoreShapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
