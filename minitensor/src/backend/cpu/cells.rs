//! Calls of cell bodies: binds the core dimensions, broadcasts the batch, and runs the kernel on each cell.

mod buffers;
mod operand;
mod partial_sums;
mod tables;

use std::cell::LazyCell;
use std::sync::{Arc, Mutex, PoisonError};

use minitensor_kernels::LARGE;
use minitensor_kernels::program::{RowPlan, Storage};
use minitensor_kernels::threads::{few_chunks, num_threads, parallel_for};
use smallvec::SmallVec;

use self::buffers::Buffers;
use self::operand::CellOperand;
use self::partial_sums::PartialSums;
use super::strided::{BREATH, FEWEST_STORED};
use crate::attr::Attr;
use crate::backend::Wanted;
use crate::backend::shapes::CallShapes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::call::dtype_rule::DTypes;
use crate::op::call::shape_rule::{CoreShapes, Dims};
use crate::op::row_kernel::RowKernel;
use crate::op::variants::Variants;
use crate::op::{Backward, CellArg, CellKernel, Core, DTypeRule, Kernel, Kernels, OpDef, Role};
use crate::tensor::{Device, DeviceKind, Shape, Tensor};

/// The fewest elements for a thread.
const GRAIN: usize = 16 * 1024;
/// The maximum number of partial sums of an output. Each has memory of its own.
const PARTS: usize = 16;
/// The number of cells that a body with a derived gradient, and that gradient, compute side by side.
const SIDE_BY_SIDE: usize = 64;
/// The number of bytes of a core that is packed together with its neighbours.
const GROUP: usize = 1024 * 1024;
/// The fewest rows that are computed side by side.
const FEWEST_BESIDE: usize = 16;
/// The most elements of contiguous rows that are computed side by side, and the fewest such rows.
const SHORT: usize = 32;
const FEWEST_SHORT: usize = 128;
/// The number of bytes of rows that are packed side by side.
const BESIDE: usize = 4 * 1024 * 1024;

