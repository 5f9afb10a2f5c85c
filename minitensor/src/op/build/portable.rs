//! [`Portable`]: an op whose body is a program, as data. An equal op can be built from it without the code that defined the op.

use std::borrow::Cow;

use minitensor_kernels::program::Program;
use minitensor_schema::check;
use minitensor_schema::name::check_op;

use super::CustomOpBuilder;
use crate::__private::vjp_program;
use crate::attr::{Attr, AttrKind};
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};
use crate::op::Gradients;
use crate::op::def::*;
use crate::op::program::{dtypes_of_elements, dtypes_of_rows};
use crate::op::variants::Choice;
use crate::plugin::host::check_vjp;

/// The definition of an op whose body is a program over elements or rows.
#[derive(Clone, Debug)]
pub struct Portable {
    /// Its name.
    pub name: String,
    /// Its documentation.
    pub doc: String,
    /// Whether the program is over rows, rather than elements.
    pub is_of_rows: bool,
    /// Its inputs.
    pub inputs: Vec<PortableInput>,
    /// Its attributes.
    pub attrs: Vec<Attribute>,
    /// The dtypes that it takes.
    pub dtypes: DTypeSet,
    /// The `shape` clause of a row op.
    pub shape: Option<String>,
    /// The conditions on dimensions and attributes.
    pub conditions: Vec<String>,
    /// The `axis` clause of a row op.
    pub axis: Option<Axis>,
    /// Its gradient.
    pub gradient: PortableGradient,
    /// Its programs, one for each [choice](PortableProgram::attrs). The inputs of a program are those of the op, and its uniforms
    /// are the float attributes.
    pub programs: Vec<PortableProgram>,
}

/// An input of a [`Portable`] op.
#[derive(Clone, Debug)]
pub struct PortableInput {
    /// Its name.
    pub name: String,
    /// Whether it may be absent.
    pub is_optional: bool,
    /// Whether it is boolean.
    pub is_mask: bool,
}

/// The gradient of a [`Portable`] op.
#[derive(Clone, Debug)]
pub enum PortableGradient {
    /// It is derived from the program, or not needed.
    Derived,
    /// There is none, for this reason.
    None(String),
    /// A formula, as the text of a `backward` clause.
    Formula(String),
    /// The vector-Jacobian product is another op. For each of its outputs, the input of which it is the gradient.
    Op(Box<Portable>, Vec<u8>),
}

/// A program of a [`Portable`] op.
#[derive(Clone, Debug)]
pub struct PortableProgram {
    /// The attributes that choose it. Of a float, only whether it is given matters.
    pub attrs: Vec<Attr>,
    /// For each input, whether it is given.
    pub given: Vec<bool>,
    /// The program.
    pub program: Program,
}

/// The attributes of a call, and for each input whether it is given.
pub type PortableCall = (Vec<Attr>, Vec<bool>);

