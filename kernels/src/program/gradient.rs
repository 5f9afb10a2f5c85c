//! The vector-Jacobian product of a program over rows.
//!
//! If few reductions depend on one another, the derivatives of a program in the direction of each of them are computed forwards: the sums of
//! the gradient then have the form of compiled passes. Otherwise one sweep in reverse order computes all ([`reverse`](super::reverse)).

use super::symbol::use_plain_products;
use super::{Id, Instruction, Program, ScalarValue, Symbol};
use crate::number::Dual;
use crate::number::scalar::{Element, Num, Real, lit};
use crate::row::{RealRow, Reduction, RowFunction};

/// A variable of differentiation for a program over rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The input at this position, which has one value per element of the row.
    Input(usize),
    /// The uniform at this position, which has one value per row.
    Uniform(usize),
}

/// The function that a node computes.
#[derive(Clone)]
pub(super) enum NodeKind {
    Reduction(Reduction),
    Function(RowFunction),
}

/// A reduction or another function of rows in the program, with symbols as values.
pub(super) struct RowNode {
    pub kind: NodeKind,
    pub at: usize,
    pub arguments: Vec<Symbol>,
    pub result: Symbol,
}

/// The most functions of rows for which derivatives are computed forwards.
const MOST_FORWARDS: usize = 8;

impl RowNode {
    /// The derivative of the result by an element of the argument. Max and min are treated as if they had one winner.
    pub fn share(&self) -> Symbol {
        match self.kind {
            NodeKind::Reduction(Reduction::Prod) => self.result / self.arguments[0],
            NodeKind::Reduction(Reduction::Max | Reduction::Min) => {
                Symbol::select(self.arguments[0].equal(self.result), Symbol::one(), Symbol::zero())
            }
            _ => Symbol::one(),
        }
    }

    /// Whether each element of the result has a cotangent of its own.
    fn is_running(&self) -> bool {
        if let NodeKind::Reduction(reduction) = self.kind { reduction.is_running() } else { true }
    }

    /// The cotangents of the arguments, if that of the result is `d` for each element.
    pub fn pulled(&self, d: Symbol) -> Vec<Symbol> {
        let NodeKind::Function(function) = &self.kind else { return vec![d] };
        match (function, &self.arguments[..]) {
            (RowFunction::Shift(places), _) => vec![d.shift(places.saturating_neg())],
            (RowFunction::Reverse, _) => vec![d.reverse()],
            (RowFunction::Recurrence, [_, a]) => {
                let d = d.reverse_recurrence(a.shift(-1));
                vec![d, d.chain(self.result.shift(1))]
            }
            (RowFunction::Cummax, [x]) => {
                // The element is taken, or the result before it is kept.
                let is_first = x.position().equal(Symbol::zero());
                let is_taken = is_first | x.greater_equal(self.result.shift(1));
                let [taken, kept] = [[1, 0], [0, 1]].map(|[a, b]| Symbol::select(is_taken, lit(a), lit(b)));
                vec![taken.chain(d.reverse_recurrence(kept.shift(-1)))]
            }
            (RowFunction::Take, [_, index]) => vec![Symbol::of_row(RowFunction::Put, [d, *index]), Symbol::zero()],
            (RowFunction::Put, [_, index]) => vec![Symbol::of_row(RowFunction::Take, [d, *index]), Symbol::zero()],
            _ => vec![Symbol::zero(); self.arguments.len()],
        }
    }
}

/// The variable: the result of a function of rows, or an argument of the program.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Node(usize),
    Argument(Variable),
}

/// The derivatives of the numeric outputs and of the arguments of all functions of rows, in one direction.
struct Partials {
    outputs: Vec<Symbol>,
    arguments: Vec<Vec<Symbol>>,
}

