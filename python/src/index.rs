//! `x[…]` and `x[…] = v`: slices, numbers, `None`, `...`, integer tensors and masks.

use minitensor::dtype::Kind;
use minitensor::error::counted;
use minitensor::op::Value;
use minitensor::tensor::try_vec;
use minitensor::{DType, Error, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyTuple};

use crate::data::{self, Copy};
use crate::error::{Result, guarded};
use crate::iterator::TensorIterator;
use crate::scalar;
use crate::tensor::{PyTensor, op};

/// One part of an index.
enum Part {
    /// An integer: removes the axis.
    At(i64),
    Slice(Option<i64>, Option<i64>, i64),
    /// `None`: a new axis.
    New,
    Ellipsis,
    /// Integers: selects these elements of the axis.
    Positions(Tensor),
    /// A mask over one or more axes.
    Mask(Tensor),
}

impl Part {
    fn read(object: &Bound<'_, PyAny>) -> Result<Part> {
        if object.is_none() {
            return Ok(Part::New);
        }
        if object.is_exact_instance_of::<PyInt>() {
            return Part::at(object);
        }
        if object.is_instance_of::<PyEllipsis>() {
            return Ok(Part::Ellipsis);
        }
        if let Ok(slice) = object.cast::<PySlice>() {
            return Part::slice(slice);
        }
        let is_array = object.is_instance_of::<PyTensor>() || data::is_numpy(object)?;
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyBool>() || is_array {
            let index = data::tensor(object, None, Copy::IfNeeded)?;
            return match index.dtype().kind() {
                Kind::Bool => Ok(Part::Mask(index)),
                Kind::Signed | Kind::Unsigned if index.ndim() == 0 => Ok(Part::At(index.cast(DType::I64)?.item()?)),
                Kind::Signed | Kind::Unsigned => Ok(Part::Positions(index.cast(DType::I64)?)),
                _ if index.numel() == 0 && object.is_instance_of::<PyList>() => {
                    Ok(Part::Positions(index.cast(DType::I64)?))
                }
                _ => Err(Error::index(format!("an index is made of whole numbers or booleans, not {}", index.dtype()))
                    .into()),
            };
        }
        match object.call_method0("__index__") {
            Ok(at) => Part::at(&at),
            Err(_) => Err(PyTypeError::new_err(format!(
                "a tensor is indexed by whole numbers, slices, None, '...', integer or boolean tensors, got {}",
                object.get_type().name()?
            ))
            .into()),
        }
    }

    fn at(number: &Bound<'_, PyAny>) -> Result<Part> {
        let beyond = |_| Error::index(format!("index {number} is beyond any axis"));
        Ok(Part::At(number.extract().map_err(beyond)?))
    }

    fn slice(slice: &Bound<'_, PySlice>) -> Result<Part> {
        let bound = |name: &str| -> Result<Option<i64>> {
            let value = slice.getattr(name)?;
            if value.is_none() {
                return Ok(None);
            }
            let value = value
                .call_method0("__index__")
                .map_err(|_| PyTypeError::new_err(format!("a slice's {name} must be a whole number")))?;
            // A bound that exceeds 64 bits is beyond every axis.
            Ok(Some(value.extract().unwrap_or(if value.gt(0)? { i64::MAX / 4 } else { i64::MIN / 4 })))
        };
        let step = bound("step")?.unwrap_or(1);
        if step == 0 {
            return Err(Error::value("a slice's step must not be 0").into());
        }
        Ok(Part::Slice(bound("start")?, bound("stop")?, step))
    }

    /// The number of axes of the tensor that it uses.
    fn axes(&self) -> usize {
        match self {
            Part::New | Part::Ellipsis => 0,
            Part::Mask(mask) => mask.ndim(),
            _ => 1,
        }
    }

    fn is_advanced(&self) -> bool {
        matches!(self, Part::Positions(_) | Part::Mask(_))
    }
}

