//! Computes ops on each kind of device. The [CPU](cpu) is built in. A [`Backend`] registers another kind: it allocates memory
//! and copies bytes. Its kernels are in the [kernel table](crate::op::KernelTable) of each op.

mod arrays;
pub(crate) mod composite;
pub(crate) mod cpu;
pub mod cuda;
mod decompose;
pub mod programs;
pub(crate) mod shapes;
mod wanted;
pub(crate) mod without_values;

pub(crate) use arrays::{SelectedKernel, infer as infer_arrays, run as run_arrays};
pub(crate) use decompose::run as decompose;
pub(crate) use shapes::CallShapes;

pub(crate) use crate::tensor::allocator::compiles_programs;
pub use crate::tensor::allocator::{Allocator, Backend, BackendEntry, register, synchronize, wait};
pub(crate) use wanted::Wanted;
