//! The elements of images that taps read.

use super::correlation::Band;
use crate::runtime::stop::poll;

/// For each band, the tables of some lists of taps. Bands whose images have the same layout share them: with many taps, a table is
/// larger than a band.
pub(super) struct Tables {
    different: Vec<OfLayout>,
    /// For each band, the index of its tables.
    of_band: Vec<usize>,
}

struct OfLayout {
    /// The number of elements in a channel's image.
    len: usize,
    tables: Vec<Vec<usize>>,
}

impl Tables {
    /// Each list of taps has their indices along each axis. `None` if memory is exhausted.
    pub fn new(bands: &[Band], lists: &[[&[usize]; 3]], channels: usize) -> Option<Tables> {
        let mut this = Tables { different: Vec::new(), of_band: Vec::new() };
        for Band { layout, .. } in bands {
            poll();
            let tables = |channels: usize| {
                lists.iter().map(|taps| layout.table(*taps, channels)).collect::<Option<Vec<Vec<usize>>>>()
            };
            let of_one = tables(1)?;
            let is_same = |other: &OfLayout| {
                let starts = || other.tables.iter().zip(&of_one).all(|(table, one)| table.starts_with(one));
                other.len == layout.len() && starts()
            };
            let index = match this.different.iter().position(is_same) {
                Some(index) => index,
                None => {
                    this.different.push(OfLayout { len: layout.len(), tables: tables(channels)? });
                    this.different.len() - 1
                }
            };
            this.of_band.push(index);
        }
        Some(this)
    }

    /// The tables of a band: for each list, and for each channel and tap, the element that window 0 reads.
    pub fn of_band(&self, band: usize) -> &[Vec<usize>] {
        &self.different[self.of_band[band]].tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::convolution::image::{Axis, all_taps};

    #[test]
    fn bands_share_tables() {
        let axis = |size: usize, count: usize, taps: i64| Axis { size, count, stride: 1, shifts: (0..taps).collect() };
        let axes = [axis(1, 1, 1), axis(1, 1, 1), axis(100_000, 99_001, 1_000)];
        let bands = Band::of::<f32>(&axes, 8, 1, 0).expect("memory");
        let taps = all_taps(&axes);
        let lists = [taps.each_ref().map(|taps| &taps[..]), [&[0], &[0], &[3, 5]]];
        let tables = Tables::new(&bands, &lists, 8).expect("memory");
        // Bands have two sizes, since the windows are not a multiple of their number.
        assert!(bands.len() > 10 && tables.different.len() == 2, "{} bands", bands.len());
        for (number, band) in bands.iter().enumerate() {
            let own = lists.map(|taps| band.layout.table(taps, 8).expect("memory"));
            assert_eq!(tables.of_band(number), own);
        }
    }
}
