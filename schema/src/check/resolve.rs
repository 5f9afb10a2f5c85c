//! Resolves the names of a formula, and determines which of its values are tensors.

use std::collections::BTreeSet;

use crate::attr::Attr;
use crate::gradient::{BINARY, Bound, Entry, Gradient, Let, Name, PROPERTIES, ResolvedExpr, ResolvedKind, UNARY};
use crate::grammar::{self, Argument, Dialect, Expr, ExprKind, Formula, Mode, Tokens, UNUSED_TANGENT};
use crate::message::{self, Message};
use crate::problem::{Extent, Problem};
use crate::signature::Signature;
use crate::suggestion::suggestion;

/// A formula with its names resolved, as far as possible.
pub struct Resolved {
    /// The formula.
    pub gradient: Gradient,
    /// The problems that were found.
    pub problems: Vec<Problem>,
}

pub(super) fn resolve(
    op: &Signature<'_>,
    dims: &[&str],
    tokens: &Tokens,
    dialect: Dialect,
    formula: &Formula,
) -> Resolved {
    let mut scope = Scope::new(op, dims, tokens, dialect, formula);
    let lets = formula.lets.iter().filter_map(|bound| scope.binding(bound)).collect();
    let (mut entries, mut without) = (Vec::new(), Vec::new());
    for entry in &formula.entries {
        let of = match formula.mode {
            Mode::Reverse => op.inputs.iter().position(|i| i.name == entry.of),
            Mode::Forward => op.outputs.iter().position(|o| o.name == entry.of),
        };
        let Some(of) = of else { continue };
        match &entry.value {
            None if formula.mode == Mode::Reverse => without.push(of),
            None => {}
            Some(value) => {
                let value = scope.tensor(value);
                let mentions = scope.take_mentions();
                entries.extend(value.map(|value| Entry { of, value, mentions }));
            }
        }
    }
    if formula.mode == Mode::Forward {
        let unused = formula.given.iter().enumerate().filter(|(_, (name, _))| name == "_").map(|(i, _)| i);
        without.extend(unused.filter(|i| op.inputs.get(*i).is_some_and(|input| op.is_differentiable(input.dtype))));
        scope.check_tangents(op, formula);
    }
    let Scope { problems, slots, saved_inputs, saved_outputs, .. } = scope;
    let lets = with_users(lets, &entries);
    Resolved { gradient: Gradient { lets, entries, without, slots, saved_inputs, saved_outputs }, problems }
}

/// Finds for each `let` the entries that use it, directly or through later `let`s.
fn with_users(mut lets: Vec<Let>, entries: &[Entry]) -> Vec<Let> {
    let mut wanted: Vec<(usize, BTreeSet<usize>)> =
        entries.iter().map(|e| (e.of, slots_in(std::slice::from_ref(&e.value)))).collect();
    for bound in lets.iter_mut().rev() {
        let used = slots_in(bound.value.nodes());
        for (of, slots) in &mut wanted {
            if bound.slots.clone().any(|slot| slots.contains(&slot)) {
                bound.users.push(*of);
                slots.extend(&used);
            }
        }
    }
    lets
}

/// The slots that values use.
fn slots_in(nodes: &[ResolvedExpr]) -> BTreeSet<usize> {
    let mut slots = BTreeSet::new();
    let mut waiting: Vec<&ResolvedExpr> = nodes.iter().collect();
    while let Some(node) = waiting.pop() {
        if let ResolvedKind::Name(Name::Slot(slot, _)) = node.kind {
            slots.insert(slot);
        }
        waiting.extend(node.parts());
    }
    slots
}

struct Scope<'a> {
    tokens: &'a Tokens,
    dialect: Dialect,
    /// Names in scope. The last one with a given name is valid.
    names: Vec<(String, Name)>,
    slots: usize,
    /// The names that the current `let` or entry mentions.
    mentions: BTreeSet<String>,
    /// The inputs whose tangents it mentions.
    tangents: BTreeSet<usize>,
    saved_inputs: BTreeSet<usize>,
    saved_outputs: BTreeSet<usize>,
    problems: Vec<Problem>,
}

