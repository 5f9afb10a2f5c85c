//! The products of weights and what windows read: a matrix product for each band of windows of each sample.

use std::ptr;

use super::direct::Direct;
use super::im2col::Im2col;
use super::image::{Axis, ImageLayout};
use super::placement::Placement;
use super::tables::Tables;
use super::{Channels, OutOfMemory, PARTS, Shared, share};
use crate::linalg::gemm::tiled::Product;
use crate::linalg::gemm::{View, Visit};
use crate::runtime::register::{Tiled, in_registers};
use crate::runtime::threads::num_threads;

/// The size in bytes of images that fit the L2 cache together with weights and a packed panel.
const LEVEL_2: usize = 256 << 10;
/// The minimum number of windows in a band, unless there are fewer.
const LEAST: usize = 192;
/// The maximum number of windows of several samples that share panels.
const TOGETHER: usize = 400;
/// The number of tasks per thread from which outputs are not split, and the minimum number of outputs of a task: each task packs
/// the panels for itself.
const TASKS: usize = 2;
const ROWS: usize = 48;

/// Windows whose images are written together: consecutive windows of the outermost axis with more than one window.
pub(super) struct Band {
    pub layout: ImageLayout,
    /// The index of the first window.
    pub first: usize,
}

impl Band {
    /// Splits the windows into bands, for images of this number of channels. Every band is computed `times` times, and
    /// a large `times` requires fewer bands. `kept` results of each window are kept in the cache, too.
    pub fn of<T>(axes: &[Axis; 3], channels: usize, times: usize, kept: usize) -> Result<Vec<Band>, OutOfMemory> {
        let whole = ImageLayout::new(axes).ok_or(OutOfMemory)?;
        let bytes = whole.memory(channels).and_then(|n| n.checked_mul(size_of::<T>())).ok_or(OutOfMemory)?;
        let (count, axis) = (whole.count(), axes.iter().position(|a| a.count > 1).unwrap_or(2));
        let most = (count / LEAST).clamp(1, axes[axis].count.max(1));
        let results = count.saturating_mul(kept).saturating_mul(size_of::<T>());
        let parts = bytes.max(results).div_ceil(LEVEL_2).max(PARTS.div_ceil(times.max(1))).min(most);
        let (windows, each) = (axes[axis].count, count / axes[axis].count.max(1));
        let mut bands = Vec::new();
        bands.try_reserve_exact(parts).map_err(|_| OutOfMemory)?;
        for part in 0..parts {
            let range = part * windows / parts..(part + 1) * windows / parts;
            let mut own = axes.clone();
            own[axis] = axes[axis].part(range.clone());
            bands.push(Band { layout: ImageLayout::new(&own).ok_or(OutOfMemory)?, first: range.start * each });
        }
        Ok(bands)
    }

    /// The number of elements of the largest images with this number of channels.
    pub fn memory(bands: &[Band], channels: usize) -> Result<usize, OutOfMemory> {
        let most = bands.iter().map(|band| band.layout.memory(channels)).try_fold(0, |most, n| Some(most.max(n?)));
        most.ok_or(OutOfMemory)
    }
}

/// Sums of some taps for every window.
pub(super) struct Part<'a, T> {
    /// The indices of the taps along each axis.
    pub taps: [&'a [usize]; 3],
    /// A row for each output of each group, and a column for each input and tap.
    pub weight: View<T>,
    /// The element that gets the results of the first window, along each axis.
    pub first: [usize; 3],
}

impl<T> Part<'_, T> {
    /// The number of columns of the weight.
    fn depth(&self, inputs: usize) -> usize {
        inputs * self.taps.iter().map(|taps| taps.len()).product::<usize>()
    }
}

