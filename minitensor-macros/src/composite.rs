//! Parts of a composite op that a definition expands to, besides an op in the namespace `given`: that of computed
//! [numbers](crate::drawn), and that of [complex](crate::complex) tensors.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident};
use syn::{Ident, ItemFn};

use crate::ast::{Arity, Attribute, Elem, Op, text};
use crate::hygiene::quote;

/// The name of the other op.
pub fn name_of_given(name: &str) -> String {
    format!("given::{}", name.replace("::", "_"))
}

/// The struct of the other op.
pub fn type_of_given(function: &Ident) -> Ident {
    format_ident!("__{}_given", text(function))
}

/// The function of the composite op.
pub fn function(function: &Ident) -> Ident {
    format_ident!("__{}_op", text(function))
}

/// A tensor among its parameters.
pub fn tensor(ident: &Ident, arity: Arity, runtime: &TokenStream) -> TokenStream {
    match arity {
        Arity::Optional => quote!(#ident: ::core::option::Option<&#runtime::Tensor>),
        _ => quote!(#ident: &#runtime::Tensor),
    }
}

/// An attribute among its parameters.
pub fn attribute(attr: &Attribute) -> TokenStream {
    let (ident, ty) = (&attr.ident, &attr.ty);
    let default = attr.default.as_ref().map(|default| quote!(#[default = #default]));
    match attr.optional {
        true => quote!(#default #ident: ::core::option::Option<#ty>),
        false => quote!(#default #ident: #ty),
    }
}

/// A dtype of the other op, in a `dtype` clause.
pub fn dtype(op: &Op, elem: Elem) -> TokenStream {
    match elem {
        Elem::Generic(i) => op.generics[i].ident.to_token_stream(),
        Elem::Fixed(dtype) => format_ident!("{}", dtype.rust_name()).to_token_stream(),
        _ => quote!(bool),
    }
}

/// The type of this number of results.
pub fn returned(count: usize, runtime: &TokenStream) -> TokenStream {
    match count {
        1 => quote!(#runtime::Tensor),
        n => {
            let each = std::iter::repeat_n(quote!(#runtime::Tensor), n);
            quote!((#(#each),*))
        }
    }
}

/// The documentation of the definition.
pub fn docs(function: &ItemFn) -> impl Iterator<Item = &syn::Attribute> {
    function.attrs.iter().filter(|attr| attr.path().is_ident("doc"))
}
