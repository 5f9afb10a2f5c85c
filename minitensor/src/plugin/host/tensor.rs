//! Handles of tensors that plugins hold.

use super::super::abi;
use crate::tensor::{Device, Tensor};

/// A tensor, with its shape and strides in the form of the ABI.
pub struct Held {
    pub tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// The array of a null handle.
pub const NO_ARRAY: abi::Array = abi::Array {
    data: std::ptr::null_mut(),
    device_type: 1,
    device_id: 0,
    ndim: 0,
    dtype: 0,
    shape: std::ptr::null(),
    strides: std::ptr::null(),
    byte_offset: 0,
};

impl Held {
    fn new(tensor: Tensor) -> Held {
        let shape = tensor.shape().iter().map(|d| *d as i64).collect();
        let strides = tensor.strides().iter().map(|s| *s as i64).collect();
        Held { tensor, shape, strides }
    }

    /// The array of the tensor. The receiver may read its elements.
    pub fn array(&self) -> abi::Array {
        let is_meta = self.tensor.device() == Device::Meta;
        let data = if is_meta { std::ptr::null_mut() } else { self.tensor.data_ptr().cast() };
        abi::Array { data, ..self.layout() }
    }

    /// The array without the address of the elements.
    pub fn layout(&self) -> abi::Array {
        let device = self.tensor.device();
        abi::Array {
            data: std::ptr::null_mut(),
            device_type: abi::device_type(device.kind()),
            device_id: device.index() as i32,
            ndim: self.shape.len() as i32,
            dtype: abi::number(self.tensor.dtype()),
            shape: self.shape.as_ptr(),
            strides: self.strides.as_ptr(),
            byte_offset: 0,
        }
    }
}

/// Creates a handle, which its receiver must release.
pub fn hand_out(tensor: Tensor) -> *mut abi::Tensor {
    Box::into_raw(Box::new(Held::new(tensor))).cast()
}

/// The tensor of a handle.
///
/// # Safety
/// The handle is null, or was created by `hand_out` and is not taken back for `'a`.
pub unsafe fn look<'a>(handle: *const abi::Tensor) -> Option<&'a Held> {
    // SAFETY: by the contract of this function.
    unsafe { handle.cast::<Held>().as_ref() }
}

/// Releases a handle and returns its tensor.
///
/// # Safety
/// The handle is null, or was created by `hand_out` and is not used afterwards.
pub unsafe fn take_back(handle: *mut abi::Tensor) -> Option<Tensor> {
    // SAFETY: by the contract of this function.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle.cast::<Held>()) }.tensor)
}

/// Handles that a plugin borrows during a call. Dropping this releases them.
pub struct Borrowed(Vec<*mut abi::Tensor>);

impl Borrowed {
    pub fn new<'a>(tensors: impl IntoIterator<Item = Option<&'a Tensor>>) -> Borrowed {
        Borrowed(tensors.into_iter().map(|t| t.map_or(std::ptr::null_mut(), |t| hand_out(t.clone()))).collect())
    }

    pub fn as_ptr(&self) -> *const *mut abi::Tensor {
        self.0.as_ptr()
    }

    /// The arrays of the tensors. `None` for absent ones.
    pub fn arrays(&self) -> Vec<Option<abi::Array>> {
        // SAFETY: the handles are valid until `self` is dropped.
        self.0.iter().map(|handle| unsafe { look(*handle) }.map(Held::array)).collect()
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // SAFETY: the call has ended. A plugin that keeps a tensor has retained it, which created another handle.
        self.0.drain(..).for_each(|handle| drop(unsafe { take_back(handle) }));
    }
}
