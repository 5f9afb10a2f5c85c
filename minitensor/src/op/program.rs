//! [`ProgramFn`]: the program of a body, for the attributes of a call. The dtypes that a program supports.

#[cfg(feature = "engine")]
use std::sync::Arc;

use minitensor_kernels::program::Program;
#[cfg(feature = "engine")]
use minitensor_kernels::program::{Plan, Tile};

use super::OpDef;
#[cfg(feature = "engine")]
use super::def::Arity;
#[cfg(feature = "engine")]
use super::row_kernel::RowKernel;
use crate::attr::Attr;
#[cfg(feature = "engine")]
use crate::dtype::{DType, DTypeSet};
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
    /// One program over rows for all attributes.
    #[cfg(feature = "engine")]
    Rows(Arc<RowKernel>),
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
            #[cfg(feature = "engine")]
            ProgramFn::Rows(kernel) => Ok(kernel.plan().program().clone()),
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

/// Calls a generic function with the type of the compute dtype; `else` is for dtypes that no program supports.
#[cfg(feature = "engine")]
macro_rules! at_type {
    ($dtype:expr, $function:ident($($x:expr),*) else $none:expr) => {
        match $dtype.compute() {
            DType::F32 => $function::<f32>($($x),*),
            DType::F64 => $function::<f64>($($x),*),
            DType::I32 => $function::<i32>($($x),*),
            DType::I64 => $function::<i64>($($x),*),
            DType::C64 => $function::<minitensor_kernels::Complex<f32>>($($x),*),
            DType::C128 => $function::<minitensor_kernels::Complex<f64>>($($x),*),
            _ => $none,
        }
    };
}
#[cfg(feature = "engine")]
pub(crate) use at_type;

/// The dtypes that support all steps of a program.
#[cfg(feature = "engine")]
pub fn dtypes(program: &Program) -> DTypeSet {
    fn runs<T: Tile>(program: &Program) -> bool {
        program.runs_at::<T>()
    }
    DTypeSet::ELEMENT.filter(|dtype| at_type!(dtype, runs(program) else false))
}
