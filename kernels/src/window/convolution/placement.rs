//! Copies of computed results to their places in volumes.

use super::correlation::{Band, Part};
use super::line::scatter;
use crate::linalg::gemm::View;
use crate::runtime::register::{Job, Register, Task, Tiled};

/// Results that are to be copied to their destination. Those of parts that are side by side alternate.
pub(super) struct Placement<'a, T> {
    /// The number of windows along each axis.
    pub counts: [usize; 3],
    pub band: &'a Band,
    /// The distance between the first windows of lines in a row of results.
    pub pitch: usize,
    pub parts: &'a [Part<'a, T>],
    /// A row of results for each output of each part.
    pub c: View<T>,
    /// The number of outputs.
    pub rows: usize,
    /// The volume of the first output.
    pub to: *mut T,
    /// The size of a volume.
    pub size: [usize; 3],
    /// The distance from the element of a window to that of the next one, along each axis.
    pub step: [usize; 3],
}

impl<T: Tiled> Job<T> for Placement<'_, T> {
    type Output = ();

    /// # Safety
    /// The results are initialized, and no other task uses their destination.
    unsafe fn run<R: Register<Element = T>>(self) {
        // SAFETY: by contract.
        unsafe { R::run(PlacementIn::<R>(self)) };
    }
}

/// A [`Placement`] in registers.
struct PlacementIn<'a, R: Register>(Placement<'a, R::Element>);

impl<R: Register> Task for PlacementIn<'_, R> {
    type Output = ();

    /// # Safety
    /// As for [`Placement`].
    #[inline(always)]
    unsafe fn run(self) {
        let Placement { counts, band, pitch, parts, c, rows, to, size, step } = self.0;
        let (first, run, volume) = (parts[0].first, band.layout.counts()[2], size[0] * size[1] * size[2]);
        let (line, from) = (band.first / counts[2], band.first % counts[2]);
        let (mut i, mut j) = (line / counts[1], line % counts[1]);
        let place = first[2] + from * step[2];
        // A part has elements up to the end of the volume.
        let len = |part: usize| size[2].saturating_sub(place + part).div_ceil(step[2]).min(run);
        let (longest, shortest) = (len(0), len(parts.len() - 1));
        for line in 0..band.layout.count() / run {
            let (outer, middle) = (first[0] + i * step[0], first[1] + j * step[1]);
            (i, j) = if j + 1 == counts[1] { (i + 1, 0) } else { (i, j + 1) };
            if outer >= size[0] || middle >= size[1] {
                continue;
            }
            let to = to.wrapping_add((outer * size[1] + middle) * size[2] + place);
            for o in 0..rows {
                let (from, to) = (c.at(o, line * pitch).cast_const(), to.wrapping_add(o * volume));
                // SAFETY: the caller's contract.
                unsafe {
                    scatter::<R>(from, parts.len(), rows as isize * c.rows, to, step[2], shortest);
                    if shortest < longest {
                        for part in (0..parts.len()).filter(|part| len(*part) > shortest) {
                            *to.add(shortest * step[2] + part) = *c.at(part * rows + o, line * pitch + shortest);
                        }
                    }
                }
            }
        }
    }
}
