//! [`Scan`]: `hᵢ = step(hᵢ₋₁, xᵢ)` along a row, where the step is a program.

use std::sync::Arc;
#[cfg(feature = "engine")]
use std::sync::OnceLock;

#[cfg(feature = "engine")]
use smallvec::SmallVec;

use super::symbol;
use super::{Id, Instruction, Malformed, Program, Scalar, ScalarValue, Symbol, SymbolMask, ValueType};
#[cfg(feature = "engine")]
use super::{Plan, Tile};
use crate::number::scalar::Element;
#[cfg(feature = "engine")]
use crate::reduce::scan::POLL_INTERVAL;
use crate::row::{RealRow, RowFunction};
#[cfg(feature = "engine")]
use crate::runtime::stop::poll;

/// One of the results of a scan over one or more rows at once: `hᵢ = step(hᵢ₋₁, xᵢ, cᵢ)`, and `h₀ = x₀`. The operands are the rows `x`, then other
/// rows `c` that the step uses.
#[derive(Clone, Debug)]
pub struct Scan {
    step: Arc<Step>,
    /// Which row of `h` is the result.
    pub(super) output: usize,
}

/// The step, which takes `hᵢ₋₁`, `xᵢ` and `cᵢ`.
#[derive(Debug)]
struct Step {
    program: Program,
    #[cfg(feature = "engine")]
    plan: OnceLock<Plan>,
}

impl PartialEq for Scan {
    fn eq(&self, other: &Scan) -> bool {
        self.output == other.output && self.is_beside(other)
    }
}

impl Scan {
    /// The result at this position of the scan with a step.
    pub(super) fn new(step: Program, output: usize) -> Scan {
        let step = Step {
            program: step,
            #[cfg(feature = "engine")]
            plan: OnceLock::new(),
        };
        Scan { step: Arc::new(step), output }
    }

    /// Another result of the same scan.
    pub(super) fn beside(&self, output: usize) -> Scan {
        Scan { step: Arc::clone(&self.step), output }
    }

    /// Whether both are results of one scan, if their operands are the same.
    pub(super) fn is_beside(&self, other: &Scan) -> bool {
        Arc::ptr_eq(&self.step, &other.step) || self.step.program == other.step.program
    }

    /// The program of the step.
    pub fn step(&self) -> &Program {
        &self.step.program
    }

    /// The number of rows `x`, and of results.
    pub fn states(&self) -> usize {
        self.step().outputs.len()
    }

    /// The number of operands.
    pub(crate) fn arity(&self) -> usize {
        self.step().inputs.len().saturating_sub(self.states())
    }

    /// Checks that the step is a program of elements that takes and returns the same numbers.
    pub(super) fn verify(&self) -> Result<(), Malformed> {
        let step = self.step();
        let fault = |what: &str| Err(Malformed(what.to_owned()));
        if step.instructions.iter().any(Instruction::is_of_rows) {
            return fault("it uses a function of rows, but computes single elements");
        }
        if !step.uniforms.is_empty() || step.inputs.len() < 2 * self.states() || self.output >= self.states() {
            return fault("it must take the result before and the element of each row, and return one number for each");
        }
        if step
            .outputs
            .iter()
            .any(|(_, id)| step.instructions.get(id.at()).is_some_and(|i| i.kind() == ValueType::Mask))
        {
            return fault("it returns a truth value, expected a number");
        }
        step.verify()
    }

    /// All results, for symbols as operands.
    fn results(&self, operands: &[Symbol]) -> Vec<Symbol> {
        let result = |output| Symbol::apply_row_function(&RowFunction::Scan(self.beside(output)), operands);
        (0..self.states()).filter_map(result).collect()
    }

