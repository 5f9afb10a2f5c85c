//! [`PyTensor`]: `mt.Tensor`.

use std::sync::OnceLock;

use minitensor::op::OpName;
use minitensor::{Attr, DType, Device, Error, Tensor};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::data::{self, Copy};
use crate::device::{DeviceLike, PyDevice};
use crate::error::{Result, guarded};
use crate::{device, dtype, scalar};

/// An n-dimensional array with one dtype.
///
/// `Tensor(data, dtype=None, device=None, requires_grad=False)` copies `data`: numbers, nested lists, or arrays of
/// NumPy and other libraries. Python floats become float32, integers int64.
///
/// >>> import minitensor as mt
/// >>> x = mt.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
/// >>> x.shape
/// (2, 2)
/// >>> (x * x).sum().backward()
/// >>> x.grad
/// tensor([[2., 4.],
///         [6., 8.]])
#[pyclass(name = "Tensor", module = "minitensor", frozen, subclass, weakref)]
pub struct PyTensor(Core);

/// The content of a `Tensor`. An empty shell can be filled once. All other tensors are filled from the start, without
/// indirection.
enum Core {
    Full(Tensor),
    Shell(OnceLock<Tensor>),
}

impl From<Tensor> for PyTensor {
    #[inline]
    fn from(tensor: Tensor) -> PyTensor {
        PyTensor(Core::Full(tensor))
    }
}

/// The reason why a tensor that requires a gradient can't be exported as an array.
pub const LEAVES: &str =
    "the tensor requires a gradient, which would be lost; use t.detach().numpy(), or np.asarray(t.detach())";

/// An optional argument that distinguishes a missing value from `None`.
pub struct Given<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Given(Some(object.to_owned())))
    }
}

impl PyTensor {
    /// The core's tensor; an error for an empty shell from `Tensor.__new__(Tensor)`.
    #[inline]
    pub fn core(&self) -> Result<&Tensor> {
        match &self.0 {
            Core::Full(tensor) => Ok(tensor),
            Core::Shell(shell) => Ok(shell.get().ok_or_else(empty)?),
        }
    }

    /// Returns an error if the tensor requires a gradient, because its number has no history.
    pub fn refuse_to_forget_gradient(&self, what: &str) -> Result<()> {
        if self.core()?.requires_grad() {
            return Err(Error::value(format!(
                "a tensor that requires a gradient was {what}, where the gradient would be lost; use mt.ops.stack, or detach() it first"
            ))
            .into());
        }
        Ok(())
    }
}

#[cold]
fn empty() -> crate::error::Raised {
    PyRuntimeError::new_err("this Tensor is an empty shell from Tensor.__new__(Tensor): set its _tensor first").into()
}

/// Calls an op by name.
pub fn call(name: &'static OpName, tensor: &Tensor, attrs: &[Attr]) -> Result<PyTensor> {
    let op = name.get()?;
    Python::attach(|py| Ok(crate::release::call_one(py, op, &[tensor.into()], attrs)?.into()))
}

/// An op, looked up by name once.
macro_rules! op {
    ($name:literal) => {{
        static OP: minitensor::op::OpName = minitensor::op::OpName::new($name);
        &OP
    }};
}
pub(crate) use op;

/// The target of `x.to(…)`: a dtype, or a device.
fn target(given: &Bound<'_, PyAny>) -> Result<(Option<DType>, Option<Device>)> {
    let is_dtype = given.extract::<String>().is_ok_and(|name| DType::parse(&name).is_ok());
    if !is_dtype && device::is_like(given) {
        return Ok((None, Some(given.extract::<DeviceLike>()?.into())));
    }
    Ok((Some(dtype::parse(given)?), None))
}

#[pymethods]
impl PyTensor {
    #[new]
    #[pyo3(signature = (data=Given(None), dtype=None, device=None, requires_grad=false), text_signature = "(data, dtype=None, device=None, requires_grad=False)")]
    fn new(
        data: Given<'_>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<DeviceLike>,
        requires_grad: bool,
    ) -> Result<PyTensor> {
        let Given(Some(data)) = data else { return Ok(PyTensor(Core::Shell(OnceLock::new()))) };
        let (dtype, device) = (dtype.map(dtype::parse).transpose()?, device::or_cpu(device));
        let mut tensor = guarded("Tensor()", || data::tensor(&data, dtype, Copy::Always).map_err(Error::from))?;
        if device == Device::Meta {
            tensor = Tensor::empty(tensor.shape().clone(), tensor.dtype(), device)?;
        }
        if requires_grad {
            tensor.set_requires_grad(true)?;
        }
        Ok(tensor.into())
    }

