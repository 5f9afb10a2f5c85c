//! DLPack, in both directions, without copies: versioned (1.x) and legacy capsules.

use std::ffi::{CStr, c_void};

use minitensor::dtype::Kind;
use minitensor::graph::{READS_AN_ARRAY, refuse};
use minitensor::{DType, Error, Shape, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::foreign::foreign;
use crate::error::Result;
use crate::tensor::class::PyTensor;

const CPU: i32 = 1;
const CUDA_HOST: i32 = 3;
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;
/// The version that is exported. Versions with the same major number can be imported.
pub const VERSION: Version = Version { major: 1, minor: 3 };

/// `DLPackVersion`
#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

#[repr(C)]
struct Element {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`
#[repr(C)]
pub struct Array {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    dtype: Element,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`
#[repr(C)]
struct Legacy {
    array: Array,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Legacy)>,
}

/// `DLManagedTensorVersioned`
#[repr(C)]
pub struct Versioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    array: Array,
}

/// The two kinds of capsule. They differ in their names and in how they are released.
trait Managed: Sized + 'static {
    const NAME: &'static CStr;
    const USED: &'static CStr;
    /// The version of DLPack; `None` for legacy capsules, which don't contain it.
    fn version(&self) -> Option<Version>;
    fn array(&self) -> &Array;
    fn writable(&self) -> bool;
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
    fn wrap(array: Array, context: *mut c_void, flags: u64) -> Self;
    fn context(&self) -> *mut c_void;
}

macro_rules! managed {
    ($t:ident, $name:literal, $used:literal, |$m:ident| $version:expr, $writable:expr, |$array:ident, $context:ident, $flags:ident| $new:expr) => {
        impl Managed for $t {
            const NAME: &'static CStr = $name;
            const USED: &'static CStr = $used;
            fn version(&self) -> Option<Version> {
                let $m = self;
                $version
            }
            fn array(&self) -> &Array {
                &self.array
            }
            fn writable(&self) -> bool {
                let $m = self;
                $writable
            }
            fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
                self.deleter
            }
            fn wrap($array: Array, $context: *mut c_void, $flags: u64) -> Self {
                $new
            }
            fn context(&self) -> *mut c_void {
                self.context
            }
        }
    };
}

managed!(Legacy, c"dltensor", c"used_dltensor", |_m| None, true, |array, context, flags| {
    let _ = flags;
    Legacy { array, context, deleter: Some(delete::<Legacy>) }
});
managed!(
    Versioned,
    c"dltensor_versioned",
    c"used_dltensor_versioned",
    |m| Some(m.version),
    m.flags & READ_ONLY == 0,
    |array, context, flags| {
        Versioned { version: VERSION, context, deleter: Some(delete::<Versioned>), flags, array }
    }
);

/// The data that an exported array points to.
struct Exported {
    shape: Vec<i64>,
    strides: Vec<i64>,
    _tensor: Tensor,
}

unsafe extern "C" fn delete<M: Managed>(managed: *mut M) {
    // SAFETY: made by `export` from two boxes; DLPack calls the deleter once.
    unsafe {
        drop(Box::from_raw((*managed).context().cast::<Exported>()));
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
fn managed<M: Managed>(tensor: Tensor, flags: u64) -> *mut M {
    let mut exported = Box::new(Exported {
        shape: tensor.shape().iter().map(|d| *d as i64).collect(),
        strides: tensor.strides().iter().map(|s| *s as i64).collect(),
        _tensor: tensor.clone(),
    });
    let array = Array::new(&tensor, exported.shape.as_mut_ptr(), exported.strides.as_mut_ptr());
    Box::into_raw(Box::new(M::wrap(array, Box::into_raw(exported).cast(), flags)))
}

fn export<'py, M: Managed>(py: Python<'py>, tensor: Tensor, flags: u64) -> Result<Bound<'py, PyAny>> {
    let managed = managed::<M>(tensor, flags);
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
            // SAFETY: the array was taken from the capsule, so no other code deletes it.
            unsafe {
                if let Some(deleter) = (*self.0).deleter() {
                    deleter(self.0);
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
    tensor_of(Owner(managed))
}

/// A managed array over the tensor's memory, for a consumer that takes it over.
pub fn lend(tensor: Tensor) -> *mut Versioned {
    let flags = if tensor.storage().is_writable() { 0 } else { READ_ONLY };
    managed(tensor, flags)
}

fn take<M: Managed>(capsule: &Bound<'_, PyAny>) -> Result<Option<Tensor>> {
    // SAFETY: the name determines the type of the pointer; renaming the capsule takes the array, as DLPack specifies.
    let owner = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), M::NAME.as_ptr()) == 0 {
            return Ok(None);
        }
        let managed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), M::NAME.as_ptr()).cast::<M>();
        ffi::PyCapsule_SetName(capsule.as_ptr(), M::USED.as_ptr());
        Owner(managed)
    };
    tensor_of(owner).map(Some)
}