    /// The cotangents of the operands, from those of all results. `None` if a primitive of the step has no derivative.
    ///
    /// `gᵢ = dᵢ + (∂hᵢ₊₁/∂hᵢ)ᵀ gᵢ₊₁` is a scan from the end. The cotangents of the operands are `(∂hᵢ/∂xᵢ)ᵀ gᵢ` and `(∂hᵢ/∂cᵢ)ᵀ gᵢ`.
    pub(super) fn pulled(&self, operands: &[Symbol], d: &[Symbol]) -> Option<Vec<Symbol>> {
        let step = self.step();
        let pull = step.vjp(&(0..step.inputs.len()).collect::<Vec<_>>())?;
        let pulled = |g: &[Symbol], before: &[Symbol], operands: &[Symbol]| -> Option<Vec<Symbol>> {
            pull.at(&[g, before, operands].concat(), &[])?.iter().map(ScalarValue::number).collect()
        };
        let reversed = |rows: &[Symbol]| rows.iter().map(|row| row.reverse()).collect::<Vec<_>>();
        let results = self.results(operands);
        let (kept, after) = (reversed(&results), operands.iter().map(|x| x.shift(-1).reverse()).collect::<Vec<_>>());
        let mut is_complete = true;
        let g = scan(&reversed(d), |g, d| {
            let pulled = pulled(g, &kept, &after);
            is_complete = pulled.is_some();
            d.iter().zip(pulled.unwrap_or_default()).map(|(d, pulled)| *d + pulled).collect()
        });
        if !is_complete {
            return None;
        }
        let g = reversed(&g);
        let before: Vec<Symbol> = results.iter().map(|h| h.shift(1)).collect();
        let is_first = before[0].position().equal(Symbol::zero());
        let rest = pulled(&g, &before, operands)?.split_off(before.len());
        let firsts = g.into_iter().map(Some).chain(std::iter::repeat(None));
        let chosen = |(first, rest): (Option<Symbol>, Symbol)| {
            Symbol::select(is_first, first.unwrap_or_else(Symbol::zero), rest)
        };
        Some(firsts.zip(rest).map(chosen).collect())
    }
}

impl Program {
    /// Whether it scans rows.
    pub fn scans(&self) -> bool {
        self.instructions.iter().any(|i| matches!(i, Instruction::Row(RowFunction::Scan(_), _)))
    }
}

/// Scans rows with a step, which runs once. Other values that it uses become operands.
pub(super) fn scan(rows: &[Symbol], body: impl FnOnce(&[Symbol], &[Symbol]) -> Vec<Symbol>) -> Vec<Symbol> {
    let parameters = symbol::parameters(2 * rows.len());
    let (before, next) = parameters.split_at(rows.len());
    let results = body(before, next);
    let (step, others) = recorded_step(&parameters, &results);
    Scan::new(step, 0).results(&[rows, &others].concat())
}

/// The program of a step that was recorded with these parameters and results. Its last inputs are other values that it uses, which are
/// returned, too.
fn recorded_step(parameters: &[Symbol], results: &[Symbol]) -> (Program, Vec<Symbol>) {
    let instructions = symbol::recorded();
    let place = |at: usize| parameters.iter().position(|parameter| parameter.0.at() == at);
    let mut is_own: Vec<bool> = Vec::with_capacity(instructions.len());
    for (at, instruction) in instructions.iter().enumerate() {
        let mut operands = instruction.operands().into_iter();
        is_own.push(place(at).is_some() || operands.any(|(id, _)| is_own[id.at()]));
    }
    let mut is_used = vec![false; instructions.len()];
    results.iter().for_each(|result| is_used[result.0.at()] = true);
    for at in (0..instructions.len()).rev().filter(|at| is_own[*at]) {
        if is_used[at] {
            instructions[at].operands().iter().for_each(|(id, _)| is_used[id.at()] = true);
        }
    }
    let is_other = |at: &usize| is_used[*at] && !is_own[*at] && !instructions[*at].is_constant();
    let others: Vec<usize> = (0..instructions.len()).filter(is_other).collect();
    let operand = |at: &usize| match (Id(*at as u32), instructions[*at].kind()) {
        (id, ValueType::Number) => Symbol(id),
        (id, ValueType::Mask) => Symbol::select(SymbolMask(id), Symbol::one(), Symbol::zero()),
    };
    let operands = others.iter().map(operand).collect();
    let states = results.len();
    let name = |k: usize| match k {
        k if k < states => format!("h{k}"),
        k if k < 2 * states => format!("x{}", k - states),
        k => format!("c{}", k - 2 * states),
    };
    let inputs: Vec<String> = (0..parameters.len() + others.len()).map(name).collect();
    let program = Program::write(&inputs.iter().map(String::as_str).collect::<Vec<_>>(), &[], |x, _| {
        let mut values = Vec::with_capacity(instructions.len());
        for (at, instruction) in instructions.iter().enumerate() {
            let other = || others.iter().position(|other| *other == at).map(|k| parameters.len() + k);
            let value = match (place(at).or_else(other), instruction.kind()) {
                (Some(k), ValueType::Number) => x[k].into(),
                (Some(k), ValueType::Mask) => x[k].truthy().into(),
                (None, _) if is_used[at] => instruction.value(&[], &[], &values).expect("symbols have all functions"),
                (None, _) => x[0].into(),
            };
            values.push(value);
        }
        results.iter().enumerate().map(|(k, result)| (name(k), values[result.0.at()])).collect()
    });
    (program, operands)
}

