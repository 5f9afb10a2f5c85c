//! Computes a stage for several long rows by one call of machine code.

use smallvec::SmallVec;

use super::Tile;
use super::one_by_one::Run;
use super::stages::{Slot, Stage};
use crate::memory::Line;
use crate::reduce::rows::SECTION;
use crate::row::{Computed, LANES, Lanes};

impl<T: Tile + Computed> Run<'_, T> {
    /// Computes a stage for all rows of the block. Does nothing, and returns false, if there is no machine code for that.
    ///
    /// # Safety
    /// As for [`RowPlan::run`](super::RowPlan::run).
    pub(super) unsafe fn rows_at_once(&mut self, stage: &Stage) -> bool {
        let is_running = stage.reductions.iter().any(|(reduction, ..)| reduction.is_running());
        let is_even = self.n.is_multiple_of(LANES) && (1..=SECTION).contains(&self.n);
        if !is_even || is_running || !stage.functions.is_empty() {
            return false;
        }
        let sums = stage.sums.as_ref().filter(|sums| sums.part.plan.has_loop_over_rows::<T>());
        let part = sums.map(|sums| &sums.part).or(stage.elements.as_ref());
        if part.is_some_and(|part| !part.plan.has_loop_over_rows::<T>()) {
            return false;
        }
        if let Some(part) = part {
            let mut places = self.places(part);
            let mut rows: SmallVec<[isize; 16]> = SmallVec::new();
            rows.extend([self.rows as isize, (self.width * size_of::<T>()) as isize]);
            rows.extend_from_slice(&places.steps);
            let lines = size_of::<Lanes<T>>() / Line::BYTES;
            let count = sums.map_or(0, |sums| sums.reductions.len());
            if self.totals.len() < count * lines {
                self.totals.resize(count * lines, Line::ZERO);
            }
            places
                .data
                .extend(self.totals.chunks_exact_mut(lines).take(count).map(|lines| lines.as_mut_ptr().cast::<u8>()));
            self.move_numbers(0..self.width - self.first, |number, column| *number = *column);
            let (inputs, outputs) = places.data.split_at_mut(part.inputs.len());
            // SAFETY: by contract; all rows have numbers.
            unsafe { part.plan.run_rows(self.n, inputs, &mut self.numbers, outputs, &mut rows) };
        }
        if let Some(sums) = sums {
            let columns =
                sums.reductions.iter().filter_map(|(_, to)| if let Slot::Column(k) = to { Some(*k) } else { None });
            self.move_numbers(columns, |number, column| *column = *number);
            return true;
        }
        for (reduction, from, to) in &stage.reductions {
            // SAFETY: by contract.
            unsafe { self.reduce(*reduction, *from, *to) };
        }
        true
    }

    /// Moves numbers between these columns and the lists of the rows.
    fn move_numbers(&mut self, columns: impl IntoIterator<Item = usize>, mut moves: impl FnMut(&mut T, &mut T)) {
        for k in columns {
            let column = self.buffers.column::<T>(k);
            for (row, numbers) in self.numbers.chunks_exact_mut(self.width).take(self.rows).enumerate() {
                // SAFETY: columns are initialized, and have room for all rows.
                moves(&mut numbers[self.first + k], unsafe { &mut *column.add(row) });
            }
        }
    }
}