/// The parts of an index, with full slices for the axes that it doesn't name.
fn parts(tensor: &Tensor, index: &Bound<'_, PyAny>) -> Result<Vec<Part>> {
    let mut parts = match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|o| Part::read(&o)).collect::<Result<Vec<_>>>()?,
        Err(_) => vec![Part::read(index)?],
    };
    let taken: usize = parts.iter().map(Part::axes).sum();
    let Some(rest) = tensor.ndim().checked_sub(taken) else {
        return Err(Error::index(format!(
            "{taken} indices for a tensor of {}, shape {}",
            counted(tensor.ndim(), "dimension"),
            tensor.shape()
        ))
        .into());
    };
    let dots: Vec<usize> =
        parts.iter().enumerate().filter(|(_, p)| matches!(p, Part::Ellipsis)).map(|(i, _)| i).collect();
    if dots.len() > 1 {
        return Err(Error::index("an index can have only one '...'").into());
    }
    // If '...' expands to no axis it stays, because it still separates the parts on its two sides.
    if rest > 0 {
        let at = dots.first().copied().unwrap_or(parts.len());
        let whole = (0..rest).map(|_| Part::Slice(None, None, 1));
        parts.splice(at..(at + dots.len()), whole);
    }
    Ok(parts)
}

/// How an index is applied: with recording, for reading, or as plain views, for writing.
trait Steps {
    fn slice(
        &self,
        x: &Tensor,
        axis: usize,
        start: Option<i64>,
        stop: Option<i64>,
        step: i64,
    ) -> minitensor::Result<Tensor>;
    fn drop_axis(&self, x: &Tensor, axis: usize) -> minitensor::Result<Tensor>;
    fn new_axis(&self, x: &Tensor, axis: usize) -> minitensor::Result<Tensor>;
}

struct Recorded;

impl Steps for Recorded {
    fn slice(
        &self,
        x: &Tensor,
        axis: usize,
        start: Option<i64>,
        stop: Option<i64>,
        step: i64,
    ) -> minitensor::Result<Tensor> {
        let attr = |v: Option<i64>| Value::Attr(v.into());
        op!("slice").call(&[x.into(), axis.into(), attr(start), attr(stop), step.into()], &[])
    }
    fn drop_axis(&self, x: &Tensor, axis: usize) -> minitensor::Result<Tensor> {
        op!("squeeze").call(&[x.into(), vec![axis as i64].into()], &[])
    }
    fn new_axis(&self, x: &Tensor, axis: usize) -> minitensor::Result<Tensor> {
        op!("unsqueeze").call(&[x.into(), axis.into()], &[])
    }
}

struct Views;

impl Steps for Views {
    fn slice(
        &self,
        x: &Tensor,
        axis: usize,
        start: Option<i64>,
        stop: Option<i64>,
        step: i64,
    ) -> minitensor::Result<Tensor> {
        let _off = minitensor::NoGrad::new();
        Recorded.slice(&x.detach(), axis, start, stop, step)
    }
    fn drop_axis(&self, x: &Tensor, axis: usize) -> minitensor::Result<Tensor> {
        x.squeeze_view(axis as i64)
    }
    fn new_axis(&self, x: &Tensor, axis: usize) -> minitensor::Result<Tensor> {
        x.unsqueeze_view(axis as i64)
    }
}

/// The advanced parts of an index, each with its axis.
struct Advanced {
    indices: Vec<(usize, Tensor)>,
    /// True if no other part is between them: then their axes stay in place. Otherwise their axes come first, as in
    /// NumPy.
    are_adjacent: bool,
}

impl Advanced {
    fn of(parts: &[Part]) -> Advanced {
        let is_among = |part: &Part| part.is_advanced() || matches!(part, Part::At(_));
        let places: Vec<usize> = (0..parts.len()).filter(|i| is_among(&parts[*i])).collect();
        Advanced { indices: Vec::new(), are_adjacent: places.windows(2).all(|w| w[1] == w[0] + 1) }
    }

    fn push(&mut self, axis: usize, index: Tensor) {
        self.indices.push((axis, index));
    }

    /// The order of axes with theirs first and the others after them, and the position of their axes in the result.
    fn order(&self, rank: usize) -> (Vec<i64>, usize) {
        let taken: Vec<usize> = self.indices.iter().map(|(axis, _)| *axis).collect();
        let others = (0..rank).filter(|axis| !taken.contains(axis));
        let order = taken.iter().copied().chain(others).map(|axis| axis as i64).collect();
        (order, if self.are_adjacent { taken[0] } else { 0 })
    }
}

