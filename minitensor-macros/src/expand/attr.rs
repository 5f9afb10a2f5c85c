//! Attributes: their kinds, their defaults, and how a kernel reads them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, ExprCall, ExprLit, Lit, Type};

use crate::ast::{AttrKind, Attribute, text};

/// The variant of `AttrKind`.
pub fn kind(attr: &Attribute) -> TokenStream {
    match attr.kind {
        AttrKind::Bool => quote!(Bool),
        AttrKind::Int => quote!(Int),
        AttrKind::Size => quote!(Size),
        AttrKind::Float => quote!(Float),
        AttrKind::Str => quote!(Str),
        AttrKind::Enum => {
            let ty = &attr.ty;
            quote!(Enum(<#ty as rt::AttrEnum>::WORDS))
        }
        AttrKind::Ints => quote!(Ints),
        AttrKind::Floats => quote!(Floats),
        AttrKind::DType => quote!(DType),
    }
}

/// Its default as an `Option<Attr>`; an optional attribute has `None` for one.
pub fn default(attr: &Attribute) -> TokenStream {
    let Some(expr) = &attr.default else {
        return if attr.optional { quote!(Some(rt::Attr::None)) } else { quote!(None) };
    };
    let expr = inside_some(expr);
    if matches!(expr, Expr::Path(path) if path.path.is_ident("None")) {
        return quote!(Some(rt::Attr::None));
    }
    let slice = |variant: TokenStream| match expr {
        Expr::Array(_) => quote!(#variant(rt::Cow::Borrowed(&#expr))),
        _ => quote!(#variant(rt::Cow::Borrowed(#expr))),
    };
    let value = match attr.kind {
        AttrKind::Bool => quote!(rt::Attr::Bool(#expr)),
        AttrKind::Int => quote!(rt::Attr::Int(#expr)),
        AttrKind::Size => quote!(rt::Attr::Int(#expr as i64)),
        AttrKind::Float if is_whole(expr) => quote!(rt::Attr::Float(#expr as f64)),
        AttrKind::Float => quote!(rt::Attr::Float(#expr)),
        AttrKind::Str => quote!(rt::Attr::Str(rt::Cow::Borrowed(#expr))),
        AttrKind::Enum => {
            let ty = &attr.ty;
            quote!(rt::Attr::Str(rt::Cow::Borrowed(<#ty>::word_const(#expr))))
        }
        AttrKind::Ints => slice(quote!(rt::Attr::Ints)),
        AttrKind::Floats => slice(quote!(rt::Attr::Floats)),
        AttrKind::DType => quote!(rt::Attr::DType(#expr)),
    };
    quote!(Some(#value))
}

/// `Some(v)` and `v` are the same default of an optional attribute.
fn inside_some(expr: &Expr) -> &Expr {
    match expr {
        Expr::Call(ExprCall { func, args, .. })
            if args.len() == 1 && matches!(&**func, Expr::Path(p) if p.path.is_ident("Some")) =>
        {
            &args[0]
        }
        other => other,
    }
}

/// `1`, `-1`: a whole number, which is a fine default for a float.
fn is_whole(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(_), .. }) => true,
        Expr::Unary(unary) => is_whole(&unary.expr),
        _ => false,
    }
}

/// Reads attribute `i` of `attrs`, both expressions of the runtime.
pub fn read(attr: &Attribute, i: usize, attrs: &TokenStream) -> TokenStream {
    let (ty, at) = (without_lifetimes(&attr.ty), syn::Index::from(i));
    let optional = &attr.optional;
    match attr.kind {
        AttrKind::Enum if *optional => absent_or(attrs, i, quote!(rt::attr_enum::<#ty>(#attrs, #at)?)),
        AttrKind::Enum => quote!(rt::attr_enum::<#ty>(#attrs, #at)?),
        _ if *optional => quote!(rt::attr::<Option<#ty>>(#attrs, #at)?),
        _ => quote!(rt::attr::<#ty>(#attrs, #at)?),
    }
}

/// The same where an `f64` becomes an element.
pub fn read_uniform(attr: &Attribute, i: usize, variable: &syn::Ident, attrs: &TokenStream) -> TokenStream {
    let (name, at) = (text(&attr.ident), syn::Index::from(i));
    let read = quote!(rt::uniform::<#variable>(#attrs, #at, #name)?);
    if attr.optional { absent_or(attrs, i, read) } else { read }
}

fn absent_or(attrs: &TokenStream, i: usize, read: TokenStream) -> TokenStream {
    let at = syn::Index::from(i);
    quote!(match #attrs[#at] {
        rt::Attr::None => None,
        _ => Some(#read),
    })
}

/// The runtime's `Attr` of a value.
pub fn write(attr: &Attribute) -> TokenStream {
    let ident = &attr.ident;
    let word = quote!(rt::Attr::Str(rt::Cow::Borrowed(rt::AttrEnum::word(#ident))));
    match (attr.kind, attr.optional) {
        (AttrKind::Enum, false) => word,
        (AttrKind::Enum, true) => quote!(#ident.map_or(rt::Attr::None, |#ident| #word)),
        _ => quote!(rt::Attr::from(#ident)),
    }
}

/// Its type as a parameter.
pub fn parameter_type(attr: &Attribute) -> TokenStream {
    let ty = without_lifetimes(&attr.ty);
    if attr.optional { quote!(Option<#ty>) } else { quote!(#ty) }
}

/// `&'a str` as `&str`.
pub fn without_lifetimes(ty: &Type) -> Type {
    let mut ty = ty.clone();
    if let Type::Reference(reference) = &mut ty {
        reference.lifetime = None;
    }
    ty
}
