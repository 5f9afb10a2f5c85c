//! Convolutions and their transposes.
//!
//! All of them are one sum and its two transposes, over three axes: [`convolve()`], [`convolve_input()`] and
//! [`convolve_weight()`]. Each is linear in both of its inputs, so the gradients of each are the other two.

use minitensor::kernels::convolution::{self, Channels, OutOfMemory};
use minitensor::kernels::window::Windows;
use minitensor::kernels::{Machine, contiguous};
use minitensor::op::{KernelEntry, Kernels, OutputPart, VisitPart};
use minitensor::prelude::*;
use minitensor::{Attr, Scalar};
use ndarray::ShapeError;

use crate::window::{self, AXES, Geometry, Steps, channels, each, shaped, sizes};

fn no_memory(_: OutOfMemory) -> Error {
    Error::memory("cannot allocate the working memory of the convolution; use a smaller batch")
}

/// The groups of channels, from the shapes of the input and the weight.
fn grouped(samples: usize, inputs: usize, outputs: usize, groups: usize) -> Result<Channels> {
    if !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
        return Err(Error::value(format!(
            "groups = {groups} must divide the numbers of channels, got {inputs} input and {outputs} output channels"
        )));
    }
    Ok(Channels { samples, groups, inputs: inputs / groups, outputs: outputs / groups })
}

/// `out[n, o, i] = Σ x[n, c, place(i, t)] · weight[o, c, t] + bias[o]` over taps `t` and the channels `c` of a group, for `count`
/// windows `i`.
#[custom_op(
    name = "convolution::forward",
    shape = (x: [n, c, v], weight: [o, i, t], bias: [o]) -> [n, o, count] where groups > 0, c == i * groups,
    backward = |g| {
        x: convolution::input(g, weight, v, windows, groups),
        weight: convolution::weight(x, g, t, windows, groups),
        bias: sum(g, [0, 2]),
    },
)]
pub fn convolve<T: Float>(
    x: ArrayView3<T>,
    weight: ArrayView3<T>,
    bias: Option<&[T]>,
    #[default = 1] count: usize,
    #[default = [1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0]] windows: &[i64],
    #[default = 1] groups: usize,
    out: &mut [T],
) -> Result<()> {
    let (windows, channels) = geometry(&x, &weight, count, windows, groups)?;
    convolution::forward(&windows, channels, &contiguous(&x), &contiguous(&weight), bias, out).map_err(no_memory)
}

/// The windows and channels of a convolution.
fn geometry<T>(
    x: &ArrayView3<T>,
    weight: &ArrayView3<T>,
    count: usize,
    windows: &[i64],
    groups: usize,
) -> Result<(Windows, Channels)> {
    let ((n, c, v), (o, _, t)) = (x.dim(), weight.dim());
    Ok((window::windows(windows, v, t, count)?, grouped(n, c, o, groups)?))
}

minitensor::__private::inventory::submit! {
    KernelEntry { op: "convolution::forward", device: "cpu", kernels: || Kernels::Parts(convolve_in_parts) }
}

/// Passes on the parts of `convolution::forward`.
fn convolve_in_parts(inputs: &[Option<&Tensor>], attrs: &[Attr], visit: VisitPart<'_>) -> Result<bool> {
    match inputs[0].map(Tensor::dtype) {
        Some(DType::F32) => convolve_in_parts_of::<f32>(inputs, attrs, visit),
        Some(DType::F64) => convolve_in_parts_of::<f64>(inputs, attrs, visit),
        _ => Ok(false),
    }
}

fn convolve_in_parts_of<T>(inputs: &[Option<&Tensor>], attrs: &[Attr], visit: VisitPart<'_>) -> Result<bool>
where
    T: Float + Machine + Scalar<Stored = T>,
{
    let [Some(x), Some(weight), bias] = inputs else { return Ok(false) };
    let [Attr::Int(count), Attr::Ints(windows), Attr::Int(groups)] = attrs else { return Ok(false) };
    let invalid = |e: ShapeError| Error::runtime(e.to_string());
    let x = x.view::<T>()?.into_dimensionality().map_err(invalid)?;
    let weight = weight.view::<T>()?.into_dimensionality().map_err(invalid)?;
    let bias = bias.map(|bias| bias.to_vec::<T>()).transpose()?;
    let (windows, channels) = geometry(&x, &weight, *count as usize, windows, *groups as usize)?;
    let visit = |at: [usize; 2], part: ArrayView2<'_, T>| visit(OutputPart::of(at, part));
    convolution::forward_in_parts(&windows, channels, &contiguous(&x), &contiguous(&weight), bias.as_deref(), &visit)
        .map_err(no_memory)
}

/// The gradient of `convolution::forward` by its input: from windows `y` to volumes of `volume` elements.
#[custom_op(
    name = "convolution::input",
    shape = (y: [n, o, p], weight: [o, i, t]) -> [n, i * groups, volume] where groups > 0,
    backward = |g| {
        y: convolution::forward(g, weight, count = p, windows = windows, groups = groups),
        weight: convolution::weight(g, y, t, windows, groups),
    },
)]
pub fn convolve_input<T: Float>(
    y: ArrayView3<T>,
    weight: ArrayView3<T>,
    volume: usize,
    windows: &[i64],
    groups: usize,
    out: &mut [T],
) -> Result<()> {
    let ((n, o, p), (_, i, t)) = (y.dim(), weight.dim());
    let (windows, channels) = (window::windows(windows, volume, t, p)?, grouped(n, i * groups, o, groups)?);
    convolution::input(&windows, channels, &contiguous(&y), &contiguous(&weight), out).map_err(no_memory)
}

