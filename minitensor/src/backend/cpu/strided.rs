//! Runs an element kernel over tensors of any layout: directly on contiguous memory, otherwise in blocks that are packed
//! into a small buffer, computed there and unpacked.

mod operand;
mod parts;

use std::ops::Range;

use minitensor_kernels::LARGE;
use minitensor_kernels::memory::Line;
use minitensor_kernels::program::{Storage, row_by_row};
use minitensor_kernels::threads::few_chunks;
use smallvec::SmallVec;

use self::operand::ElementOperand;
pub use self::parts::PartLoop;
use crate::dtype::DType;
use crate::error::Result;
use crate::stop::parallel_for;
use crate::tensor::{Shape, Tensor};

/// The number of elements of a block that is packed; the blocks of a few operands fit the L1 cache.
const TILE: usize = 2048;
/// The number of bytes of a block that is transposed when it is packed. It fits the L2 cache. Larger blocks have more lines in each of
/// the pages of memory that they extend over.
const TRANSPOSED: usize = 64 * 1024;
/// The number of rows of such a block.
const BAND: usize = 128;
/// The fewest elements for a thread, in a compiled loop.
pub const GRAIN: usize = 32 * 1024;
/// The number of elements after which a call checks for interrupts.
pub const BREATH: usize = 1 << 20;
/// Rows of at least this length are computed one by one, in place.
const ROW: usize = 64;
/// Rows of at least this length are computed with one element of an operand that has one for each row.
const WIDE: usize = 128;
/// The fewest elements for which machine code is made for the way in which they are stored.
pub const FEWEST_STORED: usize = 1024;
/// The length of a block's row if some operand has one element for the whole row.
const SHORT: usize = 256;
/// The number of bytes of all operands from which results bypass the cache: together, they do not fit.
const PAST_CACHE: usize = 2 * LARGE;

/// A loop over elements. Inputs and outputs are contiguous, and of the compute dtype, unless the loop was [made](MakeLoop) for others.
pub trait Loop: Sync {
    /// Computes `n` elements.
    fn run(&self, n: usize, inputs: &[*const u8], outputs: &[*mut u8]) -> Result<()>;

    /// Computes several rows of `n` elements. `steps` are the bytes from one row to the next of each input, then of each output.
    fn run_rows(
        &self,
        rows: usize,
        n: usize,
        inputs: &[*const u8],
        outputs: &[*mut u8],
        steps: &[isize],
    ) -> Result<()> {
        row_by_row(rows, inputs, outputs, steps, |inputs, outputs| self.run(n, inputs, outputs))
    }
}

impl<F: Fn(usize, &[*const u8], &[*mut u8]) -> Result<()> + Sync> Loop for F {
    fn run(&self, n: usize, inputs: &[*const u8], outputs: &[*mut u8]) -> Result<()> {
        self(n, inputs, outputs)
    }
}

/// Makes the loop over operands that are stored in these ways, if there is one.
pub type MakeLoop<'a> = dyn Fn(&[Storage]) -> Option<Box<dyn Loop + 'a>> + Sync + 'a;

/// An element kernel.
pub struct ElementLoop<'a> {
    pub run: &'a dyn Loop,
    /// The dtype in which it computes tensors of integers; `None` if that is their own.
    pub of_integers: Option<DType>,
    /// Makes the loop over operands that are stored in other ways.
    pub stored: &'a MakeLoop<'a>,
    /// Whether it may read an input after it has written to an output.
    pub reads_late: bool,
    /// The fewest elements for a thread.
    pub grain: usize,
}

impl ElementLoop<'_> {
    /// The dtype in which it computes a tensor of this dtype.
    fn compute(&self, dtype: DType) -> DType {
        match self.of_integers {
            Some(compute) if dtype.is_integer() => compute,
            _ => dtype.compute(),
        }
    }
}

