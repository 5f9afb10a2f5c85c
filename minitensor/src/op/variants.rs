//! [`Variants`]: the programs that compute an op. Attributes other than floats are static: they choose the program, and so do the
//! optional inputs and attributes that are given.

use std::fmt;
use std::sync::Arc;

use minitensor_kernels::program::{Instruction, Program, ValueType};
use smallvec::SmallVec;

use super::call::shape_rule::Bindings;
use super::def::{Arity, DTypeRule, OpDef, ProgramArguments};
use super::program::check_dtypes;
use crate::attr::{Attr, AttrKind};
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result, counted};
use crate::graph::record;
use minitensor_kernels::Kept;

/// Writes the program for the attributes of a call, and, for each input, whether it is given. Of a float, only whether it is given
/// matters.
pub type Write = dyn Fn(&[Attr], &[bool]) -> Result<Program> + Send + Sync;

/// A program that is prepared to run as the body of an op.
pub trait Prepared: Sized {
    /// The program of an op from one whose inputs are those of the op, and whose uniforms are the `f64` attributes.
    fn of_inputs(op: &OpDef, program: Program) -> Program;
    /// Prepares the program of a call of the op.
    fn new(op: &OpDef, program: Program) -> Result<Self>;
    /// The program.
    fn program(&self) -> &Program;
    /// The dtypes that it supports, for each dtype variable of the op.
    fn dtypes(&self) -> &[DTypeSet];
}

/// The programs of an op.
pub struct Variants<P> {
    source: Source,
    made: Kept<Choice, P>,
}

/// Where programs are from.
enum Source {
    /// There is one program for all calls.
    One,
    /// A function that was given at run time. The inputs of its programs are those of the op.
    Written(Box<Write>),
    /// The definition of the op.
    Definition,
}

/// What chooses a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The attributes of the call.
    pub attrs: SmallVec<[Attr; 2]>,
    /// Whether each input is given.
    pub given: SmallVec<[bool; 4]>,
}

impl Choice {
    /// The choice for the defaults of attributes, or small values, and without the optional inputs.
    pub fn example(op: &OpDef) -> Choice {
        let given = op.inputs.iter().map(|input| input.arity != Arity::Optional).collect();
        Choice { attrs: op.example().into(), given }
    }

    /// Whether calls of an op have a choice.
    pub fn exists(op: &OpDef) -> bool {
        let is_static = op.attrs.iter().any(|a| a.optional || a.kind != AttrKind::Float);
        is_static || op.inputs.iter().any(|i| i.arity == Arity::Optional)
    }

    /// Whether a call has the same program.
    fn is_of(&self, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> bool {
        let is_same = |(a, b): (&Attr, &Attr)| matches!((a, b), (Attr::Float(_), Attr::Float(_))) || a == b;
        self.attrs.iter().zip(attrs).all(is_same)
            && self.given.iter().enumerate().all(|(i, given)| *given == is_given(i))
    }

    /// A program must have these arguments and the outputs of its op, and not read what is not given.
    pub fn check(&self, op: &OpDef, program: &Program, arguments: &ProgramArguments) -> Result<()> {
        program.verify().map_err(|e| Error::value(e.to_string()))?;
        check_dtypes(op)?;
        let ProgramArguments { inputs, numbers, positions, floats } = arguments;
        for (what, got, expected) in [
            ("input", program.inputs().len(), inputs.len()),
            ("uniform", program.uniforms().len(), numbers.len() + positions.len() + floats.len()),
            ("output", program.outputs().len(), op.outputs.len()),
        ] {
            if got != expected {
                return Err(Error::value(format!("the program has {}, expected {expected}", counted(got, what))));
            }
        }
        for (output, (name, id)) in op.outputs.iter().zip(program.outputs()) {
            let is_mask = program.instructions()[id.at()].kind() == ValueType::Mask;
            if is_mask != (output.dtype == DTypeRule::Fixed(DType::Bool)) {
                let (got, expected) = if is_mask { ("truth value", "number") } else { ("number", "truth value") };
                return Err(Error::value(format!("output '{name}' is a {got}, but the op returns a {expected}")));
            }
        }
        let uniforms: Vec<usize> = numbers.iter().chain(positions).copied().collect();
        let read = |instruction: &Instruction| match instruction {
            Instruction::Input(k) => Some(inputs[*k as usize]),
            Instruction::Uniform(k) => uniforms.get(*k as usize).copied(),
            _ => None,
        };
        match program.instructions().iter().filter_map(read).find(|i| !self.given[*i]) {
            Some(i) => Err(Error::value(format!("the program reads '{}', which is not given", op.inputs[i].name))),
            None => Ok(()),
        }
    }

    /// The static attributes and the optional inputs, in Python syntax: ` with mode='soft', weight=None`.
    fn text(&self, op: &OpDef) -> String {
        let attrs = op.attrs.iter().zip(&self.attrs).filter(|(_, value)| !matches!(value, Attr::Float(_)));
        let absent = op.inputs.iter().zip(&self.given).filter(|(_, given)| !**given);
        let parts: Vec<String> = attrs.map(|(a, value)| format!("{}={value}", a.name)).collect();
        let parts: Vec<String> = parts.into_iter().chain(absent.map(|(i, _)| format!("{}=None", i.name))).collect();
        if parts.is_empty() { String::new() } else { format!(" with {}", parts.join(", ")) }
    }
}

impl<P: Prepared> Variants<P> {
    /// The programs of an op that was made at run time, of which the first has been written. The inputs of the programs are those of
    /// the op.
    pub fn new(op: &OpDef, (choice, program): (Choice, Program), write: Option<Box<Write>>) -> Result<Variants<P>> {
        let variants = Variants { source: write.map_or(Source::One, Source::Written), made: Kept::new() };
        let prepared = prepared_of_inputs(op, &choice, program).map_err(|e| e.context(format!("op '{}'", op.name)))?;
        variants.made.keep(choice, Arc::new(prepared));
        Ok(variants)
    }

