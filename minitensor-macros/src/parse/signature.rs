//! The signature of the function. The types of its parameters determine their roles and the level of the op.

pub mod param;

use quote::ToTokens;
use syn::{
    Expr, FnArg, GenericArgument, GenericParam, Ident, ItemFn, Pat, Path, PathArguments, ReturnType, Type,
    TypeParamBound, TypePath, WherePredicate,
};

use crate::ast::{Attribute, Core, Elem, Generic, Input, Level, Returns, Slot, spelling, text};
use crate::diag::{Diag, list, messages};
use crate::drawn;
use crate::dtype::{self, Bound, DType, DTypeSet};
use minitensor_schema::grammar::Shape;
use minitensor_schema::suggestion::nearest;
use param::{Param, is_index, param, variable};

/// The parsed signature.
pub struct Signature {
    pub level: Level,
    pub generics: Vec<Generic>,
    pub inputs: Vec<Input>,
    pub attrs: Vec<Attribute>,
    /// The results of a cell body: its `&mut` parameters that are not inputs, then the numbers that it returns.
    pub outputs: Vec<(Ident, Elem, Core)>,
    pub params: Vec<Slot>,
    pub returns: Returns,
    /// The return types of a body of numbers.
    pub returned: Vec<Elem>,
}

pub fn parse(function: &ItemFn, shape: Option<&Shape>, diag: &mut Diag) -> Option<Signature> {
    let before = diag.len();
    let sig = &function.sig;
    for (token, found) in [
        ("async", sig.asyncness.map(|t| t.to_token_stream())),
        ("unsafe", matches!(sig.safety, syn::Safety::Unsafe(_)).then(|| sig.safety.to_token_stream())),
        ("const", sig.constness.map(|t| t.to_token_stream())),
        ("extern", sig.abi.as_ref().map(|t| t.to_token_stream())),
    ] {
        if let Some(found) = found {
            diag.error(found, &messages::QUALIFIED, &[&token]);
        }
    }
    let generics = generics(function, diag);
    let mut params = vec![];
    for arg in &sig.inputs {
        match arg {
            FnArg::Receiver(receiver) => diag.error(receiver, &messages::METHOD, &[]),
            FnArg::Typed(arg) => match &*arg.pat {
                Pat::Ident(pat) if pat.subpat.is_none() && pat.by_ref.is_none() => {
                    let is_tensor = shape.is_some_and(|s| {
                        let name = text(&pat.ident);
                        s.arguments().any(|argument| argument.name.as_ref() == Some(&name))
                    });
                    if is_value(&pat.ident) {
                        diag.error(&pat.ident, &messages::PARAMETER_NAME, &[&pat.ident]);
                    } else if let Some(param) = param(&arg.ty, &generics, is_tensor, diag) {
                        params.push((pat.ident.clone(), arg, param));
                    }
                }
                pat => diag.error(pat, &messages::PATTERN, &[]),
            },
        }
    }
    if diag.len() > before {
        return None;
    }
    let level = level(function, &params, diag)?;
    let mut signature = Signature {
        level,
        generics,
        inputs: vec![],
        attrs: vec![],
        outputs: vec![],
        params: vec![],
        returns: Returns::Nothing,
        returned: vec![],
    };
    for (ident, arg, param) in params {
        let default = default(&arg.attrs, diag);
        signature.add(ident, param, &arg.ty, default, shape, diag);
    }
    returns(&sig.output, &mut signature, diag);
    (diag.len() == before).then_some(signature)
}

