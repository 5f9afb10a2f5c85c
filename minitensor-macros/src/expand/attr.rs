//! Attributes: their kinds, their defaults, and the code that reads them in a kernel.

use proc_macro2::{Literal, TokenStream};
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
            quote!(Enum(<#ty as __private::AttrEnum>::WORDS))
        }
        AttrKind::Ints => quote!(Ints),
        AttrKind::Floats => quote!(Floats),
        AttrKind::DType => quote!(DType),
        AttrKind::Tuned(candidates) => {
            let candidates = candidates.iter().map(|v| Literal::i64_unsuffixed(*v));
            quote!(Tuned(&[#(#candidates),*]))
        }
    }
}

/// The default as an `Option<Attr>`. An attribute that may be absent defaults to `None`.
pub fn default(attr: &Attribute) -> TokenStream {
    let Some(expr) = &attr.default else {
        let absent = quote!(__private::Some(__private::Attr::None));
        return if attr.admits_none() { absent } else { quote!(__private::None) };
    };
    let expr = inside_some(expr);
    if matches!(expr, Expr::Path(path) if path.path.is_ident("None")) {
        return quote!(__private::Some(__private::Attr::None));
    }
    let slice = |variant: TokenStream| match expr {
        Expr::Array(_) => quote!(#variant(__private::Cow::Borrowed(&#expr))),
        _ => quote!(#variant(__private::Cow::Borrowed(#expr))),
    };
    let value = match attr.kind {
        AttrKind::Bool => quote!(__private::Attr::Bool(#expr)),
        AttrKind::Int | AttrKind::Tuned(_) => quote!(__private::Attr::Int(#expr)),
        AttrKind::Size => quote!(__private::Attr::Int(#expr as __private::i64)),
        AttrKind::Float if is_whole(expr) => quote!(__private::Attr::Float(#expr as __private::f64)),
        AttrKind::Float => quote!(__private::Attr::Float(#expr)),
        AttrKind::Str => quote!(__private::Attr::Str(__private::Cow::Borrowed(#expr))),
        AttrKind::Enum(_) => {
            let ty = &attr.ty;
            quote!(__private::Attr::Str(__private::Cow::Borrowed(<#ty>::__word(#expr))))
        }
        AttrKind::Ints => slice(quote!(__private::Attr::Ints)),
        AttrKind::Floats => slice(quote!(__private::Attr::Floats)),
        AttrKind::DType => quote!(__private::Attr::DType(#expr)),
    };
    quote!(__private::Some(#value))
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
        AttrKind::Enum(_) => {
            let read = enum_call(&ty, &quote!(read(#attrs, #at)?));
            if *optional { absent_or(attrs, i, read) } else { read }
        }
        AttrKind::Tuned(candidates) => {
            let first = candidates.first().map(|v| Literal::i64_unsuffixed(*v));
            quote!(__private::tuned::<#ty>(#attrs, #at, #first)?)
        }
        _ if *optional => quote!(__private::attr::<__private::Option<#ty>>(#attrs, #at)?),
        _ => quote!(__private::attr::<#ty>(#attrs, #at)?),
    }
}

/// As above, but an `f64` becomes an element.
pub fn read_uniform(attr: &Attribute, i: usize, variable: &syn::Ident, attrs: &TokenStream) -> TokenStream {
    let (name, at) = (text(&attr.ident), syn::Index::from(i));
    let read = quote!(__private::uniform::<#variable>(#attrs, #at, #name)?);
    if attr.optional { absent_or(attrs, i, read) } else { read }
}

/// Calls a method of `EnumOf`.
fn enum_call(ty: &Type, call: &TokenStream) -> TokenStream {
    quote!({
        #[allow(unused_imports)]
        use __private::{KnownEnum as _, UnknownEnum as _};
        (&__private::EnumOf::<#ty>::NEW).#call
    })
}

fn absent_or(attrs: &TokenStream, i: usize, read: TokenStream) -> TokenStream {
    let at = syn::Index::from(i);
    quote!(match #attrs[#at] {
        __private::Attr::None => __private::None,
        _ => __private::Some(#read),
    })
}

/// The `Attr` of the runtime for a value.
pub fn write(attr: &Attribute) -> TokenStream {
    let ident = &attr.ident;
    let word = enum_call(&attr.ty, &quote!(word(#ident)));
    let word = quote!(__private::Attr::Str(__private::Cow::Borrowed(#word)));
    match (attr.kind, attr.optional) {
        (AttrKind::Enum(_), false) => word,
        (AttrKind::Enum(_), true) => quote!(#ident.map_or(__private::Attr::None, |#ident| #word)),
        _ => quote!(<__private::Attr as __private::From<_>>::from(#ident)),
    }
}

/// The type as a parameter.
pub fn parameter_type(attr: &Attribute) -> TokenStream {
    let ty = without_lifetimes(&attr.ty);
    if attr.admits_none() { quote!(__private::Option<#ty>) } else { quote!(#ty) }
}

/// Replaces `&'a str` by `&str`.
pub fn without_lifetimes(ty: &Type) -> Type {
    let mut ty = ty.clone();
    if let Type::Reference(reference) = &mut ty {
        reference.lifetime = None;
    }
    ty
}
