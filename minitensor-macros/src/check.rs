//! Rules that involve several parts of an op. Each rule is a function with a one-sentence description.

mod parameter;
mod row;
mod shape;

use minitensor_schema::name::{check_op, check_word};
use minitensor_schema::{check, message};

use crate::ast::{Arity, Elem, Gradient, Input, Level, Op, Role, spelling, text};
use crate::diag::{Diag, messages};
use crate::expand::{MOST_INPUTS, MOST_OUTPUTS};
use crate::parse::Clauses;

pub fn op(op: &Op, clauses: &Clauses, diag: &mut Diag) {
    doc(op, diag);
    names(op, clauses, diag);
    parameter::order(op, diag);
    parameter::defaults(op, diag);
    element(op, diag);
    row::row(op, diag);
    row::results(op, diag);
    gives_something(op, diag);
    variables(op, diag);
    shape::shape(op, diag);
    shape::axis(op, clauses, diag);
    shape::combine(op, clauses, diag);
    properties(op, diag);
    shape::predicates(op, diag);
    in_place(op, diag);
    formula(op, diag);
}

/// Every op must have documentation.
fn doc(op: &Op, diag: &mut Diag) {
    if op.doc.is_empty() {
        diag.error(op.ident(), &messages::NO_DOC, &[&op.name]);
    }
}

/// Every name must be valid in Python, and unique in the op.
fn names(op: &Op, clauses: &Clauses, diag: &mut Diag) {
    match &clauses.name {
        Some(name) => registered(name, diag),
        None => spelled(op.ident(), "an op", diag),
    }
    clauses.aliases.iter().for_each(|alias| registered(alias, diag));
    for (i, alias) in clauses.aliases.iter().enumerate() {
        if alias.value() == op.name || clauses.aliases[..i].iter().any(|other| other.value() == alias.value()) {
            diag.error(alias, &messages::DOUBLED_ALIAS, &[&alias.value()]);
        }
    }
    op.inputs.iter().for_each(|input| spelled(&input.ident, "an input", diag));
    op.attrs.iter().for_each(|attr| spelled(&attr.ident, "an attribute", diag));
    diag.problems(op, None, &check::signature(&op.signature().view()));
    if op.level != Level::Tensor {
        diag.problems(op, None, check::kernels(&op.signature().view()).as_slice());
    }
    // The body and the formula refer to parameters, outputs and dimensions by name alone.
    let parameters = op.inputs.iter().map(|i| text(&i.ident)).chain(op.attrs.iter().map(|a| text(&a.ident)));
    let mut tensors: Vec<String> = parameters.collect();
    for output in op.outputs.iter().filter(|o| !matches!(o.role, Role::Mutates(_))) {
        if tensors.contains(&text(&output.ident)) {
            diag.error(&output.ident, &message::DOUBLED_NAME, &[&output.ident]);
        }
    }
    tensors.extend(op.outputs.iter().map(|o| text(&o.ident)));
    if let Some(shape) = &op.shape {
        let own = shape.bound().into_iter().filter(|(dim, _)| op.attrs.iter().all(|a| text(&a.ident) != *dim));
        for (dim, at) in own.filter(|(dim, _)| tensors.iter().any(|name| name == dim)) {
            diag.error(shape.source.anchor(at), &message::DOUBLED_NAME, &[&dim]);
        }
    }
}

fn spelled(name: &syn::Ident, what: &str, diag: &mut Diag) {
    if let Err(sentence) = check_word(&text(name), what) {
        diag.sentence(name, &sentence);
    }
}

/// `op` or `ns::op`
fn registered(name: &syn::LitStr, diag: &mut Diag) {
    if let Err(sentence) = check_op(&name.value()) {
        diag.sentence(name, &sentence);
    }
}

/// An op may only have properties that its inputs and outputs admit.
fn properties(op: &Op, diag: &mut Diag) {
    for clause in &op.properties {
        if let Err(problem) = op.properties_of(clause) {
            diag.problems(op, Some(&clause.source), &[problem]);
        }
    }
}

