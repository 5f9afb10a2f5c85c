//! The products of weights and what windows read: a matrix product for each band of windows of each sample.

use std::ptr;

use super::direct::Direct;
use super::im2col::Im2col;
use super::image::{Axis, ImageLayout};
use super::{Channels, OutOfMemory, PARTS, Shared, share};
use crate::linalg::gemm::tiled::Product;
use crate::linalg::gemm::{View, Visit};
use crate::memory::copy::copy_row;
use crate::runtime::register::{Tiled, in_registers};

/// The size in bytes of images that fit the L2 cache together with weights and a packed panel.
const LEVEL_2: usize = 256 << 10;
/// The minimum number of windows in a band, unless there are fewer.
const LEAST: usize = 192;
/// The maximum number of windows of several samples that share panels.
const TOGETHER: usize = 400;
/// The desired number of tasks, and the minimum number of outputs of each.
const TASKS: usize = 8;
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

/// The positions in a volume to which the results of windows are written.
pub(super) struct Placement {
    /// The element of the first window, along each axis.
    pub first: [usize; 3],
    /// The distance from the element of a window to that of the next one.
    pub step: [usize; 3],
    /// The size of the volume.
    pub size: [usize; 3],
}

impl Placement {
    /// True if the results of this number of windows are the whole volume.
    pub fn is_whole(&self, counts: &[usize; 3]) -> bool {
        (0..3).all(|i| self.first[i] == 0 && self.step[i] == 1 && self.size[i] == counts[i])
    }

    /// The element of a window.
    fn at(&self, window: [usize; 3]) -> usize {
        let at = |i: usize| self.first[i] + window[i] * self.step[i];
        (at(0) * self.size[1] + at(1)) * self.size[2] + at(2)
    }
}

/// The destination of results.
pub(super) enum Target<'a, T> {
    /// Memory.
    Memory {
        start: Shared<T>,
        /// The number of elements in a channel.
        volume: usize,
        /// `None` if the results of windows are contiguous.
        placement: Option<Placement>,
    },
    /// A function of each part of a matrix, which has a row for each output of each sample, and a column for each window.
    Visit(Visit<'a, T>),
}

/// `Σ x[n, c, read by tap t of window i] · weight[o, (c, t)]`, plus `bias[o]`, for every sample `n`, output `o` and window `i`.
/// `weight` has a row for each output of each group.
pub(super) fn correlate<T: Tiled>(
    axes: &[Axis; 3],
    channels: Channels,
    x: &[T],
    weight: View<T>,
    bias: Option<&[T]>,
    target: &Target<'_, T>,
) -> Result<(), OutOfMemory> {
    let Channels { samples, groups, inputs, outputs } = channels;
    let bands_for = |kept: usize| Band::of::<T>(axes, inputs, samples * groups, kept);
    let mut bands = bands_for(0)?;
    let (count, volume): (usize, usize) =
        (axes.iter().map(|a| a.count).product(), axes.iter().map(|a| a.size).product());
    let depth = inputs * axes.iter().map(|a| a.shifts.len()).product::<usize>();
    // The method determines the bits of sums, so it is that of results in memory.
    let method = Method::of::<T>(&bands[0].layout, outputs);
    if let Target::Visit(_) = target {
        bands = bands_for(outputs)?;
    }
    // Samples with few windows share panels, and tasks split the outputs instead.
    let is_short = method == Method::Packed && bands.len() == 1 && count > 0;
    let together = if is_short { (TOGETHER / count).clamp(1, samples.max(1)) } else { 1 };
    let tasks = samples.div_ceil(together) * groups * bands.len();
    let blocks = if is_short { TASKS.div_ceil(tasks.max(1)).min(outputs / ROWS).max(1) } else { 1 };
    let images = Band::memory(&bands, inputs)?;
    let tables = bands.iter().map(|band| if method.is_direct() { band.layout.table(inputs) } else { Some(Vec::new()) });
    let tables = tables.collect::<Option<Vec<_>>>().ok_or(OutOfMemory)?;
    let this = Correlation {
        axes,
        channels,
        x,
        weight,
        bias,
        target,
        bands,
        tables,
        method,
        together,
        blocks,
        images,
        depth,
        volume,
    };
    let columns = this.bands.iter().map(|band| this.columns(&band.layout)).max().unwrap_or(0);
    let own = if this.has_own() { outputs.div_ceil(blocks).checked_mul(columns * together) } else { Some(0) };
    let memory = images.checked_mul(together).zip(own).and_then(|(images, own)| images.checked_add(own));
    let (tasks, memory) = (tasks * blocks, memory.ok_or(OutOfMemory)?);
    let work = (outputs / blocks).saturating_mul(depth).saturating_mul(columns * together);
    // SAFETY: `run` gets the number of an existing task and the memory that it needs.
    share(tasks, work, memory, |task, memory| unsafe { this.run(task, memory) })
}

