//! [`Routine`]: machine code that can be called.

use std::mem::MaybeUninit;

use memmap2::{Mmap, MmapMut};
use smallvec::{SmallVec, smallvec};

use super::accumulator::Accumulator;
use super::assemble::{Body, Loop, assemble};
use super::emit::{SLOT, Shape};
use super::every_other::every_other;
use super::form::{Form, Node, Op, Width};
use super::lower::lower;
use super::masked::masked;
use super::output::Output;
use super::x86::vector_bytes;
use crate::memory::Line;
use crate::program::{OverRows, Storage};
use crate::reduce::rows::LANES;
use crate::row::Reduction;
use crate::runtime::simd::Level;

/// The most instructions of a loop over several vectors.
const MOST_INSTRUCTIONS: usize = 1 << 14;
/// The most values in memory.
const MOST_SLOTS: usize = 512;

/// The layout of the elements of an operand in memory, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Layout {
    /// The distance between two elements; 0 for an input that is not read, or has one element.
    step: usize,
    /// The size of an element.
    size: usize,
}

impl Layout {
    fn contiguous(size: usize) -> Layout {
        Layout { step: size, size }
    }

    /// The extent of `n` elements.
    fn bytes(self, n: usize) -> usize {
        n.saturating_sub(1) * self.step + self.size
    }
}

/// The machine code of a form.
#[derive(Debug)]
pub struct Routine {
    pages: Mmap,
    /// The layout of each input and output.
    layouts: [Vec<Layout>; 2],
    /// The position in the pages of the loop over several vectors, of the loop over one, and of the loop over rows, if there is one.
    starts: [usize; 3],
    /// The number of elements that an iteration of these loops processes.
    steps: [usize; 2],
    /// The outputs whose stores bypass the cache.
    aligned: SmallVec<[usize; 2]>,
    /// The number of elements in a vector.
    lanes: usize,
    /// Whether the loop over rows also computes rows that are no multiple of [`LANES`].
    has_tail: bool,
    /// The memory that the loops need for values.
    slots: usize,
}

type Pointers = SmallVec<[*mut u8; 8]>;

/// The arguments are the number of elements, which is a positive multiple of the step, the inputs, the outputs, the
/// uniforms, memory for values, and the row strides.
type Entry = unsafe extern "sysv64" fn(usize, *const *mut u8, *const *mut u8, *const u8, *mut u8, *mut isize);

impl Routine {
    /// Assembles a form with this many inputs, whose numbers have this width. `stored` says how each output is stored if it is
    /// a number. The last inputs and outputs belong to the reductions: such an input is the partial result that the output replaces.
    /// `identities` are the bits of their results for no elements. Returns `None` if the level has no machine code, or if the
    /// system refuses executable memory.
    pub fn new(
        mut form: Form,
        inputs: usize,
        stored: &[Storage],
        rows: &OverRows,
        identities: &[u64],
        width: Width,
        level: Level,
    ) -> Option<Routine> {
        if level == Level::Baseline {
            return None;
        }
        let outputs = form.outputs_stored(stored, width);
        let lowered = if level == Level::Avx512 { masked(&form) } else { lower(&form, width) };
        let lanes = lanes(&lowered, width, level);
        let reductions = &rows.reductions;
        let copies = copies(&lowered, level);
        let is_past_cache = |k: &usize| outputs[*k] == Output::Number(Storage::NonTemporal);
        let aligned: SmallVec<[usize; 2]> = (0..outputs.len()).filter(is_past_cache).collect();
        let bypasses = !aligned.is_empty();
        let shape = |copies| Shape { level, lanes, copies, groups: 1, has_rows: false, has_tail: false, bypasses };
        // A row is a multiple of the lanes.
        let even = (1 << copies.ilog2()).min(LANES / lanes);
        let has_tail = level == Level::Avx512
            && lowered.nodes.iter().all(Node::has_own_storage)
            && outputs.iter().all(|output| matches!(output, Output::Number(Storage::Own | Storage::NonTemporal)))
            && lowered.nodes.len() * LANES / lanes <= MOST_INSTRUCTIONS;
        let one = Shape { bypasses: false, ..shape(1) };
        let mut shapes = vec![shape(copies), one, Shape { has_rows: true, has_tail, ..shape(even) }];
        if !reductions.is_empty() {
            // An iteration adds to each lane once.
            shapes.iter_mut().for_each(|s| (s.copies, s.groups) = (even, LANES / lanes / even));
            if lowered.nodes.len() * LANES / lanes > MOST_INSTRUCTIONS {
                return None;
            }
        }
        let (mut bytes, constants) = constants(&lowered, level, lanes);
        let first = outputs.len() - reductions.len();
        let accumulator = |(k, ((reduction, result), identity)): (usize, (&(Reduction, usize), &u64))| {
            let identity = constant(&mut bytes, *identity, width as usize, level, lanes);
            Accumulator { output: first + k, reduction: *reduction, result: *result, identity, width, places: vec![] }
        };
        let accumulators: Vec<Accumulator> = reductions.iter().zip(identities).enumerate().map(accumulator).collect();
        bytes.resize(bytes.len().next_multiple_of(SLOT), 0);
        let mut starts = [0; 3];
        let mut slots = 0;
        let is_wanted = [true, reductions.is_empty(), rows.has_loop];
        for ((start, shape), _) in starts.iter_mut().zip(&shapes).zip(is_wanted).filter(|(_, is_wanted)| *is_wanted) {
            *start = bytes.len();
            let assembled = assemble(
                &lowered,
                &outputs,
                *shape,
                &constants,
                *start as u64,
                inputs,
                Body::Elements(accumulators.clone()),
            );
            debug_assert!(assembled.is_ok(), "{assembled:?}");
            let Loop { bytes: code, slots: used } = assembled.ok()?;
            bytes.extend(code);
            bytes.resize(bytes.len().next_multiple_of(SLOT), 0);
            slots = slots.max(used);
        }
        if slots > MOST_SLOTS {
            return None;
        }
        let of_outputs = outputs.into_iter().map(|output| Layout::contiguous(output.size(width))).collect();
        let mut layouts = [vec![Layout::default(); inputs], of_outputs];
        for node in &lowered.nodes {
            match node.op {
                Op::Input(k, storage) => {
                    let step = storage.step(width as usize);
                    layouts[0][k as usize] = Layout { step, size: step.min(width as usize) };
                }
                Op::Test(k) => layouts[0][k as usize] = Layout::contiguous(1),
                _ => {}
            }
        }
        let steps = [0, 1].map(|k| shapes[k].step());
        Some(Routine { pages: executable(&bytes)?, layouts, starts, steps, aligned, lanes, has_tail, slots })
    }

