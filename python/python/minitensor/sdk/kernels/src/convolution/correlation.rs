//! What windows read, times weights: a matrix product for each band of windows of each sample.

use super::direct::Direct;
use super::reads::{Axis, Reads};
use super::unfolded::Unfolded;
use super::{Channels, OutOfMemory, PARTS, Shared, share};
use crate::copy::copy_row;
use crate::gemm::View;
use crate::gemm::tiled::{Product, Tiled, in_registers};

/// Bytes of images that stay in L2 together with weights and a packed panel.
const LEVEL_2: usize = 256 << 10;
/// Windows that a band has at least, unless there are fewer.
const LEAST: usize = 192;

/// Windows whose images are written together: consecutive ones of the outermost axis that has several.
pub(super) struct Band {
    pub reads: Reads,
    /// The number of the first window.
    pub first: usize,
}

impl Band {
    /// The bands of windows over so many channels, of which there are `times` as many.
    pub fn of<T>(axes: &[Axis; 3], channels: usize, times: usize) -> Result<Vec<Band>, OutOfMemory> {
        let whole = Reads::new(axes).ok_or(OutOfMemory)?;
        let bytes = whole.memory(channels).and_then(|n| n.checked_mul(size_of::<T>())).ok_or(OutOfMemory)?;
        let (count, axis) = (whole.count(), axes.iter().position(|a| a.count > 1).unwrap_or(2));
        let most = (count / LEAST).clamp(1, axes[axis].count.max(1));
        let parts = bytes.div_ceil(LEVEL_2).max(PARTS.div_ceil(times.max(1))).min(most);
        let (windows, each) = (axes[axis].count, count / axes[axis].count.max(1));
        let mut bands = Vec::new();
        bands.try_reserve_exact(parts).map_err(|_| OutOfMemory)?;
        for part in 0..parts {
            let range = part * windows / parts..(part + 1) * windows / parts;
            let mut own = axes.clone();
            own[axis] = axes[axis].part(range.clone());
            bands.push(Band { reads: Reads::new(&own).ok_or(OutOfMemory)?, first: range.start * each });
        }
        Ok(bands)
    }

    /// The elements of the largest images of so many channels.
    pub fn memory(bands: &[Band], channels: usize) -> Result<usize, OutOfMemory> {
        let most = bands.iter().map(|band| band.reads.memory(channels)).try_fold(0, |most, n| Some(most.max(n?)));
        most.ok_or(OutOfMemory)
    }
}

/// Where the results of windows go in a volume.
pub(super) struct Placement {
    /// The element of the first window, along each axis.
    pub first: [usize; 3],
    /// From the element of a window to that of the next one.
    pub step: [usize; 3],
    /// The elements of the volume.
    pub size: [usize; 3],
}

impl Placement {
    /// Whether the results of so many windows are the volume.
    pub fn is_whole(&self, counts: &[usize; 3]) -> bool {
        (0..3).all(|i| self.first[i] == 0 && self.step[i] == 1 && self.size[i] == counts[i])
    }

    /// The element of a window.
    fn at(&self, window: [usize; 3]) -> usize {
        let at = |i: usize| self.first[i] + window[i] * self.step[i];
        (at(0) * self.size[1] + at(1)) * self.size[2] + at(2)
    }
}

/// Where results go.
pub(super) struct Target<T> {
    pub start: Shared<T>,
    /// The elements of a channel.
    pub volume: usize,
    /// None if the results of windows follow each other.
    pub placement: Option<Placement>,
}

