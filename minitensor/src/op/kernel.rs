//! Kernels compute an op on one kind of device. `#[custom_op]` generates some; plugins and other crates add more. All kernels of
//! an op are in one table, its [`KernelTable`].

#[cfg(feature = "engine")]
use std::sync::{Arc, OnceLock};

#[cfg(feature = "engine")]
use minitensor_kernels::program::RowPlan;
#[cfg(feature = "engine")]
use ndarray::ArrayView2;

#[cfg(feature = "engine")]
use super::element_program::ElementProgram;
#[cfg(feature = "engine")]
use super::row_kernel::RowKernel;
#[cfg(feature = "engine")]
use super::variants::Variants;
use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::Result;
#[cfg(feature = "engine")]
use crate::plugin::{abi, host::LoadedOp};
#[cfg(feature = "engine")]
use crate::tensor::{DeviceKind, Tensor};

/// Computes `n` elements on the CPU. Every pointer must be to `n` contiguous elements in the compute dtype.
pub type ElementKernel = unsafe fn(attrs: &[Attr], n: usize, inputs: &[*const u8], outputs: &[*mut u8]) -> Result<()>;

/// Computes `cells` cells on the CPU. `args` are the cores of the inputs, then of the outputs.
pub type CellKernel = unsafe fn(attrs: &[Attr], args: &[CellArg<'_>], cells: usize) -> Result<()>;

/// The cores of one argument.
#[derive(Clone, Copy, Debug)]
pub struct CellArg<'a> {
    /// The first element of the first core. Null for an absent optional input, and for an output that is not wanted.
    pub data: *mut u8,
    /// The distance to the next cell's core, in bytes.
    pub step: isize,
    /// Whether all cells together are [too large](minitensor_kernels::LARGE) for the cache.
    pub is_large: bool,
    /// The sizes of the core dimensions.
    pub shape: &'a [usize],
    /// The strides of the core dimensions, in elements.
    pub strides: &'a [isize],
}

/// Computes whole arrays, on any device. The outputs are allocated, and overlap no input. They are contiguous, except for
/// inputs that the op changes in place.
#[cfg(feature = "engine")]
pub type ArrayKernel = Arc<dyn Fn(&KernelCall<'_>) -> Result<()> + Send + Sync>;

/// The arguments of an [`ArrayKernel`].
#[cfg(feature = "engine")]
#[derive(Clone, Copy)]
pub struct KernelCall<'a> {
    /// The op.
    pub op: &'a super::OpDef,
    /// The inputs; `None` for an absent optional one.
    pub inputs: &'a [Option<&'a Tensor>],
    /// The outputs; `None` for one that is not wanted.
    pub outputs: &'a [Option<&'a Tensor>],
    /// The attributes.
    pub attrs: &'a [Attr],
    /// The queue on which the device runs the kernel. Null if it has none.
    pub stream: *mut std::ffi::c_void,
}

/// The kernels of one op on one kind of device. The dtypes are those of [`OpDef::generics`](super::OpDef). For kernels of the
/// CPU, `f16` and `bf16` are already replaced by `f32`.
#[derive(Clone)]
pub enum Kernels {
    /// Loops over elements.
    Elements(fn(&[DType]) -> Option<ElementKernel>),
    /// Loops over core cells.
    Cells(fn(&[DType]) -> Option<CellKernel>),
    /// Loops over core cells that also take neighbouring cells as the columns of a table. Then an argument has its first core
    /// dimension, if it has one, and a last dimension of cells.
    Columns(fn(&[DType]) -> Option<CellKernel>),
    /// A loop over core cells of half floats.
    #[cfg(feature = "engine")]
    HalfCells(HalfCells),
    /// A function that passes on the parts of its output instead of storing them.
    #[cfg(feature = "engine")]
    Parts(PartsKernel),
    /// Programs over elements.
    #[cfg(feature = "engine")]
    Programs(Arc<Variants<ElementProgram>>),
    /// Programs over rows.
    #[cfg(feature = "engine")]
    Rows(Arc<Variants<RowKernel>>),
    /// Functions of a plugin, which stays mapped.
    #[cfg(feature = "engine")]
    Loaded(LoadedOp),
    /// Functions over whole arrays, with the dtypes that each of them takes.
    #[cfg(feature = "engine")]
    Arrays(Vec<(Vec<DType>, ArrayKernel)>),
    /// Functions over whole arrays of half floats, whose outputs are `float32`.
    #[cfg(feature = "engine")]
    HalfArrays(Vec<(Vec<DType>, ArrayKernel)>),
}

