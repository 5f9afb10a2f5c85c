//! Windows that slide over the last axes, and the matrix of the values that each of them reads.

use std::borrow::Cow;

use minitensor::kernels::window::{Axis, Windows, fold as fold_channel, unfold as unfold_channel};
use minitensor::prelude::*;
use minitensor::tensor::try_vec;
use ndarray::{ArrayView, ArrayViewMut, Dimension};

use crate::shape::reshape;

/// The names of the axes that windows slide over, by their number.
pub const AXES: [&str; 4] = ["", "length", "height, width", "depth, height, width"];

/// One number for each of `rank` axes, from a list of one or `rank` numbers that are at least `least`. Missing axes
/// before them get `missing`.
pub fn each(name: &str, given: &[i64], rank: usize, least: i64, missing: i64) -> Result<[i64; 3]> {
    if given.len() != 1 && given.len() != rank {
        let many = if rank == 1 { "one number".into() } else { format!("one number, or {rank} ({})", AXES[rank]) };
        return Err(Error::value(format!("'{name}' takes {many}, got {given:?}")));
    }
    if let Some(wrong) = given.iter().find(|v| !(least..=i64::from(i32::MAX)).contains(*v)) {
        let side = if *wrong < least { format!("at least {least}") } else { format!("at most {}", i32::MAX) };
        return Err(Error::value(format!("'{name}' should be {side}, got {given:?}")));
    }
    let mut all = [missing; 3];
    for (axis, to) in all[3 - rank..].iter_mut().enumerate() {
        *to = given[axis.min(given.len() - 1)];
    }
    Ok(all)
}

/// The steps of windows along three axes.
#[derive(Clone, Copy)]
pub struct Steps {
    pub stride: [i64; 3],
    pub padding: [i64; 3],
    pub dilation: [i64; 3],
}

impl Steps {
    /// From lists for `rank` axes; along the other axes every step is 1.
    pub fn new(rank: usize, stride: &[i64], padding: &[i64], dilation: &[i64]) -> Result<Steps> {
        Ok(Steps {
            stride: each("stride", stride, rank, 1, 1)?,
            padding: each("padding", padding, rank, 0, 0)?,
            dilation: each("dilation", dilation, rank, 1, 1)?,
        })
    }

    /// The number of windows of `kernel` taps along each axis.
    pub fn counts(&self, sizes: &[usize; 3], kernel: &[usize; 3]) -> Result<[usize; 3]> {
        let mut counts = [0; 3];
        for axis in 0..3 {
            let reach = self.reach(kernel, axis)?;
            let padded = sizes[axis] as i64 + 2 * self.padding[axis];
            if reach >= padded {
                return Err(Error::value(format!(
                    "a kernel of {} with dilation {} spans {}, more than the {padded} of 'x' along axis {} (size {}, padding {} on \
                     both sides); use a smaller kernel or more padding",
                    kernel[axis],
                    self.dilation[axis],
                    reach + 1,
                    axis as i64 - 3,
                    sizes[axis],
                    self.padding[axis]
                )));
            }
            counts[axis] = ((padded - 1 - reach) / self.stride[axis] + 1) as usize;
        }
        Ok(counts)
    }

    /// The distance from the first tap of a window to the last.
    pub fn reach(&self, kernel: &[usize; 3], axis: usize) -> Result<i64> {
        let taps = i64::try_from(kernel[axis]).ok().filter(|taps| *taps > 0);
        taps.and_then(|taps| (taps - 1).checked_mul(self.dilation[axis])).ok_or_else(|| {
            Error::value(format!(
                "a kernel has at least 1 tap along every axis, and not too many; got {} with dilation {} along axis {}",
                kernel[axis],
                self.dilation[axis],
                axis as i64 - 3
            ))
        })
    }
}

/// The last `rank` sizes, preceded by ones.
pub fn sizes(shape: &[usize], rank: usize) -> [usize; 3] {
    let mut sizes = [1; 3];
    sizes[3 - rank..].copy_from_slice(&shape[shape.len() - rank..]);
    sizes
}

