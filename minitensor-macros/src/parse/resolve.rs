//! Combines the signature and the clauses: names, dtypes, outputs and the gradient of the [`Op`].

use minitensor_schema::grammar::{NamedDims, Shape};
use minitensor_schema::message::{self, counted};
use minitensor_schema::{At, check};
use proc_macro2::Span;
use syn::punctuated::Punctuated;
use syn::{FnArg, Ident, ItemFn, LitInt, Token, Type};

use super::clause::{Backward, Clauses, DTypes, Tuned};
use super::signature::Signature;
use crate::ast::{
    AttrKind, Attribute, Axis, Combine, Core, Elem, Generic, Gradient, Level, Op, Output, Returns, Role, Slot,
    spelling, text,
};
use crate::diag::{Diag, list, messages, suggestion};
use crate::dtype::{self, Bound, DType, DTypeSet};
use crate::schema;
use crate::source::Clause;

pub fn op(mut function: ItemFn, clauses: &mut Clauses, mut signature: Signature, diag: &mut Diag) -> Option<Op> {
    let before = diag.len();
    strip_defaults(&mut function);
    let ident = function.sig.ident.clone();
    if signature.level == Level::Cell {
        name_returned(&ident, clauses.shape.as_ref().map(|s| &s.tree), &mut signature, diag);
        if diag.len() > before {
            return None;
        }
    }
    let returned = match &clauses.dtype {
        Some(dtype) => dtypes(dtype, &mut signature, diag),
        None => signature.returned.iter().map(|elem| (None, *elem)).collect(),
    };
    let outputs = match signature.level {
        Level::Cell => cell_outputs(&ident, clauses.shape.as_ref(), &mut signature, diag),
        _ => outputs(&ident, clauses.shape.as_ref().map(|s| &s.tree), &signature, returned),
    };
    tune(&clauses.tune, &mut signature, diag);
    if diag.len() > before {
        return None;
    }
    let outputs = if signature.level == Level::Row {
        rows(clauses.shape.as_ref().map(|s| &s.tree), &mut signature, outputs)
    } else {
        outputs
    };
    let axis = clauses.axis.as_ref().map(|axis| {
        let lacks = |s: &Clause<Shape>| s.outputs.iter().any(|o| o.dims.core.is_empty());
        Axis { default: axis.default, keepdims: clauses.shape.as_ref().is_some_and(lacks) }
    });
    let name = clauses.name.as_ref().map_or_else(|| text(&ident), |name| name.value());
    let mut op = Op {
        doc: doc(&function),
        aliases: clauses.aliases.iter().map(|a| a.value()).collect(),
        since: clauses.since.unwrap_or(1),
        level: signature.level,
        generics: signature.generics,
        inputs: signature.inputs,
        attrs: signature.attrs,
        params: signature.params,
        returns: signature.returns,
        shape: clauses.shape.take(),
        predicates: std::mem::take(&mut clauses.predicates),
        gradient: Gradient::NotNeeded,
        inplace: clauses.inplace.clone(),
        precompiled: clauses.precompiled.clone(),
        program: clauses.program.clone(),
        type_name: ident,
        function,
        name,
        outputs,
        axis,
        combine: clauses.combine.as_ref().and_then(|word| combine(word, diag)),
        properties: std::mem::take(&mut clauses.properties),
    };
    op.gradient = gradient(&op, clauses.backward.take(), diag);
    Some(op)
}

fn combine(word: &Ident, diag: &mut Diag) -> Option<Combine> {
    let found = Combine::from_word(&text(word));
    if found.is_none() {
        diag.error(word, &messages::COMBINE, &[word, &suggestion(&text(word), &Combine::words())]);
    }
    found
}

/// Removes `#[default]`, which the compiler does not know.
pub fn strip_defaults(function: &mut ItemFn) {
    for arg in &mut function.sig.inputs {
        if let FnArg::Typed(arg) = arg {
            arg.attrs.retain(|a| !a.path().is_ident("default"));
        }
    }
}

/// The doc comment, without the space that usually follows `///`.
fn doc(function: &ItemFn) -> String {
    let lines = function.attrs.iter().filter(|a| a.path().is_ident("doc")).filter_map(|a| {
        match &a.meta.require_name_value().ok()?.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        }
    });
    let lines: Vec<_> = lines.map(|l| l.strip_prefix(' ').unwrap_or(&l).to_owned()).collect();
    lines.join("\n").trim().to_owned()
}

// Tuning.

