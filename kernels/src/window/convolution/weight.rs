//! The gradient of the weight of a convolution.

use std::ops::Range;

use super::correlation::Band;
use super::direct::Dots;
use super::im2col::Pack;
use super::image::{Axis, all_taps};
use super::tables::Tables;
use super::{Channels, OutOfMemory, PARTS, Shared, matrix, share};
use crate::linalg::gemm::View;
use crate::linalg::gemm::tiled::{Right, Tile, tiles_of};
use crate::memory::{self, copy::copy};
use crate::runtime::register::{Job, Register, Tiled, in_registers};
use crate::runtime::threads::parallel_for;

/// The number of windows that a sum adds at a time: the packed rows of a tile stay in the L1 cache.
const DEPTH: usize = 512;
/// The maximum number of outputs for which each row is multiplied by each output.
const FEW_DOTS: usize = 3;
/// The maximum number of elements in all partial sums, unless one set of them has more.
const MOST: usize = 1 << 22;

/// `out[o, (c, t)] = Σ x[n, c, read by tap t of window i] · y[n, o, i]` for every group.
///
/// It computes the transpose: rows are channels and taps, columns are outputs. A task sums a *piece* of the bands of
/// all samples, for a *block* of the inputs of a group.
pub(super) fn of_weight<T: Tiled>(
    axes: &[Axis; 3],
    channels: Channels,
    x: &[T],
    y: &[T],
    out: &mut [T],
) -> Result<(), OutOfMemory> {
    let Channels { samples, groups, inputs, outputs } = channels;
    let bands = Band::of::<T>(axes, inputs, samples, 0)?;
    let count: usize = axes.iter().map(|a| a.count).product();
    let volume: usize = axes.iter().map(|a| a.size).product();
    let taps: usize = axes.iter().map(|a| a.shifts.len()).product();
    let all = samples * bands.len();
    let wanted = PARTS.div_ceil(groups);
    let pieces = wanted.min(all).min(MOST / (groups * outputs * inputs * taps).min(MOST)).max(1);
    let blocks = wanted.div_ceil(pieces).min(inputs);
    let part = |n: usize, part: usize, parts: usize| part * n / parts..(part + 1) * n / parts;
    let (rows, most) = (inputs * taps, inputs.div_ceil(blocks));
    let sums = memory::zeros::<T>(groups.checked_mul(pieces * rows * outputs).ok_or(OutOfMemory)?);
    let mut sums = sums.map_err(|_| OutOfMemory)?;
    let shared = Shared(sums.as_mut_ptr());
    // The rows of a tile, the panels of all outputs, and a spare panel.
    let packed = DEPTH * (outputs + 128);
    let images = Band::memory(&bands, most)?;
    let all_taps = all_taps(axes);
    let channels_of_table = if outputs <= FEW_DOTS { most } else { 1 };
    let tables = Tables::new(&bands, &[all_taps.each_ref().map(|taps| &taps[..])], channels_of_table);
    let tables = tables.ok_or(OutOfMemory)?;
    let work = outputs.saturating_mul(most * taps).saturating_mul(samples * count / pieces);
    share(
        groups * pieces * blocks,
        work,
        images.checked_add(packed).ok_or(OutOfMemory)?,
        |task, memory: *mut T, mut is_new| {
            let (group, piece, block) = (task / blocks / pieces, task / blocks % pieces, task % blocks);
            let block = part(inputs, block, blocks);
            let c = View {
                start: shared.at((group * pieces + piece) * rows * outputs),
                rows: outputs as isize,
                columns: 1,
            };
            let c = c.part(block.start * taps, 0);
            for i in part(all, piece, pieces) {
                let (n, band) = (i / bands.len(), &bands[i % bands.len()]);
                let of_sample = n * groups + group;
                let x = &x[(of_sample * inputs + block.start) * volume..][..block.len() * volume];
                let y = matrix(&y[of_sample * outputs * count..][..outputs * count], count).part(0, band.first);
                // SAFETY: there is memory for the images and the packed data. Only this task writes the sums.
                unsafe {
                    if is_new || bands.len() > 1 {
                        band.layout.clear(most, memory);
                        is_new = false;
                    }
                    band.layout.write(x, memory);
                    let packed = memory.wrapping_add(images);
                    let table = &tables.of_band(i % bands.len())[0];
                    if outputs <= FEW_DOTS {
                        let table = &table[..block.len() * taps];
                        in_registers(Dots { layout: &band.layout, table, images: memory, y, outputs, c });
                    } else {
                        in_registers(Sums {
                            band,
                            taps: table,
                            images: memory,
                            rows: block.len() * taps,
                            y,
                            outputs,
                            c,
                            packed,
                        });
                    }
                }
            }
        },
    )?;
    let size = rows * outputs;
    // The sums of pieces are added pairwise.
    let mut apart = 1;
    while apart < pieces {
        let pairs = (pieces - apart).div_ceil(2 * apart);
        parallel_for(groups * pairs, ((1 << 16) / size).max(1), |range| {
            for (group, pair) in range.map(|i| (i / pairs, i % pairs)) {
                let first = (group * pieces + pair * 2 * apart) * size;
                // SAFETY: the sums of different pairs don't overlap.
                let (to, from) = unsafe { (shared.slice(first, size), shared.slice(first + apart * size, size)) };
                to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
            }
        });
        apart *= 2;
    }
    let (shape, from) = ([groups, outputs, rows], [(pieces * size) as isize, 1, outputs as isize]);
    // SAFETY: `out` has these elements, and the first piece of each group contains its sums.
    unsafe { copy(&shape, shared.at(0).cast_const(), &from, out.as_mut_ptr(), &[size as isize, rows as isize, 1]) };
    Ok(())
}

