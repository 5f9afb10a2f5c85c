//! Parses tokens into an [`Op`]: reads the clauses and the signature, and combines them.

pub mod clause;
pub mod helper;
mod resolve;
mod signature;

pub use clause::Clauses;
pub use resolve::strip_defaults;
pub use signature::strip_names;

use proc_macro2::TokenStream;
use syn::ItemFn;

use crate::ast::Op;
use crate::diag::Diag;

/// Reads an op. `None` if the signature or a clause cannot be parsed; the diagnostics then contain the reason.
pub fn op(attr: TokenStream, function: ItemFn, diag: &mut Diag) -> (Clauses, Option<Op>) {
    let mut clauses = clause::parse(attr, diag);
    let signature = signature::parse(&function, clauses.shape.as_ref().map(|s| &s.tree), diag);
    let op = match signature {
        Some(signature) if diag.is_empty() => resolve::op(function, &mut clauses, signature, diag),
        _ => None,
    };
    (clauses, op)
}