/// The destination of results.
pub(super) enum Target<'a, T> {
    /// Memory: a volume for each output of each sample.
    Memory {
        start: Shared<T>,
        /// The size of a volume.
        size: [usize; 3],
        /// The distance from the element of a window to that of the next one, along each axis.
        step: [usize; 3],
    },
    /// A function of each part of a matrix, which has a row for each output of each sample, and a column for each window.
    /// There is one [`Part`].
    Visit(Visit<'a, T>),
}

/// For each of `parts`: `Σ x[n, c, read by tap t of window i] · weight[o, (c, t)]`, plus `bias[o]`, for every sample `n`,
/// output `o` and window `i`.
pub(super) fn correlate<T: Tiled>(
    axes: &[Axis; 3],
    channels: Channels,
    x: &[T],
    parts: &[Part<'_, T>],
    bias: Option<&[T]>,
    target: &Target<'_, T>,
) -> Result<(), OutOfMemory> {
    let Channels { samples, groups, inputs, outputs } = channels;
    let bands_for = |kept: usize| Band::of::<T>(axes, inputs, samples * groups, kept);
    let mut bands = bands_for(0)?;
    let (count, volume): (usize, usize) =
        (axes.iter().map(|a| a.count).product(), axes.iter().map(|a| a.size).product());
    // The method determines the bits of sums, so it is that of results in memory.
    let is_identity = axes.iter().all(Axis::is_identity);
    let method = if is_identity { Method::Identity } else { Method::of::<T>(&bands[0].layout, outputs) };
    if let Target::Visit(_) = target {
        bands = bands_for(outputs)?;
    }
    // Samples with few windows share panels, and tasks split the outputs instead.
    let is_short = method == Method::Packed && bands.len() == 1 && count > 0;
    let together = if is_short { (TOGETHER / count).clamp(1, samples.max(1)) } else { 1 };
    let tasks = samples.div_ceil(together) * groups * bands.len();
    let wanted = TASKS * num_threads();
    let blocks = if is_short { wanted.div_ceil(tasks.max(1)).min(outputs / ROWS).max(1) } else { 1 };
    let images = Band::memory(&bands, inputs)?;
    let channels_of_table = if method.is_direct() { inputs } else { 1 };
    let taps: Vec<_> = parts.iter().map(|part| part.taps).collect();
    let tables = Tables::new(&bands, &taps, channels_of_table).ok_or(OutOfMemory)?;
    let is_apart = match target {
        Target::Memory { size, step, .. } => {
            parts.len() > 1 || parts[0].first != [0; 3] || *step != [1; 3] || *size != axes.each_ref().map(|a| a.count)
        }
        Target::Visit(_) => true,
    };
    let has_own = is_apart || method == Method::Flat || together > 1;
    let this = Correlation {
        channels,
        x,
        parts,
        bias,
        target,
        counts: axes.each_ref().map(|a| a.count),
        bands,
        tables,
        method,
        has_own,
        together,
        blocks,
        images,
        volume,
    };
    let columns = this.bands.iter().map(|band| this.columns(&band.layout)).max().unwrap_or(0);
    let rows = outputs.div_ceil(blocks) * this.neighbors().map(<[_]>::len).max().unwrap_or(0);
    let own = if has_own { rows.checked_mul(columns * together) } else { Some(0) };
    let memory = images.checked_mul(together).zip(own).and_then(|(images, own)| images.checked_add(own));
    let (tasks, memory) = (tasks * blocks, memory.ok_or(OutOfMemory)?);
    let depth: usize = parts.iter().map(|part| part.depth(inputs)).sum();
    let work = (outputs / blocks).saturating_mul(depth).saturating_mul(columns * together);
    // SAFETY: `run` gets the number of an existing task and the memory that it needs.
    share(tasks, work, memory, |task, memory, is_new| unsafe { this.run(task, memory, is_new) })
}

/// A correlation that is split into tasks.
struct Correlation<'a, T> {
    channels: Channels,
    x: &'a [T],
    parts: &'a [Part<'a, T>],
    bias: Option<&'a [T]>,
    target: &'a Target<'a, T>,
    /// The number of windows along each axis.
    counts: [usize; 3],
    bands: Vec<Band>,
    /// The elements that the taps of each part read. A method that reads images in place has tables for all inputs, others for one.
    tables: Tables,
    method: Method,
    /// True if results are computed in the task's own memory and then copied to their destination.
    has_own: bool,
    /// The number of samples per task.
    together: usize,
    /// The number of parts of the outputs.
    blocks: usize,
    /// The number of elements in the images of a sample.
    images: usize,
    /// The number of elements in a channel of `x`.
    volume: usize,
}

