//! A formula against the op that it differentiates: what is wrong with it, and the tree that runs.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::expr::{self, Expr, Kind};
use super::formula::Formula;
use super::gradient::{Callee, Gradient, Let, Name, Node, Property};
use super::token::Reader;
use super::{Source, suggestion};
use crate::attr::Attr;
use crate::error::{Error, Result, counted};
use crate::op::{self, Arity, Backward, BackwardBody, Dim, List, OpDef, Role, ShapeRule};

/// Reads `|d| { x: d * x.cos() }`, or `none`, for an op of which all else is known.
///
/// # Errors
/// What the macro would refuse too, with the clause and the place. That there is an op of some name shows at the first call.
pub fn backward(op: &OpDef, text: &str) -> Result<Backward> {
    let source = Source { op: &op.name, clause: "backward", text: text.trim() };
    if source.text == "none" {
        let reason = format!("'{}' is defined without a gradient (backward = none)", op.name);
        return Ok(Backward::None(Cow::Owned(reason)));
    }
    let formula = Formula::read(&mut Reader::new(source)?)?;
    check(op, &source, &formula)?;
    let mut scope = Scope::new(op, source, &formula);
    let mut lets = Vec::new();
    for bound in &formula.lets {
        lets.push(scope.part(|s| s.bind(bound))?);
    }
    let (mut entries, mut without) = (Vec::new(), Vec::new());
    for entry in &formula.entries {
        let at = op.inputs.iter().position(|i| i.name == entry.input).unwrap_or_default();
        match &entry.value {
            None => without.push(at as u8),
            Some(value) => entries.push((at, scope.part(|s| s.tensor(value))?)),
        }
    }
    let gradient = Gradient {
        slots: scope.slots,
        lets: with_users(lets, &entries),
        entries: entries.into_iter().map(|(i, (node, _))| (i, node)).collect(),
    };
    let list = |of: BTreeSet<usize>| -> List<u8> { of.into_iter().map(|i| i as u8).collect() };
    Ok(Backward::Formula(op::Formula {
        run: BackwardBody::Shared(Arc::new(move |call| gradient.run(call))),
        saved_inputs: list(scope.saved_inputs),
        saved_outputs: list(scope.saved_outputs),
        without: without.into(),
    }))
}

/// One cotangent for each output, one gradient for each input that can have one.
fn check(op: &OpDef, source: &Source<'_>, formula: &Formula<'_>) -> Result<()> {
    let fail = |what: String| Err(source.error(what));
    let (taken, returned) = (formula.cotangents.len(), visible(op).count());
    if taken != returned {
        return fail(format!(
            "it takes {}, and the op returns {}; take one for each, '_' where it isn't used",
            counted(taken, "cotangent"),
            counted(returned, "output")
        ));
    }
    if let Some(input) = op.inputs.iter().find(|i| i.arity == Arity::Variadic) {
        return fail(format!("a formula can't give the gradients of the list '{}'; a function can", input.name));
    }
    let names: Vec<&str> = op.inputs.iter().map(|i| i.name.as_ref()).collect();
    for (i, entry) in formula.entries.iter().enumerate() {
        let name = entry.input;
        match op.inputs.iter().find(|input| input.name == name) {
            None if op.attrs.iter().any(|a| a.name == name) => {
                return fail(format!("'{name}' is an attribute, and has no gradient; leave it out"));
            }
            None => return fail(format!("'{name}' is no input of the op; {}", suggestion(name, &names))),
            Some(input) if entry.value.is_some() && !op.is_differentiable(input.dtype) => {
                return fail(format!(
                    "'{name}' is never a floating-point tensor, and has no gradient; leave it out, or write '{name}: none'"
                ));
            }
            Some(_) if formula.entries[..i].iter().any(|before| before.input == name) => {
                return fail(format!("the gradient of '{name}' is given twice; leave one of them out"));
            }
            Some(_) => {}
        }
    }
    let given = |name: &str| formula.entries.iter().any(|e| e.input == name);
    match op.inputs.iter().find(|i| op.is_differentiable(i.dtype) && !given(&i.name)) {
        Some(i) => fail(format!("the gradient of '{0}' is missing; write a formula for it, or '{0}: none'", i.name)),
        None => Ok(()),
    }
}

/// Positions of the outputs that have a cotangent.
fn visible(op: &OpDef) -> impl Iterator<Item = usize> + '_ {
    (0..op.outputs.len()).filter(|k| op.outputs[*k].role != Role::Saved)
}

/// A part, with the slots that it uses.
type Part<T> = (T, BTreeSet<usize>);

