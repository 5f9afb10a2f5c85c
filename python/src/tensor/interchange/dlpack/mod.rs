//! DLPack, in both directions, without copies: versioned (1.x) and legacy capsules.

mod abi;
mod device;
mod stream;

use std::ptr;

use minitensor::graph::{READS_AN_ARRAY, refuse};
use minitensor::{Device, Error, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub use self::abi::{Array, VERSION, Version, Versioned};
use self::abi::{IS_COPIED, Legacy, Managed, READ_ONLY};
pub use self::device::DlDevice;
use self::stream::Work;
use super::exchange::ExchangeApi;
use super::foreign::foreign;
use crate::error::Result;
use crate::runtime::stream::Stream;
use crate::tensor::class::PyTensor;

/// The data that an exported array points to.
struct Exported {
    shape: Vec<i64>,
    strides: Vec<i64>,
    _tensor: Tensor,
    /// Our stream when the array was exported. Memory of a device is freed in the order of this stream: the consumer computes
    /// there, or waits for it.
    stream: Option<Stream>,
}

unsafe extern "C" fn delete<M: Managed>(managed: *mut M) {
    // SAFETY: made by `export` from two boxes; DLPack calls the deleter once.
    unsafe {
        let exported = Box::from_raw((*managed).context().cast::<Exported>());
        let _entered = exported.stream.map(Stream::enter);
        drop(exported);
        drop(Box::from_raw(managed));
    }
}

/// Releases the array of a capsule that no consumer took.
unsafe extern "C" fn drop_capsule<M: Managed>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes the capsule that is being freed; a consumer renames it when it takes the array.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) != 0 {
            let managed = ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast::<M>();
            if let Some(deleter) = (*managed).deleter() {
                deleter(managed);
            }
        }
    }
}

/// A managed array over the tensor's memory. Its consumer calls the deleter.
fn managed<M: Managed>(tensor: Tensor, flags: u64) -> minitensor::Result<*mut M> {
    let device = DlDevice::of(&tensor)?;
    let mut exported = Box::new(Exported {
        shape: tensor.shape().iter().map(|d| *d as i64).collect(),
        strides: tensor.strides().iter().map(|s| *s as i64).collect(),
        stream: Stream::current(tensor.device()),
        _tensor: tensor.clone(),
    });
    let array = Array::new(&tensor, device, exported.shape.as_mut_ptr(), exported.strides.as_mut_ptr());
    Ok(Box::into_raw(Box::new(M::wrap(array, Box::into_raw(exported).cast(), flags, delete::<M>))))
}

fn export<'py, M: Managed>(py: Python<'py>, tensor: Tensor, flags: u64) -> Result<Bound<'py, PyAny>> {
    let managed = managed::<M>(tensor, flags)?;
    // SAFETY: the pointer is new, the name is static, and the destructor is for this type.
    unsafe {
        let capsule = ffi::PyCapsule_New(managed.cast(), M::NAME.as_ptr(), Some(drop_capsule::<M>));
        if capsule.is_null() {
            delete(managed);
        }
        Ok(Bound::from_owned_ptr_or_err(py, capsule)?)
    }
}

/// Calls the producer's deleter when the tensor's memory is released.
struct Owner<M: Managed>(*mut M);

// SAFETY: DLPack requires that deleters may be called from any thread.
unsafe impl<M: Managed> Send for Owner<M> {}
// SAFETY: the pointer is only used when the owner is dropped.
unsafe impl<M: Managed> Sync for Owner<M> {}

impl<M: Managed> Drop for Owner<M> {
    fn drop(&mut self) {
        // Deleters of producers written in C may access Python objects. After the interpreter has ended, the memory is
        // freed with the process.
        Python::try_attach(|_| {
            // SAFETY: the array was taken from the capsule, so no other code deletes it. This thread holds the GIL. A deleter in Python
            // must not see an exception that is being raised.
            unsafe {
                if let Some(deleter) = (*self.0).deleter() {
                    let (mut kind, mut value, mut traceback) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
                    ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut traceback);
                    deleter(self.0);
                    ffi::PyErr_Restore(kind, value, traceback);
                }
            }
        });
    }
}

