//! Copies of lines of elements, which are too short for calls of `memcpy`.

use crate::runtime::register::Register;

/// Copies the contiguous elements that fill registers, and returns their number.
///
/// # Safety
/// There are `n` elements, and room for them.
#[inline(always)]
unsafe fn copy_whole<R: Register>(from: *const R::Element, to: *mut R::Element, n: usize) -> usize {
    let whole = n - n % R::LANES;
    for i in (0..whole).step_by(R::LANES) {
        // SAFETY: by contract.
        unsafe { R::load(from.add(i)).store(to.add(i)) };
    }
    whole
}

/// Copies `n` elements that are `step` elements apart to contiguous memory, and writes fewer zeros after them than there are
/// lanes: a store of a whole register is faster than that of a part.
///
/// # Safety
/// The elements exist, and there is room for their copies and the zeros.
#[inline(always)]
pub(super) unsafe fn gather<R: Register>(from: *const R::Element, step: usize, to: *mut R::Element, n: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        match step {
            1 => {
                let whole = copy_whole::<R>(from, to, n);
                if whole < n {
                    R::load_part(from.add(whole), n - whole).store(to.add(whole));
                }
            }
            2 => evens::<R>(from, to, n),
            _ => (0..n).for_each(|i| *to.add(i) = *from.add(i * step)),
        }
    }
}

/// # Safety
/// As for [`gather`].
#[inline(always)]
unsafe fn evens<R: Register>(from: *const R::Element, to: *mut R::Element, n: usize) {
    // SAFETY: the caller's contract. Nothing is read after the last element.
    unsafe {
        let mut i = 0;
        while i + R::LANES < n {
            let from = from.add(2 * i);
            R::load(from).evens(R::load(from.add(R::LANES))).store(to.add(i));
            i += R::LANES;
        }
        let (from, read) = (from.add(2 * i), 2 * (n - i) - 1);
        let last = if read <= R::LANES {
            R::load_part(from, read).evens(R::zero())
        } else {
            R::load(from).evens(R::load_part(from.add(R::LANES), read - R::LANES))
        };
        last.store(to.add(i));
    }
}

/// Copies `n` elements of each of `rows` lines, which are `apart` elements apart. Those of one line are `step` elements apart, and
/// those of the next line follow them.
///
/// # Safety
/// The elements and their copies exist.
#[inline(always)]
pub(super) unsafe fn scatter<R: Register>(
    from: *const R::Element,
    rows: usize,
    apart: isize,
    to: *mut R::Element,
    step: usize,
    n: usize,
) {
    // SAFETY: the caller's contract.
    unsafe {
        match (rows, step) {
            (1, 1) => {
                let whole = copy_whole::<R>(from, to, n);
                if whole < n {
                    R::load_part(from.add(whole), n - whole).store_part(to.add(whole), n - whole);
                }
            }
            (2, 2) => interleave::<R>(from, from.offset(apart), to, n),
            _ => {
                for row in 0..rows {
                    let (from, to) = (from.offset(row as isize * apart), to.add(row));
                    (0..n).for_each(|i| *to.add(i * step) = *from.add(i));
                }
            }
        }
    }
}

/// # Safety
/// As for [`scatter`].
#[inline(always)]
unsafe fn interleave<R: Register>(even: *const R::Element, odd: *const R::Element, to: *mut R::Element, n: usize) {
    let whole = n - n % R::LANES;
    // SAFETY: the caller's contract.
    unsafe {
        for i in (0..whole).step_by(R::LANES) {
            let (low, high) = R::load(even.add(i)).zip(R::load(odd.add(i)));
            low.store(to.add(2 * i));
            high.store(to.add(2 * i + R::LANES));
        }
        if whole < n {
            let (n, to) = (n - whole, to.add(2 * whole));
            let (low, high) = R::load_part(even.add(whole), n).zip(R::load_part(odd.add(whole), n));
            if 2 * n <= R::LANES {
                low.store_part(to, 2 * n);
            } else {
                low.store(to);
                high.store_part(to.add(R::LANES), 2 * n - R::LANES);
            }
        }
    }
}
