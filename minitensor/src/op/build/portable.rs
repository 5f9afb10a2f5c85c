//! [`Portable`]: an op whose body is a program, as data. An equal op can be built from it without the code that defined the op.

mod build;
mod gradient;

use minitensor_kernels::program::{Id, Instruction, Program, ValueType};
use minitensor_schema::check;
use smallvec::{SmallVec, smallvec};

use super::builder::dtype_of;
use crate::attr::{Attr, AttrKind};
use crate::dtype::DTypeSet;
use crate::error::{Error, Result};
use crate::op::def::*;
use crate::op::element_program::dtypes_of_variables;
use crate::op::program::dtypes_of_rows;
use crate::op::variants::Choice;

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
    /// Its outputs.
    pub outputs: Vec<PortableOutput>,
    /// Its attributes.
    pub attrs: Vec<Attribute>,
    /// The dtypes that it takes, for each of its dtype variables.
    pub dtypes: Vec<DTypeSet>,
    /// The `shape` clause of a row op.
    pub shape: Option<String>,
    /// The conditions on dimensions and attributes.
    pub conditions: Vec<String>,
    /// The `axis` clause of a row op.
    pub axis: Option<Axis>,
    /// The clauses `linear`, `symmetric` and `replaces`.
    pub properties: String,
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
    /// Its dtype: a variable, or one of its own.
    pub dtype: DTypeRule,
}

/// An output of a [`Portable`] op.
#[derive(Clone, Debug)]
pub struct PortableOutput {
    /// Its name.
    pub name: String,
    /// Its dtype: a variable, or one of its own.
    pub dtype: DTypeRule,
    /// The input that it is, changed in place.
    pub changes: Option<u8>,
}

/// The gradient of a [`Portable`] op.
#[derive(Clone, Debug)]
pub enum PortableGradient {
    /// It is derived from the program, or not needed.
    Derived,
    /// There is none, for this reason.
    None(String),
    /// A formula, as the text of a `backward` or `jvp` clause.
    Formula(Mode, String),
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
    /// The names of the dtype variables, in order.
    pub const VARIABLES: [&str; check::MOST_VARIABLES] = ["T", "U", "V", "W"];

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
        let inputs = op.inputs.iter().map(PortableInput::of).collect::<Result<_>>()?;
        let outputs = op.outputs.iter().map(PortableOutput::of).collect::<Result<_>>()?;
        if op.generics.is_empty() {
            return Err(Error::value("it has no dtype variable"));
        }
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
            let ProgramArguments { inputs, numbers, positions, .. } = op.program_arguments();
            programs.push(PortableProgram {
                attrs,
                given: given.clone(),
                program: program.with_numbers_as_inputs(&inputs, &[numbers, positions].concat()),
            });
        }
        let supported = supported(op, &programs[0].program)?;
        Ok(Portable {
            name: op.name.to_string(),
            doc: op.doc.to_string(),
            is_of_rows,
            inputs,
            outputs,
            attrs: op.attrs.to_vec(),
            dtypes: op.generics.iter().zip(supported).map(|(g, dtypes)| g.dtypes.intersection(dtypes)).collect(),
            shape: if let ShapeRule::Core(core) = &op.shape { Some(core.text.to_string()) } else { None },
            conditions: op.predicates.iter().map(|p| p.text.to_string()).collect(),
            properties: op.properties_text(),
            axis: op.axis,
            gradient: gradient::of(op, &programs),
            programs,
        })
    }

    /// The choices of its programs.
    pub fn calls(&self) -> Vec<PortableCall> {
        self.programs.iter().map(|p| (p.attrs.clone(), p.given.clone())).collect()
    }
}

/// The dtypes at which a program of an op runs, for each dtype variable.
fn supported(op: &OpDef, program: &Program) -> Result<SmallVec<[DTypeSet; 2]>> {
    if let ShapeRule::Core(_) = op.shape {
        Ok(smallvec![dtypes_of_rows(program)?])
    } else {
        dtypes_of_variables(op, program)
    }
}

impl PortableInput {
    fn of(input: &Input) -> Result<PortableInput> {
        let name = &input.name;
        let is_optional = match input.arity {
            Arity::One => false,
            Arity::Optional => true,
            Arity::Variadic => return Err(Error::value(format!("its input '{name}' is a list"))),
        };
        Ok(PortableInput { name: name.to_string(), is_optional, dtype: portable(input.dtype, name)? })
    }
}

impl PortableOutput {
    fn of(output: &Output) -> Result<PortableOutput> {
        let name = &output.name;
        let changes = match output.role {
            Role::Returned => None,
            Role::Mutates(input) => Some(input),
            Role::Saved => return Err(Error::value(format!("its output '{name}' is not returned"))),
        };
        Ok(PortableOutput { name: name.to_string(), dtype: portable(output.dtype, name)?, changes })
    }

    /// The outputs of a program if nothing else is known of them: numbers have the dtype of the op.
    pub fn of_program(program: &Program) -> Vec<PortableOutput> {
        let kind = |at: usize| program.instructions().get(at).map_or(ValueType::Number, Instruction::kind);
        let output = |(name, id): &(String, Id)| PortableOutput {
            name: name.clone(),
            dtype: dtype_of(kind(id.at())),
            changes: None,
        };
        program.outputs().iter().map(output).collect()
    }
}

/// The dtype of an input or output, if a program can have it.
fn portable(rule: DTypeRule, name: &str) -> Result<DTypeRule> {
    match rule {
        DTypeRule::Generic(_) | DTypeRule::Fixed(_) => Ok(rule),
        _ => Err(Error::value(format!("its program does not determine the dtype of '{name}'"))),
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