/// The tensor of a managed array that the caller owns.
///
/// # Safety
/// The pointer is valid, and nothing else deletes the array.
pub unsafe fn adopt(managed: *mut Versioned) -> Result<Tensor> {
    tensor_of(Owner(managed), Order::Shared, false)
}

/// A managed array over the tensor's memory, for a consumer that takes it over.
pub fn lend(tensor: Tensor) -> minitensor::Result<*mut Versioned> {
    let flags = if tensor.storage().is_writable() { 0 } else { READ_ONLY };
    managed(tensor, flags)
}

/// In which order two libraries compute on shared memory of a device.
#[derive(Clone, Copy)]
pub enum Order {
    /// Both compute on our current stream.
    Shared,
    /// Only our work is on our stream. It ends before the memory is released.
    Separate,
}

fn take<M: Managed>(capsule: &Bound<'_, PyAny>, order: Order, writable: bool) -> Result<Option<Tensor>> {
    // SAFETY: the name determines the type of the pointer; renaming the capsule takes the array, as DLPack specifies.
    let owner = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), M::NAME.as_ptr()) == 0 {
            return Ok(None);
        }
        let managed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), M::NAME.as_ptr()).cast::<M>();
        ffi::PyCapsule_SetName(capsule.as_ptr(), M::USED.as_ptr());
        Owner(managed)
    };
    tensor_of(owner, order, writable).map(Some)
}

/// The tensor over the memory of a managed array. `writable` is for an array that does not say whether its memory may be changed.
fn tensor_of<M: Managed>(owner: Owner<M>, order: Order, writable: bool) -> Result<Tensor> {
    // SAFETY: the owner keeps the array alive. If the major version differs, only the deleter is accessed.
    let managed = unsafe { &*owner.0 };
    if let Some(Version { major, minor }) = managed.version()
        && major != VERSION.major
    {
        return Err(PyBufferError::new_err(format!(
            "the array uses DLPack {major}.{minor}, but minitensor supports DLPack {}; update the older of the two \
             libraries",
            VERSION.major
        ))
        .into());
    }
    let (array, writable) = (managed.array(), managed.writable().unwrap_or(writable));
    let device = array.device.find().ok_or_else(|| array.device.missing())?;
    let dtype = array.dtype.read()?;
    let (shape, strides) = array.layout()?;
    let offset = usize::try_from(array.byte_offset).ok();
    let first = offset.and_then(|offset| array.data.addr().checked_add(offset)).ok_or_else(|| {
        Error::value(format!("from_dlpack: byte_offset {} exceeds the address space", array.byte_offset))
    })?;
    let first = array.data.cast::<u8>().with_addr(first);
    let work = match order {
        Order::Shared => None,
        Order::Separate => Work::on(device),
    };
    // The work is dropped before the owner.
    let keep = Box::new((work, owner));
    // SAFETY: the producer guarantees its memory on the device until the deleter is called, which the owner does.
    unsafe { foreign(device, first, shape, &strides, dtype, writable, keep) }
}

/// The tensor of an object for another library, or the reason why it cannot be exported.
pub fn exportable(tensor: &PyTensor) -> Result<&Tensor> {
    let tensor = tensor.core()?;
    DlDevice::of(tensor)?;
    if tensor.requires_grad() {
        return Err(PyBufferError::new_err("DLPack does not support gradients; detach() the tensor first").into());
    }
    Ok(tensor)
}

