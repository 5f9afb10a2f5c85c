//! Convolutions: sums over the taps of windows, and the two gradients of such a sum.
//!
//! `out[n, o, i] = Σ x[n, c, place(i, t)] · weight[o, c, t]` over channels `c` of the group of `o` and taps `t`. It is linear
//! in `x` and in `weight`; [`forward`] computes it, [`input`] and [`weight`] are its transposes. With many channels these
//! are matrix products with the matrix of [`unfold`], of which only a tile is made at a time; with few they are plain
//! loops over rows.

mod lines;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::gemm::{View, multiply_alone};
use crate::scalar::{Float, Machine};
use crate::threads::parallel_for;
use crate::window::{Windows, fold, unfold};
use lines::{correlate, gather, scatter, surround};

/// Multiplications that are worth a thread's while.
const GRAIN: usize = 1 << 20;
/// Into how many parts work is shared out at most: each has a tile of its own.
const PARTS: usize = 16;
/// Elements of a tile, and columns that it has at least.
const TILE: usize = 1 << 18;
const COLUMNS: usize = 256;
/// Rows of a block of channels that are worth a matrix product.
const ROWS: usize = 64;
/// Up to so many channels on the side of the result, plain loops are quicker than matrix products.
const FEW: usize = 3;

/// How channels belong together: those of a sample in `groups`, each with so many inputs and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// How many samples.
    pub samples: usize,
    /// How many groups.
    pub groups: usize,
    /// Channels of the input in each.
    pub inputs: usize,
    /// Channels of the output in each.
    pub outputs: usize,
}

/// The memory for a tile can't be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// Sizes that all three share.
struct Plan<'a> {
    windows: &'a Windows,
    channels: Channels,
    volume: usize,
    count: usize,
    taps: usize,
    /// Channels of the input that are unfolded together, and windows.
    block: usize,
    tile: usize,
}

impl Plan<'_> {
    fn new(windows: &Windows, channels: Channels, block: usize) -> Plan<'_> {
        let (count, taps, block) = (windows.count(), windows.taps(), block.clamp(1, channels.inputs.max(1)));
        let rows = (block * taps).max(1);
        let tiles =
            if windows.is_pointwise() { count.div_ceil(512) } else { count.div_ceil((TILE / rows).max(COLUMNS)) };
        let tile = count.div_ceil(tiles.max(1)).max(1);
        Plan { windows, channels, volume: windows.volume(), count, taps, block, tile }
    }

    fn blocks(&self) -> usize {
        self.channels.inputs.div_ceil(self.block)
    }

    fn tiles(&self) -> usize {
        self.count.div_ceil(self.tile)
    }

    /// The first channel of a block in its group, and how many.
    fn channels_of(&self, block: usize) -> (usize, usize) {
        let first = block * self.block;
        (first, self.block.min(self.channels.inputs - first))
    }

    fn columns_of(&self, tile: usize) -> std::ops::Range<usize> {
        tile * self.tile..((tile + 1) * self.tile).min(self.count)
    }

    /// Elements of the matrix of a tile.
    fn memory(&self) -> usize {
        if self.windows.is_pointwise() { 0 } else { self.block * self.taps * self.tile }
    }
}

/// Runs `f` for every task, on several threads if so much work for each is worth it, with zeroed memory that it shares with
/// other tasks on its thread.
fn share<T: Float + Machine>(
    tasks: usize,
    work: usize,
    memory: usize,
    f: impl Fn(usize, &mut [T]) + Sync,
) -> Result<(), OutOfMemory> {
    let failed = AtomicBool::new(false);
    parallel_for(tasks, (GRAIN / work.max(1)).max(tasks.div_ceil(PARTS)), |range| {
        let mut own = Vec::new();
        if own.try_reserve_exact(memory).is_err() {
            return failed.store(true, Ordering::Relaxed);
        }
        own.resize(memory, T::zero());
        range.for_each(|task| f(task, &mut own));
    });
    if failed.into_inner() { Err(OutOfMemory) } else { Ok(()) }
}

/// Memory that tasks write to, each in places of its own.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);

