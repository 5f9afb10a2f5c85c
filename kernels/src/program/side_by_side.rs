//! Runs a [`RowPlan`] over rows that are side by side, as the columns of a matrix: element `i` of row `r` is at `i · step + r`.
//!
//! The lanes of SIMD registers then hold elements of different rows. The stages run over some positions of all rows at a time, and
//! all positions have the same operand with a number for each row. Reductions add whole vectors, in the order of
//! [`sweep`](crate::row), so the results have the same bits as for rows that are contiguous.

use smallvec::SmallVec;

use super::Tile;
use super::row_plan::{BLOCK, MEMORY, RowPlan, VECTOR, keep, uniforms_of, write_numbers};
use super::stages::{OfRows, Slot, Stage, Stages};
use crate::memory::Line;
use crate::memory::stream::prefetch;
use crate::number::Truth;
use crate::number::scalar::Const;
use crate::reduce::rows::{LANES, RUN, SECTION};
use crate::row::{Computed, Reduction, RowFunction, Rows, Sections, by_kind};
use crate::runtime::simd::clones;
use crate::runtime::stop::vec_for;

impl RowPlan {
    /// Whether all stages of [`run_side_by_side`](RowPlan::run_side_by_side) are machine code at `T`.
    pub fn has_machine_code<T: Tile>(&self) -> bool {
        let mut parts = self.repeated().all.iter().flat_map(|stage| stage.numbers.iter().chain(&stage.elements));
        parts.all(|part| part.plan.has_machine_code::<T>())
    }

    /// Whether [`run_side_by_side`](RowPlan::run_side_by_side) takes elements at any step. A function of whole rows needs all
    /// elements without gaps.
    pub fn takes_steps(&self) -> bool {
        let has_functions = |stage: &Stage| {
            !stage.functions.is_empty() || stage.reductions.iter().any(|(reduction, ..)| reduction.is_running())
        };
        !self.repeated().all.iter().any(has_functions)
    }

    /// Whether an array has elements of all positions.
    pub fn keeps_elements(&self) -> bool {
        self.repeated().lasting.contains(&true)
    }

    /// Runs the plan over `rows` rows of `n` elements on this thread. The rows of inputs, and of outputs with one value per element,
    /// are side by side. Their steps are the bytes from one element of a row to the next, without gaps unless the plan
    /// [takes steps](RowPlan::takes_steps).
    ///
    /// # Panics
    /// If the number of inputs, uniforms or outputs differs from the program's.
    ///
    /// # Safety
    /// As for [`RowPlan::run`], for this layout.
    pub unsafe fn run_side_by_side<T: Tile + Computed>(
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
        let stages = self.repeated();
        let (per_row, attributes) = uniforms.split_at(self.per_row());
        // SAFETY: the caller's contract.
        let numbers = unsafe { uniforms_of(attributes, n) };
        let power = (BLOCK / rows).clamp(1, LANES) + 1;
        let together = if n <= LANES && n * rows <= 2 * BLOCK { n.max(1) } else { power.next_power_of_two() / 2 };
        let mut memory = MEMORY.take();
        let buffers = Buffers::of::<T>(stages, n, rows, together, &mut memory);
        let run = Run { n, rows, together, stages, buffers, inputs, outputs, masks: self.masks(), numbers };
        // SAFETY: the caller's contract; the buffers have room for the rows.
        unsafe {
            for k in 0..stages.columns {
                let column = run.buffers.column::<T>(k);
                match per_row.get(k) {
                    Some(uniform) => (0..rows).for_each(|row| column.add(row).write(*uniform.row(row))),
                    None => (0..rows).for_each(|row| column.add(row).write(T::ZERO)),
                }
                (rows..rows.next_multiple_of(VECTOR)).for_each(|row| column.add(row).write(T::ZERO));
            }
            let mut sums = Sums::new();
            for stage in &stages.all {
                run.stage(stage, &mut sums);
            }
            write_numbers(stages, run.masks, outputs, 0..rows, |k| run.buffers.column::<T>(k).cast_const());
        }
        keep(memory);
    }
}

