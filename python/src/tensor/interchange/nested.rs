//! Tensors from nested lists of Python numbers, and nested lists from tensors.

use minitensor::dtype::Kind;
use minitensor::kernels::Complex;
use minitensor::tensor::try_vec;
use minitensor::{DType, Error, Shape, Tensor, with_dtype};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyList, PyRange, PyString, PyTuple};

use super::number::{self, Number};
use super::numpy::is_numpy;
use super::sequence::{Items, MAX_DEPTH, SIGNAL_INTERVAL};
use crate::error::{Exception, Result};
use crate::tensor::class::PyTensor;

/// A tensor of a number, or of lists and tuples of numbers.
pub fn tensor(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> Result<Tensor> {
    let mut reader = NestedReader { shape: Vec::new(), leaves: Vec::new(), has_number: false };
    reader.visit(object, &mut Vec::new())?;
    let dtype = match dtype {
        Some(dtype) => {
            reader.leaves.iter().try_for_each(|n| n.check(dtype))?;
            dtype
        }
        None => {
            let dtypes = reader.leaves.iter().map(|n| n.dtype());
            let dtype = dtypes.reduce(|a, b| {
                if a == DType::U64 && b == DType::I64 || a == DType::I64 && b == DType::U64 {
                    DType::U64
                } else {
                    a.promote(b)
                }
            });
            let dtype = dtype.unwrap_or(DType::F32);
            reader.leaves.iter().try_for_each(|n| n.check(dtype))?;
            dtype
        }
    };
    let out = Tensor::empty(reader.shape, dtype, minitensor::Device::Cpu)?;
    with_dtype!(dtype, T => {
        let data = out.data_ptr().cast::<T>();
        for (i, number) in reader.leaves.iter().enumerate() {
            // SAFETY: the tensor was just allocated for `n` elements, and no other code has access to it yet.
            unsafe { data.add(i).write(number.cast()) }
        }
    });
    Ok(out)
}

/// The state of a traversal of nested lists.
struct NestedReader {
    shape: Vec<usize>,
    leaves: Vec<Number>,
    /// True after the first number, which determines the number of dimensions.
    has_number: bool,
}

impl NestedReader {
    fn visit(&mut self, object: &Bound<'_, PyAny>, path: &mut Vec<usize>) -> Result<()> {
        let depth = path.len();
        if depth > MAX_DEPTH {
            return Err(Error::value(format!(
                "lists are nested more than {MAX_DEPTH} levels deep; a tensor has fewer dimensions"
            ))
            .into());
        }
        let Some(items) = children(object)? else {
            let number = leaf(object, path)?;
            if !self.has_number && depth < self.shape.len() || self.has_number && depth != self.shape.len() {
                return Err(ragged(path, "is a number", "is a list"));
            }
            if !self.has_number {
                // The first number determines the number of elements.
                self.has_number = true;
                self.leaves = try_vec(Shape::from(self.shape.as_slice()).checked_numel()?)?;
            }
            if self.leaves.len() == self.leaves.capacity() {
                self.leaves.try_reserve(1).map_err(|_| Error::memory("cannot allocate the numbers of nested lists"))?;
            }
            self.leaves.push(number);
            return Ok(());
        };
        match self.shape.get(depth) {
            None if self.has_number => return Err(ragged(path, "is a list", "is a number")),
            None => self.shape.push(items.len()),
            Some(size) if *size != items.len() => {
                return Err(ragged(path, &format!("has length {}", items.len()), &format!("has length {size}")));
            }
            Some(_) => {}
        }
        for (i, item) in items.enumerate() {
            path.push(i);
            self.visit(&item?, path)?;
            path.pop();
        }
        Ok(())
    }
}

fn path_text(path: &[usize]) -> String {
    path.iter().map(|i| format!("[{i}]")).collect()
}

#[cold]
fn ragged(path: &[usize], here: &str, elsewhere: &str) -> Exception {
    let at = path_text(path);
    Error::value(format!(
        "ragged nested lists: data{at} {here}, but the preceding element {elsewhere}; the elements of a list must have the same shape"
    ))
    .into()
}

/// The elements of a list or another sequence; `None` for a number.
fn children<'py>(object: &Bound<'py, PyAny>) -> Result<Option<Items<'py>>> {
    let is_known = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    if is_known || object.is_instance_of::<PyRange>() {
        return Items::of(object).map(Some);
    }
    let array = object.is_instance_of::<PyTensor>() || is_numpy(object)?;
    if array && object.getattr("ndim")?.extract::<usize>()? > 0 {
        if let Ok(t) = object.cast::<PyTensor>() {
            t.get().expect_no_grad_in_list()?;
        }
        return Items::of(&object.call_method0("tolist")?).map(Some);
    }
    let is_sequence =
        !object.is_instance_of::<PyString>() && object.hasattr("__len__")? && object.hasattr("__getitem__")?;
    if is_sequence && !array && number::read(object)?.is_none() && !object.hasattr("keys")? {
        return Items::of(object).map(Some);
    }
    Ok(None)
}

