//! Kernels and programs of ops: compiled by `#[custom_op]`, or loaded with a plugin.

use minitensor_kernels::program::Program;

use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::OpDef;
#[cfg(feature = "engine")]
use crate::op::{CellArg, CellKernel, ElementKernel};
#[cfg(feature = "engine")]
use crate::plugin::{abi, host::Loaded};

/// Kernels by the dtypes of [`OpDef::generics`](super::OpDef). `f16` and `bf16` are already replaced by `f32`.
#[derive(Clone, Copy, Debug)]
pub enum Kernels<F> {
    /// Functions of a crate that is linked into the program.
    Compiled(fn(&[DType]) -> Option<F>),
    /// Functions of a plugin, which stays mapped.
    #[cfg(feature = "engine")]
    Loaded(Loaded),
}

/// One kernel.
#[derive(Clone, Copy)]
pub enum Kernel<F> {
    /// A function.
    Compiled(F),
    /// A plugin's function, with the data that is passed to it.
    #[cfg(feature = "engine")]
    Loaded(Loaded, &'static abi::Kernel),
}

/// The program of a body, for the attributes of the kernel.
#[derive(Clone, Copy, Debug)]
pub enum ProgramFn {
    /// Generates the program.
    Compiled(fn(&[Attr]) -> Result<Program>),
    /// Returns the program as JSON.
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
    /// Every pointer is to `n` contiguous elements of the dtypes for which the kernel was found.
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
