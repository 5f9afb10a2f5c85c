//! The signature of a helper of ops. Any parameter and any return type is allowed; those that hold elements are recognized.

use proc_macro2::TokenStream;
use syn::parse::{ParseStream, Parser};
use syn::{FnArg, GenericParam, ItemFn, Pat, Path, PathArguments, ReturnType, Type, TypeParamBound, WherePredicate};

use super::signature::param::{is_bound, tensor, variable};
use super::signature::{ident_type, known_bound, option, result};
use crate::ast::{Arity, Core, Elem, Generic, Level, spelling};
use crate::body::flow::is_integer;
use crate::body::{Certain, Head, ValueKind, add_bits, add_complex, holds};
use crate::diag::{Diag, list, messages};
use crate::dtype::Bound;
use crate::lower::tensor::takes_tensor;

/// The level of a helper.
pub enum Helper {
    /// Elements, rows or cells.
    Numbers(Head),
    /// Whole tensors.
    Tensors,
}

/// Reads the argument of the attribute, which is the path of minitensor, and the signature.
pub fn head(attr: TokenStream, function: &ItemFn, diag: &mut Diag) -> (Option<Path>, Option<Helper>) {
    let path = match runtime.parse2(attr.clone()) {
        Ok(path) => path,
        Err(_) => {
            diag.error(attr, &messages::HELPER_CLAUSE, &[]);
            return (None, None);
        }
    };
    if let Some(word) = function.sig.constness {
        diag.error(word, &messages::HELPER_CONST, &[]);
    }
    let types =
        function.sig.inputs.iter().filter_map(|arg| if let FnArg::Typed(arg) = arg { Some(&*arg.ty) } else { None });
    for ty in types.filter(|ty| matches!(ty, Type::ImplTrait(i) if i.bounds.iter().any(is_bound))) {
        diag.error(ty, &messages::IMPL_TRAIT, &[&spelling(ty)]);
    }
    if !diag.is_empty() {
        return (path, None);
    }
    let (generics, is_machine) = variables(function);
    if generics.is_empty() && takes_tensor(function) {
        return (path, Some(Helper::Tensors));
    }
    if generics.is_empty() {
        let (name, names) = (&function.sig.ident, list(&Bound::names()));
        diag.error(name, &messages::HELPER_VARIABLE, &[name, name, &names]);
        return (path, None);
    }
    (path, Some(Helper::Numbers(of(function, generics, is_machine))))
}

/// Nothing, or `crate = path`.
fn runtime(input: ParseStream) -> syn::Result<Option<Path>> {
    if input.is_empty() {
        return Ok(None);
    }
    input.parse::<syn::Token![crate]>()?;
    input.parse::<syn::Token![=]>()?;
    input.call(Path::parse_mod_style).map(Some)
}

/// The dtype variables, and whether one is bounded by `Machine`.
pub fn variables(function: &ItemFn) -> (Vec<Generic>, bool) {
    let (mut generics, mut is_machine) = (vec![], false);
    for param in &function.sig.generics.params {
        let GenericParam::Type(param) = param else { continue };
        let predicates = function.sig.generics.where_clause.iter().flat_map(|w| &w.predicates);
        let elsewhere = predicates.filter_map(|p| match p {
            WherePredicate::Type(p) if p.bounded_ty == ident_type(&param.ident) => Some(&p.bounds),
            _ => None,
        });
        let bounds = std::iter::once(&param.bounds).chain(elsewhere).flatten();
        let mut known = None;
        for bound in bounds {
            let TypeParamBound::Trait(bound) = bound else { continue };
            is_machine |= bound.path.segments.last().is_some_and(|s| s.ident == "Machine");
            known = known.or(known_bound(&bound.path));
        }
        if let Some(bound) = known {
            generics.push(Generic { ident: param.ident.clone(), bound, dtypes: bound.dtypes });
        }
    }
    (generics, is_machine)
}

fn of(function: &ItemFn, mut generics: Vec<Generic>, is_machine: bool) -> Head {
    let complex = if is_machine { None } else { add_complex(function, &mut generics) };
    let bits = if is_machine { None } else { add_bits(function, &mut generics) };
    let params: Vec<_> = function
        .sig
        .inputs
        .iter()
        .filter_map(|arg| match arg {
            FnArg::Typed(arg) => Some((&*arg.pat, &*arg.ty)),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let is_cell = |ty: &Type| tensor(ty, &generics, false).is_some_and(|t| t.level == Some(Level::Cell));
    let level = match is_machine || params.iter().any(|(_, ty)| is_cell(ty)) {
        true => Level::Cell,
        false if generics.iter().any(|g| g.bound.is_of_rows()) => Level::Row,
        false => Level::Element,
    };
    let named = params.iter().filter_map(|(pattern, ty)| match pattern {
        Pat::Ident(pattern) => Some((pattern.ident.clone(), kind(ty, level, &generics))),
        _ => None,
    });
    let known = params.iter().filter_map(|(pattern, ty)| match pattern {
        Pat::Ident(pattern) => Some((pattern.ident.clone(), known(ty, level, &generics)?)),
        _ => None,
    });
    let integers = params.iter().filter_map(|(pattern, ty)| match pattern {
        Pat::Ident(pattern) if is_integer(ty) => Some(pattern.ident.clone()),
        _ => None,
    });
    let (params, certain, integers) = (named.collect(), known.collect(), integers.collect());
    let returned = match &function.sig.output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) if level == Level::Cell => returned(result(ty).unwrap_or(ty), &generics),
        ReturnType::Type(_, ty) => returned(ty, &generics),
    };
    Head { generics, level, params, certain, integers, dims: vec![], returned, complex, bits }
}

