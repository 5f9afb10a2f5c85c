//! [`RowPlan`]: a program over rows, prepared to run over memory.

use std::cell::Cell;

use smallvec::SmallVec;

use super::stages::{Numbers, Part, Slot, Stages};
use super::{Malformed, Program, Tile, ValueType};
use crate::memory::Line;
use crate::number::scalar::Const;
use crate::row::{Computed, Reduction, Rows, reduced};
use crate::runtime::stop::vec_for;

/// The number of elements that a stage computes before the next stage runs. They stay in the cache.
const BLOCK: usize = 4096;
/// The fewest elements of a row that a call computes alone.
const LONG: usize = BLOCK / 2;
/// The most lines of memory that a thread keeps for its next run.
const MOST_LINES: usize = (1 << 20) / Line::BYTES;
/// A column has room for a multiple of this number of rows, so that a program over rows computes whole vectors.
const VECTOR: usize = 16;

/// A program over rows, prepared to run over memory: it is split at its reductions into programs over elements, and runs
/// them over some rows at a time. These are machine code where there is any.
#[derive(Debug)]
pub struct RowPlan {
    program: Program,
    per_row: usize,
    /// For several rows at once, and for long rows.
    stages: [Stages; 2],
}

thread_local! {
    /// The memory of the last run on this thread.
    static MEMORY: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

impl RowPlan {
    /// The plan of a program. `gives` marks the outputs with one value per element; the others have one per row. The first
    /// `per_row` uniforms have one value per row; the others are the same for all rows.
    ///
    /// # Errors
    /// If the program doesn't [verify](Program::verify), an output is a truth value, or an output with one value per row
    /// differs along a row.
    pub fn new(program: Program, gives: &[bool], per_row: usize) -> Result<RowPlan, Malformed> {
        program.verify()?;
        let is_mask = |(_, id): &&(String, super::Id)| program.instructions[id.at()].kind() == ValueType::Mask;
        if let Some((name, _)) = program.outputs.iter().find(is_mask) {
            return Err(Malformed(format!("output '{name}' is a truth value, but the outputs of rows are numbers")));
        }
        let program = program.without_dead();
        let of = |numbers| Stages::of(&program, gives, per_row, numbers);
        let stages = [of(Numbers::Repeated)?, of(Numbers::Uniform)?];
        Ok(RowPlan { program, per_row, stages })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs the plan over `rows` rows of `n` elements on this thread.
    ///
    /// # Panics
    /// If the number of inputs, uniforms or outputs differs from the program's.
    ///
    /// # Safety
    /// The program [runs at](Program::runs_at) `T`. Every operand has `rows` rows. Rows of inputs, and of outputs with one
    /// value per element, have `n` contiguous elements; other rows have one. An input that the program does not read may
    /// be anything. Outputs overlap nothing.
    pub unsafe fn run<T: Tile + Computed>(
        &self,
        n: usize,
        rows: usize,
        inputs: &[Rows<*const T>],
        uniforms: &[Rows<*const T>],
        outputs: &[Rows<*mut T>],
    ) {
        let program = &self.program;
        assert_eq!(
            (inputs.len(), uniforms.len()),
            (program.inputs.len(), program.uniforms.len()),
            "arguments of a program"
        );
        assert_eq!(outputs.len(), program.outputs.len(), "outputs of a program");
        if rows == 0 {
            return;
        }
        let is_long = n >= LONG || rows == 1;
        let stages = &self.stages[usize::from(is_long)];
        let together = if is_long { 1 } else { (BLOCK / n.max(1)).clamp(1, rows) };
        let (per_row, attributes) = uniforms.split_at(self.per_row);
        // SAFETY: the caller's contract: every uniform has a first row.
        let mut numbers: Vec<T> = attributes.iter().map(|u| unsafe { *u.row(0) }).collect();
        numbers.push(T::constant(Const::Float(n as f64)));
        let first = numbers.len();
        if is_long {
            numbers.resize(first + stages.columns, T::ZERO);
        }
        let mut memory = MEMORY.take();
        let buffers = Buffers::of::<T>(stages, n, together, inputs.len(), &mut memory);
        let mut run = Run { n, rows: 0, start: 0, buffers, inputs, outputs, numbers, first, copied: SmallVec::new() };
        // Inputs that are the same in all rows are copied, so that one call computes several rows.
        for (k, input) in inputs.iter().enumerate() {
            let is_copied = input.step == 0 && together > 1 && stages.reads[k];
            run.copied.push(is_copied);
            if is_copied {
                let to: *mut T = run.buffers.input(k);
                // SAFETY: the buffer has room for these rows, and the caller's contract.
                (0..together).for_each(|row| unsafe { to.add(row * n).copy_from_nonoverlapping(input.data, n) });
            }
        }
        for k in 0..stages.columns {
            let column = run.buffers.column::<T>(k);
            // SAFETY: the column has room for whole vectors.
            (0..together.next_multiple_of(VECTOR)).for_each(|row| unsafe { column.add(row).write(T::ZERO) });
        }
        if stages.positions {
            let to: *mut T = run.buffers.positions();
            // SAFETY: as above.
            (0..together * n).for_each(|at| unsafe { to.add(at).write(T::constant(Const::Float((at % n) as f64))) });
        }
        for start in (0..rows).step_by(together) {
            (run.start, run.rows) = (start, together.min(rows - start));
            // SAFETY: the caller's contract, for these rows.
            unsafe { run.block(stages, per_row) };
        }
        if memory.capacity() <= MOST_LINES {
            MEMORY.set(memory);
        }
    }
}

/// The memory of a run: arrays with the elements of some rows, and columns with one number for each of them.
struct Buffers {
    memory: *mut Line,
    /// The lines of an array, and of a column.
    array: usize,
    column: usize,
    /// The number of arrays before the repeated columns. The positions are the last of them.
    first: usize,
    columns: usize,
}

impl Buffers {
    fn of<T>(stages: &Stages, n: usize, rows: usize, inputs: usize, memory: &mut Vec<Line>) -> Buffers {
        let lines = |count: usize| count.saturating_mul(size_of::<T>()).div_ceil(Line::BYTES);
        // One line more: arrays that start at the same offset of a page would compete for the same cache sets.
        let array = lines(n.saturating_mul(rows)) + 1;
        let column = lines(rows.next_multiple_of(VECTOR));
        // Arrays and positions, and for several rows repeated columns and copied inputs.
        let arrays = stages.arrays + usize::from(stages.positions) + if rows > 1 { stages.columns + inputs } else { 0 };
        let count = arrays.saturating_mul(array).saturating_add(stages.columns * column);
        if memory.capacity() < count {
            *memory = vec_for(count);
        }
        let first = stages.arrays + usize::from(stages.positions);
        Buffers { memory: memory.as_mut_ptr(), array, column, first, columns: stages.columns }
    }

    fn at<T>(&self, array: usize) -> *mut T {
        self.memory.wrapping_add(self.columns * self.column + array * self.array).cast()
    }

    fn column<T>(&self, k: usize) -> *mut T {
        self.memory.wrapping_add(k * self.column).cast()
    }

    fn repeated<T>(&self, k: usize) -> *mut T {
        self.at(self.first + k)
    }

    fn positions<T>(&self) -> *mut T {
        self.at(self.first - 1)
    }

    fn input<T>(&self, k: usize) -> *mut T {
        self.at(self.first + self.columns + k)
    }
}

/// A run over one block of rows at a time.
struct Run<'a, T> {
    n: usize,
    start: usize,
    rows: usize,
    buffers: Buffers,
    inputs: &'a [Rows<*const T>],
    outputs: &'a [Rows<*mut T>],
    /// The attributes and the length of the row, then, for long rows, the numbers of the row.
    numbers: Vec<T>,
    first: usize,
    /// For each input, whether all rows are copies in a buffer.
    copied: SmallVec<[bool; 8]>,
}

impl<T: Tile + Computed> Run<'_, T> {
    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn block(&mut self, stages: &Stages, per_row: &[Rows<*const T>]) {
        // SAFETY: by contract; columns have room for all rows, and arrays for their elements.
        unsafe {
            for (k, uniform) in per_row.iter().enumerate() {
                let to = self.buffers.column::<T>(k);
                (0..self.rows).for_each(|row| to.add(row).write(*uniform.row(self.start + row)));
                self.publish(k, stages);
            }
            for stage in &stages.all {
                if let Some(part) = &stage.numbers {
                    self.compute_numbers(part);
                    part.outputs.iter().for_each(|slot| {
                        if let Slot::Column(k) = slot {
                            self.publish(*k, stages)
                        }
                    });
                }
                if let Some(part) = &stage.elements {
                    self.compute_elements(part);
                }
                for (reduction, from, to) in &stage.reductions {
                    self.reduce(*reduction, *from, *to);
                    if let Slot::Column(k) = to {
                        self.publish(*k, stages);
                    }
                }
            }
            for (slot, output) in &stages.results {
                let Slot::Column(k) = slot else { continue };
                let from = self.buffers.column::<T>(*k);
                (0..self.rows).for_each(|row| *self.outputs[*output].row(self.start + row) = *from.add(row));
            }
        }
    }

    /// Passes the numbers of a column on to the elements of their rows.
    ///
    /// # Safety
    /// The column is computed.
    unsafe fn publish(&mut self, k: usize, stages: &Stages) {
        let from = self.buffers.column::<T>(k);
        // SAFETY: the column and the array have room for the rows.
        unsafe {
            if let Some(number) = self.numbers.get_mut(self.first + k) {
                *number = *from;
            } else if stages.repeated[k] {
                let to = self.buffers.repeated::<T>(k);
                for row in 0..self.rows {
                    std::slice::from_raw_parts_mut(to.add(row * self.n), self.n).fill(*from.add(row));
                }
            }
        }
    }

    /// The first of the rows in memory, with the distance in bytes to the next.
    fn rows_of(&self, slot: Slot) -> (*mut u8, isize) {
        let step = (self.n * size_of::<T>()) as isize;
        match slot {
            Slot::Input(k) if self.copied[k] => (self.buffers.input(k), step),
            Slot::Input(k) => (self.inputs[k].row(self.start).cast_mut().cast(), self.inputs[k].step),
            Slot::Output(k) => (self.outputs[k].row(self.start).cast(), self.outputs[k].step),
            Slot::Array(k) => (self.buffers.at(k), step),
            Slot::Repeated(k) => (self.buffers.repeated(k), step),
            Slot::Positions => (self.buffers.positions(), step),
            Slot::Column(k) => (self.buffers.column(k), size_of::<T>() as isize),
        }
    }

    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn compute_numbers(&self, part: &Part) {
        let inputs: SmallVec<[*const u8; 8]> = part.inputs.iter().map(|s| self.rows_of(*s).0.cast_const()).collect();
        let outputs: SmallVec<[*mut u8; 8]> = part.outputs.iter().map(|s| self.rows_of(*s).0).collect();
        // SAFETY: columns have room for whole vectors. What is in them beyond the last row is not used.
        unsafe { part.plan.run(self.rows.next_multiple_of(VECTOR), &inputs, &self.numbers, &outputs) }
    }

    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn compute_elements(&self, part: &Part) {
        let step = (self.n * size_of::<T>()) as isize;
        let inputs: SmallVec<[(*mut u8, isize); 8]> = part.inputs.iter().map(|s| self.rows_of(*s)).collect();
        let outputs: SmallVec<[(*mut u8, isize); 8]> = part.outputs.iter().map(|s| self.rows_of(*s)).collect();
        let is_one = self.rows == 1 || inputs.iter().chain(&outputs).all(|(_, of)| *of == step);
        let (count, n) = if is_one { (1, self.rows * self.n) } else { (self.rows, self.n) };
        for row in 0..count as isize {
            let at = |(data, step): &(*mut u8, isize)| data.wrapping_offset(row * step);
            let inputs: SmallVec<[*const u8; 8]> = inputs.iter().map(|x| at(x).cast_const()).collect();
            let outputs: SmallVec<[*mut u8; 8]> = outputs.iter().map(at).collect();
            // SAFETY: by contract; arrays have room for these rows.
            unsafe { part.plan.run(n, &inputs, &self.numbers, &outputs) }
        }
    }

    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn reduce(&self, reduction: Reduction, from: Slot, to: Slot) {
        let ((from, step), (to, _)) = (self.rows_of(from), self.rows_of(to));
        for row in 0..self.rows {
            // SAFETY: by contract; the result is in a buffer of its own.
            unsafe {
                let elements =
                    std::slice::from_raw_parts(from.wrapping_offset(row as isize * step).cast::<T>(), self.n);
                if reduction.is_running() {
                    let to = std::slice::from_raw_parts_mut(to.cast::<T>().add(row * self.n), self.n);
                    to.copy_from_slice(elements);
                    reduction.accumulate(to);
                } else {
                    to.cast::<T>().add(row).write(reduced(elements, reduction));
                }
            }
        }
    }
}