/// Reshapes to known sizes.
pub fn shaped(x: &Tensor, shape: impl IntoIterator<Item = usize>) -> Result<Tensor> {
    reshape::call(x, &shape.into_iter().map(|size| size as i64).collect::<Vec<_>>())
}

/// The windows of a volume for a kernel. Every number of windows is allowed: windows read 0 outside of the volume.
pub fn windows(
    sizes: [usize; 3],
    counts: [usize; 3],
    kernel: [usize; 3],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
) -> Result<Windows> {
    let three = |name: &str, list: &[i64], least: i64| match list {
        [a, b, c] if list.iter().all(|v| (least..=i64::from(i32::MAX)).contains(v)) => Ok([*a, *b, *c]),
        _ => Err(Error::value(format!(
            "'{name}' takes 3 numbers (depth, height, width) of at least {least}, got {list:?}"
        ))),
    };
    let least = -i64::from(i32::MAX);
    let (stride, padding, dilation) =
        (three("stride", stride, 1)?, three("padding", padding, least)?, three("dilation", dilation, 1)?);
    let axis = |a: usize| Axis {
        size: sizes[a],
        count: counts[a],
        taps: kernel[a],
        stride: stride[a] as usize,
        dilation: dilation[a] as usize,
        padding: padding[a],
    };
    Windows::new([axis(0), axis(1), axis(2)]).ok_or_else(|| {
        Error::value(format!("{counts:?} windows of {kernel:?} over {sizes:?} are more than can be counted"))
    })
}

/// The elements of a view in order; a copy only if they aren't contiguous.
pub fn straight<'a, T: Copy + Default, D: Dimension>(x: &'a ArrayView<'_, T, D>) -> Result<Cow<'a, [T]>> {
    if let Some(elements) = x.as_slice() {
        return Ok(Cow::Borrowed(elements));
    }
    let mut elements = try_vec(x.len())?;
    elements.resize(x.len(), T::default());
    if let Ok(mut copy) = ArrayViewMut::from_shape(x.raw_dim(), &mut elements) {
        copy.assign(x);
    }
    Ok(Cow::Owned(elements))
}

/// The matrix of the values that windows read: a row for each tap of each channel, a column for each window.
#[custom_op(
    name = "window::unfold",
    shape = (x: [.., c, d, h, w]) -> [.., c * kd * kh * kw, od * oh * ow],
    backward = |g| { x: window::fold(g, d, h, w, kd, kh, kw, od, oh, ow, stride, padding, dilation) },
)]
pub fn window_unfold<T: Num>(
    x: ArrayView4<T>,
    kd: usize,
    kh: usize,
    kw: usize,
    od: usize,
    oh: usize,
    ow: usize,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    out: &mut [T],
) -> Result<()> {
    let (_, d, h, w) = x.dim();
    let windows = windows([d, h, w], [od, oh, ow], [kd, kh, kw], stride, padding, dilation)?;
    let x = straight(&x)?;
    let matrix = (windows.taps() * windows.count()).max(1);
    for (x, out) in x.chunks_exact(windows.volume().max(1)).zip(out.chunks_exact_mut(matrix)) {
        unfold_channel(&windows, x, 0..windows.count(), out);
    }
    if x.is_empty() {
        out.fill(T::zero());
    }
    Ok(())
}