#[cfg(feature = "engine")]
impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kernels")
    }
}

/// A loop over core cells whose inputs are half floats as they are in memory. Its outputs are `float32`.
#[cfg(feature = "engine")]
#[derive(Clone, Copy)]
pub struct HalfCells {
    /// The dtype of the inputs.
    pub dtype: DType,
    /// Whether it is fit for inputs of these shapes, at the current SIMD level. Others are converted to `float32` first.
    pub is_fit: fn(&[&[usize]]) -> bool,
    /// The loop.
    pub run: CellKernel,
}

/// Computes the only output of an op in parts, and calls the function with each. Several threads may call it at a time. Returns
/// false, without a call, if the inputs are not fit for it.
#[cfg(feature = "engine")]
pub type PartsKernel = fn(inputs: &[Option<&Tensor>], attrs: &[Attr], visit: VisitPart<'_>) -> Result<bool>;

/// A function of each part of an output.
#[cfg(feature = "engine")]
pub type VisitPart<'a> = &'a (dyn Fn(OutputPart) + Sync);

/// A part of an output: some rows and columns of it. A row is along the last axis. Rows are counted through all other axes.
#[cfg(feature = "engine")]
#[derive(Clone, Copy, Debug)]
pub struct OutputPart {
    /// The first row.
    pub row: usize,
    /// The first column.
    pub column: usize,
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// The first element. A row is contiguous. The memory is valid during the call.
    pub data: *const u8,
    /// The distance between two rows, in bytes.
    pub step: isize,
}

#[cfg(feature = "engine")]
impl OutputPart {
    /// The part that begins at a row and a column.
    pub fn of<T>([row, column]: [usize; 2], elements: ArrayView2<'_, T>) -> OutputPart {
        let (rows, columns) = elements.dim();
        let step = elements.strides()[0] * size_of::<T>() as isize;
        OutputPart { row, column, rows, columns, data: elements.as_ptr().cast(), step }
    }
}

/// The kernels of one op, by kind of device. Kernels are added, and never removed: a call finds them without a lock.
#[cfg(feature = "engine")]
#[derive(Clone, Debug, Default)]
pub struct KernelTable(OnceLock<Box<Entry>>);

#[cfg(feature = "engine")]
#[derive(Clone, Debug)]
struct Entry {
    kind: DeviceKind,
    kernels: Kernels,
    next: KernelTable,
}

#[cfg(feature = "engine")]
impl KernelTable {
    /// An empty table.
    pub const fn new() -> KernelTable {
        KernelTable(OnceLock::new())
    }

    /// A table of kernels for the CPU.
    pub fn cpu(kernels: Kernels) -> KernelTable {
        let table = KernelTable::new();
        table.add(DeviceKind::Cpu, kernels);
        table
    }

    /// Adds the kernels for a kind of device. Those that were added before take precedence.
    pub fn add(&self, kind: DeviceKind, kernels: Kernels) {
        let mut entry = Box::new(Entry { kind, kernels, next: KernelTable::new() });
        let mut table = self;
        // Another thread may append at the same time.
        while let Err(back) = table.0.set(entry) {
            entry = back;
            match table.0.get() {
                Some(last) => table = &last.next,
                None => return,
            }
        }
    }

    /// Whether there are no kernels.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }

    /// The kernels for a kind of device.
    #[inline]
    pub fn on(&self, kind: DeviceKind) -> impl Iterator<Item = &Kernels> {
        let entries = std::iter::successors(self.0.get(), |entry| entry.next.0.get());
        entries.filter(move |entry| entry.kind == kind).map(|entry| &entry.kernels)
    }
}

#[cfg(feature = "engine")]
impl Kernels {
    /// The loop over elements for these dtypes.
    #[inline]
    pub(crate) fn element(&self, dtypes: &[DType]) -> Option<Kernel<'_, ElementKernel>> {
        match self {
            Kernels::Elements(find) => find(dtypes).map(Kernel::Compiled),
            Kernels::Loaded(op) => op.find(dtypes).map(|kernel| Kernel::Loaded(*op, kernel)),
            _ => None,
        }
    }

    /// The function that passes on the parts of its output.
    pub(crate) fn parts(&self) -> Option<PartsKernel> {
        if let Kernels::Parts(kernel) = self { Some(*kernel) } else { None }
    }

    /// The loop over cells for these dtypes.
    pub(crate) fn cell(&self, dtypes: &[DType]) -> Option<Kernel<'static, CellKernel>> {
        match self {
            Kernels::Cells(find) | Kernels::Columns(find) => find(dtypes).map(Kernel::Compiled),
            Kernels::Loaded(op) => op.find(dtypes).map(|kernel| Kernel::Loaded(*op, kernel)),
            _ => None,
        }
    }

    /// Whether the loop over cells takes neighbouring cells together.
    pub(crate) fn takes_columns(&self) -> bool {
        match self {
            Kernels::Columns(_) => true,
            Kernels::Loaded(op) => op.takes_columns(),
            _ => false,
        }
    }

    /// The programs over elements.
    pub(crate) fn elements(&self) -> Option<&Variants<ElementProgram>> {
        if let Kernels::Programs(programs) = self { Some(programs) } else { None }
    }

    /// The programs over rows.
    pub(crate) fn rows(&self) -> Option<&Variants<RowKernel>> {
        if let Kernels::Rows(programs) = self { Some(programs) } else { None }
    }

    /// Whether there is a loop over cells for these dtypes.
    pub(crate) fn has_cell(&self, dtypes: &[DType]) -> bool {
        matches!(self, Kernels::Rows(_)) || self.cell(dtypes).is_some()
    }

    /// The function over whole arrays for these dtypes.
    pub(crate) fn array(&self, dtypes: &[DType]) -> Option<&ArrayKernel> {
        let Kernels::Arrays(kernels) = self else { return None };
        let takes = |of: &[DType]| of.is_empty() || of == dtypes;
        kernels.iter().find(|(of, _)| takes(of)).map(|(_, kernel)| kernel)
    }

    /// The function over whole arrays of these dtypes, half floats, whose outputs are `float32`.
    pub(crate) fn half_array(&self, dtypes: &[DType]) -> Option<&ArrayKernel> {
        let Kernels::HalfArrays(kernels) = self else { return None };
        kernels.iter().find(|(of, _)| of == dtypes).map(|(_, kernel)| kernel)
    }
}

