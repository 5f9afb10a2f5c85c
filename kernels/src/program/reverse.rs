//! Reverse mode: the gradients of a program by one sweep over its instructions in reverse order.

use super::gradient::{NodeKind, RowNode};
use super::{Id, Instruction, Primitive, Program, ScalarValue, Scan, Symbol, ValueType, Variable};
use crate::number::Dual;
use crate::number::scalar::{Element, Num, Real};
use crate::row::{RealRow, Reduction, RowFunction};

/// The cotangent of a value, as far as it is known.
#[derive(Clone, Copy, Default)]
struct Adjoint {
    /// Terms with a value for each element. They are summed if the value itself is one number for the row.
    along: Option<Symbol>,
    /// Terms with one value for the row.
    number: Option<Symbol>,
}

impl Adjoint {
    fn add(&mut self, along: bool, term: Symbol) {
        let sum = if along { &mut self.along } else { &mut self.number };
        *sum = Some(sum.map_or(term, |sum| sum + term));
    }

    /// The cotangent of a value that `varies` along the row or not.
    fn total(self, varies: bool) -> Option<Symbol> {
        let along = if varies { self.along } else { self.along.map(RealRow::sum) };
        match (along, self.number) {
            (Some(along), Some(number)) => Some(along + number),
            (along, number) => along.or(number),
        }
    }
}

impl Program {
    /// For each instruction, whether its value differs along a row, rather than being one number for the row.
    pub(super) fn varying_instructions(&self) -> Vec<bool> {
        let mut varies = Vec::with_capacity(self.instructions.len());
        for instruction in &self.instructions {
            varies.push(match instruction {
                Instruction::Input(_) | Instruction::Row(..) | Instruction::Position => true,
                Instruction::Reduce(reduction, _) => reduction.is_running(),
                other => other.operands().iter().any(|(id, _)| varies[id.at()]),
            });
        }
        varies
    }

    /// The gradients of the variables `wrt`, as [`Program::vjp_of_rows`] describes. `values` has the value of each instruction, `nodes` the
    /// functions of rows, and `cotangents` those of outputs, each with whether it has one value for each element.
    pub(super) fn swept(
        &self,
        values: &[ScalarValue<Symbol>],
        nodes: &[RowNode],
        cotangents: impl IntoIterator<Item = (Id, Symbol, bool)>,
        wrt: &[Variable],
    ) -> Option<Vec<Symbol>> {
        let varies = self.varying_instructions();
        let mut adjoints = vec![Adjoint::default(); self.instructions.len()];
        for (id, cotangent, along) in cotangents {
            adjoints[id.at()].add(along, cotangent);
        }
        let constant = |value: &ScalarValue<Symbol>| match value {
            ScalarValue::Number(x) => ScalarValue::Number(Dual::constant_of(*x)),
            ScalarValue::Mask(mask) => ScalarValue::Mask(*mask),
        };
        let mut duals: Vec<ScalarValue<Dual<Symbol>>> = values.iter().map(constant).collect();
        let mut nodes = nodes.iter().rev();
        for (at, instruction) in self.instructions.iter().enumerate().rev() {
            let node = match instruction {
                Instruction::Reduce(..) | Instruction::Row(..) => nodes.next(),
                _ => None,
            };
            if let Instruction::Row(RowFunction::Scan(scan), x) = instruction {
                self.pull_scan(at, (scan, x), values, &mut adjoints)?;
                continue;
            }
            let Some(d) = adjoints[at].total(varies[at]) else { continue };
            let operands = instruction.operands();
            match (instruction, node) {
                (_, Some(node)) => {
                    for ((id, _), term) in operands.iter().zip(node.back(d)) {
                        adjoints[id.at()].add(true, term);
                    }
                }
                (Instruction::Select(mask, a, b), _) => {
                    let mask = values[mask.at()].mask()?;
                    adjoints[a.at()].add(varies[at], Symbol::select(mask, d, Symbol::zero()));
                    adjoints[b.at()].add(varies[at], Symbol::select(mask, Symbol::zero(), d));
                }
                (Instruction::Detach(_), _) => {}
                (Instruction::Apply(Primitive::Conj, x), _) => adjoints[x[0].at()].add(varies[at], d),
                _ => {
                    let mut numbers: Vec<Id> =
                        operands.iter().filter(|(_, kind)| *kind == ValueType::Number).map(|(id, _)| *id).collect();
                    numbers.sort_by_key(|id| id.at());
                    numbers.dedup();
                    for id in numbers {
                        let x = values[id.at()].number()?;
                        let before = std::mem::replace(&mut duals[id.at()], ScalarValue::Number(Dual::variable(x)));
                        let slope = instruction.value(&[], &[], &duals)?.number()?.tangent;
                        duals[id.at()] = before;
                        adjoints[id.at()].add(varies[at], slope.chain(d));
                    }
                }
            }
        }
        let total = |variable: &Variable| {
            let is_it = |instruction: &Instruction| match (instruction, variable) {
                (Instruction::Input(k), Variable::Input(i)) | (Instruction::Uniform(k), Variable::Uniform(i)) => {
                    *k as usize == *i
                }
                _ => false,
            };
            let at = self.instructions.iter().position(is_it);
            at.and_then(|at| adjoints[at].total(varies[at])).unwrap_or_else(Symbol::zero)
        };
        Some(wrt.iter().map(total).collect())
    }

    /// Adds to the adjoints of the operands of a scan, which may have several results. All are pulled back at the first of them, because
    /// their uses come later in the program.
    fn pull_scan(
        &self,
        at: usize,
        (scan, x): (&Scan, &[Id]),
        values: &[ScalarValue<Symbol>],
        adjoints: &mut [Adjoint],
    ) -> Option<()> {
        let output_of = |other: &Instruction| match other {
            Instruction::Row(RowFunction::Scan(other), y) if *x == y[..] && other.is_beside(scan) => Some(other.output),
            _ => None,
        };
        if self.instructions[..at].iter().any(|other| output_of(other).is_some()) {
            return Some(());
        }
        let mut cotangents = vec![None; scan.states()];
        for (instruction, adjoint) in self.instructions[at..].iter().zip(&adjoints[at..]) {
            if let Some(output) = output_of(instruction) {
                cotangents[output] = adjoint.total(true);
            }
        }
        if cotangents.iter().any(Option::is_some) {
            let operands = x.iter().map(|id| values[id.at()].number()).collect::<Option<Vec<_>>>()?;
            let d: Vec<Symbol> = cotangents.into_iter().map(|d| d.unwrap_or_else(Symbol::zero)).collect();
            for (id, term) in x.iter().zip(scan.pulled(&operands, &d)?) {
                adjoints[id.at()].add(true, term);
            }
        }
        Some(())
    }
}

impl RowNode {
    /// The cotangents of the arguments for each element, if that of the result is `d`.
    fn back(&self, d: Symbol) -> Vec<Symbol> {
        match self.kind {
            NodeKind::Reduction(Reduction::Sum) => vec![d],
            NodeKind::Reduction(Reduction::Prod) => vec![self.share().chain(d)],
            NodeKind::Reduction(Reduction::Max | Reduction::Min) => {
                let (share, winners) = (self.share(), self.share().sum());
                let each = Symbol::select(winners.greater(Symbol::zero()), d / winners, Symbol::zero());
                vec![share.chain(each)]
            }
            NodeKind::Reduction(Reduction::Cumsum) => vec![d.reverse_cumsum()],
            NodeKind::Reduction(Reduction::ReverseCumsum) => vec![d.cumsum()],
            NodeKind::Function(_) => self.pulled(d),
        }
    }
}
