//! DLPack's exchange API: the functions that a class of arrays offers to exchange its objects without calls of Python.
//!
//! Its structures are those of `dlpack.h`, version 1.3. [`OWN`] has the functions of our tensors.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use minitensor::graph::{READS_AN_ARRAY, refuse};
use minitensor::{Device, Error, Tensor};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::dlpack::{self, Array, DlDevice, VERSION, Version, Versioned};
use crate::error::{Exception, Result, catch_panics, panicked};
use crate::runtime::stream::{Stream, has_streams};
use crate::tensor::class::PyTensor;

/// The kind and the message of an error, for the caller of an allocator.
type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);
type Allocate = unsafe extern "C" fn(*const Array, *mut *mut Versioned, *mut c_void, SetError) -> c_int;

/// `DLPackExchangeAPI`
#[repr(C)]
pub struct ExchangeApi {
    version: Version,
    previous: *const ExchangeApi,
    allocate: Option<Allocate>,
    from_object: unsafe extern "C" fn(*mut ffi::PyObject, *mut *mut Versioned) -> c_int,
    to_object: unsafe extern "C" fn(*mut Versioned, *mut *mut ffi::PyObject) -> c_int,
    view_object: Option<unsafe extern "C" fn(*mut ffi::PyObject, *mut Array) -> c_int>,
    current_stream: Option<unsafe extern "C" fn(c_int, c_int, *mut *mut c_void) -> c_int>,
}

// SAFETY: the structure is never modified, and its pointers live as long as the process.
unsafe impl Sync for ExchangeApi {}
// SAFETY: as above.
unsafe impl Send for ExchangeApi {}

const NAME: &CStr = c"dlpack_exchange_api";

impl ExchangeApi {
    /// The functions of a class of arrays, if it offers them in a supported version.
    pub fn of(class: &Bound<'_, PyType>) -> Option<&'static ExchangeApi> {
        let capsule = class.getattr(pyo3::intern!(class.py(), "__dlpack_c_exchange_api__")).ok()?;
        // SAFETY: the name determines the type of the pointer. DLPack requires that the structure lives as long as the process.
        let mut api = unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), NAME.as_ptr()) == 0 {
                return None;
            }
            ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr()).cast::<ExchangeApi>().as_ref()?
        };
        while api.version.major != VERSION.major {
            // SAFETY: the header of every version has a pointer to an older one, or null.
            api = unsafe { api.previous.as_ref()? };
        }
        Some(api)
    }

    /// A tensor over the memory of an array.
    pub fn tensor(&self, object: &Bound<'_, PyAny>) -> Result<Tensor> {
        refuse(READS_AN_ARRAY);
        let mut managed = std::ptr::null_mut();
        // SAFETY: the function takes an object of its type, and fills in the pointer or sets an exception.
        let status = unsafe { (self.from_object)(object.as_ptr(), &raw mut managed) };
        if status != 0 || managed.is_null() {
            return Err(raised(object.py(), "the array cannot be exported by DLPack"));
        }
        // SAFETY: the pointer is new, and nothing else deletes it.
        unsafe { dlpack::adopt(managed) }
    }

    /// An array over the memory of a tensor.
    pub fn object<'py>(&self, py: Python<'py>, tensor: Tensor) -> Result<Bound<'py, PyAny>> {
        let managed = dlpack::lend(tensor)?;
        let mut object = std::ptr::null_mut();
        // SAFETY: the function takes over the array, and fills in the pointer or sets an exception.
        let status = unsafe { (self.to_object)(managed, &raw mut object) };
        if status != 0 || object.is_null() {
            return Err(raised(py, "the result cannot be imported by DLPack"));
        }
        // SAFETY: the object is new.
        Ok(unsafe { Bound::from_owned_ptr(py, object) })
    }

    /// The stream on which the library computes on a device. `None` if the device has no streams, or the library does not tell.
    pub fn stream(&self, py: Python<'_>, device: Device) -> Result<Option<Stream>> {
        let Some(current_stream) = self.current_stream.filter(|_| has_streams(device)) else { return Ok(None) };
        let (DlDevice { kind, index }, mut stream) = (DlDevice::cuda(device), std::ptr::null_mut());
        // SAFETY: the function fills in the pointer or sets an exception.
        match unsafe { current_stream(kind, index, &raw mut stream) } {
            0 => Ok(Some(Stream::new(device, stream.addr()))),
            _ => Err(raised(py, "the library has no current stream")),
        }
    }
}

/// The exception that a function of C has set.
#[cold]
fn raised(py: Python<'_>, otherwise: &'static str) -> Exception {
    PyErr::take(py).unwrap_or_else(|| PyBufferError::new_err(otherwise)).into()
}

/// The functions of our tensors.
pub static OWN: ExchangeApi = ExchangeApi {
    version: VERSION,
    previous: std::ptr::null(),
    allocate: Some(allocate),
    from_object: export,
    to_object: import,
    // DLPack's sizes and strides are those of a tensor if a pointer has 64 bits.
    view_object: if cfg!(target_pointer_width = "64") { Some(view) } else { None },
    current_stream: Some(current_stream),
};

