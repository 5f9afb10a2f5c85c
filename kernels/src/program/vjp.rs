//! The vector-Jacobian product of a program: the program at dual numbers of symbols.

use super::{Output, Program, Symbol};
use crate::dual::Dual;
use crate::scalar::{Element, Num};

impl Program {
    /// The program that takes the cotangents of the numeric outputs, then the inputs, and gives the gradients of the
    /// inputs `wrt`: `d_out`, …, `x`, … to `d_x`, …. Uniforms stay. `None` where a primitive has no
    /// derivative, or there is no such input.
    ///
    /// The rules are those of [`Dual`], so symbolic and compiled gradients can't differ; a cotangent of 0 contributes 0
    /// even where a derivative is infinite.
    pub fn vjp(&self, wrt: &[usize]) -> Option<Program> {
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
            let u: Vec<_> = u.iter().map(|u| Dual::constant_of(*u)).collect();
            let gradient = |i: &usize| {
                let dual = |(k, x): (usize, &Symbol)| if k == *i { Dual::variable(*x) } else { Dual::constant_of(*x) };
                let x: Vec<_> = x.iter().enumerate().map(dual).collect();
                let outputs = self.at(&x, &u)?;
                let parts = numbers.iter().zip(d).map(|(k, d)| Some(outputs[*k].number()?.tangent.chain(*d)));
                let sum = parts.collect::<Option<Vec<_>>>()?.into_iter().reduce(|a, b| a + b);
                Some((format!("d_{}", self.inputs[*i]), sum.unwrap_or_else(Symbol::zero).into()))
            };
            let gradients: Option<Vec<(String, Output)>> = wrt.iter().map(gradient).collect();
            complete = gradients.is_some();
            gradients.unwrap_or_default()
        });
        complete.then_some(program)
    }

    /// Names for the cotangents of the outputs: `d_out`, with underscores where something is called so.
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
        self.nodes[self.outputs[output].1.at()].kind() == super::Kind::Number
    }
}
