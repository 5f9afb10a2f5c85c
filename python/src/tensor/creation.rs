//! Functions that create tensors: zeros, ranges, random numbers.

use minitensor::dtype::Kind;
use minitensor::kernels::Const;
use minitensor::random::{Block, next_key};
use minitensor::{DType, Device, Error, Shape, Tensor, interrupt, with_dtype};
use minitensor_ops::random as ops;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::class::PyTensor;
use super::interchange::array_like::{self, Copy};
use super::interchange::number::{self, Number};
use super::interchange::numbers::ints;
use super::interchange::numpy::{self, is_numpy};
use crate::device::{self, DeviceLike};
use crate::dtype;
use crate::error::{Exception, Result, catch_panics};
use crate::integer::Integer;
use crate::runtime::call;

type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The number of rows of a matrix between two checks for signals.
const SIGNAL_INTERVAL: i64 = 1 << 16;

/// A shape: an integer, or a list or tuple of integers.
fn shape(given: &Bound<'_, PyAny>) -> Result<Shape> {
    let sizes = ints(given)?.ok_or_else(|| {
        let shown = given.repr().map_or_else(|_| "something else".into(), |r| r.to_string());
        Error::type_(format!("a shape must be an integer or a tuple of integers, got {shown}"))
    })?;
    Ok(Shape::from_sizes(&sizes)?)
}

/// `zeros(2, 3)` is `zeros((2, 3))`.
fn shape_of(given: &Bound<'_, PyTuple>) -> Result<Shape> {
    match given.len() {
        1 => shape(&given.get_item(0)?),
        _ => shape(given.as_any()),
    }
}

fn finish(tensor: Tensor, requires_grad: bool) -> Result<PyTensor> {
    if requires_grad {
        tensor.set_requires_grad(true)?;
    }
    Ok(tensor.into())
}

fn number_of(value: &Bound<'_, PyAny>, what: &str) -> Result<Number> {
    if let Ok(t) = value.cast::<PyTensor>() {
        t.get().expect_no_grad(&format!(
            "{what} is a plain number, so the gradient of the tensor would be lost; pass t.item(), or expand() the tensor"
        ))?;
    }
    let value = if value.is_instance_of::<PyTensor>() || is_numpy(value)? {
        if value.getattr("size")?.extract::<usize>()? != 1 {
            let shape = value.getattr("shape")?;
            return Err(Error::value(format!("{what} must be a single number, got an array of shape {shape}")).into());
        }
        value.call_method0("item")?
    } else {
        value.clone()
    };
    number::read(&value)?.ok_or_else(|| {
        let class = value.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
        Error::type_(format!("{what} must be a number, got {class}")).into()
    })
}

/// A number without an imaginary part.
fn real(number: Number) -> Option<f64> {
    match number {
        Number::Real(Const::Int(v)) => Some(v as f64),
        Number::Real(Const::Float(v)) => Some(v),
        _ => None,
    }
}

fn filled(py: Python<'_>, shape: Shape, value: Number, dtype: DType, device: Device) -> Result<Tensor> {
    let elements = shape.checked_numel()?;
    match value {
        Number::Real(value) => {
            Number::Real(value).check(dtype)?;
            call::create(py, "full()", elements, || Tensor::full(shape, value, dtype, device))
        }
        complex => {
            let one = complex.tensor(dtype)?;
            call::create(py, "full()", elements, || one.to_device(device)?.expand_view(&sizes(&shape))?.copied())
        }
    }
}

type Make = fn(Shape, DType, Device) -> minitensor::Result<Tensor>;

