//! Builds an op from its portable definition, without trust.

use std::borrow::Cow;

use minitensor_schema::check;
use minitensor_schema::name::check_op;

use super::{Portable, PortableGradient, PortableProgram, is_alike, is_of_axis, supported};
use crate::attr::{Attr, AttrKind};
use crate::dtype::DTypeSet;
use crate::error::{Error, Result};
use crate::op::def::*;
use crate::op::program::check_dtypes;
use crate::op::variants::Choice;
use crate::op::{CustomOpBuilder, Gradients};
use crate::plugin::host::check_vjp;

impl Portable {
    /// Builds the op.
    ///
    /// # Errors
    /// If the parts do not fit together. They may be from any source.
    pub fn build(&self) -> Result<OpRef> {
        check_op(&self.name)?;
        self.unchecked(true)
    }

    /// `is_named`: whether its name is one that can be registered.
    pub(super) fn unchecked(&self, is_named: bool) -> Result<OpRef> {
        let wrong = |what: &str| Error::value(format!("op '{}': {what}", self.name));
        let first = self.programs.first().ok_or_else(|| wrong("expected at least one program"))?;
        for program in &self.programs {
            if program.attrs.len() != self.attrs.len() || program.given.len() != self.inputs.len() {
                return Err(wrong("a program must have a value for each attribute and each input"));
            }
        }
        let mut builder = CustomOpBuilder::new(self.name.clone(), 0)
            .inputs(self.inputs.iter().map(|input| input.name.clone()))
            .doc(self.doc.clone())
            .properties(self.properties.clone())
            .location("<loaded>", 0);
        for (i, _) in self.inputs.iter().enumerate().filter(|(_, input)| input.is_optional) {
            builder = builder.optional(i);
        }
        builder.op.attrs = Cow::Owned(self.attrs.clone());
        let generic =
            |(name, dtypes): (&'static str, &DTypeSet)| Generic { name: Cow::Borrowed(name), dtypes: *dtypes };
        builder.op.generics = Portable::VARIABLES.into_iter().zip(&self.dtypes).map(generic).collect();
        if let Some(problem) = check::signature(&builder.op.schema()).first() {
            return Err(wrong(&problem.sentence.to_string()));
        }
        for (k, attr) in self.attrs.iter().enumerate() {
            if let Some(default) = &attr.default {
                builder.op.check_attr(k, default.clone())?;
            }
        }
        let conditions = self.conditions.join(", ");
        if !conditions.is_empty() && !self.is_of_rows {
            builder = builder.conditions(&conditions);
        }
        let choice =
            Choice { attrs: first.attrs.iter().cloned().collect(), given: first.given.iter().copied().collect() };
        let (programs, name) = (self.programs.clone(), self.name.clone());
        let ignored: Vec<bool> = (0..self.attrs.len()).map(|k| self.does_not_choose(k)).collect();
        let write = move |attrs: &[Attr], given: &[bool]| {
            let is_it = |p: &&PortableProgram| {
                p.given == given && (0..attrs.len()).all(|k| ignored[k] || is_alike(&p.attrs[k], &attrs[k]))
            };
            let found = programs.iter().find(is_it).map(|p| p.program.clone());
            found.ok_or_else(|| {
                Error::value(format!(
                    "the file from which op '{name}' was loaded has no program for a call with these attributes and optional \
                     inputs; save a model that makes such a call, or install the plugin of the op"
                ))
            })
        };
        builder = match (self.is_of_rows, &self.shape) {
            (true, Some(shape)) if conditions.is_empty() => {
                builder.row_programs_from(Some(choice), Some(shape), write)?
            }
            (true, Some(shape)) => {
                // Conditions may refer to dimensions.
                builder.row_programs_from(Some(choice), Some(&format!("{shape} where {conditions}")), write)?
            }
            (true, None) => return Err(wrong("a program over rows needs a shape")),
            (false, Some(_)) => return Err(wrong("a program over elements must not have a shape")),
            (false, None) => builder.programs_from(Some(choice), write)?,
        };
        builder = self.with_dtypes(builder)?;
        if let Some(axis) = self.axis {
            set_axis(&mut builder.op, axis)?;
        }
        builder = match &self.gradient {
            PortableGradient::Derived => builder,
            PortableGradient::None(why) => builder.no_backward(why.clone()),
            PortableGradient::Formula(mode, text) => builder.formula_in(*mode, text.clone()),
            PortableGradient::Op(vjp, wrt) => {
                let vjp = vjp.unchecked(false)?;
                check_vjp(&builder.op, &vjp, wrt.len()).map_err(|e| e.context(format!("op '{}'", self.name)))?;
                if let Some(i) = wrt.iter().find(|i| usize::from(**i) >= self.inputs.len()) {
                    return Err(wrong(&format!("its gradient is with respect to input {i}, which does not exist")));
                }
                builder.op.backward =
                    Backward::Derived(Derived { vjp, wrt: wrt.clone().into(), gradients: Gradients::new() });
                builder
            }
        };
        if is_named { Ok(builder.build()?.definition()) } else { builder.finish() }
    }

    /// Declares the dtypes of the inputs and outputs, and which inputs are changed in place.
    fn with_dtypes(&self, mut builder: CustomOpBuilder) -> Result<CustomOpBuilder> {
        let wrong = |what: &str| Error::value(format!("op '{}': {what}", self.name));
        let names: Vec<&str> = builder.op.outputs.iter().map(|output| output.name.as_ref()).collect();
        if names != self.outputs.iter().map(|output| output.name.as_str()).collect::<Vec<_>>() {
            return Err(wrong("its outputs are not those of its first program"));
        }
        for (i, input) in self.inputs.iter().enumerate() {
            builder = builder.input_rule(i, input.dtype);
        }
        for (k, output) in self.outputs.iter().enumerate() {
            builder = builder.output_rule(k, output.dtype);
            let Some(i) = output.changes else { continue };
            if !builder.op.may_change(k, i.into()) {
                return Err(wrong(&format!(
                    "its output '{}' changes input {i} in place, which must be a required input of the same dtype and dimensions \
                     that no other output changes",
                    output.name
                )));
            }
            builder = builder.in_place(k, i.into());
        }
        check_dtypes(&builder.op).map_err(|e| wrong(e.message()))?;
        let supported = supported(&builder.op, &self.programs[0].program).map_err(|e| wrong(e.message()))?;
        for (generic, supported) in builder.op.generics.to_mut().iter_mut().zip(supported) {
            generic.dtypes = generic.dtypes.intersection(supported);
            if generic.dtypes == DTypeSet::of(&[]) {
                return Err(wrong("its programs support none of its dtypes"));
            }
        }
        Ok(builder)
    }

    fn does_not_choose(&self, k: usize) -> bool {
        is_of_axis(self.axis, k) || self.attrs[k].kind.is_tuned()
    }
}

fn set_axis(op: &mut OpDef, axis: Axis) -> Result<()> {
    let wrong = |what: &str| Error::value(format!("op '{}': {what}", op.name));
    let kind = |k: u8| op.attrs.get(usize::from(k)).map(|a| a.kind);
    let expected = if axis.many { AttrKind::Ints } else { AttrKind::Int };
    if kind(axis.attr) != Some(expected) || axis.keepdims.is_some_and(|k| kind(k) != Some(AttrKind::Bool)) {
        return Err(wrong("its axis must be an integer, or integers, and keepdims a bool"));
    }
    let ShapeRule::Core(rule) = &op.shape else { return Err(wrong("an axis needs a shape")) };
    if let Some(problem) = check::axis(&op.schema(), rule, axis.many) {
        return Err(wrong(&problem.sentence.to_string()));
    }
    if axis.keepdims.is_none() && rule.outputs.iter().any(|dims| dims.core.is_empty()) {
        return Err(wrong("an output lacks the dimension of the axis, so it needs keepdims"));
    }
    op.axis = Some(axis);
    Ok(())
}
