//! The vector-Jacobian product of a program: the program evaluated with dual numbers of symbols, once for each input. For long programs with
//! several inputs, such as derivatives of derivatives, one sweep in reverse order computes all gradients ([`reverse`](super::reverse)).

use super::{Algebra, Id, Instruction, Output, Primitive, Program, Scalar, ScalarValue, Symbol, ValueType, Variable};
use crate::number::Dual;
use crate::number::scalar::{Element, Field, Num, lit};

/// The most instructions, over all inputs, for which derivatives are computed forwards.
const MOST_FORWARDS: usize = 512;

/// The derivatives of an output: by an input and, for complex numbers, also by the conjugate of the input.
type Derivatives = Vec<Symbol>;

impl Program {
    /// The program that takes the cotangents of the numeric outputs, then the inputs, and returns the gradients of the
    /// inputs `wrt`: `d_out`, …, `x`, … to `d_x`, …. Uniforms stay. `None` if a primitive has no derivative, or if an
    /// input doesn't exist. Numbers are treated as real, so the conjugate of a number is the number itself.
    ///
    /// The rules are those of [`Dual`], so symbolic and compiled gradients can't differ. A cotangent of 0 contributes 0
    /// even if a derivative is infinite.
    pub fn vjp(&self, wrt: &[usize]) -> Option<Program> {
        self.pulled_back(wrt, 1)
    }

    /// Like [`Program::vjp`], for complex numbers. The gradient of a real number by `z = x + iy` is its derivative by
    /// `x` plus `i` times its derivative by `y`. For a holomorphic function it is the cotangent times the conjugate of
    /// the derivative. Other functions, such as this gradient itself, also depend on the derivative by the conjugate.
    pub fn vjp_of_complex(&self, wrt: &[usize]) -> Option<Program> {
        self.pulled_back(wrt, 2)
    }

    fn pulled_back(&self, wrt: &[usize], directions: usize) -> Option<Program> {
        if wrt.iter().any(|i| *i >= self.inputs.len()) {
            return None;
        }
        let numbers: Vec<usize> = (0..self.outputs.len()).filter(|k| self.is_number(*k)).collect();
        let cotangents = self.cotangents();
        let names: Vec<&str> =
            numbers.iter().map(|k| &cotangents[*k]).chain(&self.inputs).map(String::as_str).collect();
        let uniforms: Vec<&str> = self.uniforms.iter().map(String::as_str).collect();
        let mut complete = true;
        let program = Program::write(&names, &uniforms, |x, u| {
            let (d, x) = x.split_at(numbers.len());
            let gradient = |i: &usize| {
                let slopes = self.derivatives(x, u, *i, directions)?;
                let parts = numbers.iter().zip(d).map(|(k, d)| match slopes[*k][..] {
                    [slope, by_conjugate] => slope.conj().chain(*d) + by_conjugate.chain(d.conj()),
                    _ => slopes[*k][0].chain(*d),
                });
                let sum = parts.reduce(|a, b| a + b).unwrap_or_else(Symbol::zero);
                Some((format!("d_{}", self.inputs[*i]), sum.into()))
            };
            let name = |i: &usize| format!("d_{}", self.inputs[*i]);
            let gradients: Option<Vec<(String, Output)>> =
                match directions == 1 && wrt.len() > 1 && self.instructions.len() * wrt.len() > MOST_FORWARDS {
                    true => self.values(x, u).and_then(|values| {
                        let variables: Vec<Variable> = wrt.iter().map(|i| Variable::Input(*i)).collect();
                        let cotangents = numbers.iter().zip(d).map(|(k, d)| (self.outputs[*k].1, *d, true));
                        let gradients = self.swept(&values, &[], cotangents, &variables)?;
                        Some(wrt.iter().map(name).zip(gradients.into_iter().map(Output::from)).collect())
                    }),
                    false => wrt.iter().map(gradient).collect(),
                };
            complete = gradients.is_some();
            gradients.unwrap_or_default()
        });
        complete.then_some(program)
    }