impl<T: Tiled> Correlation<'_, T> {
    /// The parts, in groups whose results are side by side along the innermost axis.
    fn neighbors(&self) -> impl Iterator<Item = &[Part<'_, T>]> {
        self.parts.chunk_by(|a, b| a.first[..2] == b.first[..2] && a.first[2] + 1 == b.first[2])
    }

    /// The number of columns that are computed for a sample.
    fn columns(&self, layout: &ImageLayout) -> usize {
        match self.method {
            Method::Flat => layout.count() / layout.counts()[2].max(1) * layout.pitch(),
            _ => layout.count(),
        }
    }

    /// # Safety
    /// The task exists, and there is memory for its images and own results. Unless `is_new`, it was used for another task.
    unsafe fn run(&self, task: usize, memory: *mut T, is_new: bool) {
        let Channels { samples, groups, inputs, outputs } = self.channels;
        let (rest, block) = (task / self.blocks, task % self.blocks);
        let (rest, number) = (rest / self.bands.len(), rest % self.bands.len());
        let (first_sample, group) = (rest / groups * self.together, rest % groups);
        let band @ Band { layout, first } = &self.bands[number];
        let (columns, together) = (self.columns(layout), self.together.min(samples - first_sample));
        let rows = block * outputs / self.blocks..(block + 1) * outputs / self.blocks;
        if columns == 0 {
            return;
        }
        let output = |sample: usize| ((first_sample + sample) * groups + group) * outputs + rows.start;
        let of_sample = |sample: usize| {
            &self.x[((first_sample + sample) * groups + group) * inputs * self.volume..][..inputs * self.volume]
        };
        if self.method != Method::Identity {
            // SAFETY: there is memory for the images.
            unsafe {
                for sample in 0..together {
                    let images = memory.add(sample * self.images);
                    if is_new || self.bands.len() > 1 {
                        layout.clear(inputs, images);
                    }
                    layout.write(of_sample(sample), images);
                }
            }
        }
        let (images, add) = (memory.cast_const(), self.bias.is_some());
        let mut tables = self.tables.of_band(number).iter();
        for parts in self.neighbors() {
            let c = match self.target {
                Target::Memory { start, size, .. } if !self.has_own => {
                    let volume: usize = size.iter().product();
                    View { start: start.at(output(0) * volume + first), rows: volume as isize, columns: 1 }
                }
                _ => View {
                    start: memory.wrapping_add(self.images * together),
                    rows: (columns * together) as isize,
                    columns: 1,
                },
            };
            for (place, (part, taps)) in parts.iter().zip(&mut tables).enumerate() {
                let c = c.part(place * rows.len(), 0);
                if let Some(bias) = self.bias {
                    for (o, bias) in bias[group * outputs..][rows.clone()].iter().enumerate() {
                        // SAFETY: only this task writes these results.
                        unsafe { (0..columns * together).for_each(|i| c.at(o, i).write(*bias)) };
                    }
                }
                let size = (rows.len(), columns * together, part.depth(inputs));
                let a = part.weight.part(group * outputs + rows.start, 0);
                // SAFETY: `a`, `b` and `c` have these sizes, and only this task writes `c`.
                unsafe {
                    match self.method {
                        Method::Identity => {
                            let x = &of_sample(0)[*first..];
                            let b = View { start: x.as_ptr().cast_mut(), rows: self.volume as isize, columns: 1 };
                            in_registers(Product { size, a, b, c, add, alone: true });
                        }
                        Method::Packed => {
                            let b = Im2col { layout, taps, images, apart: self.images, first: 0 };
                            in_registers(Product { size, a, b, c, add, alone: true });
                        }
                        Method::Lines | Method::Flat => {
                            let (table, flat) = (taps, self.method == Method::Flat);
                            in_registers(Direct { layout, table, images, weight: a, rows: rows.len(), c, add, flat });
                        }
                    }
                }
            }
            for sample in 0..if self.has_own { together } else { 0 } {
                // SAFETY: only this task has these results, and writes them to their destination.
                unsafe { self.finish(c.part(0, sample * columns), output(sample), rows.len(), band, parts) };
            }
        }
    }

    /// Passes on the results of a sample, or copies them to their destination.
    ///
    /// # Safety
    /// `c` has `rows` rows for each part, which only this task uses. The first one has the number `row`.
    unsafe fn finish(&self, c: View<T>, row: usize, rows: usize, band: &Band, parts: &[Part<'_, T>]) {
        let (counts, pitch) = (self.counts, self.pitch(&band.layout));
        // SAFETY: the caller's contract.
        unsafe {
            match self.target {
                Target::Memory { start, size, step } => {
                    let (size, step) = (*size, *step);
                    let to = start.at(row * size.iter().product::<usize>());
                    in_registers(Placement { counts, band, pitch, parts, c, rows, to, size, step });
                }
                Target::Visit(visit) => self.visit(c, row, rows, band, visit),
            }
        }
    }

    /// The distance between the first windows of lines in computed results.
    fn pitch(&self, layout: &ImageLayout) -> usize {
        if self.method == Method::Flat { layout.pitch() } else { layout.counts()[2] }
    }

    /// Passes on results.
    ///
    /// # Safety
    /// `c` has `rows` rows, which only this task uses. The first one has the number `row`.
    unsafe fn visit(&self, c: View<T>, row: usize, rows: usize, band: &Band, visit: Visit<'_, T>) {
        let (count, run, pitch) = (band.layout.count(), band.layout.counts()[2], self.pitch(&band.layout));
        // Closes the gaps between lines of windows.
        for (o, line) in (0..rows).flat_map(|o| (1..count / run).map(move |line| (o, line))).filter(|_| pitch > run) {
            // SAFETY: by contract, and a line moves towards the start of its row.
            unsafe { ptr::copy(c.at(o, line * pitch), c.at(o, line * run), run) };
        }
        // SAFETY: by contract.
        visit([row, band.first], unsafe { c.read(rows, count) });
    }
}

