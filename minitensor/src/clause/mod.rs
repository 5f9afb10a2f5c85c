//! The clauses of `#[custom_op]` as text, for ops made at run time: [`shape()`] and [`backward()`] read them to what the macro
//! writes for the same words.
//!
//! A text may come from anywhere: length and nesting are limited, and every mistake is an [`Error`] that quotes it.

mod expr;
mod formula;
mod gradient;
mod lower;
mod shape;
mod token;

use std::fmt::Display;

pub use lower::backward;
pub use shape::{Shape, shape};

use minitensor_schema::suggestion::nearest;

use crate::error::Error;

/// The most bytes of a clause.
const LONGEST: usize = 16 * 1024;
/// The deepest that brackets, operators and calls may lie in each other.
const DEEPEST: usize = 64;
/// How much of a clause an error shows.
const SHOWN: usize = 200;

/// A clause in hand: which one, of which op.
#[derive(Clone, Copy)]
struct Source<'a> {
    op: &'a str,
    clause: &'static str,
    text: &'a str,
}

impl Source<'_> {
    /// A mistake in it.
    #[cold]
    fn error(&self, what: impl Display) -> Error {
        Error::value(format!("op '{}': {} clause '{}': {what}", self.op, self.clause, shown(self.text)))
    }
}

/// A text on one line, and not too much of it.
fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What may have been meant.
fn suggestion(name: &str, known: &[&str]) -> String {
    // Names that long are no slips, and take long to compare.
    let short = |name: &&str| name.len() < SHOWN;
    match Some(name).filter(short).and_then(|name| nearest(name, known.iter().copied().filter(short))) {
        Some(near) => format!("did you mean '{near}'?"),
        None if known.is_empty() => "there are no names".into(),
        None => format!("the names are '{}'", shown(&known.join("', '"))),
    }
}