/// A tensor over the memory of an object with `__dlpack__`. The exchange API is faster, but its functions do not check what a
/// description of memory cannot express: PyTorch's export tensors that require a gradient, and lazy conjugates.
pub fn import(object: &Bound<'_, PyAny>, copy: Option<bool>) -> Result<Tensor> {
    let py = object.py();
    if let Ok(tensor) = object.cast::<PyTensor>() {
        let tensor = exportable(tensor.get())?;
        return Ok(if copy == Some(true) { tensor.copied()? } else { tensor.detach() });
    }
    if !object.hasattr("__dlpack__")? {
        return Err(PyTypeError::new_err(format!(
            "from_dlpack takes an object with __dlpack__, got {}",
            object.get_type().fully_qualified_name()?
        ))
        .into());
    }
    let stream = DlDevice::reported(object).and_then(DlDevice::find).and_then(Stream::current);
    let keywords = PyDict::new(py);
    if let Some(stream) = stream {
        keywords.set_item("stream", stream::number(stream))?;
    }
    keywords.set_item("max_version", (VERSION.major, VERSION.minor))?;
    if let Some(copy) = copy {
        keywords.set_item("copy", copy)?;
    }
    let capsule = match object.call_method("__dlpack__", (), Some(&keywords)) {
        // Producers older than DLPack 1.0 don't accept the argument.
        Err(e) if e.is_instance_of::<PyTypeError>(py) && copy.is_none() => {
            keywords.del_item("max_version")?;
            object.call_method("__dlpack__", (), Some(&keywords))?
        }
        other => other?,
    };
    let theirs = stream.and_then(|ours| ExchangeApi::of(&object.get_type())?.stream(py, ours.device()).ok()?);
    // As in NumPy. JAX, whose arrays never change, offers only legacy capsules.
    consume(&capsule, if theirs == stream { Order::Shared } else { Order::Separate }, false)
}

/// A tensor over the memory of a capsule. `writable` is for a legacy capsule, which does not say whether its memory may be changed.
pub fn consume(capsule: &Bound<'_, PyAny>, order: Order, writable: bool) -> Result<Tensor> {
    refuse(READS_AN_ARRAY);
    let taken = match take::<Versioned>(capsule, order, writable)? {
        Some(tensor) => Some(tensor),
        None => take::<Legacy>(capsule, order, writable)?,
    };
    Ok(taken.ok_or_else(|| Error::type_("__dlpack__() must return a DLPack capsule that has not been consumed"))?)
}

/// Returns a tensor over the memory of another library's array, without a copy unless `copy` is true.
#[pyfunction]
#[pyo3(signature = (x, /, *, copy=None))]
fn from_dlpack(x: &Bound<'_, PyAny>, copy: Option<bool>) -> Result<PyTensor> {
    Ok(import(x, copy)?.into())
}

#[pymethods]
impl PyTensor {
    /// Returns a DLPack capsule over the tensor's memory. `stream` is that of a consumer on a CUDA device, as the Python array API
    /// standard specifies it. With `dl_device=(1, 0)`, the capsule of a tensor on another device has a copy on the CPU.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        let tensor = exportable(self)?;
        let own = DlDevice::of(tensor)?;
        let target = dl_device.map_or(own, |(kind, index)| DlDevice { kind, index });
        let writable = tensor.storage().is_writable();
        let (shown, flags) = match copy {
            Some(true) if target == own => (tensor.copied()?, IS_COPIED),
            _ if target == own => (tensor.detach(), if writable { 0 } else { READ_ONLY }),
            None | Some(true) if target == DlDevice::CPU => (tensor.to_device(Device::Cpu)?, IS_COPIED),
            _ => {
                let (device, DlDevice { kind, index }) = (tensor.device(), own);
                return Err(PyBufferError::new_err(format!(
                    "a tensor on device '{device}' can only be exported there; pass dl_device=({kind}, {index}) or None"
                ))
                .into());
            }
        };
        stream::hand_over(py, shown.device(), stream)?;
        match max_version {
            Some((1.., _)) => export::<Versioned>(py, shown, flags),
            _ if flags & READ_ONLY == 0 => export::<Legacy>(py, shown, flags),
            _ if copy == Some(false) => Err(PyBufferError::new_err(
                "the tensor's memory is read-only, which DLPack before 1.0 does not support; clone() it first, or pass copy=None",
            )
            .into()),
            _ => export::<Legacy>(py, shown.copied()?, IS_COPIED),
        }
    }

    /// Returns the type and the index of the tensor's device in DLPack: `(1, 0)` for the CPU, `(2, index)` for a CUDA device.
    fn __dlpack_device__(&self) -> Result<(i32, i32)> {
        let DlDevice { kind, index } = DlDevice::of(self.core()?)?;
        Ok((kind, index))
    }
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(from_dlpack, m)?)?;
    Ok(())
}
