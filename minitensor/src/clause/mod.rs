//! The clauses of `#[custom_op]` as text, for ops made at run time. [`shape()`] and [`formula()`] read them with the grammar and
//! the checks of [the schema](minitensor_schema), as the macro does.
//!
//! The text may be untrusted, so its length and nesting are limited. An error shows the part of the text that is wrong.

mod formula;
mod gradient;
mod property;
mod shape;

pub use formula::formula;
pub use property::{pattern, properties};
pub use shape::{Shape, shape};

use minitensor_schema::grammar::{Dialect, Parser, Source, Tokens};
use minitensor_schema::{At, Problem, Sentence};

use crate::error::{Error, Result};
use crate::op::OpDef;

/// A clause of an op as text.
struct Clause<'a> {
    op: &'a OpDef,
    name: &'static str,
    tokens: Tokens,
    source: Source<'a>,
}

impl<'a> Clause<'a> {
    fn new(op: &'a OpDef, name: &'static str, text: &'a str) -> Result<Clause<'a>> {
        let show = |sentence: &Sentence, shown: String| sentence_of(op, name, sentence, &shown);
        let (tokens, source) = Tokens::of_text(text.trim())
            .map_err(|(sentence, source)| show(&sentence, source.underlined(minitensor_schema::Extent::of(0))))?;
        Ok(Clause { op, name, tokens, source })
    }

    fn parser(&self, example: &'static str) -> Parser<'_> {
        Parser::new(&self.tokens, Dialect::Text, example)
    }

    /// An error that shows the position of the problem in the text.
    #[cold]
    fn error(&self, problem: &Problem) -> Error {
        let shown = match problem.at {
            At::Tokens(at) => self.source.underlined(at),
            _ => format!("  {}", self.source.shortened()),
        };
        sentence_of(self.op, self.name, &problem.sentence, &shown)
    }

    /// Returns the first of the problems as an error.
    fn check(&self, problems: &[Problem]) -> Result<()> {
        problems.first().map_or(Ok(()), |problem| Err(self.error(problem)))
    }
}

#[cold]
fn sentence_of(op: &OpDef, clause: &str, sentence: &Sentence, shown: &str) -> Error {
    let line_break = if shown.is_empty() { "" } else { "\n" };
    Error::value(format!("op '{}': {clause} clause: {sentence}{line_break}{shown}", op.name))
}
