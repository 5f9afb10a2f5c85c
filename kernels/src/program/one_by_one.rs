//! Runs a [`RowPlan`] over contiguous rows, one after the other or, if they are short, several at once.

use std::ops::Range;

use smallvec::SmallVec;

use super::Tile;
use super::at_once::Way;
use super::buffers::{Buffers, Places};
use super::row_plan::{BLOCK, MEMORY, RowPlan, VECTOR, keep, uniforms_of, write_numbers};
use super::stages::{OfRows, Part, Slot, Stage, Stages, Sums};
use super::tile::Shared;
use crate::memory::copy::Pointer;
use crate::number::scalar::Const;
use crate::reduce::rows::SECTION;
use crate::row::{Accumulators, Computed, LANES, Lanes, Reduction, RowFunction, Rows, Sections, add_rest, reduced};
use crate::runtime::stop::filled;
use crate::runtime::threads::{few_chunks, parallel_for};

/// The fewest elements of a row for which each stage is called row by row.
const LONG: usize = 256;
/// The number of elements that a stage computes before the next one runs, if one call computes a stage of several rows.
const BLOCK_AT_ONCE: usize = 4 * BLOCK;
/// The number of long rows in a block if one stage goes through their elements.
const ROWS_OF_ONE_PASS: usize = 256;
/// The fewest sections of a row for a thread, and the most between two polls for interrupts.
const SECTIONS_OF_THREAD: usize = 4;
const MOST_SECTIONS: usize = 64;

