//! [`Tensor`] in a plugin: a handle of a tensor of the host.

#[path = "../tensor/device.rs"]
mod device;
#[path = "../tensor/shape.rs"]
mod shape;

use std::ptr::NonNull;

pub use device::{Device, DeviceKind};
pub use shape::{Shape, Strides, normalize_axis};

use super::host::{host, pointer};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, counted};
use crate::plugin::abi;
use crate::plugin::ffi::checked;

/// An n-dimensional array of the host. A clone is the same tensor, with the same memory, gradient and history.
pub struct Tensor {
    handle: NonNull<abi::Tensor>,
    shape: Shape,
    strides: Strides,
    dtype: DType,
    device: Device,
}

// SAFETY: the tensors of the host may be used and released on any thread. `&self` only reads the memory.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

impl Tensor {
    /// Takes ownership of a handle.
    ///
    /// # Safety
    /// The host transferred the handle to the caller.
    pub unsafe fn from_handle(handle: NonNull<abi::Tensor>) -> Result<Tensor> {
        // SAFETY: by the contract of this function. The pointers of the array are valid as long as the handle.
        unsafe {
            let array = (host()?.tensor_layout)(handle.as_ptr());
            let ndim = usize::try_from(array.ndim).unwrap_or(0);
            Ok(Tensor {
                handle,
                shape: abi::slice(array.shape, ndim, abi::most::DIMS, "shape")?.iter().map(|d| *d as usize).collect(),
                strides: abi::slice(array.strides, ndim, abi::most::DIMS, "strides")?
                    .iter()
                    .map(|s| *s as isize)
                    .collect(),
                dtype: abi::dtype(array.dtype)?,
                device: device_of(&array)?,
            })
        }
    }

    /// Retains a borrowed handle.
    ///
    /// # Safety
    /// The handle is null, or a valid handle of the host.
    pub unsafe fn from_lent(handle: *const abi::Tensor) -> Result<Option<Tensor>> {
        if handle.is_null() {
            return Ok(None);
        }
        // SAFETY: by the contract of this function.
        let held = unsafe { (host()?.tensor_retain)(handle) };
        let held = NonNull::new(held).ok_or_else(|| Error::runtime("the host returned a null pointer"))?;
        // SAFETY: the host just transferred this handle.
        unsafe { Tensor::from_handle(held) }.map(Some)
    }

    /// The handle, borrowed by the host.
    pub fn handle(&self) -> *mut abi::Tensor {
        self.handle.as_ptr()
    }

    /// The handle, transferred to the host.
    pub fn into_handle(self) -> *mut abi::Tensor {
        std::mem::ManuallyDrop::new(self).handle.as_ptr()
    }

    /// Creates a tensor of zeros.
    pub fn zeros(shape: impl Into<Shape>, dtype: DType, device: Device) -> Result<Tensor> {
        let sizes: Vec<i64> = shape.into().iter().map(|d| *d as i64).collect();
        let host = host()?;
        let (ndim, dtype) = (sizes.len() as i32, abi::number(dtype));
        let (device_type, index) = (device_type(device.kind())?, device.index() as i32);
        let zeros = |sink| {
            // SAFETY: the function of the host is called as the ABI requires.
            unsafe { (host.tensor_zeros)(dtype, ndim, sizes.as_ptr(), device_type, index, sink) }
        };
        // SAFETY: the host transfers the handle.
        unsafe { Tensor::from_handle(pointer(zeros)?) }
    }

    /// Creates a tensor whose elements are to be overwritten. They are initially zero.
    pub fn empty(shape: impl Into<Shape>, dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::zeros(shape, dtype, device)
    }

    /// Creates a tensor of these elements.
    pub fn from_vec<T: Scalar>(data: Vec<T>, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        if shape.checked_numel()? != data.len() {
            return Err(Error::value(format!(
                "cannot create a tensor of shape {shape} from {}",
                counted(data.len(), "element")
            )));
        }
        let tensor = Tensor::zeros(shape, T::DTYPE, Device::Cpu)?;
        // SAFETY: the tensor is new, contiguous and has `data.len()` elements of this type.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), tensor.data_ptr().cast::<T>(), data.len()) };
        Ok(tensor)
    }

    /// The elements in row-major order.
    pub fn to_vec<T: Scalar>(&self) -> Result<Vec<T>> {
        if self.dtype != T::DTYPE {
            return Err(Error::type_(format!("expected a tensor of dtype {}, got {}", T::DTYPE, self.dtype)));
        }
        self.device.expect_cpu()?;
        let data = self.data_ptr().cast::<T::Stored>();
        let mut at = vec![0usize; self.ndim()];
        let mut elements = Vec::with_capacity(self.numel());
        for _ in 0..self.numel() {
            let offset: isize = at.iter().zip(&self.strides).map(|(i, stride)| *i as isize * stride).sum();
            // SAFETY: the offset is within the shape, so within the memory of the tensor, which holds elements of this type.
            elements.push(T::load(unsafe { *data.offset(offset) }));
            for (i, size) in at.iter_mut().zip(self.shape.iter()).rev() {
                *i += 1;
                if *i < *size {
                    break;
                }
                *i = 0;
            }
        }
        Ok(elements)
    }

    /// The value of a tensor with one element.
    pub fn item<T: Scalar>(&self) -> Result<T> {
        if self.numel() != 1 {
            return Err(Error::value(format!("item() needs a tensor with one element, got shape {}", self.shape)));
        }
        Ok(self.to_vec::<T>()?[0])
    }

    /// The sizes of its dimensions.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The number of dimensions.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.shape.numel()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The device of its memory.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The address of the first element. Only on [`Device::Cpu`] may it be dereferenced.
    pub fn data_ptr(&self) -> *mut u8 {
        // SAFETY: this tensor holds the handle, so it is valid. The table of the host outlives the plugin.
        host().map_or(std::ptr::null_mut(), |host| unsafe { (host.tensor_array)(self.handle.as_ptr()) }.data.cast())
    }
}

/// The device of an array. The host numbers the kinds of devices, other than those that every host has.
fn device_of(array: &abi::Array) -> Result<Device> {
    let kind = match abi::known_kind(array.device_type) {
        Some(kind) => kind,
        // SAFETY: the function of the host is called as the ABI requires. A name lives for ever.
        None => unsafe { DeviceKind::named((host()?.device_name)(array.device_type).line(abi::most::NAME)?)? },
    };
    Ok(Device::new(kind, u32::try_from(array.device_id).unwrap_or(0)))
}

/// The number of a kind of device of the host.
fn device_type(kind: DeviceKind) -> Result<i32> {
    if let Some(number) = abi::known_type(kind) {
        return Ok(number);
    }
    let (host, mut number) = (host()?, -1);
    checked(|sink| {
        // SAFETY: the function of the host is called as the ABI requires.
        number = unsafe { (host.device_type)(abi::Str::of(kind.name()), sink) };
        if number < 0 { abi::code::VALUE as i32 } else { 0 }
    })?;
    Ok(number)
}

impl Clone for Tensor {
    fn clone(&self) -> Tensor {
        // SAFETY: this tensor holds the handle, so it is valid.
        let tensor = unsafe { Tensor::from_lent(self.handle.as_ptr()) };
        tensor.ok().flatten().expect("the host retains every valid handle")
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        if let Ok(host) = host() {
            // SAFETY: this tensor owns the handle, and does not use it after this drop.
            unsafe { (host.tensor_release)(self.handle.as_ptr()) }
        }
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "tensor(shape={}, dtype={})", self.shape, self.dtype)
    }
}
