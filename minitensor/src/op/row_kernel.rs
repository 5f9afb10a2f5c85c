//! [`RowKernel`]: a program as a loop over rows.

use minitensor_kernels::program::{RowPlan, Tile};
use minitensor_kernels::row::{Computed, Rows};
use smallvec::SmallVec;

use crate::attr::{Attr, AttrKind};
use crate::dtype::DType;
use crate::error::{Error, Result};
use super::def::{Core, OpDef};
use super::kernel::CellArg;

/// The kernel of a row op that a program computes.
#[derive(Debug)]
pub struct RowKernel {
    plan: RowPlan,
    /// The positions of the arguments that are rows, and of those that are numbers.
    rows: Vec<usize>,
    numbers: Vec<usize>,
    /// The positions of the float attributes.
    floats: Vec<usize>,
    /// Whether each output is a row.
    gives: Vec<bool>,
}

impl RowKernel {
    /// The kernel of an op, whose inputs, attributes and outputs are those of the program.
    pub fn new(op: &OpDef, plan: RowPlan) -> RowKernel {
        let (rows, numbers) = (0..op.inputs.len()).partition(|i| op.inputs[*i].core == Core::Slice);
        let is_float = |k: &usize| op.attrs[*k].kind == AttrKind::Float;
        let gives = op.outputs.iter().map(|output| output.core == Core::Slice).collect();
        RowKernel { plan, rows, numbers, floats: (0..op.attrs.len()).filter(is_float).collect(), gives }
    }

    /// The plan.
    pub fn plan(&self) -> &RowPlan {
        &self.plan
    }

    /// Computes `cells` rows in a dtype.
    ///
    /// # Safety
    /// Every argument has `cells` cores of that dtype: contiguous rows, or numbers.
    pub unsafe fn run(&self, dtype: DType, attrs: &[Attr], args: &[CellArg<'_>], cells: usize) -> Result<()> {
        // SAFETY: by contract.
        unsafe {
            match dtype {
                DType::F32 => self.run_at::<f32>(attrs, args, cells),
                DType::F64 => self.run_at::<f64>(attrs, args, cells),
                _ => Err(Error::type_(format!("a program over rows does not run at {dtype}"))),
            }
        }
    }

    unsafe fn run_at<T: Tile + Computed>(&self, attrs: &[Attr], args: &[CellArg<'_>], cells: usize) -> Result<()> {
        let n = self.rows.iter().find_map(|i| args[*i].shape.first().copied()).unwrap_or(0);
        let mut floats: SmallVec<[T; 4]> = SmallVec::new();
        for k in &self.floats {
            floats.push(crate::attr::uniform::<T>(attrs, *k, "an attribute")?);
        }
        let input = |i: &usize| Rows { data: args[*i].data.cast_const().cast::<T>(), step: args[*i].step, is_large: false };
        let inputs: SmallVec<[Rows<*const T>; 4]> = self.rows.iter().map(input).collect();
        let mut uniforms: SmallVec<[Rows<*const T>; 4]> = self.numbers.iter().map(input).collect();
        uniforms.extend(floats.iter().map(|v| Rows { data: std::ptr::from_ref(v), step: 0, is_large: false }));
        let outputs = &args[args.len() - self.gives.len()..];
        // An output that is not wanted.
        let is_missing = outputs.iter().any(|output| output.data.is_null());
        let mut unused = vec![T::ZERO; if is_missing { n.max(1) * outputs.len() } else { 0 }];
        let mut places: SmallVec<[Rows<*mut T>; 4]> = SmallVec::new();
        for (k, output) in outputs.iter().enumerate() {
            places.push(match output.data.is_null() {
                true => Rows { data: unused[k * n.max(1)..].as_mut_ptr(), step: 0, is_large: false },
                false => Rows { data: output.data.cast(), step: output.step, is_large: output.is_large },
            });
        }
        // SAFETY: by contract; the op takes no dtypes but those that the program runs at.
        unsafe { self.plan.run(n, cells, &inputs, &uniforms, &places) };
        Ok(())
    }
}
