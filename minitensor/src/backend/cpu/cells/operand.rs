//! [`CellOperand`]: an argument of all cells of a call.

use minitensor_kernels::program::{RowPlan, Storage};
use smallvec::SmallVec;

use crate::backend::shapes::CallShapes;
use crate::dtype::DType;
use crate::op::Core;
use crate::tensor::{Shape, Strides, Tensor, copy_elements};

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
    pub sizes: SmallVec<[usize; 4]>,
    pub strides: SmallVec<[isize; 4]>,
    /// Whether cells are packed into a buffer.
    pub packed: bool,
    /// Whether it is an input that the op changes. The body may read the input while it writes the output, so the output is packed.
    pub is_changed: bool,
    /// Whether the buffer has the first elements of all its cells, then the second ones.
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
        let ((shape, strides), width) = match has_axes {
            Some(axes) if rank > 0 => (axes.layout(t), axes.width()),
            Some(axes) if is_output => (axes.output_layout(t), 0),
            _ => ((t.shape().clone(), t.strides().into()), rank),
        };
        let split = shape.len() - width;
        let mut batch: SmallVec<[isize; 6]> = SmallVec::from_elem(0, shapes.batch.len() - split);
        batch.extend((0..split).map(|d| if shape[d] == 1 { 0 } else { strides[d] }));
        let (core_shape, core_strides): (Shape, Strides) = (shape[split..].into(), strides[split..].into());
        // Several axes as one dimension, or memory of another dtype, needs a buffer.
        let converted = compute != t.dtype();
        let flattened = has_axes.is_some() && rank > 0 && width != 1;
        let packed = converted
            || match core {
                Core::Scalar => false,
                Core::Slice => !core_shape.is_contiguous(&core_strides),
                Core::View => flattened,
            };
        let sizes: SmallVec<[usize; 4]> =
            if flattened { [core_shape.numel()].into_iter().collect() } else { core_shape.iter().copied().collect() };
        let logical: Shape = sizes.iter().copied().collect();
        let strides = if packed || flattened { logical.contiguous_strides() } else { core_strides.clone() };
        CellOperand {
            data: t.data_ptr(),
            dtype: t.dtype(),
            compute,
            batch,
            core_shape,
            core_strides,
            sizes,
            strides: strides.iter().copied().collect(),
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

    /// Packs rows side by side.
    pub fn put_beside(&mut self) {
        if self.sizes.len() == 1 {
            (self.packed, self.beside) = (true, true);
        }
    }

    /// The operand in a buffer of another dtype.
    pub fn computed_in(self, compute: DType) -> CellOperand {
        let strides = self.sizes.iter().copied().collect::<Shape>().contiguous_strides();
        CellOperand { compute, packed: true, strides: strides.iter().copied().collect(), ..self }
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