/// Computes `outputs` from `inputs`, which all broadcast to `shape`. An output that is `None` is computed and discarded.
/// `output_dtypes` are the dtypes of all outputs.
pub fn run(
    kernel: &ElementLoop<'_>,
    shape: &Shape,
    inputs: &[Option<&Tensor>],
    outputs: &[Option<&Tensor>],
    output_dtypes: &[DType],
) -> Result<()> {
    let n = shape.numel();
    if n == 0 {
        return Ok(());
    }
    let compute = |dtype: DType| kernel.compute(dtype);
    let simple = |t: &Option<&Tensor>| {
        t.is_some_and(|t| t.shape() == shape && t.is_contiguous() && compute(t.dtype()) == t.dtype())
    };
    let is_input = |t: &Tensor| inputs.iter().flatten().any(|input| input.data_ptr() == t.data_ptr());
    let must_wait = |t: &Tensor| kernel.reads_late && is_input(t);
    let waits = outputs.iter().flatten().any(|t| must_wait(t));
    if n <= kernel.grain && !waits && inputs.iter().all(simple) && outputs.iter().all(simple) {
        let ins: SmallVec<[*const u8; 4]> = inputs.iter().flatten().map(|t| t.data_ptr().cast_const()).collect();
        let outs: SmallVec<[*mut u8; 4]> = outputs.iter().flatten().map(|t| t.data_ptr()).collect();
        // Every tensor is contiguous, has n elements and the kernel's compute dtype.
        return kernel.run.run(n, &ins, &outs);
    }
    let mut operands: Vec<ElementOperand> = Vec::with_capacity(inputs.len() + outputs.len());
    for input in inputs {
        let of = |t: &Tensor| ElementOperand::of(t, shape, compute(t.dtype()));
        operands.push(input.map_or_else(|| ElementOperand::nothing(DType::F64, DType::F64), of));
    }
    for (output, dtype) in outputs.iter().zip(output_dtypes) {
        let of =
            |t: &Tensor| ElementOperand { waits: must_wait(t), ..ElementOperand::of(t, shape, compute(t.dtype())) };
        operands.push(output.map_or_else(|| ElementOperand::nothing(*dtype, compute(*dtype)), of));
    }
    let sizes = merge(shape, &mut operands);
    let stored = if n < FEWEST_STORED { None } else { stored(kernel, &sizes, &mut operands, inputs.len(), true) };
    let (run, grain) = (stored.as_deref().unwrap_or(kernel.run), kernel.grain);
    let space = Space::new(sizes, operands, inputs.len(), run, grain);
    let (blocks, size) = (space.blocks(), space.rows * space.columns);
    let chunk = grain.div_ceil(size).max(few_chunks(blocks).min(BREATH / size));
    parallel_for(blocks, chunk, |blocks| space.run(blocks))
}

/// The loop over the operands as they are stored, if there is one that needs fewer copies. `may_bypass` is whether large results may
/// bypass the cache.
fn stored<'a>(
    kernel: &ElementLoop<'a>,
    sizes: &[usize],
    operands: &mut [ElementOperand],
    count: usize,
    may_bypass: bool,
) -> Option<Box<dyn Loop + 'a>> {
    let [.., height, width] = *sizes else { return None };
    let is_wide = width >= WIDE;
    let (inputs, outputs) = operands.split_at(count);
    let is_alone = |o: &ElementOperand| !outputs.iter().any(|out| out.data == o.data);
    let of_inputs = inputs.iter().map(|o| match () {
        () if !is_alone(o) => o.half(),
        () if is_wide && o.is_one() => Storage::One,
        () if is_wide && o.is_every_other() => Storage::EveryOther,
        () => o.half(),
    });
    let is_large = may_bypass && operands.iter().map(|o| o.bytes(sizes)).sum::<usize>() >= PAST_CACHE;
    let of_outputs = outputs.iter().map(|o| match () {
        () if is_large && width >= ROW && o.is_aligned() && inputs.iter().all(|input| input.data != o.data) => {
            Storage::NonTemporal
        }
        () => o.half(),
    });
    let storage: SmallVec<[Storage; 8]> = of_inputs.chain(of_outputs).collect();
    let has_rows = is_wide && height > 1 && operands.iter().all(|o| o.is_one() || o.steps_by(1) && !o.waits);
    if !has_rows && storage.iter().all(|storage| *storage == Storage::Own) {
        return None;
    }
    let made = (kernel.stored)(&storage)?;
    for (operand, storage) in operands.iter_mut().zip(&storage) {
        operand.storage = *storage;
        if storage.is_half() {
            operand.compute = operand.dtype;
        }
    }
    Some(made)
}