/// The memory of a run. First come columns with one number for each row, then the positions of a block, and arrays with the elements of all
/// rows, or of a block if no later stage reads them.
struct Buffers {
    memory: *mut Line,
    column: usize,
    columns: usize,
    /// Where each array begins, in lines.
    arrays: Vec<usize>,
}

impl Buffers {
    fn of<T>(stages: &Stages, n: usize, rows: usize, together: usize, memory: &mut Vec<Line>) -> Buffers {
        // One line more, as in the other layout.
        let lines = |count: usize| count.saturating_mul(size_of::<T>()).div_ceil(Line::BYTES).saturating_add(1);
        let (column, block) = (lines(rows.next_multiple_of(VECTOR)), lines(rows.saturating_mul(together)));
        let mut end = stages.columns * column + block;
        let mut arrays = Vec::with_capacity(stages.arrays);
        for k in 0..stages.arrays {
            arrays.push(end);
            end = end.saturating_add(if stages.lasting[k] { lines(n.saturating_mul(rows)) } else { block });
        }
        if memory.capacity() < end {
            *memory = vec_for(end);
        }
        Buffers { memory: memory.as_mut_ptr(), column, columns: stages.columns, arrays }
    }

    fn at<T>(&self, line: usize) -> *mut T {
        self.memory.wrapping_add(line).cast()
    }

    fn column<T>(&self, k: usize) -> *mut T {
        self.at(k * self.column)
    }

    fn positions<T>(&self) -> *mut T {
        self.at(self.columns * self.column)
    }
}

struct Run<'a, T> {
    n: usize,
    rows: usize,
    /// The number of positions that a part computes at a time: at most [`LANES`], and all or a power of two.
    together: usize,
    stages: &'a Stages,
    buffers: Buffers,
    inputs: &'a [Rows<*const T>],
    outputs: &'a [Rows<*mut T>],
    masks: &'a [Vec<bool>; 2],
    /// The attributes and the length of the row.
    numbers: Vec<T>,
}