impl Portable {
    /// The definition of an op, with the programs for these calls.
    ///
    /// # Errors
    /// Why the op cannot be expressed by programs.
    pub fn of(op: &OpDef, calls: &[PortableCall]) -> Result<Portable> {
        let is_of_rows = match &op.body {
            Body::Element(Some(_)) => false,
            Body::Cell(Some(_)) => true,
            _ => return Err(Error::value("it has no program")),
        };
        let inputs = op.inputs.iter().map(|input| PortableInput::of(input, is_of_rows)).collect::<Result<_>>()?;
        if let Some(output) = op.outputs.iter().find(|output| output.role != Role::Returned) {
            return Err(Error::value(format!("its output '{}' is not returned", output.name)));
        }
        let is_own = |dtype| dtype != DTypeRule::Generic(0) && dtype != DTypeRule::Fixed(DType::Bool);
        if let Some(output) = op.outputs.iter().find(|output| is_own(output.dtype)) {
            return Err(Error::value(format!("its output '{}' has a dtype of its own", output.name)));
        }
        let [generic] = op.generics.as_ref() else {
            return Err(Error::value(format!("it has {} dtype variables, expected one", op.generics.len())));
        };
        let mut programs: Vec<PortableProgram> = Vec::new();
        let example = Choice::example(op);
        let example = (example.attrs.to_vec(), example.given.to_vec());
        for (attrs, given) in std::iter::once(&example).chain(calls) {
            let attrs: Vec<Attr> = attrs.iter().enumerate().map(|(k, value)| normal(op, k, value)).collect();
            if programs.iter().any(|known| known.is_for(&attrs, given)) {
                continue;
            }
            let is_given = |i: usize| given.get(i).copied().unwrap_or_default();
            let program = op.program(&attrs, is_given)?.ok_or_else(|| Error::value("it has no program"))?;
            let is_row: Vec<bool> = op.inputs.iter().map(|input| !is_of_rows || input.core == Core::Slice).collect();
            programs.push(PortableProgram {
                attrs,
                given: given.clone(),
                program: program.with_numbers_as_inputs(&is_row),
            });
        }
        let program = &programs[0].program;
        let supported = if is_of_rows { dtypes_of_rows(program)? } else { dtypes_of_elements(program)? };
        Ok(Portable {
            name: op.name.to_string(),
            doc: op.doc.to_string(),
            is_of_rows,
            inputs,
            attrs: op.attrs.to_vec(),
            dtypes: generic.dtypes.intersection(supported),
            shape: if let ShapeRule::Core(core) = &op.shape { Some(core.text.to_string()) } else { None },
            conditions: op.predicates.iter().map(|p| p.text.to_string()).collect(),
            axis: op.axis,
            gradient: gradient(op, &programs),
            programs,
        })
    }

    /// The choices of its programs.
    pub fn calls(&self) -> Vec<PortableCall> {
        self.programs.iter().map(|p| (p.attrs.clone(), p.given.clone())).collect()
    }

    /// Builds the op.
    ///
    /// # Errors
    /// If the parts do not fit together. They may be from any source.
    pub fn build(&self) -> Result<OpRef> {
        check_op(&self.name)?;
        self.unchecked(true)
    }

