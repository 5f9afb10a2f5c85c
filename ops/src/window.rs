//! Windows that slide over the last axes, and the matrix of the values that each of them reads.

use minitensor::error::counted;
use minitensor::kernels::contiguous;
use minitensor::kernels::window::{Axis, Windows, fold as fold_channel, unfold as unfold_channel};
use minitensor::prelude::*;

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
        return Err(Error::value(format!("'{name}' must be {side}, got {given:?}")));
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
                    "a kernel of {} with dilation {} spans {}, but 'x' has only {padded} along axis {} (size {}, padding {} on \
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
                "a kernel must have at least 1 tap along every axis, and its span must fit into int64; got {} with dilation {} along axis {}",
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

/// Windows over the last three axes of a tensor.
#[derive(Clone, Copy)]
pub struct Geometry {
    /// The sizes of the volume.
    pub sizes: [usize; 3],
    /// The number of windows along each axis.
    pub counts: [usize; 3],
    /// The number of taps of a window along each axis.
    pub kernel: [usize; 3],
    pub steps: Steps,
}

impl Geometry {
    /// The attribute `windows` of the ops on windows: for each axis, the size of the volume, the number of windows, and the
    /// taps, stride, dilation and padding of a window.
    pub fn attribute(&self) -> [i64; 18] {
        let mut list = [0; 18];
        for (axis, numbers) in list.chunks_exact_mut(6).enumerate() {
            let Steps { stride, padding, dilation } = self.steps;
            let sizes = [self.sizes[axis], self.counts[axis], self.kernel[axis]].map(|n| n as i64);
            numbers[..3].copy_from_slice(&sizes);
            numbers[3..].copy_from_slice(&[stride[axis], dilation[axis], padding[axis]]);
        }
        list
    }

    /// The number of elements of the volume.
    pub fn volume(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The number of windows.
    pub fn count(&self) -> Result<usize> {
        let count = self.counts.iter().try_fold(1i64, |product, n| product.checked_mul(i64::try_from(*n).ok()?));
        let many = || Error::memory(format!("{:?} windows are more than memory can address", self.counts));
        count.map(|count| count as usize).ok_or_else(many)
    }

    /// The number of taps of a window.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }
}

/// Reads the [attribute](Geometry::attribute) `windows`, for tensors with this number of elements in a volume, taps in a
/// window, and windows. Taps outside of the volume read 0, so any number of windows is valid.
pub fn windows(list: &[i64], volume: usize, taps: usize, count: usize) -> Result<Windows> {
    let mut axes = [Axis { size: 1, count: 1, taps: 1, stride: 1, dilation: 1, padding: 0 }; 3];
    let is_valid = list.len() == 18
        && axes.iter_mut().zip(list.as_chunks().0).all(|(axis, &[size, count, taps, stride, dilation, padding])| {
            let sizes = [size, count, taps].map(|n| n as usize);
            *axis = Axis {
                size: sizes[0],
                count: sizes[1],
                taps: sizes[2],
                stride: stride as usize,
                dilation: dilation as usize,
                padding,
            };
            const MOST: i64 = i32::MAX as i64;
            let in_range = |n: i64, least: i64| (least..=MOST).contains(&n);
            size.min(count).min(taps) >= 0 && in_range(stride, 1) && in_range(dilation, 1) && in_range(padding, -MOST)
        });
    if !is_valid {
        return Err(Error::value(format!(
            "'windows' takes 6 numbers for each of 3 axes: size, windows and taps of at least 0, stride and dilation of at least 1, \
             and padding; got {list:?}"
        )));
    }
    let of =
        |number: fn(&Axis) -> usize| axes.iter().try_fold(1usize, |product, axis| product.checked_mul(number(axis)));
    if [of(|a| a.size), of(|a| a.taps), of(|a| a.count)] != [Some(volume), Some(taps), Some(count)] {
        return Err(Error::value(format!(
            "'windows' must describe {}, {} and {}, like the other arguments; got {list:?}",
            counted(volume, "element"),
            counted(taps, "tap"),
            counted(count, "window")
        )));
    }
    Windows::new(axes).ok_or_else(|| Error::value(format!("'windows' describes too many windows: {list:?}")))
}

/// The matrix of the values that windows read: a row for each tap of each channel, a column for each window.
#[custom_op(
    name = "window::unfold",
    shape = (x: [.., c, v]) -> [.., c * taps, count],
    backward = |g| { x: window::fold(g, v, taps, windows) },
)]
pub fn window_unfold<T: Num>(
    x: ArrayView2<T>,
    taps: usize,
    count: usize,
    windows: &[i64],
    out: &mut [T],
) -> Result<()> {
    let windows = self::windows(windows, x.ncols(), taps, count)?;
    let x = contiguous(&x);
    for (x, out) in x.chunks_exact(windows.volume().max(1)).zip(out.chunks_exact_mut((taps * count).max(1))) {
        unfold_channel(&windows, x, 0..count, out);
    }
    if x.is_empty() {
        out.fill(T::zero());
    }
    Ok(())
}