/// The tensor after the basic parts of an index, and the remaining advanced parts.
fn apply(tensor: &Tensor, parts: Vec<Part>, steps: &impl Steps) -> Result<(Tensor, Advanced)> {
    let has_advanced = parts.iter().any(Part::is_advanced);
    let mut x = tensor.clone();
    let mut advanced = Advanced::of(&parts);
    let (mut axis, mut source) = (0, 0);
    for part in parts {
        let size = tensor.shape().get(source).copied().unwrap_or(0);
        source += part.axes();
        match part {
            Part::New => {
                x = steps.new_axis(&x, axis)?;
                axis += 1;
            }
            Part::Slice(None, None, 1) => axis += 1,
            Part::Slice(start, stop, step) => {
                x = steps.slice(&x, axis, start, stop, step)?;
                axis += 1;
            }
            Part::At(at) => {
                let n = size as i64;
                if !(-n..n).contains(&at) {
                    return Err(Error::index(format!(
                        "index {at} is out of range for axis {} of size {size}",
                        source - 1
                    ))
                    .into());
                }
                let at = if at < 0 { at + n } else { at };
                if has_advanced {
                    // Next to arrays of positions, an integer is an array of positions, too.
                    advanced.push(axis, Tensor::scalar(at));
                    axis += 1;
                } else {
                    x = steps.drop_axis(&steps.slice(&x, axis, Some(at), Some(at + 1), 1)?, axis)?;
                }
            }
            Part::Positions(positions) => {
                advanced.push(axis, positions);
                axis += 1;
            }
            Part::Mask(mask) => {
                let covered = &tensor.shape()[source - mask.ndim()..source];
                if covered != mask.shape().dims() {
                    return Err(Error::index(format!(
                        "a mask of shape {} indexes axes of shape {}; they must be equal",
                        mask.shape(),
                        minitensor::Shape::from(covered)
                    ))
                    .into());
                }
                if mask.ndim() == 0 {
                    // A single truth value selects everything or nothing, along a new axis.
                    x = steps.new_axis(&x, axis)?;
                    let count = i64::from(mask.item::<bool>()?);
                    advanced.push(axis, Tensor::from_vec(vec![0i64; count as usize], [count as usize])?);
                    axis += 1;
                    continue;
                }
                let found = op!("nonzero").call(&[(&mask).into()], &[])?;
                for d in 0..mask.ndim() {
                    advanced.push(axis, found.slice_view(1, d, 1, 1)?.squeeze_view(1)?);
                    axis += 1;
                }
            }
            Part::Ellipsis => {}
        }
    }
    Ok((x, advanced))
}

/// Applies the advanced part of an index, with recording.
fn gather(x: &Tensor, advanced: &Advanced) -> Result<Tensor> {
    let (order, place) = advanced.order(x.ndim());
    let front = op!("permute_dims").call(&[x.into(), order.into()], &[])?;
    let indices = Value::Tensors(advanced.indices.iter().map(|(_, t)| t).collect());
    let picked = op!("index").call(&[(&front).into(), indices], &[])?;
    let new = picked.ndim() + advanced.indices.len() - x.ndim();
    let moved: Vec<i64> =
        (new..new + place).chain(0..new).chain(new + place..picked.ndim()).map(|a| a as i64).collect();
    if place == 0 { Ok(picked) } else { Ok(op!("permute_dims").call(&[(&picked).into(), moved.into()], &[])?) }
}

fn get(tensor: &Tensor, index: &Bound<'_, PyAny>) -> Result<Tensor> {
    let (x, advanced) = apply(tensor, parts(tensor, index)?, &Recorded)?;
    if !advanced.indices.is_empty() {
        return gather(&x, &advanced);
    }
    // An index that changes nothing still returns a new tensor.
    if x.shape() == tensor.shape() { Ok(op!("reshape").call(&[(&x).into(), sizes(&x).into()], &[])?) } else { Ok(x) }
}

fn sizes(x: &Tensor) -> Vec<i64> {
    x.shape().iter().map(|s| *s as i64).collect()
}

/// The position of each element, as a tensor of integers.
fn places(tensor: &Tensor) -> Result<Tensor> {
    let mut all = try_vec(tensor.numel())?;
    all.extend(0..tensor.numel() as i64);
    Ok(Tensor::from_vec(all, tensor.shape().clone())?)
}