/// Adds the values of windows to each element: the transpose of `window::unfold`.
#[custom_op(
    name = "window::fold",
    shape = (x: [.., m, p]) -> [.., m / (kd * kh * kw), d, h, w] where p == od * oh * ow,
    backward = |g| { x: window::unfold(g, kd, kh, kw, od, oh, ow, stride, padding, dilation) },
)]
pub fn window_fold<T: Num>(
    x: &[T],
    d: usize,
    h: usize,
    w: usize,
    kd: usize,
    kh: usize,
    kw: usize,
    od: usize,
    oh: usize,
    ow: usize,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    out: &mut [T],
) -> Result<()> {
    let windows = windows([d, h, w], [od, oh, ow], [kd, kh, kw], stride, padding, dilation)?;
    out.fill(T::zero());
    let matrix = (windows.taps() * windows.count()).max(1);
    for (x, out) in x.chunks_exact(matrix).zip(out.chunks_exact_mut(windows.volume().max(1))) {
        fold_channel(&windows, x, 0..windows.count(), out);
    }
    Ok(())
}

/// The windows of `x` (`[.., channels, height, width]`) as columns: `[.., channels · taps, windows]`, as in PyTorch's
/// `unfold`.
#[custom_op]
pub fn unfold(
    x: &Tensor,
    kernel_size: &[i64],
    #[default = [1]] dilation: &[i64],
    #[default = [0]] padding: &[i64],
    #[default = [1]] stride: &[i64],
) -> Result<Tensor> {
    channels(x, 2)?;
    let (steps, kernel) = (Steps::new(2, stride, padding, dilation)?, kernel_of(kernel_size, 2)?);
    let [od, oh, ow] = steps.counts(&sizes(x.shape(), 2), &kernel)?;
    let (batch, last) = x.shape().split_at(x.ndim() - 2);
    let x = shaped(x, batch.iter().copied().chain([1]).chain(last.iter().copied()))?;
    let [kd, kh, kw] = kernel;
    window_unfold::call(&x, kd, kh, kw, od, oh, ow, &steps.stride, &steps.padding, &steps.dilation)
}

/// Adds columns of windows (`[.., channels · taps, windows]`) to their places in `[.., channels, height, width]`, as in
/// PyTorch's `fold`: the transpose of [`unfold()`].
#[custom_op]
pub fn fold(
    x: &Tensor,
    output_size: &[i64],
    kernel_size: &[i64],
    #[default = [1]] dilation: &[i64],
    #[default = [0]] padding: &[i64],
    #[default = [1]] stride: &[i64],
) -> Result<Tensor> {
    let (steps, kernel) = (Steps::new(2, stride, padding, dilation)?, kernel_of(kernel_size, 2)?);
    let volume = each("output_size", output_size, 2, 1, 1)?.map(|size| size as usize);
    let [od, oh, ow] = steps.counts(&volume, &kernel)?;
    let taps: usize = kernel.iter().product();
    let fits = match x.shape()[..] {
        [.., rows, columns] => rows.is_multiple_of(taps) && columns == oh * ow,
        _ => false,
    };
    if !fits {
        return Err(Error::value(format!(
            "'x' of shape {} should be [.., channels * {taps}, {}]: {taps} taps of each channel, and {oh} * {ow} windows",
            x.shape(),
            oh * ow
        )));
    }
    let ([d, h, w], [kd, kh, kw]) = (volume, kernel);
    let (stride, padding, dilation) = (&steps.stride, &steps.padding, &steps.dilation);
    let out = window_fold::call(x, d, h, w, kd, kh, kw, od, oh, ow, stride, padding, dilation)?;
    let mut shape = out.shape().to_vec();
    shape.remove(out.ndim() - 3);
    shaped(&out, shape)
}

/// The taps of a window along three axes.
pub fn kernel_of(kernel_size: &[i64], rank: usize) -> Result<[usize; 3]> {
    Ok(each("kernel_size", kernel_size, rank, 1, 1)?.map(|taps| taps as usize))
}

/// The number of channels, which is the axis before those of the windows.
pub fn channels(x: &Tensor, rank: usize) -> Result<usize> {
    let at = x.ndim().checked_sub(rank + 1).ok_or_else(|| {
        Error::value(format!(
            "'x' of shape {} should be [.., channels, {}]; add what is missing with unsqueeze or reshape",
            x.shape(),
            AXES[rank]
        ))
    })?;
    Ok(x.shape()[at])
}
