//! Classifies one parameter by its type.

use syn::{Ident, Type, TypeParamBound, TypePath, TypeReference};

use super::{is_named, known_bound, option, type_argument, wrapped};
use crate::ast::{Arity, AttrKind, Core, Elem, Generic, Level, spelling, text};
use crate::diag::{Diag, messages};
use crate::dtype::{self, DType};

/// A parameter, classified by its type.
pub enum Param {
    Tensor(Tensor),
    Attr { kind: AttrKind, optional: bool, ty: Box<Type> },
}

#[derive(Clone, Copy)]
pub struct Tensor {
    pub elem: Elem,
    pub arity: Arity,
    pub mutable: bool,
    pub core: Core,
    /// `None` if the other parameters determine it, for `&mut T`.
    pub level: Option<Level>,
}

pub fn param(ty: &Type, generics: &[Generic], is_tensor: bool, diag: &mut Diag) -> Option<Param> {
    if let Some(tensor) = tensor(ty, generics, is_tensor) {
        return Some(Param::Tensor(tensor));
    }
    if let Some(inner) = option(ty) {
        if let Some(inner) = tensor(inner, generics, is_tensor)
            && inner.arity == Arity::One
            && !inner.mutable
        {
            return Some(Param::Tensor(Tensor { arity: Arity::Optional, ..inner }));
        }
        let kind = attr_kind(inner, diag)?;
        return Some(Param::Attr { kind, optional: true, ty: Box::new(inner.clone()) });
    }
    Some(Param::Attr { kind: attr_kind(ty, diag)?, optional: false, ty: Box::new(ty.clone()) })
}

/// A tensor, if the type can only be one. `is_tensor` decides for types that may also be list attributes.
pub fn tensor(ty: &Type, generics: &[Generic], is_tensor: bool) -> Option<Tensor> {
    let one = Tensor { elem: Elem::Any, arity: Arity::One, mutable: false, core: Core::Scalar, level: None };
    let cell = |elem, core, mutable| Tensor { elem, core, mutable, level: Some(Level::Cell), ..one };
    if let Some(elem) = variable(ty, generics) {
        let (Elem::Generic(i) | Elem::Mask(i)) = elem else { return None };
        let level = if generics[i].bound.is_of_rows() { Level::Row } else { Level::Element };
        return Some(Tensor { elem, level: Some(level), ..one });
    }
    if is_index(ty, generics) {
        let elem = Elem::Fixed(DType::I64);
        return Some(Tensor { elem, level: Some(Level::Row), ..one });
    }
    if let Some((elem, dims, mutable)) = array_view(ty, generics) {
        return Some(cell(elem, Core::View(dims), mutable));
    }
    if let Some((elem, mutable)) = columns(ty, generics) {
        return Some(cell(elem, Core::Columns, mutable));
    }
    let Type::Reference(TypeReference { mutability, elem: inner, .. }) = ty else { return None };
    let mutable = mutability.is_some();
    let referred = if let Type::Slice(slice) = &**inner { &slice.elem } else { inner };
    if let Some(elem @ Elem::Generic(i)) = variable(referred, generics)
        && generics[i].bound.is_of_rows()
    {
        // An error, which is reported as an error of a row op.
        return Some(Tensor { elem, level: Some(Level::Row), mutable, ..one });
    }
    let concrete = |ty: &Type| dtype::of(ty).filter(|_| is_tensor || mutable).map(Elem::Fixed);
    match &**inner {
        inner if is_named(inner, "Tensor") => Some(Tensor { level: Some(Level::Tensor), mutable, ..one }),
        Type::Slice(slice) => match &*slice.elem {
            Type::Reference(r) if is_named(&r.elem, "Tensor") => {
                Some(Tensor { arity: Arity::Variadic, level: Some(Level::Tensor), mutable, ..one })
            }
            elem => Some(cell(variable(elem, generics).or_else(|| concrete(elem))?, Core::Slice, mutable)),
        },
        inner => {
            let level = if mutable && !is_tensor { None } else { Some(Level::Cell) };
            let elem = variable(inner, generics).or_else(|| concrete(inner))?;
            Some(Tensor { level, ..cell(elem, Core::Scalar, mutable) })
        }
    }
}

