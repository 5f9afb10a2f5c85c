//! The elements of a volume that windows read, in a layout in which every tap reads with the same strides.
//!
//! A tap of window `i` reads element `i · stride + shift` of an axis, or 0 outside of the volume. The elements whose
//! indices are equal modulo `stride` are a *phase*. In an *image* the phases of a channel follow each other, with zeros
//! around them. In an image, a tap of window `i` reads the element that is `i` elements after the one that it reads for
//! window 0, for any stride, dilation and padding.

use std::ops::Range;

use super::line::gather;
use crate::runtime::register::{Job, Register, Task, Tiled, in_registers};

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

    /// True if each window reads the element with its index.
    pub fn is_identity(&self) -> bool {
        self.shifts == [0] && self.stride == 1 && self.count == self.size
    }
}

/// The indices of all taps along each axis.
pub(super) fn all_taps(axes: &[Axis; 3]) -> [Vec<usize>; 3] {
    axes.each_ref().map(|a| (0..a.shifts.len()).collect())
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
    /// The number of elements in a channel's image.
    len: usize,
    /// The elements of each phase that are in the volume, unless there are none.
    copies: Vec<Copy>,
}

/// Elements of a volume that are copied to its image.
struct Copy {
    /// The first element in the volume, and its place in the image.
    from: usize,
    to: usize,
    /// The number of elements along each axis.
    shape: [usize; 3],
}

/// The number of elements after the last image, so that whole registers can be read.
const SLACK: usize = 16;

impl ImageLayout {
    /// `None` if an image would have too many elements, or if memory is exhausted.
    pub fn new(axes: &[Axis; 3]) -> Option<ImageLayout> {
        let counts = axes.each_ref().map(|a| a.count);
        let axes = axes.each_ref().map(Phased::new);
        let len = axes.iter().try_fold(1_usize, |n, a| n.checked_mul(a.len)?.checked_mul(a.phases.len()))?;
        let [outer, middle, inner] = &axes;
        let mut copies = Vec::new();
        copies.try_reserve_exact(axes.iter().map(|a| a.phases.len()).product()).ok()?;
        let mut plane = 0;
        for p0 in 0..outer.phases.len() {
            for p1 in 0..middle.phases.len() {
                for p2 in 0..inner.phases.len() {
                    let inside = [outer.inside(p0), middle.inside(p1), inner.inside(p2)];
                    let shape = inside.map(|(start, end, _)| end - start);
                    let from = (inside[0].2 * middle.size + inside[1].2) * inner.size + inside[2].2;
                    let to = plane + (inside[0].0 * middle.len + inside[1].0) * inner.len + inside[2].0;
                    if !shape.contains(&0) {
                        copies.push(Copy { from, to, shape });
                    }
                    plane += outer.len * middle.len * inner.len;
                }
            }
        }
        Some(ImageLayout { axes, counts, len, copies })
    }

    /// For each channel and each tap, given by its index along each axis: the element of the images that window 0 reads.
    /// `None` if memory is exhausted.
    pub fn table(&self, taps: [&[usize]; 3], channels: usize) -> Option<Vec<usize>> {
        let mut table = Vec::new();
        table.try_reserve_exact(taps.iter().try_fold(channels, |n, taps| n.checked_mul(taps.len()))?).ok()?;
        let [outer, middle, inner] = &self.axes;
        let plane = outer.len * middle.len * inner.len;
        for (channel, tap) in (0..channels).flat_map(|c| taps[0].iter().map(move |tap| (c, tap))) {
            let (p0, e0) = outer.taps[*tap];
            for tap in taps[1] {
                let (p1, e1) = middle.taps[*tap];
                table.extend(taps[2].iter().map(|tap| {
                    let (p2, e2) = inner.taps[*tap];
                    let phase = (p0 * middle.phases.len() + p1) * inner.phases.len() + p2;
                    channel * self.len + phase * plane + (e0 * middle.len + e1) * inner.len + e2
                }));
            }
        }
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

    /// Writes zeros between and after the elements of the images of some channels.
    ///
    /// # Safety
    /// There is room for [`ImageLayout::memory`] elements.
    pub unsafe fn clear<T: Tiled>(&self, channels: usize, images: *mut T) {
        let elements: usize = self.copies.iter().map(|copy| copy.shape.iter().product::<usize>()).sum();
        let first = if elements == self.len { channels * self.len } else { 0 };
        // SAFETY: the caller's contract. All-zero bits are 0.
        unsafe { images.add(first).write_bytes(0, channels * self.len + SLACK - first) };
    }

    /// Writes the elements of the images of some channels, which are otherwise [clear](ImageLayout::clear).
    ///
    /// # Safety
    /// There is room for [`ImageLayout::memory`] elements.
    pub unsafe fn write<T: Tiled>(&self, x: &[T], images: *mut T) {
        // SAFETY: the caller's contract.
        unsafe { in_registers(Images { layout: self, x, images }) };
    }
}

/// The images of some channels, which are to be written.
struct Images<'a, T> {
    layout: &'a ImageLayout,
    x: &'a [T],
    images: *mut T,
}

impl<T: Tiled> Job<T> for Images<'_, T> {
    type Output = ();

    unsafe fn run<R: Register<Element = T>>(self) {
        // SAFETY: by contract.
        unsafe { R::run(ImagesIn::<R>(self)) };
    }
}

/// [`Images`], written in registers.
struct ImagesIn<'a, R: Register>(Images<'a, R::Element>);

impl<R: Register> Task for ImagesIn<'_, R> {
    type Output = ();

    /// # Safety
    /// As for [`ImageLayout::write`].
    #[inline(always)]
    unsafe fn run(self) {
        let Images { layout, x, images } = self.0;
        let [outer, middle, inner] = &layout.axes;
        let plane = middle.size * inner.size;
        for (c, x) in x.chunks_exact(layout.volume().max(1)).enumerate() {
            for Copy { from, to, shape } in &layout.copies {
                let (x, image) = (x.as_ptr().wrapping_add(*from), images.wrapping_add(c * layout.len + to));
                for i in 0..shape[0] {
                    let (x, image) =
                        (x.wrapping_add(i * outer.stride * plane), image.wrapping_add(i * middle.len * inner.len));
                    for j in 0..shape[1] {
                        let x = x.wrapping_add(j * middle.stride * inner.size);
                        // SAFETY: these are elements of the volume and the image. Zeros after a line are where zeros
                        // belong, or where the next line will be written, or after the images.
                        unsafe { gather::<R>(x, inner.stride, image.wrapping_add(j * inner.len), shape[2]) };
                    }
                }
            }
        }
    }
}