/// Functions that take a shape, and their `_like` variants.
macro_rules! constant {
    ($($(#[$doc:meta])* $name:ident $like:ident $like_doc:literal => $make:expr;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (*shape, dtype=None, device=None, requires_grad=false))]
            fn $name(shape: &Bound<'_, PyTuple>, dtype: Any<'_, '_>, device: Option<DeviceLike>, requires_grad: bool) -> Result<PyTensor> {
                let dtype = dtype.map_or(Ok(DType::F32), dtype::parse)?;
                let make: Make = $make;
                let (py, shape, device) = (shape.py(), shape_of(shape)?, device::or_cpu(device));
                finish(call::create(py, stringify!($name), shape.checked_numel()?, || make(shape, dtype, device))?, requires_grad)
            }

            #[doc = $like_doc]
            #[pyfunction]
            #[pyo3(signature = (x, /, *, dtype=None, device=None, requires_grad=false))]
            fn $like(x: &Bound<'_, PyTensor>, dtype: Any<'_, '_>, device: Option<DeviceLike>, requires_grad: bool) -> Result<PyTensor> {
                let (py, x) = (x.py(), x.get().core()?);
                let dtype = dtype.map_or(Ok(x.dtype()), dtype::parse)?;
                let device = device.map_or(x.device(), Device::from);
                let make: Make = $make;
                let shape = x.shape().clone();
                finish(call::create(py, stringify!($like), shape.numel(), || make(shape, dtype, device))?, requires_grad)
            }
        )*

        fn install_constants(m: &Bound<'_, PyModule>) -> Result<()> {
            $(
                m.add_function(wrap_pyfunction!($name, m)?)?;
                m.add_function(wrap_pyfunction!($like, m)?)?;
            )*
            Ok(())
        }
    };
}

constant! {
    /// Returns zeros of a shape: `zeros((2, 3))` or `zeros(2, 3)`.
    zeros zeros_like "Zeros of the shape and dtype of `x`." => |s, d, v| Tensor::zeros(s, d, v);
    /// Returns ones of a shape.
    ones ones_like "Ones of the shape and dtype of `x`." => |s, d, v| Tensor::ones(s, d, v);
    /// Returns a tensor of a shape with arbitrary content.
    empty empty_like "A tensor of the shape and dtype of `x`, with any content." => |s, d, v| uninitialized(s, d, v);
    /// Returns random numbers, uniform in [0, 1).
    rand rand_like "Random numbers, uniform in [0, 1), of the shape and dtype of `x`." => |s, d, v| floats(ops::uniform::call, s, d, v);
    /// Returns random numbers of the standard normal distribution.
    randn randn_like "Random numbers of the standard normal distribution, of the shape and dtype of `x`." => |s, d, v| floats(ops::normal::call, s, d, v);
}

fn sizes(shape: &Shape) -> Vec<i64> {
    shape.iter().map(|size| *size as i64).collect()
}

/// A random op of floats.
type Draw = fn(&Tensor, &[i64], DType) -> minitensor::Result<Tensor>;

/// Calls a random op with the next key of the global generator.
fn floats(draw: Draw, shape: Shape, dtype: DType, device: Device) -> minitensor::Result<Tensor> {
    draw(&next_key(shape.checked_numel()?, Block::Floats, device)?, &sizes(&shape), dtype)
}

/// Uninitialized memory, except for booleans: not every byte is a valid boolean.
fn uninitialized(shape: Shape, dtype: DType, device: Device) -> minitensor::Result<Tensor> {
    if dtype == DType::Bool { Tensor::zeros(shape, dtype, device) } else { Tensor::empty(shape, dtype, device) }
}

/// Returns a tensor of a shape with the same value everywhere.
#[pyfunction]
#[pyo3(signature = (shape, fill_value, *, dtype=None, device=None, requires_grad=false))]
fn full(
    shape: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Any<'_, '_>,
    device: Option<DeviceLike>,
    requires_grad: bool,
) -> Result<PyTensor> {
    let value = number_of(fill_value, "fill_value")?;
    let dtype = dtype.map_or(Ok(value.dtype()), dtype::parse)?;
    finish(filled(shape.py(), self::shape(shape)?, value, dtype, device::or_cpu(device))?, requires_grad)
}

/// Returns a tensor of the shape and dtype of `x` with the same value everywhere.
#[pyfunction]
#[pyo3(signature = (x, /, fill_value, *, dtype=None, device=None, requires_grad=false))]
fn full_like(
    x: &Bound<'_, PyTensor>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Any<'_, '_>,
    device: Option<DeviceLike>,
    requires_grad: bool,
) -> Result<PyTensor> {
    let (py, x) = (x.py(), x.get().core()?);
    let dtype = dtype.map_or(Ok(x.dtype()), dtype::parse)?;
    let device = device.map_or(x.device(), Device::from);
    finish(filled(py, x.shape().clone(), number_of(fill_value, "fill_value")?, dtype, device)?, requires_grad)
}

/// Returns the numbers from `start` (0 if only one argument is given) to `stop`, excluding `stop`, in steps of `step`.
///
/// >>> import minitensor as mt
/// >>> mt.arange(3)
/// tensor([0, 1, 2])
#[pyfunction]
#[pyo3(signature = (start, /, stop=None, step=None, *, dtype=None, device=None, requires_grad=false))]
fn arange(
    start: &Bound<'_, PyAny>,
    stop: Any<'_, '_>,
    step: Any<'_, '_>,
    dtype: Any<'_, '_>,
    device: Option<DeviceLike>,
    requires_grad: bool,
) -> Result<PyTensor> {
    let (py, zero) = (start.py(), Number::Real(Const::Int(0)));
    let first = number_of(start, "start")?;
    let (start, stop) = match stop {
        Some(stop) => (first, number_of(stop, "stop")?),
        None => (zero, first),
    };
    let step = step.map_or(Ok(Number::Real(Const::Int(1))), |s| number_of(s, "step"))?;
    let whole = |n: Number| if let Number::Real(Const::Int(v)) = n { Some(v) } else { None };
    let real = |n: Number, what: &str| match real(n).filter(|v| v.is_finite()) {
        Some(v) => Ok(v),
        None => Err(Exception::from(Error::value(format!("arange: {what} must be a finite real number, got {n}")))),
    };
    let (a, b, c) = (real(start, "start")?, real(stop, "stop")?, real(step, "step")?);
    if c == 0.0 {
        return Err(Error::value("arange: step must not be 0").into());
    }
    let all_whole = [start, stop, step].iter().all(|n| whole(*n).is_some());
    let dtype = dtype.map_or(Ok(if all_whole { DType::I64 } else { DType::F32 }), dtype::parse)?;
    let length = match (whole(start), whole(stop), whole(step)) {
        // Integers are counted as integers, because not all of them are floats.
        (Some(a), Some(b), Some(c)) => {
            let is_cut = (b - a) % c != 0 && (b > a) == (c > 0);
            let n = ((b - a) / c + i128::from(is_cut)).max(0);
            let last = a + c * (n - 1);
            if n > 0 && [a, last].iter().any(|v| i64::try_from(*v).is_err()) {
                return Err(Error::value(format!("arange: the values from {a} to {last} do not fit into int64")).into());
            }
            let is_integer = matches!(dtype.kind(), Kind::Signed | Kind::Unsigned);
            if n > 0 && is_integer && [a, last].iter().any(|v| !dtype.integer_range().contains(v)) {
                return Err(
                    Error::value(format!("arange: the values from {a} to {last} do not fit into {dtype}")).into()
                );
            }
            n as f64
        }
        _ => ((b - a) / c).ceil().max(0.0),
    };
    let shape = Shape::from([length as usize]);
    let elements = shape.checked_numel()?;
    let whole = if all_whole { whole(start).zip(whole(step)) } else { None };
    let make = || match whole {
        Some((a, c)) => Tensor::from_fn(shape, |i| [(a + c * i as i128) as i64]),
        None => Tensor::from_fn(shape, |i| [a + c * i as f64]),
    };
    finish(converted(py, "arange", elements, make, dtype, device)?, requires_grad)
}

fn size(function: &str, argument: &str, n: &Integer) -> Result<usize> {
    let n = n.get(function, argument)?;
    usize::try_from(n).map_err(|_| Error::value(format!("{function}: {argument} must be at least 0, got {n}")).into())
}

/// Creates a tensor of this many elements, and converts it to a dtype and a device.
fn converted(
    py: Python<'_>,
    name: &str,
    elements: usize,
    make: impl FnOnce() -> minitensor::Result<Tensor> + Send,
    dtype: DType,
    device: Option<DeviceLike>,
) -> Result<Tensor> {
    let device = device::or_cpu(device);
    call::create(py, name, elements, || {
        let tensor = make()?;
        let tensor = if tensor.dtype() == dtype { tensor } else { tensor.cast(dtype)? };
        if device == tensor.device() { Ok(tensor) } else { tensor.to_device(device) }
    })
}

/// Returns `num` evenly spaced numbers from `start` to `stop`, inclusive (`endpoint=False` excludes `stop`).
#[pyfunction]
#[pyo3(signature = (start, stop, /, num, *, dtype=None, device=None, endpoint=true, requires_grad=false))]
fn linspace(
    start: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    num: Integer,
    dtype: Any<'_, '_>,
    device: Option<DeviceLike>,
    endpoint: bool,
    requires_grad: bool,
) -> Result<PyTensor> {
    let dtype = dtype.map_or(Ok(DType::F32), dtype::parse)?;
    let (py, num) = (start.py(), size("linspace", "num", &num)?);
    let limit = |value: &Bound<'_, PyAny>, what: &str| -> Result<f64> {
        let number = match number_of(value, what)? {
            Number::Real(Const::Bool(v)) => Number::Real(Const::Int(v.into())),
            number => number,
        };
        Ok(real(number).ok_or_else(|| Error::type_(format!("linspace: {what} must be a real number, got {number}")))?)
    };
    let (start, stop) = (limit(start, "start")?, limit(stop, "stop")?);
    let parts = (if endpoint { num.saturating_sub(1) } else { num }).max(1) as f64;
    let step = (stop - start) / parts;
    let is_last = |i: usize| endpoint && num > 1 && i == num - 1;
    let at = |i: usize| if is_last(i) { stop } else { start + step * i as f64 };
    let ends = [0, num.saturating_sub(1)].into_iter().filter(|_| num > 0).map(at);
    if let Some(end) = ends.into_iter().find(|end| !dtype.holds(end.trunc())) {
        return Err(Error::value(format!(
            "linspace: {end} is out of the range of {dtype}; use a wider dtype, or other limits"
        ))
        .into());
    }
    let make = || Tensor::from_fn([num], |i| [at(i)]);
    finish(converted(py, "linspace", num, make, dtype, device)?, requires_grad)
}

