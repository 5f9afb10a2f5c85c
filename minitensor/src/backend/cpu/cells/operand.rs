//! [`CellOperand`]: an argument of all cells of a call.

use minitensor_kernels::program::{RowPlan, Storage};
use smallvec::SmallVec;

use crate::backend::shapes::CallShapes;
use crate::dtype::DType;
use crate::op::Core;
use crate::tensor::{Shape, Strides, Tensor, copy_elements};

/// The fewest elements of a row that is read where it is, side by side with others. Short rows are in the cache once they are packed.
const FEWEST_IN_PLACE: usize = 128;

/// An argument of all cells.
pub struct CellOperand {
    pub data: *mut u8,
    /// The dtype in memory. `compute` is the dtype of the kernel.
    pub dtype: DType,
    pub compute: DType,
    /// The strides of the batch dimensions; 0 where the argument broadcasts.
    pub batch: SmallVec<[isize; 6]>,
    /// The layout of the core in memory.
    pub core_shape: Shape,
    pub core_strides: Strides,
    /// The layout of the core for the kernel.
    pub sizes: Shape,
    pub strides: Strides,
    /// Whether cells are packed into a buffer.
    pub packed: bool,
    /// Whether it is an input that the op changes. The body may read the input while it writes the output, so the output is packed.
    pub is_changed: bool,
    /// Whether the buffer or memory has the first elements of all its cells, then the second ones.
    pub beside: bool,
    /// Whether the body reads it: inputs, and outputs that all cells share.
    pub is_read: bool,
    pub is_output: bool,
    /// The bytes between two partial sums.
    pub part: usize,
}

// SAFETY: cells of outputs are disjoint, inputs are only read.
unsafe impl Sync for CellOperand {}

impl CellOperand {
    pub fn new(
        shapes: &CallShapes,
        t: &Tensor,
        compute: DType,
        batched: bool,
        rank: usize,
        core: Core,
        is_output: bool,
    ) -> CellOperand {
        let has_axes = shapes.axes.as_ref().filter(|_| batched);
        let moved = match has_axes {
            Some(axes) if rank > 0 => Some((axes.layout(t), axes.width())),
            Some(axes) if is_output => Some((axes.output_layout(t), 0)),
            _ => None,
        };
        let (shape, strides, width): (&[usize], &[isize], usize) = match &moved {
            Some(((shape, strides), width)) => (shape, strides, *width),
            None => (t.shape(), t.strides(), rank),
        };
        let split = shape.len() - width;
        let mut batch: SmallVec<[isize; 6]> = SmallVec::from_elem(0, shapes.batch.len() - split);
        batch.extend((0..split).map(|d| if shape[d] == 1 { 0 } else { strides[d] }));
        let (core_shape, core_strides) = match has_axes {
            Some(_) => merged(&shape[split..], &strides[split..]),
            None => (Shape::from(&shape[split..]), Strides::from_slice(&strides[split..])),
        };
        // Several axes as one dimension, or memory of another dtype, needs a buffer.
        let converted = compute != t.dtype();
        let flattened = has_axes.is_some() && rank > 0 && core_shape.len() != 1;
        let packed = converted
            || match core {
                Core::Scalar => false,
                Core::Slice => !core_shape.is_contiguous(&core_strides),
                Core::View => flattened,
            };
        let sizes = if flattened { Shape::from([core_shape.numel()]) } else { core_shape.clone() };
        let strides = if packed || flattened { sizes.contiguous_strides() } else { Strides::from_slice(&core_strides) };
        CellOperand {
            data: t.data_ptr(),
            dtype: t.dtype(),
            compute,
            batch,
            core_shape,
            core_strides,
            sizes,
            strides,
            packed,
            is_changed: false,
            beside: false,
            is_read: !is_output || !batched,
            is_output,
            part: 0,
        }
    }

    /// The input as the `bool`s of Rust: a copy, since a `bool` must be 0 or 1, and other threads may write any byte to memory.
    /// Converting from `uint8` makes any other byte than 0 a 1.
    pub fn of_bools(self) -> CellOperand {
        CellOperand { dtype: DType::U8, ..self.computed_in(DType::Bool) }
    }

