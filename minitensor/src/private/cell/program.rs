//! [`Program`]: the recorded steps of a body, for cells side by side. [`Programs`]: those of an op.

use std::any::{Any, TypeId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use minitensor_kernels::cell::{Differentiable, Lanes, Recording, Traced};
use smallvec::SmallVec;

use super::Level;
use super::arguments::{Arguments, Input, Numbers};
use super::transpose::{SIDE, blocks};
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
                for (elements, cells) in blocks(numbers.len(), start..start + count) {
                    let lane = cells.start - start;
                    let mut block = [[T::zero(); SIDE]; SIDE];
                    for (row, number) in block.iter_mut().zip(&numbers[elements.clone()]) {
                        *row = match number.place() {
                            Some(place) => parts(&lanes.values(place)[lane..]),
                            None => [number.value().part(); SIDE],
                        };
                    }
                    // SAFETY: by contract, the cells have these elements.
                    unsafe { values.write(elements, cells, &block, false) }
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
                for (elements, cells) in blocks(numbers.len(), start..start + count) {
                    let lane = cells.start - start;
                    // SAFETY: by contract, the cells have these elements.
                    let block = unsafe { cotangent.read(elements.clone(), cells) };
                    for (row, number) in block.iter().zip(&numbers[elements]) {
                        if let Some(place) = number.place() {
                            lanes.seed(place, lane, row.map(|d| N::of(d, T::zero())));
                        }
                    }
                }
            }
            lanes.pull();
            for ((input, first), core) in arguments.inputs.iter().zip(&self.inputs).zip(arguments.cores()) {
                let Input::Numbers(input) = input else { continue };
                let Numbers { gradient, is_shared, .. } = &**input;
                let Some(first) = first.filter(|_| gradient.is_given()) else { continue };
                for (elements, cells) in blocks(core, start..start + count) {
                    let lane = cells.start - start;
                    let mut block = [[T::zero(); SIDE]; SIDE];
                    for (row, at) in block.iter_mut().zip(elements.clone()) {
                        *row = parts(&lanes.adjoints(first + at)[lane..]);
                    }
                    // SAFETY: as above.
                    unsafe { gradient.write(elements, cells, &block, *is_shared) }
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
            for (elements, cells) in blocks(core, start..start + count) {
                let lane = cells.start - start;
                // SAFETY: by contract, the cells have these elements.
                let block = unsafe { input.values.read(elements.clone(), cells) };
                for (row, at) in block.iter().zip(elements) {
                    variables[at * width + lane..][..SIDE].copy_from_slice(&row.map(|x| N::of(x, T::zero())));
                }
            }
        }
    }
}

/// The numbers of a row of a block.
#[inline(always)]
fn parts<T: Differentiable, N: Level<T>>(row: &[N]) -> [T; SIDE] {
    let mut parts = [T::zero(); SIDE];
    for (part, number) in parts.iter_mut().zip(&row[..SIDE]) {
        *part = number.part();
    }
    parts
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
