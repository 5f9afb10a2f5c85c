//! [`Program`]: the recorded steps of a body, for cells side by side. [`Programs`]: those of an op.

use std::any::{Any, TypeId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use minitensor_kernels::cell::{Differentiable, Lanes, Recording, Traced};
use smallvec::SmallVec;

use super::Level;
use super::arguments::{Arguments, Cores, Input, Numbers};
use super::run::give;
use crate::attr::Attr;
use crate::error::Result;

/// The number of programs that an op keeps.
const MOST: usize = 8;
/// A longer program is not kept.
const MOST_STEPS: usize = 1 << 20;

/// The recorded steps of a body.
pub struct Program<N: 'static> {
    recording: Recording<N>,
    /// The place of the first element of each input. `None` if it has none.
    inputs: Vec<Option<usize>>,
    /// The elements of each output.
    outputs: Vec<Vec<Traced<N>>>,
}

impl<N: Differentiable> Program<N> {
    pub fn new(recording: Recording<N>, inputs: Vec<Option<usize>>, outputs: Vec<Vec<Traced<N>>>) -> Program<N> {
        Program { recording, inputs, outputs }
    }

    /// Whether it is faster than compiled code that computes one cell at a time.
    pub fn is_dear(&self) -> bool {
        self.recording.is_dear()
    }

