//! [`Arguments`]: which arguments of a call a program of its op takes.

use minitensor_kernels::program::{Program, Variable};

use super::def::{Body, Core, DTypeRule, OpDef};
use crate::__private::vjp_program;
use crate::attr::{Attr, AttrKind};
use crate::error::{Error, Result};

/// An argument of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// An input of the call.
    Input(usize),
    /// The cotangent of an output of the call.
    Cotangent(usize),
    /// A float attribute of the call; NaN if it is not given.
    Number(f64),
}

/// A program of an op, and its arguments.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// The program.
    pub program: Program,
    /// Its inputs. For a row body, each has one value per element of the row.
    pub inputs: Vec<Argument>,
    /// Its uniforms. For a row body, each has one value per row.
    pub uniforms: Vec<Argument>,
}

impl OpDef {
    /// Whether the body is a program, in calls that a program can describe.
    pub fn has_program(&self) -> bool {
        self.body.program().is_some()
    }

    /// The program of a call, and what its arguments are. `None` if the op has no program.
    pub fn forward(&self, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Result<Option<Arguments>> {
        let Some(program) = self.program(attrs, is_given)? else { return Ok(None) };
        let inputs = |take: fn(&OpDef, usize) -> bool| {
            (0..self.inputs.len()).filter(move |i| take(self, *i)).map(Argument::Input)
        };
        let floats = self.attrs.iter().zip(attrs).filter(|(a, _)| a.kind == AttrKind::Float);
        let floats = floats.map(|(_, v)| Argument::Number(if let Attr::Float(v) = v { *v } else { f64::NAN }));
        let numbers = inputs(|op, i| !op.is_along(i) && op.is_number(i));
        let positions = inputs(|op, i| !op.is_along(i) && !op.is_number(i));
        Ok(Some(Arguments {
            program,
            inputs: inputs(OpDef::is_along).collect(),
            uniforms: numbers.chain(positions).chain(floats).collect(),
        }))
    }

    /// The program that computes the gradients of the inputs `wrt` of a call with real numbers. `None` if the op has no program.
    pub fn backward(
        &self,
        attrs: &[Attr],
        is_given: impl Fn(usize) -> bool,
        wrt: &[usize],
    ) -> Result<Option<Arguments>> {
        let Some(Arguments { program, inputs, uniforms }) = self.forward(attrs, is_given)? else { return Ok(None) };
        let outputs: Vec<usize> = self.cotangents().collect();
        let with = |cotangents: Vec<usize>, own: Vec<Argument>| {
            cotangents.into_iter().map(Argument::Cotangent).chain(own).collect::<Vec<_>>()
        };
        if !matches!(self.body, Body::Cell(_)) {
            let program = vjp_program(&program, &outputs, wrt, false)?;
            return Ok(Some(Arguments { program, inputs: with(outputs, inputs), uniforms }));
        }
        let place = |i: &usize| {
            let at = |all: &[Argument]| all.iter().position(|a| *a == Argument::Input(*i));
            at(&inputs).map(Variable::Input).or_else(|| at(&uniforms).map(Variable::Uniform))
        };
        let gives: Vec<bool> = outputs.iter().map(|k| self.outputs[*k].core == Core::Slice).collect();
        let wrt: Option<Vec<Variable>> = wrt.iter().map(place).collect();
        let program = wrt.and_then(|wrt| program.giving(&outputs).vjp_of_rows(&gives, &wrt));
        let program = program.ok_or_else(|| Error::runtime("the body has a function without a derivative"))?;
        let (rows, numbers): (Vec<usize>, Vec<usize>) =
            outputs.iter().partition(|k| self.outputs[**k].core == Core::Slice);
        Ok(Some(Arguments { program, inputs: with(rows, inputs), uniforms: with(numbers, uniforms) }))
    }

    /// Whether an input has one value per element that the program computes, rather than one per row.
    fn is_along(&self, input: usize) -> bool {
        !matches!(self.body, Body::Cell(_)) || self.inputs[input].core == Core::Slice
    }

    fn is_number(&self, input: usize) -> bool {
        matches!(self.inputs[input].dtype, DTypeRule::Generic(_))
    }
}
