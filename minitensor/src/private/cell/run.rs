//! [`Run`]: computes a gradient, one cell after another on a tape, or many cells side by side.

use minitensor_kernels::cell::{Differentiable, Lanes, Tape, Traced};
use minitensor_kernels::stop::filled;

use super::Level;
use super::arguments::{Arguments, Input};
use crate::error::{Error, Result};
use crate::op::CellArg;

/// The number of steps after which a run checks for interrupts.
const BREATH: usize = 1 << 20;
/// The elements of a core that are transposed together.
const BLOCK: usize = 16;

/// The memory for the element of an output that is no number of the tape.
type Other = u128;

/// A run over cells.
pub struct Run<'a, T, N: Differentiable> {
    arguments: Arguments<'a, T>,
    tape: Tape<N>,
    /// The cores of the inputs and of the outputs that are numbers of the tape; the others are empty.
    inputs: Vec<Vec<Traced<N>>>,
    outputs: Vec<Vec<Traced<N>>>,
    others: Vec<Vec<Other>>,
}

impl<'a, T: Differentiable, N: Level<T>> Run<'a, T, N> {
    pub fn new(arguments: Arguments<'a, T>) -> Run<'a, T, N> {
        let zero = Traced::constant_of(N::zero());
        let inputs = arguments.inputs.iter().map(|input| match input {
            Input::Numbers { core, values, .. } if values.is_given() => filled(zero, core.numel()),
            _ => Vec::new(),
        });
        let (inputs, mut outputs, mut others) = (inputs.collect(), vec![], vec![]);
        for output in &arguments.outputs {
            let (numbers, other) = if output.is_number { (output.core.numel(), 0) } else { (0, output.core.numel()) };
            outputs.push(filled(zero, numbers));
            others.push(filled(0, other));
        }
        Run { arguments, tape: Tape::open(), inputs, outputs, others }
    }

    /// Computes the gradients of all cells.
    ///
    /// # Safety
    /// As for [`cell_gradient`](super::cell_gradient).
    pub unsafe fn cells(mut self, cells: usize, body: impl Fn(&[CellArg<'_>]) -> Result<()>) -> Result<()> {
        // The steps of the first cell are those of all cells, unless they depend on its numbers.
        let mut may_have_lanes = N::HAS_LANES && cells > 1 && self.others_are_shared();
        let mut steps = 0;
        for cell in 0..cells {
            // SAFETY: by contract.
            unsafe { self.load(cell, may_have_lanes) };
            body(&self.cores(cell))?;
            if self.tape.has_lost(self.outputs.iter().flatten().copied()) {
                return Err(Error::runtime(format!(
                    "the gradient of op '{}' is not available: its body computes on other threads, which its tape does not record; compute on the \
                     calling thread, or write a formula",
                    self.arguments.op.name
                )));
            }
            if may_have_lanes && let Some(lanes) = Lanes::of(&self.tape, cells) {
                // SAFETY: by contract.
                return unsafe { self.in_lanes(lanes, cells) };
            }
            may_have_lanes = false;
            // SAFETY: by contract.
            unsafe { self.pull(cell) };
            steps += self.tape.len();
            if steps >= BREATH {
                crate::interrupt::check()?;
                steps = 0;
            }
        }
        Ok(())
    }

    /// Whether all cells have the same inputs besides numbers: a body may branch on them.
    fn others_are_shared(&self) -> bool {
        let mut others = self.arguments.inputs.iter();
        others.all(|input| matches!(input, Input::Numbers { .. }) || matches!(input, Input::Other(arg) if arg.step == 0 || arg.data.is_null()))
    }

    /// Reads a cell. Inputs without a gradient are constants, unless `all` inputs are variables.
    ///
    /// # Safety
    /// As for [`cell_gradient`](super::cell_gradient).
    unsafe fn load(&mut self, cell: usize, all: bool) {
        self.tape.clear();
        for (input, numbers) in self.arguments.inputs.iter().zip(&mut self.inputs) {
            let Input::Numbers { values, direction, gradient, .. } = input else { continue };
            for (at, number) in numbers.iter_mut().enumerate() {
                // SAFETY: by contract, the cell has that many elements.
                let value = unsafe {
                    let direction = direction.filter(|d| d.is_given()).map_or(T::zero(), |d| d.place(cell, at).read());
                    N::of(values.place(cell, at).read(), direction)
                };
                let is_variable = all || gradient.is_given();
                *number = if is_variable { self.tape.variable(value) } else { Traced::constant_of(value) };
            }
        }
        self.outputs.iter_mut().flatten().for_each(|number| *number = Traced::constant_of(N::zero()));
    }

    /// The cores of a cell for the body.
    fn cores(&mut self, cell: usize) -> Vec<CellArg<'_>> {
        let mut cores = Vec::with_capacity(self.inputs.len() + self.outputs.len());
        for (input, numbers) in self.arguments.inputs.iter().zip(&mut self.inputs) {
            cores.push(match input {
                Input::Numbers { core, values, .. } => match values.is_given() {
                    true => core.at(numbers.as_mut_ptr().cast()),
                    false => core.at(std::ptr::null_mut()),
                },
                Input::Other(arg) if arg.data.is_null() => *arg,
                Input::Other(arg) => CellArg { data: arg.data.wrapping_offset(cell as isize * arg.step), ..*arg },
            });
        }
        for ((output, numbers), other) in self.arguments.outputs.iter().zip(&mut self.outputs).zip(&mut self.others) {
            let data = if output.is_number { numbers.as_mut_ptr().cast() } else { other.as_mut_ptr().cast() };
            cores.push(output.core.at(data));
        }
        cores
    }

    /// Sweeps over the tape of a cell, and writes its gradients.
    ///
    /// # Safety
    /// As for [`cell_gradient`](super::cell_gradient).
    unsafe fn pull(&mut self, cell: usize) {
        let mut seeds = Vec::new();
        for (output, numbers) in self.arguments.outputs.iter().zip(&self.outputs) {
            let Some(cotangent) = output.cotangent else { continue };
            for (at, number) in numbers.iter().enumerate() {
                // SAFETY: by contract, the cell has that many elements.
                let d = unsafe { cotangent.place(cell, at).read() };
                seeds.push((*number, N::of(d, T::zero())));
                if let Some(gradient) = output.gradient.filter(|gradient| gradient.is_given()) {
                    // SAFETY: as above.
                    unsafe { give(gradient.place(cell, at), number.value().part(), output.is_shared) }
                }
            }
        }
        self.tape.pull(seeds);
        for (input, numbers) in self.arguments.inputs.iter().zip(&self.inputs) {
            let Input::Numbers { gradient, is_shared, .. } = input else { continue };
            for (at, number) in numbers.iter().enumerate().filter(|_| gradient.is_given()) {
                // SAFETY: as above.
                unsafe { give(gradient.place(cell, at), self.tape.adjoint(*number).part(), *is_shared) }
            }
        }
    }

    /// Repeats the steps of the tape for all cells. All inputs are variables.
    ///
    /// # Safety
    /// As for [`cell_gradient`](super::cell_gradient).
    unsafe fn in_lanes(&self, mut lanes: Lanes<N>, cells: usize) -> Result<()> {
        let width = lanes.lanes();
        for start in (0..cells).step_by(width) {
            let count = width.min(cells - start);
            crate::interrupt::check()?;
            for (input, numbers) in self.arguments.inputs.iter().zip(&self.inputs) {
                let Input::Numbers { values, .. } = input else { continue };
                let Some(first) = numbers.first().and_then(|number| number.place()) else { continue };
                let variables = &mut lanes.variables_mut()[first * width..][..numbers.len() * width];
                blocks(numbers.len(), count, |at, lane| {
                    // SAFETY: by contract, the cell has that many elements.
                    variables[at * width + lane] = N::of(unsafe { values.place(start + lane, at).read() }, T::zero());
                });
            }
            lanes.compute();
            lanes.clear();
            for (output, numbers) in self.arguments.outputs.iter().zip(&self.outputs) {
                let Some(cotangent) = output.cotangent else { continue };
                for (at, place) in numbers.iter().enumerate().filter_map(|(at, number)| Some((at, number.place()?))) {
                    // SAFETY: as above.
                    let d = |cell: usize| unsafe { cotangent.place(cell, at).read() };
                    lanes.seed(place, (start..start + count).map(|cell| N::of(d(cell), T::zero())));
                }
            }
            lanes.pull();
            for (input, numbers) in self.arguments.inputs.iter().zip(&self.inputs) {
                let Input::Numbers { gradient, is_shared, .. } = input else { continue };
                let first = numbers.first().and_then(|number| number.place()).filter(|_| gradient.is_given());
                let Some(first) = first else { continue };
                blocks(numbers.len(), count, |at, lane| {
                    let adjoint = lanes.adjoints(first + at)[lane].part();
                    // SAFETY: as above.
                    unsafe { give(gradient.place(start + lane, at), adjoint, *is_shared) }
                });
            }
        }
        Ok(())
    }
}

/// Calls `f` for each element of each cell. Elements that are near in memory follow one another, along the core and along the lanes.
#[inline(always)]
fn blocks(numel: usize, lanes: usize, mut f: impl FnMut(usize, usize)) {
    for start in (0..numel).step_by(BLOCK) {
        for lane in 0..lanes {
            for at in start..numel.min(start + BLOCK) {
                f(at, lane);
            }
        }
    }
}

/// Writes an element, or adds it to a sum over cells.
///
/// # Safety
/// The place is valid. It is initialized if the output is a sum.
#[inline(always)]
unsafe fn give<T: Differentiable>(place: *mut T, value: T, is_shared: bool) {
    // SAFETY: by the contract of this function.
    unsafe { place.write(if is_shared { place.read() + value } else { value }) }
}
