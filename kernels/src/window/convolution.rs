//! Convolutions: sums over the taps of windows, and the two gradients of such a sum.
//!
//! `out[n, o, i] = Σ x[n, c, place(i, t)] · weight[o, c, t]` over channels `c` of the group of `o` and taps `t`. It is
//! linear in `x` and in `weight`. [`forward`] computes it; [`input`] and [`weight`] are its transposes. With many
//! channels these are matrix products with a matrix that is never stored as a whole (`im2col`). With few channels,
//! each register of results is summed directly from what its windows read (`direct`).

mod correlation;
mod direct;
mod im2col;
mod image;
mod input;
mod line;
mod placement;
mod tables;
mod weight;

use std::any::TypeId;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::linalg::gemm::tiled::{IMAGES, try_with_memory};
use crate::linalg::gemm::{View, Visit, visit_as};
use crate::number::scalar::{Float, Machine};
use crate::runtime::register::Tiled;
use crate::runtime::stop::Pace;
use crate::runtime::threads::parallel_for;
use crate::window::Windows;
use correlation::{Part, Target, correlate};
use image::{Axis, all_taps};

/// The minimum number of multiplications per thread.
const GRAIN: usize = 1 << 20;
/// The maximum number of parts that work is split into: each has its own images.
const PARTS: usize = 16;
/// The channels of the samples, in `groups`, each with the same number of inputs and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// The number of samples.
    pub samples: usize,
    /// The number of groups.
    pub groups: usize,
    /// The number of input channels per group.
    pub inputs: usize,
    /// The number of output channels per group.
    pub outputs: usize,
}

/// There is not enough memory for the working buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// Runs `f` for every task, on several threads if each task has enough work. Each call gets memory for `memory` elements. If the
/// last argument is false, they are those that the previous task on this thread left.
fn share<T>(
    tasks: usize,
    work: usize,
    memory: usize,
    f: impl Fn(usize, *mut T, bool) + Sync,
) -> Result<(), OutOfMemory> {
    let failed = AtomicBool::new(false);
    parallel_for(tasks, (GRAIN / work.max(1)).max(tasks.div_ceil(PARTS)), |range| {
        let (mut pace, first) = (Pace::default(), range.start);
        let run = |memory| {
            range.for_each(|task| {
                pace.step(work);
                f(task, memory, task == first)
            })
        };
        if !try_with_memory(&IMAGES, memory, run) {
            failed.store(true, Ordering::Relaxed);
        }
    });
    if failed.into_inner() { Err(OutOfMemory) } else { Ok(()) }
}

/// Memory that tasks write to, each in its own places.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);

