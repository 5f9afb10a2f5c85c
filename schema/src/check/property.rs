//! Checks the clauses `linear`, `symmetric` and `replaces`, and resolves their names.

use std::borrow::Cow;

use crate::gradient::{BINARY, UNARY};
use crate::grammar::{Argument, Expr, ExprKind, Group, PropertyClause, Tokens};
use crate::message::{self, Message};
use crate::problem::{At, Problem};
use crate::property::{Pattern, Property};
use crate::shape::CoreShapes;
use crate::signature::{Arity, Role, Signature};
use crate::suggestion::suggestion;

/// The properties that a clause states.
///
/// # Errors
/// The op cannot have such a property.
pub fn properties(
    op: &Signature<'_>,
    shapes: Option<&CoreShapes>,
    tokens: &Tokens,
    clause: &PropertyClause,
) -> Result<Vec<Property>, Problem> {
    match clause {
        PropertyClause::Linear(groups) => groups.iter().map(|group| linear(op, group).map(Property::Linear)).collect(),
        PropertyClause::Symmetric(at) => match is_alike(op, shapes) {
            true => Ok(vec![Property::Symmetric]),
            false => Err(Problem::tokens(*at, &message::NOT_SYMMETRIC, &[])),
        },
        PropertyClause::Replaces(expr) => {
            replaced(op, tokens, expr)?;
            Ok(vec![Property::Replaces(Cow::Owned(tokens.spelled(expr.at)))])
        }
    }
}

/// The positions of the inputs of a group.
fn linear(op: &Signature<'_>, group: &Group) -> Result<Cow<'static, [u8]>, Problem> {
    let mut places = Vec::new();
    for (name, at) in group {
        let known: Vec<&str> = op.inputs.iter().map(|input| input.name.as_ref()).collect();
        let Some(i) = known.iter().position(|known| known == name) else {
            return Err(Problem::tokens(*at, &message::UNKNOWN_INPUT, &[name, &suggestion(name, &known)]));
        };
        let input = &op.inputs[i];
        let results = op.visible().all(|k| op.is_differentiable(op.outputs[k].dtype));
        if input.mutated || !op.is_differentiable(input.dtype) || !results {
            return Err(Problem::tokens(*at, &message::NOT_LINEAR, &[name]));
        }
        places.push(i as u8);
    }
    Ok(Cow::Owned(places))
}

/// Whether all inputs take the same tensors.
fn is_alike(op: &Signature<'_>, shapes: Option<&CoreShapes>) -> bool {
    let [first, rest @ ..] = op.inputs else { return false };
    let dims = |i: usize| shapes.map(|shapes| &shapes.inputs[i]);
    let is_one = |i: usize| op.inputs[i].arity == Arity::One && !op.inputs[i].mutated && dims(i) == dims(0);
    !rest.is_empty() && (0..op.inputs.len()).all(is_one) && rest.iter().all(|input| input.dtype == first.dtype)
}

/// The expression of `replaces` with its names resolved.
///
/// # Errors
/// It is not a call of an op, has unknown names, or does not determine all arguments of the op.
pub fn replaced(op: &Signature<'_>, tokens: &Tokens, expr: &Expr) -> Result<Pattern, Problem> {
    let wrong = |message: &'static Message| Problem::tokens(expr.at, message, &[&tokens.spelled(expr.at)]);
    let pattern = resolved(op, tokens, expr)?;
    let returned = op.outputs.iter().filter(|output| output.role != Role::Saved).count();
    if !matches!(pattern, Pattern::Call { .. }) || returned != 1 {
        return Err(wrong(&message::NOT_REPLACED));
    }
    let names = pattern.names();
    let missing = |at: At, name: &str| Problem::new(at, &message::NOT_IN_REPLACED, &[&name, &name]);
    for (i, input) in op.inputs.iter().enumerate() {
        if input.arity == Arity::Variadic || input.mutated {
            return Err(wrong(&message::NOT_REPLACED));
        }
        if input.arity == Arity::One && !names.contains(&Pattern::Input(i)) {
            return Err(missing(At::Input(i), &input.name));
        }
    }
    for (k, attr) in op.attrs.iter().enumerate() {
        let is_known = attr.default.is_some() || attr.optional || names.contains(&Pattern::Attr(k));
        if !is_known {
            return Err(missing(At::Attr(k), &attr.name));
        }
    }
    Ok(pattern)
}

fn resolved(op: &Signature<'_>, tokens: &Tokens, expr: &Expr) -> Result<Pattern, Problem> {
    let call = |table: &[(&str, &str)], sign: &str, args: &[&Expr]| {
        let op_of_sign = table.iter().find(|(known, _)| *known == sign).map_or(sign, |(_, op)| *op).to_owned();
        let args = args.iter().map(|arg| resolved(op, tokens, arg)).collect::<Result<_, _>>()?;
        Ok(Pattern::Call { op: op_of_sign, args, keywords: Vec::new() })
    };
    match &expr.kind {
        ExprKind::Name(name) => {
            let input = op.inputs.iter().position(|input| input.name == *name).map(Pattern::Input);
            let attr = || op.attrs.iter().position(|attr| attr.name == *name).map(Pattern::Attr);
            let inputs = op.inputs.iter().map(|input| input.name.as_ref());
            let known: Vec<&str> = inputs.chain(op.attrs.iter().map(|attr| attr.name.as_ref())).collect();
            let unknown = || Problem::tokens(expr.at, &message::UNKNOWN_NAME, &[name, &suggestion(name, &known)]);
            input.or_else(attr).ok_or_else(unknown)
        }
        ExprKind::Int(value) => Ok(Pattern::Const((*value).into())),
        ExprKind::Float(value) => Ok(Pattern::Const((*value).into())),
        ExprKind::Const(value) => Ok(Pattern::Const(value.clone())),
        ExprKind::Unary { sign, inner, .. } => match (*sign, &inner.kind) {
            ("-", ExprKind::Int(value)) => Ok(Pattern::Const(value.wrapping_neg().into())),
            ("-", ExprKind::Float(value)) => Ok(Pattern::Const((-value).into())),
            _ => call(UNARY, sign, &[inner]),
        },
        ExprKind::Binary { sign, sides, .. } => call(BINARY, sign, &[&sides[0], &sides[1]]),
        ExprKind::Call { name, args, .. } => {
            let (mut positional, mut keywords) = (Vec::new(), Vec::new());
            for Argument { keyword, value } in args {
                let value = resolved(op, tokens, value)?;
                match keyword {
                    Some(keyword) => keywords.push((keyword.clone(), value)),
                    None => positional.push(value),
                }
            }
            Ok(Pattern::Call { op: name.clone(), args: positional, keywords })
        }
        _ => Err(Problem::tokens(expr.at, &message::REPLACED_EXPR, &[&tokens.spelled(expr.at)])),
    }
}