/// Applies the `tune` clause to the attributes. `grain` is an attribute of every loop, which the engine reads.
fn tune(clause: &[Tuned], signature: &mut Signature, diag: &mut Diag) {
    let is_loop = signature.level != Level::Tensor;
    for Tuned { name, candidates } in clause {
        if is_loop && name == "grain" && signature.attrs.iter().all(|a| a.ident != *name) {
            let (kind, ty) = (AttrKind::Size, syn::parse_quote!(usize));
            signature.attrs.push(Attribute { ident: name.clone(), ty, kind, optional: false, default: None });
        }
        let names: Vec<_> = signature.attrs.iter().map(|a| text(&a.ident)).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let is_body = matches!(signature.level, Level::Element | Level::Row) && name != "grain";
        match signature.attrs.iter_mut().find(|a| a.ident == *name) {
            None => diag.error(name, &messages::TUNE_UNKNOWN, &[name, &suggestion(&text(name), &names)]),
            Some(_) if is_body => diag.error(name, &messages::TUNE_LEVEL, &[name]),
            Some(Attribute { kind: AttrKind::Tuned(_), .. }) => diag.error(name, &messages::TUNE_TWICE, &[name]),
            Some(attr) if !attr.kind.is_whole() || attr.has_default() => {
                diag.error(&attr.ident, &messages::TUNE_TYPE, &[name, name]);
            }
            Some(attr) => attr.kind = AttrKind::Tuned(self::candidates(candidates, diag)),
        }
    }
}

/// The definition refers to the candidates, so they live as long as the compiler.
fn candidates(given: &Punctuated<LitInt, Token![,]>, diag: &mut Diag) -> &'static [i64] {
    given.iter().filter_map(|literal| diag.ok(literal.base10_parse())).collect::<Vec<_>>().leak()
}

// Dtypes.

/// Applies the `dtype` clause to the signature. Returns the dtypes of the returned outputs.
fn dtypes(clause: &DTypes, signature: &mut Signature, diag: &mut Diag) -> Vec<(Option<Ident>, Elem)> {
    if signature.level == Level::Tensor {
        introduce(clause, signature);
    }
    for (variable, types) in &clause.bounds {
        match signature.generics.iter_mut().find(|g| g.ident == *variable) {
            Some(generic) => restrict(generic, types, diag),
            None => diag.error(variable, &messages::UNKNOWN_VARIABLE, &[variable]),
        }
    }
    for (name, ty) in &clause.inputs {
        let elem = elem(ty, &signature.generics, &signature.attrs, diag);
        let names: Vec<_> = signature.inputs.iter().map(|i| text(&i.ident)).collect();
        match signature.inputs.iter_mut().find(|i| i.ident == *name) {
            Some(input) if signature.level == Level::Tensor => input.elem = elem.unwrap_or(Elem::Any),
            Some(input) if elem.is_some_and(|e| is_stored(signature.level, input.elem, e)) => {
                input.elem = elem.unwrap_or(Elem::Any);
            }
            Some(input) if elem.is_some_and(|e| in_body(e, input.elem) != input.elem) => {
                diag.error(ty, &messages::DTYPE_DIFFERS, &[&spelling(ty), &spelling(&input.ty)]);
            }
            Some(_) => {}
            None => {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                diag.error(name, &message::UNKNOWN_INPUT, &[name, &suggestion(&text(name), &names)]);
            }
        }
    }
    let mut given: Vec<_> = clause
        .outputs
        .iter()
        .map(|(name, ty)| (name.clone(), elem(ty, &signature.generics, &signature.attrs, diag).unwrap_or(Elem::Any)))
        .collect();
    if signature.level == Level::Cell {
        cell_dtypes(clause, &given, signature, diag);
        return vec![];
    }
    if given.len() != signature.returned.len() {
        diag.error(clause.end(), &messages::DTYPE_COUNT, &[&counted(given.len(), "output"), &signature.returned.len()]);
        return vec![];
    }
    for ((_, elem), (returned, (_, ty))) in given.iter_mut().zip(signature.returned.iter().zip(&clause.outputs)) {
        *elem = in_body(*elem, *returned);
        let is_stored = is_stored(signature.level, *returned, *elem);
        match elem {
            _ if !matches!(signature.level, Level::Element | Level::Row) || elem == returned || is_stored => {}
            Elem::Attr(_) | Elem::Any => diag.error(ty, &messages::DTYPE_OF_BODY, &[&spelling(ty)]),
            _ => diag.error(ty, &messages::DTYPE_DIFFERS, &[&spelling(ty), &signature.spell(*returned)]),
        }
    }
    given
}