impl RowPlan {
    /// Runs the plan over `rows` rows of `n` elements. Several threads share a row of [`RowPlan::FOR_THREADS`] elements and more.
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
        self.check_arguments(inputs.len(), uniforms.len(), outputs.len());
        if rows == 0 {
            return;
        }
        // SAFETY: the caller's contract.
        if unsafe { self.run_whole_rows(n, rows, inputs, uniforms, outputs, &[]) } {
            return;
        }
        let is_at_once = self.is_at_once::<T>(n);
        let is_long = n >= LONG || rows == 1 || is_at_once;
        let stages = if is_long { self.uniform() } else { self.repeated() };
        let is_one_pass = is_long && stages.are_one_pass();
        let together = match () {
            () if is_one_pass => ROWS_OF_ONE_PASS,
            () if is_at_once => BLOCK_AT_ONCE / n,
            () => BLOCK / n.max(1),
        };
        let together = together.clamp(1, rows);
        let (per_row, attributes) = uniforms.split_at(self.per_row());
        // SAFETY: the caller's contract.
        let mut numbers = unsafe { uniforms_of(attributes, n) };
        let first = numbers.len();
        if is_long {
            numbers.resize(first + stages.columns, T::ZERO);
        }
        let width = numbers.len();
        (1..together).filter(|_| is_long).for_each(|_| numbers.extend_from_within(..width));
        let mut memory = MEMORY.take();
        let lent = if n >= RowPlan::FOR_THREADS { self.outputs_lent::<T>() } else { SmallVec::new() };
        let repeated = if is_long { None } else { Some(inputs.len()) };
        let buffers = Buffers::of::<T>(stages, n, together, repeated, lent.len(), &mut memory);
        let is_large = lent.is_empty() && outputs.iter().any(|output| output.is_large);
        let mut run = Run {
            n,
            rows: 0,
            start: 0,
            row: 0,
            is_long,
            is_large,
            buffers,
            lent,
            inputs,
            outputs,
            masks: self.masks(),
            sizes: self.sizes(size_of::<T>()),
            numbers,
            first,
            width,
            copied: SmallVec::new(),
        };
        let mut accumulators = Accumulators::new();
        // Inputs that are the same in all rows are copied, so that one call computes several rows.
        for (k, input) in inputs.iter().enumerate() {
            let is_copied = input.step == 0 && !is_long && stages.reads[k];
            run.copied.push(is_copied);
            if is_copied {
                let (to, size) = (run.buffers.input::<u8>(k), run.size_of(Slot::Input(k)));
                let from = input.data.cast::<u8>();
                // SAFETY: the buffer has room for these rows, and the caller's contract.
                (0..together)
                    .for_each(|row| unsafe { to.add(row * n * size).copy_from_nonoverlapping(from, n * size) });
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
        let mut ways: Vec<Way<'_>> =
            stages.all.iter().map(|stage| if is_long { Way::of(stage, &run) } else { Way::RowByRow }).collect();
        for start in (0..rows).step_by(together) {
            (run.start, run.rows) = (start, together.min(rows - start));
            // SAFETY: the caller's contract, for these rows.
            unsafe { run.block(stages, &mut ways, per_row, &mut accumulators) };
        }
        keep(memory);
    }
}

impl RowPlan {
    /// The outputs whose memory the first arrays of long rows use, until the last stage replaces their elements. Machine code reads an
    /// element before it writes one.
    fn outputs_lent<T: Tile>(&self) -> SmallVec<[usize; 2]> {
        let stages = self.uniform();
        let last = stages.all.last().and_then(|stage| stage.elements.as_ref());
        let Some(part) = last.filter(|part| part.plan.has_machine_code::<T>()) else { return SmallVec::new() };
        let is_of_numbers = |k: &usize| self.sizes(size_of::<T>())[1][*k] == size_of::<T>();
        let output = |slot: &Slot| if let Slot::Output(k) = slot { Some(*k) } else { None };
        part.outputs.iter().filter_map(output).filter(is_of_numbers).take(stages.arrays).collect()
    }
}

/// A run over one block of rows at a time.
pub(super) struct Run<'a, T> {
    pub(super) n: usize,
    /// The first row of the block, and the number of its rows.
    pub(super) start: usize,
    pub(super) rows: usize,
    /// Whether stages are called row by row, and the current row of the block; else 0.
    is_long: bool,
    /// Whether outputs bypass the cache.
    pub(super) is_large: bool,
    pub(super) row: usize,
    pub(super) buffers: Buffers,
    /// The outputs whose memory the first arrays use.
    lent: SmallVec<[usize; 2]>,
    inputs: &'a [Rows<*const T>],
    outputs: &'a [Rows<*mut T>],
    masks: &'a [Vec<bool>; 2],
    /// The size in bytes of an element of each input, and of each output.
    sizes: [SmallVec<[usize; 8]>; 2],
    /// The attributes and the length of the row, then, for long rows, the numbers of the row. Long rows that are computed together have
    /// one such list each, with this number of elements.
    pub(super) numbers: Vec<T>,
    pub(super) first: usize,
    pub(super) width: usize,
    /// For each input, whether all rows are copies in a buffer.
    copied: SmallVec<[bool; 8]>,
}