/// Runs `f` for a caller in C, which holds the interpreter. An error or a panic becomes the current exception.
fn enter(f: impl for<'py> FnOnce(Python<'py>) -> Result<()>) -> c_int {
    // SAFETY: DLPack requires that the caller holds the interpreter.
    let py = unsafe { Python::assume_attached() };
    let error = match catch_unwind(AssertUnwindSafe(|| f(py))) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error,
        Err(panic) => panicked("the DLPack exchange", panic).into(),
    };
    error.0.restore(py);
    -1
}

/// The tensor of an object that another library may read.
fn exported<'a>(object: &'a Bound<'_, PyAny>) -> Result<&'a Tensor> {
    let tensor = object.cast::<PyTensor>().map_err(PyErr::from)?;
    dlpack::exportable(tensor.get())
}

/// `DLPackManagedTensorFromPyObjectNoSync`
unsafe extern "C" fn export(object: *mut ffi::PyObject, out: *mut *mut Versioned) -> c_int {
    enter(|py| {
        // SAFETY: the caller passes a live object, and a pointer to write to.
        unsafe {
            let object = Bound::from_borrowed_ptr(py, object);
            *out = dlpack::lend(exported(&object)?.detach())?;
        }
        Ok(())
    })
}

/// `DLPackManagedTensorToPyObjectNoSync`
unsafe extern "C" fn import(managed: *mut Versioned, out: *mut *mut ffi::PyObject) -> c_int {
    enter(|py| {
        // SAFETY: the caller gives away the array, and passes a pointer to write to.
        unsafe {
            let tensor = dlpack::adopt(managed)?;
            *out = Bound::new(py, PyTensor::from(tensor))?.into_any().into_ptr();
        }
        Ok(())
    })
}

/// `DLPackDLTensorFromPyObjectNoSync`: the sizes and strides are those of the tensor, which its object keeps.
unsafe extern "C" fn view(object: *mut ffi::PyObject, out: *mut Array) -> c_int {
    enter(|py| {
        // SAFETY: the caller passes a live object, and a structure to write to.
        unsafe {
            let object = Bound::from_borrowed_ptr(py, object);
            let tensor = exported(&object)?;
            if !tensor.storage().is_writable() {
                return Err(PyBufferError::new_err(
                    "the tensor's memory is read-only, which a DLTensor cannot express; clone() it first",
                )
                .into());
            }
            let sizes = tensor.shape().as_ptr().cast_mut().cast();
            out.write(Array::new(tensor, DlDevice::of(tensor)?, sizes, tensor.strides().as_ptr().cast_mut().cast()));
        }
        Ok(())
    })
}

/// `DLPackManagedTensorAllocator`: a new tensor with the dtype and shape of another. The interpreter may be detached.
unsafe extern "C" fn allocate(
    prototype: *const Array,
    out: *mut *mut Versioned,
    context: *mut c_void,
    set_error: SetError,
) -> c_int {
    // SAFETY: the caller passes a valid structure.
    let made = catch_panics("the DLPack exchange", || unsafe {
        let (dtype, shape, device) = (*prototype).prototype()?;
        dlpack::lend(Tensor::empty(shape, dtype, device)?)
    });
    // SAFETY: the caller passes a pointer to write to, and a function for errors.
    unsafe {
        match made {
            Ok(managed) => {
                *out = managed;
                0
            }
            Err(error) => {
                report(&error, |kind, message| set_error(context, kind, message));
                -1
            }
        }
    }
}

/// Calls a function with the name of the Python exception of an error, and with its message.
fn report(error: &Error, f: impl FnOnce(*const c_char, *const c_char)) {
    let kind = match error.kind() {
        minitensor::ErrorKind::Type => c"TypeError",
        minitensor::ErrorKind::Value => c"ValueError",
        minitensor::ErrorKind::Index => c"IndexError",
        minitensor::ErrorKind::Memory => c"MemoryError",
        minitensor::ErrorKind::Runtime => c"RuntimeError",
        minitensor::ErrorKind::NotImplemented => c"NotImplementedError",
    };
    let message = CString::new(error.message().replace('\0', " ")).unwrap_or_default();
    f(kind.as_ptr(), message.as_ptr());
}

/// `DLPackCurrentWorkStream`: a CPU has none.
unsafe extern "C" fn current_stream(kind: c_int, index: c_int, out: *mut *mut c_void) -> c_int {
    let stream = DlDevice { kind, index }.find().and_then(Stream::current);
    let number = stream.map_or(0, Stream::number);
    // SAFETY: the caller passes a pointer to write to.
    unsafe { out.write(std::ptr::without_provenance_mut(number)) };
    0
}

#[pymethods]
impl PyTensor {
    /// The functions that exchange tensors with other libraries: a capsule with a `DLPackExchangeAPI`.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Py<PyAny>> {
        let api = (&raw const OWN).cast_mut().cast::<c_void>();
        // SAFETY: the structure and the name are static.
        Ok(unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(api, NAME.as_ptr(), None))? }.unbind())
    }
}