    /// Computes the outputs of all cells.
    ///
    /// # Safety
    /// As for [`cell_results`](super::cell_results).
    pub unsafe fn results<T: Differentiable>(&self, arguments: &Arguments<'_, T>, cells: usize) -> Result<()>
    where
        N: Level<T>,
    {
        let mut lanes = Lanes::new(&self.recording, cells, false);
        let width = lanes.lanes();
        for start in (0..cells).step_by(width) {
            let count = width.min(cells - start);
            crate::interrupt::check()?;
            // SAFETY: by contract.
            unsafe { self.load(&mut lanes, arguments, start, count) };
            lanes.compute();
            for (output, numbers) in arguments.outputs.iter().zip(&self.outputs) {
                let Some(values) = output.values.filter(|values| values.is_given()) else { continue };
                let row = |at: usize, lane: usize| match numbers[at].place() {
                    Some(place) => array(&lanes.values(place)[lane..]),
                    None => [numbers[at].value(); SIDE],
                };
                // SAFETY: by contract, each cell has that many elements.
                unsafe {
                    write_cells(numbers.len(), start..start + count, values, row, |place, value| {
                        place.write(value.part())
                    })
                }
            }
        }
        Ok(())
    }

    /// Computes the gradients of all cells.
    ///
    /// # Safety
    /// As for [`cell_gradient`](super::cell_gradient).
    pub unsafe fn gradients<T: Differentiable>(&self, arguments: &Arguments<'_, T>, cells: usize) -> Result<()>
    where
        N: Level<T>,
    {
        let mut lanes = Lanes::new(&self.recording, cells, true);
        let width = lanes.lanes();
        for start in (0..cells).step_by(width) {
            let count = width.min(cells - start);
            crate::interrupt::check()?;
            // SAFETY: by contract.
            unsafe { self.load(&mut lanes, arguments, start, count) };
            lanes.compute();
            lanes.clear();
            for (output, numbers) in arguments.outputs.iter().zip(&self.outputs) {
                let Some(cotangent) = output.cotangent else { continue };
                for (at, place) in numbers.iter().enumerate().filter_map(|(at, number)| Some((at, number.place()?))) {
                    // SAFETY: by contract, the cell has that many elements.
                    let d = |cell: usize| unsafe { cotangent.place(cell, at).read() };
                    lanes.seed(place, (start..start + count).map(|cell| N::of(d(cell), T::zero())));
                }
            }
            lanes.pull();
            for ((input, first), core) in arguments.inputs.iter().zip(&self.inputs).zip(arguments.cores()) {
                let Input::Numbers(input) = input else { continue };
                let Numbers { gradient, is_shared, .. } = &**input;
                let Some(first) = first.filter(|_| gradient.is_given()) else { continue };
                let row = |at: usize, lane: usize| array(&lanes.adjoints(first + at)[lane..]);
                // SAFETY: as above.
                unsafe {
                    match is_shared {
                        true => write_cells(core, start..start + count, *gradient, row, |place, g| {
                            give(place, g.part(), true)
                        }),
                        false => {
                            write_cells(core, start..start + count, *gradient, row, |place, g| place.write(g.part()))
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the inputs of some cells.
    ///
    /// # Safety
    /// As for [`cell_gradient`](super::cell_gradient).
    unsafe fn load<T: Differentiable>(
        &self,
        lanes: &mut Lanes<'_, N>,
        arguments: &Arguments<'_, T>,
        start: usize,
        count: usize,
    ) where
        N: Level<T>,
    {
        let width = lanes.lanes();
        for ((input, first), core) in arguments.inputs.iter().zip(&self.inputs).zip(arguments.cores()) {
            let (Input::Numbers(input), Some(first)) = (input, first) else { continue };
            let variables = lanes.variables_mut(*first, core);
            for at in (0..core).step_by(SIDE) {
                for lane in (0..count).step_by(SIDE) {
                    let mut block = [[T::zero(); SIDE]; SIDE];
                    for (row, cell) in block.iter_mut().zip(start + lane..start + count) {
                        // SAFETY: by contract, the cell has that many elements.
                        unsafe { input.values.read(cell, at, &mut row[..SIDE.min(core - at)]) }
                    }
                    for (a, row) in variables[at * width..].chunks_exact_mut(width).take(SIDE).enumerate() {
                        for (place, cell) in row[lane..lane + SIDE].iter_mut().zip(&block) {
                            *place = N::of(cell[a], T::zero());
                        }
                    }
                }
            }
        }
    }
}

/// The side of the blocks in which cells are transposed, so that elements that are near in memory are accessed together. The number of lanes is
/// a multiple of it.
const SIDE: usize = 16;

#[inline(always)]
fn array<N: Copy>(row: &[N]) -> [N; SIDE] {
    std::array::from_fn(|l| row[l])
}

/// Writes the cores of some cells with `give`. `row(at, lane)` has the values of an element for some lanes.
///
/// # Safety
/// Each cell has `numel` elements.
#[inline(always)]
unsafe fn write_cells<T, N: Differentiable>(
    numel: usize,
    cells: std::ops::Range<usize>,
    cores: Cores<'_, T>,
    row: impl Fn(usize, usize) -> [N; SIDE],
    give: impl Fn(*mut T, N),
) {
    for at in (0..numel).step_by(SIDE) {
        for lane in (0..cells.len()).step_by(SIDE) {
            let mut block = [[N::zero(); SIDE]; SIDE];
            let rows = SIDE.min(numel - at);
            for (a, place) in block[..rows].iter_mut().enumerate() {
                *place = row(at + a, lane);
            }
            for (l, cell) in (cells.start + lane..cells.end).take(SIDE).enumerate() {
                match cores.is_contiguous() {
                    true => {
                        let first = cores.place(cell, at);
                        block[..rows].iter().enumerate().for_each(|(a, row)| give(first.wrapping_add(a), row[l]));
                    }
                    false => {
                        let place = |a: usize| cores.place(cell, at + a);
                        block[..rows].iter().enumerate().for_each(|(a, row)| give(place(a), row[l]));
                    }
                }
            }
        }
    }
}

/// What the steps of a body depend on, if it does not branch on its numbers.
#[derive(PartialEq)]
pub struct Key {
    number: TypeId,
    attrs: Vec<Attr>,
    /// The sizes of the core of each input. `None` if it is absent.
    inputs: Vec<Option<SmallVec<[usize; 4]>>>,
}

impl Key {
    pub fn of<T, N: 'static>(attrs: &[Attr], arguments: &Arguments<'_, T>) -> Key {
        let sizes = |input: &Input<'_, T>| match input {
            Input::Numbers(input) => input.values.is_given().then(|| input.core.sizes.clone()),
            Input::Other(_) => None,
        };
        Key { number: TypeId::of::<N>(), attrs: attrs.to_vec(), inputs: arguments.inputs.iter().map(sizes).collect() }
    }
}

/// The programs of an op that were used last.
pub struct Programs {
    kept: Mutex<Vec<(Key, Arc<dyn Any + Send + Sync>)>>,
    /// Whether the body branched on its numbers, so that it probably always does.
    has_branched: AtomicBool,
}

impl Programs {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Programs {
        Programs { kept: Mutex::new(Vec::new()), has_branched: AtomicBool::new(false) }
    }

    /// Whether a call records a program. Another call of the same op has found that the steps depend on the numbers otherwise.
    pub fn may_record(&self) -> bool {
        !self.has_branched.load(Ordering::Relaxed)
    }

    pub fn note_branch(&self) {
        self.has_branched.store(true, Ordering::Relaxed);
    }

    pub fn find<N: Differentiable>(&self, key: &Key) -> Option<Arc<Program<N>>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(known, _)| known == key)?;
        found.1.clone().downcast().ok()
    }

    pub fn keep<N: Differentiable>(&self, key: Key, program: &Arc<Program<N>>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if program.recording.len() <= MOST_STEPS && kept.iter().all(|(known, _)| *known != key) {
            if kept.len() == MOST {
                kept.remove(0);
            }
            kept.push((key, program.clone()));
        }
    }
}
