//! Calls of cell bodies: binds the core dimensions, broadcasts the batch, and runs the kernel on each cell.

mod buffers;
mod call;
mod choice;
pub mod kept;
mod operand;
mod partial_sums;
mod plan;
mod tables;
mod walk;

use minitensor_kernels::threads::{few_chunks, num_threads};
use smallvec::SmallVec;

use self::call::{Call, Results};
use self::choice::Traits;
use self::operand::CellOperand;
use self::partial_sums::PartialSums;
use self::plan::Plan;
use self::walk::group;
use super::strided::BREATH;
use crate::attr::Attr;
use crate::backend::Wanted;
use crate::backend::shapes::CallShapes;
use crate::error::Result;
use crate::op::call::dtype_rule::DTypes;
use crate::op::call::shape_rule::CoreShapes;
use crate::op::{Backward, Kernels, OpRef};
use crate::tensor::{Device, DeviceKind, Shape, Tensor};

/// The fewest elements for a thread.
const GRAIN: usize = 16 * 1024;
/// The maximum number of partial sums of an output. Each has memory of its own.
const PARTS: usize = 16;
/// The most cells that a body with a derived gradient, and that gradient, compute side by side.
const SIDE_BY_SIDE: usize = 64;

/// Computes the wanted outputs; the others are `None`. If there is a batch, an output without batch
/// dimensions is the sum over all cells.
#[allow(clippy::too_many_arguments)]
pub fn run(
    op: &OpRef,
    shapes: &CallShapes,
    rule: &CoreShapes,
    inputs: &[Option<&Tensor>],
    attrs: &[Attr],
    dtypes: &DTypes,
    device: Device,
    wanted: Wanted<'_>,
) -> Result<Results> {
    let call = Call { op, shapes, rule, inputs, attrs, dtypes };
    let results = call.results(device, wanted)?;
    if device == Device::Meta {
        return Ok(results);
    }
    let (of_halves, sums, compute) = (call.kernel_of_halves(), call.sums(&results), call.compute());
    let mut operands = call.operands(&results, &compute, of_halves.is_some());
    let found = op.kernels_on(DeviceKind::Cpu).find(|kernels| kernels.has_cell(&compute));
    let takes_columns = sums.is_empty() && found.is_some_and(Kernels::takes_columns);
    let mut batch = shapes.batch.clone();
    let mut tables = None;
    if takes_columns {
        batch = merged(&batch, &mut operands);
        tables = tables::of(&batch, &mut operands);
    }
    let is_table = tables.is_some();
    let batch = tables.unwrap_or(batch);
    let traits = Traits {
        call: &call,
        batch: &batch,
        inputs: &operands[..inputs.len()],
        results: &results,
        compute: &compute,
        found,
        of_halves,
        has_sums: !sums.is_empty(),
        takes_columns,
        is_table,
    };
    let mut choice = traits.choose()?;
    let sizes = operands[..inputs.len()].iter().flatten().map(|o| o.sizes.iter().product::<usize>());
    let work = sizes.sum::<usize>().max(1);
    choice.adapt(&call, &mut operands);
    let cells = batch.numel();
    let together = group(&operands, cells);
    let beside = beside(&call, cells, !sums.is_empty());
    let grain = grain(&call, cells, work, !sums.is_empty()).max(together.unwrap_or(1)).max(beside);
    let mut partial = Vec::new();
    for (at, t) in sums {
        let output = &op.outputs[at - inputs.len()];
        let sum = PartialSums::new(t, Call::computed(t, output.dtype, &compute), cells.div_ceil(grain))?;
        operands[at] = Some(sum.operand(shapes, output.core));
        partial.push(sum);
    }
    let batch = merged(&batch, &mut operands);
    let together = together.unwrap_or_else(|| (BREATH / work).max(beside));
    let plan = Plan { operands, batch, choice, grain, together };
    plan.run(op, attrs)?;
    if partial.is_empty() {
        kept::keep(op, &call, &results, plan, wanted);
    }
    partial.iter().for_each(PartialSums::finish);
    Ok(results)
}

/// The number of cells that a kernel should get at once, because it computes them side by side.
fn beside(call: &Call<'_>, cells: usize, has_sums: bool) -> usize {
    let op = call.op;
    let is_derived = op.is_gradient() || matches!(op.backward, Backward::Derived(_));
    // The division into partial sums determines their bits, so it does not depend on the number of threads.
    let parts = if has_sums { PARTS } else { num_threads() };
    if op.body.program().is_none() && is_derived { (cells / parts).clamp(1, SIDE_BY_SIDE) } else { 1 }
}

/// The fewest cells for a thread, of which each has `work` elements.
fn grain(call: &Call<'_>, cells: usize, work: usize, has_sums: bool) -> usize {
    let op = call.op;
    // The division into partial sums determines their bits, so it is not tuned.
    let tuned = op.grain(call.attrs).filter(|_| !has_sums);
    let grain = tuned.unwrap_or(GRAIN).div_ceil(work);
    if has_sums {
        return grain.max(cells.div_ceil(PARTS));
    }
    // The time that a row takes is proportional to its length. That of another cell is not known, so it gets no larger chunks, between
    // which a call checks for interrupts.
    if op.body.program().is_some() { grain.max(few_chunks(cells)) } else { grain }
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
