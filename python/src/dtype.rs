//! The dtype objects, `mt.float32` and the others.

use minitensor::dtype::Kind;
use minitensor::{DType, Error};
use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyTuple, PyType};

use crate::error::Result;

/// The type of a tensor's elements: `mt.float32`, `mt.int64`, …
///
/// Equal to its name and to NumPy's dtype of that name: `x.dtype == "float32"`.
#[pyclass(name = "DType", module = "minitensor", frozen)]
pub struct PyDType(pub DType);

static SINGLETONS: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();

/// The unique object of a dtype.
pub fn object(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyDType>> {
    let all = SINGLETONS
        .get_or_try_init(py, || DType::ALL.iter().map(|d| Py::new(py, PyDType(*d))).collect::<PyResult<_>>())?;
    Ok(all[dtype as usize].bind(py).clone())
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_class::<PyDType>()?;
    let names: Vec<_> = DType::ALL.iter().map(|d| d.name()).collect();
    for dtype in DType::ALL {
        m.add(dtype.name(), object(m.py(), *dtype)?)?;
    }
    m.add("_DTYPES", PyTuple::new(m.py(), names)?)?;
    Ok(())
}

/// Converts a dtype argument: a dtype object, a name, a Python type, or a dtype of NumPy or PyTorch. Python types mean
/// the same as in NumPy and PyTorch: `float` is float64, `complex` is complex128.
pub fn parse(given: &Bound<'_, PyAny>) -> Result<DType> {
    if let Ok(dtype) = given.cast_exact::<PyDType>() {
        return Ok(dtype.get().0);
    }
    if let Ok(name) = given.cast::<PyString>() {
        return Ok(DType::parse(name.to_str()?).map_err(minitensor::Error::from)?);
    }
    let py = given.py();
    if let Ok(class) = given.cast::<PyType>() {
        let builtin = [
            (PyBool::type_object(py), DType::Bool),
            (PyInt::type_object(py), DType::I64),
            (PyFloat::type_object(py), DType::F64),
            (PyComplex::type_object(py), DType::C128),
        ];
        if let Some((_, dtype)) = builtin.iter().find(|(t, _)| t.is(class)) {
            return Ok(*dtype);
        }
        if let Ok(dtype) = DType::parse(&class.name()?.to_string().trim_end_matches('_').replace("str", "")) {
            return Ok(dtype);
        }
    }
    let name = match given.getattr("name") {
        Ok(name) => name.str()?.to_string(),
        Err(_) => given.str()?.to_string(),
    };
    let bare = name.strip_prefix("torch.").unwrap_or(&name);
    let unknown = |_| {
        let shown = given.repr().map_or(name.clone(), |r| r.to_string_lossy().into_owned());
        Error::type_(format!(
            "expected a dtype, such as mt.float32, its name, or a dtype of NumPy or PyTorch, got {shown}; the dtypes are {}",
            names()
        ))
    };
    Ok(DType::parse(bare).map_err(unknown)?)
}

/// The names of all dtypes, for messages.
pub fn names() -> String {
    DType::ALL.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ")
}

#[pymethods]
impl PyDType {
    #[new]
    fn new(py: Python<'_>, name: &Bound<'_, PyAny>) -> Result<Py<PyDType>> {
        Ok(object(py, parse(name)?)?.unbind())
    }

    /// The name, such as `float32`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// The size of an element in bytes.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// `bool`, `unsigned`, `signed`, `float` or `complex`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind() {
            Kind::Bool => "bool",
            Kind::Unsigned => "unsigned",
            Kind::Signed => "signed",
            Kind::Float => "float",
            Kind::Complex => "complex",
        }
    }

    /// True for real floating-point dtypes.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.kind() == Kind::Float
    }

    /// True for complex dtypes.
    #[getter]
    fn is_complex(&self) -> bool {
        self.0.kind() == Kind::Complex
    }

    fn __repr__(&self) -> String {
        format!("minitensor.{}", self.0.name())
    }

    fn __str__(&self) -> &'static str {
        self.0.name()
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::intern(py, self.0.name()).hash()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        parse(other).is_ok_and(|d| d == self.0)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (&'static str,)) {
        (PyDType::type_object(py), (self.0.name(),))
    }
}