/// The type in the body of a tensor with this type in the clause: a bool tensor may be a mask.
fn in_body(elem: Elem, has: Elem) -> Elem {
    if let (Elem::Fixed(DType::Bool), Elem::Mask(_)) = (elem, has) { has } else { elem }
}

/// Whether a tensor of a body may be stored as integers, which are converted to numbers of the body and back.
fn is_stored(level: Level, has: Elem, elem: Elem) -> bool {
    let is_integer = matches!(elem, Elem::Fixed(dtype) if dtype.is_integer());
    matches!(level, Level::Element | Level::Row) && matches!(has, Elem::Generic(_)) && is_integer
}

impl Signature {
    fn spell(&self, elem: Elem) -> String {
        match elem {
            Elem::Generic(i) => self.generics[i].ident.to_string(),
            Elem::Mask(i) => format!("{}::Mask", self.generics[i].ident),
            Elem::Fixed(dtype) => dtype.rust_name().to_owned(),
            Elem::Attr(_) | Elem::Any => "Tensor".to_owned(),
        }
    }
}

/// The dtypes of the outputs of a cell op in the clause must equal those of their parameters.
fn cell_dtypes(clause: &DTypes, given: &[(Option<Ident>, Elem)], signature: &Signature, diag: &mut Diag) {
    if given.len() != signature.outputs.len() {
        return diag.error(
            clause.end(),
            &messages::DTYPE_COUNT,
            &[&counted(given.len(), "output"), &signature.outputs.len()],
        );
    }
    for ((_, elem), ((_, has, _), (_, ty))) in given.iter().zip(signature.outputs.iter().zip(&clause.outputs)) {
        if elem != has {
            diag.error(ty, &messages::DTYPE_DIFFERS, &[&spelling(ty), &signature.spell(*has)]);
        }
    }
}

/// The dtype variables of a tensor op are those that its `dtype` clause names.
fn introduce(clause: &DTypes, signature: &mut Signature) {
    let types = clause.inputs.iter().map(|(_, ty)| ty);
    for ty in types {
        let Some(ident) = single(ty) else { continue };
        let known = signature.generics.iter().any(|g| g.ident == *ident);
        if !known && dtype::of(ty).is_none() {
            let bound = Bound::named("Element").expect("the first trait");
            signature.generics.push(Generic { ident: ident.clone(), bound, dtypes: bound.dtypes });
        }
    }
}

fn restrict(generic: &mut Generic, types: &[Type], diag: &mut Diag) {
    let mut dtypes = DTypeSet::of(&[]);
    for ty in types {
        let bound = single(ty).and_then(|i| Bound::named(&i.to_string()));
        match (dtype::of(ty), bound) {
            (Some(dtype), _) if generic.bound.dtypes.contains(dtype) => dtypes = dtypes.union(DTypeSet::of(&[dtype])),
            (Some(dtype), _) => {
                diag.error(ty, &messages::DTYPE_OUTSIDE, &[&dtype.rust_name(), &generic.ident, &generic.ident]);
            }
            (None, Some(bound)) => dtypes = dtypes.union(bound.dtypes),
            (None, None) => {
                diag.error(ty, &messages::UNKNOWN_DTYPE, &[&spelling(ty), &list(&Bound::names())]);
            }
        }
    }
    generic.dtypes = generic.dtypes.intersection(dtypes);
}

fn elem(ty: &Type, generics: &[Generic], attrs: &[Attribute], diag: &mut Diag) -> Option<Elem> {
    if let Type::Infer(_) = ty {
        return Some(Elem::Any);
    }
    if let Some(dtype) = dtype::of(ty) {
        return Some(Elem::Fixed(dtype));
    }
    if let Type::Path(path) = ty
        && let [first, mask] = &path.path.segments.iter().collect::<Vec<_>>()[..]
        && mask.ident == "Mask"
        && let Some(i) = generics.iter().position(|g| g.ident == first.ident)
    {
        return Some(Elem::Mask(i));
    }
    let found = single(ty).and_then(|name| {
        let generic = generics.iter().position(|g| g.ident == *name).map(Elem::Generic);
        generic.or_else(|| attrs.iter().position(|a| a.ident == *name).map(Elem::Attr))
    });
    if found.is_none() {
        diag.error(ty, &messages::UNKNOWN_DTYPE, &[&spelling(ty), &list(&Bound::names())]);
    }
    found
}

