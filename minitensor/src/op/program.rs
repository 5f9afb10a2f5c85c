//! [`ProgramFn`]: the program of a body, for the attributes of a call.

#[cfg(feature = "engine")]
use std::sync::Arc;

#[cfg(feature = "engine")]
use minitensor_kernels::program::Plan;
use minitensor_kernels::program::Program;

use super::OpDef;
#[cfg(feature = "engine")]
use super::def::Arity;
use crate::attr::Attr;
use crate::error::Result;
#[cfg(feature = "engine")]
use crate::plugin::host::LoadedOp;

/// The program of a body, for the attributes of a call.
#[derive(Clone, Debug)]
pub enum ProgramFn {
    /// A function of a linked crate.
    Compiled(fn(&[Attr]) -> Result<Program>),
    /// A function of a plugin, which returns JSON.
    #[cfg(feature = "engine")]
    Loaded(LoadedOp),
    /// One program for all attributes.
    #[cfg(feature = "engine")]
    Fixed(Arc<Plan>),
}

impl ProgramFn {
    /// The program of an op.
    pub fn call(&self, op: &OpDef, attrs: &[Attr]) -> Result<Program> {
        match self {
            ProgramFn::Compiled(write) => write(attrs).map(|program| program.with_names(&op.program_names())),
            #[cfg(feature = "engine")]
            ProgramFn::Loaded(loaded) => loaded.program(op, attrs),
            #[cfg(feature = "engine")]
            ProgramFn::Fixed(plan) => Ok(plan.program().clone()),
        }
    }
}

#[cfg(feature = "engine")]
impl OpDef {
    /// The body of an element or row op as a program, for these static attributes and the optional inputs that are given. The
    /// `f64` attributes are uniforms. `None` if the op has no such body.
    pub fn program(&self, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Result<Option<Program>> {
        let Some(write) = self.body.program() else { return Ok(None) };
        let optional = (0..self.inputs.len()).filter(|i| self.inputs[*i].arity == Arity::Optional);
        let all: Vec<Attr> = attrs.iter().cloned().chain(optional.map(|i| Attr::Bool(is_given(i)))).collect();
        write.call(self, &all).map(Some)
    }
}
