//! The elements of a volume that windows read, in a layout in which every tap reads with the same strides.
//!
//! A tap of window `i` reads element `i · stride + shift` of an axis, or 0 outside of the volume. The elements whose
//! indices are equal modulo `stride` are a *phase*. In an *image* the phases of a channel follow each other, with zeros
//! around them. In an image, a tap of window `i` reads the element that is `i` elements after the one that it reads for
//! window 0, for any stride, dilation and padding.

use std::ops::Range;

use crate::memory::copy::copy_plane;
use crate::runtime::register::Tiled;

/// The elements that windows read along one axis.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// The size of the volume.
    pub size: usize,
    /// The number of windows.
    pub count: usize,
    /// The distance from a window to the next one.
    pub stride: usize,
    /// The index that each tap of window 0 reads.
    pub shifts: Vec<i64>,
}

impl Axis {
    /// The axis with only these windows.
    pub fn part(&self, windows: Range<usize>) -> Axis {
        let shifts = self.shifts.iter().map(|shift| shift + (windows.start * self.stride) as i64).collect();
        Axis { count: windows.len(), shifts, ..*self }
    }
}

/// An [`Axis`] of an image.
struct Phased {
    size: usize,
    stride: usize,
    /// The remainders modulo the stride that taps read.
    phases: Vec<usize>,
    /// The quotient by the stride of the first element of a phase.
    first: i64,
    /// The number of elements in each phase.
    len: usize,
    /// For each tap, the index of its phase and the element of the phase that it reads for window 0.
    taps: Vec<(usize, usize)>,
}

impl Phased {
    fn new(axis: &Axis) -> Phased {
        let (size, stride) = (axis.size as i64, axis.stride as i64);
        // A tap that reads no element for any window reads zeros, so any place outside will do.
        let before = -((axis.count.max(1) - 1) as i64 * stride) - 1;
        let shifts = axis.shifts.iter().map(|shift| (*shift).clamp(before, size.max(before)));
        let parts: Vec<(i64, i64)> = shifts.map(|s| (s.div_euclid(stride), s.rem_euclid(stride))).collect();
        let first = parts.iter().map(|part| part.0).min().unwrap_or(0);
        let last = parts.iter().map(|part| part.0).max().unwrap_or(0);
        let mut phases: Vec<usize> = parts.iter().map(|part| part.1 as usize).collect();
        phases.sort_unstable();
        phases.dedup();
        let place = |phase: i64| phases.binary_search(&(phase as usize)).unwrap_or(0);
        let taps = parts.iter().map(|(quotient, phase)| (place(*phase), (quotient - first) as usize)).collect();
        let len = (last - first) as usize + axis.count;
        Phased { size: axis.size, stride: axis.stride, phases, first, len, taps }
    }

    /// The elements of a phase that are in the volume: the index of the first one in the phase, the end, and the index
    /// of the first one in the volume.
    fn inside(&self, phase: usize) -> (usize, usize, usize) {
        let (size, stride, phase) = (self.size as i64, self.stride as i64, self.phases[phase] as i64);
        let start = (-self.first).max(0);
        let end = ((size - phase + stride - 1).div_euclid(stride) - self.first).clamp(0, self.len as i64);
        (start.min(end) as usize, end as usize, ((start + self.first) * stride + phase) as usize)
    }
}

/// The layout of the images of a volume.
pub(super) struct ImageLayout {
    axes: [Phased; 3],
    /// The number of windows along each axis.
    counts: [usize; 3],
    /// For each tap, the offset that it reads for window 0.
    taps: Vec<usize>,
    /// The number of elements in a channel's image.
    len: usize,
}

/// The number of elements after the last image, so that whole registers can be read.
const SLACK: usize = 16;

impl ImageLayout {
    /// `None` if there is no memory for the offsets of the taps, or if an image would have too many elements.
    pub fn new(axes: &[Axis; 3]) -> Option<ImageLayout> {
        let counts = [0, 1, 2].map(|i| axes[i].count);
        let axes = [0, 1, 2].map(|i| Phased::new(&axes[i]));
        let plane = axes.iter().try_fold(1_usize, |n, a| n.checked_mul(a.len))?;
        let len = axes.iter().try_fold(plane, |n, a| n.checked_mul(a.phases.len()))?;
        let mut taps = Vec::new();
        taps.try_reserve_exact(axes.iter().try_fold(1_usize, |n, a| n.checked_mul(a.taps.len()))?).ok()?;
        for (p0, e0) in &axes[0].taps {
            for (p1, e1) in &axes[1].taps {
                for (p2, e2) in &axes[2].taps {
                    let phase = (p0 * axes[1].phases.len() + p1) * axes[2].phases.len() + p2;
                    taps.push(phase * plane + (e0 * axes[1].len + e1) * axes[2].len + e2);
                }
            }
        }
        Some(ImageLayout { axes, counts, taps, len })
    }

    /// For each tap, the element of a channel's image that window 0 reads.
    pub fn taps(&self) -> &[usize] {
        &self.taps
    }

    /// For each channel and tap, the element of the images that window 0 reads. `None` if memory is exhausted.
    pub fn table(&self, channels: usize) -> Option<Vec<usize>> {
        let mut table = Vec::new();
        table.try_reserve_exact(channels.checked_mul(self.taps.len())?).ok()?;
        table.extend((0..channels).flat_map(|c| self.taps.iter().map(move |tap| c * self.len + tap)));
        Some(table)
    }

