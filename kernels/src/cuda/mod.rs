//! CUDA C for programs.
//!
//! | step | file |
//! |---|---|
//! | A program becomes C expressions, one for each value: those of a machine form for floats, one for each instruction for integers | `lines.rs` |
//! | The expressions become a kernel over the elements of broadcast operands | `elements.rs` |
//! | or over rows, with reductions | `rows.rs` |
//! | Functions that kernels use: conversions, integers, reductions | `prelude.cu` |
//!
//! Sources are C, in which CUDA and a C compiler agree: `emulator.c` defines the names of CUDA, so that kernels also run on the CPU,
//! one thread after the other. Floats are computed by the operations of the machine form, which are correctly rounded, so elements have
//! the same bits as those of the CPU.

mod elements;
mod lines;
mod rows;

pub use elements::{ElementKernel, Inner, Operand};
pub use lines::Type;
pub use rows::{RowInput, RowKernel, RowOutput, RowShape};

/// The definitions that precede each kernel.
pub const PRELUDE: &str = include_str!("prelude.cu");

/// The definitions by which a C compiler compiles a kernel for the CPU.
pub const EMULATOR: &str = include_str!("emulator.c");

/// The name of each kernel.
pub const NAME: &str = "kernel";

/// The source of a kernel, and how it is launched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The source, without [`PRELUDE`].
    pub text: String,
    /// The threads of a block.
    pub threads: u32,
    /// Whether there are as many blocks for each row as the row has sections.
    pub is_split: bool,
}