/// Adds the values of windows to each element: the transpose of `window::unfold`.
#[custom_op(
    name = "window::fold",
    shape = (x: [.., m, p]) -> [.., m / taps, volume],
    backward = |g| { x: window::unfold(g, taps, p, windows) },
)]
pub fn window_fold<T: Num>(x: ArrayView2<T>, volume: usize, taps: usize, windows: &[i64], out: &mut [T]) -> Result<()> {
    let count = x.ncols();
    let windows = self::windows(windows, volume, taps, count)?;
    out.fill(T::zero());
    let x = contiguous(&x);
    for (x, out) in x.chunks_exact((taps * count).max(1)).zip(out.chunks_exact_mut(volume.max(1))) {
        fold_channel(&windows, x, 0..count, out);
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
    let sizes = sizes(x.shape(), 2);
    let windows = Geometry { sizes, counts: steps.counts(&sizes, &kernel)?, kernel, steps };
    let x = shaped(x, x.shape()[..x.ndim() - 2].iter().copied().chain([windows.volume()]))?;
    window_unfold::call(&x, windows.taps(), windows.count()?, &windows.attribute())
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
    let sizes = each("output_size", output_size, 2, 1, 1)?.map(|size| size as usize);
    let windows = Geometry { sizes, counts: steps.counts(&sizes, &kernel)?, kernel, steps };
    let (taps, count) = (windows.taps(), windows.count()?);
    let fits = matches!(x.shape()[..], [.., rows, columns] if rows.is_multiple_of(taps) && columns == count);
    if !fits {
        let [_, oh, ow] = windows.counts;
        return Err(Error::value(format!(
            "'x' must be [.., channels * {taps}, {count}], got shape {}: {} of each channel, and {oh} * {ow} windows",
            x.shape(),
            counted(taps, "tap")
        )));
    }
    let out = window_fold::call(x, windows.volume(), taps, &windows.attribute())?;
    shaped(&out, out.shape()[..out.ndim() - 1].iter().copied().chain(sizes[1..].iter().copied()))
}

/// The taps of a window along three axes.
pub fn kernel_of(kernel_size: &[i64], rank: usize) -> Result<[usize; 3]> {
    Ok(each("kernel_size", kernel_size, rank, 1, 1)?.map(|taps| taps as usize))
}

/// The number of channels, which is the axis before those of the windows.
pub fn channels(x: &Tensor, rank: usize) -> Result<usize> {
    let at = x.ndim().checked_sub(rank + 1).ok_or_else(|| {
        Error::value(format!(
            "'x' must be [.., channels, {1}], got shape {0}; add the missing axes with unsqueeze or reshape",
            x.shape(),
            AXES[rank]
        ))
    })?;
    Ok(x.shape()[at])
}
