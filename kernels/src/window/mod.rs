//! Windows of a volume, and the matrix of the values that every window reads.
//!
//! A volume is contiguous and has three axes; unused axes have size 1. A window is a small grid of taps. Tap `t` of
//! window `i` is at `i · stride + t · dilation − padding` along every axis. Outside of the volume, taps read 0.

pub mod convolution;
pub mod pooling;

use std::ops::Range;

use crate::number::scalar::{Machine, Num};
use crate::runtime::simd::clones;

/// The layout of windows along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The number of elements in the volume.
    pub size: usize,
    /// The number of windows.
    pub count: usize,
    /// The number of taps in a window.
    pub taps: usize,
    /// The distance from a window to the next one; at least 1.
    pub stride: usize,
    /// The distance from a tap to the next one; at least 1.
    pub dilation: usize,
    /// The number of elements by which the first window begins before the volume.
    pub padding: i64,
}

impl Axis {
    /// The index in the volume that a tap of a window reads; `None` outside of the volume.
    #[inline(always)]
    pub fn place(&self, window: usize, tap: usize) -> Option<usize> {
        let at = (window * self.stride + tap * self.dilation) as i64 - self.padding;
        if (0..self.size as i64).contains(&at) { Some(at as usize) } else { None }
    }

    /// The windows for which a tap is inside of the volume.
    pub fn inside(&self, tap: usize) -> Range<usize> {
        self.within((tap * self.dilation) as i64 - self.padding, self.stride, self.count)
    }

    /// The taps of a window that are inside of the volume.
    pub fn seen(&self, window: usize) -> Range<usize> {
        self.within((window * self.stride) as i64 - self.padding, self.dilation, self.taps)
    }

    /// The range of steps, of at most `most`, that stay inside of the volume.
    fn within(&self, start: i64, step: usize, most: usize) -> Range<usize> {
        let (size, step) = (self.size as i64, step as i64);
        let first = if start < 0 { start.unsigned_abs().div_ceil(step as u64) as i64 } else { 0 };
        let end = if start < size { (size - 1 - start) / step + 1 } else { 0 };
        let first = first.min(most as i64) as usize;
        first..(end.clamp(0, most as i64) as usize).max(first)
    }

    /// True if no product of the sizes overflows.
    fn is_sound(&self) -> bool {
        const LIMIT: usize = 1 << 61;
        let fits = |a: usize, b: usize| a.checked_mul(b).is_some_and(|v| v < LIMIT);
        let steps = self.stride > 0 && self.dilation > 0 && self.size < LIMIT;
        steps
            && self.padding.unsigned_abs() < 1 << 61
            && fits(self.count, self.stride)
            && fits(self.taps, self.dilation)
    }
}

/// Windows of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    axes: [Axis; 3],
    /// The first tap of the innermost axis that is inside of the volume for at least one window.
    first: usize,
    /// For each tap from that one to the last tap inside, the windows for which it is inside. There may be many more
    /// taps.
    inside: Vec<Range<usize>>,
}

impl Windows {
    /// `None` if the numbers are too large to compute with, or if a step is 0.
    pub fn new(axes: [Axis; 3]) -> Option<Windows> {
        let mut inside = Vec::new();
        axes.iter().all(Axis::is_sound).then_some(())?;
        let inner = &axes[2];
        let (first, end) = (inner.seen(inner.count.saturating_sub(1)).start, inner.seen(0).end);
        inside.try_reserve_exact(end.saturating_sub(first)).ok()?;
        inside.extend((first..end).map(|tap| inner.inside(tap)));
        Some(Windows { axes, first, inside })
    }

    /// The axes, the innermost last.
    pub fn axes(&self) -> &[Axis; 3] {
        &self.axes
    }

    /// The number of elements in the volume.
    pub fn volume(&self) -> usize {
        self.axes.iter().map(|a| a.size).product()
    }

    /// The number of windows.
    pub fn count(&self) -> usize {
        self.axes.iter().map(|a| a.count).product()
    }

    /// The number of taps in a window.
    pub fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.taps).product()
    }

    /// Rows of windows.
    pub(crate) fn lines(&self) -> usize {
        self.axes[0].count * self.axes[1].count
    }

    /// True if every window is one element, and consecutive windows are consecutive elements.
    pub fn is_pointwise(&self) -> bool {
        self.axes.iter().all(|a| a.taps == 1 && a.stride == 1 && a.padding == 0 && a.count == a.size)
    }

    /// The taps of the innermost axis that are inside of the volume for at least one window.
    #[inline(always)]
    pub(crate) fn taps_inside(&self) -> Range<usize> {
        self.first..self.first + self.inside.len()
    }

    /// The windows of the innermost axis for which all taps that are inside for some window are inside.
    pub(crate) fn whole(&self) -> Range<usize> {
        let start = self.inside.iter().map(|range| range.start).max().unwrap_or(0);
        let end = self.inside.iter().map(|range| range.end).min().unwrap_or(0);
        start..end.max(start)
    }

    /// The windows of the innermost axis for which a tap is inside, and the index in its row that the first of them
    /// reads.
    #[inline(always)]
    pub(crate) fn run(&self, tap: usize) -> (Range<usize>, usize) {
        let axis = &self.axes[2];
        let range = tap.checked_sub(self.first).and_then(|at| self.inside.get(at)).cloned().unwrap_or(0..0);
        let start = ((range.start * axis.stride + tap * axis.dilation) as i64 - axis.padding).max(0) as usize;
        (range, start)
    }
}

