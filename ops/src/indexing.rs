//! Selects elements by position or by condition.

use minitensor::kernels::indexing::{self, IndexError};
use minitensor::kernels::nonzero::Nonzero;
use minitensor::kernels::{Truth, contiguous, stop, triangle};
use minitensor::prelude::*;
use minitensor::tensor::normalize_axis;

use crate::shape::{moveaxis, reshape};

/// `x` where the condition is true, else `y`.
#[custom_op(name = "where")]
pub fn where_<T: Element>(condition: T::Mask, x: T, y: T) -> T {
    if condition { x } else { y }
}

/// Resolves Python's `start:stop:step` for an axis: the first element, and the number of elements.
fn resolve(size: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> Result<(usize, usize)> {
    if step == 0 {
        return Err(Error::value("step must not be 0"));
    }
    let size = size as i64;
    let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
    let place = |at: i64| (if at < 0 { at + size } else { at }).clamp(low, high);
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    let (start, stop) = (start.map_or(first, place), stop.map_or(last, place));
    let span = if step > 0 { stop - start } else { start - stop };
    let length = if span > 0 { (span - 1) / step.abs() + 1 } else { 0 };
    Ok((start.max(0) as usize, length as usize))
}

/// The elements `start:stop:step` along an axis, as in Python, as a view.
#[custom_op(backward = |d| { x: unslice(d, x.shape, axis, start, stop, step) })]
pub fn slice(
    x: &Tensor,
    #[default = 0] axis: i64,
    start: Option<i64>,
    stop: Option<i64>,
    #[default = 1] step: i64,
) -> Result<Tensor> {
    let (first, length) = resolve(x.shape()[normalize_axis(axis, x.ndim())?], start, stop, step)?;
    x.slice_view(axis, first, length, step)
}

/// Zeros of a shape, with `x` at `start:stop:step` of an axis: the transpose of [`slice()`].
#[custom_op(backward = |d| { x: slice(d, axis, start, stop, step) })]
pub fn unslice(
    x: &Tensor,
    shape: &[i64],
    axis: i64,
    start: Option<i64>,
    stop: Option<i64>,
    #[default = 1] step: i64,
) -> Result<Tensor> {
    let out = Tensor::zeros(Shape::from_sizes(shape)?, x.dtype(), x.device())?;
    let (first, length) = resolve(out.shape()[normalize_axis(axis, out.ndim())?], start, stop, step)?;
    let window = out.slice_view(axis, first, length, step)?;
    if window.shape() != x.shape() {
        return Err(Error::shape_mismatch(window.shape().to_vec(), x.shape().to_vec()));
    }
    window.copy_from(x)?;
    Ok(out)
}

/// The error for indices into `target`, for example "size 3".
#[cold]
fn index_error(why: IndexError, target: impl FnOnce() -> String) -> Error {
    match why {
        IndexError::OutOfRange(index) => Error::index(format!("index {index} is out of range for {}", target())),
        IndexError::OutOfMemory(why) => Error::memory(format!("cannot allocate memory for the indices: {why}")),
    }
}

/// The elements at `index` along an axis, for every row: `out[.., i] = x[.., index[.., i]]`.
#[custom_op(
    alias = "take_along_axis",
    shape = (x: [.., n], index: [.., m]) -> [.., m], axis = -1,
    backward = |d| { x: scatter(d, index, n), index: none },
)]
pub fn gather<T: Element>(x: &[T], index: &[i64], out: &mut [T]) -> Result<()> {
    indexing::take(x, index, out).map_err(|why| index_error(why, || format!("size {}", x.len())))
}

/// Zeros of `size` along an axis, to which the elements of `x` are added at `index`: the transpose of [`gather()`].
#[custom_op(
    shape = (x: [.., m], index: [.., m]) -> [.., size], axis = -1,
    backward = |d| { x: gather(d, index), index: none },
)]
pub fn scatter<T: Num>(x: &[T], index: &[i64], size: usize, out: &mut [T]) -> Result<()> {
    indexing::add_rows(x, 1, index, size, out).map_err(|why| index_error(why, || format!("size {size}")))
}

