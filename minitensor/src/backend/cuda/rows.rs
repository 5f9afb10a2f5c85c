//! Programs over rows.

use std::any::Any;
use std::sync::{Arc, LazyLock};

use minitensor_kernels::RealRow;
use minitensor_kernels::cuda::{RowInput, RowKernel, RowOutput, RowShape};
use minitensor_kernels::program::Program;
use smallvec::SmallVec;

use super::device::{CudaDevice, Kernel};
use super::layout::{OperandStrides, merge, vector};
use super::type_of;
use crate::backend::programs::{self, ProgramCall, RowsOfCall};
use crate::error::Result;
use crate::tensor::{Device, Shape, Tensor};

/// The elements that a thread keeps in registers, of all inputs together.
const MOST_KEPT: usize = 64;
/// The same of one input.
const MOST_ITEMS: usize = 32;
/// The most threads of a row, and the threads of a block with several rows.
const MOST_LANES: usize = 1024;
const THREADS: usize = 128;
/// The most blocks, and those that compute sums over rows: a fixed number, so that all devices add in the same order.
const MOST_BLOCKS: usize = 1 << 20;
const SUMMING_BLOCKS: usize = 512;
/// The most elements of partial sums.
const MOST_PARTIAL: usize = 1 << 24;
/// Long rows are split until there are so many blocks, into sections of at least so many elements.
const FEWEST_BLOCKS: usize = 1024;
const LEAST_SECTION: usize = 8 * 1024;
/// The threads of a section.
const SPLIT_LANES: u32 = 256;
/// The most fields of the argument.
const MOST_FIELDS: usize = 500;

/// The program of a sum over a row.
static SUM: LazyLock<Arc<Program>> =
    LazyLock::new(|| Arc::new(Program::write(&["x"], &[], |x, _| vec![("out".into(), x[0].sum().into())])));

/// An operand with a place for each row.
struct Operand<'a> {
    t: &'a Tensor,
    /// The strides along the batch, in elements.
    batch: OperandStrides,
    /// The stride along the row; `None` if it has a number for each row.
    step: Option<isize>,
}

