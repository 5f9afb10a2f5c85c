//! Row ops that a program computes.

use std::borrow::Cow;

use minitensor_kernels::program::{Program, ValueType};
use minitensor_schema::check;
use minitensor_schema::shape::{Dim, Dims};

use super::CustomOpBuilder;
use super::builder::dtype_of;
use crate::attr::{Attr, AttrKind};
use crate::clause;
use crate::error::{Error, Result};
use crate::op::Gradients;
use crate::op::def::*;
use crate::op::program::promoted_dtypes_of_rows;
use crate::op::variants::{Choice, Write};

impl CustomOpBuilder {
    /// A row op that a program computes. Its inputs are those of the program, and its attributes are the program's uniforms. `shape`
    /// gives the dimensions of inputs and outputs, in the syntax of `#[custom_op(shape = …)]`: `[.., n]` for a row, `[..]` for one
    /// number per row, `[n]` for a row that all others share. Without it, each input is a row, and each output is a row unless it is
    /// the same for all elements. The op takes floating dtypes, and has derivatives of any order. If the program has
    /// functions of integers, it takes integers.
    ///
    /// ```
    /// use minitensor::kernels::{Field, RealRow, program::Program};
    /// use minitensor::{CustomOp, CustomOpBuilder, Tensor};
    ///
    /// let body = Program::write(&["x"], &[], |x, _| vec![("out".into(), (x[0] / x[0].sum()).into())]);
    /// let op = CustomOpBuilder::from_row_program("normalized", body, None)?.build()?;
    /// let x = Tensor::from_vec(vec![1.0, 3.0, 2.0, 2.0], [2, 2])?;
    /// assert_eq!(op.forward(&[&x])?.to_vec::<f64>()?, [0.25, 0.75, 0.5, 0.5]);
    /// # Ok::<(), minitensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the program or the clause is invalid, an output without the dimension of the row is a truth value or differs along
    /// the row, or neither floating nor integer dtypes support all functions of the program.
    #[track_caller]
    pub fn from_row_program(name: impl Into<String>, program: Program, shape: Option<&str>) -> Result<CustomOpBuilder> {
        CustomOpBuilder::of_program(name, &program).row_programs(shape, move |_, _| Ok(program.clone()))
    }

    /// A row op that programs compute, as [from one program](CustomOpBuilder::from_row_program). Static attributes and optional
    /// inputs choose the program, as in [`CustomOpBuilder::programs`]. Without a clause, which outputs are rows does not depend on
    /// the choice.
    ///
    /// # Errors
    /// Those of `write`, and of [one program](CustomOpBuilder::from_row_program).
    pub fn row_programs(
        self,
        shape: Option<&str>,
        write: impl Fn(&[Attr], &[bool]) -> Result<Program> + Send + Sync + 'static,
    ) -> Result<CustomOpBuilder> {
        self.row_programs_from(None, shape, write)
    }

    /// The first program is the one for `choice`.
    pub(super) fn row_programs_from(
        mut self,
        choice: Option<Choice>,
        shape: Option<&str>,
        write: impl Fn(&[Attr], &[bool]) -> Result<Program> + Send + Sync + 'static,
    ) -> Result<CustomOpBuilder> {
        let mut made = self.first(choice, write)?;
        let program = &made.first.1;
        let op = &mut self.op;
        let wrong = |op: &OpDef, what: String| Error::value(format!("op '{}': {what}", op.name));
        let dtypes = promoted_dtypes_of_rows(program).map_err(|e| e.context(format!("op '{}'", op.name)))?;
        if op.generics.is_empty() {
            op.generics = Cow::Owned(vec![Generic { name: Cow::Borrowed("T"), dtypes }]);
        }
        op.inputs.to_mut().iter_mut().for_each(|input| input.dtype = DTypeRule::Generic(0));
        op.outputs =
            program.outputs().iter().map(|(name, id)| output(name, program.instructions()[id.at()].kind())).collect();
        let text = shape.map_or_else(|| shape_of(op, program), str::to_owned);
        clause::shape(op, &text)?.apply_to(op);
        let ShapeRule::Core(rule) = &op.shape else {
            return Err(wrong(op, format!("expected a shape such as {}, got {text}", shape_of(op, program))));
        };
        let row = rule.inputs.iter().chain(rule.outputs.iter()).find_map(|dims| dims.core.first());
        let core = |name: &Text, dims: &Dims| match dims.core.as_ref() {
            [] => Ok(Core::Scalar),
            [dim @ Dim::Name(_)] if row == Some(dim) => Ok(Core::Slice),
            _ => Err(wrong(op, format!("expected [.., n], [n] or [..] for '{name}', with one n for all, got {text}"))),
        };
        let inputs: Vec<Core> =
            op.inputs.iter().zip(rule.inputs.iter()).map(|(i, d)| core(&i.name, d)).collect::<Result<_>>()?;
        let outputs: Vec<Core> =
            op.outputs.iter().zip(rule.outputs.iter()).map(|(o, d)| core(&o.name, d)).collect::<Result<_>>()?;
        if !op.inputs.iter().zip(&inputs).any(|(i, core)| i.arity == Arity::One && *core == Core::Slice) {
            return Err(wrong(op, format!("expected at least one input that is a row, got the shape {text}")));
        }
        op.inputs.to_mut().iter_mut().zip(inputs).for_each(|(input, core)| input.core = core);
        op.outputs.to_mut().iter_mut().zip(outputs).for_each(|(output, core)| output.core = core);
        let is_number = op.outputs.iter().any(|output| output.dtype == DTypeRule::Generic(0));
        op.backward = if is_number { Backward::Program(Gradients::new()) } else { Backward::NotNeeded };
        if shape.is_none() {
            made.write = made.write.map(|write| alike(&made.first.1, write));
        }
        self.program = Some(made);
        Ok(self)
    }