// SAFETY: who writes through it says why nobody else does.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn at(self, element: usize) -> *mut T {
        self.0.wrapping_add(element)
    }

    /// # Safety
    /// The elements are there, and nobody else refers to them meanwhile.
    unsafe fn slice<'a>(self, start: usize, len: usize) -> &'a mut [T] {
        // SAFETY: by contract.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

/// A matrix to read, row by row.
fn matrix<T>(elements: &[T], columns: usize) -> View<T> {
    View { start: elements.as_ptr().cast_mut(), rows: columns as isize, columns: 1 }
}

/// `out` of `x` and `weight`, plus `bias`. All are contiguous: `x` is `[samples, channels, volume]`, `weight` is
/// `[outputs, inputs of a group, taps]`, `out` is `[samples, outputs, windows]`.
pub fn forward<T: Float + Machine>(
    windows: &Windows,
    channels: Channels,
    x: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    out: &mut [T],
) -> Result<(), OutOfMemory> {
    let Channels { samples, groups, inputs, outputs } = channels;
    let plan = Plan::new(windows, channels, inputs);
    let Plan { volume, count, taps, .. } = plan;
    assert!(x.len() == samples * groups * inputs * volume && weight.len() == groups * outputs * inputs * taps);
    assert!(out.len() == samples * groups * outputs * count && bias.is_none_or(|b| b.len() == groups * outputs));
    let start = |o: usize| bias.map_or(T::zero(), |b| b[o]);
    if inputs * taps == 0 || volume == 0 || outputs <= FEW {
        let shared = Shared(out.as_mut_ptr());
        let padded = windows.padded();
        let (seen, memory) = padded.as_ref().map_or((windows, 0), |padded| (padded, padded.volume()));
        return share(samples * groups * outputs, inputs * taps * count, memory, |task, memory: &mut [T]| {
            let (sample, o) = (task / (groups * outputs), task % (groups * outputs));
            // SAFETY: one task for each row of `out`.
            let out = unsafe { shared.slice(task * count, count) };
            out.fill(start(o));
            let first = (sample * groups + o / outputs) * inputs;
            for c in 0..if volume == 0 { 0 } else { inputs } {
                let (x, weight) = (&x[(first + c) * volume..][..volume], &weight[(o * inputs + c) * taps..][..taps]);
                let x = if padded.is_some() { surround(windows, x, memory) } else { x };
                gather(seen, x, weight, out);
            }
        });
    }
    let (shared, tiles, depth) = (Shared(out.as_mut_ptr()), plan.tiles(), inputs * taps);
    share(samples * groups * tiles, outputs * depth * plan.tile, plan.memory(), |task, memory: &mut [T]| {
        let (of_sample, tile) = (task / tiles, task % tiles);
        let group = of_sample % groups;
        let columns = plan.columns_of(tile);
        let width = columns.len();
        let x = &x[of_sample * inputs * volume..][..inputs * volume];
        let seen = if windows.is_pointwise() {
            matrix(&x[columns.start..], volume)
        } else {
            for (x, memory) in x.chunks_exact(volume).zip(memory.chunks_exact_mut(taps * width)) {
                unfold(windows, x, columns.clone(), memory);
            }
            matrix(memory, width)
        };
        let first = of_sample * outputs;
        if bias.is_some() {
            for o in 0..outputs {
                // SAFETY: one task for these columns of these rows.
                unsafe { shared.slice((first + o) * count + columns.start, width) }.fill(start(group * outputs + o));
            }
        }
        let weight = matrix(&weight[group * outputs * depth..][..outputs * depth], depth);
        let start = shared.at(first * count + columns.start);
        let out = View { start, rows: count as isize, columns: 1 };
        // SAFETY: sizes are those of the slices, and only this task writes to these columns of these rows.
        unsafe { multiply_alone((outputs, width, depth), weight, seen, out, bias.is_some()) }
    })
}

/// The gradient of `x`: what [`forward`] takes from an element of `x` to windows, back from windows to elements.
/// `y` is `[samples, outputs, windows]`, `out` is `[samples, channels, volume]`.
pub fn input<T: Float + Machine>(
    windows: &Windows,
    channels: Channels,
    y: &[T],
    weight: &[T],
    out: &mut [T],
) -> Result<(), OutOfMemory> {
    let Channels { samples, groups, inputs, outputs } = channels;
    if let Some(reversed) = windows.reversed() {
        let turned = Channels { inputs: outputs, outputs: inputs, ..channels };
        return forward(&reversed, turned, y, &flipped(weight, channels, windows.taps())?, None, out);
    }
    let plan = Plan::new(windows, channels, inputs.div_ceil(2).max(32));
    let Plan { volume, count, taps, .. } = plan;
    assert!(y.len() == samples * groups * outputs * count && weight.len() == groups * outputs * inputs * taps);
    assert!(out.len() == samples * groups * inputs * volume);
    out.fill(T::zero());
    if out.is_empty() || y.is_empty() || weight.is_empty() {
        return Ok(());
    }
    let shared = Shared(out.as_mut_ptr());
    if inputs <= FEW && outputs <= FEW {
        let work = outputs * taps * count;
        parallel_for(samples * groups * inputs, (GRAIN / work).max(1), |range| {
            for task in range {
                let (of_sample, c) = (task / inputs, task % inputs);
                // SAFETY: one task for each channel of a sample.
                let out = unsafe { shared.slice(task * volume, volume) };
                for o in 0..outputs {
                    let y = &y[(of_sample * outputs + o) * count..][..count];
                    let first = ((of_sample % groups * outputs + o) * inputs + c) * taps;
                    scatter(windows, y, &weight[first..][..taps], out);
                }
            }
        });
        return Ok(());
    }
    let (blocks, depth) = (plan.blocks(), inputs * taps);
    share(samples * groups * blocks, outputs * plan.block * taps * count, plan.memory(), |task, memory: &mut [T]| {
        let (of_sample, block) = (task / blocks, task % blocks);
        let group = of_sample % groups;
        let (first, channels) = plan.channels_of(block);
        let rows = channels * taps;
        // SAFETY: one task for each block of channels of a sample.
        let out = unsafe { shared.slice((of_sample * inputs + first) * volume, channels * volume) };
        let weight = &weight[group * outputs * depth + first * taps..];
        let weight = View { start: weight.as_ptr().cast_mut(), rows: 1, columns: depth as isize };
        for tile in 0..plan.tiles() {
            let columns = plan.columns_of(tile);
            let width = columns.len();
            let memory = &mut memory[..rows * width];
            let y = matrix(&y[of_sample * outputs * count + columns.start..], count);
            let seen = View { start: memory.as_mut_ptr(), rows: width as isize, columns: 1 };
            // SAFETY: sizes are those of the slices.
            unsafe { multiply_alone((rows, width, outputs), weight, y, seen, false) };
            for (x, memory) in out.chunks_exact_mut(volume).zip(memory.chunks_exact(taps * width)) {
                fold(windows, memory, columns.clone(), x);
            }
        }
    })
}

/// `[outputs, inputs, taps]` of every group as `[inputs, outputs, taps in reverse]`.
fn flipped<T: Machine>(weight: &[T], channels: Channels, taps: usize) -> Result<Vec<T>, OutOfMemory> {
    let Channels { groups, inputs, outputs, .. } = channels;
    let mut flipped = Vec::new();
    flipped.try_reserve_exact(weight.len()).map_err(|_| OutOfMemory)?;
    for group in 0..groups {
        for c in 0..inputs {
            for o in 0..outputs {
                flipped.extend(weight[((group * outputs + o) * inputs + c) * taps..][..taps].iter().rev());
            }
        }
    }
    Ok(flipped)
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
    // Blocks of channels, so that there are some for every thread, and each is worth a matrix product.
    let least = ROWS.div_ceil(windows.taps().max(1));
    let plan = Plan::new(windows, channels, inputs.div_ceil(PARTS.div_ceil(groups.max(1))).max(least));
    let Plan { volume, count, taps, .. } = plan;
    assert!(x.len() == samples * groups * inputs * volume && y.len() == samples * groups * outputs * count);
    assert!(out.len() == groups * outputs * inputs * taps);
    out.fill(T::zero());
    if out.is_empty() || x.is_empty() || y.is_empty() {
        return Ok(());
    }
    let shared = Shared(out.as_mut_ptr());
    if outputs * inputs <= FEW * FEW {
        let work = taps * count * samples;
        parallel_for(groups * outputs * inputs, (GRAIN / work).max(1), |range| {
            for task in range {
                let (o, c) = (task / inputs, task % inputs);
                // SAFETY: one task for each kernel.
                let out = unsafe { shared.slice(task * taps, taps) };
                for sample in 0..samples {
                    let y = &y[(sample * groups * outputs + o) * count..][..count];
                    let x = &x[((sample * groups + o / outputs) * inputs + c) * volume..][..volume];
                    correlate(windows, x, y, out);
                }
            }
        });
        return Ok(());
    }
    let (blocks, depth) = (plan.blocks(), inputs * taps);
    let work = outputs * plan.block * taps * count * samples;
    share(groups * blocks, work, plan.memory(), |task, memory: &mut [T]| {
        let (group, block) = (task / blocks, task % blocks);
        let (first, channels) = plan.channels_of(block);
        let rows = channels * taps;
        let start = shared.at(group * outputs * depth + first * taps);
        let out = View { start, rows: depth as isize, columns: 1 };
        for (step, (sample, tile)) in (0..samples).flat_map(|n| (0..plan.tiles()).map(move |t| (n, t))).enumerate() {
            let of_sample = sample * groups + group;
            let columns = plan.columns_of(tile);
            let width = columns.len();
            let x = &x[(of_sample * inputs + first) * volume..][..channels * volume];
            let seen = if windows.is_pointwise() {
                matrix(&x[columns.start..], volume)
            } else {
                for (x, memory) in x.chunks_exact(volume).zip(memory.chunks_exact_mut(taps * width)) {
                    unfold(windows, x, columns.clone(), memory);
                }
                matrix(memory, width)
            };
            let y = matrix(&y[of_sample * outputs * count + columns.start..], count);
            // SAFETY: sizes are those of the slices, and only this task writes to these columns of these rows.
            unsafe { multiply_alone((outputs, rows, width), y, seen.transposed(), out, step > 0) }
        }
    })
}
