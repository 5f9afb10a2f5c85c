//! NumPy's arrays through its C interface: the fields of an array, and new arrays over the memory of tensors.
//!
//! The layout of the structures and the positions in the table of functions are the same in NumPy 1 and 2.

use std::ffi::{c_char, c_int, c_long, c_void};

use minitensor::graph::{READS_AN_ARRAY, refuse};
use minitensor::{DType, Device, Error, Tensor};
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyMemoryView;

use super::foreign::foreign;
use crate::error::Result;
use crate::tensor::class::PyTensor;

/// `PyArrayObject`, up to the fields that are used here.
#[repr(C)]
struct Fields {
    _head: ffi::PyObject,
    data: *mut u8,
    ndim: c_int,
    shape: *const isize,
    strides: *const isize,
    base: *mut ffi::PyObject,
    descr: *const Descr,
    flags: c_int,
}

/// `PyArray_Descr`, up to the fields that are used here.
#[repr(C)]
struct Descr {
    _head: ffi::PyObject,
    _class: *mut ffi::PyTypeObject,
    _kind: c_char,
    _letter: c_char,
    byteorder: c_char,
    _flags: c_char,
    type_num: c_int,
}

const ALIGNED: c_int = 0x0100;
const WRITEABLE: c_int = 0x0400;
/// Writing to such an array is deprecated; its buffer is read-only.
const WARN_ON_WRITE: c_int = 1 << 31;

/// The type numbers of NumPy. `long` has the size of `int` or of `long long`; new arrays get the later number of a dtype.
const TYPES: &[(c_int, DType)] = &[
    (0, DType::Bool),
    (1, DType::I8),
    (2, DType::U8),
    (3, DType::I16),
    (4, DType::U16),
    (5, DType::I32),
    (6, DType::U32),
    (9, DType::I64),
    (10, DType::U64),
    (7, if LONG_IS_64 { DType::I64 } else { DType::I32 }),
    (8, if LONG_IS_64 { DType::U64 } else { DType::U32 }),
    (11, DType::F32),
    (12, DType::F64),
    (14, DType::C64),
    (15, DType::C128),
    (23, DType::F16),
];
const LONG_IS_64: bool = size_of::<c_long>() == 8;

/// The dtype of a type number; `None` if it is not supported or not built into NumPy.
fn dtype(type_num: c_int) -> Option<DType> {
    TYPES.iter().find(|(number, _)| *number == type_num).map(|(_, dtype)| *dtype)
}

