//! [`Routine`]: machine code that can be called.

use memmap2::{Mmap, MmapMut};
use smallvec::{SmallVec, smallvec};

use super::assemble::{Loop, assemble};
use super::emit::{SLOT, Shape};
use super::form::{Form, Op, Width};
use super::lower::lower;
use super::x86::vector_bytes;
use crate::memory::Line;
use crate::runtime::simd::Level;

/// The most instructions of a loop over several vectors.
const MOST_INSTRUCTIONS: usize = 1 << 14;

/// The machine code of a form.
#[derive(Debug)]
pub struct Routine {
    pages: Mmap,
    /// The size in bytes of an element of each input and output.
    sizes: [Vec<usize>; 2],
    /// The position in the pages of the loop over several vectors, and of the loop over one.
    starts: [usize; 2],
    /// The number of elements that an iteration of these loops processes.
    steps: [usize; 2],
    /// The memory that the loops need for values.
    slots: usize,
}

/// The arguments are the number of elements, which is a positive multiple of the step, the inputs, the outputs, the uniforms, and memory for
/// values.
type Entry = unsafe extern "sysv64" fn(usize, *const *const u8, *const *mut u8, *const u8, *mut u8);

impl Routine {
    /// Assembles a form with this many inputs, whose numbers have this width. Returns `None` if the level has no machine code, or
    /// if the system refuses executable memory.
    pub fn new(form: &Form, inputs: usize, width: Width, level: Level) -> Option<Routine> {
        if level == Level::Baseline {
            return None;
        }
        let truths: Vec<bool> = form.outputs.iter().map(|id| form.nodes[*id as usize].op.is_truth()).collect();
        let mut form = form.clone();
        for at in 0..form.outputs.len() {
            let output = form.outputs[at];
            if let Op::Input(_) = form.nodes[output as usize].op {
                // A value of its own, because storing another output may overwrite the input.
                form.outputs[at] = form.add(Op::Or, width, &[output, output]);
            }
        }
        let lowered = if level == Level::Avx512 { form.clone() } else { lower(&form, width) };
        let lowered = &lowered;
        let widest = lowered.nodes.iter().map(|node| node.width as usize).max().unwrap_or(0).max(width as usize);
        let lanes = vector_bytes(level) / widest;
        let copies = copies(lowered, level);
        let (mut bytes, constants) = constants(lowered, level, lanes);
        let mut starts = [0; 2];
        let mut slots = 0;
        for (start, copies) in starts.iter_mut().zip([copies, 1]) {
            *start = bytes.len();
            let shape = Shape { level, lanes, copies };
            let assembled = assemble(lowered, &truths, shape, &constants, *start as u64);
            debug_assert!(assembled.is_ok(), "{assembled:?}");
            let Loop { bytes: code, slots: used } = assembled.ok()?;
            bytes.extend(code);
            bytes.resize(bytes.len().next_multiple_of(SLOT), 0);
            slots = slots.max(used);
        }
        let is_tested = |k: &usize| form.nodes.iter().any(|node| node.op == Op::Test(*k as u32));
        let size = |is_truth| if is_truth { 1 } else { width as usize };
        let mut pages = MmapMut::map_anon(bytes.len()).ok()?;
        pages.copy_from_slice(&bytes);
        Some(Routine {
            pages: pages.make_exec().ok()?,
            sizes: [(0..inputs).map(|k| size(is_tested(&k))).collect(), truths.into_iter().map(size).collect()],
            starts,
            steps: [lanes * copies, lanes],
            slots,
        })
    }

    /// Runs the code over `n` elements.
    ///
    /// # Safety
    /// `inputs[k]` and `outputs[k]` point to `n` contiguous elements. An output may be the same memory as an input with elements of
    /// the same size; otherwise, outputs overlap nothing. `uniforms` points to the uniforms.
    pub unsafe fn run(&self, n: usize, inputs: &[*const u8], uniforms: *const u8, outputs: &[*mut u8]) {
        let mut memory: SmallVec<[Line; 16]> = smallvec![Line::ZERO; self.slots * SLOT / Line::BYTES];
        let memory = memory.as_mut_ptr().cast::<u8>();
        let mut done = 0;
        for (start, step) in self.starts.iter().zip(self.steps) {
            let count = (n - done) / step * step;
            if count > 0 {
                // SAFETY: the caller's contract, and `done + count <= n`.
                unsafe {
                    let inputs = moved(inputs, &self.sizes[0], done);
                    let outputs = moved(outputs, &self.sizes[1], done);
                    self.entry(*start)(count, inputs.as_ptr(), outputs.as_ptr(), uniforms, memory);
                }
                done += count;
            }
        }
        if done < n {
            // SAFETY: as above.
            unsafe { self.rest(done..n, inputs, uniforms, outputs, memory) }
        }
    }