/// The gradient of `convolution::forward` by its weight, of `taps` taps.
#[custom_op(
    name = "convolution::weight",
    shape = (x: [n, c, v], y: [n, o, p]) -> [o, c / groups, taps] where groups > 0,
    backward = |g| {
        x: convolution::input(y, g, v, windows, groups),
        y: convolution::forward(x, g, count = p, windows = windows, groups = groups),
    },
)]
pub fn convolve_weight<T: Float>(
    x: ArrayView3<T>,
    y: ArrayView3<T>,
    taps: usize,
    windows: &[i64],
    groups: usize,
    out: &mut [T],
) -> Result<()> {
    let ((n, c, v), (_, o, p)) = (x.dim(), y.dim());
    let (windows, channels) = (window::windows(windows, v, taps, p)?, grouped(n, c, o, groups)?);
    convolution::weight(&windows, channels, &contiguous(&x), &contiguous(&y), out).map_err(no_memory)
}

/// The sizes of `weight`, whose first two axes are channels.
fn kernel(weight: &Tensor, rank: usize, channels: &str) -> Result<[usize; 3]> {
    if weight.ndim() == rank + 2 {
        return Ok(sizes(weight.shape(), rank));
    }
    let (shape, axes) = (weight.shape(), AXES[rank]);
    Err(Error::value(format!("'weight' must have {} dimensions, [{channels}, {axes}]; got shape {shape}", rank + 2)))
}

/// Reshapes `[.., channels, axes…]` to `[samples, channels, volume]`.
fn samples(x: &Tensor, rank: usize) -> Result<Tensor> {
    let (batch, cell) = x.shape().split_at(x.ndim() - rank - 1);
    shaped(x, [batch.iter().product(), cell[0], cell[1..].iter().product()])
}

/// Reshapes the result for `samples(x)` to the batch of `x` and axes of these sizes.
fn unsamples(out: &Tensor, x: &Tensor, rank: usize, sizes: &[usize; 3]) -> Result<Tensor> {
    let batch = &x.shape()[..x.ndim() - rank - 1];
    shaped(out, batch.iter().chain(&out.shape()[1..2]).chain(&sizes[3 - rank..]).copied())
}

/// Reshapes `[channels, channels, axes…]` to `[channels, channels, taps]`.
fn flat_kernel(weight: &Tensor) -> Result<Tensor> {
    let (channels, kernel) = weight.shape().split_at(2);
    shaped(weight, [channels[0], channels[1], kernel.iter().product()])
}

fn convolution(
    rank: usize,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    steps: Steps,
    groups: usize,
) -> Result<Tensor> {
    let (c, kernel) = (channels(x, rank)?, kernel(weight, rank, "out_channels, in_channels / groups")?);
    let (o, i) = (weight.shape()[0], weight.shape()[1]);
    if Some(c) != i.checked_mul(groups) {
        return Err(Error::value(format!(
            "'weight' of shape {} with groups = {groups} expects {i} * {groups} input channels, but 'x' of shape {} has {c}; \
             'weight' must be [out_channels, in_channels / groups, {}]",
            weight.shape(),
            x.shape(),
            AXES[rank]
        )));
    }
    grouped(1, c, o, groups)?;
    let sizes = sizes(x.shape(), rank);
    let windows = Geometry { sizes, counts: steps.counts(&sizes, &kernel)?, kernel, steps };
    let (count, list) = (windows.count()?, windows.attribute());
    let out = convolve::call(&samples(x, rank)?, &flat_kernel(weight)?, bias, count, &list, groups)?;
    unsamples(&out, x, rank, &windows.counts)
}

