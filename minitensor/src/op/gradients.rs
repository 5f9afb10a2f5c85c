//! [`Gradients`]: derivatives of any order of ops that have a program. Each is an op whose body is a program too, made when
//! it is first needed.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use super::builder::CustomOpBuilder;
use super::call::Arg;
use super::def::{Body, DTypeRule, OpDef, OpRef, Role};
use super::{dispatch_wanted, trace};
use crate::__rt::vjp_program;
use crate::attr::{Attr, AttrKind};
use crate::autograd::BackwardCall;
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// The gradients of one op that have been made: writing a program takes longer than running it over few elements.
#[derive(Default)]
pub struct Gradients(Mutex<Vec<(Key, OpRef)>>);

/// How many are kept; one for each set of static attributes and of inputs that need a gradient.
const MOST: usize = 16;

type Positions = SmallVec<[usize; 4]>;

/// What a gradient depends on besides the op.
#[derive(Clone, PartialEq)]
struct Key {
    /// The attributes; of a number only whether it is there.
    attrs: SmallVec<[Attr; 2]>,
    /// Inputs that are there.
    given: Positions,
    /// Outputs that have a cotangent.
    outputs: Positions,
    /// Inputs that need a gradient.
    wrt: Positions,
    is_complex: bool,
}

impl Gradients {
    /// None yet.
    pub const fn new() -> Gradients {
        Gradients(Mutex::new(Vec::new()))
    }

    /// The gradients of the inputs that need one.
    pub(crate) fn run(&self, call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
        let (op, key) = (call.op(), Key::of(call));
        if let Body::Cell(_) = op.body {
            return trace::by_program(call);
        }
        let vjp = match self.found(&key) {
            Some(vjp) => vjp,
            None => self.keep(&key, key.gradient(op, call.attrs())?),
        };
        let cotangents: SmallVec<[Tensor; 4]> =
            key.outputs.iter().map(|k| call.cotangent(*k)).collect::<Result<_>>()?;
        let inputs: SmallVec<[Option<Tensor>; 4]> =
            (0..call.num_inputs()).map(|i| call.optional_input(i)).collect::<Result<_>>()?;
        let args: SmallVec<[Arg<'_>; 8]> =
            cotangents.iter().map(Arg::Tensor).chain(inputs.iter().map(|t| t.as_ref().into())).collect();
        let numbers = op.attrs.iter().zip(call.attrs()).filter(|(a, _)| a.kind == AttrKind::Float);
        // The program doesn't look at a number that isn't there.
        let uniforms: SmallVec<[Attr; 2]> =
            numbers.map(|(_, v)| if *v == Attr::None { Attr::Float(0.0) } else { v.clone() }).collect();
        let mut gradients = vec![None; call.num_inputs()];
        for (i, gradient) in key.wrt.iter().zip(dispatch_wanted(&vjp, &args, &uniforms, u64::MAX)?) {
            gradients[*i] = gradient;
        }
        Ok(gradients)
    }

    fn found(&self, key: &Key) -> Option<OpRef> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter().find(|(k, _)| k == key).map(|(_, op)| op.clone())
    }

    fn keep(&self, key: &Key, op: OpRef) -> OpRef {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() >= MOST {
            made.clear();
        }
        made.push((key.clone(), op.clone()));
        op
    }
}

impl Key {
    fn of(call: &BackwardCall<'_>) -> Key {
        let op = call.op();
        let static_part = |(a, value): (&super::def::Attribute, &Attr)| match (a.kind, value) {
            (AttrKind::Float, Attr::Float(_)) => Attr::Float(0.0),
            _ => value.clone(),
        };
        let has_cotangent =
            |k: &usize| op.outputs[*k].role == Role::Returned && call.output_dtype(*k).is_differentiable();
        let all = 0..call.num_inputs();
        Key {
            attrs: op.attrs.iter().zip(call.attrs()).map(static_part).collect(),
            given: all.clone().filter(|i| call.is_given(*i)).collect(),
            outputs: (0..op.outputs.len()).filter(has_cotangent).collect(),
            wrt: all.clone().filter(|i| call.needs(*i)).collect(),
            is_complex: all.filter(|i| call.is_given(*i)).any(|i| call.dtype(i).is_complex()),
        }
    }

    /// The op of the program's vector-Jacobian product.
    fn gradient(&self, op: &OpDef, attrs: &[Attr]) -> Result<OpRef> {
        let program = op.program(attrs, |i| self.given.contains(&i))?;
        let program = program.ok_or_else(|| Error::runtime(format!("op '{}' has no program", op.name)))?;
        let vjp = vjp_program(&program, &self.outputs, &self.wrt, self.is_complex);
        let vjp = vjp.map_err(|e| e.context(format!("op '{}' has no gradient", op.name)))?;
        let dtypes = if self.is_complex { DTypeSet::of(&[DType::C64, DType::C128]) } else { DTypeSet::FLOAT };
        let mut builder = CustomOpBuilder::from_program(format!("{}.vjp", op.name), vjp)?
            .dtypes(dtypes)
            .doc(format!("The vector-Jacobian product of `{}`.", op.name))
            .location(op.location.file.clone(), op.location.line);
        for (i, input) in op.inputs.iter().enumerate() {
            let at = self.outputs.len() + i;
            builder = if input.dtype == DTypeRule::Fixed(DType::Bool) { builder.mask(at) } else { builder };
            builder = if self.given.contains(&i) { builder } else { builder.optional(at) };
        }
        builder.finish()
    }
}

/// A copy of the op makes its own.
impl Clone for Gradients {
    fn clone(&self) -> Self {
        Gradients::new()
    }
}

impl std::fmt::Debug for Gradients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gradients")
    }
}
