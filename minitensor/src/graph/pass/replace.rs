//! Replaces calls by an op whose definition states that it computes the same: `replaces = log(softmax(x, axis = axis))`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use minitensor_kernels::Const;
use minitensor_schema::property::Pattern;
use smallvec::SmallVec;

use super::inner::Inner;
use crate::attr::{Attr, FromAttr};
use crate::autograd::NoGrad;
use crate::clause;
use crate::graph::{Call, Graph, Operand, ValueId};
use crate::op::{Arg, Arity, OpRef, Property, infer, registry, slots};
use crate::tensor::{Device, Tensor};

/// A call that is the root of an expression becomes a call of the op that replaces it, if the other values of the expression are used
/// nowhere else. Of several such ops, the one that replaces the most calls is chosen.
pub fn calls(mut graph: Graph) -> Graph {
    let rules = rules();
    let rules = &rules.all;
    if rules.is_empty() {
        return graph;
    }
    let mut removed = BTreeSet::new();
    let inner = Inner::of(&graph);
    for root in (0..graph.calls.len()).rev() {
        let is_root = |rule: &&Rule| graph.calls[root].op.names().any(|name| name == rule.root());
        if removed.contains(&root) || !rules.iter().any(|rule| is_root(&rule)) {
            continue;
        }
        let found = rules.iter().filter(is_root).find_map(|rule| Match::new(rule, &graph, &inner).of_root(root));
        if let Some((call, inner)) = found {
            graph.calls[root] = call;
            removed.extend(inner);
        }
    }
    graph.remove_calls(&removed);
    graph
}

/// An op and the expression that it replaces.
struct Rule {
    op: OpRef,
    pattern: Pattern,
}

impl Rule {
    /// The name of the op whose result is that of the expression.
    fn root(&self) -> &str {
        if let Pattern::Call { op, .. } = &self.pattern { op } else { "" }
    }
}

/// The rules of all registered ops, those of the largest expressions first.
fn rules() -> Rc<Rules> {
    thread_local! {
        static KNOWN: RefCell<Option<Rc<Rules>>> = const { RefCell::new(None) };
    }
    let generation = registry::generation();
    KNOWN.with(|known| {
        if let Some(known) = known.borrow().as_ref().filter(|known| known.generation == generation) {
            return known.clone();
        }
        let mut all: Vec<Rule> = registry::list().into_iter().flat_map(rules_of).collect();
        all.sort_by_key(|rule| std::cmp::Reverse(calls_in(&rule.pattern)));
        let rules = Rc::new(Rules { generation, all });
        *known.borrow_mut() = Some(rules.clone());
        rules
    })
}

/// The rules of a generation of the registry.
struct Rules {
    generation: u64,
    all: Vec<Rule>,
}

fn rules_of(op: OpRef) -> Vec<Rule> {
    let texts = op.properties.iter().filter_map(|p| if let Property::Replaces(text) = p { Some(text) } else { None });
    let patterns: Vec<Pattern> = texts.filter_map(|text| clause::pattern(&op, text).ok()).collect();
    patterns.into_iter().map(|pattern| Rule { op: op.clone(), pattern }).collect()
}

fn calls_in(pattern: &Pattern) -> usize {
    match pattern {
        Pattern::Call { args, keywords, .. } => {
            1 + args.iter().chain(keywords.iter().map(|(_, arg)| arg)).map(calls_in).sum::<usize>()
        }
        _ => 0,
    }
}

/// The arguments of a rule's op that a part of a graph determines.
struct Match<'a> {
    rule: &'a Rule,
    graph: &'a Graph,
    inner: &'a Inner,
    inputs: Vec<Option<Operand>>,
    attrs: Vec<Option<Attr>>,
    /// The calls below the root.
    calls: Vec<usize>,
}

