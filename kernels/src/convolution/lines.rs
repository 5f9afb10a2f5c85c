//! One channel, line by line of windows: what is quicker than a matrix product where there are few channels.

use crate::scalar::{Float, Machine};
use crate::simd::clones;
use crate::window::{Windows, by_stride, for_runs};

/// Partial sums that are kept side by side.
const LANES: usize = 16;

/// A channel in the middle of memory that is 0 around it: as [`Windows::padded`] has it.
pub fn surround<'a, T: Machine>(windows: &Windows, x: &[T], memory: &'a mut [T]) -> &'a [T] {
    let [outer, middle, inner] = windows.axes();
    let [plane, row, column] = windows.axes().map(|axis| axis.padding as usize);
    let (rows, columns) = (middle.size + 2 * row, inner.size + 2 * column);
    for (line, x) in x.chunks_exact(inner.size.max(1)).enumerate() {
        let at = (line / middle.size + plane) * rows + line % middle.size + row;
        memory[at * columns + column..][..inner.size].copy_from_slice(x);
    }
    debug_assert_eq!(memory.len(), (outer.size + 2 * plane) * rows * columns);
    memory
}

/// Adds to neighbouring windows what `TAPS` taps of theirs see, which are `apart` from each other, as are windows by `step`.
#[inline(always)]
fn add_taps<T: Machine + Float, const TAPS: usize>(weight: &[T], x: &[T], apart: usize, step: usize, out: &mut [T]) {
    let weight: &[T; TAPS] = weight.first_chunk().expect("as many weights as taps");
    let x = &x[..(out.len() - 1) * step + (TAPS - 1) * apart + 1];
    for (k, out) in out.iter_mut().enumerate() {
        let mut sum = *out;
        for (tap, weight) in weight.iter().enumerate() {
            // SAFETY: k is below out.len(), tap below TAPS.
            sum += *weight * unsafe { *x.get_unchecked(k * step + tap * apart) };
        }
        *out = sum;
    }
}

clones! {
    /// Adds to every window the sum of what its taps see, each times the tap's weight.
    pub <[T]> fn gather(windows: &Windows, x: &[T], weight: &[T], out: &mut [T]) where [T: Machine + Float] {
        let [outer, middle, inner] = *windows.axes();
        assert!(x.len() == windows.volume() && weight.len() == windows.taps() && out.len() == windows.count());
        let whole = windows.interior();
        if whole.is_empty() || whole.len() < inner.count {
            for line in 0..windows.lines() {
                let out = &mut out[line * inner.count..][..inner.count];
                for_runs!(windows, line, |tap, range, start| {
                    by_stride!(inner.stride, |step| {
                        add_taps::<T, 1>(&weight[tap..], &x[start..], 1, step, &mut out[range]);
                    });
                });
            }
            return;
        }
        let first = -inner.padding as usize;
        for (line, out) in out.chunks_exact_mut(inner.count).enumerate() {
            for (row, weight) in weight.chunks_exact(inner.taps).enumerate() {
                let plane = outer.place(line / middle.count, row / middle.taps);
                let (Some(a), Some(b)) = (plane, middle.place(line % middle.count, row % middle.taps)) else { continue };
                let x = &x[(a * middle.size + b) * inner.size + first..];
                by_stride!(inner.stride, |step| {
                    for (part, weight) in weight.chunks(4).enumerate() {
                        let x = &x[part * 4 * inner.dilation..];
                        match weight.len() {
                            4 => add_taps::<T, 4>(weight, x, inner.dilation, step, out),
                            3 => add_taps::<T, 3>(weight, x, inner.dilation, step, out),
                            2 => add_taps::<T, 2>(weight, x, inner.dilation, step, out),
                            _ => add_taps::<T, 1>(weight, x, inner.dilation, step, out),
                        }
                    }
                });
            }
        }
    }
}

clones! {
    /// Adds every window to what its taps see, times the tap's weight.
    pub <[T]> fn scatter(windows: &Windows, y: &[T], weight: &[T], out: &mut [T]) where [T: Machine + Float] {
        let axis = windows.axes()[2];
        assert!(out.len() == windows.volume() && weight.len() == windows.taps() && y.len() == windows.count());
        for line in 0..windows.lines() {
            let y = &y[line * axis.count..][..axis.count];
            for_runs!(windows, line, |tap, range, start| {
                let (y, factor) = (&y[range], weight[tap]);
                by_stride!(axis.stride, |step| {
                    let target = &mut out[start..][..(y.len() - 1) * step + 1];
                    for (k, y) in y.iter().enumerate() {
                        // SAFETY: k is below y.len().
                        *unsafe { target.get_unchecked_mut(k * step) } += factor * *y;
                    }
                });
            });
        }
    }
}

clones! {
    /// Adds to every tap the sum of what it sees, each times the window.
    pub <[T]> fn correlate(windows: &Windows, x: &[T], y: &[T], out: &mut [T]) where [T: Machine + Float] {
        let [outer, middle, inner] = *windows.axes();
        assert!(x.len() == windows.volume() && out.len() == windows.taps() && y.len() == windows.count());
        for (tap, out) in out.iter_mut().enumerate() {
            let (a, b, c) = (tap / inner.taps / middle.taps, tap / inner.taps % middle.taps, tap % inner.taps);
            let (range, start) = windows.run(c);
            if range.is_empty() {
                continue;
            }
            let mut lanes = [T::zero(); LANES];
            for line in 0..windows.lines() {
                let places = (outer.place(line / middle.count, a), middle.place(line % middle.count, b));
                let (Some(plane), Some(row)) = places else { continue };
                let y = &y[line * inner.count..][range.clone()];
                by_stride!(inner.stride, |step| {
                    let source = &x[(plane * middle.size + row) * inner.size + start..][..(y.len() - 1) * step + 1];
                    let whole = y.len() / LANES * LANES;
                    for k in (0..whole).step_by(LANES) {
                        for (l, lane) in lanes.iter_mut().enumerate() {
                            // SAFETY: k + l is below y.len().
                            *lane += unsafe { *y.get_unchecked(k + l) * *source.get_unchecked((k + l) * step) };
                        }
                    }
                    for k in whole..y.len() {
                        // SAFETY: k is below y.len().
                        let product = unsafe { *y.get_unchecked(k) * *source.get_unchecked(k * step) };
                        lanes[(k - whole) % LANES] += product;
                    }
                });
            }
            let mut width = LANES;
            while width > 1 {
                width /= 2;
                for l in 0..width {
                    let other = lanes[l + width];
                    lanes[l] += other;
                }
            }
            *out += lanes[0];
        }
    }
}
