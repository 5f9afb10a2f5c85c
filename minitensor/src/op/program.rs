//! Programs as element kernels: at which dtypes one runs, and running it.

use minitensor_kernels::Complex;
use minitensor_kernels::program::{Plan, Program, Tile};

use super::def::OpDef;
use super::launch::Loop;
use crate::attr::{Attr, uniform};
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};

/// Calls a generic function with the type that a dtype is computed in; `else` is for dtypes that programs don't run at.
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

/// The dtypes that have all steps of a program.
pub fn dtypes(program: &Program) -> DTypeSet {
    fn runs<T: Tile>(program: &Program) -> bool {
        program.runs_at::<T>()
    }
    DTypeSet::ELEMENT.filter(|dtype| at_type!(dtype, runs(program) else false))
}

/// The loop over elements of a dtype; the attributes are the program's uniforms.
pub fn kernel<'a>(op: &OpDef, plan: &'a Plan, dtype: DType, attrs: &[Attr]) -> Result<Box<Loop<'a>>> {
    fn at<'a, T: Tile>(op: &OpDef, plan: &'a Plan, attrs: &[Attr]) -> Result<Box<Loop<'a>>> {
        let number = |(k, a): (usize, &super::def::Attribute)| uniform::<T>(attrs, k, &a.name);
        let uniforms = op.attrs.iter().enumerate().map(number).collect::<Result<Vec<T>>>()?;
        Ok(Box::new(move |n, inputs, outputs| {
            // SAFETY: the op takes no dtypes but those that the program runs at; its inputs and outputs are the program's, and
            // the caller gives `n` elements of each in the dtype that is computed in.
            unsafe { plan.run(n, inputs, &uniforms, outputs) };
            Ok(())
        }))
    }
    at_type!(dtype, at(op, plan, attrs) else Err(Error::type_(format!("op '{}' has no kernel for {dtype}", op.name))))
}
