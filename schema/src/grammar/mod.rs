//! The grammar of clauses: tokens, the parser, and the trees that it returns.
//!
//! The parser reads [`Tokens`]. The macro makes them from Rust's tokens, [`Tokens::of_text`] from a text. Every part of a tree has an
//! [`Extent`](crate::problem::Extent), the positions of its tokens. Only the front ends know what a position is: a span, or a place in a text.

mod expr;
mod formula;
mod parser;
mod property;
mod shape;
mod text;
mod token;

pub use expr::{Argument, Expr, ExprKind, Let};
pub use formula::{Entry, Formula, Mode, UNUSED_TANGENT};
pub use parser::{Dialect, Parser};
pub use property::{Clause as PropertyClause, EXAMPLE as PROPERTY_EXAMPLE, Group};
pub use shape::{Dim, DimKind, Dims, EXAMPLE as SHAPE_EXAMPLE, NamedDims, Predicate, Shape, WHERE_EXAMPLE};
pub use text::{LONGEST, Source};
pub use token::{SIGNS, Token, TokenKind, Tokens};