#[cfg(feature = "engine")]
impl Scan {
    /// The results at an element, from those before it, by the definition.
    pub(super) fn at<T: Scalar>(&self, before: &[T], operands: &[T]) -> Option<Vec<T>> {
        let inputs: Vec<T> = before.iter().chain(operands).copied().collect();
        self.step().at(&inputs, &[])?.iter().map(ScalarValue::number).collect()
    }

    /// Whether `T` has all functions of the step.
    pub(super) fn runs_at<T: Tile>(&self) -> bool {
        self.step().runs_at::<T>()
    }

    /// Computes all results for rows of `n` elements that are side by side: element `i` of row `r` is at `i · rows + r`. There are as many
    /// operands in `x`, and results in `out`, as the scan has.
    pub(super) fn run<T: Tile>(&self, n: usize, rows: usize, x: &[&[T]], out: &mut [&mut [T]]) {
        assert_eq!((x.len(), out.len()), (self.arity(), self.states()), "operands of a scan");
        assert!(self.runs_at::<T>(), "functions of a scan");
        assert!(x.iter().map(|x| x.len()).chain(out.iter().map(|out| out.len())).all(|len| len == n * rows));
        if n == 0 {
            return;
        }
        out.iter_mut().zip(x).for_each(|(out, x)| out[..rows].copy_from_slice(&x[..rows]));
        let plan =
            self.step.plan.get_or_init(|| Plan::new(self.step().clone(), &[]).expect("the step is a valid program"));
        let results: SmallVec<[*mut T; 4]> = out.iter_mut().map(|out| out.as_mut_ptr()).collect();
        let before = results.iter().map(|h| h.cast_const().cast());
        let next = x.iter().map(|x| x.as_ptr().wrapping_add(rows).cast());
        let mut inputs: SmallVec<[*const u8; 8]> = before.chain(next).collect();
        let mut outputs: SmallVec<[*mut u8; 4]> = results.iter().map(|h| h.wrapping_add(rows).cast()).collect();
        // A whole vector takes less time than a part of one. Later steps replace the numbers beyond the rows.
        let lanes = plan.lanes::<T>();
        let (all, step) = (n * rows, rows * size_of::<T>());
        for (i, at) in (rows..all).step_by(rows).enumerate() {
            if i % POLL_INTERVAL == 0 {
                poll();
            }
            let count = if rows < lanes && at + lanes <= all { lanes } else { rows };
            // SAFETY: the type has all functions of the program. Each operand and result has `count` elements from here on. The first
            // `rows` results before this place are not written to.
            unsafe { plan.run::<T>(count, &inputs, &[], &outputs) };
            inputs.iter_mut().for_each(|place| *place = place.wrapping_add(step));
            outputs.iter_mut().for_each(|place| *place = place.wrapping_add(step));
        }
    }
}
