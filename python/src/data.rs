//! Tensors from Python data: nested lists, numbers, arrays, buffers.

use minitensor::tensor::try_vec;
use minitensor::{DType, Error, Shape, Tensor, with_dtype};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyMemoryView, PyRange, PyString, PyTuple};

use crate::error::Result;
use crate::items::Items;
use crate::scalar::{self, Number};
use crate::tensor::PyTensor;
use crate::{buffer, dlpack, exit};

/// The maximum nesting depth of lists. Deeper lists contain themselves or are a mistake.
const MAX_DEPTH: usize = 64;

/// Whether a tensor shares memory with the object that it is made from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Copy {
    Always,
    IfNeeded,
    Never,
}

/// A tensor with the data of `object`.
pub fn tensor(object: &Bound<'_, PyAny>, dtype: Option<DType>, copy: Copy) -> Result<Tensor> {
    let shared = match share(object, copy)? {
        Some(shared) => shared,
        None if copy == Copy::Never => {
            return Err(Error::value("copy=False, but Python's lists and numbers can only be copied").into());
        }
        None => return nested(object, dtype),
    };
    let dtype = dtype.unwrap_or(shared.dtype());
    match copy {
        Copy::Never if dtype != shared.dtype() => {
            Err(Error::value(format!("copy=False, but {} can't become {dtype} without a copy", shared.dtype())).into())
        }
        Copy::Always => Ok(exit::detach(object.py(), || cast(&shared, dtype))?),
        _ if dtype != shared.dtype() => Ok(cast(&shared, dtype)?),
        _ => Ok(shared),
    }
}

fn cast(tensor: &Tensor, dtype: DType) -> minitensor::Result<Tensor> {
    tensor.expect_values()?;
    if tensor.dtype().is_complex() && !dtype.is_complex() && dtype != DType::Bool {
        return Err(Error::type_(format!("{} as {dtype} would lose the imaginary parts", tensor.dtype())));
    }
    tensor.cast(dtype)
}

/// A tensor over the memory of another tensor, array or buffer.
fn share(object: &Bound<'_, PyAny>, copy: Copy) -> Result<Option<Tensor>> {
    if let Ok(t) = object.cast::<PyTensor>() {
        return Ok(Some(t.get().core()?.detach()));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyString>() {
        return Ok(None);
    }
    if is_numpy(object)? {
        return from_numpy(object, copy).map(Some);
    }
    if scalar::read(object)?.is_some() {
        return Ok(None);
    }
    if object.hasattr("__dlpack__")? {
        return dlpack::import(object, None).map(Some);
    }
    if buffer::is_buffer(object) {
        return buffer::import(object).map(Some);
    }
    if object.hasattr("__array__")? {
        return from_numpy(&object.py().import("numpy")?.call_method1("asarray", (object,))?, copy).map(Some);
    }
    Ok(None)
}

/// True for a NumPy array or scalar, or an object with NumPy's protocol that isn't one of our tensors.
pub fn is_numpy(object: &Bound<'_, PyAny>) -> Result<bool> {
    Ok(object.hasattr(pyo3::intern!(object.py(), "__array_interface__"))?)
}

/// A tensor over the memory of a NumPy array. It is copied only if its dtype or layout is not supported.
pub fn from_numpy(array: &Bound<'_, PyAny>, copy: Copy) -> Result<Tensor> {
    let numpy = array.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (array,))?;
    let dtype = array.getattr("dtype")?;
    let name = dtype.getattr("name")?.extract::<String>()?;
    let known = DType::parse(&name).map_err(|_| {
        Error::type_(format!(
            "a NumPy array of dtype {name} can't be a tensor; convert it first, for example with .astype('float32')"
        ))
    })?;
    if array.getattr("ndim")?.extract::<usize>()? == 0 {
        // Buffers without dimensions have no shape pointer.
        return Ok(from_numpy(&array.call_method1("reshape", (1,))?, copy)?.reshape_view(&[])?);
    }
    let is_native = dtype.getattr("isnative")?.is_truthy()?;
    let strides: Vec<isize> = array.getattr("strides")?.extract()?;
    let is_even = strides.iter().all(|s| s % known.size() as isize == 0);
    if !is_native || !is_even || !array.getattr("flags")?.getattr("aligned")?.is_truthy()? {
        if copy == Copy::Never {
            let what = "its byte order or layout is none that tensors have";
            return Err(Error::value(format!("copy=False, but {what}: it can only be copied")).into());
        }
        let native = dtype.call_method1("newbyteorder", ("=",))?;
        return from_numpy(&array.call_method1("astype", (native,))?, copy);
    }
    if known == DType::Bf16 {
        // NumPy's buffers don't support bfloat16.
        return Ok(buffer::import(&array.call_method1("view", ("uint16",))?)?.bits_as(DType::Bf16));
    }
    match own(&array, known, &strides)? {
        Some(tensor) => Ok(tensor),
        None => buffer::import(&array),
    }
}

