//! [`ProgramFn`]: the program of a body, for the attributes of a call. The dtypes that a program supports.

#[cfg(feature = "engine")]
use std::sync::Arc;

#[cfg(feature = "engine")]
use minitensor_kernels::Const;
use minitensor_kernels::program::Program;
#[cfg(feature = "engine")]
use minitensor_kernels::program::{Instruction, Tile};

use super::OpDef;
#[cfg(feature = "engine")]
use super::def::Arity;
#[cfg(feature = "engine")]
use super::element_program::ElementProgram;
#[cfg(feature = "engine")]
use super::row_kernel::RowKernel;
#[cfg(feature = "engine")]
use super::variants::{Prepared, Variants};
use crate::attr::Attr;
#[cfg(feature = "engine")]
use crate::dtype::{DType, DTypeSet};
#[cfg(feature = "engine")]
use crate::error::Error;
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
    /// Programs over elements that were made at run time.
    #[cfg(feature = "engine")]
    Elements(Arc<Variants<ElementProgram>>),
    /// Programs over rows that were made at run time.
    #[cfg(feature = "engine")]
    Rows(Arc<Variants<RowKernel>>),
}

#[cfg(not(feature = "engine"))]
impl ProgramFn {
    /// The program of an op. The attributes are followed by whether each optional input is given.
    pub fn call(&self, op: &OpDef, attrs: &[Attr]) -> Result<Program> {
        let ProgramFn::Compiled(write) = self;
        write(attrs).map(|program| program.with_names(&op.program_names()))
    }
}

#[cfg(feature = "engine")]
impl OpDef {
    /// The body of an element or row op as a program, for these static attributes and the optional inputs that are given. The
    /// `f64` attributes are uniforms. `None` if the op has no such body.
    pub fn program(&self, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Result<Option<Program>> {
        let all = || -> Vec<Attr> {
            let optional = (0..self.inputs.len()).filter(|i| self.inputs[*i].arity == Arity::Optional);
            attrs[..self.own_attrs(attrs.len())]
                .iter()
                .cloned()
                .chain(optional.map(|i| Attr::Bool(is_given(i))))
                .collect()
        };
        let Some(write) = self.body.program() else { return Ok(None) };
        Ok(Some(match write {
            ProgramFn::Compiled(write) => write(&all())?.with_names(&self.program_names()),
            ProgramFn::Loaded(loaded) => loaded.program(self, &all())?,
            ProgramFn::Elements(variants) => variants.of(self, attrs, is_given)?.program().clone(),
            ProgramFn::Rows(variants) => variants.of(self, attrs, is_given)?.program().clone(),
        }))
    }

    /// Writes the program of a call, if the op has a choice. Later steps of the call need it.
    pub(crate) fn write_program(&self, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Result<()> {
        match self.body.program() {
            Some(ProgramFn::Elements(variants)) => variants.of(self, attrs, is_given).map(drop),
            Some(ProgramFn::Rows(variants)) => variants.of(self, attrs, is_given).map(drop),
            _ => Ok(()),
        }
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
fn dtypes(program: &Program) -> DTypeSet {
    fn runs<T: Tile>(program: &Program) -> bool {
        program.runs_at::<T>()
    }
    DTypeSet::ELEMENT.filter(|dtype| at_type!(dtype, runs(program) else false))
}

/// The dtypes that an element op takes for its program. A floating program would lose digits of integers, so they are promoted.
#[cfg(feature = "engine")]
pub fn dtypes_of_elements(program: &Program) -> Result<DTypeSet> {
    let holds = |dtype: DType, i: &Instruction| match i {
        Instruction::Constant(Const::Float(_)) => false,
        Instruction::Constant(Const::Int(v)) => dtype.integer_range().contains(v),
        _ => true,
    };
    let holds_all = |dtype| program.instructions().iter().all(|i| holds(dtype, i));
    let fits = |dtype: DType| dtype.is_differentiable() || program.uniforms().is_empty() && holds_all(dtype);
    let dtypes = dtypes(program).filter(fits);
    match dtypes == DTypeSet::of(&[]) {
        true => Err(Error::value(format!("no dtype supports all functions of its program: {program}"))),
        false => Ok(dtypes),
    }
}

/// The dtypes that a row op takes for its program.
#[cfg(feature = "engine")]
pub fn dtypes_of_rows(program: &Program) -> Result<DTypeSet> {
    let dtypes = dtypes(program).intersection(DTypeSet::FLOAT);
    match dtypes == DTypeSet::of(&[]) {
        true => Err(Error::value(format!("no floating dtype supports all functions of its program: {program}"))),
        false => Ok(dtypes),
    }
}