    /// The elements that are fewer than a vector, by way of buffers.
    ///
    /// # Safety
    /// As for [`run`](Routine::run).
    unsafe fn rest(
        &self,
        range: std::ops::Range<usize>,
        inputs: &[*const u8],
        uniforms: *const u8,
        outputs: &[*mut u8],
        memory: *mut u8,
    ) {
        let count = range.len();
        let mut buffers: SmallVec<[Line; 16]> = smallvec![Line::ZERO; inputs.len() + outputs.len()];
        let buffers: SmallVec<[*mut u8; 16]> =
            buffers.iter_mut().map(|line| std::ptr::from_mut(line).cast::<u8>()).collect();
        let (read, written) = buffers.split_at(inputs.len());
        // SAFETY: the caller's contract; a buffer holds a vector, which has more than `count` elements.
        unsafe {
            for ((from, to), size) in moved(inputs, &self.sizes[0], range.start).iter().zip(read).zip(&self.sizes[0]) {
                to.copy_from_nonoverlapping(*from, count * size);
            }
            let read: SmallVec<[*const u8; 16]> = read.iter().map(|p| p.cast_const()).collect();
            self.entry(self.starts[1])(self.steps[1], read.as_ptr(), written.as_ptr(), uniforms, memory);
            for ((from, to), size) in
                written.iter().zip(moved(outputs, &self.sizes[1], range.start)).zip(&self.sizes[1])
            {
                to.copy_from_nonoverlapping(*from, count * size);
            }
        }
    }

    fn entry(&self, start: usize) -> Entry {
        // SAFETY: the code of a loop with these arguments begins there.
        unsafe { std::mem::transmute::<*const u8, Entry>(self.pages.as_ptr().add(start)) }
    }
}

/// Pointers, moved by `by` elements.
///
/// # Safety
/// The pointers point to at least that many elements.
unsafe fn moved<P: Pointer>(pointers: &[P], sizes: &[usize], by: usize) -> SmallVec<[P; 8]> {
    // SAFETY: the caller's contract.
    pointers.iter().zip(sizes).map(|(pointer, size)| unsafe { pointer.moved(by * size) }).collect()
}

/// `*const u8` or `*mut u8`.
trait Pointer: Copy {
    /// # Safety
    /// As for `add`.
    unsafe fn moved(self, bytes: usize) -> Self;
}

impl Pointer for *const u8 {
    unsafe fn moved(self, bytes: usize) -> Self {
        // SAFETY: the caller's contract.
        unsafe { self.add(bytes) }
    }
}

impl Pointer for *mut u8 {
    unsafe fn moved(self, bytes: usize) -> Self {
        // SAFETY: the caller's contract.
        unsafe { self.add(bytes) }
    }
}

/// The bytes before the code, which are zeros and the constants, and the position of each constant. With AVX2, which cannot
/// broadcast an operand, constants are stored as vectors.
fn constants(form: &Form, level: Level, lanes: usize) -> (Vec<u8>, Vec<i64>) {
    let mut bytes = vec![0; SLOT];
    let positions = form.nodes.iter().map(|node| {
        let Op::Constant(bits) = node.op else { return 0 };
        let size = node.width as usize;
        let count = if level == Level::Avx512 { 1 } else { lanes };
        bytes.resize(bytes.len().next_multiple_of(size * count), 0);
        let position = bytes.len() as i64;
        (0..count).for_each(|_| bytes.extend(&bits.to_le_bytes()[..size]));
        position
    });
    let positions = positions.collect();
    bytes.resize(bytes.len().next_multiple_of(SLOT), 0);
    (bytes, positions)
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