impl Signature {
    fn add(
        &mut self,
        ident: Ident,
        param: Param,
        ty: &Type,
        default: Option<Expr>,
        shape: Option<&Shape>,
        diag: &mut Diag,
    ) {
        match param {
            Param::Attr { kind, optional, ty } => {
                self.params.push(Slot::Attr(self.attrs.len()));
                self.attrs.push(Attribute { ident, ty: *ty, kind, optional, default });
            }
            Param::Tensor(tensor) => {
                if let Some(default) = default {
                    diag.error(default, &messages::DEFAULT_ON_TENSOR, &[&ident]);
                }
                let is_input = shape.is_some_and(|s| s.input(&text(&ident)).is_some());
                if self.level == Level::Cell && tensor.mutable && !is_input {
                    self.params.push(Slot::Output(self.outputs.len()));
                    self.outputs.push((ident, tensor.elem, tensor.core));
                    return;
                }
                self.params.push(Slot::Input(self.inputs.len()));
                self.inputs.push(Input {
                    ident,
                    ty: ty.clone(),
                    elem: tensor.elem,
                    arity: tensor.arity,
                    mutated: tensor.mutable,
                    core: tensor.core,
                });
            }
        }
    }
}

/// The `#[default = …]` of a parameter.
fn default(attrs: &[syn::Attribute], diag: &mut Diag) -> Option<Expr> {
    let known = drawn::WORDS.into_iter().chain(["default"]);
    for attr in attrs.iter().filter(|a| !known.clone().any(|known| a.path().is_ident(known))) {
        let name = spelling(attr.path());
        if let Some(near) = nearest(&name, known.clone()) {
            diag.error(attr.path(), &messages::UNKNOWN_ATTRIBUTE, &[&name, &format!("did you mean `{near}`?")]);
        }
    }
    let attr = attrs.iter().find(|a| a.path().is_ident("default"))?;
    match attr.meta.require_name_value() {
        Ok(meta) => Some(meta.value.clone()),
        Err(_) => {
            diag.error(attr, &messages::DEFAULT_SYNTAX, &[]);
            None
        }
    }
}

/// Whether it is a name of Rust's prelude, which a pattern would match instead of binding.
fn is_value(ident: &Ident) -> bool {
    ["None", "Some", "Ok", "Err"].iter().any(|name| ident == name)
}

/// Whether it is a bound of dtype variables.
fn is_trait(ident: &Ident) -> bool {
    Bound::named(&ident.to_string()).is_some()
}

/// Removes wrong names, about which rustc would report other errors.
pub fn strip_names(function: &mut ItemFn) {
    let mut names = std::collections::HashSet::new();
    for arg in &mut function.sig.inputs {
        if let FnArg::Typed(arg) = arg
            && matches!(&*arg.pat, Pat::Ident(pat) if is_value(&pat.ident) || !names.insert(text(&pat.ident)))
        {
            *arg.pat = syn::parse_quote!(_);
        }
    }
    for param in function.sig.generics.type_params_mut().filter(|param| is_trait(&param.ident)) {
        param.bounds.clear();
    }
}

// The dtype variables.

fn generics(function: &ItemFn, diag: &mut Diag) -> Vec<Generic> {
    let sig = &function.sig;
    let mut generics = vec![];
    for param in &sig.generics.params {
        match param {
            GenericParam::Lifetime(_) => {}
            GenericParam::Const(param) => diag.error(param, &messages::CONST_GENERIC, &[&param.ident]),
            GenericParam::Type(param) if is_trait(&param.ident) => {
                diag.error(&param.ident, &messages::VARIABLE_NAME, &[&param.ident]);
            }
            GenericParam::Type(param) => {
                let elsewhere = sig.generics.where_clause.iter().flat_map(|w| &w.predicates).filter_map(|p| match p {
                    WherePredicate::Type(p) if p.bounded_ty == ident_type(&param.ident) => Some(&p.bounds),
                    _ => None,
                });
                let bounds: Vec<_> = std::iter::once(&param.bounds).chain(elsewhere).flatten().collect();
                if let Some(bound) = bound(&param.ident, &bounds, diag) {
                    generics.push(Generic { ident: param.ident.clone(), bound, dtypes: bound.dtypes });
                }
            }
        }
    }
    generics
}

