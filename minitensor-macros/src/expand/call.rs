//! `swish::call(&x)`: the op as an associated function.

use proc_macro2::TokenStream;
use quote::format_ident;
use syn::{Ident, parse_quote};

use super::{MOST_OUTPUTS, attr};
use crate::ast::{Arity, AttrKind, Attribute, Axis, Op, Returns};
use crate::hygiene::{local, quote};

/// Calls the op `__DEF` under the given name.
pub fn call(op: &Op, name: &Ident) -> TokenStream {
    let count = op.returned().count();
    let (ty, unpack) = match count {
        0 => (quote!(()), None),
        _ if op.returns == Returns::List || count > MOST_OUTPUTS => {
            (quote!(__private::Vec<__private::Tensor>), Some(quote!(outputs.into_vec())))
        }
        1 => (quote!(__private::Tensor), Some(quote!(outputs.single()))),
        n => {
            let each = std::iter::repeat_n(quote!(__private::Tensor), n);
            let names: Vec<Ident> = (0..n).map(|k| local("output", k)).collect();
            let unpack = quote!({
                let [#(#names),*] = outputs.array();
                (#(#names),*)
            });
            (quote!((#(#each),*)), Some(unpack))
        }
    };
    function(op, name, &quote!(__DEF), "Calls the op on tensors.", &ty, unpack)
}

/// Calls the op `__IN_PLACE`.
pub fn call_in_place(op: &Op) -> TokenStream {
    let doc = "Calls the op on tensors, and writes to the first.";
    function(op, &format_ident!("call_"), &quote!(__IN_PLACE), doc, &quote!(()), None)
}

fn function(
    op: &Op,
    name: &Ident,
    def: &TokenStream,
    doc: &str,
    ty: &TokenStream,
    unpack: Option<TokenStream>,
) -> TokenStream {
    let attributes = attributes(op);
    let tensors = op.inputs.iter().map(|input| {
        let ident = &input.ident;
        match input.arity {
            Arity::One => quote!(#ident: &__private::Tensor),
            Arity::Optional => quote!(#ident: __private::Option<&__private::Tensor>),
            Arity::Variadic => quote!(#ident: &[&__private::Tensor]),
        }
    });
    let given = in_order(&attributes, op.attrs.len()).into_iter().map(|a| {
        let (ident, ty) = (&a.ident, attr::parameter_type(a));
        quote!(#ident: #ty)
    });
    let params = tensors.chain(given);
    let attrs = attributes.iter().map(attr::write);
    let (ready, inputs) = arguments(op);
    let result = match unpack {
        Some(unpack) => quote!(__private::Ok(#unpack)),
        None => quote!(__private::Ok(())),
    };
    let outputs = if op.returned().count() == 0 { quote!(_outputs) } else { quote!(outputs) };
    quote! {
        #[doc = #doc]
        #[allow(clippy::too_many_arguments)]
        pub fn #name(#(#params),*) -> __private::Result<#ty> {
            #ready
            let #outputs = __private::dispatch(&__private::OpRef::Static(&#def), #inputs, &[#(#attrs),*])?;
            #result
        }
    }
}

/// The inputs as a slice of `Arg`, and the statements that must precede it.
fn arguments(op: &Op) -> (TokenStream, TokenStream) {
    let one = op.inputs.iter().filter(|i| i.arity != Arity::Variadic).map(|i| {
        let ident = &i.ident;
        quote!(<__private::Arg<'_> as __private::From<_>>::from(#ident))
    });
    match op.inputs.iter().find(|i| i.arity == Arity::Variadic) {
        None => (TokenStream::new(), quote!(&[#(#one),*])),
        Some(many) => {
            let many = &many.ident;
            let ready = quote! {
                let mut inputs: __private::Vec<__private::Arg<'_>> = __private::vec![#(#one),*];
                for tensor in #many {
                    inputs.push(<__private::Arg<'_> as __private::From<_>>::from(*tensor));
                }
            };
            (ready, quote!(&inputs))
        }
    }
}

/// The attributes as parameters. The first `own` are those of the op. `axis` precedes those that have a default, and a dtype is last.
fn in_order(attributes: &[Attribute], own: usize) -> Vec<&Attribute> {
    let required = attributes[..own].iter().take_while(|a| !a.has_default()).count();
    let mut order: Vec<&Attribute> = attributes.iter().collect();
    if attributes.len() > own {
        order[required..=own].rotate_right(1);
        order.sort_by_key(|a| a.kind == AttrKind::DType && a.optional);
    }
    order
}

/// The attributes of the op, then those of its `axis` clause.
fn attributes(op: &Op) -> Vec<Attribute> {
    let mut all = op.attrs.clone();
    let mut push = |name: &str, ty, kind, optional| {
        all.push(Attribute { ident: Ident::new(name, op.ident().span()), ty, kind, optional, default: None });
    };
    if let Some(Axis { default, keepdims }) = &op.axis {
        match default {
            Some(_) => push("axis", parse_quote!(i64), AttrKind::Int, false),
            None => push("axis", parse_quote!(&[i64]), AttrKind::Ints, true),
        }
        if *keepdims {
            push("keepdims", parse_quote!(bool), AttrKind::Bool, false);
        }
    }
    all
}
