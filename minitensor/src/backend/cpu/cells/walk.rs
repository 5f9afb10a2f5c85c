//! [`Cells`]: the cells of a call, which a kernel computes range by range.

use smallvec::SmallVec;

use minitensor_kernels::LARGE;
use minitensor_kernels::threads::num_threads;

use super::buffers::Buffers;
use super::operand::CellOperand;
use crate::attr::Attr;
use crate::error::Result;
use crate::op::{CellArg, CellKernel, Kernel};
use crate::tensor::Shape;

/// The number of bytes of a core that is packed together with its neighbours.
const GROUP: usize = 1024 * 1024;
/// The number of bytes of rows that are packed side by side.
pub const BESIDE: usize = 4 * 1024 * 1024;

/// The number of bytes of a piece of memory that is read at full speed.
const PIECE: usize = 2048;

pub struct Cells<'a> {
    pub operands: &'a [Option<CellOperand>],
    pub batch: &'a Shape,
    pub kernel: Kernel<'a, CellKernel>,
    /// Whether the kernel gets packed cells as the columns of tables.
    pub is_of_columns: bool,
    pub attrs: &'a [Attr],
    pub part: usize,
    /// The largest number of cells that the kernel gets at once.
    pub together: usize,
}

impl Cells<'_> {
    pub fn run(&self, range: std::ops::Range<usize>) -> Result<()> {
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
                    Some(o) if o.packed && o.beside => {
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

/// The number of neighbouring cells that are packed at a time, or are side by side: as many as fit the cache, but whole cache lines of
/// `f32`. `None` if there are none.
pub fn group(operands: &[Option<CellOperand>], cells: usize) -> Option<usize> {
    let packed = || operands.iter().flatten().filter(|o| o.packed);
    if let Some(row) = operands.iter().flatten().find(|o| o.beside) {
        let bytes = packed().map(CellOperand::core_bytes).sum::<usize>().max(1);
        // Short pieces of memory are slow to read, and so are buffers that do not fit the cache.
        let least = if row.packed { 64 } else { PIECE / row.dtype.size() };
        let most = (2048 / row.sizes[0].max(1)).clamp(least, 2048);
        let count = (BESIDE / bytes).min(cells.div_ceil(num_threads())).clamp(16, most);
        return Some(count.next_multiple_of(16));
    }
    // A large core that is contiguous in memory needs no neighbours.
    let is_contiguous = |o: &CellOperand| o.core_shape.is_contiguous(&o.core_strides);
    let least = if packed().all(is_contiguous) { 1 } else { 16 };
    packed().map(CellOperand::core_bytes).max().map(|bytes| (GROUP / bytes.max(1)).clamp(least, 64))
}
