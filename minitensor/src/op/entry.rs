//! [`OpEntry`], [`CallsEntry`] and [`KernelEntry`]: the entries by which the registry finds definitions and kernels.

use super::def::{Location, OpDef};
use super::kernel::Kernels;

/// The entry that `#[custom_op]` submits to `inventory`.
pub struct OpEntry {
    /// The definition.
    pub op: &'static OpDef,
    /// Its loops, for the CPU.
    pub kernels: Option<Kernels>,
}
inventory::collect!(OpEntry);

/// The ops that a gradient formula, or a body over whole tensors, calls by name.
pub struct CallsEntry {
    /// What calls them, such as `the gradient of op 'swish'`.
    pub caller: &'static str,
    /// Where it is defined.
    pub location: Location,
    /// The calls.
    pub calls: &'static [Called],
}

/// A call of an op by name, without the values of its arguments.
pub struct Called {
    /// The name of the op.
    pub op: &'static str,
    /// The number of positional arguments.
    pub positional: usize,
    /// The names of the other arguments.
    pub keywords: &'static [&'static str],
    /// The number of outputs that the caller takes. `None` if it takes any number.
    pub outputs: Option<usize>,
}
inventory::collect!(CallsEntry);

/// The entry by which a crate adds kernels to an op of any crate.
pub struct KernelEntry {
    /// The name of the op.
    pub op: &'static str,
    /// The name of the kind of device.
    pub device: &'static str,
    /// Makes the kernels.
    pub kernels: fn() -> Kernels,
}
inventory::collect!(KernelEntry);