impl<T: Tile + Computed> Run<'_, T> {
    /// # Safety
    /// As for [`RowPlan::run_side_by_side`].
    unsafe fn stage(&self, stage: &Stage, sums: &mut Sums<T>) {
        // SAFETY: by contract.
        unsafe {
            if let Some(part) = &stage.numbers {
                let slots = part.inputs.iter().chain(&part.outputs);
                let data: SmallVec<[*mut u8; 16]> = slots.map(|slot| self.place(*slot, 0)).collect();
                part.run(self.rows.next_multiple_of(VECTOR), &data, &self.numbers);
            }
            self.reduce(stage, sums);
            let (n, rows, count) = (self.n, self.rows, self.n * self.rows);
            let all = |slot: &Slot| std::slice::from_raw_parts(self.place(*slot, 0).cast::<T>().cast_const(), count);
            let all_mut = |slot: &Slot| std::slice::from_raw_parts_mut(self.place(*slot, 0).cast::<T>(), count);
            for (reduction, from, to) in stage.reductions.iter().filter(|(reduction, ..)| reduction.is_running()) {
                reduction.accumulate_side_by_side(n, rows, all(from), all_mut(to));
            }
            for OfRows { function, from, to } in &stage.functions {
                let from: SmallVec<[&[T]; 2]> = from.iter().map(all).collect();
                let mut to: SmallVec<[&mut [T]; 1]> = to.iter().map(all_mut).collect();
                match function {
                    RowFunction::Scan(scan) => scan.run(n, rows, &from, &mut to),
                    function => function.apply_side_by_side(n, rows, &from, to[0]),
                }
            }
        }
    }

    /// Computes the elements at some positions.
    ///
    /// # Safety
    /// As for [`RowPlan::run_side_by_side`].
    unsafe fn elements(&self, stage: &Stage, start: usize, count: usize) {
        let Some(part) = &stage.elements else { return };
        if part.inputs.contains(&Slot::Positions) {
            let to = self.buffers.positions::<T>();
            for position in 0..count {
                let value = T::constant(Const::Float((start + position) as f64));
                // SAFETY: there is room for a block.
                unsafe { std::slice::from_raw_parts_mut(to.add(position * self.rows), self.rows) }.fill(value);
            }
        }
        let inputs: SmallVec<[*const u8; 16]> =
            part.inputs.iter().map(|slot| self.place(*slot, start).cast_const()).collect();
        let outputs: SmallVec<[*mut u8; 8]> = part.outputs.iter().map(|slot| self.place(*slot, start)).collect();
        let slots = part.inputs.iter().chain(&part.outputs);
        let steps: SmallVec<[isize; 16]> = slots.map(|slot| self.step(*slot)).collect();
        // SAFETY: by contract; buffers have room for the block.
        unsafe { part.plan.run_rows(count, self.rows, &inputs, &self.numbers, &outputs, &steps) }
    }

    /// Computes the elements of a stage, and the numbers that they are reduced to.
    ///
    /// # Safety
    /// As for [`RowPlan::run_side_by_side`].
    unsafe fn reduce(&self, stage: &Stage, sums: &mut Sums<T>) {
        let reductions = || stage.reductions_to_numbers();
        if self.n <= self.together && reductions().all(|(_, from, _)| self.is_dense(*from)) {
            // SAFETY: by contract. All elements are in one block.
            unsafe { self.elements(stage, 0, self.n) };
            for (reduction, from, to) in reductions() {
                // SAFETY: these elements have been computed, and the column has room for a number of each row.
                unsafe {
                    let from = self.place(*from, 0).cast::<T>().cast_const();
                    let elements = std::slice::from_raw_parts(from, self.n * self.rows);
                    let result = sums.of_few(elements, self.n, self.rows, *reduction);
                    self.place(*to, 0).cast::<T>().copy_from_nonoverlapping(result.as_ptr(), self.rows);
                }
            }
            return;
        }
        sums.begin(reductions().map(|(reduction, ..)| *reduction), LANES.min(self.n.next_power_of_two()) * self.rows);
        for section in (0..self.n.max(1)).step_by(SECTION) {
            let (mut at, end) = (section, self.n.min(section + SECTION));
            while at < end {
                // Whole blocks of lanes come first, several of them in a run; the rest is a run of its own.
                let blocks = ((end - at) / LANES).min(RUN);
                let stop = if blocks == 0 { end } else { at + blocks * LANES };
                sums.begin_run();
                for start in (at..stop).step_by(self.together) {
                    let count = self.together.min(stop - start);
                    self.prefetch(stage, start + count);
                    // SAFETY: by contract.
                    unsafe { self.elements(stage, start, count) };
                    for (k, (_, from, _)) in reductions().enumerate() {
                        let piece = if self.is_dense(*from) { count } else { 1 };
                        for first in (start..start + count).step_by(piece) {
                            let from = self.place(*from, first).cast::<T>().cast_const();
                            // SAFETY: these elements have been computed.
                            let elements = unsafe { std::slice::from_raw_parts(from, piece * self.rows) };
                            sums.add(k, (first - at) % LANES * self.rows, elements);
                        }
                    }
                }
                sums.end_run();
                at = stop;
            }
            sums.end_section(self.rows, (end - section).min(LANES));
            if self.n > SECTION {
                sums.keep_section(self.rows);
            }
        }
        if self.n > SECTION {
            sums.finish(self.rows);
        }
        for (k, (.., to)) in reductions().enumerate() {
            let result = sums.result(k, self.rows);
            // SAFETY: the column has room for a number of each row.
            unsafe { self.place(*to, 0).cast::<T>().copy_from_nonoverlapping(result.as_ptr(), self.rows) }
        }
    }

    /// Prefetches the inputs of a stage at some positions. They have gaps, which the CPU does not expect.
    fn prefetch(&self, stage: &Stage, start: usize) {
        let of_elements = stage.elements.iter().flat_map(|part| &part.inputs);
        let of_reductions = stage.reductions_to_numbers().map(|(_, from, _)| from);
        let inputs = of_elements.chain(of_reductions);
        for slot in inputs.filter(|slot| matches!(slot, Slot::Input(_)) && !self.is_dense(**slot)) {
            for position in start..(start + self.together).min(self.n) {
                prefetch(self.place(*slot, position).cast_const(), self.rows * self.size_of(*slot));
            }
        }
    }

    /// The elements of a slot from a position on. Those of a block begin at its start.
    fn place(&self, slot: Slot, start: usize) -> *mut u8 {
        let first: *mut u8 = match slot {
            Slot::Input(k) => self.inputs[k].data.cast_mut().cast(),
            Slot::Output(k) => self.outputs[k].data.cast(),
            Slot::Array(k) if self.stages.lasting[k] => self.buffers.at(self.buffers.arrays[k]),
            Slot::Array(k) => return self.buffers.at(self.buffers.arrays[k]),
            Slot::Column(k) | Slot::Repeated(k) => return self.buffers.column(k),
            Slot::Positions => return self.buffers.positions(),
        };
        first.wrapping_offset(start as isize * self.step(slot))
    }

    /// The bytes from one position to the next.
    fn step(&self, slot: Slot) -> isize {
        match slot {
            Slot::Input(k) => self.inputs[k].step,
            Slot::Output(k) => self.outputs[k].step,
            _ => self.dense(slot),
        }
    }

    /// The bytes from one position to the next without gaps.
    fn dense(&self, slot: Slot) -> isize {
        (self.rows * self.size_of(slot)) as isize
    }

    fn is_dense(&self, slot: Slot) -> bool {
        self.step(slot) == self.dense(slot)
    }

    /// The size of an element in bytes; 0 if all positions have the same elements.
    fn size_of(&self, slot: Slot) -> usize {
        match slot {
            Slot::Input(k) if self.masks[0][k] => size_of::<Truth>(),
            Slot::Output(k) if self.masks[1][k] => size_of::<Truth>(),
            Slot::Repeated(_) => 0,
            _ => size_of::<T>(),
        }
    }
}