/// Computes the wanted outputs; the others are `None`. If there is a batch, an output without batch
/// dimensions is the sum over all cells.
#[allow(clippy::too_many_arguments)]
pub fn run(
    op: &OpDef,
    shapes: &CallShapes,
    rule: &CoreShapes,
    inputs: &[Option<&Tensor>],
    attrs: &[Attr],
    dtypes: &DTypes,
    device: Device,
    wanted: Wanted<'_>,
) -> Result<SmallVec<[Option<Tensor>; 1]>> {
    let mut outputs: SmallVec<[Option<Tensor>; 1]> = SmallVec::new();
    for (k, (output, shape)) in op.outputs.iter().zip(&shapes.outputs).enumerate() {
        let dtype = op.stored_dtype_of(output, dtypes, attrs)?;
        outputs.push(match output.role {
            Role::Mutates(i) => inputs[usize::from(i)].filter(|_| wanted.has(k)).map(Tensor::detach),
            _ => wanted.output(k, shape, dtype, device)?,
        });
    }
    if device == Device::Meta {
        return Ok(outputs);
    }
    let compute: SmallVec<[DType; 2]> = dtypes.iter().map(|d| d.compute()).collect();
    let of_halves = kernel_of_halves(op, rule, inputs, dtypes);
    let mut operands = Vec::new();
    for ((input, dims), t) in op.inputs.iter().zip(rule.inputs.iter()).zip(inputs) {
        let compute = |t: &Tensor| match input.dtype {
            _ if of_halves.is_some() => t.dtype(),
            DTypeRule::Generic(g) => dtypes[usize::from(g)].compute(),
            _ => t.dtype().compute(),
        };
        let of = |t: &Tensor| CellOperand::new(shapes, t, compute(t), dims.batch, dims.core.len(), input.core, false);
        operands.push(t.map(of));
    }
    let dtype = compute.first().copied().unwrap_or(DType::F32);
    let has_batch = rule.inputs.iter().any(|i| i.batch);
    let is_summed = |dims: &Dims| has_batch && !dims.batch;
    let sums_any = rule.outputs.iter().zip(&outputs).any(|(dims, t)| t.is_some() && is_summed(dims));
    for ((output, dims), t) in op.outputs.iter().zip(rule.outputs.iter()).zip(&outputs) {
        let of = |t: &Tensor| {
            let of = CellOperand::new(shapes, t, t.dtype().compute(), dims.batch, dims.core.len(), output.core, true);
            match (output.role, output.dtype) {
                (Role::Mutates(_), DTypeRule::Fixed(DType::Bool)) => of.of_bools().of_changed(),
                (Role::Mutates(_), _) => of.of_changed(),
                _ => of,
            }
        };
        operands.push(t.as_ref().filter(|_| !is_summed(dims)).map(of));
    }
    let found = op.kernels_on(DeviceKind::Cpu).find(|kernels| kernels.has_cell(&compute));
    let columns = found.filter(|kernels| !sums_any && kernels.takes_columns());
    let mut batch = shapes.batch.clone();
    if columns.is_some() {
        batch = merged(&batch, &mut operands);
    }
    let tables = columns.and_then(|_| tables::of(&batch, &mut operands));
    let is_table = tables.is_some();
    let batch = tables.unwrap_or(batch);
    let cells = batch.numel();
    let is_wide = batch.last().is_some_and(|cells| *cells >= FEWEST_BESIDE);
    let given = || operands[..op.inputs.len()].iter().flatten();
    let has_beside = !sums_any && is_wide && given().any(CellOperand::is_beside);
    let program = |programs: &Variants<RowKernel>| programs.at(&[dtype], op, attrs, |i| inputs[i].is_some());
    let rows_kernel = LazyCell::new(|| row_kernel(op, dtype, program));
    let row = given().find(|o| o.sizes.len() == 1).map_or(0, |o| o.sizes[0]);
    let is_of_rows = op.body.program().is_some() && op.combine.is_none();
    let is_more = of_halves.is_none() && !is_table && cells * row >= FEWEST_STORED;
    let may_reduce =
        is_more && op.outputs.iter().all(|output| output.core == Core::Scalar) && !given().any(|o| o.packed);
    // Machine code computes short rows as a whole.
    let are_whole = (is_of_rows && is_more || may_reduce)
        && !has_beside
        && rows_kernel.as_ref().is_some_and(|rows| rows.has_whole_rows(dtype, row, cells));
    let is_short = |o: &CellOperand| o.sizes.len() == 1 && (2..=SHORT).contains(&o.sizes[0]);
    let are_short = is_of_rows && !sums_any && !are_whole && cells >= FEWEST_SHORT && given().any(is_short);
    let is_side_by_side = has_beside || is_wide && are_short;
    let are_few = cells < num_threads() && given().any(CellOperand::is_for_threads);
    let has_half_rows = dtype == DType::F32
        && outputs.iter().all(Option::is_some)
        && given().any(|o| o.half_row() != Storage::Own && cells * o.sizes[0] >= FEWEST_STORED);
    let is_special = of_halves.is_none() && !is_table && (is_side_by_side || are_few || has_half_rows);
    let may_be_faster = is_more && is_of_rows && !sums_any;
    let work: usize = given().map(|o| o.sizes.iter().product::<usize>()).sum::<usize>().max(1);
    let is_fit = |rows: &&Arc<RowKernel>| match is_special {
        _ if are_whole => true,
        true => rows.has_machine_code(dtype),
        false => {
            may_be_faster && rows.is_faster_than_compiled(dtype, row) || may_reduce && rows.reduces_at_once(dtype, row)
        }
    };
    let assembled = if is_special || may_be_faster || may_reduce || are_whole {
        rows_kernel.as_ref().filter(is_fit).cloned()
    } else {
        None
    };
    let is_of_columns = has_beside && !is_table && assembled.is_none() && columns.is_some();
    let is_side_by_side = is_side_by_side && assembled.is_some();
    let (rows, compiled) = match assembled {
        Some(rows) => (Some(rows), None),
        None if of_halves.is_some() => (None, of_halves),
        None => match found {
            Some(Kernels::Rows(programs)) => (Some(program(programs)?), None),
            found => (None, found.and_then(|kernels| kernels.cell(&compute))),
        },
    };
    let kernel = rows.as_deref().map(|rows| Kernel::Rows(rows, dtype, None)).or(compiled).ok_or_else(|| {
        let names: Vec<_> = compute.iter().map(|d| d.name()).collect();
        Error::type_(format!("op '{}' has no kernel for {}", op.name, names.join(" with ")))
    })?;
    for (input, operand) in op.inputs.iter().zip(&mut operands) {
        *operand = operand.take().map(|operand| match (input.dtype, kernel) {
            (DTypeRule::Fixed(DType::Bool), _) => operand.of_bools(),
            // A program computes integers as numbers.
            (DTypeRule::Fixed(_), Kernel::Rows(..)) if input.core == Core::Slice => operand.computed_in(dtype),
            _ => operand,
        });
    }
    // The division into partial sums determines their bits, so it is not tuned.
    let tuned = op.grain(attrs).filter(|_| !sums_any);
    let mut grain = tuned.unwrap_or(GRAIN).div_ceil(work);
    if op.body.program().is_none() && (op.is_gradient() || matches!(op.backward, Backward::Derived(_))) {
        grain = grain.max(SIDE_BY_SIDE.min(cells / PARTS));
    }
    let mut parts = Vec::new();
    for (k, (output, dims)) in op.outputs.iter().zip(rule.outputs.iter()).enumerate() {
        let at = op.inputs.len() + k;
        if let Some(t) = outputs[k].as_ref().filter(|_| is_summed(dims)) {
            grain = grain.max(cells.div_ceil(PARTS));
            parts.push((at, t));
        }
        operands[at] = operands[at].take().map(|operand| match (output.dtype, kernel) {
            (DTypeRule::Fixed(stored), Kernel::Rows(_, dtype, _)) if stored != DType::Bool => {
                operand.computed_in(dtype)
            }
            _ => operand,
        });
    }
    if is_side_by_side || is_of_columns {
        operands.iter_mut().flatten().for_each(CellOperand::put_beside);
    }
    if is_of_columns {
        let numbers = operands.iter_mut().flatten().filter(|o| o.sizes.is_empty() && o.step() != 1);
        numbers.for_each(|o| o.packed = true);
    }
    let halves = rows.as_ref().filter(|_| has_half_rows && !is_side_by_side);
    let stored = halves.and_then(|rows| in_place(rows, &mut operands));
    let kernel = match kernel {
        Kernel::Rows(rows, dtype, _) => Kernel::Rows(rows, dtype, stored.as_deref()),
        other => other,
    };
    let together = group(&operands, cells);
    grain = grain.max(together.unwrap_or(1));
    // The time that a row takes is proportional to its length. That of another cell is not known, so it gets no larger chunks, between
    // which a call checks for interrupts.
    if !sums_any && op.body.program().is_some() {
        grain = grain.max(few_chunks(cells));
    }
    let together = together.unwrap_or_else(|| (BREATH / work).max(1));
    let mut sums = Vec::new();
    for (k, t) in parts {
        let sum = PartialSums::new(t, cells.div_ceil(grain))?;
        operands[k] = Some(sum.operand(shapes, op.outputs[k - op.inputs.len()].core));
        sums.push(sum);
    }
    let batch = merged(&batch, &mut operands);
    let failure = Mutex::new(None);
    parallel_for(cells, grain, |range| {
        if failure.lock().is_ok_and(|f| f.is_some()) {
            return;
        }
        let part = range.start / grain;
        let cells = Cells { operands: &operands, batch: &batch, kernel, is_of_columns, attrs, part, together };
        let result = cells.run(range);
        if let Err(error) = result {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.context(format!("op '{}'", op.name)));
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    sums.iter().for_each(PartialSums::finish);
    Ok(outputs)
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

/// The kernel that takes half floats as they are in memory, if the op has one for the inputs.
fn kernel_of_halves<'a>(
    op: &'a OpDef,
    rule: &CoreShapes,
    inputs: &[Option<&Tensor>],
    dtypes: &DTypes,
) -> Option<Kernel<'a, CellKernel>> {
    let [dtype @ (DType::F16 | DType::Bf16)] = dtypes[..] else { return None };
    let cores: Option<SmallVec<[&[usize]; 4]>> = inputs
        .iter()
        .zip(rule.inputs.iter())
        .map(|(t, dims)| {
            let t = t.filter(|t| t.dtype() == dtype)?;
            t.shape().get(t.ndim().checked_sub(dims.core.len())?..)
        })
        .collect();
    let cores = cores.filter(|_| op.axis.is_none())?;
    let of = |kernels: &'a Kernels| match kernels {
        Kernels::HalfCells(cells) if cells.dtype == dtype && (cells.is_fit)(&cores) => {
            Some(Kernel::Compiled(cells.run))
        }
        _ => None,
    };
    op.kernels_on(DeviceKind::Cpu).find_map(of)
}