/// The tensor over the memory of a managed array.
fn tensor_of<M: Managed>(owner: Owner<M>) -> Result<Tensor> {
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
    let (array, writable) = (managed.array(), managed.writable());
    if array.device_type != CPU && array.device_type != CUDA_HOST {
        return Err(PyBufferError::new_err(format!(
            "the array is on a device of DLPack type {}, but this build of minitensor supports the CPU only; copy it there first",
            array.device_type
        ))
        .into());
    }
    let dtype = array.dtype.read()?;
    let (shape, strides) = array.layout()?;
    let offset = usize::try_from(array.byte_offset).ok();
    let first = offset.and_then(|offset| array.data.addr().checked_add(offset)).ok_or_else(|| {
        Error::value(format!("from_dlpack: byte_offset {} exceeds the address space", array.byte_offset))
    })?;
    let first = array.data.cast::<u8>().with_addr(first);
    // SAFETY: the producer guarantees its memory until the deleter is called, which the owner does.
    unsafe { foreign(first, shape, &strides, dtype, writable, Box::new(owner)) }
}

impl Element {
    fn read(&self) -> minitensor::Result<DType> {
        let kind = match self.code {
            0 => Some(Kind::Signed),
            1 => Some(Kind::Unsigned),
            2 | 4 => Some(Kind::Float),
            5 => Some(Kind::Complex),
            6 => Some(Kind::Bool),
            _ => None,
        };
        let fits = |d: &DType| {
            Some(d.kind()) == kind
                && d.size() * 8 == usize::from(self.bits)
                && (*d == DType::Bf16) == (self.code == 4)
                && self.lanes == 1
        };
        DType::ALL.iter().copied().find(fits).ok_or_else(|| {
            Error::type_(format!(
                "from_dlpack: unknown dtype of type code {}, {} bits, {} lanes; convert the array first",
                self.code, self.bits, self.lanes
            ))
        })
    }
}

impl Array {
    /// A description of a tensor on the CPU. The pointers are to its sizes and strides.
    pub fn new(tensor: &Tensor, shape: *mut i64, strides: *mut i64) -> Array {
        tensor.storage().set_exported();
        let code = match (tensor.dtype(), tensor.dtype().kind()) {
            (DType::Bf16, _) => 4,
            (_, Kind::Signed) => 0,
            (_, Kind::Unsigned) => 1,
            (_, Kind::Float) => 2,
            (_, Kind::Complex) => 5,
            (_, Kind::Bool) => 6,
        };
        Array {
            data: tensor.data_ptr().cast(),
            device_type: CPU,
            device_id: 0,
            ndim: tensor.ndim() as i32,
            dtype: Element { code, bits: (tensor.dtype().size() * 8) as u8, lanes: 1 },
            shape,
            strides,
            byte_offset: 0,
        }
    }

    /// The dtype and the shape of a prototype for an array on the CPU.
    pub fn cpu_prototype(&self) -> minitensor::Result<(DType, Shape)> {
        if self.device_type != CPU {
            return Err(Error::value(format!(
                "the allocator of minitensor makes arrays on the CPU, got the DLPack device type {}",
                self.device_type
            )));
        }
        Ok((self.dtype.read()?, self.sizes()?))
    }

