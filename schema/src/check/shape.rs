//! Checks the clauses `shape` and `where` against the op that they describe.

use std::borrow::Cow;

use crate::grammar::{self, DimKind, NamedDims};
use crate::message::{self, counted};
use crate::problem::{At, Extent, Problem};
use crate::shape::{CoreShapes, Dim, Dims, Predicate};
use crate::signature::{List, Role, Signature};
use crate::suggestion::suggestion;

/// Checks a `shape` clause: it must mention every tensor once, and the size of every dimension must be known.
pub fn shape(op: &Signature<'_>, shape: &grammar::Shape) -> Vec<Problem> {
    let mut problems = Vec::new();
    inputs(op, shape, &mut problems);
    problems.extend(outputs(op, shape));
    dimensions(op, shape, &mut problems);
    problems
}

fn inputs(op: &Signature<'_>, shape: &grammar::Shape, problems: &mut Vec<Problem>) {
    let names: Vec<&str> = op.inputs.iter().map(|i| i.name.as_ref()).collect();
    for (i, NamedDims { name, at, save, .. }) in shape.inputs.iter().enumerate() {
        let Some(name) = name else { continue };
        if *save {
            problems.push(Problem::tokens(*at, &message::SAVED_INPUT, &[name]));
        }
        if op.attr(name).is_some() {
            problems.push(Problem::tokens(*at, &message::SHAPE_OF_ATTR, &[name]));
        } else if !names.contains(&name.as_str()) {
            problems.push(Problem::tokens(*at, &message::UNKNOWN_INPUT, &[name, &suggestion(name, &names)]));
        }
        twice(name, *at, &shape.inputs[..i], problems);
    }
    for (i, name) in names.iter().enumerate().filter(|(_, name)| shape.input(name).is_none()) {
        problems.push(Problem::new(At::Input(i), &message::INPUT_NOT_IN_SHAPE, &[name, name]));
    }
}

/// Checks the outputs of a `shape` clause: it must mention every output once.
pub fn outputs(op: &Signature<'_>, shape: &grammar::Shape) -> Vec<Problem> {
    let mut problems = Vec::new();
    // An output that is an input changed in place has the dimensions of the input, so it need not be mentioned.
    let own = op.outputs.iter().enumerate().filter(|(_, o)| !matches!(o.role, Role::Mutates(_)));
    let own: Vec<(usize, &str)> = own.map(|(k, o)| (k, o.name.as_ref())).collect();
    let names: Vec<&str> = op.outputs.iter().map(|o| o.name.as_ref()).collect();
    if let ([NamedDims { name: None, dims, .. }], [(_, first), _, ..]) = (&shape.outputs[..], &own[..]) {
        problems.push(Problem::tokens(dims.at, &message::NAME_OUTPUTS, &[&own.len(), first, dims]));
        return problems;
    }
    // The output of the variant of an op that works in place is not named after its input.
    let changed = names.iter().find(|name| op.inputs.iter().any(|input| input.name == **name));
    if let ([NamedDims { name: None, dims, .. }], [], Some(changed)) = (&shape.outputs[..], &own[..], changed) {
        problems.push(Problem::tokens(dims.at, &message::NO_OUTPUT, &[dims, changed]));
        return problems;
    }
    let is_changed = |o: &&NamedDims| o.name.as_ref().is_some_and(|name| op.inputs.iter().any(|i| i.name == *name));
    let (count, last) = (shape.outputs.iter().filter(|o| !is_changed(o)).count(), shape.outputs.last());
    if let (true, Some(NamedDims { name: Some(_), at, .. })) = (count > own.len() && !own.is_empty(), last) {
        let counts = [counted(count, "output"), counted(own.len(), "value")];
        problems.push(Problem::tokens(*at, &message::MORE_OUTPUTS, &[&counts[0], &counts[1]]));
        return problems;
    }
    for (i, NamedDims { name, at, .. }) in shape.outputs.iter().enumerate() {
        let Some(name) = name else { return problems };
        if !names.contains(&name.as_str()) {
            problems.push(Problem::tokens(*at, &message::UNKNOWN_OUTPUT, &[name, &suggestion(name, &names)]));
        }
        twice(name, *at, &shape.outputs[..i], &mut problems);
    }
    let has_unknown = shape.outputs.iter().any(|o| o.name.as_ref().is_some_and(|n| !names.contains(&n.as_str())));
    let is_mentioned = |name: &str| shape.outputs.iter().any(|o| o.name.as_deref() == Some(name));
    // A misspelled output explains a missing one, so only one problem is reported.
    for (k, name) in own.iter().filter(|(_, name)| !has_unknown && !is_mentioned(name)) {
        problems.push(Problem::new(At::Output(*k), &message::OUTPUT_NOT_IN_SHAPE, &[name, name]));
    }
    problems
}

fn twice(name: &str, at: Extent, before: &[NamedDims], problems: &mut Vec<Problem>) {
    if before.iter().any(|b| b.name.as_deref() == Some(name)) {
        problems.push(Problem::tokens(at, &message::SHAPE_TWICE, &[&name]));
    }
}

