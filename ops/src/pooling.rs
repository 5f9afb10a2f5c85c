//! Pooling: the maximum or mean of every window over the last axes.

use std::ops::Range;

use minitensor::kernels::{contiguous, lit, pooling};
use minitensor::prelude::*;
use minitensor::tensor::try_vec;

use crate::window::{self, AXES, Geometry, Steps, each, kernel_of, shaped, sizes};

/// The largest element of each of `count` windows, or NaN if there is one.
#[custom_op(
    name = "window::max",
    shape = (x: [.., v]) -> (out: [.., count], [save] place: [.., count]) where v > 0,
    backward = |g| { x: scatter(g, place, v) },
)]
pub fn window_max<T: Real>(
    x: &[T],
    taps: usize,
    count: usize,
    windows: &[i64],
    out: &mut [T],
    place: &mut [i64],
) -> Result<()> {
    let windows = window::windows(windows, x.len(), taps, count)?;
    pooling::max(&windows, x, lit(f64::NEG_INFINITY), out, place);
    Ok(())
}

/// Windows over the rows of a matrix: the range of rows of each window, and its divisor.
fn bounded<T: Float>(bounds: &[i64], counts: &[i64], windows: usize, rows: usize) -> Result<Vec<(Range<usize>, T)>> {
    let is_sound = |b: &[i64]| 0 <= b[0] && b[0] <= b[1] && b[1] <= rows as i64;
    let lengths = counts.len() == windows && bounds.len() == 2 * windows;
    if !lengths || !bounds.chunks_exact(2).all(is_sound) || counts.iter().any(|c| *c < 1) {
        return Err(Error::value(format!(
            "for {windows} windows, 'bounds' must be a start and an end of 0 to {rows} for each, and 'counts' a number of at least \
             1 for each; got {bounds:?} and {counts:?}"
        )));
    }
    let pairs = bounds.chunks_exact(2).zip(counts);
    Ok(pairs.map(|(b, count)| (b[0] as usize..b[1] as usize, lit(*count))).collect())
}

/// The sums of the rows from `bounds[2 · i]` to `bounds[2 · i + 1]`, divided by `counts[i]`.
#[custom_op(
    name = "window::mean", shape = (x: [.., n, m]) -> [.., size, m],
    backward = |g| { x: window::spread(g, n, bounds, counts) },
)]
pub fn window_mean<T: Float>(
    x: ArrayView2<T>,
    size: usize,
    bounds: &[i64],
    counts: &[i64],
    out: &mut [T],
) -> Result<()> {
    let (rows, width) = x.dim();
    pooling::means(width, &bounded(bounds, counts, size, rows)?, &contiguous(&x), out);
    Ok(())
}

/// The transpose of `window::mean`: adds every row of `y`, divided by its count, to the rows of its window.
#[custom_op(
    name = "window::spread", shape = (y: [.., size, m]) -> [.., n, m],
    backward = |g| { y: window::mean(g, size, bounds, counts) },
)]
pub fn window_spread<T: Float>(
    y: ArrayView2<T>,
    n: usize,
    bounds: &[i64],
    counts: &[i64],
    out: &mut [T],
) -> Result<()> {
    let (size, width) = y.dim();
    pooling::spread(width, &bounded(bounds, counts, size, n)?, &contiguous(&y), out);
    Ok(())
}

/// Checks that `x` has at least the axes that windows slide over.
fn at_least(x: &Tensor, rank: usize) -> Result<()> {
    if x.ndim() >= rank {
        return Ok(());
    }
    let (shape, axes) = (x.shape(), AXES[rank]);
    Err(Error::value(format!(
        "'x' must be [.., {axes}], got shape {shape}; add the missing axes with unsqueeze or reshape"
    )))
}