/// The reductions of a stage. Each has one number per row for each lane.
struct Sums<T> {
    kinds: SmallVec<[Reduction; 4]>,
    /// The lanes of one reduction after the other, in this run and in the section.
    run: Vec<T>,
    total: Vec<T>,
    /// The number of lanes of one reduction, for all rows.
    width: usize,
    /// The results of the sections, which have a number for each row, and of the whole rows.
    sections: Sections<T>,
    results: Vec<T>,
}

impl<T: Computed> Sums<T> {
    fn new() -> Sums<T> {
        Sums {
            kinds: SmallVec::new(),
            run: vec![],
            total: vec![],
            width: 0,
            sections: Sections::new(),
            results: vec![],
        }
    }

    fn begin(&mut self, kinds: impl Iterator<Item = Reduction>, width: usize) {
        self.kinds.clear();
        self.kinds.extend(kinds);
        self.width = width;
        self.run.resize(width * self.kinds.len(), T::ZERO);
        self.total.resize(width * self.kinds.len(), T::ZERO);
        Sums::identities(&self.kinds, &mut self.total, width);
    }

    fn identities(kinds: &[Reduction], lanes: &mut [T], width: usize) {
        kinds.iter().zip(lanes.chunks_exact_mut(width)).for_each(|(kind, lanes)| lanes.fill(kind.identity()));
    }

