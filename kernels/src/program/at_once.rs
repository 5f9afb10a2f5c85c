//! Computes stages for several long rows by one call of machine code.

use smallvec::SmallVec;

use super::one_by_one::Run;
use super::stages::{Slot, Stage};
use super::{Instruction, OverRows, Plan, Tile};
use crate::memory::Line;
use crate::reduce::rows::SECTION;
use crate::row::{Computed, Lanes, Reduction};

/// How a stage is computed.
pub(super) enum Way<'a> {
    RowByRow,
    /// By this call, if the stage computes elements. Then the other reductions follow.
    AtOnce(Option<Box<RowsCall<'a>>>, &'a [(Reduction, Slot, Slot)]),
}

/// A call that computes the elements of several rows, and reduces them.
pub(super) struct RowsCall<'a> {
    plan: &'a Plan,
    inputs: usize,
    /// The pointers to the operands of the next block, and the operands in buffers, which each block uses again.
    data: SmallVec<[*mut u8; 16]>,
    buffers: SmallVec<[(usize, *mut u8); 8]>,
    /// The row strides, with places for the [other integers](OverRows::NUMBER).
    strides: SmallVec<[isize; 26]>,
    /// The columns that are uniforms, and those that are results.
    read: SmallVec<[usize; 8]>,
    written: SmallVec<[usize; 8]>,
    /// The memory of the totals, to which the last pointers lead.
    _totals: Vec<Line>,
}

impl<'a> Way<'a> {
    /// The way in which a stage is computed for all rows of a block.
    pub fn of<T: Tile + Computed>(stage: &'a Stage, run: &Run<'_, T>) -> Way<'a> {
        if run.n > SECTION || stage.takes_whole_rows() {
            return Way::RowByRow;
        }
        let sums = stage.sums.as_ref().filter(|sums| sums.part.plan.has_loop_over_rows::<T>(run.n));
        let rest = if sums.is_some() { &[] } else { stage.reductions.as_slice() };
        let Some(part) = sums.map(|sums| &sums.part).or(stage.elements.as_ref()) else {
            return if stage.sums.is_some() { Way::RowByRow } else { Way::AtOnce(None, rest) };
        };
        let places = run.places(part);
        let plan = part.plan_for::<T>(&places, run.is_large);
        if !plan.has_loop_over_rows::<T>(run.n) {
            return Way::RowByRow;
        }
        let mut strides = SmallVec::from_elem(0, OverRows::OPERANDS);
        strides[OverRows::UNIFORMS] = (run.width * size_of::<T>()) as isize;
        strides.extend_from_slice(&places.steps);
        let (mut data, mut buffers) = (places.data, SmallVec::new());
        for (at, slot) in part.inputs.iter().chain(&part.outputs).enumerate() {
            if !matches!(slot, Slot::Input(_) | Slot::Output(_)) {
                buffers.push((at, data[at]));
            }
        }
        let column = |(_, slot): &(Reduction, Slot)| if let Slot::Column(k) = slot { Some(*k) } else { None };
        let written: SmallVec<_> = sums.iter().flat_map(|sums| &sums.reductions).filter_map(column).collect();
        let lines = size_of::<Lanes<T>>() / Line::BYTES;
        let mut totals = vec![Line::ZERO; written.len() * lines];
        data.extend(totals.chunks_exact_mut(lines).map(|lines| lines.as_mut_ptr().cast::<u8>()));
        let number =
            |i: &Instruction| if let Instruction::Uniform(k) = i { (*k as usize).checked_sub(run.first) } else { None };
        let read = part.plan.program().instructions.iter().filter_map(number).collect();
        let call = RowsCall { plan, inputs: part.inputs.len(), data, buffers, strides, read, written, _totals: totals };
        Way::AtOnce(Some(Box::new(call)), rest)
    }
}

impl<T: Tile + Computed> Run<'_, T> {
    /// Computes a stage for all rows of the block.
    ///
    /// # Safety
    /// As for [`RowPlan::run`](super::RowPlan::run). The blocks follow each other.
    pub(super) unsafe fn at_once(&mut self, call: Option<&mut RowsCall<'_>>, rest: &[(Reduction, Slot, Slot)]) {
        if let Some(call) = call {
            self.move_numbers(&call.read, |number, column| *number = *column);
            call.strides[OverRows::NUMBER] = self.rows as isize;
            let (inputs, outputs) = call.data.split_at_mut(call.inputs);
            // SAFETY: by contract; all rows have numbers. The code moves the pointers to the next block.
            unsafe { call.plan.reduce_rows(self.n, inputs, &mut self.numbers, outputs, &mut call.strides) };
            call.buffers.iter().for_each(|(at, first)| call.data[*at] = *first);
            self.move_numbers(&call.written, |number, column| *column = *number);
        }
        for (reduction, from, to) in rest {
            // SAFETY: by contract.
            unsafe { self.reduce(*reduction, *from, *to) };
        }
    }

    /// Moves numbers between these columns and the lists of the rows.
    fn move_numbers(&mut self, columns: &[usize], mut moves: impl FnMut(&mut T, &mut T)) {
        for k in columns {
            let column = self.buffers.column::<T>(*k);
            for (row, numbers) in self.numbers.chunks_exact_mut(self.width).take(self.rows).enumerate() {
                // SAFETY: columns are initialized, and have room for all rows.
                moves(&mut numbers[self.first + k], unsafe { &mut *column.add(row) });
            }
        }
    }
}