/// The rows of a table at `index`: `out[.., :] = weight[index[..], :]`.
#[custom_op(
    shape = (weight: [v, e], index: [..]) -> [.., e],
    dtype = (weight: T, index: i64) -> T where T: Element,
    backward = |d| { weight: indexing::added_rows(d, index, weight.shape), index: none },
)]
pub fn embedding(weight: &Tensor, index: &Tensor) -> Result<Tensor> {
    let dtype = weight.dtype();
    // Rows are only copied. A cell body would convert a table of 16-bit floats to float32.
    let is_half = dtype.compute() != dtype;
    let table = weight.contiguous()?;
    let table = if is_half { table.bitcast(DType::U16)? } else { table };
    let is_list = index.ndim() == 1;
    let flat = if is_list { index.clone() } else { reshape::call(index, &[-1])? };
    let rows = take_rows::call(&table, &flat).map_err(|e| e.renamed("indexing::take_rows", "embedding"))?;
    let rows = if is_half { rows.bitcast(dtype)? } else { rows };
    if is_list {
        return Ok(rows);
    }
    let sizes = index.shape().iter().chain(rows.shape().last());
    reshape::call(&rows, &sizes.map(|size| *size as i64).collect::<Vec<_>>())
}

/// The rows of a table at a list of indices; [`embedding()`] takes indices of any shape.
#[custom_op(
    name = "indexing::take_rows", shape = (table: [v, e], index: [m]) -> [m, e],
    backward = |d| { table: scatter_rows(d, index, v), index: none },
)]
pub fn take_rows<T: Element>(table: ArrayView2<T>, index: &[i64], out: &mut [T]) -> Result<()> {
    let size = table.nrows();
    indexing::take_rows(table, index, out).map_err(|why| index_error(why, || format!("size {size}")))
}

/// Zeros of a table's shape, to which `d[.., :]` is added at `index[..]`: the gradient of [`embedding()`].
#[custom_op(name = "indexing::added_rows")]
pub fn added_rows(d: &Tensor, index: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let &[size, width] = Shape::from_sizes(shape)?.dims() else {
        return Err(Error::value(format!("'shape' must have two dimensions, got {shape:?}")));
    };
    let count = index.numel() as i64;
    Ok(d.reshape([count, width as i64]).scatter_rows(index.reshape(count), size))
}

/// Zeros of `size` rows, to which the rows of `x` are added at `index`: the transpose of [`embedding()`].
#[custom_op(
    shape = (x: [m, e], index: [m]) -> [size, e],
    backward = |d| { x: embedding(d, index), index: none },
)]
pub fn scatter_rows<T: Num>(x: ArrayView2<T>, index: &[i64], size: usize, out: &mut [T]) -> Result<()> {
    let width = x.ncols();
    indexing::add_rows(&contiguous(&x), width, index, size, out)
        .map_err(|why| index_error(why, || format!("size {size}")))
}

/// The slices at `indices` along an axis. The axes of `indices` replace it.
#[custom_op(alias = "index_select")]
pub fn take(x: &Tensor, indices: &Tensor, #[default = 0] axis: i64) -> Result<Tensor> {
    let at = normalize_axis(axis, x.ndim())?;
    let first = moveaxis::call(x, at as i64, 0)?;
    let rest: Vec<i64> = first.shape()[1..].iter().map(|s| *s as i64).collect();
    let table = reshape::call(&first, &[first.shape()[0] as i64, rest.iter().product()])?;
    let rows = embedding::call(&table, indices)?;
    let mut shape: Vec<i64> = indices.shape().iter().map(|s| *s as i64).collect();
    shape.extend(&rest);
    let mut out = reshape::call(&rows, &shape)?;
    for _ in 0..at {
        // The axes before `axis` follow the index axes. Move each back to the front, the last one first.
        out = moveaxis::call(&out, (indices.ndim() + at - 1) as i64, 0)?;
    }
    Ok(out)
}

/// Converts negative indices to indices from the start; an index that is out of range is an error.
#[custom_op(name = "indexing::wrap", shape = (index: [n]) -> [n], backward = none)]
pub fn wrap_index(index: &[i64], size: usize, axis: usize, out: &mut [i64]) -> Result<()> {
    indexing::wrap(index, size, out).map_err(|why| index_error(why, || format!("axis {axis} of size {size}")))
}

/// The positions along an axis, `0` to `size − 1`, on the device of `x`.
#[custom_op(name = "indexing::positions", dtype = (x: T) -> dtype where T: Element, where size >= 0, backward = |d| { x: zeros_like(d.sum()) })]
pub fn positions(x: &Tensor, size: i64, dtype: DType) -> Result<Tensor> {
    if x.device() == Device::Meta {
        return Tensor::empty([size as usize], dtype, Device::Meta);
    }
    let positions: Tensor = Tensor::from_fn([size as usize], |at| [at as i64])?.to_device(x.device())?;
    Ok(positions.astype(dtype))
}

