//! Row ops that a program computes.

use std::borrow::Cow;

use minitensor_kernels::program::{Program, RowPlan, ValueType};
use minitensor_schema::check;
use minitensor_schema::shape::{Dim, Dims};

use super::CustomOpBuilder;
use super::builder::{Made, dtype_of};
use crate::attr::{Attr, AttrKind};
use crate::clause;
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};
use crate::op::Gradients;
use crate::op::def::*;

impl CustomOpBuilder {
    /// A row op that a program computes. Its inputs are those of the program, and its attributes are the program's uniforms. `shape`
    /// gives the dimensions of inputs and outputs, in the syntax of `#[custom_op(shape = …)]`: `[.., n]` for a row, `[..]` for one
    /// number per row, `[n]` for a row that all others share. Without it, each input is a row, and each output is a row unless it is
    /// the same for all elements. The op takes floating dtypes, and has derivatives of any order.
    ///
    /// ```
    /// use minitensor::kernels::{Field, Row, program::Program};
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
    /// the row, or no floating dtype supports all functions of the program.
    #[track_caller]
    pub fn from_row_program(name: impl Into<String>, program: Program, shape: Option<&str>) -> Result<CustomOpBuilder> {
        let mut builder = CustomOpBuilder::new(name, 0);
        let op = &mut builder.op;
        let wrong = |op: &OpDef, what: String| Error::value(format!("op '{}': {what}", op.name));
        program.verify().map_err(|e| wrong(op, e.to_string()))?;
        let dtypes = crate::op::program::dtypes(&program).intersection(DTypeSet::FLOAT);
        if dtypes == DTypeSet::of(&[]) {
            return Err(wrong(op, format!("no floating dtype supports all functions of its program: {program}")));
        }
        op.generics = Cow::Owned(vec![Generic { name: Cow::Borrowed("T"), dtypes }]);
        op.inputs = program.inputs().iter().map(|name| input(name)).collect();
        op.outputs =
            program.outputs().iter().map(|(name, id)| output(name, program.instructions()[id.at()].kind())).collect();
        let float = |name: &String| Attribute {
            name: Cow::Owned(name.clone()),
            kind: AttrKind::Float,
            optional: false,
            default: None,
        };
        op.attrs = program.uniforms().iter().map(float).collect();
        let text = shape.map_or_else(|| shape_of(&program), str::to_owned);
        clause::shape(op, &text)?.apply_to(op);
        let ShapeRule::Core(rule) = &op.shape else {
            return Err(wrong(op, format!("expected a shape such as {}, got {text}", shape_of(&program))));
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
        op.inputs.to_mut().iter_mut().zip(inputs).for_each(|(input, core)| input.core = core);
        op.outputs.to_mut().iter_mut().zip(outputs).for_each(|(output, core)| output.core = core);
        let is_row: Vec<bool> = op.inputs.iter().map(|i| i.core == Core::Slice).collect();
        if !is_row.contains(&true) {
            return Err(wrong(op, format!("expected at least one input that is a row, got the shape {text}")));
        }
        let is_number = op.outputs.iter().any(|output| output.dtype == DTypeRule::Generic(0));
        op.backward = if is_number { Backward::Program(Gradients::new()) } else { Backward::NotNeeded };
        builder.program = Some(Made::Rows(program));
        Ok(builder)
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

/// The plan of a row op, whose inputs, attributes and outputs are those of the program.
pub(super) fn plan(op: &OpDef, program: Program) -> Result<RowPlan> {
    let is_row: Vec<bool> = op.inputs.iter().map(|input| input.core == Core::Slice).collect();
    let gives: Vec<bool> = op.outputs.iter().map(|output| output.core == Core::Slice).collect();
    let is_mask = |i: &usize| op.inputs[*i].dtype == DTypeRule::Fixed(DType::Bool);
    if let Some(i) = (0..is_row.len()).find(|i| !is_row[*i] && is_mask(i)) {
        let (op, input) = (&op.name, &op.inputs[i].name);
        return Err(Error::value(format!("op '{op}': input '{input}' is boolean, so it must be a row")));
    }
    let rows = (0..is_row.len()).filter(|i| is_row[*i]);
    let masks: Vec<usize> = rows.enumerate().filter(|(_, i)| is_mask(i)).map(|(row, _)| row).collect();
    let per_row = is_row.iter().filter(|is_row| !**is_row).count();
    RowPlan::new(program.with_numbers(&is_row), &gives, per_row, &masks)
        .map_err(|e| Error::value(format!("op '{}': {e}", op.name)))
}

/// The clause if none is given.
fn shape_of(program: &Program) -> String {
    let inputs: Vec<String> = program.inputs().iter().map(|name| format!("{name}: [.., n]")).collect();
    let output =
        |((name, _), varies): (&(String, _), bool)| format!("{name}: {}", if varies { "[.., n]" } else { "[..]" });
    let outputs: Vec<String> = program.outputs().iter().zip(program.varying()).map(output).collect();
    format!("({}) -> ({})", inputs.join(", "), outputs.join(", "))
}

fn input(name: &str) -> Input {
    Input {
        name: Cow::Owned(name.to_owned()),
        arity: Arity::One,
        dtype: DTypeRule::Generic(0),
        mutated: false,
        core: Core::Slice,
    }
}

fn output(name: &str, kind: ValueType) -> Output {
    Output { name: Cow::Owned(name.to_owned()), dtype: dtype_of(kind), role: Role::Returned, core: Core::Slice }
}
