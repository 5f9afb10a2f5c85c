//! The clauses `backward` and `jvp`: reads a formula into the tree that is evaluated.

use std::borrow::Cow;
use std::sync::Arc;

use minitensor_schema::gradient::{self, Bound, Name, ResolvedKind};
use minitensor_schema::grammar::{Dialect, Mode};
use minitensor_schema::{Attr, check};

use super::Clause;
use super::gradient::{Callee, FormulaExpr, Gradient, Let, LetValue};
use crate::error::Result;
use crate::op::{self, Backward, BackwardBody, Dim, List, OpDef, ShapeRule};

/// Reads `|d| { x: d * x.cos() }`, or `none`; for `jvp`, `|dx| { out: dx * x.cos() }`. All other parts of the op must be known.
///
/// # Errors
/// The errors that the macro reports, with the position in the text. An unknown op is reported at the first call.
pub fn formula(op: &OpDef, mode: Mode, text: &str) -> Result<Backward> {
    if mode == Mode::Reverse && text.trim() == "none" {
        let reason = format!("'{}' is defined without a gradient (backward = none)", op.name);
        return Ok(Backward::None(Cow::Owned(reason)));
    }
    let clause = Clause::new(op, mode.clause(), text)?;
    let mut parser = clause.parser(mode.example());
    let formula = parser.formula(mode).and_then(|formula| parser.finish().map(|()| formula));
    let formula = formula.map_err(|e| clause.error(&e))?;
    let (signature, dims) = (op.schema(), dims(op));
    clause.check(&check::formula(&signature, &formula))?;
    let resolved = check::resolved(&signature, &dims, &clause.tokens, Dialect::Text, &formula);
    let resolved = resolved.map_err(|problems| clause.error(&problems[0]))?;
    let positions = |all: &mut dyn Iterator<Item = usize>| -> List<u8> { all.map(|i| i as u8).collect() };
    let saved_inputs = positions(&mut resolved.saved_inputs.iter().copied());
    let saved_outputs = positions(&mut resolved.saved_outputs.iter().copied());
    let without = positions(&mut resolved.without.iter().copied());
    let gradient = Gradient {
        mode,
        slots: resolved.slots,
        entries: resolved.entries.into_iter().map(|entry| (entry.of, expr(entry.value, &dims))).collect(),
        lets: resolved.lets.into_iter().map(|bound| binding(bound, &dims)).collect(),
    };
    let run = BackwardBody::Clause(Arc::new(move |call| gradient.run(call)), text.trim().into());
    Ok(Backward::Formula(op::Formula { mode, run, saved_inputs, saved_outputs, without }))
}

/// The names of the dimensions of the inputs.
fn dims(op: &OpDef) -> Vec<&str> {
    let ShapeRule::Core(shapes) = &op.shape else { return Vec::new() };
    let dims = shapes.inputs.iter().flat_map(|input| input.core.iter());
    dims.filter_map(|dim| if let Dim::Name(name) = dim { Some(name.as_ref()) } else { None }).collect()
}

fn binding(bound: gradient::Let, dims: &[&str]) -> Let {
    let value = match bound.value {
        Bound::One(value) => LetValue::Each(vec![expr(value, dims)]),
        Bound::Each(values) => LetValue::Each(exprs(values, dims)),
        Bound::Outputs(call) => LetValue::Outputs(expr(call, dims)),
    };
    Let { slots: bound.slots, value, users: bound.users }
}

fn exprs(all: Vec<gradient::ResolvedExpr>, dims: &[&str]) -> Vec<FormulaExpr> {
    all.into_iter().map(|each| expr(each, dims)).collect()
}

fn expr(of: gradient::ResolvedExpr, dims: &[&str]) -> FormulaExpr {
    let boxed = |of: Box<gradient::ResolvedExpr>| Box::new(expr(*of, dims));
    match of.kind {
        ResolvedKind::Name(Name::Dim(i)) => FormulaExpr::Dim(dims[i].to_owned()),
        ResolvedKind::Name(name) => FormulaExpr::Name(name),
        ResolvedKind::Const(value) => FormulaExpr::Const(value),
        ResolvedKind::Property(of, property) => FormulaExpr::Property(boxed(of), property),
        ResolvedKind::IsNone(of, wanted) => FormulaExpr::IsNone(boxed(of), wanted),
        ResolvedKind::List(items) => FormulaExpr::List(exprs(items, dims)),
        ResolvedKind::Call { op, args, keywords, .. } => {
            let keywords = keywords.into_iter().map(|(name, value)| (name, expr(value, dims))).collect();
            FormulaExpr::Call(Callee::new(op), exprs(args, dims), keywords)
        }
        ResolvedKind::Operator(sign, args) => FormulaExpr::Operator(sign, exprs(args, dims)),
        ResolvedKind::Index(parts) => FormulaExpr::Index(Box::new(parts.map(|part| expr(part, dims)))),
        ResolvedKind::If(parts) => FormulaExpr::If(Box::new(parts.map(|part| expr(part, dims)))),
        ResolvedKind::Block(lets, value) => {
            FormulaExpr::Block(lets.into_iter().map(|bound| binding(bound, dims)).collect(), boxed(value))
        }
        // The grammar of text clauses has none of these.
        ResolvedKind::IfLet(..) | ResolvedKind::Match(..) | ResolvedKind::Rust(_) => FormulaExpr::Const(Attr::None),
    }
}