/// `x[indices[0], indices[1], …]`: integer tensors, broadcast together, index the leading axes.
#[custom_op]
pub fn index(x: &Tensor, indices: &[&Tensor]) -> Result<Tensor> {
    if indices.is_empty() || indices.len() > x.ndim() {
        return Err(Error::index(format!(
            "the number of 'indices' must be 1 to {}, the number of dimensions of 'x'; got {}",
            x.ndim(),
            indices.len()
        )));
    }
    let wrapped = |axis: usize| -> Result<Tensor> {
        let sizes: Vec<i64> = indices[axis].shape().iter().map(|n| *n as i64).collect();
        let flat = reshape::call(indices[axis], &[indices[axis].numel() as i64])?;
        reshape::call(&wrap_index::call(&flat, x.shape()[axis], axis)?, &sizes)
    };
    if indices.len() == 1 {
        // Positions are also checked where they are used. If one is out of range, `wrapped` returns the error that
        // names its axis.
        return take::call(x, indices[0], 0).or_else(|error| wrapped(0).and(Err(error)));
    }
    let mut place = wrapped(0)?;
    for axis in 1..indices.len() {
        place = place * x.shape()[axis] + wrapped(axis)?;
    }
    Ok(x.flatten(0, indices.len() - 1).take(place))
}

/// The positions of the nonzero elements: one row per element, one column per axis (int64). With `size`, the result has exactly
/// `size` rows: surplus rows are cut, and missing rows are filled with `fill_value`.
#[custom_op(backward = none)]
pub fn nonzero(x: &Tensor, size: Option<usize>, #[default = 0] fill_value: i64) -> Result<Tensor> {
    if let Some(size) = size {
        let device = if x.device() == Device::Meta { Device::Meta } else { Device::Cpu };
        let shape: Vec<i64> = x.shape().iter().map(|n| *n as i64).collect();
        let flat = reshape::call(&x.to_device(device)?, &[x.numel() as i64])?;
        return nonzero_rows::call(&flat, &shape, size, x.ndim(), fill_value)?.to_device(x.device());
    }
    // A copy, which no other thread can change between counting and finding its elements.
    let mask = x.cast(DType::Bool)?.to_device(Device::Cpu)?;
    let mask = mask.view::<Truth>()?;
    let found =
        Nonzero::of(mask.as_slice().ok_or_else(|| Error::runtime("internal error: the copy is not contiguous"))?);
    let mut positions = stop::filled(0, found.count() * x.ndim());
    found.write(x.shape(), fill_value, &mut positions);
    Tensor::from_vec(positions, [found.count(), x.ndim()])?.to_device(x.device())
}

/// The rows of [`nonzero()`] with a `size`, for tensors of `rank` dimensions, whose sizes are `shape`. The elements of each are a row
/// of `x`.
#[custom_op(name = "row::nonzero", shape = (x: [.., n]) -> [.., size, rank], backward = none)]
pub fn nonzero_rows<T: Element>(
    x: &[T],
    shape: &[i64],
    size: usize,
    rank: usize,
    fill_value: i64,
    out: &mut [i64],
) -> Result<()> {
    debug_assert_eq!(out.len(), size * rank, "a row for each position");
    let sizes = Shape::from_sizes(shape)?;
    if sizes.len() != rank || sizes.checked_numel()? != x.len() {
        return Err(Error::value(format!(
            "'shape' must have {rank} sizes, and their product must be {}; got {shape:?}",
            x.len()
        )));
    }
    Nonzero::of(x).write(&sizes, fill_value, out);
    Ok(())
}

/// 1 at the index, 0 elsewhere, along a new last axis of `num_classes` (int64).
#[custom_op(shape = (index: [..]) -> [.., num_classes], backward = none)]
pub fn one_hot(index: &i64, num_classes: usize, out: &mut [i64]) -> Result<()> {
    let index = *index;
    out.fill(0);
    let class = usize::try_from(index).ok().and_then(|class| out.get_mut(class));
    *class.ok_or_else(|| Error::index(format!("class {index} is out of range for num_classes = {num_classes}")))? = 1;
    Ok(())
}

/// The elements on and below the `k`-th diagonal of the last two axes, zeros above it.
#[custom_op(shape = (x: [.., m, n]) -> [.., m, n], backward = |d| { x: tril(d, k) })]
pub fn tril<T: Num>(x: ArrayView2<T>, #[default = 0] k: i64, out: ArrayViewMut2<T>) {
    triangle(x, out, |i| 0..i.saturating_add(k).saturating_add(1));
}

/// The elements on and above the `k`-th diagonal of the last two axes, zeros below it.
#[custom_op(shape = (x: [.., m, n]) -> [.., m, n], backward = |d| { x: triu(d, k) })]
pub fn triu<T: Num>(x: ArrayView2<T>, #[default = 0] k: i64, out: ArrayViewMut2<T>) {
    triangle(x, out, |i| i.saturating_add(k)..i64::MAX);
}