/// The windows of a pooling op over the last axes of `x`.
fn pool(
    x: &Tensor,
    rank: usize,
    kernel_size: &[i64],
    stride: Option<&[i64]>,
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
) -> Result<Geometry> {
    at_least(x, rank)?;
    let kernel = kernel_of(kernel_size, rank)?;
    let steps = Steps::new(rank, stride.unwrap_or(kernel_size), padding, dilation)?;
    if let Some(axis) = (0..3).find(|axis| steps.padding[*axis] > (kernel[*axis] / 2) as i64) {
        return Err(Error::value(format!(
            "'padding' must be at most half of the kernel, so that every window contains an element; got padding {} with a kernel of \
             {} along axis {}",
            steps.padding[axis],
            kernel[axis],
            axis as i64 - 3
        )));
    }
    let sizes = sizes(x.shape(), rank);
    if let Some(axis) = (0..3).find(|axis| sizes[*axis] == 0) {
        let (shape, axis) = (x.shape(), axis as i64 - 3);
        return Err(Error::value(format!(
            "'x' of shape {shape} has no elements along axis {axis}; pooling needs at least one"
        )));
    }
    let mut counts = steps.counts(&sizes, &kernel)?;
    for axis in (0..3).filter(|_| ceil_mode) {
        let (size, padding, stride) = (sizes[axis] as i64, steps.padding[axis], steps.stride[axis]);
        let room = size + 2 * padding - 1 - steps.reach(&kernel, axis)?;
        // Add one incomplete window if it begins before the end padding.
        let next = counts[axis] as i64 * stride;
        counts[axis] += usize::from(room % stride != 0 && next < size + padding);
    }
    // With dilation, all taps of a window may be outside of the volume.
    for axis in (0..3).filter(|axis| steps.dilation[*axis] > 1) {
        let sees = |tap: i64| (0..sizes[axis] as i64).contains(&tap);
        let taps = |start: i64| (0..kernel[axis] as i64).map(move |k| start + k * steps.dilation[axis]);
        let starts = (0..counts[axis] as i64).map(|o| o * steps.stride[axis] - steps.padding[axis]);
        if let Some(start) = starts.into_iter().find(|start| !taps(*start).any(sees)) {
            return Err(Error::value(format!(
                "the window that begins at {start} of axis {} contains no element: its taps are {} apart, and the size of the axis is {}",
                axis as i64 - 3,
                steps.dilation[axis],
                sizes[axis]
            )));
        }
    }
    Ok(Geometry { sizes, counts, kernel, steps })
}

/// The bounds of the windows of an axis, and the divisor of each.
type Listed = (Vec<i64>, Vec<i64>);

fn listed(windows: impl ExactSizeIterator<Item = ([i64; 2], i64)>) -> Result<Listed> {
    let (mut bounds, mut counts) = (try_vec(2 * windows.len())?, try_vec(windows.len())?);
    for (bound, count) in windows {
        bounds.extend(bound);
        counts.push(count);
    }
    Ok((bounds, counts))
}

/// Replaces each of the last axes of `x` by the means of its windows. `windows` returns the bounds and counts for an
/// axis.
fn averaged(x: &Tensor, rank: usize, windows: impl Fn(usize) -> Result<Listed>) -> Result<Tensor> {
    let mut out = x.clone();
    for axis in 3 - rank..3 {
        let at = x.ndim() + axis - 3;
        let (bounds, counts) = windows(axis)?;
        let (lead, last) = out.shape().split_at(at);
        let (lead, size, last) = (lead.to_vec(), last[0], last[1..].to_vec());
        let rows = shaped(&out, [lead.iter().product(), size, last.iter().product()])?;
        let means = window_mean::call(&rows, counts.len(), &bounds, &counts)?;
        out = shaped(&means, lead.into_iter().chain([counts.len()]).chain(last))?;
    }
    Ok(out)
}

fn max_pool(x: &Tensor, rank: usize, pool: &Geometry) -> Result<Tensor> {
    let batch = &x.shape()[..x.ndim() - rank];
    let x = shaped(x, batch.iter().copied().chain([pool.volume()]))?;
    let out = window_max::call(&x, pool.taps(), pool.count()?, &pool.attribute())?;
    shaped(&out, batch.iter().chain(&pool.counts[3 - rank..]).copied())
}

fn avg_pool(x: &Tensor, rank: usize, pool: &Geometry, count_include_pad: bool) -> Result<Tensor> {
    averaged(x, rank, |axis| {
        let (size, padding, stride) = (pool.sizes[axis] as i64, pool.steps.padding[axis], pool.steps.stride[axis]);
        let window = |i: usize| {
            let start = i as i64 * stride - padding;
            let end = (start + pool.kernel[axis] as i64).min(size + padding);
            let (first, last) = (start.clamp(0, size), end.clamp(0, size));
            ([first, last], if count_include_pad { end - start } else { last - first })
        };
        listed((0..pool.counts[axis]).map(window))
    })
}