/// For every tap of a row of windows that is inside of the volume: the index of the tap, the windows for which it is
/// inside, and the element that the first of them reads.
macro_rules! for_runs {
    ($windows:expr, $line:expr, |$tap:ident, $range:ident, $start:ident| $body:block) => {{
        let windows: &$crate::window::Windows = $windows;
        let line: usize = $line;
        let [outer, middle, inner] = windows.axes();
        let (first, second) = (line / middle.count, line % middle.count);
        for a in outer.seen(first) {
            let Some(plane) = outer.place(first, a) else { continue };
            for b in middle.seen(second) {
                let Some(row) = middle.place(second, b) else { continue };
                for c in windows.taps_inside() {
                    let ($range, start) = windows.run(c);
                    if !$range.is_empty() {
                        let $tap = (a * middle.taps + b) * inner.taps + c;
                        let $start = (plane * middle.size + row) * inner.size + start;
                        $body
                    }
                }
            }
        }
    }};
}
pub(crate) use for_runs;

/// Runs `$body` with `$step` as the stride. Strides 1 and 2 are constants, so that loops vectorize.
macro_rules! by_stride {
    ($stride:expr, |$step:ident| $body:expr) => {
        match $stride {
            1 => {
                const STEP: usize = 1;
                let $step = STEP;
                $body
            }
            2 => {
                const STEP: usize = 2;
                let $step = STEP;
                $body
            }
            other => {
                let $step = other;
                $body
            }
        }
    };
}
pub(crate) use by_stride;

/// A row of windows, or a part of it.
#[derive(Clone, Copy)]
struct Segment {
    first: usize,
    second: usize,
    start: usize,
    end: usize,
}

/// The rows of windows that make up a range of windows.
fn segments(windows: &Windows, range: &Range<usize>) -> impl Iterator<Item = Segment> + use<> {
    let [_, middle, inner] = *windows.axes();
    let Range { start, end } = *range;
    let width = inner.count.max(1);
    (start / width..end.div_ceil(width)).map(move |line| Segment {
        first: line / middle.count.max(1),
        second: line % middle.count.max(1),
        start: start.max(line * width) - line * width,
        end: end.min((line + 1) * width) - line * width,
    })
}

clones! {
    /// The values that a range of windows reads in one channel: a row of `matrix` for every tap, a column for every
    /// window.
    pub <[T]> fn unfold(windows: &Windows, x: &[T], range: Range<usize>, matrix: &mut [T])
    where [T: Machine + Num] {
        let [outer, middle, inner] = *windows.axes();
        let width = range.len();
        assert!(x.len() == windows.volume() && matrix.len() == windows.taps() * width && range.end <= windows.count());
        for a in 0..outer.taps {
            for b in 0..middle.taps {
                for c in 0..inner.taps {
                    let tap = (a * middle.taps + b) * inner.taps + c;
                    let mut row = &mut matrix[tap * width..][..width];
                    let (inside, start) = windows.run(c);
                    for s in segments(windows, &range) {
                        let (part, rest) = row.split_at_mut(s.end - s.start);
                        row = rest;
                        let (Some(plane), Some(line)) = (outer.place(s.first, a), middle.place(s.second, b)) else {
                            part.fill(T::zero());
                            continue;
                        };
                        let (from, to) = (inside.start.clamp(s.start, s.end), inside.end.clamp(s.start, s.end));
                        part[..from - s.start].fill(T::zero());
                        part[to.max(from) - s.start..].fill(T::zero());
                        if to > from {
                            let part = &mut part[from - s.start..to - s.start];
                            let first = start + (from - inside.start) * inner.stride;
                            let source = &x[(plane * middle.size + line) * inner.size + first..];
                            by_stride!(inner.stride, |step| {
                                let source = &source[..(part.len() - 1) * step + 1];
                                for (k, p) in part.iter_mut().enumerate() {
                                    // SAFETY: k is below part.len().
                                    *p = unsafe { *source.get_unchecked(k * step) };
                                }
                            });
                        }
                    }
                }
            }
        }
    }
}

clones! {
    /// Adds the values of a range of windows to one channel: the transpose of [`unfold`].
    pub <[T]> fn fold(windows: &Windows, matrix: &[T], range: Range<usize>, x: &mut [T])
    where [T: Machine + Num] {
        let [outer, middle, inner] = *windows.axes();
        let width = range.len();
        assert!(x.len() == windows.volume() && matrix.len() == windows.taps() * width && range.end <= windows.count());
        for a in 0..outer.taps {
            for b in 0..middle.taps {
                for c in 0..inner.taps {
                    let tap = (a * middle.taps + b) * inner.taps + c;
                    let mut row = &matrix[tap * width..][..width];
                    let (inside, start) = windows.run(c);
                    for s in segments(windows, &range) {
                        let (part, rest) = row.split_at(s.end - s.start);
                        row = rest;
                        let (Some(plane), Some(line)) = (outer.place(s.first, a), middle.place(s.second, b)) else {
                            continue;
                        };
                        let (from, to) = (inside.start.clamp(s.start, s.end), inside.end.clamp(s.start, s.end));
                        if to > from {
                            let part = &part[from - s.start..to - s.start];
                            let first = start + (from - inside.start) * inner.stride;
                            let target = &mut x[(plane * middle.size + line) * inner.size + first..];
                            by_stride!(inner.stride, |step| {
                                let target = &mut target[..(part.len() - 1) * step + 1];
                                for (k, p) in part.iter().enumerate() {
                                    // SAFETY: k is below part.len().
                                    *unsafe { target.get_unchecked_mut(k * step) } += *p;
                                }
                            });
                        }
                    }
                }
            }
        }
    }
}