    /// The output as an input that the op changes. A buffer has the values of the input when the body runs, and is written to memory
    /// afterwards.
    pub fn of_changed(self) -> CellOperand {
        let compute = self.compute;
        CellOperand { is_read: true, is_changed: true, ..self.computed_in(compute) }
    }

    /// Whether its cells are rows, and the same elements of neighbouring rows are next to each other in memory.
    pub fn is_beside(&self) -> bool {
        self.packed && self.sizes.len() == 1 && self.sizes[0] > 1 && self.step() == 1
    }

    /// Whether several threads share one of its rows.
    pub fn is_for_threads(&self) -> bool {
        self.sizes.len() == 1 && self.sizes[0] >= RowPlan::FOR_THREADS
    }

    /// The number of elements of a core of one dimension.
    pub fn row(&self) -> usize {
        self.sizes.first().copied().unwrap_or(1)
    }

    /// How its elements are stored, if they are contiguous rows of half floats.
    pub fn half_row(&self) -> Storage {
        let is_row = self.sizes.len() == 1 && self.core_shape.is_contiguous(&self.core_strides) && !self.is_changed;
        match self.dtype {
            DType::F16 if is_row && self.core_shape.len() == 1 => Storage::Float16,
            DType::Bf16 if is_row && self.core_shape.len() == 1 => Storage::BFloat16,
            _ => Storage::Own,
        }
    }

    /// Puts rows side by side in a buffer, unless they may be read `in_place` and are so in memory.
    pub fn put_beside(&mut self, in_place: bool) {
        if self.sizes.len() != 1 {
            return;
        }
        let is_row = self.core_strides.len() == 1 && self.sizes[0] >= FEWEST_IN_PLACE && self.core_strides[0] != 1;
        let is_unchanged = self.dtype == self.compute && !self.is_changed;
        self.beside = true;
        self.packed = !(in_place && is_row && is_unchanged && self.step() == 1);
        if !self.packed {
            self.strides = Strides::from_slice(&self.core_strides);
        }
    }

    /// The operand in a buffer of another dtype.
    pub fn computed_in(self, compute: DType) -> CellOperand {
        let strides = self.sizes.contiguous_strides();
        CellOperand { compute, packed: true, strides, ..self }
    }

    /// The size of a core in the compute dtype.
    pub fn core_bytes(&self) -> usize {
        self.core_shape.numel() * self.compute.size()
    }

    /// The stride of the innermost batch dimension, in elements.
    pub fn step(&self) -> isize {
        self.batch.last().copied().unwrap_or(0)
    }

    /// Copies the cores of `count` neighbouring cells between memory and a contiguous buffer of the compute dtype.
    ///
    /// # Safety
    /// `memory` is the first element of the first core. `slot` has room for all elements in the compute dtype.
    pub unsafe fn transfer(&self, memory: *mut u8, slot: *mut u8, count: usize, pack: bool) {
        let (mut shape, mut strides): (SmallVec<[usize; 6]>, SmallVec<[isize; 6]>) =
            (self.core_shape.iter().copied().collect(), self.core_strides.iter().copied().collect());
        let at = if self.beside { shape.len() } else { 0 };
        shape.insert(at, count);
        strides.insert(at, self.step());
        let shape: Shape = shape.into_iter().collect();
        let straight = shape.contiguous_strides();
        // SAFETY: by contract.
        unsafe {
            match pack {
                true => copy_elements(&shape, (self.dtype, memory), &strides, (self.compute, slot), &straight),
                false => copy_elements(&shape, (self.compute, slot), &straight, (self.dtype, memory), &strides),
            }
        }
    }
}

/// The same elements with as few dimensions as possible: neighbouring ones that memory steps through alike become one.
fn merged(shape: &[usize], strides: &[isize]) -> (Shape, Strides) {
    let (mut sizes, mut steps): (SmallVec<[usize; 6]>, Strides) = (SmallVec::new(), Strides::new());
    for (size, stride) in shape.iter().zip(strides) {
        match (sizes.last_mut(), steps.last_mut()) {
            (Some(outer), Some(step)) if *step == stride * *size as isize => {
                *outer *= size;
                *step = *stride;
            }
            _ => {
                sizes.push(*size);
                steps.push(*stride);
            }
        }
    }
    (sizes.into_iter().collect(), steps)
}