/// The program over rows of an op. Its machine code also computes rows that are side by side, and shares long ones between threads.
fn row_kernel(
    op: &OpDef,
    dtype: DType,
    program: impl Fn(&Variants<RowKernel>) -> Result<Arc<RowKernel>>,
) -> Option<Arc<RowKernel>> {
    if !matches!(dtype, DType::F32 | DType::F64) {
        return None;
    }
    op.kernels_on(DeviceKind::Cpu).find_map(Kernels::rows).and_then(|programs| program(programs).ok())
}

/// Merges batch dimensions that all arguments step through alike, so that a kernel gets many cells at once.
fn merged(batch: &Shape, operands: &mut [Option<CellOperand>]) -> Shape {
    let mut sizes: SmallVec<[usize; 6]> = batch.iter().copied().collect();
    for d in (1..sizes.len()).rev() {
        let (outer, inner) = (sizes[d - 1], sizes[d]);
        let is_even = |o: &CellOperand| o.batch[d - 1] == o.batch[d] * inner as isize;
        let without = match () {
            () if inner == 1 => d,
            () if outer == 1 || operands.iter().flatten().all(is_even) => d - 1,
            () => continue,
        };
        for operand in operands.iter_mut().flatten() {
            operand.batch.remove(without);
        }
        sizes[d] = outer * inner;
        sizes.remove(d - 1);
    }
    sizes.into_iter().collect()
}