impl<'a> Operand<'a> {
    fn new(t: &'a Tensor, batch: &Shape, is_row: bool) -> Operand<'a> {
        let own = t.ndim() - usize::from(is_row);
        // One without a batch is the same for all rows.
        let mut strides = OperandStrides::from_elem(0, batch.len() - own);
        let sizes = t.shape().iter().zip(t.strides()).take(own);
        strides.extend(sizes.map(|(size, stride)| if *size == 1 { 0 } else { *stride }));
        Operand { t, batch: strides, step: is_row.then(|| t.strides()[own]) }
    }

    /// Whether all elements of a row are one number. An output has no such rows.
    fn is_single(&self) -> bool {
        self.step == Some(0)
    }

    fn address(&self) -> usize {
        self.t.data_ptr().expose_provenance()
    }
}

/// Submits the kernel. Returns false if there is none.
pub fn run(device: &CudaDevice, call: &ProgramCall<'_>, arguments: &RowsOfCall<'_>) -> Result<bool> {
    let RowsOfCall { batch, count, .. } = *arguments;
    let rows = batch.numel();
    let Some(compute) = type_of(call.dtype) else { return Ok(false) };
    let outputs = || arguments.outputs.iter().enumerate().filter_map(|(k, o)| Some((k, o.as_ref()?)));
    let tensors = || arguments.inputs.iter().chain(arguments.numbers).flatten().chain(outputs().map(|(_, (t, _))| t));
    if tensors().any(|t| type_of(t.dtype()).is_none()) {
        return Ok(false);
    }
    let mut operands: Vec<Operand<'_>> = Vec::new();
    operands.extend(arguments.inputs.iter().flatten().map(|t| Operand::new(t, batch, true)));
    operands.extend(arguments.numbers.iter().flatten().map(|t| Operand::new(t, batch, false)));
    let own = outputs().filter(|(_, (_, what))| !what.is_shared);
    operands.extend(own.map(|(_, (t, what))| Operand::new(t, batch, what.is_row)));
    let shared: Vec<(usize, &Tensor, bool)> =
        outputs().filter(|(_, (_, what))| what.is_shared).map(|(k, (t, what))| (k, t, what.is_row)).collect();
    // The sum over no rows is 0, and rows without elements have reductions.
    if rows == 0 || tensors().all(|t| t.numel() == 0) {
        return shared.iter().try_for_each(|(_, t, _)| zero(device, t)).map(|()| true);
    }
    let mut sizes: SmallVec<[usize; 6]> = batch.iter().copied().collect();
    let mut strides: Vec<OperandStrides> = operands.iter().map(|o| o.batch.clone()).collect();
    merge(&mut sizes, &mut strides);
    let is_beside = count > 1 && operands.iter().any(|o| o.step.is_some_and(|step| step != 1 && !o.is_single()));
    let of_rows: Vec<(usize, usize, OperandStrides)> = operands
        .iter()
        .zip(&strides)
        .filter(|(o, _)| o.step.is_some())
        .map(|(o, s)| {
            let step = if o.is_single() { 0 } else { 1 };
            (o.address(), o.t.dtype().size(), s.iter().copied().chain([step]).collect())
        })
        .collect();
    let of_rows: Vec<(usize, usize, &[isize])> = of_rows.iter().map(|(a, s, strides)| (*a, *s, &strides[..])).collect();
    let vector = if is_beside { 1 } else { vector(count, true, &of_rows) };
    let kept = arguments.inputs.iter().flatten().count() + shared.iter().filter(|(.., is_row)| *is_row).count();
    let mut shape = if is_beside { beside(count) } else { contiguous(count, vector, kept) };
    let sections = sections(&shape, count, rows);
    if sections > 1 {
        let lanes = if is_beside { shape.lanes } else { SPLIT_LANES };
        let rows = if is_beside { shape.rows } else { 1 };
        shape = RowShape { lanes, rows, items: 0, is_split: true, ..shape };
    }
    let length = count.div_ceil(sections).next_multiple_of(vector);
    let output = |o: &Option<(Tensor, programs::RowOutput)>| {
        let (t, what) = o.as_ref()?;
        Some(match (what.is_row, what.is_shared) {
            (true, true) => RowOutput::SharedRow,
            (false, true) => RowOutput::SharedNumber,
            (true, false) => RowOutput::Row(type_of(t.dtype())?),
            (false, false) => RowOutput::Number(type_of(t.dtype())?),
        })
    };
    let input = |t: &Option<Tensor>| {
        let t = t.as_ref()?;
        Some(RowInput { memory: type_of(t.dtype())?, is_single: t.strides().last() == Some(&0) })
    };
    let memory = |t: &Option<Tensor>| t.as_ref().and_then(|t| type_of(t.dtype()));
    let kernel = RowKernel {
        compute,
        rank: sizes.len(),
        shape,
        inputs: arguments.inputs.iter().map(input).collect(),
        numbers: arguments.numbers.iter().map(memory).collect(),
        positions: arguments.positions,
        outputs: arguments.outputs.iter().map(output).collect(),
    };
    let sums_rows = shared.iter().any(|(.., is_row)| *is_row);
    let most = if shared.is_empty() { MOST_BLOCKS } else { SUMMING_BLOCKS };
    let blocks = rows.div_ceil(shape.rows as usize).min((most / sections).max(1));
    // Partial sums take a bounded memory, unless rows are very long.
    let blocks =
        if sums_rows { blocks.min((MOST_PARTIAL / (count * shape.rows as usize).max(1)).max(1)) } else { blocks };
    let parts = blocks * shape.rows as usize;
    let reductions = RowKernel::reductions(call.program);
    let partials = match sections {
        1 => None,
        _ => Some(Tensor::empty(Shape::from([reductions * rows * sections]), call.dtype, call.device)?),
    };
    let mut sums: Vec<Tensor> = Vec::new();
    for (_, _, is_row) in &shared {
        let sum = Tensor::empty(Shape::from([parts, if *is_row { count } else { 1 }]), call.dtype, call.device)?;
        if *is_row && shape.items == 0 {
            zero(device, &sum)?;
        }
        sums.push(sum);
    }
    let mut argument: SmallVec<[u64; 64]> = SmallVec::new();
    argument.extend([rows as u64, count as u64]);
    argument.extend(sizes.iter().map(|n| *n as u64));
    if arguments.positions > 0 {
        argument.push(device.status()? as u64);
    }
    if let Some(partials) = &partials {
        argument.extend([partials.data_ptr().expose_provenance() as u64, sections as u64, length as u64]);
    }
    for (operand, strides) in operands.iter().zip(&strides) {
        argument.push(operand.address() as u64);
        argument.extend(strides.iter().map(|s| *s as u64));
        argument.extend(operand.step.map(|step| step as u64));
    }
    argument.extend(sums.iter().map(|sum| sum.data_ptr().expose_provenance() as u64));
    argument.extend(call.uniforms.iter().copied());
    if argument.len() > MOST_FIELDS {
        return Ok(false);
    }
    // SAFETY: the argument has the fields of the kernel, which reads and writes the elements of these tensors.
    if !unsafe { device.run(call, Kernel::Rows(kernel), (blocks, sections), &argument)? } {
        return Ok(false);
    }
    for ((_, t, is_row), sum) in shared.into_iter().zip(&sums) {
        add_parts(device, call.device, sum, t, is_row)?;
    }
    Ok(true)
}

/// Fills a contiguous tensor with 0.
fn zero(device: &CudaDevice, t: &Tensor) -> Result<()> {
    let bytes = t.numel() * t.dtype().size();
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the tensor is contiguous.
    unsafe { device.driver().zero(t.data_ptr(), bytes, device.stream()) }
}

/// Adds partial sums of shape `(parts, count)` along the first dimension.
fn add_parts(device: &CudaDevice, on: Device, sums: &Tensor, to: &Tensor, is_row: bool) -> Result<()> {
    let (program, owner) = (&**SUM, SUM.clone() as Arc<dyn Any + Send + Sync>);
    let call =
        ProgramCall { op: "sum", program, owner: &owner, dtype: sums.dtype(), masks: &[], device: on, uniforms: &[] };
    let turned = sums.permute_view(&[1, 0])?;
    let batch: Shape = [turned.shape()[0]].into();
    let to = if is_row { to.clone() } else { to.reshape_view(&[1])? };
    let what = programs::RowOutput { is_row: false, is_shared: false };
    let rows = RowsOfCall {
        batch: &batch,
        count: turned.shape()[1],
        inputs: &[Some(turned)],
        numbers: &[],
        positions: 0,
        outputs: &[Some((to, what))],
    };
    run(device, &call, &rows).map(drop)
}

/// The threads of contiguous rows. `kept` operands are in registers.
fn contiguous(count: usize, vector: usize, kept: usize) -> RowShape {
    let most = (MOST_KEPT / kept.max(1)).clamp(1, MOST_ITEMS);
    let most = (1 << most.ilog2()).max(vector);
    // A warp computes rows of up to 512 elements, without a barrier.
    let few = count.div_ceil(vector).next_power_of_two().min(32);
    let wanted = if count <= 32 * most.min(16) { few } else { count.div_ceil(16).next_power_of_two().max(64) };
    let mut lanes = wanted.min(MOST_LANES);
    let items = |lanes: usize| count.div_ceil(lanes * vector).next_power_of_two() * vector;
    while items(lanes) > most && lanes < MOST_LANES {
        lanes *= 2;
    }
    let items = if items(lanes) > most { 0 } else { items(lanes) };
    let rows = (THREADS / lanes).max(1);
    RowShape {
        lanes: lanes as u32,
        rows: rows as u32,
        vector: vector as u32,
        items: items as u32,
        is_beside: false,
        is_split: false,
    }
}

/// The threads of rows whose elements are not neighbours: 32 rows side by side, and several threads for each.
fn beside(count: usize) -> RowShape {
    let lanes = 8.min(count.next_power_of_two());
    RowShape { lanes: lanes as u32, rows: 32, vector: 1, items: 0, is_beside: true, is_split: false }
}

/// The number of blocks that compute a row, if there are few rows and they are long. It is the same on all devices, and so is the order in
/// which they add.
fn sections(shape: &RowShape, count: usize, rows: usize) -> usize {
    let of_rows = rows.div_ceil(shape.rows as usize);
    let least = if shape.is_beside { 16 * shape.lanes as usize } else { LEAST_SECTION };
    if count < 2 * least { 1 } else { (FEWEST_BLOCKS / of_rows).min(count / least).max(1) }
}