/// Every dimension must be bound by an input, or be an attribute.
fn dimensions(op: &Signature<'_>, shape: &grammar::Shape, problems: &mut Vec<Problem>) {
    let bound: Vec<&str> = shape.bound().iter().map(|(name, _)| *name).collect();
    let mut reported: Vec<&str> = Vec::new();
    let names = shape.arguments().flat_map(|named| &named.dims.core).flat_map(grammar::Dim::names);
    for (name, at) in names {
        let problem = match op.attr(name) {
            _ if reported.contains(&name) => continue,
            Some((_, attr)) if attr.kind.is_whole() => continue,
            Some((_, attr)) if attr.kind.is_tuned() => Problem::tokens(at, &message::IS_TUNED, &[&name]),
            Some(_) => Problem::tokens(at, &message::DIM_IS_ATTR, &[&name]),
            None if bound.contains(&name) => continue,
            None => match computed_input(shape, name) {
                Some(computed) => Problem::tokens(at, &message::UNBOUND_INPUT, &[&name, &name, computed]),
                None => {
                    let attrs = op.attrs.iter().filter(|a| a.kind.is_whole()).map(|a| a.name.as_ref());
                    let known: Vec<&str> = bound.iter().copied().chain(attrs).collect();
                    Problem::tokens(at, &message::UNBOUND, &[&name, &suggestion(name, &known)])
                }
            },
        };
        problems.push(problem);
        reported.push(name);
    }
}

/// The arithmetic on a dimension in an input, such as `n + 1`.
fn computed_input<'a>(shape: &'a grammar::Shape, name: &str) -> Option<&'a grammar::Dim> {
    let dims = shape.inputs.iter().flat_map(|input| &input.dims.core);
    let mentions = |dim: &&grammar::Dim| dim.names().iter().any(|(mentioned, _)| *mentioned == name);
    dims.filter(|dim| matches!(dim.kind, DimKind::Op(..))).find(mentions)
}

/// Checks conditions: they may only compare dimensions and numeric attributes.
pub fn predicates(
    op: &Signature<'_>,
    shape: Option<&grammar::Shape>,
    predicates: &[grammar::Predicate],
) -> Vec<Problem> {
    let bound: Vec<&str> = shape.iter().flat_map(|s| s.bound()).map(|(name, _)| name).collect();
    let names = predicates.iter().flat_map(|p| [p.left.names(), p.right.names()].concat());
    let problem = |(name, at): (&str, Extent)| match op.attr(name) {
        Some((_, attr)) if attr.kind.is_number() => None,
        Some((_, attr)) if attr.kind.is_tuned() => Some(Problem::tokens(at, &message::IS_TUNED, &[&name])),
        Some(_) => Some(Problem::tokens(at, &message::PREDICATE_ATTR, &[&name])),
        None if bound.contains(&name) => None,
        None if op.inputs.iter().any(|i| i.name == name) => {
            Some(Problem::tokens(at, &message::PREDICATE_TENSOR, &[&name]))
        }
        None => {
            let known: Vec<&str> = bound.iter().copied().chain(op.attrs.iter().map(|a| a.name.as_ref())).collect();
            Some(Problem::tokens(at, &message::UNKNOWN_IN_PREDICATE, &[&name, &suggestion(name, &known)]))
        }
    };
    names.filter_map(problem).collect()
}

/// The dimensions in the order of the op, for a clause without problems.
pub fn core_shapes(op: &Signature<'_>, shape: &grammar::Shape) -> CoreShapes {
    let dims = |named: Option<&NamedDims>| {
        let named = named.map(|n| &n.dims);
        Dims { batch: named.is_some_and(|d| d.batch), core: list(named.map_or(&[], |d| &d.core), |d| dim(op, d)) }
    };
    let own = |name: &str, k: usize| shape.output(name, k.min(shape.outputs.len().saturating_sub(1)));
    let outputs = op.outputs.iter().enumerate().map(|(k, output)| match output.role {
        Role::Mutates(i) => dims(op.inputs.get(usize::from(i)).and_then(|input| shape.input(&input.name))),
        _ => dims(own(&output.name, k)),
    });
    CoreShapes {
        inputs: list(op.inputs, |input| dims(shape.input(&input.name))),
        outputs: outputs.collect(),
        text: Cow::Owned(shape.to_string()),
    }
}

impl Predicate {
    /// A condition as data, for a clause without problems.
    pub fn of(op: &Signature<'_>, predicate: &grammar::Predicate) -> Predicate {
        let grammar::Predicate { left, relation, right, .. } = predicate;
        let text = Cow::Owned(predicate.to_string());
        Predicate { left: dim(op, left), relation: *relation, right: dim(op, right), text }
    }
}

fn dim(op: &Signature<'_>, written: &grammar::Dim) -> Dim {
    match &written.kind {
        DimKind::Name(name) => match op.attr(name) {
            Some((i, _)) => Dim::Attr(i),
            None => Dim::Name(Cow::Owned(name.clone())),
        },
        DimKind::Int(value) => Dim::Int(*value),
        DimKind::Float(value) => Dim::Float(*value),
        DimKind::Op(sign, sides) => Dim::Op(*sign, list(&sides[..], |side| dim(op, side))),
    }
}

fn list<A, B: Clone + 'static>(items: &[A], of: impl Fn(&A) -> B) -> List<B> {
    Cow::Owned(items.iter().map(of).collect())
}