/// Returns a matrix with ones on the `k`-th diagonal and zeros elsewhere.
#[pyfunction]
#[pyo3(signature = (n_rows, n_cols=None, /, *, k=Integer::Number(0), dtype=None, device=None, requires_grad=false), text_signature = "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None, requires_grad=False)")]
fn eye(
    py: Python<'_>,
    n_rows: Integer,
    n_cols: Option<Integer>,
    k: Integer,
    dtype: Any<'_, '_>,
    device: Option<DeviceLike>,
    requires_grad: bool,
) -> Result<PyTensor> {
    let dtype = dtype.map_or(Ok(DType::F32), dtype::parse)?;
    let n_rows = size("eye", "n_rows", &n_rows)?;
    let columns = n_cols.map_or(Ok(n_rows), |n| size("eye", "n_cols", &n))?;
    let k = k.get("eye", "k")?;
    let elements = Shape::from([n_rows, columns]).checked_numel()?;
    let one = Number::Real(minitensor::kernels::Const::Int(1));
    // The rows in which the diagonal is within the matrix.
    let first = k.saturating_neg().max(0);
    let end = (columns as i64).saturating_sub(k).min(n_rows as i64);
    let make = || {
        let out = Tensor::zeros([n_rows, columns], dtype, Device::Cpu)?;
        for row in first..end {
            if row % SIGNAL_INTERVAL == 0 {
                interrupt::check()?;
            }
            let at = (row * columns as i64 + row + k) as usize;
            // SAFETY: the tensor is contiguous, `at` is within it, and no other code has access to it yet.
            with_dtype!(dtype, T => unsafe { out.data_ptr().cast::<T>().add(at).write(one.cast()) });
        }
        Ok(out)
    };
    finish(converted(py, "eye", elements, make, dtype, device)?, requires_grad)
}

