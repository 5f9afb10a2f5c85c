//! [`Choice`]: the kernel of a call.

use std::cell::LazyCell;
use std::sync::Arc;

use minitensor_kernels::program::{RowPlan, Storage};
use minitensor_kernels::threads::num_threads;
use smallvec::SmallVec;

use super::call::{Call, Results};
use super::operand::CellOperand;
use crate::backend::cpu::strided::FEWEST_STORED;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::row_kernel::RowKernel;
use crate::op::variants::Variants;
use crate::op::{CellKernel, Core, DTypeRule, Kernel, Kernels, OpDef};
use crate::tensor::{DeviceKind, Shape};

/// The fewest rows that are computed side by side.
const FEWEST_BESIDE: usize = 16;
/// The most elements of contiguous rows that are computed side by side, and the fewest such rows.
const SHORT: usize = 32;
const FEWEST_SHORT: usize = 128;

/// The cells of a call, as far as the choice depends on them.
pub struct Traits<'t, 'a> {
    pub call: &'t Call<'a>,
    pub batch: &'t Shape,
    /// The operands of the inputs.
    pub inputs: &'t [Option<CellOperand>],
    pub results: &'t Results,
    pub compute: &'t [DType],
    /// The kernels of the op for these dtypes.
    pub found: Option<&'a Kernels>,
    pub of_halves: Option<Kernel<'static, CellKernel>>,
    /// Whether a result is the sum over the cells.
    pub has_sums: bool,
    /// Whether `found` takes cells as the columns of tables, and whether they are in memory as such.
    pub takes_columns: bool,
    pub is_table: bool,
}

/// What computes the cells, and how it takes them.
pub struct Choice {
    means: Means,
    dtype: DType,
    /// The plan that takes half floats as they are in memory.
    stored: Option<Arc<RowPlan>>,
    takes_half_rows: bool,
    is_side_by_side: bool,
    /// Whether the kernel gets packed cells as the columns of tables.
    pub is_of_columns: bool,
}

/// What computes the cells.
enum Means {
    Program(Arc<RowKernel>),
    Compiled(Kernel<'static, CellKernel>),
}

impl<'a> Traits<'_, 'a> {
    fn given(&self) -> impl Iterator<Item = &CellOperand> {
        self.inputs.iter().flatten()
    }

    fn cells(&self) -> usize {
        self.batch.numel()
    }

    fn dtype(&self) -> DType {
        self.compute.first().copied().unwrap_or(DType::F32)
    }

    /// The length of the rows; 0 if no input is a row.
    fn row(&self) -> usize {
        self.given().find(|o| o.sizes.len() == 1).map_or(0, |o| o.sizes[0])
    }

    fn is_of_rows(&self) -> bool {
        self.call.op.body.program().is_some() && self.call.op.combine.is_none()
    }

    /// Whether there are enough neighbouring rows for a computation side by side. A result that is a sum over rows needs whole rows.
    fn is_wide(&self) -> bool {
        !self.has_sums && self.batch.last().is_some_and(|cells| *cells >= FEWEST_BESIDE)
    }

    /// Whether the elements of a row are far apart, and those of neighbouring rows are not.
    fn is_beside(&self) -> bool {
        self.is_wide() && self.given().any(CellOperand::is_beside)
    }

    /// Whether there are enough elements to assemble machine code for them.
    fn is_large(&self) -> bool {
        self.of_halves.is_none() && !self.is_table && self.cells() * self.row() >= FEWEST_STORED
    }

    /// Whether each result is one number for a row, and rows are read where they are.
    fn is_reduction(&self) -> bool {
        gives_numbers(self.call.op) && !self.given().any(|o| o.packed)
    }

    fn are_short(&self) -> bool {
        let is_short = |o: &CellOperand| o.sizes.len() == 1 && (2..=SHORT).contains(&o.sizes[0]);
        self.is_of_rows() && self.cells() >= FEWEST_SHORT && self.given().any(is_short)
    }

    /// Whether rows are few, and long enough to be shared between threads.
    fn are_few(&self) -> bool {
        self.cells() < num_threads() && self.given().any(CellOperand::is_for_threads)
    }

    fn has_half_rows(&self) -> bool {
        let is_large = |o: &CellOperand| o.half_row() != Storage::Own && self.cells() * o.sizes[0] >= FEWEST_STORED;
        self.dtype() == DType::F32 && self.results.iter().all(Option::is_some) && self.given().any(is_large)
    }

    /// The program over rows, for the attributes of the call.
    fn program(&self, programs: &Variants<RowKernel>) -> Result<Arc<RowKernel>> {
        let Call { op, attrs, inputs, .. } = self.call;
        programs.at(&[self.dtype()], op, attrs, |i| inputs[i].is_some())
    }

    /// The program over rows. Its machine code also computes rows that are side by side, and shares long ones between threads.
    fn row_kernel(&self) -> Option<Arc<RowKernel>> {
        let programs = self.call.op.kernels_on(DeviceKind::Cpu).find_map(Kernels::rows)?;
        self.program(programs).ok()
    }

