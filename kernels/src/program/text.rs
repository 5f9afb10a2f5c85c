//! A program as text: `out = x * sigmoid(x)`. An expression that is used more than once has its own line.

use std::fmt;

use super::{Id, Instruction, Primitive, Program};
use crate::number::scalar::Const;
use crate::row::RowFunction;

/// The precedence of an expression. An operand of lower precedence than its context needs brackets.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Tight {
    Sum,
    Product,
    Sign,
    Atom,
}

/// The notation for the parts of a program.
pub(super) trait Style {
    /// The name of a step that is used more than once.
    fn step(&self, number: usize) -> String;
    /// An input, uniform or output.
    fn name(&self, name: &str) -> String;
    /// A number.
    fn constant(&self, value: Const) -> String;
    /// In brackets.
    fn bracketed(&self, inner: &str) -> String;
    /// A function of `x`; each argument has its text and precedence.
    fn call(&self, function: &str, x: &[(String, Tight)]) -> (String, Tight);
}

/// An expression that is longer than this has its own line.
const LONG: usize = 1000;

/// An infix operator between two expressions. The right operand is bracketed if its precedence equals the operator's.
pub(super) fn infix(style: &dyn Style, x: &[(String, Tight)], operator: &str, tight: Tight) -> (String, Tight) {
    let left = if x[0].1 < tight { style.bracketed(&x[0].0) } else { x[0].0.clone() };
    let right = if x[1].1 <= tight { style.bracketed(&x[1].0) } else { x[1].0.clone() };
    (format!("{left}{operator}{right}"), tight)
}

/// Plain text.
struct Plain;

impl Style for Plain {
    fn step(&self, number: usize) -> String {
        format!("%{number}")
    }

    fn name(&self, name: &str) -> String {
        name.to_owned()
    }

    fn constant(&self, value: Const) -> String {
        match value {
            Const::Bool(v) => v.to_string(),
            Const::Int(v) => v.to_string(),
            Const::Float(v) => format!("{v:?}"),
        }
    }

    fn bracketed(&self, inner: &str) -> String {
        format!("({inner})")
    }

    fn call(&self, function: &str, x: &[(String, Tight)]) -> (String, Tight) {
        match (function, x) {
            ("add", [_, _]) => infix(self, x, " + ", Tight::Sum),
            ("subtract", [_, _]) => infix(self, x, " - ", Tight::Sum),
            ("multiply", [_, _]) => infix(self, x, " * ", Tight::Product),
            ("divide", [_, _]) => infix(self, x, " / ", Tight::Product),
            ("negative", [(x, tight)]) => {
                (format!("-{}", if *tight < Tight::Sign { self.bracketed(x) } else { x.clone() }), Tight::Sign)
            }
            _ => {
                let x: Vec<&str> = x.iter().map(|(x, _)| x.as_str()).collect();
                (format!("{function}({})", x.join(", ")), Tight::Atom)
            }
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines(&Plain).iter().map(|(name, y)| format!("{name} = {y}")).collect::<Vec<_>>().join("\n"))
    }
}