impl Program {
    /// The vector-Jacobian product of a program over rows, as a program over rows. `gives` marks the outputs that have
    /// one value per element; the others have one per row. The result takes the cotangents of the former ahead of the
    /// inputs and those of the latter ahead of the uniforms. It returns the gradients of `wrt`: one value per element
    /// for an input, one per row for a uniform. `None` if a primitive has no derivative.
    ///
    /// The rules are those of [`Dual`] and of [`row::vjp`](crate::row::vjp()), which documents the formulas.
    pub fn vjp_of_rows(&self, gives: &[bool], wrt: &[Variable]) -> Option<Program> {
        let cotangents = self.cotangents();
        let named = |along: bool| {
            let which = gives.iter().enumerate().filter(move |(_, gives)| **gives == along);
            which.filter_map(|(k, _)| cotangents.get(k)).collect::<Vec<_>>()
        };
        let (rows, numbers) = (named(true), named(false));
        let inputs: Vec<&str> = rows.iter().copied().chain(&self.inputs).map(String::as_str).collect();
        let uniforms: Vec<&str> = numbers.iter().copied().chain(&self.uniforms).map(String::as_str).collect();
        let mut complete = true;
        let program = Program::write(&inputs, &uniforms, |x, u| {
            use_plain_products();
            let ((d_rows, x), (d_numbers, u)) = (x.split_at(rows.len()), u.split_at(numbers.len()));
            let (mut d_rows, mut d_numbers) = (d_rows.iter(), d_numbers.iter());
            let cotangents: Vec<Symbol> = gives
                .iter()
                .filter_map(|gives| if *gives { d_rows.next() } else { d_numbers.next() }.copied())
                .collect();
            let gradients = self.gradients(x, u, gives, &cotangents, wrt);
            complete = gradients.is_some();
            let name = |variable: &Variable| match variable {
                Variable::Input(i) => format!("d_{}", self.inputs[*i]),
                Variable::Uniform(i) => format!("d_{}", self.uniforms[*i]),
            };
            wrt.iter().map(name).zip(gradients.unwrap_or_default().into_iter().map(ScalarValue::Number)).collect()
        });
        complete.then_some(program)
    }

    fn gradients(
        &self,
        x: &[Symbol],
        u: &[Symbol],
        gives: &[bool],
        cotangents: &[Symbol],
        wrt: &[Variable],
    ) -> Option<Vec<Symbol>> {
        let values = self.values(x, u)?;
        let mut nodes = Vec::new();
        for (at, instruction) in self.instructions.iter().enumerate() {
            let (kind, arguments) = match instruction {
                Instruction::Reduce(reduction, id) => (NodeKind::Reduction(*reduction), std::slice::from_ref(id)),
                Instruction::Row(function, ids) => (NodeKind::Function(function.clone()), &ids[..]),
                _ => continue,
            };
            let arguments = arguments.iter().map(|id| values[id.at()].number()).collect::<Option<_>>()?;
            nodes.push(RowNode { kind, at, arguments, result: values[at].number()? });
        }
        if nodes.len() > MOST_FORWARDS || self.scans() {
            let outputs = self.outputs.iter().zip(cotangents).zip(gives);
            return self.swept(&values, &nodes, outputs.map(|(((_, id), d), along)| (*id, *d, *along)), wrt);
        }
        let partials = |direction| self.partials(x, u, &values, &nodes, direction);
        // Σ ȳ ∂h over the outputs that have (or don't have) one value per element.
        let pulled = |partials: &Partials, along: bool| {
            let parts = partials.outputs.iter().zip(cotangents).zip(gives).filter(|(_, gives)| **gives == along);
            parts.fold(Symbol::zero(), |sum, ((partial, cotangent), _)| sum + cotangent.chain(*partial))
        };
        // Σ ȳ ∂h over the outputs with one value per element, plus the contributions of the nodes from `from` on.
        let through = |partials: &Partials, adjoints: &[Vec<Symbol>], from: usize| {
            let parts =
                (from..nodes.len()).flat_map(|m| adjoints[m].iter().zip(&partials.arguments[m]).map(move |p| (m, p)));
            parts.fold(pulled(partials, true), |sum, (m, (adjoint, partial))| {
                sum + (*adjoint * nodes[m].share()).chain(*partial)
            })
        };
        let runs = nodes.iter().any(RowNode::is_running);
        // For each node, the cotangents of its arguments; those of max and min are divided among the winners.
        let mut adjoints = vec![Vec::new(); nodes.len()];
        for k in (0..nodes.len()).rev() {
            let partials = partials(Direction::Node(k))?;
            let along = || through(&partials, &adjoints, k + 1);
            let numbers = pulled(&partials, false);
            // An adjoint that all elements share is a factor of the sum, so that one pass computes all sums.
            let all = || match runs {
                true => along().sum() + numbers,
                false => (k + 1..nodes.len()).fold(pulled(&partials, true).sum() + numbers, |all, m| {
                    all + adjoints[m][0].chain((nodes[m].share() * partials.arguments[m][0]).sum())
                }),
            };
            adjoints[k] = match nodes[k].kind {
                NodeKind::Reduction(Reduction::Sum | Reduction::Prod) => vec![all()],
                NodeKind::Reduction(Reduction::Max | Reduction::Min) => {
                    let winners = nodes[k].share().sum();
                    vec![Symbol::select(winners.greater(Symbol::zero()), all() / winners, Symbol::zero())]
                }
                NodeKind::Reduction(Reduction::Cumsum) => vec![along().reverse_cumsum()],
                NodeKind::Reduction(Reduction::ReverseCumsum) => vec![along().cumsum()],
                NodeKind::Function(_) => nodes[k].pulled(along()),
            };
        }
        let gradient = |variable: &Variable| {
            let partials = partials(Direction::Argument(*variable))?;
            let along = through(&partials, &adjoints, 0);
            Some(match variable {
                Variable::Input(_) => along,
                Variable::Uniform(_) => along.sum() + pulled(&partials, false),
            })
        };
        wrt.iter().map(gradient).collect()
    }