    /// Lets the caller choose the axis of the one core dimension, with this default. With `None`, a caller may choose several axes, and
    /// the default is all. If an output lacks the dimension, the op also takes `keepdims`.
    ///
    /// # Errors
    /// If the dimensions of the op do not allow it.
    pub fn axis(mut self, default: Option<i64>) -> Result<CustomOpBuilder> {
        let op = &mut self.op;
        let many = default.is_none();
        let wrong = |op: &OpDef, what: &str| Error::value(format!("op '{}': {what}", op.name));
        let ShapeRule::Core(rule) = &op.shape else { return Err(wrong(op, "an axis needs a shape clause")) };
        if let Some(problem) = check::axis(&op.schema(), rule, many) {
            return Err(wrong(op, &problem.sentence.to_string()));
        }
        let lacks = rule.outputs.iter().any(|dims| dims.core.is_empty());
        let attr = op.attrs.len() as u8;
        let (kind, value) = default.map_or((AttrKind::Ints, Attr::None), |axis| (AttrKind::Int, Attr::Int(axis)));
        op.axis = Some(Axis { attr, keepdims: lacks.then_some(attr + 1), many });
        let builder = self.attr("axis", kind, Some(value));
        Ok(if lacks { builder.attr("keepdims", AttrKind::Bool, Some(Attr::Bool(false))) } else { builder })
    }
}

/// The clause if none is given.
fn shape_of(op: &OpDef, program: &Program) -> String {
    let is_free = |name: &&str| op.attrs.iter().all(|a| a.name != *name);
    let n = ["n", "m", "length"].into_iter().find(is_free).unwrap_or("size");
    let inputs: Vec<String> = program.inputs().iter().map(|name| format!("{name}: [.., {n}]")).collect();
    let output = |((name, _), varies): (&(String, _), bool)| match varies {
        true => format!("{name}: [.., {n}]"),
        false => format!("{name}: [..]"),
    };
    let outputs: Vec<String> = program.outputs().iter().zip(program.varying()).map(output).collect();
    format!("({}) -> ({})", inputs.join(", "), outputs.join(", "))
}

/// Programs with the same rows as outputs as the first one. The shape of the op was derived from it.
fn alike(first: &Program, write: Box<Write>) -> Box<Write> {
    let varying = first.varying();
    Box::new(move |attrs, given| {
        let program = write(attrs, given)?;
        program.verify().map_err(|e| Error::value(e.to_string()))?;
        let is_row = program.varying();
        match program.outputs().iter().zip(is_row.iter().zip(&varying)).find(|(_, (a, b))| a != b) {
            None => Ok(program),
            Some(((name, _), (is_row, _))) => {
                let what = |is_row| if is_row { "a row" } else { "a number for each row" };
                Err(Error::value(format!(
                    "output '{name}' is {}, but {} in other calls; declare the shape of the op, such as \
                     (x: [.., n]) -> [.., n]",
                    what(*is_row),
                    what(!*is_row)
                )))
            }
        }
    })
}

fn output(name: &str, kind: ValueType) -> Output {
    Output { name: Cow::Owned(name.to_owned()), dtype: dtype_of(kind), role: Role::Returned, core: Core::Slice }
}
