//! Products in blocks that fit the caches and that threads share.
//!
//! `c` is split into tiles. A *panel* is as many columns of `b` as a tile has. A tile reads `a` and `b` in place if
//! their strides are suitable and the caches hold them; otherwise their parts are packed. Every sum has the same steps
//! for every split of the work, so the number of threads changes no bit.

use std::ops::Range;
use std::ptr;

use super::memory::{OWN, SHARED, with_memory};
use super::pack::{Right, pack_rows, packed_rows, packed_step};
use super::tile::{Tile, tiles_of};
use crate::linalg::gemm::{View, Visit};
use crate::runtime::register::Register;
use crate::runtime::stop::{Pace, poll};
use crate::runtime::threads::{num_threads, parallel_for};

/// The number of rows of `b` that a sum adds at a time. A panel of this depth fills the L1 cache.
const DEPTH: usize = 512;
/// The depth if a few rows of `a` read `b` in place: the number of pages that the CPU's TLB holds.
const SHALLOW: usize = 64;
/// The size in bytes up to which `b`, or an `a` with contiguous columns, is read in place from the L1 cache or close to
/// it.
const LEVEL_1: usize = 48 << 10;
/// The size in bytes of a part of `a` that fits the L2 cache together with a panel.
const LEVEL_2: usize = 128 << 10;
/// The size in bytes of a part of `a` up to which each task packs panels for itself; and that of an `a` that needs no
/// packing, with AVX-512. A CPU with AVX-512 has an L2 cache of 1 MiB or more, as a rule.
const OWN_PANELS: usize = 256 << 10;
const OWN_PANELS_WIDE: usize = 768 << 10;
/// The size in bytes up to which an `a` with contiguous rows needs no packing.
const STRAIGHT: usize = 1 << 20;
/// The size in bytes of the part of `b` that is packed for all threads at a time.
const LEVEL_3: usize = 8 << 20;
/// The minimum number of multiplications, or of packed elements, per thread.
const GRAIN: usize = 1 << 18;
const PACKING: usize = 1 << 16;
/// The number of tasks per thread, so that a delayed thread delays the others less; and the minimum number of rows in a
/// task.
const TASKS: usize = 4;
const LEAST: usize = 32;

/// The size in bytes of a part of a product that is not stored. It fits the L2 cache.
const PART: usize = 192 << 10;
/// The most columns of such a part, unless all of its columns are computed at a time.
const COLUMNS: usize = 512;

/// The source of the panels that tiles read.
#[derive(Clone, Copy, PartialEq)]
enum Panels {
    /// In place, except for a panel that is narrower than the registers.
    Direct,
    /// Packed by each task for itself.
    Own,
    /// Packed by all threads for all.
    Shared,
}

/// A product, or the part of it that is packed at a time.
struct Product<'a, R: Register, B> {
    a: View<R::Element>,
    b: B,
    c: View<R::Element>,
    m: usize,
    n: usize,
    /// The rows of `b`.
    k: Range<usize>,
    add: bool,
    threads: usize,
    /// The number of rows of `b` that are processed at a time.
    depth: usize,
    /// The number of panels that are processed at a time.
    group: usize,
    panels: Panels,
    /// True if tasks pack their rows of `a`.
    pack_a: bool,
    /// Memory for panels that are packed for all tasks.
    shared: *mut R::Element,
    /// What gets the result of each task, instead of `c`.
    visit: Option<Visit<'a, R::Element>>,
}

// SAFETY: tasks write to different elements of `c` and of the memory, and read only data that no task writes at that
// time.
unsafe impl<R: Register, B: Sync> Sync for Product<'_, R, B> {}