    /// The program over rows if its machine code computes the cells, and whether it computes rows side by side.
    fn assembled(&self, is_beside: bool, has_half_rows: bool) -> Option<(Arc<RowKernel>, bool)> {
        let (dtype, row, is_large) = (self.dtype(), self.row(), self.is_large());
        let may_reduce = is_large && self.is_reduction();
        let is_real = matches!(dtype, DType::F32 | DType::F64);
        let rows = LazyCell::new(|| self.row_kernel().filter(|rows| is_real || rows.scans()));
        // A step of a scan is one loop over rows that are side by side.
        let is_program = self.is_wide() && matches!(self.found, Some(Kernels::Rows(_)));
        let scans = is_program && rows.as_ref().is_some_and(|rows| rows.scans());
        // Machine code computes short rows as a whole.
        let are_whole = (self.is_of_rows() && is_large || may_reduce)
            && !is_beside
            && rows.as_ref().is_some_and(|rows| rows.has_whole_rows(dtype, row, self.cells()));
        let is_side_by_side = is_beside || scans || self.is_wide() && !are_whole && self.are_short();
        let is_special =
            self.of_halves.is_none() && !self.is_table && (is_side_by_side || self.are_few() || has_half_rows);
        let may_be_faster = is_large && self.is_of_rows() && !self.has_sums;
        if !(is_special || may_be_faster || may_reduce || are_whole) {
            return None;
        }
        let rows = rows.as_ref()?;
        let is_fit = match is_special {
            _ if are_whole || scans => true,
            true => rows.has_machine_code(dtype),
            false => {
                may_be_faster && rows.is_faster_than_compiled(dtype, row)
                    || may_reduce && rows.reduces_at_once(dtype, row)
            }
        };
        is_fit.then(|| (rows.clone(), is_side_by_side))
    }

    /// # Errors
    /// If the op has no kernel for the dtypes.
    pub fn choose(&self) -> Result<Choice> {
        let (is_beside, has_half_rows) = (self.is_beside(), self.has_half_rows());
        let assembled = self.assembled(is_beside, has_half_rows);
        let is_of_columns = self.takes_columns && is_beside && !self.is_table && assembled.is_none();
        let is_side_by_side = assembled.as_ref().is_some_and(|(_, is_side_by_side)| *is_side_by_side);
        let means = match (assembled, self.of_halves, self.found) {
            (Some((rows, _)), ..) => Means::Program(rows),
            (None, Some(of_halves), _) => Means::Compiled(of_halves),
            (None, None, Some(Kernels::Rows(programs))) => Means::Program(self.program(programs)?),
            (None, None, found) => match found.and_then(|kernels| kernels.cell(self.compute)) {
                Some(compiled) => Means::Compiled(compiled),
                None => return Err(self.no_kernel()),
            },
        };
        let takes_half_rows = matches!(means, Means::Program(_)) && has_half_rows && !is_side_by_side;
        let dtype = self.dtype();
        Ok(Choice { means, dtype, stored: None, takes_half_rows, is_side_by_side, is_of_columns })
    }

    #[cold]
    fn no_kernel(&self) -> Error {
        let (name, dtypes): (_, Vec<_>) = (&self.call.op.name, self.compute.iter().map(|d| d.name()).collect());
        Error::type_(format!("op '{name}' has no kernel for {}", dtypes.join(" with ")))
    }
}

impl Choice {
    pub fn kernel(&self) -> Kernel<'_, CellKernel> {
        match &self.means {
            Means::Program(rows) => Kernel::Rows(rows, self.dtype, self.stored.as_deref()),
            Means::Compiled(kernel) => *kernel,
        }
    }

    fn rows(&self) -> Option<&RowKernel> {
        if let Means::Program(rows) = &self.means { Some(rows) } else { None }
    }

    /// Makes the operands those that the kernel takes.
    pub fn adapt(&mut self, call: &Call<'_>, operands: &mut [Option<CellOperand>]) {
        let (inputs, outputs) = operands.split_at_mut(call.inputs.len());
        for (input, operand) in call.op.inputs.iter().zip(inputs) {
            *operand = operand.take().map(|operand| match input.dtype {
                DTypeRule::Fixed(DType::Bool) => operand.of_bools(),
                // A program computes integers as numbers.
                DTypeRule::Fixed(_) if self.rows().is_some() && input.core == Core::Slice => {
                    operand.computed_in(self.dtype)
                }
                _ => operand,
            });
        }
        for (output, operand) in call.op.outputs.iter().zip(outputs) {
            *operand = operand.take().map(|operand| match output.dtype {
                DTypeRule::Fixed(stored) if self.rows().is_some() && stored != DType::Bool => {
                    operand.computed_in(self.dtype)
                }
                _ => operand,
            });
        }
        if self.is_side_by_side || self.is_of_columns {
            // Reading rows where they are, more than once, takes less time than packing them; writing rows so takes more.
            let reads_in_place = gives_numbers(call.op) && self.rows().is_some_and(RowKernel::reads_in_place);
            operands.iter_mut().flatten().for_each(|operand| operand.put_beside(reads_in_place));
        }
        if self.is_of_columns {
            let numbers = operands.iter_mut().flatten().filter(|o| o.sizes.is_empty() && o.step() != 1);
            numbers.for_each(|o| o.packed = true);
        }
        let rows = self.rows().filter(|_| self.takes_half_rows);
        self.stored = rows.and_then(|rows| in_place(rows, operands));
    }
}

/// Whether each result is one number for a row.
fn gives_numbers(op: &OpDef) -> bool {
    op.outputs.iter().all(|output| output.core == Core::Scalar)
}

/// The plan that reads and writes rows of half floats as they are in memory, if it is machine code. Such rows are not packed then.
fn in_place(rows: &RowKernel, operands: &mut [Option<CellOperand>]) -> Option<Arc<RowPlan>> {
    let storage: SmallVec<[Storage; 8]> =
        operands.iter().map(|o| o.as_ref().map_or(Storage::Own, CellOperand::half_row)).collect();
    let plan = rows.stored(&storage)?;
    for operand in operands.iter_mut().flatten().filter(|o| o.half_row() != Storage::Own) {
        (operand.compute, operand.packed) = (operand.dtype, false);
    }
    Some(plan)
}
