//! The clauses `shape`, `axis` and `where`.

use minitensor_schema::grammar::Shape;
use minitensor_schema::{At, Problem, check, message};
use quote::ToTokens;

use crate::ast::{Core, Level, Op, Role, spelling, text};
use crate::diag::{Diag, messages};
use crate::parse::Clauses;
use crate::source::Clause;

/// Every tensor must have dimensions in the clause, and every dimension must have a size.
pub fn shape(op: &Op, diag: &mut Diag) {
    let Some(shape) = &op.shape else { return };
    if op.level == Level::Element {
        let at = shape.inputs.first().map_or(At::Op, |input| At::Tokens(input.at));
        return diag.problems(op, Some(&shape.source), &[Problem::new(at, &message::ELEMENT_SHAPE, &[])]);
    }
    diag.problems(op, Some(&shape.source), &check::shape(&op.signature().view(), shape));
    if op.level == Level::Cell {
        ranks(op, shape, diag);
        changed(op, shape, diag);
    }
}

/// Cells run at the same time, so each must have its own part of an input that is changed in place.
fn changed(op: &Op, shape: &Clause<Shape>, diag: &mut Diag) {
    let has_batch = shape.inputs.iter().any(|input| input.dims.batch);
    for input in op.inputs.iter().filter(|input| input.mutated) {
        if let Some(program) = &op.program {
            diag.error(program, &messages::CHANGED_PROGRAM, &[&input.ident]);
        }
        if let Some(named) = shape.input(&text(&input.ident)).filter(|named| has_batch && !named.dims.batch) {
            diag.error(shape.source.anchor(named.dims.at), &messages::CHANGED_BATCH, &[&input.ident]);
        }
    }
}

/// A type must have the number of dimensions that the clause declares.
fn ranks(op: &Op, shape: &Clause<Shape>, diag: &mut Diag) {
    let inputs = op.inputs.iter().filter_map(|i| Some((&i.ident, i.core, &shape.input(&text(&i.ident))?.dims)));
    let outputs = op.outputs.iter().filter(|o| !matches!(o.role, Role::Mutates(_)));
    let outputs = outputs.filter_map(|o| Some((&o.ident, o.core, &shape.output(&text(&o.ident), 0)?.dims)));
    for (name, core, dims) in inputs.chain(outputs) {
        let (rank, parameter, at) = (dims.core.len(), parameter_type(op, name), shape.source.anchor(dims.at));
        let is_returned = || op.results().iter().any(|k| op.outputs[*k].ident == *name);
        match core {
            Core::Scalar if rank != 0 && is_returned() => {
                let returned = spelling(&op.function.sig.output).replace("->", "");
                diag.error(at, &messages::RANK_RETURNED, &[name, &rank, &returned, name]);
            }
            Core::Scalar if rank != 0 => diag.error(at, &messages::RANK, &[name, &rank, &parameter, &0]),
            Core::View(has) if rank != has => diag.error(at, &messages::RANK, &[name, &rank, &parameter, &has]),
            Core::Columns if rank != 1 => diag.error(at, &messages::RANK, &[name, &rank, &parameter, &1]),
            Core::Scalar | Core::Slice | Core::View(_) if op.is_of_columns() => {
                diag.error(name, &messages::COLUMNS, &[name, &parameter]);
            }
            Core::Slice if rank == 0 => diag.error(at, &messages::RANK_SLICE, &[name, &parameter]),
            _ => {}
        }
    }
}

fn parameter_type(op: &Op, name: &syn::Ident) -> String {
    let typed = op.function.sig.inputs.iter().find_map(|arg| match arg {
        syn::FnArg::Typed(arg) if matches!(&*arg.pat, syn::Pat::Ident(p) if p.ident == *name) => Some(&*arg.ty),
        _ => None,
    });
    typed.map(spelling).unwrap_or_default()
}

/// There must be one core dimension, along an axis that the caller chooses. If the caller may choose several axes, all
/// tensors must have the same dimension.
pub fn axis(op: &Op, clauses: &Clauses, diag: &mut Diag) {
    let Some(clause) = &clauses.axis else { return };
    let Some(shape) = op.shape.as_ref().filter(|_| op.level != Level::Element) else {
        return diag.error(&clause.word, &messages::AXIS_LEVEL, &[]);
    };
    let signature = op.signature();
    let shapes = check::core_shapes(&signature.view(), shape);
    if let Some(Problem { at, sentence }) = check::axis(&signature.view(), &shapes, clause.default.is_none()) {
        let named = match at {
            At::Input(i) => shape.input(&text(&op.inputs[i].ident)),
            At::Output(k) => shape.output(&text(&op.outputs[k].ident), k),
            _ => None,
        };
        let at = named.map_or_else(|| clause.word.to_token_stream(), |named| shape.source.anchor(named.dims.at));
        return diag.sentence(at, &sentence);
    }
    for extra in ["axis", "keepdims"] {
        let added = extra == "axis" || op.axis.as_ref().is_some_and(|a| a.keepdims);
        if let Some(attr) = op.attrs.iter().find(|a| added && a.ident == extra) {
            diag.error(&attr.ident, &message::DOUBLED_NAME, &[&attr.ident]);
        }
    }
}

/// Results for parts of a row only exist if there is one row, and one number for it.
pub fn combine(op: &Op, clauses: &Clauses, diag: &mut Diag) {
    let Some(word) = &clauses.combine else { return };
    let reduces =
        matches!((&op.inputs[..], &op.outputs[..]), ([x], [out]) if x.core.is_along() && !out.core.is_along());
    if op.axis.is_none() || !reduces {
        diag.error(word, &messages::COMBINE_LEVEL, &[]);
    }
}

/// Conditions may only use dimensions and numeric attributes.
pub fn predicates(op: &Op, diag: &mut Diag) {
    let signature = op.signature();
    for clause in &op.predicates {
        let shape = op.shape.as_ref().map(|s| &s.tree);
        diag.problems(op, Some(&clause.source), &check::predicates(&signature.view(), shape, clause));
    }
}