/// The method for the products of a band.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    /// The image equals the volume, so the volume is the right matrix.
    Identity,
    /// Panels of the right matrix are packed from images.
    Packed,
    /// Images are read in place, one row of windows at a time.
    Lines,
    /// Images are read in place, including the elements between rows of windows. The results for those are discarded.
    Flat,
}

impl Method {
    /// True if images are read in place.
    fn is_direct(self) -> bool {
        matches!(self, Method::Lines | Method::Flat)
    }

    /// The method with the least estimated waste for the images of a band: unused lanes of registers, or the time to pack panels.
    fn of<T>(layout: &ImageLayout, outputs: usize) -> Method {
        let (lanes, inner) = (64 / size_of::<T>(), layout.counts()[2]);
        let percent = |part: usize, whole: usize| 100 * part / whole.max(1);
        // A single register of columns waits for the rows of weights to be loaded.
        let lines = percent(inner, inner.next_multiple_of(lanes)) * if inner > lanes { 10 } else { 6 } / 10;
        let flat = percent(inner, layout.pitch());
        // A column is packed once for all outputs.
        let packed = percent(outputs, outputs + 8);
        if packed > lines.max(flat) {
            Method::Packed
        } else if lines >= flat {
            Method::Lines
        } else {
            Method::Flat
        }
    }
}