impl<T: Tile + Computed> Run<'_, T> {
    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn block(
        &mut self,
        stages: &Stages,
        ways: &mut [Way<'_>],
        per_row: &[Rows<*const T>],
        accumulators: &mut Accumulators<T>,
    ) {
        // SAFETY: by contract; columns have room for all rows, and arrays for their elements.
        unsafe {
            for (k, uniform) in per_row.iter().enumerate() {
                let to = self.buffers.column::<T>(k);
                (0..self.rows).for_each(|row| to.add(row).write(*uniform.row(self.start + row)));
                self.repeat(k, stages);
            }
            for (stage, way) in stages.all.iter().zip(ways) {
                if let Some(part) = &stage.numbers {
                    self.compute_numbers(part);
                    part.outputs.iter().for_each(|slot| {
                        if let Slot::Column(k) = slot {
                            self.repeat(*k, stages)
                        }
                    });
                }
                if self.is_long {
                    match way {
                        Way::RowByRow => self.row_by_row(stage, accumulators),
                        Way::AtOnce(call, rest) => self.at_once(call.as_deref_mut(), rest),
                    }
                    continue;
                }
                if let Some(part) = &stage.elements {
                    self.compute_elements(part);
                }
                for (reduction, from, to) in &stage.reductions {
                    self.reduce(*reduction, *from, *to);
                    if let Slot::Column(k) = to {
                        self.repeat(*k, stages);
                    }
                }
                self.apply(stage);
            }
            let column = |k: usize| self.buffers.column::<T>(k).cast_const();
            write_numbers(stages, self.masks, self.outputs, self.start..self.start + self.rows, column);
        }
    }

    /// Computes a stage, one row after the other.
    ///
    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn row_by_row(&mut self, stage: &Stage, accumulators: &mut Accumulators<T>) {
        let rows = std::mem::replace(&mut self.rows, 1);
        let sums = stage.sums.as_ref().filter(|sums| self.n >= LANES && sums.part.plan.has_machine_code::<T>());
        let part = sums.map(|sums| &sums.part).or(stage.elements.as_ref());
        let mut places = part.map(|part| self.places(part));
        for row in 0..rows {
            self.row = row;
            for k in 0..self.width - self.first {
                // SAFETY: columns are initialized.
                self.numbers[self.first + k] = unsafe { *self.buffers.column::<T>(k).add(row) };
            }
            // SAFETY: by contract.
            unsafe {
                let is_in_sections = self.n >= RowPlan::FOR_THREADS;
                match (sums, part, &places) {
                    _ if is_in_sections => self.in_sections(stage, sums),
                    (Some(sums), _, Some(places)) => {
                        let results = self.sums(stage, sums, places, 0..self.n, accumulators);
                        for ((_, to), result) in sums.reductions.iter().zip(results) {
                            self.rows_of(*to).0.cast::<T>().write(*result);
                        }
                    }
                    (None, Some(part), Some(places)) => part.run(self.n, &places.data, &self.numbers),
                    _ => {}
                }
                places.iter_mut().for_each(Places::advance);
                for (reduction, from, to) in &stage.reductions {
                    if sums.is_none() && !is_in_sections || reduction.is_running() {
                        self.reduce(*reduction, *from, *to);
                    }
                }
                self.apply(stage);
            }
        }
        (self.rows, self.row) = (rows, 0);
    }

    /// Repeats the numbers of a column for the elements of their rows, if there is a buffer for them.
    ///
    /// # Safety
    /// The column is computed.
    unsafe fn repeat(&mut self, k: usize, stages: &Stages) {
        if self.is_long || !stages.repeated[k] {
            return;
        }
        let (from, to) = (self.buffers.column::<T>(k), self.buffers.repeated::<T>(k));
        for row in 0..self.rows {
            // SAFETY: the column and the array have room for the rows.
            unsafe { std::slice::from_raw_parts_mut(to.add(row * self.n), self.n).fill(*from.add(row)) };
        }
    }

    /// The size of an element in bytes.
    fn size_of(&self, slot: Slot) -> usize {
        match slot {
            Slot::Input(k) => self.sizes[0][k],
            Slot::Output(k) => self.sizes[1][k],
            _ => size_of::<T>(),
        }
    }

    /// The first of the rows in memory, with the distance in bytes to the next.
    fn rows_of(&self, slot: Slot) -> (*mut u8, isize) {
        let (row, step) = (self.start + self.row, (self.n * self.size_of(slot)) as isize);
        let own = |first: *mut u8, step: isize| (first.wrapping_offset(self.row as isize * step), step);
        match slot {
            Slot::Input(k) if self.copied[k] => (self.buffers.input(k), step),
            Slot::Input(k) => (self.inputs[k].row(row).cast_mut().cast(), self.inputs[k].step),
            Slot::Output(k) => (self.outputs[k].row(row).cast(), self.outputs[k].step),
            Slot::Array(k) => match self.lent.get(k) {
                Some(output) => (self.outputs[*output].row(row).cast(), self.outputs[*output].step),
                None => own(self.buffers.at(k - self.lent.len()), step),
            },
            Slot::Repeated(k) => (self.buffers.repeated(k), step),
            Slot::Positions => (self.buffers.positions(), step),
            Slot::Column(k) => own(self.buffers.column(k), size_of::<T>() as isize),
        }
    }

    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn compute_numbers(&self, part: &Part) {
        let slots = part.inputs.iter().chain(&part.outputs);
        let data: SmallVec<[*mut u8; 16]> = slots.map(|slot| self.rows_of(*slot).0).collect();
        // SAFETY: columns have room for whole vectors. What is in them beyond the last row is not used.
        unsafe { part.run(self.rows.next_multiple_of(VECTOR), &data, &self.numbers) }
    }

    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn compute_elements(&self, part: &Part) {
        let mut places = self.places(part);
        let is_contiguous = |(slot, step): (&Slot, &isize)| *step == (self.n * self.size_of(*slot)) as isize;
        let is_one = part.inputs.iter().chain(&part.outputs).zip(&places.steps).all(is_contiguous);
        let (count, n) = if is_one { (1, self.rows * self.n) } else { (self.rows, self.n) };
        for _ in 0..count {
            // SAFETY: by contract; arrays have room for these rows.
            unsafe { part.run(n, &places.data, &self.numbers) };
            places.advance();
        }
    }

    /// The places of a part in the current row.
    pub(super) fn places(&self, part: &Part) -> Places {
        let mut places = Places { data: SmallVec::new(), steps: SmallVec::new() };
        for slot in part.inputs.iter().chain(&part.outputs) {
            let (data, step) = self.rows_of(*slot);
            places.data.push(data);
            places.steps.push(step);
        }
        places
    }

    /// Reduces some elements of a row, after it has computed them. They are whole sections of the row, or its last elements.
    ///
    /// # Safety
    /// As for [`RowPlan::run`]. There is machine code, and the places are those of the row.
    unsafe fn sums<'a>(
        &self,
        stage: &Stage,
        sums: &Sums,
        places: &Places,
        elements: Range<usize>,
        accumulators: &'a mut Accumulators<T>,
    ) -> &'a [T] {
        let Part { plan, inputs, outputs, .. } = &sums.part;
        let (from, to) = places.data.split_at(inputs.len());
        let at = |(data, slot): (&*mut u8, &Slot), start: usize| data.wrapping_add(start * self.size_of(*slot));
        let kinds = sums.reductions.iter().map(|(reduction, _)| *reduction);
        let (mut read, mut written) = (SmallVec::<[*const u8; 16]>::new(), SmallVec::<[*mut u8; 16]>::new());
        accumulators.reduce(elements.len(), kinds, |start, len, lanes| {
            let has_block = start > 0;
            let start = elements.start + start;
            if len < LANES {
                // SAFETY: by contract.
                return unsafe { self.sum_rest(stage, start..start + len, has_block, lanes) };
            }
            read.clear();
            written.clear();
            from.iter().zip(inputs).for_each(|pair| read.push(at(pair, start).cast_const()));
            to.iter().zip(outputs).for_each(|pair| written.push(at(pair, start)));
            lanes.iter_mut().for_each(|lanes| written.push(lanes.as_mut_ptr().cast::<u8>()));
            // SAFETY: by contract; there are as many totals as reductions.
            unsafe { plan.reduce(len, &read, &self.numbers, &written) }
        })
    }

    /// Computes fewer elements of a row than there are lanes, and adds them to these. `has_block`: this thread has computed at least as
    /// many elements before them. Some of these are computed again, since a whole block is faster.
    ///
    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn sum_rest(&self, stage: &Stage, elements: Range<usize>, has_block: bool, lanes: &mut [Lanes<T>]) {
        let start = if has_block { elements.end - LANES } else { elements.start };
        // SAFETY: by contract; arrays have room for the row. A stage with reductions replaces none of its operands.
        unsafe { self.compute_some(stage, start..elements.end) };
        for ((reduction, from, _), lanes) in stage.reductions_to_numbers().zip(lanes) {
            // SAFETY: the elements have been computed.
            add_rest(lanes, unsafe { self.elements(*from, elements.clone()) }, *reduction);
        }
    }

    /// Computes some elements of a row.
    ///
    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn compute_some(&self, stage: &Stage, elements: Range<usize>) {
        let Some(part) = &stage.elements else { return };
        let place = |slot: &Slot| self.rows_of(*slot).0.wrapping_add(elements.start * self.size_of(*slot));
        let data: SmallVec<[*mut u8; 16]> = part.inputs.iter().chain(&part.outputs).map(place).collect();
        // SAFETY: by contract.
        unsafe { part.run(elements.len(), &data, &self.numbers) };
    }

    /// Some elements of a row that have been computed.
    ///
    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn elements(&self, slot: Slot, elements: Range<usize>) -> &[T] {
        let first = self.rows_of(slot).0.cast::<T>().wrapping_add(elements.start);
        // SAFETY: by contract.
        unsafe { std::slice::from_raw_parts(first, elements.len()) }
    }

    /// Computes the elements of a row on several threads, and reduces them. Sections of a row are combined in the same order as on one
    /// thread.
    ///
    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn in_sections(&self, stage: &Stage, sums: Option<&Sums>) {
        let kinds: SmallVec<[Option<Reduction>; 4]> =
            stage.reductions_to_numbers().map(|(reduction, ..)| Some(*reduction)).collect();
        let (n, width) = (self.n, kinds.len());
        let mut results: Vec<T> = filled(T::ZERO, n.div_ceil(SECTION) * width);
        let (run, to) = (Shared(self), Pointer(results.as_mut_ptr()));
        let sections = n.div_ceil(SECTION);
        parallel_for(sections, few_chunks(sections).clamp(SECTIONS_OF_THREAD, MOST_SECTIONS), |sections| {
            let (run, mut accumulators) = (run.get(), Accumulators::new());
            let places = sums.map(|sums| run.places(&sums.part));
            for section in sections {
                let elements = section * SECTION..n.min((section + 1) * SECTION);
                // SAFETY: by contract; each section has results of its own.
                unsafe {
                    let to = std::slice::from_raw_parts_mut(to.get().add(section * width), width);
                    if let (Some(sums), Some(places)) = (sums, &places) {
                        to.copy_from_slice(run.sums(stage, sums, places, elements, &mut accumulators));
                        continue;
                    }
                    run.compute_some(stage, elements.clone());
                    for (to, (reduction, from, _)) in to.iter_mut().zip(stage.reductions_to_numbers()) {
                        *to = reduced(run.elements(*from, elements.clone()), *reduction);
                    }
                }
            }
        });
        if width == 0 {
            return;
        }
        let mut sections = Sections::new();
        results.chunks_exact(width).for_each(|section| sections.push(&kinds, section));
        sections.finish(&kinds, &mut results);
        for ((.., to), result) in stage.reductions_to_numbers().zip(&results) {
            // SAFETY: the column has room for a number.
            unsafe { self.rows_of(*to).0.cast::<T>().write(*result) }
        }
    }

    /// Computes the functions of whole rows.
    ///
    /// # Safety
    /// As for [`RowPlan::run`].
    unsafe fn apply(&self, stage: &Stage) {
        for OfRows { function, from, to } in &stage.functions {
            for row in 0..self.rows {
                let elements = |slot: &Slot| {
                    let (data, step) = self.rows_of(*slot);
                    // SAFETY: by contract, and the elements have been computed.
                    unsafe { std::slice::from_raw_parts(data.wrapping_offset(row as isize * step).cast::<T>(), self.n) }
                };
                let from: SmallVec<[&[T]; 2]> = from.iter().map(elements).collect();
                let result = |slot: &Slot| {
                    let (data, _) = self.rows_of(*slot);
                    // SAFETY: the result is in a buffer of its own, which has room for the rows.
                    unsafe { std::slice::from_raw_parts_mut(data.cast::<T>().add(row * self.n), self.n) }
                };
                let mut to: SmallVec<[&mut [T]; 1]> = to.iter().map(result).collect();
                match function {
                    RowFunction::Scan(scan) => scan.run(self.n, 1, &from, &mut to),
                    function => function.apply(&from, to[0]),
                }
            }
        }
    }

    /// # Safety
    /// As for [`RowPlan::run`].
    pub(super) unsafe fn reduce(&self, reduction: Reduction, from: Slot, to: Slot) {
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
