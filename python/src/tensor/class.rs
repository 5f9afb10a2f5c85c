//! [`PyTensor`]: `mt.Tensor`, its content and its attributes.

use std::sync::OnceLock;

use minitensor::op::OpName;
use minitensor::{Attr, Error, Tensor};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::device::PyDevice;
use crate::dtype;
use crate::error::{Exception, Result};
use crate::runtime::call;

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
pub const GRADIENT_WOULD_BE_LOST: &str =
    "the tensor requires a gradient, which would be lost; use t.detach().numpy(), or np.asarray(t.detach())";

impl PyTensor {
    /// An empty shell.
    pub fn shell() -> PyTensor {
        PyTensor(Core::Shell(OnceLock::new()))
    }

    /// Fills an empty shell; false if the tensor is not one.
    pub fn fill(&self, tensor: Tensor) -> bool {
        match &self.0 {
            Core::Shell(shell) => shell.set(tensor).is_ok(),
            Core::Full(_) => false,
        }
    }

    pub fn is_empty_shell(&self) -> bool {
        matches!(&self.0, Core::Shell(shell) if shell.get().is_none())
    }

    /// The core's tensor; an error for an empty shell from `Tensor.__new__(Tensor)`.
    #[inline]
    pub fn core(&self) -> Result<&Tensor> {
        match &self.0 {
            Core::Full(tensor) => Ok(tensor),
            Core::Shell(shell) => Ok(shell.get().ok_or_else(empty)?),
        }
    }

    /// An error if the tensor requires a gradient, which would be lost.
    pub fn expect_no_grad(&self, error: &str) -> Result<()> {
        if self.core()?.requires_grad() { Err(Error::value(error.to_owned()).into()) } else { Ok(()) }
    }

    /// An error if the tensor requires a gradient, because a list contains its elements as plain numbers.
    pub fn expect_no_grad_in_list(&self) -> Result<()> {
        self.expect_no_grad(
            "a list contains a tensor that requires a gradient, which would be lost; use mt.ops.stack, or detach() it first",
        )
    }
}

#[cold]
fn empty() -> Exception {
    PyRuntimeError::new_err(
        "this Tensor is uninitialized, because Tensor.__new__ was called without data; set its _tensor first",
    )
    .into()
}

/// Calls an op by name.
pub fn call(name: &'static OpName, tensor: &Tensor, attrs: &[Attr]) -> Result<PyTensor> {
    let op = name.get()?;
    Python::attach(|py| Ok(call::call_one(py, op, &[tensor.into()], attrs)?.into()))
}

/// An op, looked up by name once.
macro_rules! op {
    ($name:literal) => {{
        static OP: minitensor::op::OpName = minitensor::op::OpName::new($name);
        &OP
    }};
}
pub(crate) use op;

#[pymethods]
impl PyTensor {
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
        let core = self.core()?;
        core.expect_values()?;
        core.storage().set_exported();
        Ok(core.data_ptr() as usize)
    }

    fn __len__(&self) -> Result<usize> {
        let core = self.core()?;
        Ok(*core
            .shape()
            .first()
            .ok_or_else(|| Error::type_("a 0-d tensor has no len(); use numel() for the number of elements"))?)
    }
}
