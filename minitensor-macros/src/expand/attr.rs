//! Attributes: their kinds, their defaults, and the code that reads them in a kernel.

use proc_macro2::TokenStream;
use syn::{Expr, ExprCall, ExprLit, Lit, Type};

use crate::ast::{AttrKind, Attribute, text};
use crate::hygiene::quote;

/// The variant of `AttrKind`.
pub fn kind(attr: &Attribute) -> TokenStream {
    match attr.kind {
        AttrKind::Bool => quote!(Bool),
        AttrKind::Int => quote!(Int),
        AttrKind::Size => quote!(Size),
        AttrKind::Float => quote!(Float),
        AttrKind::Str => quote!(Str),
        AttrKind::Enum(_) => {
            let ty = &attr.ty;
            quote!(Enum(<#ty as __rt::AttrEnum>::WORDS))
        }
        AttrKind::Ints => quote!(Ints),
        AttrKind::Floats => quote!(Floats),
        AttrKind::DType => quote!(DType),
    }
}

/// The default as an `Option<Attr>`. An optional attribute defaults to `None`.
pub fn default(attr: &Attribute) -> TokenStream {
    let Some(expr) = &attr.default else {
        return if attr.optional { quote!(__rt::Some(__rt::Attr::None)) } else { quote!(__rt::None) };
    };
    let expr = inside_some(expr);
    if matches!(expr, Expr::Path(path) if path.path.is_ident("None")) {
        return quote!(__rt::Some(__rt::Attr::None));
    }
    let slice = |variant: TokenStream| match expr {
        Expr::Array(_) => quote!(#variant(__rt::Cow::Borrowed(&#expr))),
        _ => quote!(#variant(__rt::Cow::Borrowed(#expr))),
    };
    let value = match attr.kind {
        AttrKind::Bool => quote!(__rt::Attr::Bool(#expr)),
        AttrKind::Int => quote!(__rt::Attr::Int(#expr)),
        AttrKind::Size => quote!(__rt::Attr::Int(#expr as __rt::i64)),
        AttrKind::Float if is_whole(expr) => quote!(__rt::Attr::Float(#expr as __rt::f64)),
        AttrKind::Float => quote!(__rt::Attr::Float(#expr)),
        AttrKind::Str => quote!(__rt::Attr::Str(__rt::Cow::Borrowed(#expr))),
        AttrKind::Enum(_) => {
            let ty = &attr.ty;
            quote!(__rt::Attr::Str(__rt::Cow::Borrowed(<#ty>::__word(#expr))))
        }
        AttrKind::Ints => slice(quote!(__rt::Attr::Ints)),
        AttrKind::Floats => slice(quote!(__rt::Attr::Floats)),
        AttrKind::DType => quote!(__rt::Attr::DType(#expr)),
    };
    quote!(__rt::Some(#value))
}

/// The value of a default. For an optional attribute `Some(v)` and `v` are the same.
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

/// Whether it is an integer such as `1` or `-1`, which is a valid default for a float.
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
        AttrKind::Enum(_) if *optional => absent_or(attrs, i, quote!(__rt::attr_enum::<#ty>(#attrs, #at)?)),
        AttrKind::Enum(_) => quote!(__rt::attr_enum::<#ty>(#attrs, #at)?),
        _ if *optional => quote!(__rt::attr::<__rt::Option<#ty>>(#attrs, #at)?),
        _ => quote!(__rt::attr::<#ty>(#attrs, #at)?),
    }
}

/// As above, but an `f64` becomes an element.
pub fn read_uniform(attr: &Attribute, i: usize, variable: &syn::Ident, attrs: &TokenStream) -> TokenStream {
    let (name, at) = (text(&attr.ident), syn::Index::from(i));
    let read = quote!(__rt::uniform::<#variable>(#attrs, #at, #name)?);
    if attr.optional { absent_or(attrs, i, read) } else { read }
}

fn absent_or(attrs: &TokenStream, i: usize, read: TokenStream) -> TokenStream {
    let at = syn::Index::from(i);
    quote!(match #attrs[#at] {
        __rt::Attr::None => __rt::None,
        _ => __rt::Some(#read),
    })
}

/// The `Attr` of the runtime for a value.
pub fn write(attr: &Attribute) -> TokenStream {
    let ident = &attr.ident;
    let word = quote!(__rt::Attr::Str(__rt::Cow::Borrowed(__rt::AttrEnum::word(#ident))));
    match (attr.kind, attr.optional) {
        (AttrKind::Enum(_), false) => word,
        (AttrKind::Enum(_), true) => quote!(#ident.map_or(__rt::Attr::None, |#ident| #word)),
        _ => quote!(<__rt::Attr as __rt::From<_>>::from(#ident)),
    }
}

/// The type as a parameter.
pub fn parameter_type(attr: &Attribute) -> TokenStream {
    let ty = without_lifetimes(&attr.ty);
    if attr.optional { quote!(__rt::Option<#ty>) } else { quote!(#ty) }
}

/// Replaces `&'a str` by `&str`.
pub fn without_lifetimes(ty: &Type) -> Type {
    let mut ty = ty.clone();
    if let Type::Reference(reference) = &mut ty {
        reference.lifetime = None;
    }
    ty
}