/// If the array is a view of a tensor's memory: that tensor with the array's layout.
fn own(array: &Bound<'_, PyAny>, dtype: DType, strides: &[isize]) -> Result<Option<Tensor>> {
    let mut base = array.getattr("base")?;
    while base.hasattr("base")? && !base.is_instance_of::<PyMemoryView>() {
        base = base.getattr("base")?;
    }
    if !base.is_instance_of::<PyMemoryView>() {
        return Ok(None);
    }
    let owner = base.getattr("obj")?;
    let Ok(tensor) = owner.cast::<PyTensor>() else { return Ok(None) };
    let tensor = tensor.get().core()?;
    let is_writable = array.getattr("flags")?.getattr("writeable")?.is_truthy()?;
    let first: usize = array.getattr("__array_interface__")?.get_item("data")?.get_item(0)?.extract()?;
    let start = first.wrapping_sub(tensor.storage().data() as usize);
    let size = dtype.size();
    if tensor.dtype() != dtype || is_writable != tensor.storage().is_writable() || !start.is_multiple_of(size) {
        return Ok(None);
    }
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let strides = strides.iter().map(|s| s / size as isize).collect();
    // SAFETY: views of NumPy stay within the memory that they were made from, which is the tensor's.
    Ok(Some(unsafe { Tensor::from_parts(tensor.storage().clone(), shape.into(), strides, start / size, dtype) }))
}

trait BitsAs {
    fn bits_as(&self, dtype: DType) -> Tensor;
}

impl BitsAs for Tensor {
    /// The same bits as elements of another dtype with the same size.
    fn bits_as(&self, dtype: DType) -> Tensor {
        debug_assert_eq!(self.dtype().size(), dtype.size());
        let strides = self.strides().iter().copied().collect();
        // SAFETY: the window is that of a valid tensor, and every pattern of 16 bits is a bfloat16.
        unsafe { Tensor::from_parts(self.storage().clone(), self.shape().clone(), strides, self.offset(), dtype) }
    }
}

/// A tensor of a number, or of lists and tuples of numbers.
fn nested(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> Result<Tensor> {
    let mut walk = Walk { shape: Vec::new(), leaves: Vec::new(), closed: false };
    walk.visit(object, &mut Vec::new())?;
    let dtype = match dtype {
        Some(dtype) => {
            walk.leaves.iter().try_for_each(|n| n.check(dtype))?;
            dtype
        }
        None => {
            let dtypes = walk.leaves.iter().map(|n| n.dtype());
            let dtype = dtypes.reduce(|a, b| {
                if a == DType::U64 && b == DType::I64 || a == DType::I64 && b == DType::U64 {
                    DType::U64
                } else {
                    a.promote(b)
                }
            });
            let dtype = dtype.unwrap_or(DType::F32);
            walk.leaves.iter().try_for_each(|n| n.check(dtype))?;
            dtype
        }
    };
    let out = Tensor::empty(walk.shape, dtype, minitensor::Device::Cpu)?;
    with_dtype!(dtype, T => {
        let data = out.data_ptr().cast::<T>();
        for (i, number) in walk.leaves.iter().enumerate() {
            // SAFETY: the tensor was just allocated for `n` elements, and no other code has access to it yet.
            unsafe { data.add(i).write(number.cast()) }
        }
    });
    Ok(out)
}

/// The state of a traversal of nested lists.
struct Walk {
    shape: Vec<usize>,
    leaves: Vec<Number>,
    /// True after the first number, which determines the number of dimensions.
    closed: bool,
}

impl Walk {
    fn visit(&mut self, object: &Bound<'_, PyAny>, path: &mut Vec<usize>) -> Result<()> {
        let depth = path.len();
        if depth > MAX_DEPTH {
            return Err(Error::value(format!("lists nested more than {MAX_DEPTH} deep make no tensor")).into());
        }
        let Some(items) = children(object)? else {
            let number = leaf(object, path)?;
            if !self.closed && depth < self.shape.len() || self.closed && depth != self.shape.len() {
                return Err(ragged(path, "is a number", "is a list"));
            }
            if !self.closed {
                // The first number determines the number of elements.
                self.closed = true;
                self.leaves = try_vec(Shape::from(self.shape.as_slice()).checked_numel()?)?;
            }
            if self.leaves.len() == self.leaves.capacity() {
                self.leaves.try_reserve(1).map_err(|_| Error::memory("can't allocate the numbers of nested lists"))?;
            }
            self.leaves.push(number);
            return Ok(());
        };
        match self.shape.get(depth) {
            None if self.closed => return Err(ragged(path, "is a list", "is a number")),
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

fn place(path: &[usize]) -> String {
    path.iter().map(|i| format!("[{i}]")).collect()
}

#[cold]
fn ragged(path: &[usize], here: &str, elsewhere: &str) -> crate::error::Raised {
    let place = place(path);
    Error::value(format!(
        "ragged nested lists: data{place} {here} where the one before it {elsewhere}; a tensor's rows have one length"
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
            t.get().refuse_to_forget_gradient("put into a list")?;
        }
        return Items::of(&object.call_method0("tolist")?).map(Some);
    }
    let is_sequence =
        !object.is_instance_of::<PyString>() && object.hasattr("__len__")? && object.hasattr("__getitem__")?;
    if is_sequence && !array && scalar::read(object)?.is_none() && !object.hasattr("keys")? {
        return Items::of(object).map(Some);
    }
    Ok(None)
}

fn leaf(object: &Bound<'_, PyAny>, path: &[usize]) -> Result<Number> {
    if let Some(number) = scalar::read(object)? {
        return Ok(number);
    }
    if let Ok(t) = object.cast::<PyTensor>() {
        t.get().refuse_to_forget_gradient("put into a list")?;
    }
    if (object.is_instance_of::<PyTensor>() || is_numpy(object)?)
        && let Some(number) = scalar::read(&object.call_method0("item")?)?
    {
        return Ok(number);
    }
    let class = object.get_type().fully_qualified_name()?;
    let at = if path.is_empty() { String::new() } else { format!(" at data{}", place(path)) };
    Err(Error::type_(format!(
        "a tensor is made of numbers, nested lists or tuples of numbers, NumPy arrays, or objects with __dlpack__ or a buffer, \
         got {class}{at}"
    ))
    .into())
}
