//! The data that a gradient needs from a call: the inputs that it reads, and outputs of the call that can replace
//! inputs.

use super::{Id, Instruction, Output, Program, Scalar, ScalarValue, Symbol, SymbolMask, ValueType};
use crate::number::scalar::Mask;

/// Programs with more instructions are not compared case by case.
const MOST_NODES: usize = 64;
/// The maximum nesting depth of the truth values by which a comparison distinguishes cases.
const MOST_CASES: usize = 6;

impl Program {
    /// The positions of the inputs that at least one output depends on.
    pub fn reads(&self) -> impl Iterator<Item = usize> + '_ {
        self.instructions
            .iter()
            .filter_map(|instruction| if let Instruction::Input(k) = instruction { Some(*k as usize) } else { None })
    }

    /// The program with only these inputs, in this order. It must read no others.
    pub fn taking(&self, inputs: &[usize]) -> Program {
        let at = |k: u32| inputs.iter().position(|i| *i == k as usize).unwrap_or_default() as u32;
        let moved = |instruction: &Instruction| {
            if let Instruction::Input(k) = instruction { Instruction::Input(at(*k)) } else { instruction.clone() }
        };
        Program {
            inputs: inputs.iter().map(|i| self.inputs[*i].clone()).collect(),
            instructions: self.instructions.iter().map(moved).collect(),
            ..self.clone()
        }
    }

    /// A gradient of `forward` that takes these outputs of `forward` as additional inputs and uses them in place of the
    /// expressions that compute them. The inputs of `forward` are inputs of `self` from position `first` on; the
    /// uniforms are the same.
    ///
    /// ```
    /// use minitensor_kernels::{Field, program::Program};
    ///
    /// let exp = Program::write(&["x"], &[], |x, _| vec![("y".into(), x[0].exp().into())]);
    /// let vjp = exp.vjp(&[0]).unwrap();
    /// assert_eq!(vjp.to_string(), "d_x = chain(exp(x), d_y)");
    /// assert_eq!(vjp.through_outputs(1, &exp, &[0]).unwrap().to_string(), "d_x = chain(y, d_y)");
    /// ```
    pub fn through_outputs(&self, first: usize, forward: &Program, outputs: &[usize]) -> Option<Program> {
        let names = outputs.iter().map(|k| &forward.outputs[*k].0);
        let names: Vec<String> = self.inputs.iter().cloned().chain(names.cloned()).collect();
        if (1..names.len()).any(|k| names[..k].contains(&names[k]) || self.uniforms.contains(&names[k])) {
            return None;
        }
        let is_computed = |k: &&usize| {
            let instruction = &forward.instructions[forward.outputs[**k].1.at()];
            !instruction.operands().is_empty() && instruction.kind() == ValueType::Number
        };
        self.written_as(&names, |x, u| {
            let (own, given) = x.split_at(self.inputs.len());
            let values = forward.values(&own[first..first + forward.inputs.len()], u)?;
            let known: Vec<(Id, Symbol)> = outputs
                .iter()
                .zip(given)
                .filter(|(k, _)| is_computed(k))
                .filter_map(|(k, symbol)| Some((values[forward.outputs[*k].1.at()].number()?.0, *symbol)))
                .collect();
            let (mut plain, mut replaced) = (Vec::new(), Vec::new());
            for instruction in &self.instructions {
                let value: ScalarValue<Symbol> = instruction.value(own, u, &plain)?;
                let output = value.number().and_then(|x| known.iter().find(|(id, _)| *id == x.0));
                replaced.push(match output {
                    Some((_, symbol)) => ScalarValue::Number(*symbol),
                    None => instruction.value(own, u, &replaced)?,
                });
                plain.push(value);
            }
            Some(self.outputs.iter().map(|(name, id)| (name.clone(), replaced[id.at()])).collect())
        })
    }

    /// True if this gradient of `forward` returns the same for all numbers when the output `output` of `forward` is
    /// passed in place of the input `input`. This holds for `max(x, 0)`: the output is positive exactly where the input
    /// is.
    ///
    /// The programs are compared case by case; a case assigns a truth value to every comparison. In each case the
    /// output must be the input or a small integer, so that the result also holds in a narrower format.
    pub fn is_same_at_output(&self, first: usize, forward: &Program, input: usize, output: usize) -> bool {
        let is_exact = |instruction: &Instruction| match instruction {
            Instruction::Constant(c) => c.small_integer().is_some(),
            Instruction::Bits(_) => false,
            _ => true,
        };
        if !forward.instructions.iter().all(is_exact) {
            return false;
        }
        let pair = self.written_as(&self.inputs, |x, u| {
            let computed = forward.values(&x[first..first + forward.inputs.len()], u)?;
            let mut other = x.to_vec();
            other[first + input] = computed[forward.outputs[output].1.at()].number()?;
            let both = self.at(x, u)?.into_iter().chain(self.at(&other, u)?);
            Some(both.enumerate().map(|(k, value)| (k.to_string(), value)).collect())
        });
        pair.is_some_and(|pair| pair.halves_agree(MOST_CASES))
    }

    /// True if the second half of the outputs equals the first half for all inputs.
    fn halves_agree(&self, cases: usize) -> bool {
        let (first, second) = self.outputs.split_at(self.outputs.len() / 2);
        if first.iter().zip(second).all(|((_, a), (_, b))| a == b) {
            return true;
        }
        let is_test = |instruction: &Instruction| matches!(instruction, Instruction::Apply(p, _) if p.is_test());
        let Some(at) =
            self.instructions.iter().position(is_test).filter(|_| cases > 0 && self.instructions.len() <= MOST_NODES)
        else {
            return false;
        };
        [true, false].into_iter().all(|holds| {
            let decided = self.written_as(&self.inputs, |x, u| {
                let mut values: Vec<ScalarValue<Symbol>> = Vec::with_capacity(self.instructions.len());
                let mut test = None;
                for (k, instruction) in self.instructions.iter().enumerate() {
                    let value = instruction.value(x, u, &values)?;
                    let id = value.mask().map(|SymbolMask(id)| id);
                    test = if k == at { id } else { test };
                    // Another test may have become the same instruction.
                    let is_decided = id.is_some() && id == test;
                    values.push(if is_decided { ScalarValue::Mask(SymbolMask::constant(holds)) } else { value });
                }
                Some(self.outputs.iter().map(|(name, id)| (name.clone(), values[id.at()])).collect())
            });
            decided.is_some_and(|program| program.halves_agree(cases - 1))
        })
    }

    /// The number of steps that take longer than loading a saved result: all but arithmetic and comparisons.
    pub fn dear_steps(&self) -> usize {
        self.instructions.iter().filter(|instruction| instruction.is_dear()).count()
    }

    /// The values of all instructions.
    pub(super) fn values<T: Scalar>(&self, inputs: &[T], uniforms: &[T]) -> Option<Vec<ScalarValue<T>>> {
        let mut values = Vec::with_capacity(self.instructions.len());
        for instruction in &self.instructions {
            values.push(instruction.value(inputs, uniforms, &values)?);
        }
        Some(values)
    }

    /// Another program with these inputs and the same uniforms; `None` if `body` returns `None`.
    pub(super) fn written_as(
        &self,
        inputs: &[String],
        body: impl FnOnce(&[Symbol], &[Symbol]) -> Option<Vec<(String, Output)>>,
    ) -> Option<Program> {
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let uniforms: Vec<&str> = self.uniforms.iter().map(String::as_str).collect();
        let mut complete = true;
        let program = Program::write(&inputs, &uniforms, |x, u| {
            let outputs = body(x, u);
            complete = outputs.is_some();
            outputs.unwrap_or_default()
        });
        complete.then_some(program)
    }
}