/// Converts the assigned value to the target's dtype and shape.
fn fitted(value: &Tensor, target: &Tensor) -> Result<Tensor> {
    let value = if value.dtype() == target.dtype() {
        value.clone()
    } else {
        op!("astype").call(&[value.into(), target.dtype().into()], &[])?
    };
    if value.shape().broadcast(target.shape()).as_ref() != Some(target.shape()) {
        return Err(Error::value(format!(
            "a value of shape {} can't be assigned to elements of shape {}",
            value.shape(),
            target.shape()
        ))
        .into());
    }
    Ok(op!("expand").call(&[(&value).into(), sizes(target).into()], &[])?)
}

fn set(tensor: &Tensor, index: &Bound<'_, PyAny>, value: &Tensor) -> Result<()> {
    let recorded = minitensor::autograd::is_grad_enabled() && (tensor.requires_grad() || value.requires_grad());
    let parts = parts(tensor, index)?;
    if recorded && parts.iter().any(Part::is_advanced) {
        return scatter(tensor, index, value);
    }
    let (view, advanced) = if recorded { apply(tensor, parts, &Recorded)? } else { apply(tensor, parts, &Views)? };
    if !advanced.indices.is_empty() {
        return scatter(tensor, index, value);
    }
    // `tensor[…] += y` has already modified the memory: the assigned value is its own target.
    if view.is_same_window(value) {
        return Ok(());
    }
    // If the memory overlaps, copy the value first, so that it is read before it is overwritten.
    let apart = if view.may_overlap(value) { Some(op!("clone").call(&[value.into()], &[])?) } else { None };
    Ok(copy_into(&view, &fitted(apart.as_ref().unwrap_or(value), &view)?)?)
}

/// Assigns element by element: the value of `source[place]` is written where the mask is set.
fn scatter(tensor: &Tensor, index: &Bound<'_, PyAny>, value: &Tensor) -> Result<()> {
    let at = get(&places(tensor)?, index)?;
    let source = fitted(value, &Tensor::empty(at.shape().clone(), tensor.dtype(), minitensor::Device::Meta)?)?;
    let flat = op!("reshape").call(&[(&source).into(), vec![-1i64].into()], &[]);
    let flat = if source.numel() == 0 { return Ok(()) } else { flat? };
    let (mut mask, mut place): (Vec<bool>, Vec<i64>) = (try_vec(tensor.numel())?, try_vec(tensor.numel())?);
    mask.resize(tensor.numel(), false);
    place.resize(tensor.numel(), 0);
    for (k, at) in at.to_vec::<i64>()?.into_iter().enumerate() {
        mask[at as usize] = true;
        place[at as usize] = k as i64;
    }
    let mask = Tensor::from_vec(mask, tensor.shape().clone())?;
    let place = Tensor::from_vec(place, tensor.shape().clone())?;
    let spread = op!("take").call(&[(&flat).into(), (&place).into(), 0i64.into()], &[])?;
    let whole = op!("where").call(&[(&mask).into(), (&spread).into(), tensor.into()], &[])?;
    Ok(copy_into(tensor, &whole)?)
}

fn copy_into(target: &Tensor, source: &Tensor) -> minitensor::Result<()> {
    let op = op!("copy_").get()?;
    minitensor::dispatch(op, &[target.into(), source.into()], &[]).map(|_| ())
}

#[pymethods]
impl PyTensor {
    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> Result<PyTensor> {
        let core = self.core()?;
        Ok(guarded("indexing", || get(core, index).map_err(Error::from))?.into())
    }

    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Result<()> {
        let core = self.core()?;
        let value = match (value.cast::<PyTensor>(), scalar::read(value)?) {
            (Ok(t), _) => t.get().core()?.clone(),
            (_, Some(number)) => number.tensor(core.dtype())?,
            _ => data::tensor(value, None, Copy::IfNeeded)?,
        };
        Ok(guarded("assignment", || set(core, index, &value).map_err(Error::from))?)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Result<TensorIterator> {
        TensorIterator::of(slf)
    }

    fn __contains__(&self, value: &Bound<'_, PyAny>) -> Result<bool> {
        let core = self.core()?.detach();
        let value = data::tensor(value, None, Copy::IfNeeded)?;
        let equal = op!("equal").call(&[(&core).into(), (&value).into()], &[])?;
        Ok(equal.to_vec::<bool>()?.contains(&true))
    }
}
