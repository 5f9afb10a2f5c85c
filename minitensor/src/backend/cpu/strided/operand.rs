//! [`ElementOperand`]: an argument of an element kernel.

use half::{bf16, f16};
use minitensor_kernels::copy_plane;
use minitensor_kernels::memory::Line;
use minitensor_kernels::program::Storage;
use num_complex::Complex;
use smallvec::SmallVec;

use super::Block;
use crate::dtype::DType;
use crate::tensor::{Shape, Tensor, copy_elements};

/// An input, or an output, which may be discarded.
pub(super) struct ElementOperand {
    pub data: *mut u8,
    pub dtype: DType,
    pub compute: DType,
    /// One for each merged axis.
    pub strides: SmallVec<[isize; 6]>,
    pub wanted: bool,
    /// Whether the kernel must not write to its memory, because it is also that of an input.
    pub waits: bool,
    /// How the kernel reads or writes it in memory.
    pub storage: Storage,
    /// Whether the kernel reads or writes its memory, without a buffer.
    pub direct: bool,
}

// SAFETY: threads write to disjoint blocks of the elements.
unsafe impl Sync for ElementOperand {}

impl ElementOperand {
    pub fn of(tensor: &Tensor, shape: &Shape, compute: DType) -> ElementOperand {
        let view = if tensor.shape() == shape { tensor.detach() } else { tensor.broadcast_view(shape) };
        let nothing = ElementOperand::nothing(tensor.dtype(), compute);
        ElementOperand { data: tensor.data_ptr(), strides: view.strides().into(), wanted: true, ..nothing }
    }

    pub fn nothing(dtype: DType, compute: DType) -> ElementOperand {
        let data = std::ptr::null_mut();
        let strides = SmallVec::new();
        ElementOperand {
            data,
            dtype,
            compute,
            strides,
            wanted: false,
            waits: false,
            storage: Storage::Own,
            direct: false,
        }
    }

    /// Whether its dtype is the compute dtype and its stride along the last axis is `stride`.
    pub fn steps_by(&self, stride: isize) -> bool {
        self.compute == self.dtype && self.strides.last() == Some(&stride)
    }

    /// Whether it has one element for each row, which differs between rows.
    pub fn repeats(&self) -> bool {
        self.strides.split_last().is_some_and(|(last, rest)| *last == 0 && rest.iter().any(|s| *s != 0))
    }

    /// Whether it is an input of the compute dtype with one element for each row, or for all of them.
    pub fn is_one(&self) -> bool {
        self.wanted && self.steps_by(0) && matches!(self.dtype, DType::F32 | DType::F64)
    }

    /// Whether it is an input of the compute dtype with every other number of a row in memory.
    pub fn is_every_other(&self) -> bool {
        self.wanted && self.steps_by(2) && self.dtype == DType::F32
    }

    /// Whether it consists of rows of the compute dtype that begin at whole cache lines.
    pub fn is_aligned(&self) -> bool {
        let Some((last, rest)) = self.strides.split_last() else { return false };
        let is_whole = |bytes: usize| bytes.is_multiple_of(Line::BYTES);
        let is_number = *last == 1 && self.compute == self.dtype && matches!(self.dtype, DType::F32 | DType::F64);
        let steps_by_lines = || rest.iter().all(|step| is_whole(step.unsigned_abs() * self.dtype.size()));
        self.wanted && is_number && is_whole(self.data.addr()) && steps_by_lines()
    }

    /// The number of bytes of its elements in memory.
    pub fn bytes(&self, sizes: &[usize]) -> usize {
        let own = self.strides.iter().zip(sizes).filter(|(step, _)| **step != 0);
        if self.wanted { own.map(|(_, size)| size).product::<usize>() * self.dtype.size() } else { 0 }
    }

    /// How it is stored, if it is a half float.
    pub fn half(&self) -> Storage {
        match self.dtype {
            DType::F16 if self.wanted => Storage::Float16,
            DType::Bf16 if self.wanted => Storage::BFloat16,
            _ => Storage::Own,
        }
    }

    /// The axis along which it is contiguous, if that is not the last one.
    pub fn fastest(&self) -> Option<usize> {
        let (last, rest) = self.strides.split_last()?;
        rest.iter().position(|s| s.unsigned_abs() == 1).filter(|_| last.unsigned_abs() > 1)
    }

    /// The first element of a block.
    pub fn at(&self, block: &Block) -> *mut u8 {
        let offset: isize = self.strides.iter().zip(&block.start).map(|(stride, at)| stride * *at as isize).sum();
        self.data.wrapping_offset(offset * self.dtype.size() as isize)
    }

    /// The bytes between two rows of a block, if a buffer has rows of `n` elements.
    pub fn row_step(&self, n: usize) -> isize {
        match self.direct {
            true => self.strides[self.strides.len() - 2] * self.dtype.size() as isize,
            false => (n * self.compute.size()) as isize,
        }
    }

    /// Copies a block between memory and a buffer, with conversion of the dtype.
    ///
    /// # Safety
    /// The block is within the space. The slot has room for its elements in the compute dtype.
    pub unsafe fn transfer(&self, block: &Block, slot: *mut u8, pack: bool) {
        let (memory, rank) = (self.at(block), self.strides.len());
        let (steps, straight) = ([self.strides[rank - 2], self.strides[rank - 1]], [block.columns as isize, 1]);
        let sizes = [block.rows, block.columns];
        if self.dtype.is_integer() && self.compute != self.dtype {
            let (memory, slot) = ((self.dtype, memory), (self.compute, slot));
            // SAFETY: by contract.
            return unsafe {
                match pack {
                    true => copy_elements(&sizes, (memory.0, memory.1), &steps, slot, &straight),
                    false => copy_elements(&sizes, (slot.0, slot.1), &straight, memory, &steps),
                }
            };
        }
        // SAFETY: by contract.
        unsafe {
            match pack {
                true => plane(self.dtype, self.compute)(memory, steps, slot, straight, sizes),
                false => plane(self.compute, self.dtype)(slot, straight, memory, steps, sizes),
            }
        }
    }
}

/// Copies the elements of two axes: pointer and strides of the source, those of the destination, and the sizes.
type Plane = unsafe fn(*const u8, [isize; 2], *mut u8, [isize; 2], [usize; 2]);

/// The copy from one dtype to another. One is the dtype of memory, the other the compute dtype.
fn plane(from: DType, to: DType) -> Plane {
    macro_rules! pick {
        ($($pattern:pat => $from:ty, $to:ty;)*) => {
            match (from, to, from.size()) {
                // SAFETY: as for `copy_plane`, for elements of these dtypes or of their size.
                $($pattern => |from, from_steps, to, to_steps, sizes| unsafe {
                    copy_plane::<$from, $to>(from.cast(), from_steps, to.cast(), to_steps, sizes)
                },)*
            }
        };
    }
    use DType::*;
    pick! {
        (F16, F32, _) => f16, f32;
        (F32, F16, _) => f32, f16;
        (Bf16, F32, _) => bf16, f32;
        (F32, Bf16, _) => f32, bf16;
        // The same dtype: only its size matters.
        (_, _, 1) => u8, u8;
        (_, _, 2) => u16, u16;
        (_, _, 4) => u32, u32;
        (_, _, 8) => u64, u64;
        _ => Complex<f64>, Complex<f64>;
    }
}
