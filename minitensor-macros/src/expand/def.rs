//! The static `OpDef`.

use proc_macro2::TokenStream;
use quote::format_ident;
use syn::Ident;

use super::{attr, core};
use crate::ast::{Arity, Attribute, Axis, Elem, Level, Op, Role, text};
use crate::dtype;
use crate::hygiene::quote;
use crate::shape::{Arithmetic, Dim, Dims, NamedDims, Predicate, Shape};

pub fn def(op: &Op, name: &Ident, body: &TokenStream, backward: &TokenStream) -> TokenStream {
    let (op_name, doc, since) = (borrowed(&op.name), borrowed(&op.doc), syn::Index::from(op.since as usize));
    let aliases = list(op.aliases.iter().map(|a| borrowed(a)));
    let inputs = list(inputs(op));
    let attrs = list(attrs(op));
    let outputs = list(outputs(op));
    let generics = list(op.generics.iter().map(|g| {
        let (name, dtypes) = (borrowed(&text(&g.ident)), dtype::set(g.dtypes));
        quote!(__rt::Generic { name: #name, dtypes: #dtypes })
    }));
    let shape = shape(op);
    let predicates = list(op.predicates.iter().map(|p| predicate(op, p)));
    let axis = match &op.axis {
        None => quote!(__rt::None),
        Some(axis) => {
            let at = syn::Index::from(op.attrs.len());
            let next = syn::Index::from(op.attrs.len() + 1);
            let keepdims = if axis.keepdims { quote!(__rt::Some(#next)) } else { quote!(__rt::None) };
            let many = axis.default.is_none();
            quote!(__rt::Some(__rt::Axis { attr: #at, keepdims: #keepdims, many: #many }))
        }
    };
    quote! {
        static #name: __rt::OpDef = __rt::OpDef {
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
            body: #body,
            backward: #backward,
            since: #since,
            location: __rt::Location { file: __rt::Cow::Borrowed(::core::file!()), line: ::core::line!() },
        };
    }
}

/// A text that lives in the program.
pub fn borrowed(text: &str) -> TokenStream {
    quote!(__rt::Cow::Borrowed(#text))
}

fn list(items: impl IntoIterator<Item = TokenStream>) -> TokenStream {
    let items = items.into_iter();
    quote!(__rt::Cow::Borrowed(&[#(#items),*]))
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
            __rt::Input { name: #name, arity: __rt::Arity::#arity, dtype: #dtype, mutated: #mutated, core: #core }
        }
    });
    each.collect()
}

fn attrs(op: &Op) -> Vec<TokenStream> {
    let entry = |name: &str, kind, optional: bool, default| {
        let name = borrowed(name);
        quote!(__rt::Attribute { name: #name, kind: __rt::AttrKind::#kind, optional: #optional, default: #default })
    };
    let own = op.attrs.iter().map(|a: &Attribute| entry(&text(&a.ident), attr::kind(a), a.optional, attr::default(a)));
    let mut attrs: Vec<_> = own.collect();
    if let Some(Axis { default, keepdims }) = &op.axis {
        attrs.push(match default {
            Some(axis) => {
                let axis = proc_macro2::Literal::i64_unsuffixed(*axis);
                entry("axis", quote!(Int), false, quote!(__rt::Some(__rt::Attr::Int(#axis))))
            }
            None => entry("axis", quote!(Ints), true, quote!(__rt::Some(__rt::Attr::None))),
        });
        if *keepdims {
            attrs.push(entry("keepdims", quote!(Bool), false, quote!(__rt::Some(__rt::Attr::Bool(false)))));
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
                let i = syn::Index::from(i);
                quote!(Mutates(#i))
            }
        };
        quote!(__rt::Output { name: #name, dtype: #dtype, role: __rt::Role::#role, core: #core })
    });
    each.collect()
}

fn rule(elem: Elem) -> TokenStream {
    match elem {
        Elem::Generic(i) => {
            let i = syn::Index::from(i);
            quote!(__rt::DTypeRule::Generic(#i))
        }
        Elem::Mask(_) => quote!(__rt::DTypeRule::Fixed(__rt::DType::Bool)),
        Elem::Fixed(dtype) => {
            let dtype = dtype::tokens(dtype);
            quote!(__rt::DTypeRule::Fixed(#dtype))
        }
        Elem::Attr(i) => {
            let i = syn::Index::from(i);
            quote!(__rt::DTypeRule::Attr(#i))
        }
        Elem::Any => quote!(__rt::DTypeRule::Any),
    }
}

// Shapes.

fn shape(op: &Op) -> TokenStream {
    match (&op.shape, op.level) {
        (Some(shape), _) => core_shapes(op, shape),
        (None, Level::Element | Level::Row) => quote!(__rt::ShapeRule::Broadcast),
        (None, _) => quote!(__rt::ShapeRule::Traced),
    }
}

fn core_shapes(op: &Op, shape: &Shape) -> TokenStream {
    let inputs = list(op.inputs.iter().filter_map(|i| Some(dims(op, &shape.input(&i.ident)?.dims))));
    // In the order of the op's outputs, in which saved ones are last.
    let outputs = list(op.outputs.iter().enumerate().map(|(i, output)| {
        let named = shape.outputs.iter().find(|o: &&NamedDims| o.name.as_ref() == Some(&output.ident));
        dims(op, &named.unwrap_or_else(|| &shape.outputs[i.min(shape.outputs.len() - 1)]).dims)
    }));
    let text = borrowed(&shape.to_string());
    quote! {
        __rt::ShapeRule::Core(__rt::CoreShapes { inputs: #inputs, outputs: #outputs, text: #text })
    }
}

fn dims(op: &Op, dims: &Dims) -> TokenStream {
    let batch = dims.batch;
    let core = list(dims.core.iter().map(|d| dim(op, d)));
    quote!(__rt::Dims { batch: #batch, core: #core })
}

fn dim(op: &Op, value: &Dim) -> TokenStream {
    match value {
        Dim::Name(name) => match op.attrs.iter().position(|a| a.ident == *name) {
            Some(i) => {
                let i = syn::Index::from(i);
                quote!(__rt::Dim::Attr(#i))
            }
            None => {
                let name = borrowed(&text(name));
                quote!(__rt::Dim::Name(#name))
            }
        },
        Dim::Int(value) => {
            let value = proc_macro2::Literal::i64_unsuffixed(*value);
            quote!(__rt::Dim::Int(#value))
        }
        Dim::Float(value) => {
            let value = proc_macro2::Literal::f64_unsuffixed(*value);
            quote!(__rt::Dim::Float(#value))
        }
        Dim::Op(op_, sides) => {
            let sign = format_ident!(
                "{}",
                match op_ {
                    Arithmetic::Add => "Add",
                    Arithmetic::Sub => "Sub",
                    Arithmetic::Mul => "Mul",
                    Arithmetic::Div => "Div",
                }
            );
            let sides = list([dim(op, &sides.0), dim(op, &sides.1)]);
            quote!(__rt::Dim::Op(__rt::Arithmetic::#sign, #sides))
        }
    }
}

fn predicate(op: &Op, predicate: &Predicate) -> TokenStream {
    let (left, right) = (dim(op, &predicate.left), dim(op, &predicate.right));
    let relation = format_ident!("{}", predicate.relation);
    let text = borrowed(&predicate.to_string());
    quote!(__rt::Predicate { left: #left, relation: __rt::Relation::#relation, right: #right, text: #text })
}
