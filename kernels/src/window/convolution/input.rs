//! The gradient of the input of a convolution: a correlation of the windows for each phase of the volume.

use super::correlation::{Part, Target, correlate};
use super::image::Axis;
use super::{Channels, OutOfMemory, Shared, matrix};
use crate::linalg::gemm::tiled::{FEW, copy_few};
use crate::runtime::register::Tiled;
use crate::runtime::threads::parallel_for;
use crate::window::{self, Windows};

/// The number of inputs and of outputs whose weights are copied together: their cache lines fit the L1 cache.
const BLOCK: usize = 16;
/// The minimum number of weights per thread.
const GRAIN: usize = 1 << 15;

/// The elements of an axis in the same phase of the windows.
struct Phase {
    /// The first element.
    first: usize,
    /// The taps that read them.
    taps: Vec<usize>,
}

/// The phases of one axis that taps read, in the order of their first elements. The windows that read consecutive elements of a
/// phase are consecutive, so these windows are themselves what taps read.
fn phases(axis: &window::Axis) -> (Vec<Phase>, Axis) {
    let (stride, taps) = (axis.stride as i64, 0..axis.taps);
    let shift = |tap: usize| (tap * axis.dilation) as i64 - axis.padding;
    let first = |tap: usize| shift(tap).rem_euclid(stride) as usize;
    let shifts = taps.clone().map(|tap| (first(tap) as i64 - shift(tap)) / stride).collect();
    let reads = Axis { size: axis.count, count: axis.size.div_ceil(axis.stride), stride: 1, shifts };
    let mut reading: Vec<(usize, usize)> = taps.map(|tap| (first(tap), tap)).filter(|of| of.0 < axis.size).collect();
    reading.sort_unstable();
    let of_phase = |taps: &[(usize, usize)]| Phase { first: taps[0].0, taps: taps.iter().map(|of| of.1).collect() };
    let phases = reading.chunk_by(|a, b| a.0 == b.0).map(of_phase).collect();
    (phases, reads)
}

/// `out[n, c, place(i, t)] = Σ y[n, o, i] · weight[o, c, t]`.
pub(super) fn of_input<T: Tiled>(
    windows: &Windows,
    channels: Channels,
    y: &[T],
    weight: &[T],
    out: &mut [T],
) -> Result<(), OutOfMemory> {
    let turned = Channels { inputs: channels.outputs, outputs: channels.inputs, ..channels };
    let axes = windows.axes();
    let (size, step) = (axes.each_ref().map(|a| a.size), axes.each_ref().map(|a| a.stride));
    let [(outer, reads_0), (middle, reads_1), (inner, reads_2)] = axes.each_ref().map(phases);
    let reached = |phases: &[Phase], axis: usize| {
        phases.iter().map(|phase| (size[axis] - phase.first).div_ceil(step[axis])).sum::<usize>()
    };
    if reached(&outer, 0) * reached(&middle, 1) * reached(&inner, 2) < windows.volume() {
        out.fill(T::zero());
    }
    let mut phases = Vec::new();
    for p0 in &outer {
        for p1 in &middle {
            phases.extend(inner.iter().map(|p2| [p0, p1, p2]));
        }
    }
    let taps = phases.iter().map(|phase| {
        let [t0, t1, t2] = phase.map(|phase| &phase.taps[..]);
        let rows = t0.iter().flat_map(|i| t1.iter().map(move |j| i * axes[1].taps + j));
        rows.flat_map(|row| t2.iter().map(move |k| row * axes[2].taps + k)).collect()
    });
    let weights = weights_of(channels, windows.taps(), weight, &taps.collect::<Vec<_>>())?;
    let parts = phases.iter().zip(&weights).map(|(phase, weight)| Part {
        taps: phase.map(|phase| &phase.taps[..]),
        weight: matrix(weight, weight.len() / (channels.groups * channels.inputs)),
        first: phase.map(|phase| phase.first),
    });
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() {
        return Ok(());
    }
    let target = Target::Memory { start: Shared(out.as_mut_ptr()), size, step };
    correlate(&[reads_0, reads_1, reads_2], turned, y, &parts, None, &target)
}

/// For each of some lists of taps, the weights `[groups, inputs, outputs, these taps]`.
fn weights_of<T: Tiled>(
    channels: Channels,
    all_taps: usize,
    weight: &[T],
    lists: &[Vec<usize>],
) -> Result<Vec<Vec<T>>, OutOfMemory> {
    let Channels { groups, inputs, outputs, .. } = channels;
    let mut weights = Vec::new();
    for taps in lists {
        let mut own = Vec::new();
        own.try_reserve_exact(groups * inputs * outputs * taps.len()).map_err(|_| OutOfMemory)?;
        weights.push(own);
    }
    let starts: Vec<_> = weights.iter_mut().map(|own: &mut Vec<T>| Shared(own.as_mut_ptr())).collect();
    let copy = |group: usize, input: usize, output: usize| {
        let row = &weight[((group * outputs + output) * inputs + input) * all_taps..][..all_taps];
        let place = (group * inputs + input) * outputs + output;
        for (taps, start) in lists.iter().zip(&starts) {
            let to = start.at(place * taps.len());
            // SAFETY: there is memory for the taps of every place. Each place is written once.
            unsafe {
                if taps.len() == all_taps && all_taps <= FEW {
                    copy_few(row.as_ptr(), to, all_taps);
                } else {
                    taps.iter().enumerate().for_each(|(i, tap)| to.add(i).write(row[*tap]));
                }
            }
        }
    };
    let blocks = inputs.div_ceil(BLOCK);
    let work = BLOCK.min(inputs) * outputs * all_taps;
    parallel_for(groups * blocks, GRAIN.div_ceil(work), |range| {
        for (group, block) in range.map(|task| (task / blocks, task % blocks)) {
            for first in (0..outputs).step_by(BLOCK) {
                for input in block * BLOCK..inputs.min((block + 1) * BLOCK) {
                    (first..outputs.min(first + BLOCK)).for_each(|output| copy(group, input, output));
                }
            }
        }
    });
    for (own, taps) in weights.iter_mut().zip(lists) {
        // SAFETY: every element was written.
        unsafe { own.set_len(groups * inputs * outputs * taps.len()) };
    }
    Ok(weights)
}