    /// The tensor itself. Setting it fills an empty shell.
    #[getter]
    fn _tensor(slf: Bound<'_, Self>) -> Result<Bound<'_, Self>> {
        slf.get().core()?;
        Ok(slf)
    }

    #[setter(_tensor)]
    fn set_tensor(&self, core: &Bound<'_, PyTensor>) -> Result<()> {
        let filled = match &self.0 {
            Core::Shell(shell) => shell.set(core.get().core()?.clone()).is_ok(),
            Core::Full(_) => false,
        };
        if filled {
            Ok(())
        } else {
            Err(PyRuntimeError::new_err("this Tensor holds one already; _tensor only fills an empty shell").into())
        }
    }

    /// The sizes of the dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        Ok(PyTuple::new(py, self.core()?.shape().iter())?)
    }

    /// The distance to the next element along each dimension, in elements.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        Ok(PyTuple::new(py, self.core()?.strides().iter())?)
    }

    /// The dtype of the elements, such as `mt.float32`.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Result<Bound<'py, dtype::PyDType>> {
        Ok(dtype::object(py, self.core()?.dtype())?)
    }

    /// The device of its memory. It is equal to its name: `x.device == "cpu"`.
    #[getter]
    fn device(&self) -> Result<PyDevice> {
        Ok(PyDevice(self.core()?.device()))
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> Result<usize> {
        Ok(self.core()?.ndim())
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> Result<usize> {
        Ok(self.core()?.numel())
    }

    /// Returns the number of elements.
    fn numel(&self) -> Result<usize> {
        self.size()
    }

    /// The size of an element in bytes.
    #[getter]
    fn itemsize(&self) -> Result<usize> {
        Ok(self.core()?.dtype().size())
    }

    /// The size of all elements in bytes.
    #[getter]
    fn nbytes(&self) -> Result<usize> {
        Ok(self.core()?.numel() * self.core()?.dtype().size())
    }

    /// A view with the axes in reverse order.
    #[getter(T)]
    fn transposed(&self) -> Result<PyTensor> {
        let axes: Vec<i64> = (0..self.core()?.ndim() as i64).rev().collect();
        call(op!("permute_dims"), self.core()?, &[axes.into()])
    }

    /// A view with the last two axes swapped.
    #[getter(mT)]
    fn matrix_transposed(&self) -> Result<PyTensor> {
        call(op!("matrix_transpose"), self.core()?, &[])
    }

    /// True if the elements are contiguous in row-major order.
    fn is_contiguous(&self) -> Result<bool> {
        Ok(self.core()?.is_contiguous())
    }

    /// The address of the first element.
    fn data_ptr(&self) -> Result<usize> {
        Ok(self.core()?.data_ptr() as usize)
    }

    /// Converts the elements to another dtype; gradients flow through.
    #[pyo3(signature = (dtype, /, *, copy=true))]
    fn astype(slf: &Bound<'_, Self>, dtype: &Bound<'_, PyAny>, copy: bool) -> Result<Py<PyTensor>> {
        let (core, dtype) = (slf.get().core()?, dtype::parse(dtype)?);
        if dtype == core.dtype() && !copy {
            return Ok(slf.clone().unbind());
        }
        let converted = if dtype == core.dtype() {
            call(op!("clone"), core, &[])?
        } else {
            call(op!("astype"), core, &[dtype.into()])?
        };
        Ok(Py::new(slf.py(), converted)?)
    }

    /// Converts to another dtype or device; returns the tensor itself if nothing changes.
    #[pyo3(signature = (target=None, *, dtype=None, device=None))]
    fn to(
        slf: &Bound<'_, Self>,
        target: Option<&Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<DeviceLike>,
    ) -> Result<Py<PyTensor>> {
        let (mut to_dtype, mut to_device) = target.map_or(Ok((None, None)), self::target)?;
        to_dtype = dtype.map(dtype::parse).transpose()?.or(to_dtype);
        to_device = device.map(Device::from).or(to_device);
        let core = slf.get().core()?;
        if let Some(device) = to_device.filter(|d| *d != core.device()) {
            if device != Device::Meta {
                core.expect_values()?;
            }
            let moved = Tensor::empty(core.shape().clone(), to_dtype.unwrap_or(core.dtype()), device)?;
            return Ok(Py::new(slf.py(), PyTensor::from(moved))?);
        }
        match to_dtype.filter(|d| *d != core.dtype()) {
            Some(dtype) => Ok(Py::new(slf.py(), call(op!("astype"), core, &[dtype.into()])?)?),
            None => Ok(slf.clone().unbind()),
        }
    }

    /// Returns the tensor itself, which is on the CPU.
    fn cpu(slf: Bound<'_, Self>) -> Result<Bound<'_, Self>> {
        slf.get().core()?.expect_values()?;
        Ok(slf)
    }

    /// Returns the only element as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let core = self.core()?;
        core.expect_values()?;
        if core.numel() != 1 {
            return Err(Error::value(format!(
                "item() needs a tensor of one element, got shape {}; use tolist()",
                core.shape()
            ))
            .into());
        }
        scalar::tolist(py, &core.reshape_view(&[])?)
    }

    /// Returns the elements as nested lists of Python numbers.
    fn tolist<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.core()?.expect_values()?;
        scalar::tolist(py, &self.core()?.detach())
    }

    /// Returns a NumPy array with the same memory. A tensor that requires a gradient raises an error: use
    /// `t.detach().numpy()`.
    pub fn numpy<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let (py, core) = (slf.py(), slf.get().core()?);
        core.expect_values()?;
        if core.requires_grad() {
            return Err(PyRuntimeError::new_err(LEAVES).into());
        }
        let numpy = py.import("numpy")?;
        if core.dtype() == DType::Bf16 {
            let extended = py.import("ml_dtypes").and_then(|m| m.getattr("bfloat16"));
            let extended = extended.map_err(|_| {
                PyTypeError::new_err(
                    "NumPy knows no bfloat16; convert with astype('float32') first, or install ml_dtypes",
                )
            })?;
            let strides = core.strides().iter().copied().collect();
            // SAFETY: the window is the same, and a bfloat16 has 16 bits like a uint16.
            let bits = unsafe {
                Tensor::from_parts(core.storage().clone(), core.shape().clone(), strides, core.offset(), DType::U16)
            };
            let bits = numpy.call_method1("asarray", (Bound::new(py, PyTensor::from(bits))?,))?;
            return Ok(bits.call_method1("view", (extended,))?);
        }
        // SAFETY: a live object, with the interpreter attached; null means an exception is set.
        let memory = unsafe { Bound::from_owned_ptr_or_err(py, pyo3::ffi::PyMemoryView_FromObject(slf.as_ptr()))? };
        Ok(numpy.call_method1("asarray", (memory,))?)
    }

    /// `np.asarray(t)` calls this method.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        let array = PyTensor::numpy(slf)?;
        let keywords = PyDict::new(slf.py());
        match (dtype, copy) {
            (None, Some(true)) => return Ok(array.call_method0("copy")?),
            (None, _) => return Ok(array),
            (Some(_), Some(false)) => {
                if !array.getattr("dtype")?.eq(dtype)? {
                    return Err(Error::value(format!(
                        "copy=False, but {} becomes another dtype only by copying",
                        slf.get().core()?.dtype()
                    ))
                    .into());
                }
                return Ok(array);
            }
            (Some(_), copy) => keywords.set_item("copy", copy.unwrap_or(false))?,
        }
        Ok(array.call_method("astype", (dtype,), Some(&keywords))?)
    }

    /// Makes NumPy's arrays delegate `array + tensor` to the tensor.
    #[classattr]
    #[allow(non_upper_case_globals)]
    const __array_priority__: f64 = 1000.0;

    fn __len__(&self) -> Result<usize> {
        let core = self.core()?;
        Ok(*core.shape().first().ok_or_else(|| Error::type_("a tensor of no dimensions has no len()"))?)
    }

    fn __bool__(&self) -> Result<bool> {
        let core = self.one("bool()")?;
        Ok(core.cast(DType::Bool)?.item::<bool>()?)
    }

    fn __float__(&self) -> Result<f64> {
        let core = self.one("float()")?;
        if core.dtype().is_complex() {
            return Err(Error::type_("float() of a complex tensor would lose its imaginary part; use complex()").into());
        }
        Ok(core.cast(DType::F64)?.item::<f64>()?)
    }

    fn __int__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let core = self.one("int()")?;
        if core.dtype().is_complex() {
            return Err(Error::type_("int() of a complex tensor would lose its imaginary part; use complex()").into());
        }
        let number = scalar::tolist(py, &core.reshape_view(&[])?)?;
        Ok(number.call_method0("__int__")?)
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let core = self.one("complex()")?;
        scalar::tolist(py, &core.cast(DType::C128)?.reshape_view(&[])?)
    }

    fn __index__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        use minitensor::dtype::Kind::{Signed, Unsigned};
        let core = self.core()?;
        if core.ndim() != 0 || !matches!(core.dtype().kind(), Signed | Unsigned) {
            return Err(Error::type_(format!(
                "only an integer tensor of no dimensions can be an index, this one is {} of shape {}",
                core.dtype(),
                core.shape()
            ))
            .into());
        }
        scalar::tolist(py, core)
    }

    fn __repr__(&self) -> Result<String> {
        if matches!(&self.0, Core::Shell(shell) if shell.get().is_none()) {
            return Ok("tensor(<empty shell>)".into());
        }
        let core = self.core()?;
        Ok(guarded("repr()", || Ok(core.to_string()))?)
    }

    fn _repr_html_(&self) -> Result<String> {
        let core = self.core()?;
        let text = self.__repr__()?.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        Ok(format!(
            "<div><pre style=\"margin:0\">{text}</pre><small>shape {} · {} · {}</small></div>",
            core.shape(),
            core.dtype(),
            core.device()
        ))
    }

    fn __format__<'py>(&self, py: Python<'py>, spec: &str) -> Result<Bound<'py, PyAny>> {
        if spec.is_empty() {
            return Ok(self.__repr__()?.into_bound_py_any(py)?);
        }
        if self.core()?.numel() != 1 {
            return Err(Error::type_(format!(
                "a format such as '{spec}' needs a tensor of one element, got shape {}",
                self.core()?.shape()
            ))
            .into());
        }
        Ok(self.item(py)?.call_method1("__format__", (spec,))?)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, core) = (slf.py(), slf.get().core()?);
        core.expect_values()?;
        let whole = core.contiguous()?;
        let bytes = whole.numel() * whole.dtype().size();
        // SAFETY: the elements of a contiguous tensor occupy this number of bytes.
        let bytes = if bytes == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(whole.data_ptr(), bytes) } };
        let state = (
            slf.get_type().into_any(),
            pyo3::types::PyBytes::new(py, bytes),
            core.dtype().name(),
            PyTuple::new(py, core.shape().iter())?,
            core.requires_grad() && core.is_leaf(),
        );
        Ok((py.import("minitensor._minitensor")?.getattr("_rebuild")?, state.into_pyobject(py)?))
    }

    fn __copy__(&self) -> Result<PyTensor> {
        Ok(self.core()?.clone().into())
    }

    fn __deepcopy__(&self, memo: &Bound<'_, PyAny>) -> Result<PyTensor> {
        let _ = memo;
        let core = self.core()?;
        if !core.is_leaf() {
            return Err(PyRuntimeError::new_err(
                "only leaves can be deep-copied, this tensor has a history; detach() it first",
            )
            .into());
        }
        let copy = core.copied()?;
        copy.set_requires_grad(core.requires_grad())?;
        Ok(copy.into())
    }
}