impl<'a> Match<'a> {
    fn new(rule: &'a Rule, graph: &'a Graph, inner: &'a Inner) -> Match<'a> {
        let (inputs, attrs) = (vec![None; rule.op.inputs.len()], vec![None; rule.op.attrs.len()]);
        Match { rule, graph, inner, inputs, attrs, calls: Vec::new() }
    }

    /// The call that replaces a root, and the calls that are not needed then.
    fn of_root(mut self, root: usize) -> Option<(Call, Vec<usize>)> {
        self.call(&self.rule.pattern, root)?;
        let (op, call) = (&self.rule.op, &self.graph.calls[root]);
        let args: SmallVec<[Operand; 4]> = self.inputs.iter().map(|arg| arg.unwrap_or(Operand::None)).collect();
        let attrs = self.attrs.iter().enumerate();
        let attrs =
            attrs.map(|(k, value)| value.clone().or_else(|| op.attrs[k].default.clone())).collect::<Option<_>>();
        let call = Call { op: op.clone(), attrs: attrs?, args, ..call.clone() };
        self.is_accepted(&call).then_some((call, self.calls))
    }

    /// Matches a call with an expression.
    fn call(&mut self, pattern: &Pattern, at: usize) -> Option<()> {
        let (Pattern::Call { op: name, args, keywords }, call) = (pattern, &self.graph.calls[at]) else { return None };
        let op = &call.op;
        let is_same = op.names().any(|known| known == name) && call.is_pure() && call.cut.is_nothing();
        if !is_same || op.inputs.iter().any(|input| input.arity == Arity::Variadic) || call.outputs.len() != 1 {
            return None;
        }
        let words: SmallVec<[&str; 4]> = keywords.iter().map(|(word, _)| word.as_str()).collect();
        let slots = slots(op, args.len(), &words).ok()?;
        let part = |slot: Option<usize>| slot.map(|i| args.get(i).unwrap_or_else(|| &keywords[i - args.len()].1));
        for (operand, slot) in call.args.iter().zip(&slots) {
            self.operand(part(*slot), *operand)?;
        }
        for (k, slot) in op.attr_order().into_iter().zip(&slots[op.inputs.len()..]) {
            match part(*slot) {
                Some(Pattern::Attr(own)) => self.attr(*own, call.attrs[k].clone())?,
                Some(Pattern::Const(value)) if op.check_attr(k, value.clone()).ok()? == call.attrs[k] => {}
                None if op.attrs[k].default.as_ref() == Some(&call.attrs[k]) => {}
                _ => return None,
            }
        }
        Some(())
    }

    fn operand(&mut self, pattern: Option<&Pattern>, operand: Operand) -> Option<()> {
        match (pattern, operand) {
            (None | Some(Pattern::Const(Attr::None)), Operand::None) => Some(()),
            (Some(Pattern::Input(i)), operand) if operand != Operand::None => {
                (*self.inputs[*i].get_or_insert(operand) == operand).then_some(())
            }
            (Some(Pattern::Attr(k)), Operand::Number(number)) => self.attr(*k, attr_of(number)?),
            (Some(Pattern::Const(value)), Operand::Number(number)) => {
                (f64::from_attr(value).ok()? == f64::from_attr(&attr_of(number)?).ok()?).then_some(())
            }
            (Some(pattern @ Pattern::Call { .. }), Operand::Value(id)) => {
                let at = self.inner.computed_by(id)?;
                self.calls.push(at);
                self.call(pattern, at)
            }
            _ => None,
        }
    }

    fn attr(&mut self, k: usize, value: Attr) -> Option<()> {
        let value = self.rule.op.check_attr(k, value).ok()?;
        (*self.attrs[k].get_or_insert_with(|| value.clone()) == value).then_some(())
    }

    /// Whether the op accepts the arguments, and its result has the shape and dtype of the root.
    fn is_accepted(&self, call: &Call) -> bool {
        let _mode = NoGrad::new();
        let meta = |id: &ValueId| {
            let value = self.graph.value(*id);
            Tensor::empty(value.shape.clone(), value.dtype, Device::Meta)
        };
        let ids: Vec<ValueId> = call.reads().collect();
        let Ok(tensors) = ids.iter().map(meta).collect::<Result<Vec<_>, _>>() else { return false };
        let mut tensors = tensors.iter();
        let args: Vec<Arg<'_>> = call
            .args
            .iter()
            .map(|arg| match arg {
                Operand::None => Arg::None,
                Operand::Number(number) => Arg::Number(*number),
                Operand::Value(_) => tensors.next().map_or(Arg::None, Arg::Tensor),
            })
            .collect();
        let result = call.outputs[0].map(|id| self.graph.value(id));
        match (infer(&call.op, &args, &call.attrs).as_deref(), result) {
            (Ok([found]), Some(value)) => *found.shape() == value.shape && found.dtype() == value.dtype,
            _ => false,
        }
    }
}

fn attr_of(number: Const) -> Option<Attr> {
    match number {
        Const::Int(v) => i64::try_from(v).ok().map(Attr::Int),
        Const::Float(v) => Some(Attr::Float(v)),
        _ => None,
    }
}