/// `T` or `T::Mask`
pub fn variable(ty: &Type, generics: &[Generic]) -> Option<Elem> {
    let Type::Path(TypePath { qself: None, path, .. }) = ty else { return None };
    let position = |ident: &Ident| generics.iter().position(|g| g.ident == *ident);
    match path.segments.iter().collect::<Vec<_>>()[..] {
        [only] => position(&only.ident).map(Elem::Generic),
        [first, mask] if mask.ident == "Mask" => position(&first.ident).map(Elem::Mask),
        _ => None,
    }
}

/// `R::Index`
pub fn is_index(ty: &Type, generics: &[Generic]) -> bool {
    let Type::Path(TypePath { qself: None, path, .. }) = ty else { return false };
    let segments: Vec<_> = path.segments.iter().map(|s| &s.ident).collect();
    matches!(segments[..], [first, last] if last == "Index"
        && generics.iter().any(|g| g.ident == *first && g.bound.is_of_rows()))
}

/// `ArrayView2<T>`, `ArrayViewMut1<'_, T>`
fn array_view(ty: &Type, generics: &[Generic]) -> Option<(Elem, usize, bool)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let name = last.ident.to_string();
    let rest = name.strip_prefix("ArrayView")?;
    let (dims, mutable) = rest.strip_prefix("Mut").map_or((rest, false), |dims| (dims, true));
    let dims = dims.parse().ok().filter(|d| (1..=5).contains(d))?;
    let elem = type_argument(&last.arguments)?;
    let elem = variable(elem, generics).or_else(|| dtype::of(elem).map(Elem::Fixed))?;
    Some((elem, dims, mutable))
}

/// `Columns<T>`, `ColumnsMut<'_, T>`
fn columns(ty: &Type, generics: &[Generic]) -> Option<(Elem, bool)> {
    let of = |name| wrapped(ty, name).and_then(|ty| variable(ty, generics).or_else(|| dtype::of(ty).map(Elem::Fixed)));
    of("Columns").map(|elem| (elem, false)).or_else(|| of("ColumnsMut").map(|elem| (elem, true)))
}

fn attr_kind(ty: &Type, diag: &mut Diag) -> Option<AttrKind> {
    let spelled = spelling(ty);
    let unlabelled = match ty {
        Type::Reference(r) if r.mutability.is_none() => format!("&{}", spelling(&r.elem)),
        _ => spelled.clone(),
    };
    Some(match unlabelled.as_str() {
        "bool" => AttrKind::Bool,
        "i64" => AttrKind::Int,
        "usize" => AttrKind::Size,
        "f64" => AttrKind::Float,
        "&str" => AttrKind::Str,
        "&[i64]" => AttrKind::Ints,
        "&[f64]" => AttrKind::Floats,
        _ if is_named(ty, "DType") => AttrKind::DType,
        _ => match ty {
            Type::ImplTrait(it) if it.bounds.iter().any(is_bound) => {
                diag.error(ty, &messages::IMPL_TRAIT, &[&spelled]);
                return None;
            }
            _ if dtype::of(ty).is_some() || matches!(unlabelled.as_str(), "isize" | "u128" | "i128") => {
                diag.error(ty, &messages::CONCRETE, &[&spelled]);
                return None;
            }
            Type::Path(path) if is_enum(path) => AttrKind::Enum(&[]),
            _ => {
                diag.error(ty, &messages::PARAMETER_TYPE, &[&spelled]);
                return None;
            }
        },
    })
}

/// Whether it is a plain path that is not a type of the standard library or of the runtime.
fn is_enum(path: &TypePath) -> bool {
    let known = ["String", "Vec", "Tensor", "Option", "Box", "Rc", "Arc", "HashMap", "char"];
    let last = path.path.segments.last();
    path.qself.is_none()
        && last.is_some_and(|l| l.arguments.is_none() && known.iter().all(|k| l.ident != k) && !starts_lower(&l.ident))
}

pub fn is_bound(bound: &TypeParamBound) -> bool {
    matches!(bound, TypeParamBound::Trait(t) if known_bound(&t.path).is_some())
}

fn starts_lower(ident: &Ident) -> bool {
    text(ident).starts_with(|c: char| c.is_lowercase())
}