struct Cells<'a> {
    operands: &'a [Option<CellOperand>],
    batch: &'a Shape,
    kernel: Kernel<'a, CellKernel>,
    /// Whether the kernel gets packed cells as the columns of tables.
    is_of_columns: bool,
    attrs: &'a [Attr],
    part: usize,
    /// The largest number of cells that the kernel gets at once.
    together: usize,
}

impl Cells<'_> {
    fn run(&self, range: std::ops::Range<usize>) -> Result<()> {
        let most = range.len().min(self.together);
        let bytes = |o: &CellOperand| if o.packed { (o.core_bytes() * most).max(1) } else { 0 };
        let mut buffers = Buffers::of(self.operands.iter().map(|o| o.as_ref().map_or(0, bytes)))?;
        let buffers = buffers.as_mut();
        let row = self.batch.last().copied().unwrap_or(1);
        let mut cell = range.start;
        while cell < range.end {
            // Neighbouring cells are packed together: a column is read with the columns next to it.
            let count = most.min(range.end - cell).min(row - cell % row);
            let offsets = self.offsets(cell);
            let places = |o: &CellOperand, offset: isize| {
                o.data.wrapping_add(self.part * o.part).wrapping_offset(offset * o.dtype.size() as isize)
            };
            for ((operand, offset), buffer) in self.operands.iter().zip(&offsets).zip(&mut *buffers) {
                if let Some(o) = operand.as_ref().filter(|o| o.packed && o.is_read) {
                    // SAFETY: the buffer holds the cores' elements in the compute dtype.
                    unsafe { o.transfer(places(o, *offset), buffer.as_mut_ptr().cast(), count, true) }
                }
            }
            if cell > range.start {
                crate::interrupt::check()?;
            }
            let beside = [count as isize, 1];
            let tables: SmallVec<[[usize; 2]; 6]> = match self.is_of_columns {
                true => self.operands.iter().map(|o| [o.as_ref().map_or(0, CellOperand::row), count]).collect(),
                false => SmallVec::new(),
            };
            let mut args: SmallVec<[CellArg<'_>; 6]> = SmallVec::new();
            for (i, ((operand, offset), buffer)) in self.operands.iter().zip(&offsets).zip(&mut *buffers).enumerate() {
                args.push(match operand {
                    None => CellArg { data: std::ptr::null_mut(), step: 0, is_large: false, shape: &[], strides: &[] },
                    Some(o) if self.is_of_columns => {
                        let data = if o.packed { buffer.as_mut_ptr().cast() } else { places(o, *offset) };
                        let from = 1 - o.sizes.len().min(1);
                        CellArg { data, step: 0, is_large: false, shape: &tables[i][from..], strides: &beside[from..] }
                    }
                    Some(o) if o.beside => {
                        let step = o.compute.size() as isize;
                        CellArg {
                            data: buffer.as_mut_ptr().cast(),
                            step,
                            is_large: false,
                            shape: &o.sizes,
                            strides: &beside[..1],
                        }
                    }
                    Some(o) if o.packed => {
                        let step = o.core_bytes() as isize;
                        let data = buffer.as_mut_ptr().cast();
                        CellArg { data, step, is_large: false, shape: &o.sizes, strides: &o.strides }
                    }
                    Some(o) => {
                        let step = o.step() * o.dtype.size() as isize;
                        let is_large = self.batch.numel().saturating_mul(o.core_bytes()) >= LARGE;
                        CellArg { data: places(o, *offset), step, is_large, shape: &o.sizes, strides: &o.strides }
                    }
                });
            }
            // SAFETY: every argument has `count` cores of the dtype, rank and layout that the kernel was generated for.
            unsafe { self.kernel.run(self.attrs, &args, if self.is_of_columns { 1 } else { count })? };
            for ((operand, offset), buffer) in self.operands.iter().zip(&offsets).zip(&mut *buffers) {
                if let Some(o) = operand.as_ref().filter(|o| o.packed && o.is_output) {
                    // SAFETY: as for packing.
                    unsafe { o.transfer(places(o, *offset), buffer.as_mut_ptr().cast(), count, false) }
                }
            }
            cell += count;
        }
        Ok(())
    }

    fn offsets(&self, cell: usize) -> SmallVec<[isize; 6]> {
        let mut offsets: SmallVec<[isize; 6]> = SmallVec::from_elem(0, self.operands.len());
        let mut rest = cell;
        for d in (0..self.batch.len()).rev() {
            let at = (rest % self.batch[d]) as isize;
            rest /= self.batch[d];
            for (offset, operand) in offsets.iter_mut().zip(self.operands) {
                *offset += operand.as_ref().map_or(0, |o| at * o.batch[d]);
            }
        }
        offsets
    }
}

/// The number of neighbouring cells that are packed at a time: as many as fit the cache, but whole cache lines of `f32`. `None` if none
/// are packed.
fn group(operands: &[Option<CellOperand>], cells: usize) -> Option<usize> {
    let packed = || operands.iter().flatten().filter(|o| o.packed);
    if let Some(row) = packed().find(|o| o.beside) {
        let bytes = packed().map(CellOperand::core_bytes).sum::<usize>().max(1);
        // Short pieces of memory are slow to read, and so are buffers that do not fit the cache.
        let most = (2048 / row.sizes[0].max(1)).clamp(64, 2048);
        let count = (BESIDE / bytes).min(cells.div_ceil(num_threads())).clamp(16, most);
        return Some(count.next_multiple_of(16));
    }
    // A large core that is contiguous in memory needs no neighbours.
    let is_contiguous = |o: &CellOperand| o.core_shape.is_contiguous(&o.core_strides);
    let least = if packed().all(is_contiguous) { 1 } else { 16 };
    packed().map(CellOperand::core_bytes).max().map(|bytes| (GROUP / bytes.max(1)).clamp(least, 64))
}