impl Program {
    /// Names and their expressions: steps that are used more than once, then outputs.
    pub(super) fn lines(&self, style: &dyn Style) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let inputs: Vec<_> = self.inputs.iter().map(|name| (style.name(name), Tight::Atom)).collect();
        let outputs = self.spell_all(style, &inputs, &mut lines);
        let names = self.outputs.iter().map(|(name, _)| style.name(name));
        lines.extend(names.zip(outputs).map(|(name, (expression, _))| (name, expression)));
        lines
    }

    /// The expressions of the outputs, for those of the inputs.
    fn spell_all(
        &self,
        style: &dyn Style,
        inputs: &[(String, Tight)],
        lines: &mut Vec<(String, String)>,
    ) -> Vec<(String, Tight)> {
        let mut uses = vec![0; self.instructions.len()];
        self.instructions
            .iter()
            .for_each(|instruction| instruction.operands().iter().for_each(|(id, _)| uses[id.at()] += 1));
        let mut spelled: Vec<(String, Tight)> = Vec::with_capacity(self.instructions.len());
        for (instruction, uses) in self.instructions.iter().zip(uses) {
            let expression = match instruction {
                Instruction::Input(k) => inputs[*k as usize].clone(),
                Instruction::Row(RowFunction::Scan(scan), x) => {
                    // `h` is the result before.
                    let states = scan.step().outputs.len();
                    let state = |k: usize| if states == 1 { "h".to_owned() } else { format!("h{k}") };
                    let before = (0..states).map(|k| (style.name(&state(k)), Tight::Atom));
                    let operands = x.iter().map(|id| spelled[id.at()].clone());
                    let mut results = scan.step().spell_all(style, &before.chain(operands).collect::<Vec<_>>(), lines);
                    if states > 1 {
                        results.push((style.constant(Const::Int(scan.output as i128)), Tight::Atom));
                    }
                    style.call("scan", &results)
                }
                _ => self.spell(style, instruction, &spelled),
            };
            let is_leaf = instruction.operands().is_empty();
            spelled.push(if (uses > 1 && !is_leaf) || expression.0.len() > LONG {
                let name = style.step(lines.len());
                lines.push((name.clone(), expression.0));
                (name, Tight::Atom)
            } else {
                expression
            });
        }
        self.outputs.iter().map(|(_, id)| spelled[id.at()].clone()).collect()
    }

    fn spell(&self, style: &dyn Style, instruction: &Instruction, spelled: &[(String, Tight)]) -> (String, Tight) {
        let at = |id: &Id| spelled[id.at()].clone();
        let whole = |n: i128| (style.constant(Const::Int(n)), Tight::Atom);
        match instruction {
            Instruction::Input(_) => unreachable!("inputs have expressions"),
            Instruction::Uniform(k) => (style.name(&self.uniforms[*k as usize]), Tight::Atom),
            Instruction::Constant(c) => {
                let spelling = style.constant(*c);
                let tight = if spelling.starts_with('-') { Tight::Sign } else { Tight::Atom };
                (spelling, tight)
            }
            Instruction::Bits(bits) => (style.name(&format!("{bits:#x}")), Tight::Atom),
            Instruction::Epsilon => style.call("epsilon", &[]),
            Instruction::Truth(t) => (style.constant(Const::Bool(*t)), Tight::Atom),
            Instruction::Apply(p, x) => style.call(p.name(), &x.iter().map(at).collect::<Vec<_>>()),
            Instruction::Powi(x, n) => style.call("powi", &[at(x), whole(i128::from(*n))]),
            Instruction::Polygamma(x, n) => style.call("polygamma", &[at(x), whole(i128::from(*n))]),
            Instruction::Select(mask, a, b) => style.call("select", &[at(mask), at(a), at(b)]),
            Instruction::And(a, b) => style.call("and", &[at(a), at(b)]),
            Instruction::Or(a, b) => style.call("or", &[at(a), at(b)]),
            Instruction::Not(a) => style.call("not", &[at(a)]),
            Instruction::Reduce(reduction, x) => style.call(reduction.name(), &[at(x)]),
            Instruction::Row(f, x) => {
                let places = if let RowFunction::Shift(places) = f { Some(whole(i128::from(*places))) } else { None };
                style.call(f.name(), &x.iter().map(at).chain(places).collect::<Vec<_>>())
            }
            Instruction::Position => style.call("position", &[]),
            Instruction::Count => style.call("count", &[]),
            Instruction::Detach(x) => style.call("detach", &[at(x)]),
        }
    }

    /// The primitive with this name.
    pub(super) fn primitive(name: &str) -> Option<Primitive> {
        Primitive::ALL.iter().copied().find(|p| p.name() == name)
    }
}