impl<'a> Scope<'a> {
    fn new(op: &Signature<'_>, dims: &[&str], tokens: &'a Tokens, dialect: Dialect, formula: &Formula) -> Scope<'a> {
        let mut names: Vec<(String, Name)> =
            dims.iter().enumerate().map(|(i, name)| ((*name).to_owned(), Name::Dim(i))).collect();
        names.extend(op.attrs.iter().enumerate().map(|(i, a)| (a.name.to_string(), Name::Attr(i))));
        names.extend(op.outputs.iter().enumerate().map(|(k, o)| (o.name.to_string(), Name::Output(k))));
        names.extend(op.inputs.iter().enumerate().map(|(i, input)| (input.name.to_string(), Name::Input(i))));
        let given: Vec<Name> = match formula.mode {
            Mode::Reverse => op.visible().map(Name::Cotangent).collect(),
            Mode::Forward => (0..op.inputs.len()).map(Name::Tangent).collect(),
        };
        let given = given.into_iter().zip(&formula.given).filter(|(_, (name, _))| name != "_");
        names.extend(given.map(|(what, (name, _))| (name.clone(), what)));
        let (slots, mentions, tangents, saved_inputs, saved_outputs, problems) = Default::default();
        Scope { tokens, dialect, names, slots, mentions, tangents, saved_inputs, saved_outputs, problems }
    }

    /// A tangent that is not used is a mistake: the derivative would be zero.
    fn check_tangents(&mut self, op: &Signature<'_>, formula: &Formula) {
        let is_output = |entry: &grammar::Entry| op.outputs.iter().any(|o| o.name == entry.of);
        if !formula.entries.iter().all(is_output) {
            return;
        }
        for (i, ((name, at), input)) in formula.given.iter().zip(op.inputs).enumerate() {
            if !matches!(name.as_str(), "_" | UNUSED_TANGENT)
                && op.is_differentiable(input.dtype)
                && !self.tangents.contains(&i)
            {
                self.problems.push(Problem::tokens(*at, &message::TANGENT_UNUSED, &[name, &input.name]));
            }
        }
    }

    fn is_rust(&self) -> bool {
        self.dialect == Dialect::Rust
    }

    fn take_mentions(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.mentions)
    }

    /// Records a problem, and returns no value.
    fn wrong<T>(&mut self, at: Extent, message: &Message) -> Option<T> {
        self.problems.push(Problem::tokens(at, message, &[&self.tokens.spelled(at)]));
        None
    }

    fn binding(&mut self, bound: &grammar::Let) -> Option<Let> {
        let values = match &bound.value.kind {
            ExprKind::Tuple(items) if bound.is_tuple && items.len() == bound.names.len() => {
                items.iter().map(|item| self.expr(item)).collect::<Vec<_>>().into_iter().collect::<Option<_>>()
            }
            _ => self.expr(&bound.value).map(|value| vec![value]),
        };
        let is_each = matches!(&bound.value.kind, ExprKind::Tuple(_)) && bound.is_tuple;
        let slots = self.slots..self.slots + bound.names.len();
        self.slots = slots.end;
        let are_tensors: Vec<bool> = match &values {
            Some(values) if is_each => values.iter().map(|v| v.is_tensor).collect(),
            Some(values) => vec![values.iter().any(|v| v.is_tensor); bound.names.len()],
            // Its later uses are not further problems.
            None => vec![true; bound.names.len()],
        };
        for ((name, slot), is_tensor) in bound.names.iter().zip(slots.clone()).zip(are_tensors) {
            self.names.push((name.clone(), Name::Slot(slot, is_tensor)));
        }
        let mut values = values?;
        let is_call = matches!(values.as_slice(), [ResolvedExpr { kind: ResolvedKind::Call { .. }, .. }]);
        let value = match (values.pop(), bound.is_tuple) {
            (Some(value), _) if is_each => Bound::Each(values.into_iter().chain([value]).collect()),
            (Some(value), true) if is_call => Bound::Outputs(value),
            (Some(value), true) if value.is_tensor || !self.is_rust() => {
                return self.wrong(value.at, &message::NOT_SEVERAL);
            }
            (value, _) => Bound::One(value?),
        };
        let (names, mentions) = (bound.names.clone(), self.take_mentions());
        Some(Let { names, pattern: bound.pattern, slots, value, mentions, users: Vec::new() })
    }

    /// The value of an entry.
    fn tensor(&mut self, expr: &Expr) -> Option<ResolvedExpr> {
        let node = self.expr(expr)?;
        if node.is_tensor { Some(node) } else { self.wrong(expr.at, &message::ENTRY_NOT_TENSOR) }
    }

    /// Resolves values in order, and records every problem in them.
    fn all<'e>(&mut self, items: impl IntoIterator<Item = &'e Expr>) -> Option<Vec<ResolvedExpr>> {
        items.into_iter().map(|item| self.expr(item)).collect::<Vec<_>>().into_iter().collect()
    }

    fn expr(&mut self, expr: &Expr) -> Option<ResolvedExpr> {
        let (kind, is_tensor) = match &expr.kind {
            ExprKind::Name(name) => {
                let name = self.mention(name, expr.at)?;
                (name.map_or(ResolvedKind::Rust(vec![]), ResolvedKind::Name), name.is_some_and(Name::is_tensor))
            }
            ExprKind::Int(value) => (ResolvedKind::Const(Attr::Int(*value)), false),
            ExprKind::Float(value) => (ResolvedKind::Const(Attr::Float(*value)), false),
            ExprKind::Const(value) => (ResolvedKind::Const(value.clone()), false),
            ExprKind::Unary { sign, sign_at, inner } => {
                let inner = self.expr(inner)?;
                operation(sign, *sign_at, UNARY, vec![inner])
            }
            ExprKind::Binary { sign, sign_at, sides } => self.binary(sign, *sign_at, sides)?,
            ExprKind::Call { name, name_at, is_method, args } => self.call(name, *name_at, *is_method, args)?,
            ExprKind::Property { of, name, name_at } => self.property(expr, of, name, *name_at)?,
            ExprKind::Index(parts) => {
                let parts = self.all(parts.iter())?;
                let [of, index] = <[ResolvedExpr; 2]>::try_from(parts).ok()?;
                if of.is_tensor || index.is_tensor {
                    return self.wrong(expr.at, &message::FORMULA_EXPR);
                }
                (ResolvedKind::Index(Box::new([of, index])), false)
            }
            ExprKind::List(items) => (ResolvedKind::List(self.all(items)?), false),
            ExprKind::Tuple(_) if !self.is_rust() => return self.wrong(expr.at, &message::FORMULA_EXPR),
            ExprKind::Tuple(items) | ExprKind::Rust(items) => {
                let items = self.all(items)?;
                if items.iter().any(|item| item.is_tensor) {
                    return self.wrong(expr.at, &message::FORMULA_EXPR);
                }
                (ResolvedKind::Rust(items), false)
            }
            ExprKind::If(parts) => {
                let [condition, yes, no] = <[ResolvedExpr; 3]>::try_from(self.all(parts.iter())?).ok()?;
                if condition.is_tensor {
                    let op_at = Extent::of(expr.at.start);
                    (call("where", op_at, vec![condition, yes, no]), true)
                } else {
                    let is_tensor = self.same(&yes, &no, expr.at)?;
                    (ResolvedKind::If(Box::new([condition, yes, no])), is_tensor)
                }
            }
            ExprKind::IfLet(pattern, parts) => {
                let [of, yes, no] = &**parts;
                let of = self.expr(of);
                let is_tensor = of.as_ref().is_some_and(|of| of.is_tensor);
                let yes = self.under(*pattern, is_tensor, yes);
                let no = self.expr(no);
                let (of, yes, no) = (of?, yes?, no?);
                let is_tensor = self.same(&yes, &no, expr.at)?;
                (ResolvedKind::IfLet(*pattern, Box::new([of, yes, no])), is_tensor)
            }
            ExprKind::Match(of, arms) => {
                let of = self.expr(of);
                let values: Vec<_> =
                    arms.iter().map(|(pattern, value)| (*pattern, self.under(*pattern, false, value))).collect();
                let of = of?;
                if of.is_tensor {
                    return self.wrong(expr.at, &message::FORMULA_EXPR);
                }
                let arms: Option<Vec<_>> = values.into_iter().map(|(pattern, value)| Some((pattern, value?))).collect();
                let arms = arms?;
                let is_tensor = arms.iter().any(|(_, value)| value.is_tensor);
                (ResolvedKind::Match(Box::new(of), arms), is_tensor)
            }
            ExprKind::Block(lets, value) => {
                let outside = self.names.len();
                let mentions = self.take_mentions();
                let mut all = mentions;
                let lets: Vec<_> = lets
                    .iter()
                    .map(|bound| {
                        let bound = self.binding(bound);
                        all.extend(bound.iter().flat_map(|b| b.mentions.iter().cloned()));
                        bound
                    })
                    .collect();
                let value = self.expr(value);
                self.mentions.extend(all);
                self.names.truncate(outside);
                let (lets, value) = (lets.into_iter().collect::<Option<_>>()?, value?);
                let is_tensor = value.is_tensor;
                (ResolvedKind::Block(lets, Box::new(value)), is_tensor)
            }
        };
        Some(ResolvedExpr { kind, at: expr.at, is_tensor })
    }

    /// Whether two branches are tensors. Reports a problem if only one is.
    fn same(&mut self, yes: &ResolvedExpr, no: &ResolvedExpr, at: Extent) -> Option<bool> {
        if yes.is_tensor == no.is_tensor { Some(yes.is_tensor) } else { self.wrong(at, &message::BRANCHES) }
    }

    /// Resolves a value in the scope of the names of a pattern.
    fn under(&mut self, pattern: Extent, is_tensor: bool, value: &Expr) -> Option<ResolvedExpr> {
        let outside = self.names.len();
        let names = self.tokens.names_in(pattern);
        self.names.extend(names.into_iter().map(|name| (name, Name::Pattern(is_tensor))));
        let value = self.expr(value);
        self.names.truncate(outside);
        value
    }

    fn binary(&mut self, sign: &'static str, at: Extent, sides: &[Expr; 2]) -> Option<(ResolvedKind, bool)> {
        let [left, right] = <[ResolvedExpr; 2]>::try_from(self.all(sides)?).ok()?;
        let is_none = |node: &ResolvedExpr| matches!(node.kind, ResolvedKind::Const(Attr::None));
        if matches!(sign, "==" | "!=") && (is_none(&left) || is_none(&right)) {
            let of = if is_none(&left) { right } else { left };
            return Some((ResolvedKind::IsNone(Box::new(of), sign == "=="), false));
        }
        Some(operation(sign, at, BINARY, vec![left, right]))
    }

    fn call(&mut self, name: &str, at: Extent, is_method: bool, args: &[Argument]) -> Option<(ResolvedKind, bool)> {
        let values = self.all(args.iter().map(|a| &a.value))?;
        let takes_tensor = values.iter().any(has_tensor);
        let is_name = !is_method && !name.contains("::") && !name.starts_with(char::is_uppercase);
        if self.is_rust() && !takes_tensor && !is_name {
            return Some((ResolvedKind::Rust(values), false));
        }
        let (mut positional, mut keywords) = (Vec::new(), Vec::new());
        for (arg, value) in args.iter().zip(values) {
            match &arg.keyword {
                Some(keyword) => keywords.push((keyword.clone(), value)),
                None => positional.push(value),
            }
        }
        Some((ResolvedKind::Call { op: name.to_owned(), op_at: at, args: positional, keywords }, true))
    }

    fn property(&mut self, expr: &Expr, of: &Expr, name: &str, name_at: Extent) -> Option<(ResolvedKind, bool)> {
        // The properties of an input are known without saving it.
        let of = match &of.kind {
            ExprKind::Name(input) if matches!(self.lookup(input), Some(Name::Input(_))) => {
                let kind = ResolvedKind::Name(self.lookup(input)?);
                ResolvedExpr { kind, at: of.at, is_tensor: true }
            }
            _ => self.expr(of)?,
        };
        let property = PROPERTIES.iter().find(|(known, _)| *known == name);
        match property {
            Some((_, property)) if of.is_tensor => Some((ResolvedKind::Property(Box::new(of), *property), false)),
            None if of.is_tensor => self.wrong(name_at, &message::PROPERTY),
            _ if self.is_rust() => Some((ResolvedKind::Rust(vec![of]), false)),
            None => self.wrong(name_at, &message::PROPERTY),
            Some(_) => {
                let shown = [self.tokens.spelled(expr.at), self.tokens.spelled(of.at)];
                let args: [&dyn std::fmt::Display; 3] = [&shown[0], &shown[1], &name];
                self.problems.push(Problem::tokens(of.at, &message::PROPERTY_OF, &args));
                None
            }
        }
    }

    fn lookup(&self, name: &str) -> Option<Name> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, what)| *what)
    }

    /// Resolves a name and records its mention. `Some(None)` is a constant of Rust, `None` an unknown name.
    fn mention(&mut self, name: &str, at: Extent) -> Option<Option<Name>> {
        match self.lookup(name) {
            Some(what) => {
                self.mentions.insert(name.to_owned());
                match what {
                    Name::Tangent(i) => drop(self.tangents.insert(i)),
                    Name::Input(i) => drop(self.saved_inputs.insert(i)),
                    Name::Output(k) => drop(self.saved_outputs.insert(k)),
                    _ => {}
                }
                Some(Some(what))
            }
            None if self.is_rust() && !name.starts_with(|c: char| c.is_lowercase() || c == '_') => Some(None),
            None => {
                let known: BTreeSet<&str> = self.names.iter().map(|(known, _)| known.as_str()).collect();
                let known: Vec<&str> = known.into_iter().collect();
                let help = suggestion(name, &known);
                self.problems.push(Problem::tokens(at, &message::UNKNOWN_NAME, &[&name, &help]));
                None
            }
        }
    }
}

/// Whether a value is a tensor or a list of tensors.
fn has_tensor(node: &ResolvedExpr) -> bool {
    node.is_tensor || matches!(&node.kind, ResolvedKind::List(items) if items.iter().any(has_tensor))
}

/// An operator on tensors is an op.
fn operation(
    sign: &'static str,
    at: Extent,
    ops: &[(&str, &'static str)],
    args: Vec<ResolvedExpr>,
) -> (ResolvedKind, bool) {
    let op = ops.iter().find(|(s, _)| *s == sign).map_or("", |(_, op)| op);
    match args.iter().any(|arg| arg.is_tensor) {
        true => (call(op, at, args), true),
        false => (ResolvedKind::Operator(sign, args), false),
    }
}

fn call(op: &str, op_at: Extent, args: Vec<ResolvedExpr>) -> ResolvedKind {
    ResolvedKind::Call { op: op.to_owned(), op_at, args, keywords: Vec::new() }
}
