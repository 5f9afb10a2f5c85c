//! Programs as element kernels: the dtypes that a program supports, and its loop.

use minitensor_kernels::Complex;
use minitensor_kernels::program::{Plan, Program, TILE, Tile};
use smallvec::SmallVec;

use super::strided::GRAIN;
use crate::attr::{Attr, uniform};
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};
use crate::op::{Attribute, OpDef};

/// Calls a generic function with the type of the compute dtype; `else` is for dtypes that no program supports.
macro_rules! at_type {
    ($dtype:expr, $function:ident($($x:expr),*) else $none:expr) => {
        match $dtype.compute() {
            DType::F32 => $function::<f32>($($x),*),
            DType::F64 => $function::<f64>($($x),*),
            DType::I32 => $function::<i32>($($x),*),
            DType::I64 => $function::<i64>($($x),*),
            DType::C64 => $function::<Complex<f32>>($($x),*),
            DType::C128 => $function::<Complex<f64>>($($x),*),
            _ => $none,
        }
    };
}

/// The dtypes that support all steps of a program.
pub fn dtypes(program: &Program) -> DTypeSet {
    fn runs<T: Tile>(program: &Program) -> bool {
        program.runs_at::<T>()
    }
    DTypeSet::ELEMENT.filter(|dtype| at_type!(dtype, runs(program) else false))
}

/// The fewest elements for a thread.
pub fn grain(plan: &Plan) -> usize {
    (4 * GRAIN / plan.steps().max(4)).max(TILE)
}

/// The loop over elements of a dtype; the attributes are the program's uniforms.
pub fn kernel<'a>(
    op: &'a OpDef,
    plan: &'a Plan,
    dtype: DType,
    attrs: &'a [Attr],
) -> impl Fn(usize, &[*const u8], &[*mut u8]) -> Result<()> + Sync + 'a {
    fn at<T: Tile>(
        op: &OpDef,
        plan: &Plan,
        attrs: &[Attr],
        n: usize,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> Result<()> {
        let number = |(k, a): (usize, &Attribute)| uniform::<T>(attrs, k, &a.name);
        let uniforms = op.attrs.iter().enumerate().map(number).collect::<Result<SmallVec<[T; 4]>>>()?;
        // SAFETY: the op takes no dtypes but those that the program runs at; its inputs and outputs are the program's, and
        // the caller gives `n` elements of each in the dtype that is computed in.
        unsafe { plan.run(n, inputs, &uniforms, outputs) };
        Ok(())
    }
    move |n, inputs, outputs| {
        at_type!(dtype, at(op, plan, attrs, n, inputs, outputs) else
            Err(Error::type_(format!("op '{}' has no kernel for {dtype}", op.name))))
    }
}