fn single(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) if path.qself.is_none() => path.path.get_ident(),
        _ => None,
    }
}

// Outputs.

/// The outputs that are inputs changed in place.
fn changed(signature: &Signature) -> impl Iterator<Item = Output> {
    signature.inputs.iter().enumerate().filter(|(_, input)| input.mutated).map(|(i, input)| Output {
        ident: input.ident.clone(),
        elem: input.elem,
        role: Role::Mutates(i as u8),
        core: input.core,
    })
}

/// Outputs of element and tensor bodies: mutated inputs, then returned outputs.
fn outputs(
    ident: &Ident,
    shape: Option<&Shape>,
    signature: &Signature,
    returned: Vec<(Option<Ident>, Elem)>,
) -> Vec<Output> {
    let several = returned.len() > 1;
    let base = if signature.returns == Returns::List { "outs" } else { "out" };
    let returned = returned.into_iter().enumerate().map(|(i, (name, elem))| {
        let in_shape = shape.and_then(|s| s.outputs.get(i)?.name.as_deref());
        let default = if several { format!("{base}{i}") } else { base.to_owned() };
        let ident = name.unwrap_or_else(|| named(in_shape.unwrap_or(&default), ident.span()));
        Output { ident, elem, role: Role::Returned, core: Core::Scalar }
    });
    changed(signature).chain(returned).collect()
}

/// An identifier, which is raw if the name is a Rust keyword.
fn named(name: &str, span: Span) -> Ident {
    match syn::parse_str::<Ident>(name) {
        Ok(_) => Ident::new(name, span),
        Err(_) => Ident::new_raw(name, span),
    }
}

/// The numbers that a cell body returns have the names of the `shape` clause that belong to no parameter, those of saved outputs last.
fn name_returned(ident: &Ident, shape: Option<&Shape>, signature: &mut Signature, diag: &mut Diag) {
    let returned = std::mem::take(&mut signature.returned);
    let is_param = |name: &str| signature.outputs.iter().any(|(param, ..)| text(param) == name);
    let given = |saved: bool| shape.into_iter().flat_map(|s| &s.outputs).filter(move |o| o.save == saved);
    let free: Vec<_> =
        given(false).chain(given(true)).filter_map(|o| o.name.as_deref()).filter(|n| !is_param(n)).collect();
    let has_names = shape.is_some_and(|s| s.outputs.iter().any(|o| o.name.is_some()));
    if has_names && !returned.is_empty() && free.len() != returned.len() {
        let (numbers, names) = (counted(returned.len(), "number"), counted(free.len(), "output"));
        return diag.error(ident, &messages::CELL_COUNT, &[&numbers, &names]);
    }
    let several = returned.len() + signature.outputs.len() > 1;
    let names = returned.iter().enumerate().map(|(k, elem)| {
        let default = if several { format!("out{k}") } else { "out".to_owned() };
        (named(free.get(k).copied().unwrap_or(&default), ident.span()), *elem, Core::Scalar)
    });
    let names: Vec<_> = names.collect();
    signature.outputs.extend(names);
}

