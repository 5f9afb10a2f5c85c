//! Checks the clauses `backward` and `jvp` against the op that they differentiate.

use super::resolve::{Resolved, resolve};
use crate::gradient::Gradient;
use crate::grammar::{Dialect, Formula, Mode, Tokens};
use crate::message::{self, counted};
use crate::problem::{At, Problem};
use crate::signature::{Arity, DTypeRule, Signature};
use crate::suggestion::suggestion;

/// Checks a formula. A formula for `backward` must have one cotangent for each output, and one gradient for each differentiable input;
/// one for `jvp` must have one tangent for each input, and one for each differentiable output.
pub fn formula(op: &Signature<'_>, formula: &Formula) -> Vec<Problem> {
    let mut problems = given(op, formula);
    let targets = targets(op, formula.mode);
    let names: Vec<&str> = targets.iter().map(|(name, _)| *name).collect();
    let (what, of) = formula.mode.computes();
    for (i, entry) in formula.entries.iter().enumerate() {
        let (name, at) = (&entry.of, entry.at);
        let problem = match targets.iter().find(|(target, _)| target == name) {
            None if op.attrs.iter().any(|a| a.name == *name) => {
                Some(Problem::tokens(at, &message::GRADIENT_OF_ATTR, &[name, &what]))
            }
            None => Some(Problem::tokens(at, &message::GRADIENT_OF_UNKNOWN, &[name, &of, &suggestion(name, &names)])),
            Some((_, dtype)) if entry.value.is_some() && !op.is_differentiable(*dtype) => {
                Some(Problem::tokens(at, &message::GRADIENT_OF_INTEGER, &[name, &what, name]))
            }
            Some(_) => None,
        };
        problems.extend(problem);
        if formula.entries[..i].iter().any(|before| before.of == *name) {
            problems.push(Problem::tokens(at, &message::GRADIENT_TWICE, &[&what, name]));
        }
    }
    for (i, input) in op.inputs.iter().enumerate().filter(|(_, input)| input.arity == Arity::Variadic) {
        problems.push(Problem::new(At::Input(i), &message::FORMULA_VARIADIC, &[&input.name, &formula.mode.clause()]));
    }
    for (name, dtype) in targets {
        let is_list = op.inputs.iter().any(|input| input.name == name && input.arity == Arity::Variadic);
        if !is_list && op.is_differentiable(dtype) && formula.entries.iter().all(|e| e.of != name) {
            let at = op.inputs.iter().position(|input| input.name == name).map_or(At::Op, At::Input);
            problems.push(Problem::new(at, &message::GRADIENT_MISSING, &[&what, &name, &name]));
        }
    }
    problems
}

/// The tensors of which a formula computes gradients or tangents.
fn targets<'a>(op: &'a Signature<'_>, mode: Mode) -> Vec<(&'a str, DTypeRule)> {
    match mode {
        Mode::Reverse => op.inputs.iter().map(|i| (i.name.as_ref(), i.dtype)).collect(),
        Mode::Forward => op.visible().map(|k| (op.outputs[k].name.as_ref(), op.outputs[k].dtype)).collect(),
    }
}

/// Checks the cotangents or tangents that a formula takes.
fn given(op: &Signature<'_>, formula: &Formula) -> Vec<Problem> {
    let taken = formula.given.len();
    let (wanted, message, nouns) = match formula.mode {
        Mode::Reverse => (op.visible().count(), &message::COTANGENTS, ["cotangent", "output"]),
        Mode::Forward => (op.inputs.len(), &message::TANGENTS, ["tangent", "input"]),
    };
    if taken != wanted {
        let at = formula.given.last().map_or(At::Op, |(_, at)| At::Tokens(*at));
        return vec![Problem::new(at, message, &[&counted(taken, nouns[0]), &counted(wanted, nouns[1])])];
    }
    let tangents = formula.given.iter().zip(op.inputs).filter(|_| formula.mode == Mode::Forward);
    tangents
        .filter(|((name, _), input)| name != "_" && !op.is_differentiable(input.dtype))
        .map(|((name, at), input)| Problem::tokens(*at, &message::TANGENT_OF_INTEGER, &[&input.name, name]))
        .collect()
}

/// Resolves the names of a formula, for an op with these names of dimensions.
///
/// # Errors
/// Every problem with the names and values of the formula.
pub fn resolved(
    op: &Signature<'_>,
    dims: &[&str],
    tokens: &Tokens,
    dialect: Dialect,
    formula: &Formula,
) -> Result<Gradient, Vec<Problem>> {
    let Resolved { gradient, problems } = resolve(op, dims, tokens, dialect, formula);
    if problems.is_empty() { Ok(gradient) } else { Err(problems) }
}