/// `c = a · b`, or `c += a · b`, on several threads if there is enough work, or only on the caller's thread.
///
/// # Safety
/// As for `Gemm::multiply`, with at least one element in each matrix, on a CPU with the instructions of `R`.
pub(super) unsafe fn multiply<R: Register, B: Right<R::Element>>(
    (m, n, k): (usize, usize, usize),
    a: View<R::Element>,
    b: B,
    c: View<R::Element>,
    add: bool,
    alone: bool,
) {
    let (threads, tasks) = if alone { (1, 1) } else { shares((m, n, k)) };
    let mut product = Product::<R, B>::new((m, n, k), a, b, c, add, threads);
    let depth = product.depth;
    let (rows, columns) = product.parts(tasks);
    if product.panels != Panels::Shared {
        // SAFETY: the caller's contract.
        return unsafe { product.compute(rows, columns) };
    }
    let most = LEVEL_3 / bytes::<R>(depth, Product::<R, B>::WIDTH) * Product::<R, B>::WIDTH;
    if n > most {
        for start in (0..n).step_by(most) {
            let (size, b, c) = ((m, most.min(n - start), k), b.without_columns(start), c.part(0, start));
            // SAFETY: the caller's contract, for these columns.
            unsafe { multiply::<R, B>(size, a, b, c, add, alone) };
        }
        return;
    }
    let width = product.count() * Product::<R, B>::WIDTH;
    let most = LEVEL_3 / bytes::<R>(depth, width) * depth;
    with_memory(&SHARED, most.min(k) * width, |memory| {
        product.shared = memory;
        for start in (0..k).step_by(most) {
            if start > 0 {
                poll();
            }
            (product.k, product.add) = (start..(start + most).min(k), add || start > 0);
            // SAFETY: the caller's contract, and there is memory for this number of rows of all panels.
            unsafe {
                product.pack();
                product.compute(rows, columns);
            }
        }
    });
}

/// The numbers of threads and of tasks for a product.
fn shares((m, n, k): (usize, usize, usize)) -> (usize, usize) {
    let tasks = (m.saturating_mul(n).saturating_mul(k) / GRAIN).max(1);
    let threads = if tasks == 1 { 1 } else { num_threads().min(tasks) };
    (threads, (tasks / threads).min(TASKS) * threads)
}

/// Computes `a · b` in parts. `visit` gets each part when it is complete. Returns false without calling it if the packed
/// panels of `b` are larger than [`LEVEL_3`], because the sums are then added in several passes.
///
/// # Safety
/// As for [`multiply`].
pub(super) unsafe fn visit<R: Register>(
    (m, n, k): (usize, usize, usize),
    a: View<R::Element>,
    b: View<R::Element>,
    visit: Visit<'_, R::Element>,
) -> bool {
    let (threads, tasks) = shares((m, n, k));
    let c = View { start: ptr::null_mut(), rows: 0, columns: 1 };
    let mut product = Product::<R, _>::new((m, n, k), a, b, c, false, threads);
    product.visit = Some(visit);
    let (rows, columns) = product.small(product.parts(tasks));
    let shared = if product.panels == Panels::Shared { k * product.count() * Product::<R, View<_>>::WIDTH } else { 0 };
    if shared.saturating_mul(size_of::<R::Element>()) > LEVEL_3 {
        return false;
    }
    with_memory(&SHARED, shared, |memory| {
        product.shared = memory;
        // SAFETY: the caller's contract, and there is memory for all panels.
        unsafe {
            if shared > 0 {
                product.pack();
            }
            product.compute(rows, columns);
        }
    });
    true
}

/// The size of a matrix in bytes.
fn bytes<R: Register>(rows: usize, columns: usize) -> usize {
    rows.saturating_mul(columns).saturating_mul(size_of::<R::Element>())
}