    /// The shape.
    fn sizes(&self) -> minitensor::Result<Shape> {
        let rank = usize::try_from(self.ndim)
            .map_err(|_| Error::value(format!("from_dlpack: expected ndim of at least 0, got {}", self.ndim)))?;
        Shape::check_rank(rank)?;
        if rank > 0 && self.shape.is_null() {
            return Err(Error::value(format!("from_dlpack: the shape of {rank} dimensions is a null pointer")));
        }
        let sizes = self.list(self.shape);
        let mut shape = Shape::default();
        for size in sizes {
            shape.push(
                usize::try_from(*size)
                    .map_err(|_| Error::value(format!("from_dlpack: expected sizes of at least 0, got {sizes:?}")))?,
            );
        }
        shape.checked_numel()?;
        Ok(shape)
    }

    /// The shape, and the strides in elements.
    fn layout(&self) -> Result<(Shape, Vec<isize>)> {
        let shape = self.sizes()?;
        let strides = match self.strides.is_null() {
            true => shape.contiguous_strides().to_vec(),
            false => self.list(self.strides).iter().map(|s| *s as isize).collect(),
        };
        Ok((shape, strides))
    }

    /// The sizes or the strides, one for each dimension.
    fn list(&self, numbers: *const i64) -> &[i64] {
        // SAFETY: DLPack's shape and strides have `ndim` numbers each.
        if self.ndim <= 0 { &[] } else { unsafe { std::slice::from_raw_parts(numbers, self.ndim as usize) } }
    }
}

/// The tensor of an object for another library, or the reason why it cannot be exported.
pub fn exportable(tensor: &PyTensor) -> Result<&Tensor> {
    let tensor = tensor.core()?;
    tensor.expect_cpu()?;
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
    let keywords = PyDict::new(py);
    keywords.set_item("max_version", (VERSION.major, VERSION.minor))?;
    if let Some(copy) = copy {
        keywords.set_item("copy", copy)?;
    }
    let capsule = match object.call_method("__dlpack__", (), Some(&keywords)) {
        // Producers older than DLPack 1.0 don't accept the argument.
        Err(e) if e.is_instance_of::<PyTypeError>(py) && copy.is_none() => object.call_method0("__dlpack__")?,
        other => other?,
    };
    consume(&capsule)
}

/// A tensor over the memory of a capsule.
pub fn consume(capsule: &Bound<'_, PyAny>) -> Result<Tensor> {
    refuse(READS_AN_ARRAY);
    let taken = match take::<Versioned>(capsule)? {
        Some(tensor) => Some(tensor),
        None => take::<Legacy>(capsule)?,
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
    /// Returns a DLPack capsule over the tensor's memory.
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
        if stream.is_some() {
            return Err(PyBufferError::new_err("a tensor on the CPU has no stream; pass stream=None").into());
        }
        if dl_device.is_some_and(|d| d != (CPU, 0)) {
            return Err(PyBufferError::new_err(
                "a tensor on the CPU can only be exported to the CPU; pass dl_device=(1, 0) or None",
            )
            .into());
        }
        let writable = tensor.storage().is_writable();
        let (shown, flags) = match copy {
            Some(true) => (tensor.copied()?, IS_COPIED),
            _ => (tensor.detach(), if writable { 0 } else { READ_ONLY }),
        };
        match max_version {
            Some((1.., _)) => export::<Versioned>(py, shown, flags),
            _ if flags & READ_ONLY != 0 => Err(PyBufferError::new_err(
                "the tensor's memory is read-only, which DLPack before 1.0 does not support; clone() it first",
            )
            .into()),
            _ => export::<Legacy>(py, shown, flags),
        }
    }

    /// Returns `(1, 0)`: the CPU.
    fn __dlpack_device__(&self) -> Result<(i32, i32)> {
        self.core()?.expect_cpu()?;
        Ok((CPU, 0))
    }
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(from_dlpack, m)?)?;
    Ok(())
}
