//! [`Variants`]: the programs of an op that was made at run time. Attributes other than floats are static: they choose the
//! program, and so do the optional inputs and attributes that are given.

use std::fmt;
use std::sync::Arc;

use minitensor_kernels::program::{Program, ValueType};
use smallvec::SmallVec;

use super::call::shape_rule::Bindings;
use super::def::{Arity, DTypeRule, OpDef};
use super::kept::Kept;
use crate::attr::{Attr, AttrKind};
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result, counted};
use crate::graph::record;

/// Writes the program for the attributes of a call, and, for each input, whether it is given. Of a float, only whether it is given
/// matters.
pub type Write = dyn Fn(&[Attr], &[bool]) -> Result<Program> + Send + Sync;

/// A program that is prepared to run as the body of an op.
pub trait Prepared: Sized {
    /// Prepares the program of a call of the op.
    fn new(op: &OpDef, program: Program) -> Result<Self>;
    /// The program.
    fn program(&self) -> &Program;
    /// The dtypes that it supports.
    fn dtypes(&self) -> DTypeSet;
}

/// The programs of an op.
pub struct Variants<P> {
    /// `None` if there is one program for all calls.
    write: Option<Box<Write>>,
    /// The number of attributes that it takes.
    attrs: usize,
    made: Kept<Choice, P>,
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
        self.attrs.iter().zip(attrs).all(is_same) && self.given.iter().enumerate().all(|(i, given)| *given == is_given(i))
    }

    /// A program must have the arguments and outputs of its op, and not read what is not given.
    fn check(&self, op: &OpDef, program: &Program) -> Result<()> {
        program.verify().map_err(|e| Error::value(e.to_string()))?;
        let floats = op.attrs.iter().filter(|a| a.kind == AttrKind::Float).count();
        for (what, got, expected) in [
            ("input", program.inputs().len(), op.inputs.len()),
            ("uniform", program.uniforms().len(), floats),
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
        match program.reads().find(|i| !self.given[*i]) {
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
    /// The programs of an op, of which the first has been written.
    pub fn new(op: &OpDef, (choice, program): (Choice, Program), write: Option<Box<Write>>) -> Result<Variants<P>> {
        let variants = Variants { write, attrs: choice.attrs.len(), made: Kept::new() };
        let prepared = choice.check(op, &program).and_then(|()| P::new(op, program));
        variants.made.keep(choice, Arc::new(prepared.map_err(|e| e.context(format!("op '{}'", op.name)))?));
        Ok(variants)
    }

    /// The program of a call, if it has been written.
    #[inline]
    pub fn known(&self, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Option<&Arc<P>> {
        self.made.find(|choice| self.write.is_none() || choice.is_of(attrs, &is_given))
    }

    /// The program of a call.
    ///
    /// # Errors
    /// Those of writing it. If it does not fit the outputs of the op.
    pub fn of(&self, op: &OpDef, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Result<Arc<P>> {
        if let Some(known) = self.known(attrs, &is_given) {
            return Ok(known.clone());
        }
        let Some(write) = &self.write else { return Err(Error::runtime(format!("op '{}' has no program", op.name))) };
        // The function may rely on the conditions on what it takes.
        let is_float = |attr: &Attr| matches!(attr, Attr::Float(_));
        let statics: Vec<Attr> = attrs.iter().map(|a| if is_float(a) { Attr::None } else { a.clone() }).collect();
        op.check_predicates(&Bindings::default(), &statics)?;
        let choice = self.choice(op, attrs, is_given);
        let program = record::apart(|| write(&choice.attrs, &choice.given));
        let program = program.and_then(|program| choice.check(op, &program).and_then(|()| P::new(op, program)));
        let program = Arc::new(program.map_err(|e| e.context(format!("op '{}'{}", op.name, choice.text(op))))?);
        self.made.keep(choice, program.clone());
        Ok(program)
    }

    /// The program of a call that computes in a dtype.
    ///
    /// # Errors
    /// As for [`Variants::of`], or if the program does not support the dtype. The op takes those of its first program.
    pub fn at(&self, dtype: DType, op: &OpDef, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Result<Arc<P>> {
        let program = self.of(op, attrs, &is_given)?;
        if program.dtypes().contains(dtype) {
            return Ok(program);
        }
        let (name, choice) = (&op.name, self.choice(op, attrs, is_given).text(op));
        Err(Error::type_(format!("op '{name}'{choice} takes {}, got {dtype}; convert it with astype", program.dtypes())))
    }

    fn choice(&self, op: &OpDef, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Choice {
        let attrs = attrs.iter().take(self.attrs).cloned().collect();
        Choice { attrs, given: (0..op.inputs.len()).map(is_given).collect() }
    }
}

impl<P> fmt::Debug for Variants<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Variants")
    }
}