impl<R: Register, B: Right<R::Element>> Product<'_, R, B> {
    /// The number of columns in a panel.
    const WIDTH: usize = R::WIDTH * R::LANES;

    /// Chooses what is packed, and whether per task or for all tasks.
    fn new(
        (m, n, k): (usize, usize, usize),
        a: View<R::Element>,
        b: B,
        c: View<R::Element>,
        add: bool,
        threads: usize,
    ) -> Self {
        let (count, depth) = (n.div_ceil(Self::WIDTH), k.div_ceil(k.div_ceil(DEPTH)));
        let (few, flat) = (bytes::<R>(n, k) <= LEVEL_1, m <= 2 * R::ROWS);
        // Rows that are far apart map to few cache sets.
        let near = |b: View<_>| bytes::<R>(b.rows.unsigned_abs(), k) <= LEVEL_1;
        let lies_well = a.columns == 1 && bytes::<R>(m, k) <= STRAIGHT || a.rows == 1 && bytes::<R>(m, k) <= LEVEL_1;
        let is_wide = bytes::<R>(1, R::LANES) == 64;
        let most = if lies_well && is_wide { OWN_PANELS_WIDE } else { OWN_PANELS };
        let panels = if b.view().is_some_and(|b| b.columns == 1 && (few && near(b) || flat)) {
            Panels::Direct
        } else if bytes::<R>(m, depth) <= most && (threads == 1 || count >= 2 * threads) {
            Panels::Own
        } else {
            Panels::Shared
        };
        let depth = if panels == Panels::Direct && !few { depth.min(SHALLOW) } else { depth };
        // While all panels stay in the L1 cache, each tile of `a` is multiplied with all of them before the next tile.
        let group = if few { count } else { 1 };
        let (pack_a, shared) = (count > 1 && !lies_well, ptr::null_mut());
        Product { a, b, c, m, n, k: 0..k, add, threads, depth, group, panels, pack_a, shared, visit: None }
    }

    /// The number of parts for rows and panels that yields this number of tasks and fits the caches.
    fn parts(&self, tasks: usize) -> (usize, usize) {
        if self.panels == Panels::Shared {
            let rows = self.m.div_ceil((LEVEL_2 / bytes::<R>(self.depth, 1)).max(R::ROWS));
            if self.threads == 1 {
                return (rows, 1);
            }
            let rows = rows.next_multiple_of(self.threads).min((self.m / LEAST).max(1));
            // Each thread gets the same number of tasks.
            let rows = if rows < self.threads { rows } else { rows - rows % self.threads };
            return (rows, tasks.div_ceil(rows).min(self.count().div_ceil(4)));
        }
        if self.panels == Panels::Direct && self.m > 2 * R::ROWS {
            return (tasks.min(self.m.div_ceil(R::ROWS)), 1);
        }
        (1, tasks.min(self.count().div_ceil(2)))
    }

    /// At least as many parts for rows and panels, so that the result of each is small.
    fn small(&self, (rows, columns): (usize, usize)) -> (usize, usize) {
        let height = self.m.div_ceil(rows);
        if self.panels == Panels::Own {
            let width = (PART / bytes::<R>(height, Self::WIDTH)).max(1);
            return (rows, columns.max(self.count().div_ceil(width)));
        }
        let columns = columns.max(self.n.div_ceil(COLUMNS)).min(self.count());
        let height = (PART / bytes::<R>(1, self.n.div_ceil(columns))).max(R::ROWS);
        (rows.max(self.m.div_ceil(height)), columns)
    }

    /// The number of panels.
    fn count(&self) -> usize {
        self.n.div_ceil(Self::WIDTH)
    }

    /// The `grain` of loops over tasks.
    fn grain(&self, tasks: usize) -> usize {
        if self.threads == 1 { usize::MAX } else { tasks }
    }

    /// The number of columns of `b` in a panel.
    fn columns_of(&self, panel: usize) -> usize {
        Self::WIDTH.min(self.n - panel * Self::WIDTH)
    }

    /// The rows of `b` in a block.
    fn block(&self, start: usize) -> Range<usize> {
        start..(start + self.depth).min(self.k.end)
    }

    /// A packed panel.
    fn packed(start: *mut R::Element) -> View<R::Element> {
        View { start, rows: Self::WIDTH as isize, columns: 1 }
    }

    /// The location of a block of a panel that is packed for all tasks.
    fn shared(&self, panel: usize, block: &Range<usize>) -> View<R::Element> {
        let before = (block.start - self.k.start) * self.count() + panel * block.len();
        Self::packed(self.shared.wrapping_add(before * Self::WIDTH))
    }

    /// Packs a block of a panel.
    ///
    /// # Safety
    /// As for [`multiply`], and there is memory for it.
    unsafe fn pack_panel(&self, panel: usize, block: &Range<usize>, to: View<R::Element>) {
        let first = panel * Self::WIDTH;
        // SAFETY: the caller's contract.
        unsafe { self.b.pack::<R>(block.clone(), first..first + self.columns_of(panel), to.start) }
    }

    /// Packs all panels for all tasks.
    ///
    /// # Safety
    /// As for [`multiply`], and there is memory for all of them.
    unsafe fn pack(&self) {
        let count = self.count();
        let grain = self.grain((PACKING / (self.depth * Self::WIDTH)).max(1));
        parallel_for(count * self.k.len().div_ceil(self.depth), grain, |range| {
            for task in range {
                let (panel, block) = (task % count, self.block(self.k.start + task / count * self.depth));
                // SAFETY: one task for each block of a panel.
                unsafe { self.pack_panel(panel, &block, self.shared(panel, &block)) };
            }
        });
    }

    /// Computes the product in `rows × columns` tasks.
    ///
    /// # Safety
    /// As for [`multiply`], and shared panels are packed.
    unsafe fn compute(&self, rows: usize, columns: usize) {
        let part = |all: usize, part: usize, parts: usize| part * all / parts..(part + 1) * all / parts;
        parallel_for(rows * columns, self.grain(1), |range| {
            for task in range {
                let (row, column) = (task / columns, task % columns);
                // SAFETY: one task for each part of `c`.
                unsafe { self.task(part(self.m, row, rows), part(self.count(), column, columns)) };
            }
        });
    }

    /// Computes some rows of some panels.
    ///
    /// # Safety
    /// As for [`multiply`], and no other task writes to this part of `c`.
    unsafe fn task(&self, rows: Range<usize>, panels: Range<usize>) {
        let is_packed = |panel| match self.panels {
            Panels::Direct => !self.columns_of(panel).is_multiple_of(R::LANES),
            Panels::Own => true,
            Panels::Shared => false,
        };
        // If panels are read in place, the last one may still be packed. If all panels are processed at a time, the
        // tiles of `a` are packed one after the other in the same place.
        let own = match self.panels {
            Panels::Own => self.group.min(panels.len()),
            _ => usize::from(is_packed(panels.end - 1)),
        } * self.depth
            * Self::WIDTH;
        let reused = self.group >= panels.len();
        let step = packed_step::<R::Element>(self.depth);
        let packed_a = match (self.pack_a, reused) {
            (false, _) => 0,
            (true, true) => R::ROWS * step,
            (true, false) => rows.len() * step,
        };
        // Rows that are a power of 2 apart would share cache sets.
        let (first, width) = (panels.start * Self::WIDTH, panels.len() * Self::WIDTH + R::LANES);
        let part = if self.visit.is_some() { rows.len() * width } else { 0 };
        with_memory(&OWN, own + part + packed_a, |memory: *mut R::Element| {
            let memory_of_a = memory.wrapping_add(own + part);
            let c = match self.visit {
                None => self.c,
                Some(_) => View { start: memory.wrapping_add(own), rows: width as isize, columns: 1 }
                    .at_origin(rows.start, first),
            };
            let mut pace = Pace::default();
            for (block, group) in self.k.clone().step_by(self.depth).flat_map(|start| {
                panels
                    .clone()
                    .step_by(self.group)
                    .map(move |first| (self.block(start), first..(first + self.group).min(panels.end)))
            }) {
                let depth = block.len();
                pace.step(rows.len() * group.len() * Self::WIDTH * depth);
                let panel_at = |panel| match self.panels {
                    Panels::Own => Self::packed(memory.wrapping_add((panel - group.start) * depth * Self::WIDTH)),
                    Panels::Shared => self.shared(panel, &block),
                    Panels::Direct if is_packed(panel) => Self::packed(memory),
                    Panels::Direct => match self.b.view() {
                        Some(b) => b.part(block.start, panel * Self::WIDTH),
                        None => unreachable!("panels are read in place only if they are in memory"),
                    },
                };
                for panel in group.clone().filter(|panel| is_packed(*panel)) {
                    // SAFETY: there is memory for it.
                    unsafe { self.pack_panel(panel, &block, panel_at(panel)) };
                }
                if self.pack_a && !reused && group.start == panels.start {
                    // SAFETY: these rows of `a`, and memory for them.
                    unsafe { pack_rows::<R>(self.a.part(rows.start, block.start), rows.len(), depth, memory_of_a) };
                }
                for (first, count) in tiles_of::<R>(rows.len()) {
                    let row = rows.start + first;
                    let mut a = self.a.part(row, block.start);
                    if self.pack_a {
                        let place =
                            memory_of_a.wrapping_add(if reused { 0 } else { first * packed_step::<R::Element>(depth) });
                        if reused {
                            // SAFETY: these rows of `a`, and memory for them.
                            unsafe { pack_rows::<R>(a, count, depth, place) };
                        }
                        a = packed_rows(a, count, depth, place);
                    }
                    for panel in group.clone() {
                        let (b, c) = (panel_at(panel), c.part(row, panel * Self::WIDTH));
                        let (columns, add) = (self.columns_of(panel), self.add || block.start > self.k.start);
                        // SAFETY: the caller's contract; the panel is complete, or padded with zeros.
                        unsafe { Tile { a, b, c, rows: count, columns, depth, add }.multiply::<R>() };
                    }
                }
            }
            if let Some(visit) = self.visit {
                let columns = (panels.len() * Self::WIDTH).min(self.n - first);
                // SAFETY: the tiles have filled these elements.
                let part = unsafe { c.part(rows.start, first).read(rows.len(), columns) };
                visit([rows.start, first], part);
            }
        });
    }
}