    /// A routine with a loop over rows only, which begins there.
    pub(super) fn of_loop(bytes: &[u8], start: usize, slots: usize) -> Option<Routine> {
        let pages = executable(bytes).filter(|_| slots <= MOST_SLOTS)?;
        let (layouts, aligned) = ([vec![], vec![]], SmallVec::new());
        Some(Routine {
            pages,
            layouts,
            starts: [0, 0, start],
            steps: [1; 2],
            aligned,
            lanes: 1,
            has_tail: false,
            slots,
        })
    }

    /// Runs the code over [whole](Routine::whole) rows of the length for which it was assembled. `strides` are as for
    /// [`run_rows`](Routine::run_rows).
    ///
    /// # Safety
    /// As for `run_rows`.
    pub unsafe fn run_whole_rows(
        &self,
        inputs: &mut [*mut u8],
        uniforms: *const u8,
        outputs: &mut [*mut u8],
        strides: &mut [isize],
    ) {
        debug_assert!(strides.len() >= OverRows::OPERANDS + inputs.len() + outputs.len());
        // SAFETY: the caller's contract.
        unsafe { self.call(2, 1, inputs.as_mut_ptr(), uniforms, outputs.as_mut_ptr(), strides) };
    }

    /// Runs the code over `n` elements, a multiple of [`LANES`]. The last outputs are the totals of the reductions, of that many
    /// elements. Sums and products are added to them, and extrema replace them.
    ///
    /// # Safety
    /// As for [`run`](Routine::run).
    pub unsafe fn accumulate(&self, n: usize, inputs: &[*const u8], uniforms: *const u8, outputs: &[*mut u8]) {
        debug_assert!(n.is_multiple_of(LANES));
        if n > 0 {
            // SAFETY: the caller's contract.
            unsafe { self.call(0, n, inputs.as_ptr().cast(), uniforms, outputs.as_ptr(), &mut []) };
        }
    }

    /// Whether the outputs whose stores bypass the cache are aligned in each row. `strides` are the row strides of the outputs.
    pub fn is_aligned(&self, outputs: &[*mut u8], strides: &[isize]) -> bool {
        let is_multiple = |distance: usize| distance.is_multiple_of(Line::BYTES);
        let of_rows = |k: usize| strides.get(k).is_none_or(|stride| is_multiple(stride.unsigned_abs()));
        self.aligned.iter().all(|k| is_multiple(outputs[*k].addr()) && of_rows(*k))
    }

