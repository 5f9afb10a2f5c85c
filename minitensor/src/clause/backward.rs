//! The `backward` clause: reads a formula into the tree that is evaluated.

use std::borrow::Cow;
use std::sync::Arc;

use minitensor_schema::gradient::{self, Bound, Name, NodeKind};
use minitensor_schema::grammar::{Dialect, FORMULA_EXAMPLE};
use minitensor_schema::{Attr, check};

use super::Clause;
use super::gradient::{Callee, Gradient, Let, Node, Value};
use crate::error::Result;
use crate::op::{self, Backward, BackwardBody, Dim, List, OpDef, ShapeRule};

/// Reads `|d| { x: d * x.cos() }`, or `none`. All other parts of the op must be known.
///
/// # Errors
/// The errors that the macro reports, with the position in the text. An unknown op is reported at the first call.
pub fn backward(op: &OpDef, text: &str) -> Result<Backward> {
    if text.trim() == "none" {
        let reason = format!("'{}' is defined without a gradient (backward = none)", op.name);
        return Ok(Backward::None(Cow::Owned(reason)));
    }
    let clause = Clause::new(op, "backward", text)?;
    let mut parser = clause.parser(FORMULA_EXAMPLE);
    let formula = parser.formula().and_then(|formula| parser.finish().map(|()| formula));
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
        slots: resolved.slots,
        entries: resolved.entries.into_iter().map(|entry| (entry.input, node(entry.value, &dims))).collect(),
        lets: resolved.lets.into_iter().map(|bound| binding(bound, &dims)).collect(),
    };
    let run = BackwardBody::Shared(Arc::new(move |call| gradient.run(call)));
    Ok(Backward::Formula(op::Formula { run, saved_inputs, saved_outputs, without }))
}

/// The names of the dimensions of the inputs.
fn dims(op: &OpDef) -> Vec<&str> {
    let ShapeRule::Core(shapes) = &op.shape else { return Vec::new() };
    let dims = shapes.inputs.iter().flat_map(|input| input.core.iter());
    dims.filter_map(|dim| if let Dim::Name(name) = dim { Some(name.as_ref()) } else { None }).collect()
}

fn binding(bound: gradient::Let, dims: &[&str]) -> Let {
    let value = match bound.value {
        Bound::One(value) => Value::Each(vec![node(value, dims)]),
        Bound::Each(values) => Value::Each(nodes(values, dims)),
        Bound::Outputs(call) => Value::Outputs(node(call, dims)),
    };
    Let { slots: bound.slots, value, users: bound.users }
}

fn nodes(all: Vec<gradient::Node>, dims: &[&str]) -> Vec<Node> {
    all.into_iter().map(|each| node(each, dims)).collect()
}

fn node(of: gradient::Node, dims: &[&str]) -> Node {
    let boxed = |of: Box<gradient::Node>| Box::new(node(*of, dims));
    match of.kind {
        NodeKind::Name(Name::Dim(i)) => Node::Dim(dims[i].to_owned()),
        NodeKind::Name(name) => Node::Name(name),
        NodeKind::Const(value) => Node::Const(value),
        NodeKind::Property(of, property) => Node::Property(boxed(of), property),
        NodeKind::IsNone(of, wanted) => Node::IsNone(boxed(of), wanted),
        NodeKind::List(items) => Node::List(nodes(items, dims)),
        NodeKind::Call { op, args, keywords, .. } => {
            let keywords = keywords.into_iter().map(|(name, value)| (name, node(value, dims))).collect();
            Node::Call(Callee::new(op), nodes(args, dims), keywords)
        }
        NodeKind::Operator(sign, args) => Node::Operator(sign, nodes(args, dims)),
        NodeKind::Index(parts) => Node::Index(Box::new(parts.map(|part| node(part, dims)))),
        NodeKind::If(parts) => Node::If(Box::new(parts.map(|part| node(part, dims)))),
        NodeKind::Block(lets, value) => {
            Node::Block(lets.into_iter().map(|bound| binding(bound, dims)).collect(), boxed(value))
        }
        // The grammar of text clauses has none of these.
        NodeKind::IfLet(..) | NodeKind::Match(..) | NodeKind::Rust(_) => Node::Const(Attr::None),
    }
}