fn adaptive_avg_pool(x: &Tensor, rank: usize, output_size: &[i64]) -> Result<Tensor> {
    at_least(x, rank)?;
    let (sizes, outputs) = (sizes(x.shape(), rank), each("output_size", output_size, rank, 1, 1)?);
    if sizes.contains(&0) {
        let shape = x.shape();
        return Err(Error::value(format!(
            "'x' of shape {shape} has no elements along an axis; pooling needs at least one"
        )));
    }
    if outputs == [1; 3] {
        let axes: Vec<i64> = (1..=rank as i64).map(|axis| -axis).collect();
        return crate::reduction::mean::call(x, Some(&axes), true);
    }
    averaged(x, rank, |axis| {
        let (size, count) = (sizes[axis] as i64, outputs[axis]);
        let window = |i: usize| {
            let i = i as i64;
            let (start, end) = (i * size / count, ((i + 1) * size + count - 1) / count);
            ([start, end], end - start)
        };
        listed((0..count as usize).map(window))
    })
}

macro_rules! pools {
    ($($rank:literal $max:ident $avg:ident $adaptive:ident, $doc_max:literal $doc_avg:literal $doc_adaptive:literal;)*) => {$(
        #[doc = $doc_max]
        ///
        /// Windows have `kernel_size` taps, `dilation` apart, and are `stride` apart (`kernel_size` if not given).
        /// Elements of the `padding` are never the largest. With `ceil_mode`, the last window may extend beyond the
        /// padding. As in PyTorch.
        #[custom_op]
        pub fn $max(
            x: &Tensor,
            kernel_size: &[i64],
            stride: Option<&[i64]>,
            #[default = [0]] padding: &[i64],
            #[default = [1]] dilation: &[i64],
            #[default = false] ceil_mode: bool,
        ) -> Result<Tensor> {
            max_pool(x, $rank, &pool(x, $rank, kernel_size, stride, padding, dilation, ceil_mode)?)
        }

        #[doc = $doc_avg]
        ///
        /// Windows have `kernel_size` elements and are `stride` apart (`kernel_size` if not given). The zeros of the
        /// `padding` count, unless `count_include_pad` is false. With `ceil_mode`, the last window may extend beyond
        /// the padding. As in PyTorch.
        #[custom_op]
        pub fn $avg(
            x: &Tensor,
            kernel_size: &[i64],
            stride: Option<&[i64]>,
            #[default = [0]] padding: &[i64],
            #[default = false] ceil_mode: bool,
            #[default = true] count_include_pad: bool,
        ) -> Result<Tensor> {
            let pool = pool(x, $rank, kernel_size, stride, padding, &[1], ceil_mode)?;
            avg_pool(x, $rank, &pool, count_include_pad)
        }

        #[doc = $doc_adaptive]
        ///
        /// Window `i` of an axis extends from `⌊i · size / output_size⌋` to `⌈(i + 1) · size / output_size⌉`,
        /// exclusive.
        #[custom_op]
        pub fn $adaptive(x: &Tensor, output_size: &[i64]) -> Result<Tensor> {
            adaptive_avg_pool(x, $rank, output_size)
        }
    )*};
}
pools! {
    1 max_pool1d avg_pool1d adaptive_avg_pool1d,
        "The largest element of every window over the last axis, or NaN if there is one."
        "The mean of every window over the last axis."
        "The means of `output_size` windows over the last axis, of nearly equal size.";
    2 max_pool2d avg_pool2d adaptive_avg_pool2d,
        "The largest element of every window over the last two axes, or NaN if there is one."
        "The mean of every window over the last two axes."
        "The means of `output_size` windows over the last two axes, of nearly equal size.";
    3 max_pool3d avg_pool3d adaptive_avg_pool3d,
        "The largest element of every window over the last three axes, or NaN if there is one."
        "The mean of every window over the last three axes."
        "The means of `output_size` windows over the last three axes, of nearly equal size.";
}
