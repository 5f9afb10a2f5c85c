//! `#[custom_op]`: one annotated function becomes a whole operation.
//!
//! The macro is thin: [`parse`] → [`check`] → [`lower`] → [`expand`]. What an op *means* lives in the runtime's traits
//! and types; here are its grammar, its mistakes, and the static record that is made of it.

#![forbid(unsafe_code)]

mod ast;
mod attr_enum;
mod body;
mod check;
mod diag;
mod dtype;
mod expand;
mod lower;
mod parse;
mod runtime;
mod shape;
#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{DeriveInput, ItemFn, parse_quote};

/// Makes a tensor operation of a function.
#[proc_macro_attribute]
pub fn custom_op(attr: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    op(attr.into(), item.into()).into()
}

/// Lets an enum be an attribute of an op: its variants become words, `HalfPixel` becomes `"half_pixel"`.
#[proc_macro_derive(AttrEnum)]
pub fn attr_enum(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(item as DeriveInput);
    attr_enum::expand(&input, &runtime::path(None)).into()
}

fn op(attr: TokenStream, item: TokenStream) -> TokenStream {
    let function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        // Half-written code: the compiler says what is wrong with it, and an editor gets what there is.
        Err(error) => {
            let error = error.to_compile_error();
            return quote!(#error #item);
        }
    };
    let mut diag = diag::Diag::default();
    let (clauses, op) = parse::op(attr, function.clone(), &mut diag);
    let runtime = runtime::path(clauses.runtime.as_ref());
    let Some(op) = op else { return kept(without_body(function), diag) };
    check::op(&op, &clauses, &mut diag);
    let lowered = lower::op(&op, &runtime, &mut diag);
    if !diag.is_empty() {
        return kept(lowered.function, diag);
    }
    diag.finish();
    expand::op(op, lowered, &runtime)
}

/// A generic body isn't Rust before it is lowered: rustc would add its own mistakes to ours.
fn without_body(mut function: ItemFn) -> ItemFn {
    let generic = function.sig.generics.type_params().next().is_some();
    if generic || function.sig.inputs.to_token_stream().into_iter().any(|t| t.to_string() == "impl") {
        function.block = parse_quote!({ ::core::unimplemented!() });
    }
    function
}

/// The mistakes, and the function, which other code may call.
fn kept(mut function: ItemFn, diag: diag::Diag) -> TokenStream {
    parse::strip_defaults(&mut function);
    let errors = diag.finish();
    quote!(#errors #[allow(unused, clippy::all)] #function)
}
