//! The buffer protocol (PEP 3118), in both directions, without copies.

use std::ffi::{CStr, CString, c_int, c_void};

use minitensor::dtype::Kind;
use minitensor::graph::{READS_AN_ARRAY, refuse};
use minitensor::{DType, Device, Error, Shape, Tensor};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use super::foreign::foreign;
use crate::error::Result;
use crate::tensor::class::{GRADIENT_WOULD_BE_LOST, PyTensor};

/// The format of each dtype in the notation of the `struct` module.
const FORMATS: &[(DType, &CStr)] = &[
    (DType::Bool, c"?"),
    (DType::I8, c"b"),
    (DType::I16, c"h"),
    (DType::I32, c"i"),
    (DType::I64, c"q"),
    (DType::U8, c"B"),
    (DType::U16, c"H"),
    (DType::U32, c"I"),
    (DType::U64, c"Q"),
    (DType::F16, c"e"),
    (DType::F32, c"f"),
    (DType::F64, c"d"),
    (DType::C64, c"Zf"),
    (DType::C128, c"Zd"),
];

/// The dtype of a format with this element size; `None` if it is not supported or not in native byte order.
fn dtype(format: &str, size: usize) -> Option<DType> {
    let native = if cfg!(target_endian = "little") { ['@', '=', '<'] } else { ['@', '=', '>'] };
    let kind = match format.trim_start_matches(native) {
        "?" => Kind::Bool,
        "b" | "h" | "i" | "l" | "q" | "n" => Kind::Signed,
        "B" | "H" | "I" | "L" | "Q" | "N" => Kind::Unsigned,
        "e" | "f" | "d" => Kind::Float,
        "Zf" | "Zd" | "F" | "D" => Kind::Complex,
        _ => return None,
    };
    DType::ALL.iter().copied().find(|d| d.kind() == kind && d.size() == size && *d != DType::Bf16)
}

pub fn is_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a live object, with the interpreter attached.
    unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
}

/// A tensor over the memory of an object that supports the buffer protocol.
pub fn import(object: &Bound<'_, PyAny>) -> Result<Tensor> {
    refuse(READS_AN_ARRAY);
    // A memoryview has a shape and strides even if the exporter omits them, as ctypes does.
    let memory = PyMemoryView::from(object)?;
    // The buffer of a single number has no shape, as of `ctypes.c_float`, and PyO3 refuses it.
    let is_number = memory.getattr("ndim")?.extract::<usize>()? == 0;
    let source = if is_number { memory.call_method0("tobytes")? } else { memory.as_any().clone() };
    let view = PyUntypedBuffer::get(&source)?;
    let (format, size) =
        (memory.getattr("format")?.extract::<String>()?, memory.getattr("itemsize")?.extract::<usize>()?);
    let dtype = dtype(&format, size).ok_or_else(|| {
        Error::type_(format!(
            "the buffer format '{format}' with {size} bytes per element is not supported; convert the data first"
        ))
    })?;
    let (shape, strides) = if is_number { (&[][..], &[][..]) } else { (view.shape(), view.strides()) };
    if strides.iter().any(|s| s % size as isize != 0) || view.suboffsets().is_some_and(|s| s.iter().any(|o| *o >= 0)) {
        return Err(
            Error::value("the strides of a buffer must be multiples of its element size; copy the data first").into()
        );
    }
    let strides = strides.iter().map(|s| s / size as isize).collect::<Vec<_>>();
    let shape: Shape = shape.into();
    let (first, writable) = (view.buf_ptr().cast::<u8>(), !view.readonly());
    // SAFETY: the exporter guarantees its memory for the lifetime of the view, which the storage owns.
    unsafe { foreign(Device::Cpu, first, shape, &strides, dtype, writable, Box::new(view)) }
}

/// The data that an exported view owns: shape and strides in bytes, which the consumer reads, and the memory.
struct Exported {
    shape: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
    format: CString,
    _tensor: Tensor,
}

#[pymethods]
impl PyTensor {
    /// Exports the elements to NumPy and others. A tensor that requires a gradient is not exported, because the
    /// gradient would be lost.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> Result<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("the view must not be NULL").into());
        }
        let tensor = slf.get().core()?;
        tensor.expect_cpu()?;
        if tensor.requires_grad() {
            return Err(PyBufferError::new_err(GRADIENT_WOULD_BE_LOST).into());
        }
        let dtype = tensor.dtype();
        let Some((_, format)) = FORMATS.iter().find(|(d, _)| *d == dtype) else {
            return Err(PyBufferError::new_err(format!(
                "the buffer protocol does not support {dtype}; convert with astype('float32') first"
            ))
            .into());
        };
        let readonly = !tensor.storage().is_writable();
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE && readonly {
            return Err(PyBufferError::new_err("the tensor's memory is read-only; clone() it first").into());
        }
        let requests = |what: c_int| flags & what == what;
        let is_f_contiguous = || {
            let (shape, strides) = (tensor.shape().iter().rev(), tensor.strides().iter().rev());
            shape.copied().collect::<Shape>().is_contiguous(&strides.copied().collect::<Vec<_>>())
        };
        let has_strides = requests(ffi::PyBUF_STRIDES);
        let is_satisfied = match () {
            () if requests(ffi::PyBUF_F_CONTIGUOUS) => is_f_contiguous(),
            () if requests(ffi::PyBUF_ANY_CONTIGUOUS) => tensor.is_contiguous() || is_f_contiguous(),
            () if requests(ffi::PyBUF_C_CONTIGUOUS) || !has_strides => tensor.is_contiguous(),
            () => true,
        };
        if !is_satisfied {
            return Err(PyBufferError::new_err("the tensor isn't contiguous; use contiguous()").into());
        }
        tensor.storage().set_exported();
        let size = dtype.size() as isize;
        let mut exported = Box::new(Exported {
            shape: tensor.shape().iter().map(|d| *d as ffi::Py_ssize_t).collect(),
            strides: tensor.strides().iter().map(|s| s * size).collect(),
            format: (*format).to_owned(),
            _tensor: tensor.detach(),
        });
        // SAFETY: Python passes a view to fill; the data that it points to is in `exported` until it is released.
        unsafe {
            (*view).buf = tensor.data_ptr().cast();
            (*view).len = (tensor.numel() * dtype.size()) as ffi::Py_ssize_t;
            (*view).readonly = c_int::from(readonly);
            (*view).itemsize = size;
            (*view).ndim = tensor.ndim() as c_int;
            (*view).format = if flags & ffi::PyBUF_FORMAT == ffi::PyBUF_FORMAT {
                exported.format.as_ptr().cast_mut()
            } else {
                std::ptr::null_mut()
            };
            (*view).shape =
                if flags & ffi::PyBUF_ND == ffi::PyBUF_ND { exported.shape.as_mut_ptr() } else { std::ptr::null_mut() };
            (*view).strides = if has_strides { exported.strides.as_mut_ptr() } else { std::ptr::null_mut() };
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = Box::into_raw(exported).cast::<c_void>();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `__getbuffer__` filled the view, and Python releases it once.
        drop(unsafe { Box::from_raw((*view).internal.cast::<Exported>()) });
    }
}