/// The contribution of a band to the sums.
struct Sums<'a, T> {
    band: &'a Band,
    /// For each tap, the element of a channel's image that window 0 reads.
    taps: &'a [usize],
    images: *const T,
    /// The number of channels times taps.
    rows: usize,
    /// `outputs × windows`
    y: View<T>,
    outputs: usize,
    /// `rows × outputs`
    c: View<T>,
    /// Memory for the rows of a tile, and for panels of all outputs.
    packed: *mut T,
}

impl<T: Tiled> Job<T> for Sums<'_, T> {
    type Output = ();

    /// # Safety
    /// There is memory of this size, and no other task uses the sums.
    unsafe fn run<R: Register<Element = T>>(self) {
        let count = self.band.layout.count();
        for start in (0..count).step_by(DEPTH) {
            // SAFETY: the caller's contract.
            unsafe { self.add::<R>(start..(start + DEPTH).min(count)) };
        }
    }
}

impl<T: Tiled> Sums<'_, T> {
    /// Adds the contribution of some windows.
    ///
    /// # Safety
    /// As for [`Job::run`].
    unsafe fn add<R: Register<Element = T>>(&self, windows: Range<usize>) {
        let (width, depth) = (R::WIDTH * R::LANES, windows.len());
        let panels = self.packed.wrapping_add(R::ROWS * DEPTH);
        let right = self.y.transposed();
        let panel = |number: usize| panels.wrapping_add(number * width * depth);
        for number in 0..self.outputs.div_ceil(width) {
            let columns = number * width..((number + 1) * width).min(self.outputs);
            // SAFETY: the caller's contract.
            unsafe { right.pack::<R>(windows.clone(), columns, panel(number)) };
        }
        for (row, rows) in tiles_of::<R>(self.rows) {
            // SAFETY: the caller's contract.
            unsafe {
                R::run(Pack::<R> {
                    layout: &self.band.layout,
                    taps: self.taps,
                    images: self.images,
                    apart: 0,
                    rows: row..row + rows,
                    columns: windows.clone(),
                    to: self.packed,
                    step: depth,
                });
                for number in 0..self.outputs.div_ceil(width) {
                    Tile {
                        a: View { start: self.packed, rows: depth as isize, columns: 1 },
                        b: View { start: panel(number), rows: width as isize, columns: 1 },
                        c: self.c.part(row, number * width),
                        rows,
                        columns: width.min(self.outputs - number * width),
                        depth,
                        add: true,
                    }
                    .multiply::<R>();
                }
            }
        }
    }
}