fn leaf(object: &Bound<'_, PyAny>, path: &[usize]) -> Result<Number> {
    if let Some(number) = number::read(object)? {
        return Ok(number);
    }
    if let Ok(t) = object.cast::<PyTensor>() {
        t.get().expect_no_grad_in_list()?;
    }
    if (object.is_instance_of::<PyTensor>() || is_numpy(object)?)
        && let Some(number) = number::read(&object.call_method0("item")?)?
    {
        return Ok(number);
    }
    let class = object.get_type().fully_qualified_name()?;
    let at = if path.is_empty() { String::new() } else { format!(" at data{}", path_text(path)) };
    Err(Error::type_(format!(
        "expected a number, nested lists or tuples of numbers, a NumPy array, or an object with __dlpack__ or a buffer, got \
         {class}{at}"
    ))
    .into())
}

/// The elements as nested lists of Python numbers; a number for a tensor without dimensions.
pub fn tolist<'py>(py: Python<'py>, tensor: &Tensor) -> Result<Bound<'py, PyAny>> {
    let shape = tensor.shape();
    match tensor.dtype().kind() {
        Kind::Bool => nest(py, shape, &mut objects(py, tensor.to_vec::<bool>()?)),
        Kind::Float => nest(py, shape, &mut objects(py, tensor.cast(DType::F64)?.to_vec::<f64>()?)),
        Kind::Signed => nest(py, shape, &mut objects(py, tensor.cast(DType::I64)?.to_vec::<i64>()?)),
        Kind::Unsigned => nest(py, shape, &mut objects(py, tensor.cast(DType::U64)?.to_vec::<u64>()?)),
        Kind::Complex => {
            let values = tensor.cast(DType::C128)?.to_vec::<Complex<f64>>()?.into_iter();
            nest(py, shape, &mut values.map(|z| Ok(PyComplex::from_doubles(py, z.re, z.im).into_any())))
        }
    }
}

/// Python numbers, each created on demand.
fn objects<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    values: Vec<T>,
) -> impl Iterator<Item = PyResult<Bound<'py, PyAny>>> {
    values.into_iter().map(move |v| v.into_bound_py_any(py))
}

fn nest<'py>(
    py: Python<'py>,
    shape: &[usize],
    numbers: &mut impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> Result<Bound<'py, PyAny>> {
    let Some((size, inner)) = shape.split_first() else {
        let number = numbers.next();
        return Ok(number.ok_or_else(|| Error::runtime("internal error: a tensor has fewer elements than its shape"))??);
    };
    let list = PyList::empty(py);
    for i in 0..*size {
        if i % SIGNAL_INTERVAL == SIGNAL_INTERVAL - 1 {
            py.check_signals()?;
        }
        list.append(nest(py, inner, numbers)?)?;
    }
    Ok(list.into_any())
}
