//! A problem in a definition, with its location.

use std::fmt::Display;

use crate::message::{Message, Sentence};

/// A problem that a parser or a check found.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Its location.
    pub at: At,
    /// The fault and its solution.
    pub sentence: Sentence,
}

/// The location of a problem in a definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// These tokens of the clause.
    Tokens(Extent),
    /// The input at that position.
    Input(usize),
    /// The attribute at that position.
    Attr(usize),
    /// The output at that position.
    Output(usize),
    /// The dtype variable at that position.
    Variable(usize),
    /// The op as a whole.
    Op,
}

/// The tokens of one part of a clause: from `start` to `end`, which is excluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// The position of the first token.
    pub start: usize,
    /// The position after the last token.
    pub end: usize,
}

impl Extent {
    /// The extent of one token.
    pub fn of(position: usize) -> Extent {
        Extent { start: position, end: position + 1 }
    }
}

impl Problem {
    /// A problem in a part of the definition.
    pub fn new(at: At, message: &Message, args: &[&dyn Display]) -> Problem {
        Problem { at, sentence: message.filled(args) }
    }

    /// A problem in a part of the clause.
    pub fn tokens(at: Extent, message: &Message, args: &[&dyn Display]) -> Problem {
        Problem::new(At::Tokens(at), message, args)
    }
}
