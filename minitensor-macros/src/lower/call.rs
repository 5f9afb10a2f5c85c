//! Calls of ops by name, in formulas and in bodies over whole tensors.

use std::collections::BTreeMap;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::Ident;

use crate::hygiene::quote;

/// The ops that a function calls, each with its static.
#[derive(Default)]
pub struct Calls(BTreeMap<String, Ident>);

impl Calls {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The static of an op, with the span of its name.
    pub fn op(&mut self, name: &str, span: Span) -> Ident {
        let ident = format!("__OP{}_{}", self.0.len(), name.to_uppercase().replace("::", "_"));
        let ident = self.0.entry(name.to_owned()).or_insert_with(|| Ident::new(&ident, Span::call_site()));
        Ident::new(&ident.to_string(), span)
    }

    /// The first items of the function: the statics, and the entry by which the registry finds unknown ops.
    pub fn items(&self, caller: &str) -> TokenStream {
        if self.is_empty() {
            return TokenStream::new();
        }
        let (names, statics): (Vec<_>, Vec<_>) = self.0.iter().unzip();
        quote! {
            #(static #statics: __private::OpName = __private::OpName::new(#names);)*
            __private::inventory::submit! {
                __private::CallsEntry {
                    caller: #caller,
                    location: __private::Location { file: __private::Cow::Borrowed(::core::file!()), line: ::core::line!() },
                    calls: &[#(#names),*],
                }
            }
        }
    }
}

/// The call of an op. With `count` it returns this number of tensors.
pub fn call(
    op: &Ident,
    args: &[TokenStream],
    keywords: &[(String, TokenStream)],
    count: Option<usize>,
    span: Span,
) -> TokenStream {
    let keywords = keywords.iter().map(|(name, value)| quote!((#name, #value)));
    let method = match count.map(syn::Index::from) {
        Some(count) => quote!(call_many::<#count>),
        None => quote!(call),
    };
    // The `?` is not the user's, so that Clippy does not complain about `Ok(…?)`.
    let span = Span::mixed_site().located_at(span);
    quote_spanned!(span=> #op.#method(&[#(#args),*], &[#(#keywords),*])?)
}

/// A hygienic span at the place of a user's expression, so that an error about it points there.
pub fn located(of: impl ToTokens) -> Span {
    Span::mixed_site().located_at(of.into_token_stream().into_iter().next().map_or_else(Span::call_site, |t| t.span()))
}

/// An argument.
pub fn value(of: impl ToTokens) -> TokenStream {
    let span = located(&of);
    quote_spanned!(span=> __private::value(&#of))
}

/// The argument `None`.
pub fn none() -> TokenStream {
    value(quote!(__private::Option::<__private::i64>::None))
}

/// A list of arguments as one.
pub fn list(items: &[TokenStream]) -> TokenStream {
    quote!(__private::list(&[#(#items),*])?)
}
