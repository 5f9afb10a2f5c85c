//! Checks the `backward` clause against the op that it differentiates.

use super::resolve::{Resolved, resolve};
use crate::gradient::Gradient;
use crate::grammar::{Dialect, Formula, Tokens};
use crate::message::{self, counted};
use crate::problem::{At, Problem};
use crate::signature::{Arity, Signature};
use crate::suggestion::suggestion;

/// Checks a formula: it must have one cotangent for each output, and one gradient for each differentiable input.
pub fn formula(op: &Signature<'_>, formula: &Formula) -> Vec<Problem> {
    let mut problems = Vec::new();
    let (taken, returned) = (formula.cotangents.len(), op.visible().count());
    if taken != returned {
        let at = formula.cotangents.last().map_or(At::Op, |(_, at)| At::Tokens(*at));
        let counts = [counted(taken, "cotangent"), counted(returned, "output")];
        problems.push(Problem::new(at, &message::COTANGENTS, &[&counts[0], &counts[1]]));
    }
    let names: Vec<&str> = op.inputs.iter().map(|i| i.name.as_ref()).collect();
    for (i, entry) in formula.entries.iter().enumerate() {
        let (name, at) = (&entry.input, entry.at);
        let problem = match op.inputs.iter().find(|input| input.name == *name) {
            None if op.attrs.iter().any(|a| a.name == *name) => {
                Some(Problem::tokens(at, &message::GRADIENT_OF_ATTR, &[name]))
            }
            None => Some(Problem::tokens(at, &message::GRADIENT_OF_UNKNOWN, &[name, &suggestion(name, &names)])),
            Some(input) if entry.value.is_some() && !op.is_differentiable(input.dtype) => {
                Some(Problem::tokens(at, &message::GRADIENT_OF_INTEGER, &[name, name]))
            }
            Some(_) => None,
        };
        problems.extend(problem);
        if formula.entries[..i].iter().any(|before| before.input == *name) {
            problems.push(Problem::tokens(at, &message::GRADIENT_TWICE, &[name]));
        }
    }
    for (i, input) in op.inputs.iter().enumerate() {
        let name = &input.name;
        if input.arity == Arity::Variadic {
            problems.push(Problem::new(At::Input(i), &message::FORMULA_VARIADIC, &[name]));
        } else if op.is_differentiable(input.dtype) && formula.entries.iter().all(|e| e.input != *name) {
            problems.push(Problem::new(At::Input(i), &message::GRADIENT_MISSING, &[name, name]));
        }
    }
    problems
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