/// Says of each `let` whose gradients use it, be it by later ones.
fn with_users(lets: Vec<Part<Let>>, entries: &[(usize, Part<Node>)]) -> Vec<Let> {
    let mut users: Vec<(usize, BTreeSet<usize>)> = entries.iter().map(|(i, (_, used))| (*i, used.clone())).collect();
    let mut done: Vec<Let> = Vec::new();
    for (mut bound, used) in lets.into_iter().rev() {
        for (input, wanted) in &mut users {
            if bound.slots.clone().any(|slot| wanted.contains(&slot)) {
                bound.users.push(*input);
                wanted.extend(&used);
            }
        }
        done.push(bound);
    }
    done.reverse();
    done
}

struct Scope<'a> {
    source: Source<'a>,
    /// The last of a name counts.
    names: Vec<(&'a str, Name)>,
    slots: usize,
    /// The slots that the part in hand uses.
    used: BTreeSet<usize>,
    saved_inputs: BTreeSet<usize>,
    saved_outputs: BTreeSet<usize>,
}

/// The ops that operators stand for.
const OPERATORS: &[(&str, &str)] = &[
    ("+", "add"),
    ("-", "subtract"),
    ("*", "multiply"),
    ("/", "divide"),
    ("%", "remainder"),
    ("&&", "logical_and"),
    ("||", "logical_or"),
    ("&", "bitwise_and"),
    ("|", "bitwise_or"),
    ("^", "bitwise_xor"),
    ("<<", "bitwise_left_shift"),
    (">>", "bitwise_right_shift"),
    ("<", "less"),
    ("<=", "less_equal"),
    (">", "greater"),
    (">=", "greater_equal"),
    ("==", "equal"),
    ("!=", "not_equal"),
];

/// The properties of a tensor.
const PROPERTIES: &[(&str, Property)] =
    &[("shape", Property::Shape), ("dtype", Property::DType), ("ndim", Property::Ndim)];