    /// The results of a reduction of at most as many elements as there are lanes.
    fn of_few(&mut self, elements: &[T], n: usize, rows: usize, kind: Reduction) -> &[T] {
        let half = n.next_power_of_two() / 2;
        self.total.resize(self.total.len().max(half.max(1) * rows), T::ZERO);
        fold_first(&mut self.total[..half.max(1) * rows], elements, kind);
        fold(&mut self.total, half, rows, kind);
        &self.total[..rows]
    }

    fn begin_run(&mut self) {
        Sums::identities(&self.kinds, &mut self.run, self.width);
    }

    /// Adds elements to the lanes of a reduction, from an offset on.
    fn add(&mut self, k: usize, offset: usize, elements: &[T]) {
        combine(&mut self.run[k * self.width + offset..][..elements.len()], elements, self.kinds[k]);
    }

    fn end_run(&mut self) {
        let runs = self.run.chunks_exact(self.width);
        for ((kind, total), run) in self.kinds.iter().zip(self.total.chunks_exact_mut(self.width)).zip(runs) {
            combine(total, run, *kind);
        }
    }

    /// Combines the lanes, of which the first ones have elements.
    fn end_section(&mut self, rows: usize, lanes: usize) {
        self.results.clear();
        for (kind, total) in self.kinds.iter().zip(self.total.chunks_exact_mut(self.width)) {
            fold(total, lanes.next_power_of_two(), rows, *kind);
            self.results.extend_from_slice(&total[..rows]);
        }
        Sums::identities(&self.kinds, &mut self.total, self.width);
    }

    /// Keeps the results of a section of long rows.
    fn keep_section(&mut self, rows: usize) {
        self.sections.push(&self.kinds_of_results(rows), &self.results);
    }

    fn finish(&mut self, rows: usize) {
        let kinds = self.kinds_of_results(rows);
        self.sections.finish(&kinds, &mut self.results);
    }

    fn kinds_of_results(&self, rows: usize) -> Vec<Option<Reduction>> {
        self.kinds.iter().flat_map(|kind| std::iter::repeat_n(Some(*kind), rows)).collect()
    }

    /// The result of a reduction for each row.
    fn result(&self, k: usize, rows: usize) -> &[T] {
        &self.results[k * rows..][..rows]
    }
}

#[inline(always)]
fn by<T: Computed>(to: &mut [T], x: &[T], kind: Reduction) {
    for (to, x) in to.iter_mut().zip(x) {
        *to = kind.combine(*to, *x);
    }
}

/// Combines a power of two of lanes to the first one.
fn fold<T: Computed>(lanes: &mut [T], count: usize, rows: usize, kind: Reduction) {
    let mut half = count / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half * rows);
        combine(low, &high[..half * rows], kind);
        half /= 2;
    }
}

#[inline(always)]
fn first<T: Computed>(to: &mut [T], x: &[T], kind: Reduction) {
    let (low, high) = x.split_at(to.len().min(x.len()));
    let lane = |x: T| kind.combine(kind.identity(), x);
    if low.is_empty() {
        to.fill(kind.identity());
    }
    let (both, one) = to.split_at_mut(high.len());
    for ((to, low), high) in both.iter_mut().zip(low).zip(high) {
        *to = kind.combine(lane(*low), lane(*high));
    }
    for (to, low) in one.iter_mut().zip(&low[high.len()..]) {
        *to = lane(*low);
    }
}

clones! {
    /// Combines the lanes of one half with those of the other, if there is one element for each lane.
    <[T]> fn fold_first(to: &mut [T], x: &[T], kind: Reduction) where [T: Computed] if [T::FOR_EACH_LEVEL] {
        by_kind!(kind, first(to, x))
    }
}

clones! {
    /// Combines each element with that of `x`.
    <[T]> fn combine(to: &mut [T], x: &[T], kind: Reduction) where [T: Computed] if [T::FOR_EACH_LEVEL] {
        by_kind!(kind, by(to, x))
    }
}