/// Removes axes of size 1, and merges neighbouring axes where the strides of all operands allow it. At least two axes remain.
fn merge(shape: &Shape, operands: &mut [ElementOperand]) -> SmallVec<[usize; 6]> {
    let mut sizes: SmallVec<[usize; 6]> = SmallVec::new();
    let mut strides: Vec<SmallVec<[isize; 6]>> = vec![SmallVec::new(); operands.len()];
    for d in 0..shape.len() {
        if shape[d] == 1 {
            continue;
        }
        let joins = !sizes.is_empty()
            && operands
                .iter()
                .zip(&strides)
                .all(|(o, s)| !o.wanted || s.last() == Some(&(o.strides[d] * shape[d] as isize)));
        if joins {
            *sizes.last_mut().expect("there is one to join") *= shape[d];
        } else {
            sizes.push(shape[d]);
        }
        for (operand, s) in operands.iter().zip(&mut strides).filter(|(o, _)| o.wanted) {
            if joins {
                s.pop();
            }
            s.push(operand.strides[d]);
        }
    }
    while sizes.len() < 2 {
        sizes.insert(0, 1);
        // A single element is contiguous.
        strides.iter_mut().for_each(|s| s.insert(0, s.is_empty().into()));
    }
    for (operand, s) in operands.iter_mut().zip(strides) {
        operand.strides = s;
    }
    sizes
}

/// The elements to compute, divided into blocks of rows. A row is along the last axis, the rows of a block along the one before.
struct Space<'a> {
    sizes: SmallVec<[usize; 6]>,
    operands: Vec<ElementOperand>,
    inputs: usize,
    kernel: &'a dyn Loop,
    /// The size of a block. Blocks at the end of an axis may be smaller.
    rows: usize,
    columns: usize,
    /// The most elements of a block that is packed.
    packed: usize,
    /// Whether rows are so short that all rows of a block are computed in one call.
    together: bool,
}

/// A block.
struct Block {
    /// The index of its first element.
    start: SmallVec<[usize; 6]>,
    rows: usize,
    columns: usize,
}

impl<'a> Space<'a> {
    fn new(
        mut sizes: SmallVec<[usize; 6]>,
        mut operands: Vec<ElementOperand>,
        inputs: usize,
        kernel: &'a dyn Loop,
        grain: usize,
    ) -> Self {
        let rank = sizes.len();
        // If some operand is contiguous along another axis than the last, the rows of a block are along that axis.
        let other = operands.iter().find_map(ElementOperand::fastest);
        if let Some(axis) = other {
            sizes[axis..rank - 1].rotate_left(1);
            operands.iter_mut().filter(|o| o.wanted).for_each(|o| o.strides[axis..rank - 1].rotate_left(1));
        }
        let (height, width) = (sizes[rank - 2], sizes[rank - 1]);
        let together = width < ROW;
        for operand in operands.iter_mut().filter(|o| o.wanted) {
            let in_order = !together || height == 1 || operand.strides[rank - 2] == width as isize;
            let is_stored = matches!(operand.storage, Storage::One | Storage::EveryOther);
            operand.direct = is_stored || operand.steps_by(1) && in_order && !operand.waits;
        }
        let widest = || operands.iter().map(|o| o.compute.size()).max().unwrap_or(1);
        let packed = if other.is_some() { TRANSPOSED / widest().max(4) } else { TILE };
        let most = if operands.iter().all(|o| o.direct) { grain.next_multiple_of(Line::BYTES) } else { packed };
        // Blocks begin at whole cache lines.
        let most_columns = || (most / height.min(BAND) / Line::BYTES).max(1) * Line::BYTES;
        let columns = match other {
            _ if together => width,
            Some(_) => width.min(most_columns()),
            // An operand with one element for each row is packed once for a short row, and used for the whole one.
            None if operands.iter().any(|o| o.repeats() && o.storage != Storage::One) => width.min(SHORT),
            None => width.min(most),
        };
        let rows = height.min(most / columns);
        Space { sizes, operands, inputs, kernel, rows, columns, packed, together }
    }