    /// Whether there is a loop over rows of `n` elements.
    pub fn has_rows(&self, n: usize) -> bool {
        self.starts[2] > 0 && n >= LANES && (self.has_tail || n.is_multiple_of(LANES))
    }

    /// Runs the code over several rows of `n` elements. `strides` are the number of rows, the distance in bytes from one row to the next
    /// of the uniforms, and from [`OverRows::OPERANDS`] on of each input and of each output. The results of reductions become uniforms. The
    /// number of rows, the pointers and the other integers change.
    ///
    /// # Safety
    /// As for [`run`](Routine::run), for each row. The routine [has](Routine::has_rows) a loop over such rows. The uniforms of all rows may
    /// be written.
    pub unsafe fn run_rows(
        &self,
        n: usize,
        inputs: &mut [*mut u8],
        uniforms: *mut u8,
        outputs: &mut [*mut u8],
        strides: &mut [isize],
    ) {
        debug_assert!(strides.len() >= OverRows::OPERANDS + inputs.len() && self.has_rows(n));
        let rest = n % LANES;
        for (k, mask) in strides[OverRows::MASKS..OverRows::OPERANDS].iter_mut().enumerate() {
            *mask = (1 << rest.saturating_sub(k * self.lanes).min(self.lanes)) - 1;
        }
        // SAFETY: the caller's contract.
        unsafe { self.call(2, n - rest, inputs.as_mut_ptr(), uniforms, outputs.as_mut_ptr(), strides) };
    }

    /// The number of elements of a vector.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Runs the code over `n` elements.
    ///
    /// # Safety
    /// `inputs[k]`, if it is read, and `outputs[k]` point to `n` contiguous elements. An output may be the same memory as an
    /// input with elements of the same size; otherwise, outputs overlap nothing. `uniforms` points to the uniforms.
    pub unsafe fn run(&self, n: usize, inputs: &[*const u8], uniforms: *const u8, outputs: &[*mut u8]) {
        let [step, lanes] = self.steps;
        // One vector, as in the step of a scan, needs none of what follows.
        if n == lanes && self.aligned.is_empty() {
            // SAFETY: the caller's contract.
            return unsafe { self.call(1, n, inputs.as_ptr().cast(), uniforms, outputs.as_ptr(), &mut []) };
        }
        let first = if self.is_aligned(outputs, &[]) { n - n % step } else { 0 };
        if first > 0 {
            // SAFETY: the caller's contract.
            unsafe { self.call(0, first, inputs.as_ptr().cast(), uniforms, outputs.as_ptr(), &mut []) };
        }
        if first == n {
            return;
        }
        // The rest, as whole vectors. The last one ends with the last element: some elements may be computed twice.
        let rest = (n - first).next_multiple_of(lanes);
        let is_in_place = || outputs.iter().any(|output| inputs.contains(&output.cast_const()));
        let (from, count) = if n >= rest && !is_in_place() { (n - rest, rest) } else { (first, rest - lanes) };
        if count > 0 {
            let [inputs, outputs] = self.moved(from, inputs, outputs);
            // SAFETY: as above, and `from + count <= n`.
            unsafe { self.call(1, count, inputs.as_ptr(), uniforms, outputs.as_ptr(), &mut []) };
        }
        let done = from + count;
        if done < n {
            let [inputs, outputs] = self.moved(done, inputs, outputs);
            // SAFETY: as above.
            unsafe { self.buffered(n - done, &inputs, uniforms, &outputs) };
        }
    }

    /// Computes fewer elements than a vector, in buffers.
    ///
    /// # Safety
    /// As for [`run`](Routine::run).
    unsafe fn buffered(&self, n: usize, inputs: &[*mut u8], uniforms: *const u8, outputs: &[*mut u8]) {
        // A vector of every other number extends over two lines.
        let mut buffers: SmallVec<[[Line; 2]; 8]> = smallvec![[Line::ZERO; 2]; inputs.len() + outputs.len()];
        let mut buffers: Pointers = buffers.iter_mut().map(|lines| lines.as_mut_ptr().cast()).collect();
        let (read, written) = buffers.split_at_mut(inputs.len());
        for ((read, input), layout) in read.iter_mut().zip(inputs).zip(&self.layouts[0]) {
            if layout.step == 0 {
                *read = *input;
            }
        }
        // SAFETY: the caller's contract; a buffer holds a vector.
        unsafe {
            let copy = |from: &[*mut u8], to: &[*mut u8], layouts: &[Layout]| {
                for ((from, to), layout) in from.iter().zip(to).zip(layouts).filter(|(_, layout)| layout.step > 0) {
                    to.copy_from_nonoverlapping(*from, layout.bytes(n));
                }
            };
            copy(inputs, read, &self.layouts[0]);
            self.call(1, self.steps[1], read.as_ptr(), uniforms, written.as_ptr(), &mut []);
            copy(written, outputs, &self.layouts[1]);
        }
    }