/// An element must be of a dtype variable, and the number of tensors in a loop is limited.
fn element(op: &Op, diag: &mut Diag) {
    if op.level != Level::Element {
        return;
    }
    let is_fixed = |elem| matches!(elem, Elem::Fixed(_));
    if let Some(input) = op.inputs.iter().find(|i| is_fixed(i.elem) && matches!(i.ty, syn::Type::Reference(_))) {
        return diag.error(&input.ty, &messages::CONCRETE, &[&spelling(&input.ty)]);
    }
    let is_stored = op.inputs.iter().any(|i| is_fixed(i.elem)) || op.outputs.iter().any(|o| is_fixed(o.elem));
    let has_variable = op.inputs.iter().any(|i| !is_fixed(i.elem));
    if is_stored && has_variable && (op.precompiled.is_some() || !crate::expand::is_by_program(op)) {
        diag.error(op.ident(), &messages::STORED, &[op.ident()]);
    }
    if let Some(extra) = op.inputs.get(MOST_INPUTS) {
        diag.error(&extra.ident, &messages::TOO_MANY, &[&MOST_INPUTS, &op.inputs.len()]);
    }
    if op.outputs.len() > MOST_OUTPUTS {
        diag.error(&op.function.sig.output, &messages::TOO_MANY, &[&MOST_OUTPUTS, &op.outputs.len()]);
    }
}

/// An op must have an output, or mutate an argument.
fn gives_something(op: &Op, diag: &mut Diag) {
    match op.level {
        Level::Element if op.outputs.is_empty() => diag.error(op.ident(), &messages::RETURNS_NOTHING, &[&op.name]),
        Level::Cell if op.outputs.is_empty() => diag.error(op.ident(), &messages::CELL_FILLS_NOTHING, &[&op.name]),
        Level::Tensor => {
            for input in op.inputs.iter().filter(|i| i.mutated) {
                diag.error(&input.ty, &messages::MUTATED_TENSOR, &[&input.ident]);
            }
        }
        _ => {}
    }
}

/// The inputs must determine the dtype of each variable.
fn variables(op: &Op, diag: &mut Diag) {
    for (i, generic) in op.generics.iter().enumerate() {
        let used = op.inputs.iter().any(|input| matches!(input.elem, Elem::Generic(g) | Elem::Mask(g) if g == i));
        let is_stored = |input: &Input| matches!(input.elem, Elem::Fixed(_)) && !input.is_index();
        if !used && matches!(op.level, Level::Element | Level::Row) && op.inputs.iter().any(is_stored) {
            diag.error(&generic.ident, &messages::ALL_STORED, &[&op.name, &generic.ident]);
        } else if !used {
            diag.error(&generic.ident, &messages::UNUSED_VARIABLE, &[&generic.ident]);
        }
    }
}

/// The in-place form writes its result to its first argument, so both must have one dtype and the same dimensions.
fn in_place(op: &Op, diag: &mut Diag) {
    let Some(word) = &op.inplace else { return };
    if op.level == Level::Tensor {
        return diag.error(word, &messages::INPLACE_LEVEL, &[]);
    }
    if let Some(input) = op.inputs.iter().find(|i| i.mutated) {
        return diag.error(word, &messages::INPLACE_TWICE, &[&input.ident]);
    }
    let returned: Vec<_> = op.returned().collect();
    let (Some(first), [(k, output)]) = (op.inputs.first(), &returned[..]) else {
        return diag.error(word, &messages::INPLACE_OUTPUT, &[]);
    };
    if first.arity != Arity::One || first.elem != output.elem {
        return diag.error(word, &messages::INPLACE_OUTPUT, &[]);
    }
    let Some(shape) = &op.shape else { return };
    let (Some(first), Some(result)) = (shape.input(&text(&first.ident)), shape.output(&text(&output.ident), *k)) else {
        return;
    };
    if first.dims.to_string() != result.dims.to_string() {
        let at = shape.source.anchor(result.dims.at);
        diag.error(at, &messages::INPLACE_SHAPE, &[&result.dims, &first]);
    }
}

/// A formula must have one cotangent for each output, and one gradient for each differentiable input.
fn formula(op: &Op, diag: &mut Diag) {
    if let Gradient::Formula(formula) = &op.gradient {
        diag.problems(op, Some(&formula.source), &check::formula(&op.signature().view(), formula));
    }
}
