//! The clauses `backward` and `jvp` as a tree.

use super::expr::{Expr, ExprKind, Let};
use super::parser::{Parsed, Parser};
use super::token::TokenKind;
use crate::message;
use crate::problem::{Extent, Problem};

/// The mode of automatic differentiation that a formula is written for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// `backward`: takes the cotangents of the outputs, and computes the gradients of the inputs.
    Reverse,
    /// `jvp`: takes the tangents of the inputs, and computes the tangents of the outputs.
    Forward,
}

/// `|d, _| { let a = x.exp(); x: d * a, weight: none }`
#[derive(Clone, Debug)]
pub struct Formula {
    /// Whether it computes gradients or tangents.
    pub mode: Mode,
    /// The name of each cotangent or tangent that it takes, including `_`, and its extent.
    pub given: Vec<(String, Extent)>,
    /// The `let`s, which come first.
    pub lets: Vec<Let>,
    /// The gradients or tangents that it computes.
    pub entries: Vec<Entry>,
}

/// The gradient of one input, or the tangent of one output.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name of the input or output.
    pub of: String,
    /// The extent of the name.
    pub at: Extent,
    /// `None` for `none`.
    pub value: Option<Expr>,
}

/// The name of a tangent that is zero although nothing uses it. No source can contain it.
pub const UNUSED_TANGENT: &str = "<unused>";

impl Mode {
    /// The clause of a formula.
    pub fn clause(self) -> &'static str {
        match self {
            Mode::Reverse => "backward",
            Mode::Forward => "jvp",
        }
    }

    /// The syntax of a formula, for errors.
    pub fn example(self) -> &'static str {
        match self {
            Mode::Reverse => "|d_out| { x: d_out * out }",
            Mode::Forward => "|d_x| { out: d_x * out }",
        }
    }

    /// The nouns of an entry: the `gradient` of an `input`, or the `tangent` of an `output`.
    pub fn computes(self) -> (&'static str, &'static str) {
        match self {
            Mode::Reverse => ("gradient", "input"),
            Mode::Forward => ("tangent", "output"),
        }
    }
}

impl Parser<'_> {
    /// Reads `|d_out| { x: d_out * out }`.
    ///
    /// # Errors
    /// The text is not a formula.
    pub fn formula(&mut self, mode: Mode) -> Parsed<Formula> {
        let given = match self.take("||") {
            true => Vec::new(),
            false => {
                self.expect("|")?;
                let what = if mode == Mode::Reverse { "the name of a cotangent" } else { "the name of a tangent" };
                self.list("|", |p| p.word(what))?
            }
        };
        self.expect("{")?;
        let (lets, entries) = (self.lets()?, self.list("}", |p| p.entry(mode))?);
        Ok(Formula { mode, given, lets, entries })
    }

    fn entry(&mut self, mode: Mode) -> Parsed<Entry> {
        let start = self.position();
        if self.is_word("let") {
            return Err(Problem::tokens(Extent::of(start), &message::LATE_LET, &[]));
        }
        let is_entry = self.peek().kind == TokenKind::Word && self.ahead(1).kind == TokenKind::Sign(":");
        if !is_entry {
            let (what, of) = mode.computes();
            let example = mode.example().split(['{', '}']).nth(1).unwrap_or_default().trim();
            return Err(Problem::tokens(Extent::of(start), &message::NOT_AN_ENTRY, &[&what, &of, &example, &of]));
        }
        let (of, at) = self.word("the name of a tensor")?;
        self.expect(":")?;
        let value = self.expr()?;
        let is_none = matches!(&value.kind, ExprKind::Name(name) if name == "none");
        Ok(Entry { of, at, value: if is_none { None } else { Some(value) } })
    }
}