/// Outputs of cell bodies: mutated inputs, then the outputs of the `shape` clause with saved ones last. Each is the `&mut` parameter of
/// that name, or a number that the body returns.
fn cell_outputs(
    ident: &Ident,
    shape: Option<&Clause<Shape>>,
    signature: &mut Signature,
    diag: &mut Diag,
) -> Vec<Output> {
    let Some(shape) = shape else {
        diag.error(ident, &messages::CELL_NEEDS_SHAPE, &[ident]);
        return vec![];
    };
    let is_changed = |named: &&NamedDims| {
        let is_it = |name: &String| signature.inputs.iter().any(|i| i.mutated && text(&i.ident) == *name);
        named.name.as_ref().is_some_and(is_it)
    };
    if let Some(named) = shape.outputs.iter().find(is_changed) {
        let name = named.name.as_deref().unwrap_or_default();
        diag.error(shape.source.anchor(named.at), &messages::CHANGED_OUTPUT, &[&name]);
        return vec![];
    }
    let params: Vec<Output> = std::mem::take(&mut signature.outputs)
        .into_iter()
        .map(|(ident, elem, core)| Output { ident, elem, role: Role::Returned, core })
        .collect();
    let parts = schema::parts(&[], &[], &params, &signature.generics);
    let problems = check::outputs(&parts.view(), shape);
    for problem in &problems {
        match problem.at {
            At::Tokens(at) => diag.sentence(shape.source.anchor(at), &problem.sentence),
            At::Output(k) => diag.sentence(&params[k].ident, &problem.sentence),
            _ => diag.sentence(ident, &problem.sentence),
        }
    }
    if !problems.is_empty() {
        return vec![];
    }
    let position = |named: &NamedDims| match &named.name {
        Some(name) => params.iter().position(|param| text(&param.ident) == *name),
        None => Some(0).filter(|_| !params.is_empty()),
    };
    let mut outputs: Vec<(usize, Output)> = vec![];
    for (named, at) in shape.outputs.iter().filter_map(|named| Some((named, position(named)?))) {
        let role = if named.save { Role::Saved } else { Role::Returned };
        outputs.push((at, Output { role, ..params[at].clone() }));
    }
    outputs.sort_by_key(|(_, output)| output.role == Role::Saved);
    let changed: Vec<Output> = changed(signature).collect();
    for slot in &mut signature.params {
        if let Slot::Output(param) = slot {
            *param = changed.len() + outputs.iter().position(|(at, _)| at == param).unwrap_or_default();
        }
    }
    let mut outputs: Vec<Output> = outputs.into_iter().map(|(_, output)| output).collect();
    if signature.inputs.iter().any(|input| input.core == Core::Columns) {
        let is_number = |o: &Output| shape.output(&text(&o.ident), 0).is_some_and(|named| named.dims.core.is_empty());
        outputs.iter_mut().filter(|o| o.core == Core::Slice && is_number(o)).for_each(|o| o.core = Core::Results);
    }
    changed.into_iter().chain(outputs).collect()
}

/// An input or output extends along the row if it has a core dimension.
fn rows(shape: Option<&Shape>, signature: &mut Signature, mut outputs: Vec<Output>) -> Vec<Output> {
    let Some(shape) = shape else { return outputs };
    let core = |dims: Option<&NamedDims>| match dims {
        Some(named) if !named.dims.core.is_empty() => Core::Slice,
        _ => Core::Scalar,
    };
    for input in &mut signature.inputs {
        input.core = core(shape.input(&text(&input.ident)));
    }
    for (k, output) in outputs.iter_mut().enumerate() {
        output.core = core(shape.output(&text(&output.ident), k));
    }
    outputs
}

// The gradient.

fn gradient(op: &Op, clause: Option<Backward>, diag: &mut Diag) -> Gradient {
    let derivable = op.returned().any(|(_, o)| op.is_differentiable(o.elem))
        && op.inputs.iter().any(|i| op.is_differentiable(i.elem));
    let name = &op.name;
    match clause {
        Some(Backward::None) => Gradient::None(format!("'{name}' is defined without a gradient (backward = none)")),
        Some(Backward::Function(mode, path)) => Gradient::Function(mode, path),
        Some(Backward::Formula(formula)) => Gradient::Formula(formula),
        Some(Backward::Auto(word)) if op.inputs.iter().any(|i| i.mutated) => {
            diag.error(word, &messages::NOT_DERIVABLE_IN_PLACE, &[]);
            Gradient::NotNeeded
        }
        _ if op.inputs.iter().any(|i| i.mutated) => Gradient::None(format!("'{name}' changes its arguments in place")),
        _ if op.level == Level::Tensor => Gradient::Composite,
        _ if !derivable => Gradient::NotNeeded,
        _ if op.level == Level::Cell && op.program.is_none() => of_cells(op, diag),
        _ => Gradient::Derived,
    }
}

/// The derived gradient of a cell body. A tape has numbers of one dtype, so all differentiable tensors must have it.
fn of_cells(op: &Op, diag: &mut Diag) -> Gradient {
    if op.is_of_columns() {
        diag.error(op.ident(), &messages::NOT_DERIVABLE_COLUMNS, &[]);
    }
    let variable = op.generics.iter().position(Generic::is_differentiable).map(Elem::Generic);
    let inputs = op.inputs.iter().map(|input| (&input.ident, input.elem));
    let tensors = inputs.chain(op.outputs.iter().map(|output| (&output.ident, output.elem)));
    let others = tensors.filter(|(_, elem)| op.is_differentiable(*elem) && Some(*elem) != variable);
    for (ident, _) in others {
        diag.error(ident, &messages::NOT_DERIVABLE, &[ident]);
    }
    Gradient::Derived
}