    fn partials(
        &self,
        x: &[Symbol],
        u: &[Symbol],
        values: &[ScalarValue<Symbol>],
        nodes: &[RowNode],
        direction: Direction,
    ) -> Option<Partials> {
        let lifted = |all: &[Symbol], kind: fn(usize) -> Variable| -> Vec<Dual<Symbol>> {
            let lift = |(i, x): (usize, &Symbol)| match direction == Direction::Argument(kind(i)) {
                true => Dual::variable(*x),
                false => Dual::constant_of(*x),
            };
            all.iter().enumerate().map(lift).collect()
        };
        let (x, u) = (lifted(x, Variable::Input), lifted(u, Variable::Uniform));
        let mut duals: Vec<ScalarValue<Dual<Symbol>>> = Vec::with_capacity(self.instructions.len());
        let number = |id: &Id, duals: &[ScalarValue<Dual<Symbol>>]| duals[id.at()].number();
        let mut partials = Partials { outputs: vec![], arguments: vec![] };
        for (at, instruction) in self.instructions.iter().enumerate() {
            let value = match instruction {
                Instruction::Reduce(..) | Instruction::Row(..) => {
                    let k = nodes.iter().position(|node| node.at == at)?;
                    let operands = instruction.operands();
                    let tangents = operands.iter().map(|(id, _)| Some(number(id, &duals)?.tangent));
                    partials.arguments.push(tangents.collect::<Option<_>>()?);
                    let tangent = if direction == Direction::Node(k) { Symbol::one() } else { Symbol::zero() };
                    ScalarValue::Number(Dual { value: nodes[k].result, tangent })
                }
                Instruction::Position | Instruction::Count | Instruction::Detach(_) => {
                    ScalarValue::Number(Dual::constant_of(values[at].number()?))
                }
                _ => instruction.value(&x, &u, &duals)?,
            };
            duals.push(value);
        }
        partials.outputs =
            self.outputs.iter().map(|(_, id)| Some(number(id, &duals)?.tangent)).collect::<Option<_>>()?;
        Some(partials)
    }
}