    /// The derivatives of all outputs; none for a truth value.
    fn derivatives(&self, x: &[Symbol], u: &[Symbol], by: usize, directions: usize) -> Option<Vec<Derivatives>> {
        let u: Vec<_> = u.iter().map(|u| Dual::constant_of(*u)).collect();
        let lifted = |direction: usize| -> Vec<Dual<Symbol>> {
            let varies = |k: usize| direction == 0 && k == by;
            let dual = |(k, x): (usize, &Symbol)| if varies(k) { Dual::variable(*x) } else { Dual::constant_of(*x) };
            x.iter().enumerate().map(dual).collect()
        };
        let arguments: Vec<_> = (0..directions).map(lifted).collect();
        let mut values: Vec<Vec<ScalarValue<Dual<Symbol>>>> =
            vec![Vec::with_capacity(self.instructions.len()); directions];
        let varies = self.depends_on(by);
        for (at, instruction) in self.instructions.iter().enumerate() {
            let value = |direction: usize| match (instruction, directions) {
                // Functions of integers have no derivative, but conditions on other inputs may use them.
                (Instruction::Apply(function, x), _) if function.algebra() == Algebra::Int && !varies[at] => {
                    let value = |x: &Id| values[direction][x.at()].number().map(|x| x.value);
                    let value = Symbol::apply(*function, &x.iter().map(value).collect::<Option<Vec<_>>>()?)?;
                    Some(ScalarValue::Number(Dual::constant_of(value.number()?)))
                }
                (Instruction::Apply(Primitive::Conj, x), 1) => Some(values[0][x[0].at()]),
                // ∂z̄' = (∂'z)¯, where ∂' is the derivative by the conjugate.
                (Instruction::Apply(Primitive::Conj, x), _) => {
                    Some(ScalarValue::Number(values[1 - direction][x[0].at()].number()?.conj()))
                }
                // Complex numbers have no order, which the real formula uses to find the smaller side.
                (Instruction::Apply(Primitive::Sigmoid, x), 2) => {
                    let x = values[direction][x[0].at()].number()?;
                    let y = x.value.sigmoid();
                    Some(ScalarValue::Number(Dual { value: y, tangent: (y * (-x.value).sigmoid()).chain(x.tangent) }))
                }
                (Instruction::Apply(Primitive::Tanh, x), 2) => {
                    let x = values[direction][x[0].at()].number()?;
                    let twice = x.value + x.value;
                    let slope = lit::<Symbol>(4) * (twice.sigmoid() * (-twice).sigmoid());
                    Some(ScalarValue::Number(Dual { value: x.value.tanh(), tangent: slope.chain(x.tangent) }))
                }
                _ => instruction.value(&arguments[direction], &u, &values[direction]),
            };
            let next = (0..directions).map(value).collect::<Option<Vec<_>>>()?;
            values.iter_mut().zip(next).for_each(|(values, value)| values.push(value));
        }
        let slope = |value: ScalarValue<Dual<Symbol>>| value.number().map(|y| y.tangent);
        Some(self.outputs.iter().map(|(_, id)| values.iter().filter_map(|v| slope(v[id.at()])).collect()).collect())
    }

    /// For each instruction, whether its value depends on an input.
    fn depends_on(&self, input: usize) -> Vec<bool> {
        let mut depends = Vec::with_capacity(self.instructions.len());
        for instruction in &self.instructions {
            let is_input = matches!(instruction, Instruction::Input(k) if *k as usize == input);
            depends.push(is_input || instruction.operands().iter().any(|(id, _)| depends[id.at()]));
        }
        depends
    }

    /// Names for the cotangents of the outputs: `d_out`, with underscores appended while the name is taken.
    pub(super) fn cotangents(&self) -> Vec<String> {
        let mut taken: Vec<String> = self.inputs.iter().chain(&self.uniforms).cloned().collect();
        let arguments = taken.len();
        for (output, _) in &self.outputs {
            let mut name = format!("d_{output}");
            while taken.contains(&name) {
                name.push('_');
            }
            taken.push(name);
        }
        taken.split_off(arguments)
    }

    fn is_number(&self, output: usize) -> bool {
        self.instructions[self.outputs[output].1.at()].kind() == ValueType::Number
    }

    /// The same program with these outputs only.
    pub fn giving(&self, outputs: &[usize]) -> Program {
        let outputs = outputs.iter().map(|k| self.outputs[*k].clone()).collect();
        Program { outputs, ..self.clone() }.without_dead()
    }
}
