//! Copies of parts of matrices in the order that tiles read them.

use super::register::Register;
use super::tile::{ROWS, WIDTH, tiles_of};
use crate::gemm::View;

/// Copies `rows` rows of `a`, each `depth` long, so that those of a tile lie side by side, as [`packed_rows`] says, and
/// one tile behind the other.
///
/// # Safety
/// The CPU has AVX2 and FMA, `a` is as large as said, and so is the memory.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn pack_rows<R: Register>(a: View<R::Element>, rows: usize, depth: usize, to: *mut R::Element) {
    if a.columns == 1 {
        for i in 0..rows {
            // SAFETY: row i, and its place.
            unsafe { to.add(i * depth).copy_from_nonoverlapping(a.at(i, 0), depth) };
        }
        return;
    }
    // A cache line of a column has elements for several tiles.
    for p in 0..depth {
        for (row, count) in tiles_of(rows) {
            // SAFETY: elements (row.., p), and their place.
            unsafe {
                let (from, to) = (a.at(row, p), to.add(row * depth + p * count));
                if a.rows == 1 && count == ROWS {
                    // As many as the compiler knows need no loop.
                    to.copy_from_nonoverlapping(from, ROWS);
                    continue;
                }
                for i in 0..count {
                    to.add(i).write(*from.offset(i as isize * a.rows));
                }
            }
        }
    }
}

/// Rows of `a` that were packed: row by row where `a` lies so, else column by column.
pub(super) fn packed_rows<T: Copy>(a: View<T>, rows: usize, depth: usize, start: *mut T) -> View<T> {
    if a.columns == 1 {
        View { start, rows: depth as isize, columns: 1 }
    } else {
        View { start, rows: 1, columns: rows as isize }
    }
}

/// Copies `columns` columns of `b`, each `depth` long, with zeros beside them, so that rows fill the registers of a
/// tile and follow each other.
///
/// # Safety
/// The CPU has AVX2 and FMA, `b` is as large as said, and the memory holds `depth` rows of [`WIDTH`] registers.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn pack_panel<R: Register>(b: View<R::Element>, columns: usize, depth: usize, to: *mut R::Element) {
    let width = WIDTH * R::LANES;
    let packed = View { start: to, rows: width as isize, columns: 1 };
    let (mut start, zero) = (0, R::Element::default());
    // SAFETY: the caller's promise: rows are below `depth`, columns of `b` below `columns`.
    unsafe {
        if columns == width && b.columns == 1 {
            for p in 0..depth {
                for j in (0..width).step_by(R::LANES) {
                    R::load(b.at(p, j)).store(packed.at(p, j));
                }
            }
            return;
        }
        if columns == width && b.rows == 1 {
            start = depth - depth % R::LANES;
            for p in (0..start).step_by(R::LANES) {
                for j in (0..width).step_by(R::LANES) {
                    R::transpose(b.at(p, j), b.columns, packed.at(p, j), width);
                }
            }
        }
        for p in start..depth {
            for j in 0..width {
                packed.at(p, j).write(if j < columns { *b.at(p, j) } else { zero });
            }
        }
    }
}
