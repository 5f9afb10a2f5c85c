//! Element ops that a program computes, and the dtypes of all ops that a program computes.

use std::borrow::Cow;

use minitensor_kernels::program::{Id, Program};
use minitensor_schema::suggestion::suggestion;

use super::CustomOpBuilder;
use super::builder::dtype_of;
use crate::attr::{Attr, AttrKind};
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};
use crate::op::Gradients;
use crate::op::def::*;
use crate::op::program::promoted_dtypes;
use crate::op::variants::Choice;

impl CustomOpBuilder {
    /// An element op that a program computes. Its inputs are those of the program, its attributes are the program's uniforms, and
    /// its outputs are numbers or truth values. Broadcasting, promotion and dtypes are those of an op written in Rust. The op
    /// takes every dtype that supports all functions of the program, and has derivatives of any order. If the program has a float
    /// constant or an attribute, integers are promoted to `float32`.
    ///
    /// ```
    /// use minitensor::kernels::{Field, program::Program};
    /// use minitensor::{CustomOpBuilder, Tensor, registry};
    ///
    /// let body = Program::write(&["x", "y"], &["scale"], |v, u| vec![("out".into(), (v[0] * v[1].exp() * u[0]).into())]);
    /// registry::register(CustomOpBuilder::from_program("scaled_exp", body)?.build()?)?;
    /// # Ok::<(), minitensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the program is invalid, contains a row reduction, or has functions that no single dtype supports.
    #[track_caller]
    pub fn from_program(name: impl Into<String>, program: Program) -> Result<CustomOpBuilder> {
        CustomOpBuilder::of_program(name, &program).programs(move |_, _| Ok(program.clone()))
    }

    /// The inputs and attributes of a program.
    #[track_caller]
    pub(super) fn of_program(name: impl Into<String>, program: &Program) -> CustomOpBuilder {
        let builder = CustomOpBuilder::new(name, 0).inputs(program.inputs());
        program.uniforms().iter().fold(builder, |builder, name| builder.attr(name, AttrKind::Float, None))
    }

    /// An element op that programs compute, as [from one program](CustomOpBuilder::from_program). The inputs, attributes and
    /// conditions are declared before. `write` returns the program for the attributes of a call, and, for each input, whether it is
    /// given. The float attributes are the program's uniforms. All others are static: they choose the program, as in a body that is
    /// written in Rust. A program does not read an input or attribute that is not given.
    ///
    /// `write` is called here, with the defaults of attributes or small values, and without the optional inputs: this determines the
    /// outputs, and the dtypes that the op takes. It is called again for each other choice.
    ///
    /// ```
    /// use minitensor::kernels::{Num, program::Program};
    /// use minitensor::attr::FromAttr;
    /// use minitensor::{AttrKind, CustomOp, CustomOpBuilder, Tensor};
    ///
    /// let op = CustomOpBuilder::new("repeated_square", 1)
    ///     .attr("times", AttrKind::Int, Some(1i64.into()))
    ///     .programs(|attrs, _| {
    ///         let times = i64::from_attr(&attrs[0])?;
    ///         Ok(Program::write(&["x"], &[], |x, _| vec![("out".into(), (0..times).fold(x[0], |y, _| y.square()).into())]))
    ///     })?
    ///     .build()?;
    /// assert_eq!(op.forward(&[&Tensor::from_vec(vec![3.0], [1])?])?.to_vec::<f64>()?, [9.0]);
    /// # Ok::<(), minitensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `write`. If the program is invalid, contains a row reduction, or has functions that no single dtype supports.
    pub fn programs(
        self,
        write: impl Fn(&[Attr], &[bool]) -> Result<Program> + Send + Sync + 'static,
    ) -> Result<CustomOpBuilder> {
        self.programs_from(None, write)
    }

    /// The first program is the one for `choice`.
    pub(super) fn programs_from(
        mut self,
        choice: Option<Choice>,
        write: impl Fn(&[Attr], &[bool]) -> Result<Program> + Send + Sync + 'static,
    ) -> Result<CustomOpBuilder> {
        self.op.shape = ShapeRule::Broadcast;
        let made = self.first(choice, write)?;
        let program = &made.first.1;
        let op = &mut self.op;
        if op.generics.is_empty() {
            let dtypes = promoted_dtypes(program).map_err(|e| e.context(format!("op '{}'", op.name)))?;
            op.generics = Cow::Owned(vec![Generic { name: Cow::Borrowed("T"), dtypes }]);
        }
        let output = |(name, id): &(String, Id)| Output {
            name: Cow::Owned(name.clone()),
            dtype: dtype_of(program.instructions()[id.at()].kind()),
            role: Role::Returned,
            core: Core::Scalar,
        };
        op.inputs.to_mut().iter_mut().for_each(|input| input.dtype = DTypeRule::Generic(0));
        op.outputs = program.outputs().iter().map(output).collect();
        let gives_numbers = op.outputs.iter().any(|output| output.dtype == DTypeRule::Generic(0));
        op.backward = if gives_numbers { Backward::Program(Gradients::new()) } else { Backward::NotNeeded };
        self.program = Some(made);
        Ok(self)
    }