fn transposed(
    rank: usize,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    steps: Steps,
    output_padding: &[i64],
    groups: usize,
) -> Result<Tensor> {
    let (c, kernel) = (channels(x, rank)?, kernel(weight, rank, "in_channels, out_channels / groups")?);
    let (o, i) = (weight.shape()[0], weight.shape()[1]);
    if c != o {
        return Err(Error::value(format!(
            "'weight' of shape {} expects {o} input channels, but 'x' of shape {} has {c}; 'weight' must be [in_channels, \
             out_channels / groups, {}]",
            weight.shape(),
            x.shape(),
            AXES[rank]
        )));
    }
    grouped(1, 0, o, groups)?;
    let more = each("output_padding", output_padding, rank, 0, 0)?;
    let (counts, mut volume) = (sizes(x.shape(), rank), [0; 3]);
    for axis in 0..3 {
        let (stride, dilation) = (steps.stride[axis], steps.dilation[axis]);
        if more[axis] >= stride.max(dilation) {
            return Err(Error::value(format!(
                "'output_padding' must be less than the stride or the dilation, got {output_padding:?} with stride {stride} and \
                 dilation {dilation} along axis {}",
                axis as i64 - 3
            )));
        }
        let span =
            (counts[axis] as i64 - 1).checked_mul(stride).and_then(|s| s.checked_add(steps.reach(&kernel, axis).ok()?));
        let size = span.map(|span| span + 1 + more[axis] - 2 * steps.padding[axis]);
        volume[axis] = size.filter(|size| *size > 0 && counts[axis] > 0).ok_or_else(|| {
            Error::value(format!(
                "the output would have no elements along axis {}: size {}, kernel {}, stride {stride}, dilation {dilation}, padding {}; use \
                 less padding or a larger input",
                axis as i64 - 3,
                counts[axis],
                kernel[axis],
                steps.padding[axis]
            ))
        })? as usize;
    }
    let windows = Geometry { sizes: volume, counts, kernel, steps };
    let list = windows.attribute();
    let out = convolve_input::call(&samples(x, rank)?, &flat_kernel(weight)?, windows.volume(), &list, groups)?;
    let out = match bias {
        Some(bias) if bias.shape()[..] == [i * groups] => {
            crate::arithmetic::add::call(&out, &shaped(bias, [i * groups, 1])?)?
        }
        Some(bias) => {
            let shape = bias.shape();
            return Err(Error::value(format!(
                "'bias' must have shape [{}], one number for each output channel; got {shape}",
                i * groups
            )));
        }
        None => out,
    };
    unsamples(&out, x, rank, &volume)
}

macro_rules! convolutions {
    ($($rank:literal $name:ident $transposed:ident, $doc:literal $doc_transposed:literal;)*) => {$(
        #[doc = $doc]
        ///
        /// `x` is `[.., in_channels, axes]`, `weight` is `[out_channels, in_channels / groups, axes]`. `stride` is the
        /// distance between windows, `dilation` the distance between their taps, and `padding` the number of zeros on
        /// both sides of every axis; each is one number, or one per axis. As in PyTorch, the kernel isn't flipped.
        #[custom_op(where groups > 0)]
        pub fn $name(
            x: &Tensor,
            weight: &Tensor,
            bias: Option<&Tensor>,
            #[default = [1]] stride: &[i64],
            #[default = [0]] padding: &[i64],
            #[default = [1]] dilation: &[i64],
            #[default = 1] groups: usize,
        ) -> Result<Tensor> {
            convolution($rank, x, weight, bias, Steps::new($rank, stride, padding, dilation)?, groups)
        }

        #[doc = $doc_transposed]
        ///
        /// `x` is `[.., in_channels, axes]`, `weight` is `[in_channels, out_channels / groups, axes]`. Each size
        /// becomes `(size − 1) · stride − 2 · padding + dilation · (kernel − 1) + output_padding + 1`.
        #[custom_op(where groups > 0)]
        pub fn $transposed(
            x: &Tensor,
            weight: &Tensor,
            bias: Option<&Tensor>,
            #[default = [1]] stride: &[i64],
            #[default = [0]] padding: &[i64],
            #[default = [0]] output_padding: &[i64],
            #[default = 1] groups: usize,
            #[default = [1]] dilation: &[i64],
        ) -> Result<Tensor> {
            let steps = Steps::new($rank, stride, padding, dilation)?;
            transposed($rank, x, weight, bias, steps, output_padding, groups)
        }
    )*};
}
convolutions! {
    1 conv1d conv_transpose1d,
        "The convolution of signals with a kernel: over one axis."
        "The transpose of [`conv1d()`]: from windows back to signals.";
    2 conv2d conv_transpose2d,
        "The convolution of images with a kernel: over two axes."
        "The transpose of [`conv2d()`]: from windows back to images.";
    3 conv3d conv_transpose3d,
        "The convolution of volumes with a kernel: over three axes."
        "The transpose of [`conv3d()`]: from windows back to volumes.";
}