/// The kind of a parameter.
fn kind(ty: &Type, level: Level, generics: &[Generic]) -> ValueKind {
    let is_machine = level == Level::Cell;
    let optional = option(ty);
    let elem = tensor(optional.unwrap_or(ty), generics, false);
    let spelled = spelling(optional.unwrap_or(ty));
    match (elem.map(|t| (t.elem, t.core, t.arity)), optional) {
        (Some((Elem::Generic(i), Core::Slice | Core::View(_), Arity::One)), None) => ValueKind::Many(Some(i)),
        (Some((Elem::Generic(i), Core::Scalar, _)), None) => ValueKind::Data(Some(i)),
        (Some((Elem::Generic(i), Core::Scalar, _)), Some(_)) => ValueKind::Option(Some(i)),
        (Some((Elem::Mask(i), ..)), None) if !is_machine => ValueKind::Data(Some(i)),
        (Some((Elem::Mask(i), ..)), Some(_)) if !is_machine => ValueKind::Option(Some(i)),
        (Some(_), _) if !is_machine => ValueKind::Data(None),
        _ if spelled == "bool" && optional.is_none() => ValueKind::Flag,
        _ if spelled == "f64" && is_machine && optional.is_none() => ValueKind::Float,
        _ if spelled == "&[f64]" && is_machine && optional.is_none() => ValueKind::Floats,
        _ if spelled == "f64" && !is_machine && optional.is_none() => ValueKind::Data(Some(0)),
        _ if spelled == "f64" && !is_machine => ValueKind::Option(Some(0)),
        _ if !is_machine && called(ty, generics).is_some() => ValueKind::Data(called(ty, generics)),
        // For example, an array or a tuple of elements. A function is known, but not what it returns.
        _ if !is_machine && !is_function(ty) && holds(ty, generics) => ValueKind::Data(None),
        _ => ValueKind::Static,
    }
}

/// The type of a parameter of elements.
fn known(ty: &Type, level: Level, generics: &[Generic]) -> Option<Certain> {
    if level == Level::Cell {
        let is_slice = tensor(ty, generics, false).is_some_and(|t| t.core == Core::Slice && !t.mutable);
        return is_slice.then_some(Certain::Rust("a slice"));
    }
    match (variable(ty, generics), option(ty)) {
        (Some(Elem::Generic(i)), _) => Some(Certain::Element(i)),
        (Some(Elem::Mask(i)), _) => Some(Certain::Mask(i)),
        (_, Some(inner)) if variable(inner, generics).is_some() || spelling(inner) == "f64" => Some(Certain::Optional),
        _ if spelling(ty) == "f64" => Some(Certain::Element(0)),
        _ if matches!(&*spelling(ty), "&[f64]" | "&[i64]" | "Vec<f64>" | "Vec<i64>") => Some(Certain::Rust("a list")),
        _ => None,
    }
}

fn is_function(ty: &Type) -> bool {
    match ty {
        Type::Reference(inner) => is_function(&inner.elem),
        Type::ImplTrait(_) | Type::TraitObject(_) | Type::FnPtr(_) => true,
        _ => false,
    }
}

/// The dtype variable of the elements that a parameter returns, if it is such a function.
fn called(ty: &Type, generics: &[Generic]) -> Option<usize> {
    let bounds = match ty {
        Type::Reference(inner) => return called(&inner.elem, generics),
        Type::FnPtr(function) => return of_output(&function.output, generics),
        Type::ImplTrait(function) => &function.bounds,
        Type::TraitObject(function) => &function.bounds,
        _ => return None,
    };
    bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let PathArguments::Parenthesized(signature) = &bound.path.segments.last()?.arguments else { return None };
        of_output(&signature.output, generics)
    })
}

fn of_output(output: &ReturnType, generics: &[Generic]) -> Option<usize> {
    let ReturnType::Type(_, ty) = output else { return None };
    if let Some(Elem::Generic(i)) = variable(ty, generics) { Some(i) } else { None }
}

/// The element types that the function returns. `None` if it returns no element, or something that is made of elements.
fn returned(ty: &Type, generics: &[Generic]) -> Option<Vec<Elem>> {
    let members: Vec<&Type> = match ty {
        Type::Tuple(tuple) => tuple.elems.iter().collect(),
        other => vec![other],
    };
    let elems: Vec<_> = members.into_iter().map(|ty| variable(ty, generics).unwrap_or(Elem::Any)).collect();
    elems.iter().any(|elem| *elem != Elem::Any).then_some(elems)
}
