//! [`ProgramFn`]: the program of a body, for the attributes of a call. The dtypes that a program supports.

#[cfg(feature = "engine")]
use std::sync::Arc;

#[cfg(feature = "engine")]
use minitensor_kernels::Const;
use minitensor_kernels::program::Program;
#[cfg(feature = "engine")]
use minitensor_kernels::program::{Instruction, Tile};
#[cfg(feature = "engine")]
use minitensor_schema::check;

use super::OpDef;
#[cfg(feature = "engine")]
use super::def::{Arity, Core, DTypeRule, ShapeRule};
#[cfg(feature = "engine")]
use super::element_program::ElementProgram;
#[cfg(feature = "engine")]
use super::kernel::Kernels;
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
#[cfg(feature = "engine")]
use crate::tensor::DeviceKind;

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

    /// Whether results do not depend on the order of the elements along the axes, apart from rounding.
    pub(crate) fn ignores_order(&self, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> bool {
        let gives_numbers = || self.outputs.iter().all(|output| output.core == Core::Scalar);
        let program = || self.kernels_on(DeviceKind::Cpu).find_map(Kernels::rows)?.of(self, attrs, &is_given).ok();
        self.combine.is_some() || gives_numbers() && program().is_some_and(|rows| rows.program().ignores_places())
    }

    /// Whether the program of a call runs at a dtype, as far as the dtype variables of the op admit it.
    pub(crate) fn program_runs_at(&self, dtype: DType, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> bool {
        let Some(ProgramFn::Elements(variants)) = self.body.program() else { return true };
        variants.of(self, attrs, is_given).is_ok_and(|program| {
            let mut pairs = self.generics.iter().zip(program.dtypes());
            pairs.all(|(admitted, dtypes)| !admitted.dtypes.contains(dtype) || dtypes.contains(dtype))
        })
    }

    /// Writes the program of a call that computes in these dtypes, if the op has a choice. Later steps of the call need it.
    pub(crate) fn write_program(
        &self,
        dtypes: &[DType],
        attrs: &[Attr],
        is_given: impl Fn(usize) -> bool,
    ) -> Result<()> {
        match self.body.program() {
            Some(ProgramFn::Elements(variants)) => variants.at(dtypes, self, attrs, is_given).map(drop),
            Some(ProgramFn::Rows(variants)) => variants.at(dtypes, self, attrs, is_given).map(drop),
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
            DType::I8 => $function::<i8>($($x),*),
            DType::I16 => $function::<i16>($($x),*),
            DType::I32 => $function::<i32>($($x),*),
            DType::I64 => $function::<i64>($($x),*),
            DType::U8 => $function::<u8>($($x),*),
            DType::U16 => $function::<u16>($($x),*),
            DType::U32 => $function::<u32>($($x),*),
            DType::U64 => $function::<u64>($($x),*),
            DType::Bool => $function::<bool>($($x),*),
            DType::C64 => $function::<minitensor_kernels::Complex<f32>>($($x),*),
            DType::C128 => $function::<minitensor_kernels::Complex<f64>>($($x),*),
            _ => $none,
        }
    };
}
#[cfg(feature = "engine")]
pub(crate) use at_type;

/// The dtypes that support all steps of a program. `computed` is the dtype in which tensors of a dtype are computed.
#[cfg(feature = "engine")]
fn dtypes(program: &Program, computed: impl Fn(DType) -> DType) -> DTypeSet {
    fn runs<T: Tile>(program: &Program) -> bool {
        program.runs_at::<T>()
    }
    DTypeSet::ELEMENT.filter(|dtype| at_type!(computed(dtype), runs(program) else false))
}

/// Whether a program over elements runs at a dtype without losing digits of its constants, on request only as machine code.
#[cfg(feature = "engine")]
pub fn runs_at(program: &Program, dtype: DType, as_machine_code: bool) -> bool {
    fn runs<T: Tile>(program: &Program, as_machine_code: bool) -> bool {
        if as_machine_code { program.has_form_at::<T>() } else { program.runs_at::<T>() }
    }
    at_type!(dtype, runs(program, as_machine_code) else false) && holds_constants(program, dtype)
}

/// Whether a dtype can hold the constants of a program without losing digits.
#[cfg(feature = "engine")]
fn holds_constants(program: &Program, dtype: DType) -> bool {
    program.instructions().iter().all(|instruction| match instruction {
        Instruction::Constant(Const::Float(_)) => dtype.is_differentiable(),
        Instruction::Constant(Const::Int(v)) if dtype == DType::Bool => (0..=1).contains(v),
        Instruction::Constant(Const::Int(v)) => dtype.is_differentiable() || dtype.integer_range().contains(v),
        _ => true,
    })
}

/// The dtypes at which a program over elements runs without losing digits of its constants.
#[cfg(feature = "engine")]
pub fn dtypes_of_elements(program: &Program) -> Result<DTypeSet> {
    let of_functions = dtypes(program, DType::compute);
    let dtypes = of_functions.filter(|dtype| holds_constants(program, dtype));
    if dtypes != DTypeSet::of(&[]) {
        return Ok(dtypes);
    }
    let reason = match of_functions == DTypeSet::of(&[]) {
        true => "some take only integers, others only floating dtypes".to_owned(),
        false => format!("they take only {of_functions}, which cannot hold all constants"),
    };
    Err(Error::value(format!("no dtype supports all functions of its program: {reason}: {program}")))
}

/// The dtypes that an element op takes if only its program determines them: numbers. If it has an attribute, integers are promoted.
#[cfg(feature = "engine")]
pub fn promoted_dtypes(program: &Program) -> Result<DTypeSet> {
    let has_attribute = !program.uniforms().is_empty();
    let is_taken = |dtype: DType| dtype.is_differentiable() || dtype.is_integer() && !has_attribute;
    let dtypes = dtypes_of_elements(program)?.filter(is_taken);
    match dtypes == DTypeSet::of(&[]) {
        true => Err(Error::value(format!("no dtype supports all functions of its program: {program}"))),
        false => Ok(dtypes),
    }
}

/// The dtypes at which a program over rows runs without losing digits of its constants.
#[cfg(feature = "engine")]
pub fn dtypes_of_rows(program: &Program) -> Result<DTypeSet> {
    let is_taken = |dtype: DType| DTypeSet::REAL.contains(dtype) && holds_constants(program, dtype.of_rows());
    let dtypes = dtypes(program, DType::of_rows).filter(is_taken);
    match dtypes.is_empty() {
        true => Err(Error::value(format!(
            "neither floating nor integer dtypes support all functions and constants of its program: {program}"
        ))),
        false => Ok(dtypes),
    }
}

/// The dtypes that a row op takes if only its program determines them: floating dtypes or, if its functions are those of integers, integers.
#[cfg(feature = "engine")]
pub fn promoted_dtypes_of_rows(program: &Program) -> Result<DTypeSet> {
    let dtypes = dtypes_of_rows(program)?;
    let floats = dtypes.intersection(DTypeSet::FLOAT);
    Ok(if floats.is_empty() { dtypes } else { floats })
}

/// Checks that a program can compute the dtypes of an op. Tensors with a dtype of their own are truth values or, if the op has one dtype
/// variable, other numbers that are converted to those of the program and back: integers, or floats that compute in the same dtype.
#[cfg(feature = "engine")]
pub fn check_dtypes(op: &OpDef) -> Result<()> {
    if !(1..=check::MOST_VARIABLES).contains(&op.generics.len()) {
        let count = op.generics.len();
        return Err(Error::value(format!(
            "a program needs one to {} dtype variables, but the op has {count}",
            check::MOST_VARIABLES
        )));
    }
    let admitted = op.generics[0].dtypes;
    let is_of_floats = op.generics.len() == 1 && admitted.intersection(DTypeSet::FLOAT) == admitted;
    let is_of_rows = matches!(op.shape, ShapeRule::Core(_));
    let tensors = op.inputs.iter().map(|i| (&i.name, i.dtype)).chain(op.outputs.iter().map(|o| (&o.name, o.dtype)));
    for (name, rule) in tensors {
        match rule {
            DTypeRule::Generic(g) if usize::from(g) < op.generics.len() => {}
            DTypeRule::Fixed(DType::Bool) => {}
            DTypeRule::Fixed(dtype) if is_of_floats && admitted.iter().all(|d| d.compute() == dtype.compute()) => {}
            DTypeRule::Fixed(dtype) if !dtype.is_integer() => {
                return Err(Error::value(format!(
                    "'{name}' has the dtype {dtype}, but a program of {admitted} converts only integers to its dtype"
                )));
            }
            // Rows of integers are computed in 64 bits, whatever their dtype.
            DTypeRule::Fixed(dtype) if !is_of_floats && !is_of_rows => {
                return Err(Error::value(format!(
                    "'{name}' has the dtype {dtype}, so its program must run only at floating dtypes, but the op takes {admitted}"
                )));
            }
            DTypeRule::Fixed(_) => {}
            _ => return Err(Error::value(format!("a program does not determine the dtype of '{name}'"))),
        }
    }
    Ok(())
}
