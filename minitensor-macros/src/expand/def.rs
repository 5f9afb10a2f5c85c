//! The static `OpDef`.

use minitensor_schema::shape::{Dim, Dims, Predicate};
use minitensor_schema::{Property, check};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident};
use syn::Ident;

use super::{attr, core};
use crate::ast::{Arity, Attribute, Axis, Elem, Level, Op, Role, text};
use crate::dtype;
use crate::hygiene::quote;

pub fn def(op: &Op, name: &Ident, body: &TokenStream, backward: &TokenStream) -> TokenStream {
    let (op_name, doc, since) = (borrowed(&op.name), borrowed(&op.doc), syn::Index::from(op.since as usize));
    let aliases = list(op.aliases.iter().map(|a| borrowed(a)));
    let inputs = list(inputs(op));
    let attrs = list(attrs(op));
    let outputs = list(outputs(op));
    let generics = list(op.generics.iter().map(|g| {
        let (name, dtypes) = (borrowed(&text(&g.ident)), dtype::set(g.dtypes));
        quote!(__private::Generic { name: #name, dtypes: #dtypes })
    }));
    let shape = shape(op);
    let signature = op.signature();
    let conditions = op.predicates.iter().flat_map(|clause| clause.iter());
    let predicates = list(conditions.map(|p| predicate(&Predicate::of(&signature.view(), p))));
    let axis = match &op.axis {
        None => quote!(__private::None),
        Some(axis) => {
            let at = syn::Index::from(op.attrs.len());
            let next = syn::Index::from(op.attrs.len() + 1);
            let keepdims = if axis.keepdims { quote!(__private::Some(#next)) } else { quote!(__private::None) };
            let many = axis.default.is_none();
            quote!(__private::Some(__private::Axis { attr: #at, keepdims: #keepdims, many: #many }))
        }
    };
    let combine = match op.combine {
        None => quote!(__private::None),
        Some(combine) => {
            let variant = format_ident!("{combine:?}");
            quote!(__private::Some(__private::Combine::#variant))
        }
    };
    let properties = op.properties.iter().filter_map(|clause| op.properties_of(clause).ok()).flatten();
    let properties = list(properties.map(|p| property(&p)));
    quote! {
        static #name: __private::OpDef = __private::OpDef {
            name: #op_name,
            aliases: #aliases,
            doc: #doc,
            inputs: #inputs,
            attrs: #attrs,
            outputs: #outputs,
            generics: #generics,
            shape: #shape,
            predicates: #predicates,
            axis: #axis,
            combine: #combine,
            properties: #properties,
            body: #body,
            backward: #backward,
            kernels: __private::KernelTable::new(),
            since: #since,
            location: __private::Location { file: __private::Cow::Borrowed(::core::file!()), line: ::core::line!() },
        };
    }
}

/// A text with static lifetime.
pub fn borrowed(text: &str) -> TokenStream {
    quote!(__private::Cow::Borrowed(#text))
}

fn list(items: impl IntoIterator<Item = TokenStream>) -> TokenStream {
    let items = items.into_iter();
    quote!(__private::Cow::Borrowed(&[#(#items),*]))
}

fn inputs(op: &Op) -> Vec<TokenStream> {
    let each = op.inputs.iter().map(|input| {
        let (name, dtype, core, mutated) =
            (borrowed(&text(&input.ident)), rule(input.elem), core(input.core), input.mutated);
        let arity = match input.arity {
            Arity::One => quote!(One),
            Arity::Optional => quote!(Optional),
            Arity::Variadic => quote!(Variadic),
        };
        quote! {
            __private::Input { name: #name, arity: __private::Arity::#arity, dtype: #dtype, mutated: #mutated, core: #core }
        }
    });
    each.collect()
}

fn attrs(op: &Op) -> Vec<TokenStream> {
    let entry = |name: &str, kind, optional: bool, default| {
        let name = borrowed(name);
        quote!(__private::Attribute { name: #name, kind: __private::AttrKind::#kind, optional: #optional, default: #default })
    };
    let own =
        op.attrs.iter().map(|a: &Attribute| entry(&text(&a.ident), attr::kind(a), a.admits_none(), attr::default(a)));
    let mut attrs: Vec<_> = own.collect();
    if let Some(Axis { default, keepdims }) = &op.axis {
        attrs.push(match default {
            Some(axis) => {
                let axis = proc_macro2::Literal::i64_unsuffixed(*axis);
                entry("axis", quote!(Int), false, quote!(__private::Some(__private::Attr::Int(#axis))))
            }
            None => entry("axis", quote!(Ints), true, quote!(__private::Some(__private::Attr::None))),
        });
        if *keepdims {
            attrs.push(entry("keepdims", quote!(Bool), false, quote!(__private::Some(__private::Attr::Bool(false)))));
        }
    }
    attrs
}

fn outputs(op: &Op) -> Vec<TokenStream> {
    let each = op.outputs.iter().map(|output| {
        let (name, dtype, core) = (borrowed(&text(&output.ident)), rule(output.elem), core(output.core));
        let role = match output.role {
            Role::Returned => quote!(Returned),
            Role::Saved => quote!(Saved),
            Role::Mutates(i) => {
                let i = syn::Index::from(usize::from(i));
                quote!(Mutates(#i))
            }
        };
        quote!(__private::Output { name: #name, dtype: #dtype, role: __private::Role::#role, core: #core })
    });
    each.collect()
}

fn rule(elem: Elem) -> TokenStream {
    match elem {
        Elem::Generic(i) => {
            let i = syn::Index::from(i);
            quote!(__private::DTypeRule::Generic(#i))
        }
        Elem::Mask(_) => quote!(__private::DTypeRule::Fixed(__private::DType::Bool)),
        Elem::Fixed(dtype) => {
            let dtype = dtype::tokens(dtype);
            quote!(__private::DTypeRule::Fixed(#dtype))
        }
        Elem::Attr(i) => {
            let i = syn::Index::from(i);
            quote!(__private::DTypeRule::Attr(#i))
        }
        Elem::Any => quote!(__private::DTypeRule::Any),
    }
}

fn property(property: &Property) -> TokenStream {
    match property {
        Property::Linear(inputs) => {
            let inputs = list(inputs.iter().map(|i| syn::Index::from(usize::from(*i)).to_token_stream()));
            quote!(__private::Property::Linear(#inputs))
        }
        Property::Symmetric => quote!(__private::Property::Symmetric),
        Property::Replaces(text) => {
            let text = borrowed(text);
            quote!(__private::Property::Replaces(#text))
        }
    }
}

// Shapes.

fn shape(op: &Op) -> TokenStream {
    match (&op.shape, op.level) {
        (Some(shape), _) => {
            let shapes = check::core_shapes(&op.signature().view(), shape);
            let (inputs, outputs) = (list(shapes.inputs.iter().map(dims)), list(shapes.outputs.iter().map(dims)));
            let text = borrowed(&shapes.text);
            quote! {
                __private::ShapeRule::Core(__private::CoreShapes { inputs: #inputs, outputs: #outputs, text: #text })
            }
        }
        (None, Level::Element | Level::Row) => quote!(__private::ShapeRule::Broadcast),
        (None, _) => quote!(__private::ShapeRule::Inferred),
    }
}

fn dims(dims: &Dims) -> TokenStream {
    let batch = dims.batch;
    let core = list(dims.core.iter().map(dim));
    quote!(__private::Dims { batch: #batch, core: #core })
}

fn dim(value: &Dim) -> TokenStream {
    match value {
        Dim::Attr(i) => {
            let i = syn::Index::from(usize::from(*i));
            quote!(__private::Dim::Attr(#i))
        }
        Dim::Name(name) => {
            let name = borrowed(name);
            quote!(__private::Dim::Name(#name))
        }
        Dim::Int(value) => {
            let value = proc_macro2::Literal::i64_unsuffixed(*value);
            quote!(__private::Dim::Int(#value))
        }
        Dim::Float(value) => {
            let value = proc_macro2::Literal::f64_unsuffixed(*value);
            quote!(__private::Dim::Float(#value))
        }
        Dim::Op(op, sides) => {
            let op = format_ident!("{}", format!("{op:?}"));
            let sides = list(sides.iter().map(dim));
            quote!(__private::Dim::Op(__private::Arithmetic::#op, #sides))
        }
    }
}

fn predicate(predicate: &Predicate) -> TokenStream {
    let (left, right) = (dim(&predicate.left), dim(&predicate.right));
    let relation = format_ident!("{}", format!("{:?}", predicate.relation));
    let text = borrowed(&predicate.text);
    quote!(__private::Predicate { left: #left, relation: __private::Relation::#relation, right: #right, text: #text })
}