    /// The programs of the definition of an op.
    pub fn of_definition() -> Variants<P> {
        Variants { source: Source::Definition, made: Kept::new() }
    }

    /// The program of a call, if it has been written.
    #[inline]
    pub fn known(&self, op: &OpDef, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Option<&Arc<P>> {
        // Which axis is chosen does not change the program.
        let attrs = &attrs[..op.own_attrs(attrs.len())];
        let is_one = matches!(self.source, Source::One);
        self.made.find(|choice| is_one || choice.is_of(attrs, &is_given))
    }

    /// The program of a call.
    ///
    /// # Errors
    /// Those of writing it. If it does not fit the outputs of the op.
    pub fn of(&self, op: &OpDef, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Result<Arc<P>> {
        if let Some(known) = self.known(op, attrs, &is_given) {
            return Ok(known.clone());
        }
        let attrs = attrs[..op.own_attrs(attrs.len())].into();
        let choice = Choice { attrs, given: (0..op.inputs.len()).map(is_given).collect() };
        let prepared = self.prepare(op, &choice);
        let prepared = Arc::new(prepared.map_err(|e| e.context(format!("op '{}'{}", op.name, choice.text(op))))?);
        self.made.keep(choice, prepared.clone());
        Ok(prepared)
    }

    fn prepare(&self, op: &OpDef, choice: &Choice) -> Result<P> {
        let is_given = |i: usize| choice.given[i];
        match &self.source {
            Source::One => Err(Error::runtime("it has no program")),
            Source::Written(write) => {
                // The function may rely on the conditions on what it takes.
                let is_float = |attr: &Attr| matches!(attr, Attr::Float(_));
                let statics = choice.attrs.iter().map(|a| if is_float(a) { Attr::None } else { a.clone() });
                op.check_predicates(&Bindings::default(), &statics.collect::<Vec<_>>())?;
                let program = record::apart(|| write(&choice.attrs, &choice.given))?;
                prepared_of_inputs(op, choice, program)
            }
            Source::Definition => {
                let program = op.program(&choice.attrs, is_given)?;
                let program = program.ok_or_else(|| Error::runtime("it has no program"))?;
                choice.check(op, &program, &op.program_arguments())?;
                P::new(op, program)
            }
        }
    }

    /// The program of a call that computes in these dtypes, one for each dtype variable.
    ///
    /// # Errors
    /// As for [`Variants::of`], or if the program does not support a dtype. The op takes those of its first program.
    pub fn at(&self, dtypes: &[DType], op: &OpDef, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Result<Arc<P>> {
        let program = self.of(op, attrs, &is_given)?;
        let mut pairs = dtypes.iter().zip(program.dtypes());
        let Some((dtype, taken)) = pairs.find(|(dtype, taken)| !taken.contains(**dtype)) else {
            return Ok(program);
        };
        let given = (0..op.inputs.len()).map(is_given).collect();
        let (name, choice) = (&op.name, Choice { attrs: attrs.into(), given }.text(op));
        Err(Error::type_(format!("op '{name}'{choice} takes {taken}, got {dtype}; convert it with astype")))
    }
}

/// A program whose inputs are those of the op.
fn prepared_of_inputs<P: Prepared>(op: &OpDef, choice: &Choice, program: Program) -> Result<P> {
    let ProgramArguments { floats, .. } = op.program_arguments();
    let inputs = (0..op.inputs.len()).collect();
    choice.check(op, &program, &ProgramArguments { inputs, numbers: vec![], positions: vec![], floats })?;
    P::new(op, P::of_inputs(op, program))
}

impl<P> fmt::Debug for Variants<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Variants")
    }
}
