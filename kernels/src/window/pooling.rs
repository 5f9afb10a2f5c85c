//! Pooling: reductions of windows.

use std::ops::Range;

use crate::number::scalar::{Float, Machine, Real};
use crate::reduce::rows;
use crate::runtime::simd::clones;
use crate::window::{Windows, by_stride, for_runs};

clones! {
    /// The largest element that each window reads, or NaN if there is one, and its index in the volume. `least` and 0
    /// for a window without elements.
    pub <[T]> fn max(windows: &Windows, x: &[T], least: T, out: &mut [T], place: &mut [i64])
    where [T: Machine + Real] {
        assert!(x.len() == windows.volume() && out.len() == windows.count() && place.len() == windows.count());
        let width = windows.axes()[2].count;
        let stride = windows.axes()[2].stride;
        out.fill(least);
        place.fill(-1);
        for line in 0..windows.lines() {
            let (out, place) = (&mut out[line * width..][..width], &mut place[line * width..][..width]);
            for_runs!(windows, line, |_tap, range, start| {
                let (out, place) = (&mut out[range.clone()], &mut place[range]);
                by_stride!(stride, |step| {
                    let source = &x[start..][..(out.len() - 1) * step + 1];
                    for (k, (best, at)) in out.iter_mut().zip(place).enumerate() {
                        // SAFETY: k is below out.len().
                        let value = unsafe { *source.get_unchecked(k * step) };
                        // NaN wins against every number. Among equal elements the first wins.
                        let wins = value.greater(*best) | value.isnan() | (*at < 0);
                        *best = T::select(wins, value, *best);
                        *at = if wins { (start + k * step) as i64 } else { *at };
                    }
                });
            });
            place.iter_mut().for_each(|at| *at = (*at).max(0));
        }
    }
}

/// Longer rows are added pairwise.
const SHORT: usize = 32;

clones! {
    /// For windows over `x`, rows of `width`: the sum of the rows in `bounds`, divided by the count.
    pub <[T]> fn means(width: usize, windows: &[(Range<usize>, T)], x: &[T], out: &mut [T])
    where [T: Machine + Float] {
        assert!(out.len() == windows.len() * width);
        if width == 1 {
            for (out, (bounds, count)) in out.iter_mut().zip(windows) {
                let seen = &x[bounds.clone()];
                let sum = if seen.len() > SHORT {
                    rows::sum(seen)
                } else {
                    seen.iter().fold(T::zero(), |sum, value| sum + *value)
                };
                *out = sum / *count;
            }
            return;
        }
        for (out, (bounds, count)) in out.chunks_exact_mut(width.max(1)).zip(windows) {
            out.fill(T::zero());
            for row in x[bounds.start * width..bounds.end * width].chunks_exact(width.max(1)) {
                for (o, v) in out.iter_mut().zip(row) {
                    *o += *v;
                }
            }
            for o in out {
                *o /= *count;
            }
        }
    }
}

clones! {
    /// Adds every window, divided by its count, to the rows of `out` in its bounds: the transpose of [`means`].
    pub <[T]> fn spread(width: usize, windows: &[(Range<usize>, T)], y: &[T], out: &mut [T])
    where [T: Machine + Float] {
        assert!(y.len() == windows.len() * width);
        out.fill(T::zero());
        for (y, (bounds, count)) in y.chunks_exact(width.max(1)).zip(windows) {
            for row in out[bounds.start * width..bounds.end * width].chunks_exact_mut(width.max(1)) {
                for (o, v) in row.iter_mut().zip(y) {
                    *o += *v / *count;
                }
            }
        }
    }
}