type New = unsafe extern "C" fn(
    *mut ffi::PyTypeObject,
    c_int,
    *const isize,
    c_int,
    *const isize,
    *mut c_void,
    c_int,
    c_int,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;
type SetBase = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> c_int;

/// The functions of NumPy's C interface that are used here.
pub struct Api {
    class: *mut ffi::PyTypeObject,
    new: New,
    set_base: SetBase,
}

// SAFETY: the pointers are those of a module that is never unloaded. They are used with the interpreter attached only.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

static API: PyOnceLock<Api> = PyOnceLock::new();

impl Api {
    /// The interface, if NumPy has been used in this process.
    #[inline]
    pub fn loaded(py: Python<'_>) -> Option<&'static Api> {
        API.get(py)
    }

    /// The interface. NumPy is imported if necessary.
    pub fn get(py: Python<'_>) -> Result<&'static Api> {
        match API.get(py) {
            Some(api) => Ok(api),
            None => API.get_or_try_init(py, || Api::load(py)),
        }
    }

    #[cold]
    fn load(py: Python<'_>) -> Result<Api> {
        let version: String = py.import("numpy")?.getattr("__version__")?.extract()?;
        let is_old = version.starts_with("1.");
        let module = if is_old { "numpy.core._multiarray_umath" } else { "numpy._core._multiarray_umath" };
        let capsule = py.import(module)?.getattr("_ARRAY_API")?;
        // SAFETY: the capsule of NumPy has no name. Its pointer is a table, whose entry 0 returns the version of the layout.
        unsafe {
            let table = ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null()).cast::<*mut c_void>();
            if table.is_null() {
                return Err(PyErr::fetch(py).into());
            }
            let layout = std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> u32>(*table)();
            if ![1, 2].contains(&(layout >> 24)) {
                return Err(PyImportError::new_err(format!(
                    "minitensor supports NumPy 1.26 and NumPy 2, got NumPy {version}; install one of these"
                ))
                .into());
            }
            Ok(Api {
                class: (*table.add(2)).cast(),
                new: std::mem::transmute::<*mut c_void, New>(*table.add(93)),
                set_base: std::mem::transmute::<*mut c_void, SetBase>(*table.add(282)),
            })
        }
    }

    /// True for an array that is not an instance of a subclass.
    #[inline]
    pub fn is_array(&self, object: &Bound<'_, PyAny>) -> bool {
        // SAFETY: a live object.
        unsafe { ffi::Py_TYPE(object.as_ptr()) == self.class }
    }

    /// A tensor over the memory of an array. `None` if tensors do not support its dtype or layout, or if it is not exactly an array.
    #[inline]
    pub fn tensor(&self, object: &Bound<'_, PyAny>) -> Result<Option<Tensor>> {
        if !self.is_array(object) {
            return Ok(None);
        }
        refuse(READS_AN_ARRAY);
        // SAFETY: the object is an array, whose layout is that of this version of NumPy.
        let (fields, descr) = unsafe {
            let fields = &*object.as_ptr().cast::<Fields>();
            (fields, &*fields.descr)
        };
        let native = if cfg!(target_endian = "little") { b'<' } else { b'>' };
        let is_native = [b'=', b'|', native].contains(&(descr.byteorder as u8));
        let Some(dtype) = dtype(descr.type_num).filter(|_| is_native && fields.flags & ALIGNED != 0) else {
            return Ok(None);
        };
        let size = dtype.size();
        // SAFETY: an array has as many sizes and strides as dimensions.
        let (shape, bytes) = unsafe { (list(fields.shape, fields.ndim), list(fields.strides, fields.ndim)) };
        if bytes.iter().any(|stride| !stride.unsigned_abs().is_multiple_of(size)) {
            return Ok(None);
        }
        let shape: minitensor::Shape = shape.iter().map(|n| *n as usize).collect();
        let strides: smallvec::SmallVec<[isize; 8]> = bytes.iter().map(|stride| stride / size as isize).collect();
        let is_writable = fields.flags & WRITEABLE != 0 && fields.flags & WARN_ON_WRITE == 0;
        if let Some(owner) = self.owner(object.py(), fields)?
            && let Some(tensor) = within(&owner, fields.data, &shape, &strides, dtype, is_writable)?
        {
            return Ok(Some(tensor));
        }
        let keep = Box::new(object.clone().unbind());
        // SAFETY: the array guarantees its memory, and the tensor keeps the array.
        unsafe { foreign(Device::Cpu, fields.data, shape, &strides, dtype, is_writable, keep) }.map(Some)
    }

    /// The tensor whose memory an array is a view of.
    fn owner<'py>(&self, py: Python<'py>, fields: &Fields) -> Result<Option<Bound<'py, PyTensor>>> {
        let mut base = fields.base;
        // SAFETY: the base of an array is null or a live object.
        unsafe {
            while !base.is_null() && ffi::Py_TYPE(base) == self.class {
                base = (*base.cast::<Fields>()).base;
            }
            if base.is_null() {
                return Ok(None);
            }
            let base = Bound::from_borrowed_ptr(py, base);
            let owner = if base.is_instance_of::<PyMemoryView>() { base.getattr("obj")? } else { base };
            Ok(owner.cast_into::<PyTensor>().ok())
        }
    }

    /// An array over the memory of a tensor with a dtype that NumPy has.
    #[inline]
    pub fn array<'py>(&self, tensor: Bound<'py, PyTensor>) -> Result<Bound<'py, PyAny>> {
        let py = tensor.py();
        let core = tensor.get().core()?;
        let size = core.dtype().size() as isize;
        let number = TYPES.iter().rev().find(|(_, dtype)| *dtype == core.dtype()).map(|(number, _)| *number);
        let number = number.ok_or_else(|| Error::type_(format!("NumPy does not support {}", core.dtype())))?;
        let shape: smallvec::SmallVec<[isize; 8]> = core.shape().iter().map(|n| *n as isize).collect();
        let strides: smallvec::SmallVec<[isize; 8]> = core.strides().iter().map(|stride| stride * size).collect();
        let flags = if core.storage().is_writable() { ALIGNED | WRITEABLE } else { ALIGNED };
        // NumPy allocates memory if the pointer is null, which it may be without elements.
        core.storage().set_exported();
        let data = if core.numel() == 0 { std::ptr::dangling_mut::<u64>().cast() } else { core.data_ptr() };
        // SAFETY: the lists have a number for each dimension, and the array keeps the tensor, which keeps the memory.
        unsafe {
            let array = (self.new)(
                self.class,
                shape.len() as c_int,
                shape.as_ptr(),
                number,
                strides.as_ptr(),
                data.cast(),
                0,
                flags,
                std::ptr::null_mut(),
            );
            let array = Bound::from_owned_ptr_or_err(py, array)?;
            if (self.set_base)(array.as_ptr(), tensor.into_ptr()) != 0 {
                return Err(PyErr::fetch(py).into());
            }
            Ok(array)
        }
    }
}

/// # Safety
/// The pointer has this number of elements, which live as long as the result.
unsafe fn list<'a>(numbers: *const isize, count: c_int) -> &'a [isize] {
    // SAFETY: the caller's contract.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(numbers, count as usize) } }
}

/// The window of a tensor's storage that an array shows; `None` if the array shows the memory in another way.
fn within(
    owner: &Bound<'_, PyTensor>,
    first: *const u8,
    shape: &minitensor::Shape,
    strides: &[isize],
    dtype: DType,
    is_writable: bool,
) -> Result<Option<Tensor>> {
    let tensor = owner.get().core()?;
    let start = first.addr().wrapping_sub(tensor.storage().data().addr());
    let is_same = tensor.dtype() == dtype && is_writable == tensor.storage().is_writable();
    if !is_same || !start.is_multiple_of(dtype.size()) || shape.numel() == 0 {
        return Ok(None);
    }
    let strides = strides.iter().copied().collect();
    // SAFETY: views of NumPy stay within the memory that they were made from, which is the tensor's.
    Ok(Some(unsafe {
        Tensor::from_parts(tensor.storage().clone(), shape.clone(), strides, start / dtype.size(), dtype)
    }))
}