fn bound(variable: &Ident, bounds: &[&TypeParamBound], diag: &mut Diag) -> Option<Bound> {
    let names = list(&Bound::names());
    let [TypeParamBound::Trait(only)] = bounds else {
        match bounds.iter().find(|b| !matches!(b, TypeParamBound::Trait(t) if known_bound(&t.path).is_some())) {
            Some(extra) => diag.error(extra, &messages::BOUND, &[&spelling(extra), variable, &names]),
            None if bounds.is_empty() => diag.error(variable, &messages::NO_BOUND, &[variable, variable, &names]),
            None => {
                let known = bounds
                    .iter()
                    .filter_map(|b| if let TypeParamBound::Trait(t) = b { known_bound(&t.path) } else { None });
                let dtypes = known.map(|bound| bound.dtypes).reduce(DTypeSet::intersection);
                let message = match dtypes {
                    Some(dtypes) if dtypes.is_empty() => &messages::NO_COMMON_DTYPE,
                    _ => &messages::TWO_BOUNDS,
                };
                diag.error(bounds[1], message, &[variable]);
            }
        }
        return None;
    };
    let known = known_bound(&only.path);
    if known.is_none() {
        diag.error(only, &messages::BOUND, &[&spelling(only), variable, &names]);
    }
    known
}

pub fn known_bound(path: &Path) -> Option<Bound> {
    Bound::named(&path.segments.last()?.ident.to_string())
}

// The level and the return type.

fn level(function: &ItemFn, params: &[(Ident, &syn::PatType, Param)], diag: &mut Diag) -> Option<Level> {
    let mut first: Option<(Level, &Type)> = None;
    let mut undecided = false;
    for (_, arg, param) in params {
        let Param::Tensor(tensor) = param else { continue };
        match (tensor.level, first) {
            (None, _) => undecided = true,
            (Some(level), None) => first = Some((level, &arg.ty)),
            (Some(level), Some((other, ty))) if level != other => {
                diag.error(&arg.ty, &messages::MIXED_LEVELS, &[&spelling(ty), &other.describe(), &level.describe()]);
                return None;
            }
            _ => {}
        }
    }
    let returns_tensor = matches!(&function.sig.output, ReturnType::Type(_, ty) if tensor_returns(ty).is_some());
    match first {
        Some((level, _)) => Some(level),
        None if undecided => Some(Level::Element),
        // An op that creates tensors from attributes alone.
        None if returns_tensor => Some(Level::Tensor),
        None => {
            let complex = params.iter().map(|(_, arg, _)| spelling(&arg.ty)).find(|ty| ty.starts_with("Complex"));
            match complex {
                Some(ty) => diag.error(&function.sig.ident, &messages::COMPLEX_TENSOR, &[&ty]),
                None => diag.error(&function.sig.ident, &messages::NO_TENSOR, &[&function.sig.ident]),
            }
            None
        }
    }
}

impl Level {
    fn describe(self) -> &'static str {
        match self {
            Level::Element => "one element",
            Level::Row => "one row",
            Level::Cell => "one core cell",
            Level::Tensor => "whole tensors",
        }
    }
}

fn returns(output: &ReturnType, signature: &mut Signature, diag: &mut Diag) {
    let ty = match output {
        ReturnType::Type(_, ty) => &**ty,
        ReturnType::Default => {
            if signature.level == Level::Tensor {
                diag.error(output_anchor(signature), &messages::TENSOR_RETURNS, &[&"nothing"]);
            }
            return;
        }
    };
    if let (Level::Cell | Level::Tensor, Some(error)) = (signature.level, other_error(ty)) {
        return diag.error(error, &messages::OTHER_ERROR, &[&spelling(error)]);
    }
    match signature.level {
        Level::Element | Level::Row => {
            for member in members(ty) {
                match variable(member, &signature.generics) {
                    Some(elem) => signature.returned.push(elem),
                    None if is_index(member, &signature.generics) => signature.returned.push(Elem::Fixed(DType::I64)),
                    None => {
                        let spelled = spelling(member);
                        let message = match signature.level {
                            _ if result(member).is_some() => &messages::RETURNS_RESULT,
                            Level::Row => &messages::ROW_RETURNS,
                            _ if is_named(member, "bool") => &messages::RETURNS_BOOL,
                            _ => &messages::RETURNS,
                        };
                        diag.error(member, message, &[&spelled]);
                    }
                }
            }
            signature.returns = count(ty);
        }
        Level::Cell => {
            let ty = result(ty).unwrap_or(ty);
            for member in members(ty) {
                let number = variable(member, &signature.generics).filter(|elem| matches!(elem, Elem::Generic(_)));
                match number.or_else(|| dtype::of(member).map(Elem::Fixed)) {
                    Some(elem) => signature.returned.push(elem),
                    None => diag.error(member, &messages::CELL_RETURNS, &[&spelling(member)]),
                }
            }
            signature.returns = count(ty);
        }
        Level::Tensor => match tensor_returns(ty) {
            Some((returns, count)) => {
                signature.returns = returns;
                signature.returned = vec![Elem::Any; count];
            }
            None => diag.error(ty, &messages::TENSOR_RETURNS, &[&spelling(ty)]),
        },
    }
}