impl<'a> Scope<'a> {
    fn new(op: &'a OpDef, source: Source<'a>, formula: &Formula<'a>) -> Scope<'a> {
        let mut names: Vec<(&str, Name)> = Vec::new();
        if let ShapeRule::Core(shapes) = &op.shape {
            let dims = shapes.inputs.iter().flat_map(|i| i.core.iter());
            names.extend(
                dims.filter_map(|d| if let Dim::Name(n) = d { Some((&**n, Name::Dim(n.to_string()))) } else { None }),
            );
        }
        names.extend(op.attrs.iter().enumerate().map(|(i, a)| (a.name.as_ref(), Name::Attr(i))));
        names.extend(op.outputs.iter().enumerate().map(|(k, o)| (o.name.as_ref(), Name::Output(k))));
        names.extend(op.inputs.iter().enumerate().map(|(i, input)| (input.name.as_ref(), Name::Input(i))));
        let cotangents = visible(op).zip(&formula.cotangents).filter(|(_, name)| **name != "_");
        names.extend(cotangents.map(|(k, name)| (*name, Name::Cotangent(k))));
        let (slots, used, saved_inputs, saved_outputs) = Default::default();
        Scope { source, names, slots, used, saved_inputs, saved_outputs }
    }

    /// Lowers one `let` or entry; comes with the slots that it uses.
    fn part<T>(&mut self, lower: impl FnOnce(&mut Self) -> Result<T>) -> Result<Part<T>> {
        let part = lower(self)?;
        Ok((part, std::mem::take(&mut self.used)))
    }

    fn fail<T>(&self, what: String) -> Result<T> {
        Err(self.source.error(what))
    }

    fn bind(&mut self, bound: &expr::Let<'a>) -> Result<Let> {
        let (value, is_data) = self.expr(&bound.value)?;
        if bound.many && !(is_data && matches!(value, Node::Call(..))) {
            return self
                .fail(format!("'{}' is not the call of an op, which alone gives several tensors", bound.value.text));
        }
        let slots = self.slots..self.slots + bound.names.len();
        self.names.extend(bound.names.iter().zip(slots.clone()).map(|(name, slot)| (*name, Name::Slot(slot, is_data))));
        self.slots = slots.end;
        Ok(Let { slots, many: bound.many, value, users: Vec::new() })
    }

    /// A gradient.
    fn tensor(&mut self, expr: &Expr<'a>) -> Result<Node> {
        match self.expr(expr)? {
            (node, true) => Ok(node),
            _ => self.fail(format!("'{}' is not a tensor; write 'none' where there is no gradient", expr.text)),
        }
    }

    /// A node, and whether it is a tensor.
    fn expr(&mut self, expr: &Expr<'a>) -> Result<(Node, bool)> {
        match &expr.kind {
            Kind::Name(name) => {
                let name = self.lookup(name)?;
                let is_data = !matches!(name, Name::Attr(_) | Name::Dim(_) | Name::Slot(_, false));
                match name {
                    Name::Input(i) => drop(self.saved_inputs.insert(i)),
                    Name::Output(k) => drop(self.saved_outputs.insert(k)),
                    Name::Slot(slot, _) => drop(self.used.insert(slot)),
                    _ => {}
                }
                Ok((Node::Name(name), is_data))
            }
            Kind::Const(value) => Ok((Node::Const(value.clone()), false)),
            Kind::Unary(sign, inner) => {
                let (node, is_data) = self.expr(inner)?;
                let op = if *sign == "-" { "negative" } else { "logical_not" };
                Ok((if is_data { call(op, vec![node]) } else { Node::Known(sign, vec![node]) }, is_data))
            }
            Kind::Binary(sign, sides) => {
                let ((left, of_left), (right, of_right)) = (self.expr(&sides[0])?, self.expr(&sides[1])?);
                let is_none = |node: &Node| matches!(node, Node::Const(Attr::None));
                let asks = matches!(*sign, "==" | "!=") && (is_none(&left) || is_none(&right));
                let is_data = (of_left || of_right) && !asks;
                let op = OPERATORS.iter().find(|(s, _)| s == sign).map_or("", |(_, op)| op);
                let args = vec![left, right];
                Ok((if is_data { call(op, args) } else { Node::Known(sign, args) }, is_data))
            }
            Kind::Call(op, args) => {
                let (mut positional, mut keywords) = (Vec::new(), Vec::new());
                for (keyword, arg) in args {
                    let (node, _) = self.expr(arg)?;
                    match keyword {
                        Some(keyword) => keywords.push(((*keyword).to_owned(), node)),
                        None => positional.push(node),
                    }
                }
                Ok((Node::Call(Callee::new(op.as_str()), positional, keywords), true))
            }
            Kind::Property(of, name) => self.property(expr, of, name),
            Kind::List(items) => {
                let mut nodes = Vec::new();
                for item in items {
                    nodes.push(self.expr(item)?.0);
                }
                Ok((Node::List(nodes), false))
            }
            Kind::If(parts) => {
                let [condition, yes, no] = &**parts;
                let ((condition, by_data), (yes, of_yes), (no, of_no)) =
                    (self.expr(condition)?, self.expr(yes)?, self.expr(no)?);
                if by_data {
                    return Ok((call("where", vec![condition, yes, no]), true));
                }
                if of_yes != of_no {
                    return self.fail(format!("one branch of '{}' is a tensor, and the other is not", expr.text));
                }
                Ok((Node::If(Box::new([condition, yes, no])), of_yes))
            }
            Kind::Block(lets, value) => {
                let outside = self.names.len();
                let lets = lets.iter().map(|l| self.bind(l)).collect::<Result<_>>()?;
                let (value, is_data) = self.expr(value)?;
                self.names.truncate(outside);
                Ok((Node::Block(lets, Box::new(value)), is_data))
            }
        }
    }

    fn property(&mut self, expr: &Expr<'a>, of: &Expr<'a>, name: &str) -> Result<(Node, bool)> {
        let Some((_, property)) = PROPERTIES.iter().find(|(known, _)| *known == name) else {
            return self.fail(format!("a tensor in a formula has no '{name}'; it has 'shape', 'dtype' and 'ndim'"));
        };
        // Of an input these are known without saving it.
        let node = match &of.kind {
            Kind::Name(input) => match self.lookup(input)? {
                name @ Name::Input(_) => (Node::Name(name), true),
                _ => self.expr(of)?,
            },
            _ => self.expr(of)?,
        };
        match node {
            (node, true) => Ok((Node::Property(Box::new(node), *property), false)),
            _ => self.fail(format!("in '{}', '{}' is not a tensor", expr.text, of.text)),
        }
    }

    fn lookup(&self, name: &str) -> Result<Name> {
        let found = self.names.iter().rev().find(|(known, _)| *known == name);
        found.map(|(_, what)| what.clone()).ok_or_else(|| self.unknown(name))
    }

    #[cold]
    fn unknown(&self, name: &str) -> Error {
        let known: BTreeSet<&str> = self.names.iter().map(|(known, _)| *known).collect();
        let known: Vec<&str> = known.into_iter().collect();
        self.source.error(format!("there is no '{name}'; {}", suggestion(name, &known)))
    }
}

fn call(op: &'static str, args: Vec<Node>) -> Node {
    Node::Call(Callee::new(op), args, Vec::new())
}