/// The kernel of a loop.
#[cfg(feature = "engine")]
#[derive(Clone, Copy)]
pub enum Kernel<'a, F> {
    /// A function.
    Compiled(F),
    /// A plugin's function, with the data that is passed to it.
    Loaded(LoadedOp, &'static abi::Kernel),
    /// A program over rows, the dtype that it computes in, and its plan if some rows are stored as half floats.
    Rows(&'a RowKernel, DType, Option<&'a RowPlan>),
}

#[cfg(feature = "engine")]
impl Kernel<'_, ElementKernel> {
    /// Computes `n` elements.
    ///
    /// # Safety
    /// Every pointer is to `n` contiguous elements of the dtypes for which the kernel was found.
    #[inline]
    pub unsafe fn run(&self, attrs: &[Attr], n: usize, inputs: &[*const u8], outputs: &[*mut u8]) -> Result<()> {
        // SAFETY: by contract.
        unsafe {
            match self {
                Kernel::Compiled(run) => run(attrs, n, inputs, outputs),
                Kernel::Loaded(op, kernel) => op.run_elements(kernel, attrs, n, inputs, outputs),
                Kernel::Rows(..) => {
                    Err(crate::error::Error::runtime("a program over rows is not a loop over elements"))
                }
            }
        }
    }
}

#[cfg(feature = "engine")]
impl Kernel<'_, CellKernel> {
    /// Computes `cells` cells.
    ///
    /// # Safety
    /// Every argument has `cells` cores of the dtype, rank and layout for which the kernel was found.
    #[inline]
    pub unsafe fn run(&self, attrs: &[Attr], args: &[CellArg<'_>], cells: usize) -> Result<()> {
        // SAFETY: by contract.
        unsafe {
            match self {
                Kernel::Compiled(run) => run(attrs, args, cells),
                Kernel::Loaded(op, kernel) => op.run_cells(kernel, attrs, args, cells),
                Kernel::Rows(rows, dtype, stored) => rows.run(*dtype, attrs, args, cells, *stored),
            }
        }
    }
}

/// A plugin hands the kernels of its ops to the host, which has the table.
#[cfg(not(feature = "engine"))]
#[derive(Clone, Debug, Default)]
pub struct KernelTable(());

#[cfg(not(feature = "engine"))]
impl KernelTable {
    /// An empty table.
    pub const fn new() -> KernelTable {
        KernelTable(())
    }
}
