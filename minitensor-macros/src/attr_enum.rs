//! `#[derive(AttrEnum)]`: the variants of an enum as the words of an attribute.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Data, DeriveInput, Fields, Ident};

use crate::ast::text;
use crate::diag::{Diag, messages};
use crate::hygiene::quote;

pub fn expand(input: &DeriveInput, runtime: &TokenStream) -> TokenStream {
    let mut diag = Diag::default();
    let variants = variants(input, &mut diag);
    if !diag.is_empty() {
        return diag.finish();
    }
    diag.finish();
    let ident = &input.ident;
    let words: Vec<String> = variants.iter().map(|v| snake_case(&text(v))).collect();
    quote! {
        impl #runtime::AttrEnum for #ident {
            const WORDS: &'static [&'static #runtime::str] = &[#(#words),*];
            const VARIANTS: &'static [Self] = &[#(#ident::#variants),*];
            fn word(self) -> &'static #runtime::str {
                self.__word()
            }
        }
        impl #runtime::AsValue for #ident {
            fn as_value(&self) -> #runtime::Value<'_> {
                #runtime::Value::Attr(#runtime::From::from(self.__word()))
            }
        }
        impl #ident {
            #[doc(hidden)]
            pub const fn __word(self) -> &'static #runtime::str {
                match self { #(#ident::#variants => #words,)* }
            }
        }
    }
}

fn variants<'a>(input: &'a DeriveInput, diag: &mut Diag) -> Vec<&'a Ident> {
    let Data::Enum(data) = &input.data else {
        diag.error(&input.ident, &messages::ENUM_ONLY, &[]);
        return vec![];
    };
    if !input.generics.params.is_empty() {
        diag.error(&input.generics, &messages::ENUM_GENERIC, &[]);
    }
    if data.variants.is_empty() {
        diag.error(&input.ident, &messages::ENUM_EMPTY, &[]);
    }
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            diag.error(variant.to_token_stream(), &messages::ENUM_FIELDS, &[&variant.ident]);
        }
    }
    data.variants.iter().map(|v| &v.ident).collect()
}

/// `HalfPixel` as `half_pixel`.
fn snake_case(name: &str) -> String {
    let mut word = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            word.push('_');
        }
        word.extend(c.to_lowercase());
    }
    word
}
