//! Transposes of two to four rows whose elements are side by side, as images have their channels.

use super::Dim;
use crate::runtime::simd::clones;

/// The number of groups that are copied at a time.
const GROUPS: usize = 64;

/// Transposes like [`blocks`](super::blocks) if the source or the destination consists of groups of two to four elements; returns
/// false if neither does.
///
/// # Safety
/// As for [`plane`](super::blocks::plane), for these elements, and `p.src` and `q.dst` must be 1.
pub(super) unsafe fn transpose<T: Copy>(src: *const T, dst: *mut T, p: Dim, q: Dim) -> bool {
    macro_rules! by_count {
        ($($n:literal)*) => {
            match (p.n, q.n) {
                $(
                    ($n, _) if q.src == $n => separate::<T, $n>(src.cast(), dst, p.dst, q.n),
                    (_, $n) if p.dst == $n => interleave::<T, $n>(src, q.src, dst.cast(), p.n),
                )*
                _ => return false,
            }
        };
    }
    by_count! { 2 3 4 }
    true
}

clones! {
    /// Copies the elements of `n` groups to `N` rows. The caller ensures that these exist.
    <[T, const N: usize]> fn separate(groups: *const [T; N], rows: *mut T, step: isize, n: usize) -> () where [T: Copy] {
        for start in (0..n).step_by(GROUPS) {
            for i in 0..N {
                // SAFETY: these elements of row i, and of the groups.
                unsafe {
                    let (groups, row) = (groups.add(start), rows.offset(i as isize * step).add(start));
                    if n - start < GROUPS {
                        (0..n - start).for_each(|j| row.add(j).write((*groups.add(j))[i]));
                        continue;
                    }
                    let mut part = [(*groups)[i]; GROUPS];
                    for (j, element) in part.iter_mut().enumerate() {
                        *element = (*groups.add(j))[i];
                    }
                    row.cast::<[T; GROUPS]>().write_unaligned(part);
                }
            }
        }
    }
}

clones! {
    /// Copies the elements of `N` rows to `n` groups. The caller ensures that these exist.
    <[T, const N: usize]> fn interleave(rows: *const T, step: isize, groups: *mut [T; N], n: usize) -> () where [T: Copy] {
        for start in (0..n).step_by(GROUPS) {
            // SAFETY: these elements of each row, and of the groups.
            unsafe {
                let (rows, groups) = (rows.add(start), groups.add(start));
                let at = |i: usize| rows.offset(i as isize * step);
                if n - start < GROUPS {
                    for j in 0..n - start {
                        (0..N).for_each(|i| groups.add(j).cast::<T>().add(i).write(*at(i).add(j)));
                    }
                    continue;
                }
                let mut part = [[*rows; N]; GROUPS];
                for i in 0..N {
                    let row = at(i).cast::<[T; GROUPS]>().read_unaligned();
                    for (group, element) in part.iter_mut().zip(row) {
                        group[i] = element;
                    }
                }
                groups.cast::<[[T; N]; GROUPS]>().write_unaligned(part);
            }
        }
    }
}