/// `Σ x[n, c, read by tap t of window i] · weight[o, (c, t)]`, plus `bias[o]`, for every sample `n`, output `o` and window `i`.
/// `weight` has a row for each output of each group.
pub(super) fn correlate<T: Tiled>(
    axes: &[Axis; 3],
    channels: Channels,
    x: &[T],
    weight: View<T>,
    bias: Option<&[T]>,
    target: &Target<T>,
) -> Result<(), OutOfMemory> {
    let Channels { samples, groups, inputs, outputs } = channels;
    let bands = Band::of::<T>(axes, inputs, samples * groups)?;
    let (count, volume): (usize, usize) =
        (axes.iter().map(|a| a.count).product(), axes.iter().map(|a| a.size).product());
    let depth = inputs * axes.iter().map(|a| a.shifts.len()).product::<usize>();
    let images = Band::memory(&bands, inputs)?;
    let way = Way::of::<T>(&bands[0].reads, outputs);
    let own_columns = |reads: &Reads| match way {
        Way::Flat => reads.count() / reads.counts()[2].max(1) * reads.pitch(),
        _ => reads.count(),
    };
    let is_own = target.placement.is_some() || way == Way::Flat;
    let widest = bands.iter().map(|band| own_columns(&band.reads)).max().unwrap_or(0);
    let own = if is_own { outputs.checked_mul(widest).ok_or(OutOfMemory)? } else { 0 };
    let memory = images.checked_add(own).ok_or(OutOfMemory)?;
    let direct = matches!(way, Way::Flat | Way::Lines);
    let tables = bands.iter().map(|band| if direct { band.reads.table(inputs) } else { Some(Vec::new()) });
    let tables = tables.collect::<Option<Vec<_>>>().ok_or(OutOfMemory)?;
    let work = outputs.saturating_mul(depth).saturating_mul(count / bands.len().max(1));
    share(samples * groups * bands.len(), work, memory, |task, memory: *mut T| {
        let (of_sample, Band { reads, first }) = (task / bands.len(), &bands[task % bands.len()]);
        let (group, width) = (of_sample % groups, reads.count());
        if width == 0 {
            return;
        }
        let x = &x[of_sample * inputs * volume..][..inputs * volume];
        let start = of_sample * outputs * target.volume;
        let c = match is_own {
            false => View { start: target.start.at(start + first), rows: target.volume as isize, columns: 1 },
            true => View { start: memory.wrapping_add(images), rows: own_columns(reads) as isize, columns: 1 },
        };
        let columns = if is_own { own_columns(reads) } else { width };
        for (o, bias) in bias.map_or(&[][..], |b| &b[group * outputs..][..outputs]).iter().enumerate() {
            // SAFETY: these windows of this output are of this task alone.
            unsafe { (0..columns).for_each(|i| c.at(o, i).write(*bias)) };
        }
        let (size, a, add) = ((outputs, width, depth), weight.part(group * outputs, 0), bias.is_some());
        // SAFETY: `a`, `b` and `c` have these sizes, and `c` is of this task alone. There is memory for the images.
        unsafe {
            if way == Way::Identity {
                let b = View { start: x[*first..].as_ptr().cast_mut(), rows: volume as isize, columns: 1 };
                in_registers(Product { size, a, b, c, add, alone: true });
            } else if direct {
                reads.write(x, memory);
                let table = &tables[task % bands.len()];
                let (images, flat) = (memory.cast_const(), way == Way::Flat);
                in_registers(Direct { reads, table, images, weight: a, rows: outputs, c, add, flat });
            } else {
                reads.write(x, memory);
                let b = Unfolded { reads, images: memory.cast_const(), first: 0 };
                in_registers(Product { size, a, b, c, add, alone: true });
            }
        }
        if !is_own {
            return;
        }
        let ([_, middle, inner], run) = (axes.each_ref().map(|a| a.count), reads.counts()[2]);
        let pitch = if way == Way::Flat { reads.pitch() } else { run };
        for (o, line) in (0..outputs).flat_map(|o| (0..width / run).map(move |line| (o, line))) {
            let window = first + line * run;
            let (place, step) = match &target.placement {
                None => (window, 1),
                Some(placement) => (
                    placement.at([window / inner / middle, window / inner % middle, window % inner]),
                    placement.step[2],
                ),
            };
            let (from, to) = (c.at(o, line * pitch).cast_const(), target.start.at(start + o * target.volume + place));
            // SAFETY: these elements are of this task alone.
            unsafe { copy_row(from, 1, to, step as isize, run) };
        }
    })
}

/// How the products of a band are computed.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// The image is the volume: it is the right matrix.
    Identity,
    /// Panels of the right matrix are packed from images.
    Packed,
    /// Images are read in place, a row of windows at a time.
    Lines,
    /// Images are read in place, together with what is between rows of windows. That is computed and left out.
    Flat,
}

impl Way {
    /// The way that wastes least, as far as sizes tell: part of the lanes of registers, or the time to pack panels.
    fn of<T>(reads: &Reads, outputs: usize) -> Way {
        if reads.is_identity() {
            return Way::Identity;
        }
        let (lanes, inner) = (64 / size_of::<T>(), reads.counts()[2]);
        let percent = |part: usize, whole: usize| 100 * part / whole.max(1);
        // One register of columns alone waits for the rows of weights to be loaded.
        let lines = percent(inner, inner.next_multiple_of(lanes)) * if inner > lanes { 10 } else { 6 } / 10;
        let flat = percent(inner, reads.pitch());
        // A column is packed once for all outputs.
        let packed = percent(outputs, outputs + 8);
        if packed > lines.max(flat) {
            Way::Packed
        } else if lines >= flat {
            Way::Lines
        } else {
            Way::Flat
        }
    }
}