/// Returns random integers from `low` to `high`, excluding `high`; `randint(high, shape)` starts at 0.
#[pyfunction]
#[pyo3(signature = (low, high=None, shape=None, *, dtype=None, device=None))]
fn randint(
    py: Python<'_>,
    low: Integer,
    high: Any<'_, '_>,
    shape: Any<'_, '_>,
    dtype: Any<'_, '_>,
    device: Option<DeviceLike>,
) -> Result<PyTensor> {
    let high_of = |high: &Integer| high.get("randint", "high");
    let (low, high, shape) = match (high, shape) {
        (Some(high), Some(shape)) => {
            (low.get("randint", "low")?, high_of(&high.extract::<Integer>()?)?, self::shape(shape)?)
        }
        (Some(shape), None) | (None, Some(shape)) => (0, high_of(&low)?, self::shape(shape)?),
        (None, None) => {
            return Err(Error::type_(
                "randint: the shape is missing; call randint(low, high, shape) or randint(high, shape)",
            )
            .into());
        }
    };
    if low >= high {
        return Err(Error::value(format!("randint: low must be less than high, got {low} and {high}")).into());
    }
    let dtype = dtype.map_or(Ok(DType::I64), dtype::parse)?;
    if !matches!(dtype.kind(), Kind::Signed | Kind::Unsigned) {
        return Err(Error::type_(format!("randint supports integer dtypes only, got {dtype}")).into());
    }
    if !dtype.integer_range().contains(&low.into()) || !dtype.integer_range().contains(&(i128::from(high) - 1)) {
        return Err(Error::value(format!(
            "randint: the values from {low} to {} do not fit into {dtype}",
            i128::from(high) - 1
        ))
        .into());
    }
    let elements = shape.checked_numel()?;
    let key = next_key(elements, Block::Integer, device::or_cpu(device))?;
    let make = || ops::integers::call(&key, low, high, &sizes(&shape));
    finish(converted(py, "randint", elements, make, dtype, device)?, false)
}

