//! Where kernels and programs come from: compiled by `#[custom_op]`, or loaded with a plugin.

use minitensor_kernels::program::Program;

use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::OpDef;
#[cfg(feature = "engine")]
use crate::op::{CellArg, CellKernel, ElementKernel};
#[cfg(feature = "engine")]
use crate::plugin::{abi, host::Loaded};

/// Kernels by the dtypes of [`OpDef::generics`](super::OpDef), in which `f16` and `bf16` are already `f32`.
#[derive(Clone, Copy, Debug)]
pub enum Kernels<F> {
    /// Functions of this crate, or of one that it is linked with.
    Compiled(fn(&[DType]) -> Option<F>),
    /// Those of a plugin, which stays mapped.
    #[cfg(feature = "engine")]
    Loaded(Loaded),
}

/// One of them.
#[derive(Clone, Copy)]
pub enum Kernel<F> {
    /// A function.
    Compiled(F),
    /// A plugin's function, and what it is handed.
    #[cfg(feature = "engine")]
    Loaded(Loaded, &'static abi::Kernel),
}

/// A body as data, for attributes as the kernel gets them.
#[derive(Clone, Copy, Debug)]
pub enum ProgramFn {
    /// Writes the program.
    Compiled(fn(&[Attr]) -> Result<Program>),
    /// Gives it as JSON.
    #[cfg(feature = "engine")]
    Loaded(Loaded),
}

#[cfg(feature = "engine")]
impl<F> Kernels<F> {
    /// The kernel for these dtypes.
    #[inline]
    pub fn find(&self, dtypes: &[DType]) -> Option<Kernel<F>> {
        match self {
            Kernels::Compiled(find) => find(dtypes).map(Kernel::Compiled),
            Kernels::Loaded(op) => op.find(dtypes).map(|kernel| Kernel::Loaded(*op, kernel)),
        }
    }
}

#[cfg(feature = "engine")]
impl Kernel<ElementKernel> {
    /// Computes `n` elements.
    ///
    /// # Safety
    /// Every pointer is to `n` contiguous elements of the dtypes that it was found for.
    #[inline]
    pub unsafe fn run(&self, attrs: &[Attr], n: usize, inputs: &[*const u8], outputs: &[*mut u8]) -> Result<()> {
        // SAFETY: by contract.
        unsafe {
            match self {
                Kernel::Compiled(run) => run(attrs, n, inputs, outputs),
                Kernel::Loaded(op, kernel) => op.run_elements(kernel, attrs, n, inputs, outputs),
            }
        }
    }
}

#[cfg(feature = "engine")]
impl Kernel<CellKernel> {
    /// Computes so many cells.
    ///
    /// # Safety
    /// Every argument has so many cores of the dtype, rank and layout that the kernel was found for.
    #[inline]
    pub unsafe fn run(&self, attrs: &[Attr], args: &[CellArg<'_>], cells: usize) -> Result<()> {
        // SAFETY: by contract.
        unsafe {
            match self {
                Kernel::Compiled(run) => run(attrs, args, cells),
                Kernel::Loaded(op, kernel) => op.run_cells(kernel, attrs, args, cells),
            }
        }
    }
}

impl ProgramFn {
    /// The program of an op.
    pub fn call(&self, op: &OpDef, attrs: &[Attr]) -> Result<Program> {
        match self {
            ProgramFn::Compiled(write) => write(attrs).map(|program| program.with_names(&op.program_names())),
            #[cfg(feature = "engine")]
            ProgramFn::Loaded(loaded) => loaded.program(op, attrs),
        }
    }
}
