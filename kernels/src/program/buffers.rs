//! [`Buffers`]: the memory of a run over rows, and [`Places`] in it.

use smallvec::SmallVec;

use super::row_plan::VECTOR;
use super::stages::Stages;
use crate::memory::Line;
use crate::runtime::stop::vec_for;

/// The memory of a run: arrays with the elements of some rows, and columns with one number for each of them.
pub(super) struct Buffers {
    memory: *mut Line,
    /// The lines of an array, and of a column.
    array: usize,
    column: usize,
    /// The number of arrays before the repeated columns. The positions are the last of them.
    first: usize,
    columns: usize,
}

impl Buffers {
    /// The first `lent` arrays are elsewhere.
    pub fn of<T>(
        stages: &Stages,
        n: usize,
        rows: usize,
        inputs: Option<usize>,
        lent: usize,
        memory: &mut Vec<Line>,
    ) -> Buffers {
        let lines = |count: usize| count.saturating_mul(size_of::<T>()).div_ceil(Line::BYTES);
        // One line more: arrays that start at the same offset of a page would compete for the same cache sets.
        let array = lines(n.saturating_mul(rows)) + 1;
        let column = lines(rows.next_multiple_of(VECTOR));
        // Arrays and positions, and for short rows repeated columns and copied inputs.
        let repeated = inputs.map_or(0, |inputs| stages.columns + inputs);
        let own = stages.arrays - lent + usize::from(stages.positions);
        let arrays = own + repeated;
        let count = arrays.saturating_mul(array).saturating_add(stages.columns * column);
        if memory.capacity() < count {
            *memory = vec_for(count);
        }
        Buffers { memory: memory.as_mut_ptr(), array, column, first: own, columns: stages.columns }
    }

    pub fn at<T>(&self, array: usize) -> *mut T {
        self.memory.wrapping_add(self.columns * self.column + array * self.array).cast()
    }

    pub fn column<T>(&self, k: usize) -> *mut T {
        self.memory.wrapping_add(k * self.column).cast()
    }

    pub fn repeated<T>(&self, k: usize) -> *mut T {
        self.at(self.first + k)
    }

    pub fn positions<T>(&self) -> *mut T {
        self.at(self.first - 1)
    }

    pub fn input<T>(&self, k: usize) -> *mut T {
        self.at(self.first + self.columns + k)
    }
}

/// The first elements of the inputs and outputs of a part in some row, and the distances in bytes to the next row.
pub(super) struct Places {
    pub data: SmallVec<[*mut u8; 16]>,
    pub steps: SmallVec<[isize; 16]>,
}

impl Places {
    pub fn advance(&mut self) {
        self.data.iter_mut().zip(&self.steps).for_each(|(data, step)| *data = data.wrapping_offset(*step));
    }
}
