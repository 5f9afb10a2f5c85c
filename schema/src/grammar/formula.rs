//! The clause `backward` as a tree.

use super::expr::{Expr, ExprKind, Let};
use super::parser::{Parsed, Parser};
use super::token::TokenKind;
use crate::message;
use crate::problem::{Extent, Problem};

/// `|d, _| { let a = x.exp(); x: d * a, weight: none }`
#[derive(Clone, Debug)]
pub struct Formula {
    /// The name of each cotangent, including `_`, and its extent.
    pub cotangents: Vec<(String, Extent)>,
    /// The `let`s, which come first.
    pub lets: Vec<Let>,
    /// The gradients.
    pub entries: Vec<Entry>,
}

/// The gradient of one input.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name of the input.
    pub input: String,
    /// The extent of the name.
    pub at: Extent,
    /// `None` for `none`.
    pub value: Option<Expr>,
}

/// The syntax of a formula, for errors.
pub const EXAMPLE: &str = "|d_out| { x: d_out * out }";

impl Parser<'_> {
    /// Reads `|d_out| { x: d_out * out }`.
    ///
    /// # Errors
    /// The text is not a formula.
    pub fn formula(&mut self) -> Parsed<Formula> {
        let cotangents = match self.take("||") {
            true => Vec::new(),
            false => {
                self.expect("|")?;
                self.list("|", |p| p.word("the name of a cotangent"))?
            }
        };
        self.expect("{")?;
        let (lets, entries) = (self.lets()?, self.list("}", Self::entry)?);
        Ok(Formula { cotangents, lets, entries })
    }

    fn entry(&mut self) -> Parsed<Entry> {
        let start = self.position();
        if self.is_word("let") {
            return Err(Problem::tokens(Extent::of(start), &message::LATE_LET, &[]));
        }
        let is_entry = self.peek().kind == TokenKind::Word && self.ahead(1).kind == TokenKind::Sign(":");
        if !is_entry {
            return Err(Problem::tokens(Extent::of(start), &message::NOT_AN_ENTRY, &[]));
        }
        let (input, at) = self.word("the name of an input")?;
        self.expect(":")?;
        let value = self.expr()?;
        let is_none = matches!(&value.kind, ExprKind::Name(name) if name == "none");
        Ok(Entry { input, at, value: if is_none { None } else { Some(value) } })
    }
}