    /// `is_named`: whether its name is one that can be registered.
    fn unchecked(&self, is_named: bool) -> Result<OpRef> {
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
            .location("<loaded>", 0);
        for (i, input) in self.inputs.iter().enumerate().filter(|(_, input)| input.is_optional) {
            if input.is_mask {
                return Err(wrong(&format!("the boolean input '{}' must not be optional", input.name)));
            }
            builder = builder.optional(i);
        }
        builder.op.attrs = Cow::Owned(self.attrs.clone());
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
        for (i, _) in self.inputs.iter().enumerate().filter(|(_, input)| input.is_mask) {
            builder = builder.mask(i);
        }
        builder = builder.dtypes(self.dtypes);
        if builder.op.generics.iter().any(|g| g.dtypes.is_empty()) {
            return Err(wrong("its programs support none of its dtypes"));
        }
        if let Some(axis) = self.axis {
            set_axis(&mut builder.op, axis)?;
        }
        builder = match &self.gradient {
            PortableGradient::Derived => builder,
            PortableGradient::None(why) => builder.no_backward(why.clone()),
            PortableGradient::Formula(text) => builder.formula(text.clone()),
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

    fn does_not_choose(&self, k: usize) -> bool {
        is_of_axis(self.axis, k) || self.attrs[k].kind.is_tuned()
    }
}

impl PortableInput {
    fn of(input: &Input, is_of_rows: bool) -> Result<PortableInput> {
        let name = &input.name;
        let is_mask = input.dtype == DTypeRule::Fixed(DType::Bool);
        let is_row = !is_of_rows || input.core == Core::Slice;
        match (input.mutated, input.arity, input.dtype) {
            (true, ..) => Err(Error::value(format!("it changes its input '{name}' in place"))),
            (_, Arity::Variadic, _) => Err(Error::value(format!("its input '{name}' is a list"))),
            (_, arity, dtype) if dtype == DTypeRule::Generic(0) || is_mask && is_row => {
                Ok(PortableInput { name: name.to_string(), is_optional: arity == Arity::Optional, is_mask })
            }
            _ => Err(Error::value(format!("its input '{name}' has a dtype of its own"))),
        }
    }
}

impl PortableProgram {
    fn is_for(&self, attrs: &[Attr], given: &[bool]) -> bool {
        self.given == given && self.attrs.iter().zip(attrs).all(|(a, b)| is_alike(a, b))
    }
}

fn is_alike(a: &Attr, b: &Attr) -> bool {
    matches!((a, b), (Attr::Float(_), Attr::Float(_))) || a == b
}

fn is_of_axis(axis: Option<Axis>, k: usize) -> bool {
    axis.is_some_and(|axis| k == usize::from(axis.attr) || axis.keepdims.map(usize::from) == Some(k))
}

/// The value of an attribute as part of a choice. Attributes that do not choose a program have their defaults.
fn normal(op: &OpDef, k: usize, value: &Attr) -> Attr {
    let attr = &op.attrs[k];
    match value {
        Attr::Float(_) => Attr::Float(0.0),
        Attr::Int(_) if attr.kind == AttrKind::Float => Attr::Float(0.0),
        _ if is_of_axis(op.axis, k) || attr.kind.is_tuned() => attr.default.clone().unwrap_or(Attr::None),
        _ => value.clone(),
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

/// The gradient of an op with these programs.
fn gradient(op: &OpDef, programs: &[PortableProgram]) -> PortableGradient {
    let name = &op.name;
    match &op.backward {
        Backward::None(why) => PortableGradient::None(why.to_string()),
        Backward::NotNeeded | Backward::Program(_) => PortableGradient::Derived,
        Backward::Derived(derived) => {
            let cotangents = op.cotangents().count();
            let attrs = derived.vjp.attrs.len();
            let calls: Vec<PortableCall> = programs
                .iter()
                .map(|p| {
                    let given = std::iter::repeat_n(true, cotangents).chain(p.given.iter().copied());
                    (p.attrs.iter().take(attrs).cloned().collect(), given.collect())
                })
                .collect();
            match Portable::of(&derived.vjp, &calls) {
                // The same program for real numbers has fewer steps than one for complex numbers.
                Ok(vjp) if !vjp.is_of_rows && is_derived(op, programs, derived, &vjp) => PortableGradient::Derived,
                Ok(vjp) if vjp.unchecked(false).is_ok() => PortableGradient::Op(Box::new(vjp), derived.wrt.to_vec()),
                _ => PortableGradient::Derived,
            }
        }
        Backward::Formula(Formula { run: BackwardBody::Clause(_, text), .. }) => {
            PortableGradient::Formula(text.to_string())
        }
        Backward::Formula(_) | Backward::Composite => PortableGradient::None(format!(
            "the gradient of '{name}' is a function of its plugin, which the file that the op was loaded from cannot contain; \
             install the plugin"
        )),
    }
}

/// Whether the programs of a vector-Jacobian product are those that are derived from the programs of its op.
fn is_derived(op: &OpDef, programs: &[PortableProgram], derived: &Derived, vjp: &Portable) -> bool {
    let cotangents: Vec<usize> = op.cotangents().collect();
    let wrt: Vec<usize> = derived.wrt.iter().map(|i| usize::from(*i)).collect();
    let names = derived.vjp.program_names();
    let is_it = |(forward, vjp): (&PortableProgram, &PortableProgram), is_complex: bool| {
        vjp_program(&forward.program, &cotangents, &wrt, is_complex).is_ok_and(|p| p.with_names(&names) == vjp.program)
    };
    let all = |is_complex: bool| programs.iter().zip(&vjp.programs).all(|pair| is_it(pair, is_complex));
    programs.len() == vjp.programs.len() && (all(false) || all(true))
}
