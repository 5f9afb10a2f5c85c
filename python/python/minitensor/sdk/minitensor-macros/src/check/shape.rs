//! The clauses `shape`, `axis` and `where`.

use syn::Ident;

use crate::ast::{AttrKind, Core, Level, Op, Role, spelling, text};
use crate::diag::{Diag, list, messages, suggestion};
use crate::parse::Clauses;
use crate::shape::{Dim, NamedDims, Shape};

/// Every tensor has its dimensions, and every dimension a size.
pub fn shape(op: &Op, diag: &mut Diag) {
    let Some(shape) = &op.shape else { return };
    if op.level == Level::Element {
        let first = shape.inputs.first().and_then(|i| i.name.as_ref()).unwrap_or(op.ident());
        return diag.error(first, &messages::ELEMENT_SHAPE, &[]);
    }
    arguments(op, shape, diag);
    if op.level == Level::Cell {
        ranks(op, shape, diag);
    } else if shape.outputs.len() != op.returned().count() {
        let last = shape.outputs.last().map(|o| &o.dims.tokens);
        diag.error(last, &messages::SHAPE_COUNT, &[&shape.outputs.len(), &op.returned().count()]);
    }
    dimensions(op, shape, diag);
}

/// The clause speaks of the op's tensors, of each once.
fn arguments(op: &Op, shape: &Shape, diag: &mut Diag) {
    let names: Vec<_> = op.inputs.iter().map(|i| text(&i.ident)).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    for (i, NamedDims { name, save, .. }) in shape.inputs.iter().enumerate() {
        let Some(name) = name else { continue };
        if *save {
            diag.error(name, &messages::SAVED_INPUT, &[]);
        }
        if !op.inputs.iter().any(|input| input.ident == *name) {
            diag.error(name, &messages::UNKNOWN_INPUT, &[name, &suggestion(&text(name), &names)]);
        }
        twice(name, &shape.inputs[..i], diag);
    }
    for (i, output) in shape.outputs.iter().enumerate() {
        if let Some(name) = &output.name {
            twice(name, &shape.outputs[..i], diag);
        }
    }
    for input in &op.inputs {
        if shape.input(&input.ident).is_none() {
            diag.error(&input.ident, &messages::INPUT_NOT_IN_SHAPE, &[&input.ident, &input.ident]);
        }
    }
}

fn twice(name: &Ident, before: &[NamedDims], diag: &mut Diag) {
    if before.iter().any(|b| b.name.as_ref() == Some(name)) {
        diag.error(name, &messages::SHAPE_TWICE, &[name]);
    }
}

/// A type has as many dimensions as the clause gives it.
fn ranks(op: &Op, shape: &Shape, diag: &mut Diag) {
    let inputs = op.inputs.iter().filter_map(|i| Some((&i.ident, i.core, &shape.input(&i.ident)?.dims)));
    let outputs = op.outputs.iter().filter(|o| !matches!(o.role, Role::Mutates(_))).filter_map(|o| {
        let named = shape.outputs.iter().find(|s| s.name.as_ref() == Some(&o.ident));
        let unnamed = shape.outputs.first().filter(|s| s.name.is_none());
        Some((&o.ident, o.core, &named.or(unnamed)?.dims))
    });
    for (name, core, dims) in inputs.chain(outputs) {
        let (rank, parameter) = (dims.core.len(), parameter_type(op, name));
        match core {
            Core::Scalar if rank != 0 => diag.error(&dims.tokens, &messages::RANK, &[name, &rank, &parameter, &0]),
            Core::View(has) if rank != has => {
                diag.error(&dims.tokens, &messages::RANK, &[name, &rank, &parameter, &has])
            }
            Core::Slice if rank == 0 => diag.error(&dims.tokens, &messages::RANK_SLICE, &[name, &parameter]),
            _ => {}
        }
    }
}

fn parameter_type(op: &Op, name: &Ident) -> String {
    let typed = op.function.sig.inputs.iter().find_map(|arg| match arg {
        syn::FnArg::Typed(arg) if matches!(&*arg.pat, syn::Pat::Ident(p) if p.ident == *name) => Some(&*arg.ty),
        _ => None,
    });
    typed.map(spelling).unwrap_or_default()
}

