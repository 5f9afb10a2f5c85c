//! [`WithoutValues`]: the run of a body over tensors on [`Device::Meta`].
//!
//! A body may make tensors itself, such as `Tensor::from_vec(vec![0], [1])?`. They have values, but meet inputs that have none.

use std::cell::Cell;

use crate::scoped::Scoped;
use crate::tensor::Device;

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
}

/// While this guard lives, a call on this thread may mix tensors without values with others. Its results have no values.
#[must_use = "dropping the guard restores the previous rule"]
pub struct WithoutValues(#[allow(dead_code)] Scoped<bool>);

impl WithoutValues {
    /// Starts; dropping the guard ends it.
    pub fn new() -> WithoutValues {
        WithoutValues(Scoped::new(&ACTIVE, true))
    }
}

/// The device of a call with tensors on both; `None` if they must be on one device.
pub fn common(a: Device, b: Device) -> Option<Device> {
    let is_mixed = (a == Device::Meta || b == Device::Meta) && ACTIVE.get();
    if a == b { Some(a) } else { is_mixed.then_some(Device::Meta) }
}
