//! Parses tokens into an [`Op`]: reads the clauses and the signature, and combines them.

pub mod clause;
pub mod helper;
mod resolve;
mod signature;

pub use clause::Clauses;
pub use resolve::strip_defaults;
pub use signature::{complex_part, is_tensor, option, result, strip_names, variable_of_complex, wrapped};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::visit_mut::{self, VisitMut};
use syn::{ItemFn, Type, parse_quote};

use crate::ast::Op;
use crate::diag::Diag;

/// The syntax error, and the function without a body, so that its callers compile. Other items are unchanged.
pub fn incomplete(error: syn::Error, item: TokenStream) -> TokenStream {
    let error = error.to_compile_error();
    let head = |input: ParseStream| {
        input.call(syn::Attribute::parse_outer)?;
        let (vis, sig): (syn::Visibility, syn::Signature) = (input.parse()?, input.parse()?);
        let body: TokenTree = input.parse()?;
        let is_body = matches!(&body, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        if is_body && input.is_empty() { Ok((vis, sig)) } else { Err(input.error("not a function")) }
    };
    match head.parse2(item.clone()) {
        Ok((vis, sig)) => {
            let mut function: ItemFn =
                parse_quote!(#[allow(unused, clippy::all)] #vis #sig { ::core::unimplemented!() });
            strip_defaults(&mut function);
            quote!(#error #function)
        }
        Err(_) => quote!(#error #item),
    }
}

/// Parses a function. A type that is an argument of a `macro_rules!` macro is in an invisible group, which is removed.
pub fn function(item: TokenStream) -> syn::Result<ItemFn> {
    struct Ungroup;
    impl VisitMut for Ungroup {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            if let Type::Group(group) = ty {
                *ty = (*group.elem).clone();
            }
            visit_mut::visit_type_mut(self, ty);
        }
    }
    let mut function = syn::parse2(item)?;
    Ungroup.visit_item_fn_mut(&mut function);
    Ok(function)
}

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