impl PyTensor {
    fn one(&self, what: &str) -> Result<Tensor> {
        let core = self.core()?;
        core.expect_values()?;
        if core.numel() != 1 {
            let hint = if what == "bool()" { "; use any() or all()" } else { "" };
            return Err(Error::value(format!(
                "{what} needs a tensor of one element, got shape {}{hint}",
                core.shape()
            ))
            .into());
        }
        Ok(core.detach())
    }
}

/// Restores a pickled tensor.
#[pyfunction]
pub fn _rebuild<'py>(
    class: &Bound<'py, PyAny>,
    bytes: &[u8],
    dtype: &str,
    shape: Vec<usize>,
    requires_grad: bool,
) -> Result<Bound<'py, PyAny>> {
    let dtype = DType::parse(dtype).map_err(minitensor::Error::from)?;
    let tensor = Tensor::empty(shape, dtype, Device::Cpu)?;
    if tensor.numel() * dtype.size() != bytes.len() || (dtype == DType::Bool && bytes.iter().any(|b| *b > 1)) {
        return Err(Error::value("a pickled tensor's bytes don't fit its shape and dtype").into());
    }
    // SAFETY: the tensor was just allocated for this number of bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data_ptr(), bytes.len()) }
    tensor.set_requires_grad(requires_grad)?;
    let shell = class.call_method1("__new__", (class,))?;
    shell.setattr("_tensor", Bound::new(class.py(), PyTensor::from(tensor))?)?;
    Ok(shell)
}