/// Converts an object that holds numbers to a tensor. Shares its memory if possible (`copy=None`), never (`copy=True`),
/// or always, with an error if that is impossible (`copy=False`).
#[pyfunction]
#[pyo3(signature = (obj, /, *, dtype=None, device=None, copy=None))]
fn asarray<'py>(
    obj: &Bound<'py, PyAny>,
    dtype: Any<'_, 'py>,
    device: Option<DeviceLike>,
    copy: Option<bool>,
) -> Result<Bound<'py, PyAny>> {
    let dtype = dtype.map(dtype::parse).transpose()?;
    let copy = match copy {
        None => Copy::IfNeeded,
        Some(true) => Copy::Always,
        Some(false) => Copy::Never,
    };
    if let Ok(t) = obj.cast::<PyTensor>() {
        let core = t.get().core()?;
        let (dtype, device) = (dtype.unwrap_or(core.dtype()), device.map_or(core.device(), Device::from));
        // A copy has the history of the tensor.
        match ((dtype, device) == (core.dtype(), core.device()), copy) {
            (true, Copy::Always) => return Ok(obj.call_method0("clone")?),
            (true, _) => return Ok(obj.clone()),
            (false, Copy::Never) => {}
            (false, _) => return Ok(PyTensor::converted(t, dtype, device)?.into_bound(obj.py()).into_any()),
        }
    }
    let made = catch_panics("asarray()", || array_like::tensor(obj, dtype, copy).map_err(Error::from))?;
    let dtype = made.dtype();
    let made = converted(obj.py(), "asarray", made.numel(), || Ok(made), dtype, device)?;
    Ok(Bound::new(obj.py(), finish(made, false)?)?.into_any())
}

/// Returns a tensor that shares the memory of a NumPy array: a change of one changes the other.
#[pyfunction]
fn from_numpy(array: &Bound<'_, PyAny>) -> Result<PyTensor> {
    if !is_numpy(array)? {
        return Err(Error::type_(format!(
            "from_numpy takes a NumPy array, got {}; use mt.asarray() for other data",
            array.get_type().name()?
        ))
        .into());
    }
    Ok(numpy::from_numpy(array, Copy::IfNeeded)?.into())
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    install_constants(m)?;
    m.add_function(wrap_pyfunction!(full, m)?)?;
    m.add_function(wrap_pyfunction!(full_like, m)?)?;
    m.add_function(wrap_pyfunction!(arange, m)?)?;
    m.add_function(wrap_pyfunction!(linspace, m)?)?;
    m.add_function(wrap_pyfunction!(eye, m)?)?;
    m.add_function(wrap_pyfunction!(randint, m)?)?;
    m.add_function(wrap_pyfunction!(asarray, m)?)?;
    m.add_function(wrap_pyfunction!(from_numpy, m)?)?;
    Ok(())
}
