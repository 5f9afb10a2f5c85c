//! The clauses `linear`, `symmetric` and `replaces` as trees.

use super::expr::Expr;
use super::parser::{Parsed, Parser};
use crate::problem::Extent;

/// The syntax of the clauses, for errors.
pub const EXAMPLE: &str = "linear = x, symmetric, replaces = log(softmax(x, axis = axis))";

/// The item of a group, for errors.
const INPUT: &str = "the name of an input";

/// The names of inputs in which an op is linear together, with their extents.
pub type Group = Vec<(String, Extent)>;

/// One clause.
#[derive(Clone, Debug)]
pub enum Clause {
    /// `linear = x`, `linear = (x, y)`, `linear = [x, y]`
    Linear(Vec<Group>),
    /// `symmetric`, and its extent.
    Symmetric(Extent),
    /// `replaces = log(softmax(x))`
    Replaces(Expr),
}

impl Parser<'_> {
    /// Reads `linear = x, symmetric, …` to the end.
    ///
    /// # Errors
    /// The text is not a list of these clauses.
    pub fn properties(&mut self) -> Parsed<Vec<Clause>> {
        let (mut clauses, mut words) = (Vec::new(), Vec::new());
        while !self.is_at_end() {
            let (word, at) = self.word("`linear`, `symmetric` or `replaces`")?;
            if words.contains(&word) {
                self.go_to(at.start);
                return self.expected("each clause only once");
            }
            words.push(word.clone());
            clauses.push(match word.as_str() {
                "symmetric" => Clause::Symmetric(at),
                "linear" => {
                    self.expect("=")?;
                    self.linear()?
                }
                "replaces" => {
                    self.expect("=")?;
                    Clause::Replaces(self.expr()?)
                }
                _ => {
                    self.go_to(at.start);
                    return self.expected("`linear`, `symmetric` or `replaces`");
                }
            });
            if !self.is_at_end() {
                self.expect(",")?;
            }
        }
        Ok(clauses)
    }

    /// Reads `x`, `(x, y)` or `[x, (y, z)]`.
    ///
    /// # Errors
    /// The text is none of these.
    pub fn linear(&mut self) -> Parsed<Clause> {
        let groups = if self.take("[") { self.list("]", Self::group)? } else { vec![self.group()?] };
        if groups.is_empty() { self.expected(INPUT) } else { Ok(Clause::Linear(groups)) }
    }

    fn group(&mut self) -> Parsed<Group> {
        let name = |p: &mut Self| p.word(INPUT);
        let group = if self.take("(") { self.list(")", name)? } else { vec![name(self)?] };
        if group.is_empty() { self.expected(INPUT) } else { Ok(group) }
    }
}