// SAFETY: each use documents why no other task accesses the same elements.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn at(self, element: usize) -> *mut T {
        self.0.wrapping_add(element)
    }

    /// # Safety
    /// The elements are valid, and no other reference to them exists during the lifetime.
    unsafe fn slice<'a>(self, start: usize, len: usize) -> &'a mut [T] {
        // SAFETY: by contract.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

/// A view of a row-major matrix to read.
fn matrix<T>(elements: &[T], columns: usize) -> View<T> {
    View { start: elements.as_ptr().cast_mut(), rows: columns as isize, columns: 1 }
}

/// The elements that windows read along each axis.
fn reads_of(windows: &Windows) -> [Axis; 3] {
    windows.axes().map(|a| Axis {
        size: a.size,
        count: a.count,
        stride: a.stride,
        shifts: (0..a.taps).map(|tap| (tap * a.dilation) as i64 - a.padding).collect(),
    })
}

/// Calls a function with the slices cast to the type `T`, which is `f32` or `f64`.
macro_rules! by_float {
    ($t:ty, |$($slice:ident),*; $($out:ident),*| $call:expr) => {{
        macro_rules! if_float {
            ($float:ty) => {
                if TypeId::of::<$t>() == TypeId::of::<$float>() {
                    // SAFETY: T is this type.
                    $(let $slice = unsafe { std::slice::from_raw_parts($slice.as_ptr().cast::<$float>(), $slice.len()) };)*
                    // SAFETY: as above.
                    $(let $out = unsafe { std::slice::from_raw_parts_mut($out.as_mut_ptr().cast::<$float>(), $out.len()) };)*
                    return $call;
                }
            };
        }
        if_float!(f32);
        if_float!(f64);
        unreachable!("floats are computed in f32 or f64")
    }};
}

/// Computes `out` from `x` and `weight`, plus `bias`. All are contiguous: `x` is `[samples, channels, volume]`,
/// `weight` is `[outputs, inputs of a group, taps]`, `out` is `[samples, outputs, windows]`.
pub fn forward<T: Float + Machine>(
    windows: &Windows,
    channels: Channels,
    x: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    out: &mut [T],
) -> Result<(), OutOfMemory> {
    let (count, all) = (windows.count(), channels.groups * channels.outputs);
    assert!(out.len() == channels.samples * all * count);
    if out.is_empty() {
        return Ok(());
    }
    if !has_terms(windows, channels, x, weight, bias) {
        let start = |row: usize| bias.map_or(T::zero(), |b| b[row % all]);
        out.chunks_mut(count.max(1)).enumerate().for_each(|(row, out)| out.fill(start(row)));
        return Ok(());
    }
    let (bias, has_bias, depth) = (bias.unwrap_or_default(), bias.is_some(), channels.inputs * windows.taps());
    by_float!(T, |x, weight, bias; out| {
        let size = windows.axes().each_ref().map(|a| a.count);
        let target = Target::Memory { start: Shared(out.as_mut_ptr()), size, step: [1; 3] };
        sum_taps(windows, channels, x, matrix(weight, depth), has_bias.then_some(bias), &target)
    })
}

/// Computes the elements of [`forward`] without storing them. `visit` gets each part of the matrix of `samples · outputs` rows
/// and as many columns as there are windows, while it is in the cache. Several threads may call it at a time.
///
/// Returns false, without a call of `visit`, if there is nothing to add up.
pub fn forward_in_parts<T: Float + Machine>(
    windows: &Windows,
    channels: Channels,
    x: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    visit: Visit<'_, T>,
) -> Result<bool, OutOfMemory> {
    let is_empty = channels.samples * channels.groups * channels.outputs * windows.count() == 0;
    if is_empty || !has_terms(windows, channels, x, weight, bias) {
        return Ok(false);
    }
    let (bias, has_bias, depth) = (bias.unwrap_or_default(), bias.is_some(), channels.inputs * windows.taps());
    by_float!(T, |x, weight, bias;| {
        // SAFETY: T is the type of the slices.
        let target = Target::Visit(unsafe { visit_as(visit) });
        sum_taps(windows, channels, x, matrix(weight, depth), has_bias.then_some(bias), &target).map(|()| true)
    })
}

/// The sums of all taps, to a target.
fn sum_taps<T: Tiled>(
    windows: &Windows,
    channels: Channels,
    x: &[T],
    weight: View<T>,
    bias: Option<&[T]>,
    target: &Target<'_, T>,
) -> Result<(), OutOfMemory> {
    let axes = reads_of(windows);
    let taps = all_taps(&axes);
    let part = Part { taps: taps.each_ref().map(|taps| &taps[..]), weight, first: [0; 3] };
    correlate(&axes, channels, x, &[part], bias, target)
}

/// Whether a result has terms.
///
/// # Panics
/// If the slices do not have as many elements as there are.
fn has_terms<T>(windows: &Windows, channels: Channels, x: &[T], weight: &[T], bias: Option<&[T]>) -> bool {
    let Channels { samples, groups, inputs, outputs } = channels;
    let (volume, taps) = (windows.volume(), windows.taps());
    assert!(x.len() == samples * groups * inputs * volume && weight.len() == groups * outputs * inputs * taps);
    assert!(bias.is_none_or(|b| b.len() == groups * outputs));
    inputs * taps > 0 && volume > 0
}

/// The gradient of `x`, which is the transpose of [`forward`] as a function of `x`. `y` is `[samples, outputs,
/// windows]`, `out` is `[samples, channels, volume]`.
pub fn input<T: Float + Machine>(
    windows: &Windows,
    channels: Channels,
    y: &[T],
    weight: &[T],
    out: &mut [T],
) -> Result<(), OutOfMemory> {
    let Channels { samples, groups, inputs, outputs } = channels;
    let (volume, count, taps) = (windows.volume(), windows.count(), windows.taps());
    assert!(y.len() == samples * groups * outputs * count && weight.len() == groups * outputs * inputs * taps);
    assert!(out.len() == samples * groups * inputs * volume);
    if out.is_empty() || y.is_empty() || weight.is_empty() {
        out.fill(T::zero());
        return Ok(());
    }
    by_float!(T, |y, weight; out| input::of_input(windows, channels, y, weight, out))
}

/// The gradient of `weight`: `out[o, c, t] = Σ x[n, c, place(i, t)] · y[n, o, i]`.
pub fn weight<T: Float + Machine>(
    windows: &Windows,
    channels: Channels,
    x: &[T],
    y: &[T],
    out: &mut [T],
) -> Result<(), OutOfMemory> {
    let Channels { samples, groups, inputs, outputs } = channels;
    let (volume, count, taps) = (windows.volume(), windows.count(), windows.taps());
    assert!(x.len() == samples * groups * inputs * volume && y.len() == samples * groups * outputs * count);
    assert!(out.len() == groups * outputs * inputs * taps);
    if out.is_empty() || x.is_empty() || y.is_empty() {
        out.fill(T::zero());
        return Ok(());
    }
    by_float!(T, |x, y; out| weight::of_weight(&reads_of(windows), channels, x, y, out))
}