/// A correlation that is split into tasks.
struct Correlation<'a, T> {
    axes: &'a [Axis; 3],
    channels: Channels,
    x: &'a [T],
    weight: View<T>,
    bias: Option<&'a [T]>,
    target: &'a Target<'a, T>,
    bands: Vec<Band>,
    /// For each band that is read in place, the offsets of its rows.
    tables: Vec<Vec<usize>>,
    method: Method,
    /// The number of samples per task.
    together: usize,
    /// The number of parts of the outputs.
    blocks: usize,
    /// The number of elements in the images of a sample.
    images: usize,
    /// The number of inputs times taps.
    depth: usize,
    /// The number of elements in a channel of `x`.
    volume: usize,
}

impl<T: Tiled> Correlation<'_, T> {
    /// True if results are computed in the task's own memory and then copied to their destination.
    fn has_own(&self) -> bool {
        let is_apart = !matches!(self.target, Target::Memory { placement: None, .. });
        is_apart || self.method == Method::Flat || self.together > 1
    }

    /// The number of columns that are computed for a sample.
    fn columns(&self, layout: &ImageLayout) -> usize {
        match self.method {
            Method::Flat => layout.count() / layout.counts()[2].max(1) * layout.pitch(),
            _ => layout.count(),
        }
    }

    /// # Safety
    /// The task exists, and there is memory for its images and own results.
    unsafe fn run(&self, task: usize, memory: *mut T) {
        let Channels { samples, groups, inputs, outputs } = self.channels;
        let (rest, block) = (task / self.blocks, task % self.blocks);
        let (rest, number) = (rest / self.bands.len(), rest % self.bands.len());
        let (first_sample, group) = (rest / groups * self.together, rest % groups);
        let (Band { layout, first }, is_own) = (&self.bands[number], self.has_own());
        let (columns, together) = (self.columns(layout), self.together.min(samples - first_sample));
        let rows = block * outputs / self.blocks..(block + 1) * outputs / self.blocks;
        if columns == 0 {
            return;
        }
        let output = |sample: usize| ((first_sample + sample) * groups + group) * outputs + rows.start;
        let c = match self.target {
            Target::Memory { start, volume, .. } if !is_own => {
                View { start: start.at(output(0) * volume + first), rows: *volume as isize, columns: 1 }
            }
            _ => View {
                start: memory.wrapping_add(self.images * together),
                rows: (columns * together) as isize,
                columns: 1,
            },
        };
        if let Some(bias) = self.bias {
            for (o, bias) in bias[group * outputs..][rows.clone()].iter().enumerate() {
                // SAFETY: only this task writes these results.
                unsafe { (0..columns * together).for_each(|i| c.at(o, i).write(*bias)) };
            }
        }
        let of_sample = |sample: usize| {
            &self.x[((first_sample + sample) * groups + group) * inputs * self.volume..][..inputs * self.volume]
        };
        let (size, add) = ((rows.len(), columns * together, self.depth), self.bias.is_some());
        let (a, images) = (self.weight.part(group * outputs + rows.start, 0), memory.cast_const());
        // SAFETY: `a`, `b` and `c` have these sizes, and only this task writes `c`. There is memory for the images.
        unsafe {
            if self.method != Method::Identity {
                (0..together).for_each(|sample| layout.write(of_sample(sample), memory.add(sample * self.images)));
            }
            match self.method {
                Method::Identity => {
                    let x = &of_sample(0)[*first..];
                    let b = View { start: x.as_ptr().cast_mut(), rows: self.volume as isize, columns: 1 };
                    in_registers(Product { size, a, b, c, add, alone: true });
                }
                Method::Packed => {
                    let b = Im2col { layout, images, apart: self.images, first: 0 };
                    in_registers(Product { size, a, b, c, add, alone: true });
                }
                Method::Lines | Method::Flat => {
                    let (table, flat) = (&self.tables[number], self.method == Method::Flat);
                    in_registers(Direct { layout, table, images, weight: a, rows: rows.len(), c, add, flat });
                }
            }
        }
        for sample in 0..if is_own { together } else { 0 } {
            let (c, band) = (c.part(0, sample * columns), &self.bands[number]);
            // SAFETY: only this task has these results, and writes them to their destination.
            unsafe {
                match self.target {
                    Target::Memory { start, volume, placement } => {
                        let to = start.at(output(sample) * volume);
                        self.place(c, rows.len(), band, to, *volume, placement.as_ref());
                    }
                    Target::Visit(visit) => self.visit(c, output(sample), rows.len(), band, visit),
                }
            }
        }
    }

    /// Passes on results.
    ///
    /// # Safety
    /// `c` has `rows` rows, which only this task uses. The first one has the number `row`.
    unsafe fn visit(&self, c: View<T>, row: usize, rows: usize, band: &Band, visit: Visit<'_, T>) {
        let (count, run) = (band.layout.count(), band.layout.counts()[2]);
        let pitch = if self.method == Method::Flat { band.layout.pitch() } else { run };
        // Closes the gaps between lines of windows.
        for (o, line) in (0..rows).flat_map(|o| (1..count / run).map(move |line| (o, line))).filter(|_| pitch > run) {
            // SAFETY: by contract, and a line moves towards the start of its row.
            unsafe { ptr::copy(c.at(o, line * pitch), c.at(o, line * run), run) };
        }
        // SAFETY: by contract.
        visit([row, band.first], unsafe { c.read(rows, count) });
    }

    /// Copies results to their destination.
    ///
    /// # Safety
    /// `c` has `rows` rows, and no other task uses their destinations, in channels of `volume` elements that begin at `to`.
    unsafe fn place(
        &self,
        c: View<T>,
        rows: usize,
        band: &Band,
        to: *mut T,
        volume: usize,
        placement: Option<&Placement>,
    ) {
        let ([_, middle, inner], run) = (self.axes.each_ref().map(|a| a.count), band.layout.counts()[2]);
        let pitch = if self.method == Method::Flat { band.layout.pitch() } else { run };
        for (o, line) in (0..rows).flat_map(|o| (0..band.layout.count() / run).map(move |line| (o, line))) {
            let window = band.first + line * run;
            let (place, step) = match placement {
                None => (window, 1),
                Some(placement) => {
                    let window = [window / inner / middle, window / inner % middle, window % inner];
                    (placement.at(window), placement.step[2])
                }
            };
            let to = to.wrapping_add(o * volume + place);
            // SAFETY: the caller's contract.
            unsafe { copy_row(c.at(o, line * pitch).cast_const(), 1, to, step as isize, run) };
        }
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

    /// The method with the least estimated waste: unused lanes of registers, or the time to pack panels.
    fn of<T>(layout: &ImageLayout, outputs: usize) -> Method {
        if layout.is_identity() {
            return Method::Identity;
        }
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
