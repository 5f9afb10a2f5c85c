//! A problem in a definition: where, and what.

use std::fmt::Display;

use crate::message::{Message, Sentence};

/// A problem that a parser or a check found.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Where it is.
    pub at: At,
    /// What it is, and what to do.
    pub sentence: Sentence,
}

/// The part of a definition that has a problem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// These tokens of the clause.
    Tokens(Extent),
    /// The input of that position.
    Input(usize),
    /// The attribute of that position.
    Attr(usize),
    /// The output of that position.
    Output(usize),
    /// The op as a whole.
    Op,
}

/// The tokens of one part of a clause: from `start`, up to but without `end`.
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