    /// Pointers to the elements from `by` on. The pointer to an operand that is not read may be invalid, and is not changed.
    fn moved(&self, by: usize, inputs: &[*const u8], outputs: &[*mut u8]) -> [Pointers; 2] {
        let (mut from, mut to) = (Pointers::new(), Pointers::new());
        from.extend(
            inputs
                .iter()
                .zip(&self.layouts[0])
                .map(|(pointer, layout)| pointer.wrapping_add(by * layout.step).cast_mut()),
        );
        to.extend(outputs.iter().zip(&self.layouts[1]).map(|(pointer, layout)| pointer.wrapping_add(by * layout.step)));
        [from, to]
    }

    /// Calls a loop.
    ///
    /// # Safety
    /// As for [`run`](Routine::run); `n` is a positive multiple of the step of the loop.
    unsafe fn call(
        &self,
        which: usize,
        n: usize,
        inputs: *const *mut u8,
        uniforms: *const u8,
        outputs: *const *mut u8,
        strides: &mut [isize],
    ) {
        const FEW: usize = 16;
        let mut few = [const { MaybeUninit::<Line>::uninit() }; FEW];
        let mut many = Vec::new();
        let lines = self.slots * SLOT / Line::BYTES;
        let slots = if lines <= FEW {
            few.as_mut_ptr()
        } else {
            many.resize_with(lines, MaybeUninit::<Line>::uninit);
            many.as_mut_ptr()
        };
        // SAFETY: the code of a loop with these arguments begins there, and writes a slot before it reads it. The caller's
        // contract.
        unsafe {
            let entry = std::mem::transmute::<*const u8, Entry>(self.pages.as_ptr().add(self.starts[which]));
            entry(n, inputs, outputs, uniforms, slots.cast(), strides.as_mut_ptr());
        }
    }
}

/// Memory with this code.
fn executable(bytes: &[u8]) -> Option<Mmap> {
    let mut pages = MmapMut::map_anon(bytes.len()).ok()?;
    pages.copy_from_slice(bytes);
    pages.make_exec().ok()
}

/// The number of elements in a vector.
pub(super) fn lanes(form: &Form, width: Width, level: Level) -> usize {
    let widest = form.nodes.iter().map(|node| node.width as usize).max().unwrap_or(0).max(width as usize);
    vector_bytes(level) / widest
}

/// The bytes before the code, which are zeros, the positions of every other number and the constants, and the position of each constant.
/// With AVX2, which cannot broadcast an operand, constants are stored as vectors.
pub(super) fn constants(form: &Form, level: Level, lanes: usize) -> (Vec<u8>, Vec<i64>) {
    let mut bytes = vec![0; SLOT];
    if form.nodes.iter().any(|node| matches!(node.op, Op::Input(_, Storage::EveryOther))) {
        bytes.extend(every_other(lanes).iter().flat_map(|position| position.to_le_bytes()));
        bytes.resize(2 * SLOT, 0);
    }
    let positions = form.nodes.iter().map(|node| {
        let Op::Constant(bits) = node.op else { return 0 };
        constant(&mut bytes, bits, node.width as usize, level, lanes)
    });
    let positions = positions.collect();
    bytes.resize(bytes.len().next_multiple_of(SLOT), 0);
    (bytes, positions)
}

/// Adds a constant, and returns its position.
pub(super) fn constant(bytes: &mut Vec<u8>, bits: u64, size: usize, level: Level, lanes: usize) -> i64 {
    let count = if level == Level::Avx512 { 1 } else { lanes };
    bytes.resize(bytes.len().next_multiple_of(size * count), 0);
    let position = bytes.len() as i64;
    (0..count).for_each(|_| bytes.extend(&bits.to_le_bytes()[..size]));
    position
}

/// The number of vectors at once. The instructions for one vector wait for each other, so several are faster, even if some values
/// do not fit in the registers; AVX2 has half as many. A longer program needs more vectors, because a CPU reorders only some hundred
/// instructions.
fn copies(form: &Form, level: Level) -> usize {
    let length = form.nodes.len().max(1);
    let fastest = match level {
        Level::Avx512 => 4,
        _ if length < 100 => 2,
        _ => 3,
    };
    fastest.min(MOST_INSTRUCTIONS / length).max(1)
}
