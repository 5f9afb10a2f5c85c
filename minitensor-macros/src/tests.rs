//! Tests of the expansion, and of the tables of the macro.

mod bodies;
mod snapshots;
mod tables;

use proc_macro2::TokenStream;

/// Splits `#[custom_op(…)] fn …` and prints its expansion.
fn expanded(attr: TokenStream, item: TokenStream) -> String {
    let tokens = crate::op(attr, item).to_string();
    let file = syn2::parse_file(&tokens).unwrap_or_else(|e| panic!("the expansion is no Rust: {e}\n{tokens}"));
    prettyplease::unparse(&file)
}
