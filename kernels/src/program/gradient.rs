//! The vector-Jacobian product of a program over rows.

use super::{Id, Instruction, Program, ScalarValue, Symbol};
use crate::number::Dual;
use crate::number::scalar::{Element, Num, Real};
use crate::row::{Reduction, Row};

/// A variable of differentiation for a program over rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The input at this position, which has one value per element of the row.
    Input(usize),
    /// The uniform at this position, which has one value per row.
    Uniform(usize),
}

/// A reduction of the program, with symbols as values.
struct ReductionNode {
    kind: Reduction,
    at: usize,
    argument: Symbol,
    result: Symbol,
}

impl ReductionNode {
    /// The derivative of the result by an element of the argument. Max and min are treated as if they had one winner.
    fn share(&self) -> Symbol {
        match self.kind {
            Reduction::Sum | Reduction::Cumsum | Reduction::ReverseCumsum => Symbol::one(),
            Reduction::Prod => self.result / self.argument,
            Reduction::Max | Reduction::Min => {
                Symbol::select(self.argument.equal(self.result), Symbol::one(), Symbol::zero())
            }
        }
    }
}

/// The variable: a reduction, or an argument of the program.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Reduction(usize),
    Argument(Variable),
}

/// The derivatives of the numeric outputs and of the arguments of all reductions, in one direction.
struct Partials {
    outputs: Vec<Symbol>,
    arguments: Vec<Symbol>,
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
        let mut values: Vec<ScalarValue<Symbol>> = Vec::with_capacity(self.instructions.len());
        for instruction in &self.instructions {
            values.push(instruction.value(x, u, &values)?);
        }
        let mut reductions = Vec::new();
        for (at, instruction) in self.instructions.iter().enumerate() {
            if let Instruction::Reduce(kind, id) = instruction {
                let (argument, result) = (values[id.at()].number()?, values[at].number()?);
                reductions.push(ReductionNode { kind: *kind, at, argument, result });
            }
        }
        let partials = |direction| self.partials(x, u, &values, &reductions, direction);
        // Σ ȳ ∂h over the outputs that have (or don't have) one value per element.
        let pulled = |partials: &Partials, along: bool| {
            let parts = partials.outputs.iter().zip(cotangents).zip(gives).filter(|(_, gives)| **gives == along);
            parts.fold(Symbol::zero(), |sum, ((partial, cotangent), _)| sum + cotangent.chain(*partial))
        };
        // Σ ȳ ∂h over the outputs with one value per element, plus what comes through the reductions from `from` on.
        let through = |partials: &Partials, adjoints: &[Symbol], from: usize| {
            (from..reductions.len()).fold(pulled(partials, true), |sum, m| {
                sum + (adjoints[m] * reductions[m].share()).chain(partials.arguments[m])
            })
        };
        let runs = reductions.iter().any(|r| r.kind.is_running());
        let mut adjoints = vec![Symbol::zero(); reductions.len()];
        for k in (0..reductions.len()).rev() {
            let partials = partials(Direction::Reduction(k))?;
            let along = || through(&partials, &adjoints, k + 1);
            let numbers = pulled(&partials, false);
            // An adjoint that all elements share is a factor of the sum, so that one pass computes all sums.
            let all = || match runs {
                true => along().sum() + numbers,
                false => (k + 1..reductions.len()).fold(pulled(&partials, true).sum() + numbers, |all, m| {
                    all + adjoints[m].chain((reductions[m].share() * partials.arguments[m]).sum())
                }),
            };
            adjoints[k] = match reductions[k].kind {
                Reduction::Sum | Reduction::Prod => all(),
                Reduction::Max | Reduction::Min => {
                    let winners = reductions[k].share().sum();
                    Symbol::select(winners.greater(Symbol::zero()), all() / winners, Symbol::zero())
                }
                Reduction::Cumsum => along().reverse_cumsum(),
                Reduction::ReverseCumsum => along().cumsum(),
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
        reductions: &[ReductionNode],
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
                Instruction::Reduce(_, id) => {
                    let k = reductions.iter().position(|g| g.at == at)?;
                    partials.arguments.push(number(id, &duals)?.tangent);
                    let tangent = if direction == Direction::Reduction(k) { Symbol::one() } else { Symbol::zero() };
                    ScalarValue::Number(Dual { value: reductions[k].result, tangent })
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
