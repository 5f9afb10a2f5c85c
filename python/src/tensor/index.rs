//! `x[…]` and `x[…] = v`: slices, integers, `None`, `...`, integer tensors and masks.

use minitensor::op::Value;
use minitensor::tensor::try_vec;
use minitensor::{Error, Tensor};
use pyo3::prelude::*;

use super::class::{PyTensor, op};
use super::index_part::{Part, parts};
use super::interchange::array_like::{self, Copy};
use super::interchange::number;
use super::iterator::TensorIterator;
use crate::error::{Result, catch_panics};

/// The basic parts of an index as operations on a tensor: recorded ops for reading, plain views for writing.
trait Basic {
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

impl Basic for Recorded {
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

impl Basic for Views {
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
        let counts = |part: &Part| part.is_advanced() || matches!(part, Part::Integer(_));
        let positions: Vec<usize> = (0..parts.len()).filter(|i| counts(&parts[*i])).collect();
        Advanced { indices: Vec::new(), are_adjacent: positions.windows(2).all(|w| w[1] == w[0] + 1) }
    }

    /// Adds an index array. It may be on another device than the tensor.
    fn push(&mut self, axis: usize, index: &Tensor, tensor: &Tensor) -> Result<()> {
        self.indices.push((axis, index.to_device(tensor.device())?));
        Ok(())
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
fn apply(tensor: &Tensor, parts: Vec<Part>, basic: &impl Basic) -> Result<(Tensor, Advanced)> {
    let has_advanced = parts.iter().any(Part::is_advanced);
    let mut x = tensor.clone();
    let mut advanced = Advanced::of(&parts);
    let (mut axis, mut source) = (0, 0);
    for part in parts {
        let size = tensor.shape().get(source).copied().unwrap_or(0);
        source += part.axes();
        match part {
            Part::NewAxis => {
                x = basic.new_axis(&x, axis)?;
                axis += 1;
            }
            Part::Slice(None, None, 1) => axis += 1,
            Part::Slice(start, stop, step) => {
                x = basic.slice(&x, axis, start, stop, step)?;
                axis += 1;
            }
            Part::Integer(at) => {
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
                    // Next to index arrays, an integer is an index array, too.
                    advanced.push(axis, &Tensor::scalar(at), tensor)?;
                    axis += 1;
                } else {
                    x = basic.drop_axis(&basic.slice(&x, axis, Some(at), Some(at + 1), 1)?, axis)?;
                }
            }
            Part::Indices(indices) => {
                advanced.push(axis, &indices, tensor)?;
                axis += 1;
            }
            Part::Mask(mask) => {
                let covered = &tensor.shape()[source - mask.ndim()..source];
                if covered != mask.shape().dims() {
                    return Err(Error::index(format!(
                        "the mask has shape {}, but the axes that it indexes have shape {}; both must be equal",
                        mask.shape(),
                        minitensor::Shape::from(covered)
                    ))
                    .into());
                }
                if mask.ndim() == 0 {
                    // A single truth value selects everything or nothing, along a new axis.
                    x = basic.new_axis(&x, axis)?;
                    let count = i64::from(mask.item::<bool>()?);
                    let none_or_one = Tensor::from_vec(vec![0i64; count as usize], [count as usize])?;
                    advanced.push(axis, &none_or_one, tensor)?;
                    axis += 1;
                    continue;
                }
                let found = op!("nonzero").call(&[(&mask).into()], &[])?;
                for d in 0..mask.ndim() {
                    advanced.push(axis, &found.slice_view(1, d, 1, 1)?.squeeze_view(1)?, tensor)?;
                    axis += 1;
                }
            }
            Part::Ellipsis => {}
        }
    }
    Ok((x, advanced))
}

/// Selects the elements of the advanced parts of an index, with recording.
fn select(x: &Tensor, advanced: &Advanced) -> Result<Tensor> {
    let (order, position) = advanced.order(x.ndim());
    let front = op!("permute_dims").call(&[x.into(), order.into()], &[])?;
    let indices = Value::Tensors(advanced.indices.iter().map(|(_, t)| t).collect());
    let selected = op!("index").call(&[(&front).into(), indices], &[])?;
    let new = selected.ndim() + advanced.indices.len() - x.ndim();
    let moved: Vec<i64> =
        (new..new + position).chain(0..new).chain(new + position..selected.ndim()).map(|a| a as i64).collect();
    if position == 0 { Ok(selected) } else { Ok(op!("permute_dims").call(&[(&selected).into(), moved.into()], &[])?) }
}

fn get(tensor: &Tensor, index: &Bound<'_, PyAny>) -> Result<Tensor> {
    let (x, advanced) = apply(tensor, parts(tensor, index)?, &Recorded)?;
    if !advanced.indices.is_empty() {
        return select(&x, &advanced);
    }
    // An index that changes nothing still returns a new tensor.
    if x.shape() == tensor.shape() { Ok(op!("reshape").call(&[(&x).into(), sizes(&x).into()], &[])?) } else { Ok(x) }
}

fn sizes(x: &Tensor) -> Vec<i64> {
    x.shape().iter().map(|s| *s as i64).collect()
}

/// The flat index of each element, in the shape of the tensor.
fn flat_indices(tensor: &Tensor) -> Result<Tensor> {
    let mut all = try_vec(tensor.numel())?;
    all.extend(0..tensor.numel() as i64);
    Ok(Tensor::from_vec(all, tensor.shape().clone())?)
}

/// Converts the assigned value to the target's dtype and shape.
fn to_target(value: &Tensor, target: &Tensor) -> Result<Tensor> {
    let value = if value.dtype() == target.dtype() {
        value.clone()
    } else {
        op!("astype").call(&[value.into(), target.dtype().into()], &[])?
    };
    if value.shape().broadcast(target.shape()).as_ref() != Some(target.shape()) {
        return Err(Error::value(format!(
            "a value of shape {} cannot be broadcast to the assigned elements of shape {}",
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
        return assign_elements(tensor, index, value);
    }
    let (view, advanced) = if recorded { apply(tensor, parts, &Recorded)? } else { apply(tensor, parts, &Views)? };
    if !advanced.indices.is_empty() {
        return assign_elements(tensor, index, value);
    }
    // `tensor[…] += y` has already modified the memory: the assigned value is its own target.
    if view.is_same_window(value) {
        return Ok(());
    }
    // If the memory overlaps, copy the value first, so that it is read before it is overwritten.
    let copy = if view.may_overlap(value) { Some(op!("clone").call(&[value.into()], &[])?) } else { None };
    Ok(copy_into(&view, &to_target(copy.as_ref().unwrap_or(value), &view)?)?)
}

/// Assigns element by element: where the mask is set, the element at this flat index of the value is written.
fn assign_elements(tensor: &Tensor, index: &Bound<'_, PyAny>, value: &Tensor) -> Result<()> {
    let at = get(&flat_indices(tensor)?, index)?;
    let source = to_target(value, &Tensor::empty(at.shape().clone(), tensor.dtype(), minitensor::Device::Meta)?)?;
    let flat = op!("reshape").call(&[(&source).into(), vec![-1i64].into()], &[]);
    let flat = if source.numel() == 0 { return Ok(()) } else { flat? };
    let (mut mask, mut from): (Vec<bool>, Vec<i64>) = (try_vec(tensor.numel())?, try_vec(tensor.numel())?);
    mask.resize(tensor.numel(), false);
    from.resize(tensor.numel(), 0);
    for (k, at) in at.to_vec::<i64>()?.into_iter().enumerate() {
        mask[at as usize] = true;
        from[at as usize] = k as i64;
    }
    let mask = Tensor::from_vec(mask, tensor.shape().clone())?.to_device(tensor.device())?;
    let from = Tensor::from_vec(from, tensor.shape().clone())?.to_device(tensor.device())?;
    let spread = op!("take").call(&[(&flat).into(), (&from).into(), 0i64.into()], &[])?;
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
        Ok(catch_panics("indexing", || get(core, index).map_err(Error::from))?.into())
    }

    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Result<()> {
        let core = self.core()?;
        let value = match (value.cast::<PyTensor>(), number::read(value)?) {
            (Ok(t), _) => t.get().core()?.clone(),
            (_, Some(number)) => number.tensor(core.dtype())?.to_device(core.device())?,
            _ => array_like::tensor(value, None, Copy::IfNeeded)?.to_device(core.device())?,
        };
        Ok(catch_panics("assignment", || set(core, index, &value).map_err(Error::from))?)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Result<TensorIterator> {
        TensorIterator::of(slf)
    }

    fn __contains__(&self, value: &Bound<'_, PyAny>) -> Result<bool> {
        let core = self.core()?.detach();
        let value = array_like::tensor(value, None, Copy::IfNeeded)?.to_device(core.device())?;
        let equal = op!("equal").call(&[(&core).into(), (&value).into()], &[])?;
        Ok(equal.to_vec::<bool>()?.contains(&true))
    }
}