    /// Restricts the dtypes of an op created from a program to these.
    pub fn dtypes(mut self, dtypes: DTypeSet) -> Self {
        self.op.generics.to_mut().iter_mut().for_each(|g| g.dtypes = g.dtypes.intersection(dtypes));
        self
    }

    /// Declares the input at `index` of an op created from a program to be boolean. The program may use it only as the operand of
    /// [`Truthy`](minitensor_kernels::program::Primitive::Truthy). An input of a row op must be a row.
    pub fn mask(self, index: usize) -> Self {
        self.input_dtype(index, DType::Bool)
    }

    /// Declares that the input at `index` of an op created from a program has a dtype of its own: boolean for a
    /// [mask](CustomOpBuilder::mask), or integers. The program takes integers as numbers. An input of a row op that is one `int64` per
    /// row is a position in the row, and a call checks that it is in range.
    pub fn input_dtype(self, index: usize, dtype: DType) -> Self {
        self.input_rule(index, DTypeRule::Fixed(dtype))
    }

    pub(super) fn input_rule(mut self, index: usize, rule: DTypeRule) -> Self {
        self.op.inputs.to_mut()[index].dtype = rule;
        self
    }

    /// Declares that the output at `index` of an op created from a program stores its numbers as integers of a dtype. The fraction is
    /// dropped, numbers outside of the range become the nearest integer of the dtype, and NaN becomes 0.
    ///
    /// ```
    /// use minitensor::kernels::{Field, Real, program::Program};
    /// use minitensor::{CustomOp, CustomOpBuilder, DType, Tensor};
    ///
    /// let body = Program::write(&["x", "scale"], &[], |x, _| vec![("steps".into(), x[0].divide(x[1]).round().into())]);
    /// let op = CustomOpBuilder::from_program("quantized", body)?.dtypes(minitensor::DTypeSet::FLOAT);
    /// let op = op.output_dtype(0, DType::I8).build()?;
    /// let steps = op.forward(&[&Tensor::from_vec(vec![0.26, 100.0], [2])?, &Tensor::from_vec(vec![0.5], [1])?])?;
    /// assert_eq!((steps.dtype(), steps.to_vec::<i8>()?), (DType::I8, vec![1, 127]));
    /// # Ok::<(), minitensor::Error>(())
    /// ```
    pub fn output_dtype(self, index: usize, dtype: DType) -> Self {
        self.output_rule(index, DTypeRule::Fixed(dtype))
    }

    /// Declares that inputs and outputs of an op created from a program, by name, are stored as integers:
    /// [`input_dtype`](CustomOpBuilder::input_dtype), [`output_dtype`](CustomOpBuilder::output_dtype). The other tensors are floats.
    ///
    /// # Errors
    /// If there is no such tensor, it is a truth value, a dtype is not one of integers, or no input is a float.
    pub fn stored_as<'a>(mut self, dtypes: impl IntoIterator<Item = (&'a str, DType)>) -> Result<Self> {
        let name_of_op = self.op.name.clone();
        let wrong = |what: String| Error::value(format!("op '{name_of_op}': {what}"));
        for (name, dtype) in dtypes {
            if !dtype.is_integer() {
                let admitted = DTypeSet::INT;
                return Err(wrong(format!(
                    "'{name}' cannot have the dtype {dtype} of its own; expected one of {admitted}"
                )));
            }
            let input = self.op.inputs.iter().position(|input| input.name == name);
            let output = self.op.outputs.iter().position(|output| output.name == name);
            self = match (input, output) {
                (Some(i), _) => self.input_dtype(i, dtype),
                (None, Some(k)) if self.op.outputs[k].dtype == DTypeRule::Fixed(DType::Bool) => {
                    return Err(wrong(format!("the output '{name}' is a truth value, so its dtype is bool")));
                }
                (None, Some(k)) => self.output_dtype(k, dtype),
                (None, None) => {
                    let inputs = self.op.inputs.iter().map(|input| input.name.as_ref());
                    let known: Vec<&str> = inputs.chain(self.op.outputs.iter().map(|o| o.name.as_ref())).collect();
                    let hint = suggestion(name, &known).replace('`', "'");
                    return Err(wrong(format!("there is no tensor '{name}' whose dtype could be {dtype}; {hint}")));
                }
            };
            self = self.dtypes(DTypeSet::FLOAT);
        }
        if !self.op.inputs.iter().any(|input| matches!(input.dtype, DTypeRule::Generic(_))) {
            return Err(wrong(
                "all inputs have dtypes of their own, so none determines the dtype in which it computes".into(),
            ));
        }
        Ok(self)
    }

    pub(super) fn output_rule(mut self, index: usize, rule: DTypeRule) -> Self {
        self.op.outputs.to_mut()[index].dtype = rule;
        let is_number = |output: &Output| self.op.is_differentiable(output.dtype);
        if matches!(self.op.backward, Backward::Program(_)) && !self.op.outputs.iter().any(is_number) {
            self.op.backward = Backward::NotNeeded;
        }
        self
    }

    /// Declares that the output at `output` of an op created from a program is the input at `input`, changed in place. Both have the same
    /// dimensions.
    pub fn in_place(mut self, output: usize, input: usize) -> Self {
        self.op.outputs.to_mut()[output].role = Role::Mutates(input as u8);
        self.op.inputs.to_mut()[input].mutated = true;
        self
    }
}
