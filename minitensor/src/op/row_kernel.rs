//! [`RowKernel`]: a program as a loop over rows.

use minitensor_kernels::program::{Program, RowPlan, Tile};
use minitensor_kernels::row::{Computed, Rows};
use smallvec::SmallVec;

use crate::attr::{Attr, AttrKind};
use crate::dtype::{DType, DTypeSet};
use crate::error::{Error, Result};
use crate::tensor::try_vec;
use super::def::{Core, DTypeRule, OpDef, ShapeRule};
use super::kernel::CellArg;
use super::program::dtypes_of_rows;
use super::variants::Prepared;

/// The kernel of a row op that a program computes.
#[derive(Debug)]
pub struct RowKernel {
    plan: RowPlan,
    dtypes: DTypeSet,
    /// The positions of the arguments that are rows, and of those that are numbers.
    rows: Vec<usize>,
    numbers: Vec<usize>,
    /// The positions of the float attributes.
    floats: Vec<usize>,
    /// Whether each output is a row.
    gives: Vec<bool>,
    /// Whether each output is the sum over all rows, because it has no batch.
    shared: Vec<bool>,
}

/// The number of elements that are computed before they are added to a sum over rows.
const TOGETHER: usize = 4096;

impl Prepared for RowKernel {
    /// The inputs, attributes and outputs of the program are those of the op.
    fn new(op: &OpDef, program: Program) -> Result<RowKernel> {
        let dtypes = dtypes_of_rows(&program)?;
        let is_row: Vec<bool> = op.inputs.iter().map(|i| i.core == Core::Slice).collect();
        let (rows, numbers): (Vec<usize>, Vec<usize>) = (0..is_row.len()).partition(|i| is_row[*i]);
        let gives: Vec<bool> = op.outputs.iter().map(|output| output.core == Core::Slice).collect();
        let is_mask = |i: usize| op.inputs[i].dtype == DTypeRule::Fixed(DType::Bool);
        if let Some(i) = numbers.iter().find(|i| is_mask(**i)) {
            return Err(Error::value(format!("input '{}' is boolean, so it must be a row", op.inputs[*i].name)));
        }
        let masks: Vec<usize> = (0..rows.len()).filter(|k| is_mask(rows[*k])).collect();
        let plan = RowPlan::new(program.with_numbers(&is_row), &gives, numbers.len(), &masks);
        let plan = plan.map_err(|e| Error::value(e.to_string()))?;
        let rule = if let ShapeRule::Core(rule) = &op.shape { Some(rule) } else { None };
        let has_batch = rule.is_some_and(|rule| rule.inputs.iter().any(|dims| dims.batch));
        let outputs = rule.iter().flat_map(|rule| rule.outputs.iter());
        let shared: Vec<bool> = outputs.map(|dims| has_batch && !dims.batch).collect();
        if let Some((output, _)) = op.outputs.iter().zip(&shared).find(|(o, s)| **s && o.dtype == DTypeRule::Fixed(DType::Bool)) {
            return Err(Error::value(format!("output '{}' is a sum over rows, which truth values do not have", output.name)));
        }
        let floats = (0..op.attrs.len()).filter(|k| op.attrs[*k].kind == AttrKind::Float).collect();
        Ok(RowKernel { plan, dtypes, rows, numbers, floats, gives, shared })
    }

    fn program(&self) -> &Program {
        self.plan.program()
    }

    fn dtypes(&self) -> DTypeSet {
        self.dtypes
    }
}

impl RowKernel {
    /// Computes `cells` rows in a dtype.
    ///
    /// # Safety
    /// Every argument has `cells` cores of that dtype, which the program supports: contiguous rows, or numbers. An input that is
    /// not given is null.
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
        // The program does not read an input that is not given.
        let nothing = T::ZERO;
        let input = |i: &usize| match args[*i].data.cast_const().cast::<T>() {
            data if data.is_null() => Rows { data: &raw const nothing, step: 0, is_large: false },
            data => Rows { data, step: args[*i].step, is_large: false },
        };
        let inputs: SmallVec<[Rows<*const T>; 4]> = self.rows.iter().map(input).collect();
        let mut uniforms: SmallVec<[Rows<*const T>; 4]> = self.numbers.iter().map(input).collect();
        uniforms.extend(floats.iter().map(|v| Rows { data: std::ptr::from_ref(v), step: 0, is_large: false }));
        let outputs = &args[args.len() - self.gives.len()..];
        // The rows of an output that is not wanted, or that is a sum over all rows, are computed in a buffer.
        let is_buffered = |k: usize| outputs[k].data.is_null() || self.shared[k];
        let is_any = (0..outputs.len()).any(is_buffered);
        let together = if is_any { (TOGETHER / n.max(1)).clamp(1, cells.max(1)) } else { cells };
        let room = together * n.max(1);
        let count = if is_any { room * outputs.len() } else { 0 };
        let mut buffer = try_vec(count)?;
        buffer.resize(count, T::ZERO);
        for start in (0..cells).step_by(together.max(1)) {
            let rows = together.min(cells - start);
            let from = |rows: &Rows<*const T>| Rows { data: rows.row(start), ..*rows };
            let (inputs, uniforms): (SmallVec<[_; 4]>, SmallVec<[_; 4]>) =
                (inputs.iter().map(from).collect(), uniforms.iter().map(from).collect());
            let mut places: SmallVec<[Rows<*mut T>; 4]> = SmallVec::new();
            for (k, output) in outputs.iter().enumerate() {
                let step = (if self.gives[k] { n } else { 1 } * size_of::<T>()) as isize;
                places.push(match is_buffered(k) {
                    true => Rows { data: buffer[k * room..].as_mut_ptr(), step, is_large: false },
                    false => {
                        let all = Rows { data: output.data.cast(), step: output.step, is_large: output.is_large };
                        Rows { data: all.row(start), ..all }
                    }
                });
            }
            // SAFETY: by contract; the op takes no dtypes but those that the program runs at.
            unsafe { self.plan.run(n, rows, &inputs, &uniforms, &places) };
            for (k, output) in outputs.iter().enumerate().filter(|(k, o)| self.shared[*k] && !o.data.is_null()) {
                let width = if self.gives[k] { n } else { 1 };
                // SAFETY: by contract, the output has one core, to which the rows are added.
                let sum = unsafe { std::slice::from_raw_parts_mut(output.data.cast::<T>(), width) };
                for row in buffer[k * room..][..rows * width].chunks_exact(width.max(1)) {
                    sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += *x);
                }
            }
        }
        Ok(())
    }
}