    /// The number of elements in a channel's image.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The number of windows along each axis.
    pub fn counts(&self) -> [usize; 3] {
        self.counts
    }

    /// The number of windows.
    pub fn count(&self) -> usize {
        self.counts.iter().product()
    }

    /// The number of elements in a volume.
    pub fn volume(&self) -> usize {
        self.axes.iter().map(|a| a.size).product()
    }

    /// The number of elements in the images of this number of channels, including those that are read after them.
    pub fn memory(&self, channels: usize) -> Option<usize> {
        self.len.checked_mul(channels)?.checked_add(SLACK)
    }

    /// Runs of windows that read contiguous elements. For windows `range`: the index of the first one relative to
    /// `range.start`, the offset that it reads, and the length of the run.
    pub fn runs(&self, range: Range<usize>) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let [_, middle, inner] = self.counts;
        let (plane, row) = (self.axes[1].len * self.axes[2].len, self.axes[2].len);
        let first = range.start / inner;
        let (mut at, mut line) = (range.start - first * inner, (first / middle, first % middle));
        let mut done = 0;
        std::iter::from_fn(move || {
            if done == range.len() {
                return None;
            }
            let run = (done, line.0 * plane + line.1 * row + at, (inner - at).min(range.len() - done));
            done += run.2;
            at = 0;
            line = if line.1 + 1 == middle { (line.0 + 1, 0) } else { (line.0, line.1 + 1) };
            Some(run)
        })
    }

    /// The number of elements in a row of an image.
    pub fn pitch(&self) -> usize {
        self.axes[2].len
    }

    /// Like [`ImageLayout::runs`], but runs include the elements between rows of windows in an image.
    pub fn flat_runs(&self) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let ([outer, middle, inner], pitch, rows) = (self.counts, self.pitch(), self.axes[1].len);
        (0..outer).map(move |i| (i * middle * pitch, i * rows * pitch, (middle - 1) * pitch + inner))
    }

    /// True if the image of a channel equals the channel.
    pub fn is_identity(&self) -> bool {
        self.taps.len() == 1 && self.axes.iter().all(|a| a.stride == 1 && a.first == 0 && a.len == a.size)
    }

    /// Writes the images of some channels, and zeros after them.
    ///
    /// # Safety
    /// There is room for [`ImageLayout::memory`] elements.
    pub unsafe fn write<T: Tiled>(&self, x: &[T], images: *mut T) {
        let (volume, len) = (self.volume(), self.len);
        let channels = x.len().checked_div(volume).unwrap_or(0);
        // SAFETY: the caller's contract; an image has `len` elements. All-zero bits are 0.
        unsafe {
            images.add(channels * len).write_bytes(0, SLACK);
            for (c, x) in x.chunks_exact(volume.max(1)).enumerate() {
                self.write_one(x, images.add(c * len));
            }
        }
    }

    /// # Safety
    /// There is room for an image.
    unsafe fn write_one<T: Tiled>(&self, x: &[T], image: *mut T) {
        let [outer, middle, inner] = &self.axes;
        let whole = [outer.len, middle.len, inner.len];
        let strides = |of: [usize; 3]| [of[1] * of[2], of[2], 1].map(|stride| stride as isize);
        let (from, to) = (strides([outer.size, middle.size, inner.size]), strides(whole));
        let step = [0, 1, 2].map(|i| from[i] * self.axes[i].stride as isize);
        let plane: usize = whole.iter().product();
        let phases = (0..outer.phases.len())
            .flat_map(|p0| (0..middle.phases.len()).map(move |p1| (p0, p1)))
            .flat_map(|(p0, p1)| (0..inner.phases.len()).map(move |p2| [p0, p1, p2]));
        for (number, phase) in phases.enumerate() {
            let inside = [0, 1, 2].map(|i| self.axes[i].inside(phase[i]));
            let shape = inside.map(|(start, end, _)| end - start);
            let image = image.wrapping_add(number * plane);
            // SAFETY: these are rows of the image, and the elements of `x` inside of them. All-zero bits are 0.
            unsafe {
                if shape != whole {
                    image.write_bytes(0, plane);
                }
                if !shape.contains(&0) {
                    let first: usize = (0..3).map(|i| inside[i].2 * from[i] as usize).sum();
                    let place: usize = (0..3).map(|i| inside[i].0 * to[i] as usize).sum();
                    let (x, image) = (&x[first..], image.wrapping_add(place));
                    if shape[0] == 1 && inner.stride == 1 {
                        for row in 0..shape[1] {
                            let x = &x[row * step[1] as usize..][..shape[2]];
                            image.add(row * inner.len).copy_from_nonoverlapping(x.as_ptr(), shape[2]);
                        }
                    } else {
                        for plane in 0..shape[0] {
                            let (x, image) = (&x[plane * step[0] as usize..], image.add(plane * to[0] as usize));
                            copy_plane(x.as_ptr(), [step[1], step[2]], image, [to[1], to[2]], [shape[1], shape[2]]);
                        }
                    }
                }
            }
        }
    }
}