/// The second type of a `Result`, unless it is that of minitensor.
fn other_error(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|s| s.ident == "Result")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.iter().nth(1) {
        Some(GenericArgument::Type(error)) if !is_named(error, "Error") => Some(error),
        _ => None,
    }
}

/// The types of the results.
fn members(ty: &Type) -> Vec<&Type> {
    match ty {
        Type::Paren(inner) => members(&inner.elem),
        Type::Tuple(tuple) => tuple.elems.iter().collect(),
        other => vec![other],
    }
}

fn count(ty: &Type) -> Returns {
    match ty {
        Type::Tuple(tuple) if tuple.elems.is_empty() => Returns::Nothing,
        Type::Tuple(_) => Returns::Tuple,
        _ => Returns::One,
    }
}

fn output_anchor(signature: &Signature) -> impl ToTokens + use<> {
    signature.inputs.first().map(|i| i.ident.clone())
}

/// `Tensor`, tuples of it, `Vec<Tensor>`, and `Result`s of those.
fn tensor_returns(ty: &Type) -> Option<(Returns, usize)> {
    let ty = result(ty).unwrap_or(ty);
    match ty {
        _ if is_named(ty, "Tensor") => Some((Returns::One, 1)),
        Type::Tuple(tuple) if !tuple.elems.is_empty() && tuple.elems.iter().all(|t| is_named(t, "Tensor")) => {
            Some((Returns::Tuple, tuple.elems.len()))
        }
        Type::Path(path) => {
            let last = path.path.segments.last().filter(|s| s.ident == "Vec")?;
            type_argument(&last.arguments).filter(|t| is_named(t, "Tensor")).map(|_| (Returns::List, 1))
        }
        _ => None,
    }
}

// Parsing of types.

pub fn ident_type(ident: &Ident) -> Type {
    Type::Path(TypePath { attrs: vec![], qself: None, path: ident.clone().into() })
}

fn is_named(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == name && s.arguments.is_none()))
}

pub fn wrapped<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(path) = ty else { return None };
    type_argument(&path.path.segments.last().filter(|s| s.ident == name)?.arguments)
}

pub fn option(ty: &Type) -> Option<&Type> {
    wrapped(ty, "Option")
}

/// `T` for `Complex<T>`.
pub fn complex_part(ty: &Type) -> Option<&Type> {
    wrapped(ty, "Complex")
}

/// Whether a parameter of this type is a tensor.
pub fn is_tensor(ty: &Type, generics: &[Generic]) -> bool {
    variable(ty, generics).is_some() || complex_part(ty).is_some()
}

/// The dtype variable `T` of the type `Complex<T>`.
pub fn variable_of_complex(ty: &Type, generics: &[Generic]) -> Option<usize> {
    match variable(complex_part(ty)?, generics)? {
        Elem::Generic(i) => Some(i),
        _ => None,
    }
}

pub fn result(ty: &Type) -> Option<&Type> {
    wrapped(ty, "Result")
}

/// The first type among generic arguments.
fn type_argument(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else { return None };
    arguments.args.iter().find_map(|a| match a {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}
