//! Calls of ops by name, in formulas and in bodies over whole tensors.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::Ident;

use crate::hygiene::quote;

/// The outputs of an op that a call returns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outputs {
    /// The only one.
    One,
    /// This number of them, as an array.
    Array(usize),
    /// This number of them, as a tuple.
    Tuple(usize),
    /// All of them, as a vector.
    All,
}

/// The ops that a function calls.
#[derive(Default)]
pub struct Calls {
    /// The static of each op.
    statics: BTreeMap<String, Ident>,
    /// The op, the number of positional arguments, the keywords, and the number of outputs, if it is fixed.
    made: BTreeSet<(String, usize, Vec<String>, Option<usize>)>,
}

impl Calls {
    pub fn is_empty(&self) -> bool {
        self.statics.is_empty()
    }

    /// The static of an op, with the span of its name.
    fn op(&mut self, name: &str, span: Span) -> Ident {
        let ident = format!("__OP{}_{}", self.statics.len(), name.to_uppercase().replace("::", "_"));
        let ident = self.statics.entry(name.to_owned()).or_insert_with(|| Ident::new(&ident, Span::call_site()));
        Ident::new(&ident.to_string(), span)
    }

    /// Notes that the runtime calls an op for the function, with valid arguments.
    pub fn note(&mut self, name: &str) {
        self.made.insert((name.to_owned(), 0, vec![], Some(1)));
    }

    /// The call of an op. `op_span` is the place of its name, `span` that of the call.
    pub fn call(
        &mut self,
        name: &str,
        op_span: Span,
        args: &[TokenStream],
        keywords: &[(String, TokenStream)],
        outputs: Outputs,
        span: Span,
    ) -> TokenStream {
        let op = self.op(name, op_span);
        let count = match outputs {
            Outputs::One => Some(1),
            Outputs::Array(count) | Outputs::Tuple(count) => Some(count),
            Outputs::All => None,
        };
        let names = keywords.iter().map(|(name, _)| name.clone()).collect();
        self.made.insert((name.to_owned(), args.len(), names, count));
        let keywords = keywords.iter().map(|(name, value)| quote!((#name, #value)));
        let method = match outputs {
            Outputs::One => quote!(call),
            Outputs::Array(count) | Outputs::Tuple(count) => {
                let count = syn::Index::from(count);
                quote!(call_many::<#count>)
            }
            Outputs::All => quote!(call_all),
        };
        // The `?` is not the user's, so that Clippy does not complain about `Ok(…?)`.
        let span = Span::mixed_site().located_at(span);
        let call = quote_spanned!(span=> #op.#method(&[#(#args),*], &[#(#keywords),*])?);
        let Outputs::Tuple(count) = outputs else { return call };
        let each = std::iter::repeat_n(quote!(__private::Tensor), count);
        quote_spanned!(span=> <(#(#each,)*) as __private::From<_>>::from(#call))
    }

    /// The first items of the function: the statics, and the entry by which the registry finds wrong calls.
    pub fn items(&self, caller: &str) -> TokenStream {
        if self.made.is_empty() {
            return TokenStream::new();
        }
        let (names, statics): (Vec<_>, Vec<_>) = self.statics.iter().unzip();
        let made = self.made.iter().map(|(op, positional, keywords, outputs)| {
            let positional = syn::Index::from(*positional);
            let outputs = match outputs.map(syn::Index::from) {
                Some(count) => quote!(__private::Some(#count)),
                None => quote!(__private::None),
            };
            quote! {
                __private::Called { op: #op, positional: #positional, keywords: &[#(#keywords),*], outputs: #outputs }
            }
        });
        quote! {
            #(static #statics: __private::OpName = __private::OpName::new(#names);)*
            __private::inventory::submit! {
                __private::CallsEntry {
                    caller: #caller,
                    location: __private::Location { file: __private::Cow::Borrowed(::core::file!()), line: ::core::line!() },
                    calls: &[#(#made),*],
                }
            }
        }
    }
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
