//! [`Run`]: runs a body at numbers of a tape, and computes gradients one cell after another.

use minitensor_kernels::cell::{Differentiable, Tape, Traced};
use minitensor_kernels::stop::filled;

use super::Level;
use super::arguments::{Arguments, Input, Numbers};
use super::program::{Program, Programs};
use crate::error::{Error, Result};
use crate::op::CellArg;

/// The number of steps after which a run checks for interrupts.
const BREATH: usize = 1 << 20;

/// The memory for the element of an output that is no number of the tape.
type Other = u128;

/// A run over cells.
pub struct Run<'a, T, N: Differentiable> {
    arguments: &'a Arguments<'a, T>,
    tape: Tape<N>,
    /// The cores of the inputs and of the outputs that are numbers of the tape; the others are empty.
    inputs: Vec<Vec<Traced<N>>>,
    outputs: Vec<Vec<Traced<N>>>,
    others: Vec<Vec<Other>>,
}

impl<'a, T: Differentiable, N: Level<T>> Run<'a, T, N> {
    pub fn new(arguments: &'a Arguments<'a, T>) -> Run<'a, T, N> {
        let zero = Traced::constant_of(N::zero());
        let inputs = arguments.inputs.iter().map(|input| match input {
            Input::Numbers(numbers) if numbers.values.is_given() => filled(zero, numbers.core.numel()),
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

    /// Records the steps of the first cell. `None` if those of another cell may differ.
    ///
    /// # Safety
    /// As for [`cell_gradient`](super::cell_gradient).
    pub unsafe fn record(
        &mut self,
        programs: &Programs,
        body: impl Fn(&[CellArg<'_>]) -> Result<()>,
    ) -> Result<Option<Program<N>>> {
        // SAFETY: by contract.
        unsafe { self.load(0, true) };
        self.compute(0, body)?;
        if self.tape.has_branched() {
            programs.note_branch();
        }
        let places = self.inputs.iter().map(|numbers| numbers.first().and_then(|number| number.place())).collect();
        Ok(self
            .tape
            .recording(self.outputs.iter().flatten().copied())
            .map(|recording| Program::new(recording, places, self.outputs.clone())))
    }

    /// Computes the gradients of all cells.
    ///
    /// # Safety
    /// As for [`cell_gradient`](super::cell_gradient).
    pub unsafe fn cells(mut self, cells: usize, body: impl Fn(&[CellArg<'_>]) -> Result<()>) -> Result<()> {
        let mut steps = 0;
        for cell in 0..cells {
            // SAFETY: by contract.
            unsafe { self.load(cell, false) };
            self.compute(cell, &body)?;
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

    /// Runs the body on a cell.
    fn compute(&mut self, cell: usize, body: impl Fn(&[CellArg<'_>]) -> Result<()>) -> Result<()> {
        body(&self.cores(cell))?;
        match self.tape.has_lost(self.outputs.iter().flatten().copied()) {
            false => Ok(()),
            true => Err(Error::runtime(format!(
                "the gradient of op '{}' is not available: its body computes on other threads, which its tape does not record; compute on \
                 the calling thread, or write a formula",
                self.arguments.op.name
            ))),
        }
    }

    /// Reads a cell. Inputs without a gradient are constants, unless `all` inputs are variables.
    ///
    /// # Safety
    /// As for [`cell_gradient`](super::cell_gradient).
    unsafe fn load(&mut self, cell: usize, all: bool) {
        self.tape.clear();
        for (input, numbers) in self.arguments.inputs.iter().zip(&mut self.inputs) {
            let Input::Numbers(input) = input else { continue };
            let Numbers { values, direction, gradient, .. } = &**input;
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
                Input::Numbers(input) => match input.values.is_given() {
                    true => input.core.at(numbers.as_mut_ptr().cast()),
                    false => input.core.at(std::ptr::null_mut()),
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
                    unsafe { gradient.give(cell, at, number.value().part(), output.is_shared) }
                }
            }
        }
        self.tape.pull(seeds);
        for (input, numbers) in self.arguments.inputs.iter().zip(&self.inputs) {
            let Input::Numbers(input) = input else { continue };
            let Numbers { gradient, is_shared, .. } = &**input;
            for (at, number) in numbers.iter().enumerate().filter(|_| gradient.is_given()) {
                // SAFETY: as above.
                unsafe { gradient.give(cell, at, self.tape.adjoint(*number).part(), *is_shared) }
            }
        }
    }
}