    /// The number of blocks along an axis.
    fn blocks_along(&self, axis: usize) -> usize {
        match self.sizes.len() - axis {
            1 => self.sizes[axis].div_ceil(self.columns),
            2 => self.sizes[axis].div_ceil(self.rows),
            _ => self.sizes[axis],
        }
    }

    fn blocks(&self) -> usize {
        (0..self.sizes.len()).map(|axis| self.blocks_along(axis)).product()
    }

    fn block(&self, mut number: usize) -> Block {
        let rank = self.sizes.len();
        let mut start = SmallVec::from_elem(0, rank);
        for axis in (0..rank).rev() {
            let along = self.blocks_along(axis);
            start[axis] = number % along;
            number /= along;
        }
        start[rank - 2] *= self.rows;
        start[rank - 1] *= self.columns;
        let rows = self.rows.min(self.sizes[rank - 2] - start[rank - 2]);
        let columns = self.columns.min(self.sizes[rank - 1] - start[rank - 1]);
        Block { start, rows, columns }
    }

    fn run(&self, blocks: Range<usize>) -> Result<()> {
        let size =
            |o: &ElementOperand| if o.direct { 0 } else { (self.packed * o.compute.size()).div_ceil(Line::BYTES) };
        let mut buffer = vec![Line::ZERO; self.operands.iter().map(size).sum()];
        let mut rest = buffer.as_mut_slice();
        let mut places: SmallVec<[*mut u8; 8]> = SmallVec::new();
        for operand in &self.operands {
            let (slot, after) = rest.split_at_mut(size(operand));
            places.push(slot.as_mut_ptr().cast());
            rest = after;
        }
        // The block that is in the buffer of each input: its first element, its rows and columns.
        let mut held = vec![None; self.inputs];
        for number in blocks {
            let block = self.block(number);
            for (k, (operand, place)) in self.operands.iter().zip(&mut places).enumerate() {
                let first = operand.at(&block);
                if operand.direct {
                    *place = first;
                } else if k < self.inputs && operand.wanted {
                    let content = Some((first, block.rows, block.columns));
                    if held[k] != content {
                        // SAFETY: the block is within the space. The slot has room for the elements of a block in the compute dtype.
                        unsafe { operand.transfer(&block, *place, true) }
                        held[k] = content;
                    }
                }
            }
            self.compute(&block, &places)?;
            for (operand, slot) in self.operands.iter().zip(&places).skip(self.inputs) {
                if operand.wanted && !operand.direct {
                    // SAFETY: as for packing.
                    unsafe { operand.transfer(&block, *slot, false) }
                }
            }
        }
        Ok(())
    }

    /// Runs the kernel on a block, as one row or row by row. The elements of an operand are in its own memory if it is direct, otherwise
    /// contiguous in its buffer.
    fn compute(&self, block: &Block, places: &[*mut u8]) -> Result<()> {
        let (rows, n) = if self.together { (1, block.rows * block.columns) } else { (block.rows, block.columns) };
        let (ins, outs) = places.split_at(self.inputs);
        let ins: SmallVec<[*const u8; 8]> = ins.iter().map(|place| place.cast_const()).collect();
        if rows == 1 {
            return self.kernel.run(n, &ins, outs);
        }
        let steps: SmallVec<[isize; 8]> = self.operands.iter().map(|operand| operand.row_step(n)).collect();
        self.kernel.run_rows(rows, n, &ins, outs, &steps)
    }
}
