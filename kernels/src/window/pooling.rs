//! Pooling: reductions of windows.

use std::ops::Range;

use crate::number::scalar::{Float, Machine, Real};
use crate::reduce::rows;
use crate::runtime::simd::clones;
use crate::runtime::stop::Pace;
use crate::window::{Windows, by_stride, for_runs};

clones! {
    /// The largest element that each window reads, or NaN if there is one, and its index in the volume. `least` and 0
    /// for a window without elements.
    pub <[T]> fn max(windows: &Windows, x: &[T], least: T, out: &mut [T], place: &mut [i64])
    where [T: Machine + Real] {
        assert!(x.len() == windows.volume() && out.len() == windows.count() && place.len() == windows.count());
        let width = windows.axes()[2].count;
        let stride = windows.axes()[2].stride;
        // Indices of 32 bits fill vectors better.
        let whole = if x.len() <= i32::MAX as usize { windows.whole() } else { 0..0 };
        let (mut taps, mut pace) = (Vec::new(), Pace::default());
        for line in 0..windows.lines() {
            let (out, place) = (&mut out[line * width..][..width], &mut place[line * width..][..width]);
            taps.clear();
            for_runs!(windows, line, |_tap, range, start| {
                // What the first whole window reads.
                taps.push(start + whole.start.saturating_sub(range.start) * stride);
            });
            let mut at = whole.start;
            if !taps.is_empty() {
                by_stride!(stride, |step| {
                    while at + LANES <= whole.end && let Some((best, index)) = largest::<T>(x, &taps, (at - whole.start) * step, step) {
                        pace.step(LANES * taps.len());
                        out[at..at + LANES].copy_from_slice(&best);
                        for (l, place) in place[at..at + LANES].iter_mut().enumerate() {
                            *place = i64::from(index[l]) + ((at - whole.start + l) * step) as i64;
                        }
                        at += LANES;
                    }
                });
            }
            for rest in [0..whole.start, at..width].into_iter().filter(|rest| !rest.is_empty()) {
                out[rest.clone()].fill(least);
                place[rest.clone()].fill(-1);
                for_runs!(windows, line, |_tap, range, start| {
                    let (from, to) = (range.start.max(rest.start), range.end.min(rest.end));
                    pace.step(to.saturating_sub(from));
                    for k in from..to {
                        let i = start + (k - range.start) * stride;
                        // NaN wins against every number. Among equal elements the first wins.
                        if x[i].greater(out[k]) | x[i].isnan() | (place[k] < 0) {
                            (out[k], place[k]) = (x[i], i as i64);
                        }
                    }
                });
                place[rest].iter_mut().for_each(|at| *at = (*at).max(0));
            }
        }
    }
}

/// The number of windows that are computed together.
const LANES: usize = 8;

/// The largest elements of consecutive windows, and what their taps have in `taps`. The first window reads `x[tap + first]` for
/// each tap. `None` if the windows are at the end of `x`.
#[inline(always)]
fn largest<T: Machine + Real>(
    x: &[T],
    taps: &[usize],
    first: usize,
    step: usize,
) -> Option<([T; LANES], [i32; LANES])> {
    let (mut best, mut index) = ([T::default(); LANES], [0; LANES]);
    for (t, tap) in taps.iter().enumerate() {
        // Whole steps, so that they are read as vectors.
        let source = x.get(tap + first..)?.get(..LANES * step)?;
        for l in 0..LANES {
            let value = source[l * step];
            let wins = value.greater(best[l]) | value.isnan() | (t == 0);
            best[l] = T::select(wins, value, best[l]);
            index[l] = if wins { *tap as i32 } else { index[l] };
        }
    }
    Some((best, index))
}

/// Longer rows are added pairwise.
const SHORT: usize = 32;

clones! {
    /// For windows over `x`, rows of `width`: the sum of the rows in `bounds`, divided by the count.
    pub <[T]> fn means(width: usize, windows: &[(Range<usize>, T)], x: &[T], out: &mut [T])
    where [T: Machine + Float] {
        assert!(out.len() == windows.len() * width);
        let mut pace = Pace::default();
        if width == 1 {
            for (out, (bounds, count)) in out.iter_mut().zip(windows) {
                pace.step(bounds.len());
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
            pace.step(width * bounds.len());
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
        let mut pace = Pace::default();
        for (y, (bounds, count)) in y.chunks_exact(width.max(1)).zip(windows) {
            pace.step(width * bounds.len());
            for row in out[bounds.start * width..bounds.end * width].chunks_exact_mut(width.max(1)) {
                for (o, v) in row.iter_mut().zip(y) {
                    *o += *v / *count;
                }
            }
        }
    }
}