/// Inputs bind dimensions, or attributes are them.
fn dimensions(op: &Op, shape: &Shape, diag: &mut Diag) {
    let bound = shape.bound();
    let known: Vec<String> = bound.iter().map(|d| text(d)).collect();
    let mut reported: Vec<&Ident> = vec![];
    let all = shape.inputs.iter().chain(&shape.outputs).flat_map(|named| &named.dims.core).flat_map(Dim::names);
    for name in all {
        if reported.contains(&name) {
            continue;
        }
        let attr = op.attrs.iter().find(|a| a.ident == *name);
        match attr.map(|a| a.kind) {
            Some(AttrKind::Int | AttrKind::Size) => continue,
            Some(AttrKind::Float) => diag.error(name, &messages::DIM_IS_FLOAT, &[name]),
            Some(_) => {
                let ty = attr.map(|a| spelling(&a.ty)).unwrap_or_default();
                diag.error(name, &messages::DIM_IS_ATTR, &[name, &ty]);
            }
            None if bound.contains(&name) => continue,
            None => {
                let names: Vec<&str> = known.iter().map(String::as_str).collect();
                diag.error(name, &messages::UNBOUND, &[name, &suggestion(&text(name), &names)]);
            }
        }
        reported.push(name);
    }
}

/// One core dimension, along an axis that the caller may choose; where that may be several axes, of one size everywhere.
pub fn axis(op: &Op, clauses: &Clauses, diag: &mut Diag) {
    let Some(clause) = &clauses.axis else { return };
    let Some(shape) = op.shape.as_ref().filter(|_| matches!(op.level, Level::Cell | Level::Row)) else {
        return diag.error(&clause.word, &messages::AXIS_LEVEL, &[]);
    };
    let only = shape.inputs.iter().chain(&shape.outputs).flat_map(|n| &n.dims.core).next().map(Dim::to_string);
    for named in shape.inputs.iter().chain(&shape.outputs) {
        let fits = match &named.dims.core[..] {
            [] => true,
            [dim @ Dim::Name(_)] => clause.default.is_some() || Some(dim.to_string()) == only,
            _ => false,
        };
        if !fits {
            let name = named.name.as_ref().map_or_else(|| "the output".to_owned(), text);
            return diag.error(&named.dims.tokens, &messages::AXIS_DIMENSION, &[&name, &named.dims]);
        }
    }
    for extra in ["axis", "keepdims"] {
        let added = extra == "axis" || op.axis.as_ref().is_some_and(|a| a.keepdims);
        if let Some(attr) = op.attrs.iter().find(|a| added && a.ident == extra) {
            diag.error(&attr.ident, &messages::DOUBLED_NAME, &[&attr.ident]);
        }
    }
}

/// Conditions are on dimensions and on numbers among the attributes.
pub fn predicates(op: &Op, diag: &mut Diag) {
    let dims: Vec<&Ident> = op.shape.iter().flat_map(Shape::bound).collect();
    for predicate in &op.predicates {
        for name in [predicate.left.names(), predicate.right.names()].concat() {
            match op.attrs.iter().find(|a| a.ident == *name) {
                Some(attr) if matches!(attr.kind, AttrKind::Int | AttrKind::Size | AttrKind::Float) => {}
                Some(attr) => {
                    diag.error(name, &messages::PREDICATE_ATTR, &[name, &spelling(&attr.ty)]);
                }
                None if dims.contains(&name) => {}
                None => {
                    let known = dims.iter().map(|d| text(d)).chain(op.attrs.iter().map(|a| text(&a.ident)));
                    let known: Vec<String> = known.collect();
                    let names: Vec<&str> = known.iter().map(String::as_str).collect();
                    let help = match names.len() {
                        0 => format!("the op has neither; what stands there must be one of {}", list(&["n"])),
                        _ => suggestion(&text(name), &names),
                    };
                    diag.error(name, &messages::UNKNOWN_IN_PREDICATE, &[name, &help]);
                }
            }
        }
    }
}
