//! [`RowPlan`]: a program over rows, prepared to run over memory.

use std::cell::Cell;
use std::ops::Range;

use smallvec::SmallVec;

use super::stages::{Numbers, Part, Slot, Stage, Stages};
#[cfg(target_arch = "x86_64")]
use super::whole_rows::WholeRows;
use super::{Id, Instruction, Malformed, Program, Storage, Tile, ValueType};
use crate::memory::Line;
use crate::number::Truth;
use crate::number::scalar::{Const, Machine};
use crate::reduce::rows::SECTION;
use crate::row::{Computed, Rows};

/// The number of elements that a stage computes before the next stage runs. They stay in the nearest cache.
pub(super) const BLOCK: usize = 2048;
/// The most lines of memory that a thread keeps for its next run.
const MOST_LINES: usize = (1 << 20) / Line::BYTES;
/// A column has room for a multiple of this number of rows, so that a program over rows computes whole vectors.
pub(super) const VECTOR: usize = 16;

/// A program over rows, prepared to run over memory: it is split at its reductions into programs over elements, and runs
/// them over some rows at a time. These are machine code where there is any.
#[derive(Debug)]
pub struct RowPlan {
    program: Program,
    per_row: usize,
    /// Whether each input, and each output, is of truth values.
    masks: [Vec<bool>; 2],
    /// How the rows of inputs, and of outputs, are stored.
    storage: [Vec<Storage>; 2],
    /// For several rows at once, and for long rows.
    stages: [Stages; 2],
    /// Whether each output has one value per element.
    #[cfg(target_arch = "x86_64")]
    gives: Vec<bool>,
    is_dear: bool,
    /// For short rows.
    #[cfg(target_arch = "x86_64")]
    pub(super) whole: WholeRows,
}

thread_local! {
    /// The memory of the last run on this thread.
    pub(super) static MEMORY: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

impl RowPlan {
    /// The fewest elements of a row that several threads compute.
    pub const FOR_THREADS: usize = 8 * SECTION;

    /// The plan of a program. `gives` marks the outputs with one value per element; the others have one per row. The first
    /// `per_row` uniforms have one value per row; the others are the same for all rows. The inputs at the positions `masks`, and
    /// outputs that are truth values, are [`Truth`]s in memory.
    ///
    /// # Errors
    /// If the program doesn't [verify](Program::verify), an output with one value per row differs along a row, or a mask is used as
    /// a number.
    pub fn new(program: Program, gives: &[bool], per_row: usize, masks: &[usize]) -> Result<RowPlan, Malformed> {
        let own = [program.inputs.len(), program.outputs.len()].map(|count| vec![Storage::Own; count]);
        RowPlan::stored(program, gives, per_row, masks, own)
    }

    /// The plan of a program whose rows are stored so: as numbers of the program, or as half floats. Outputs with one value per row are
    /// numbers of the program. Only [machine code](RowPlan::is_machine_code) runs a plan with half floats.
    ///
    /// # Errors
    /// As for [`RowPlan::new`].
    pub fn stored(
        program: Program,
        gives: &[bool],
        per_row: usize,
        masks: &[usize],
        storage: [Vec<Storage>; 2],
    ) -> Result<RowPlan, Malformed> {
        program.verify()?;
        let program = program.loading(&storage[0]).without_dead();
        let is_mask = |id: Id| program.instructions[id.at()].kind() == ValueType::Mask;
        let is_number = |(id, _): &(Id, ValueType)| matches!(program.instructions[id.at()], Instruction::Input(k) if masks.contains(&(k as usize)));
        if program
            .instructions
            .iter()
            .any(|i| matches!(i, Instruction::Reduce(..) | Instruction::Row(..)) && i.operands().iter().any(is_number))
        {
            return Err(Malformed("a mask is used like a row of numbers".to_owned()));
        }
        let of = |numbers| Stages::of(&program, gives, per_row, masks, &storage, numbers);
        let stages = [of(Numbers::Repeated)?, of(Numbers::Uniform)?];
        let has_dear = |part: &Part| part.plan.program().instructions().iter().any(Instruction::is_dear);
        let is_dear = stages[1].all.iter().any(|stage| stage.pass().is_some_and(has_dear));
        let inputs = (0..program.inputs.len()).map(|k| masks.contains(&k)).collect();
        let outputs = program.outputs.iter().map(|(_, id)| is_mask(*id)).collect();
        Ok(RowPlan {
            program,
            per_row,
            masks: [inputs, outputs],
            storage,
            stages,
            #[cfg(target_arch = "x86_64")]
            gives: gives.to_vec(),
            is_dear,
            #[cfg(target_arch = "x86_64")]
            whole: WholeRows::default(),
        })
    }

    /// Whether all of [`RowPlan::run`] is machine code at `T`.
    pub fn is_machine_code<T: Tile>(&self) -> bool {
        let parts = |stage: &Stage| {
            let sums = stage.sums.iter().map(|sums| &sums.part);
            let mut parts = stage.numbers.iter().chain(&stage.elements).chain(sums);
            parts.all(|part| part.plan.has_machine_code::<T>())
        };
        self.stages.iter().flat_map(|stages| &stages.all).all(parts)
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether the elements need a function that takes longer than loading its value.
    pub(super) fn is_dear(&self) -> bool {
        self.is_dear
    }

    /// The number of uniforms with one value per row.
    pub(super) fn per_row(&self) -> usize {
        self.per_row
    }

    /// Whether each input, and each output, is of truth values.
    pub(super) fn masks(&self) -> &[Vec<bool>; 2] {
        &self.masks
    }

    /// How the rows of inputs, and of outputs, are stored.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn storage(&self) -> &[Vec<Storage>; 2] {
        &self.storage
    }

    /// Whether each output has one value per element.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn gives(&self) -> &[bool] {
        &self.gives
    }

    /// The size in bytes of an element of each input, and of each output, if the program computes with numbers of this size.
    pub(super) fn sizes(&self, own: usize) -> [SmallVec<[usize; 8]>; 2] {
        [0, 1].map(|k| {
            let pairs = self.masks[k].iter().zip(&self.storage[k]);
            pairs.map(|(is_mask, storage)| if *is_mask { size_of::<Truth>() } else { storage.step(own) }).collect()
        })
    }

    /// The stages that take numbers of rows as operands, not as uniforms.
    pub(super) fn repeated(&self) -> &Stages {
        &self.stages[0]
    }

    /// The stages that take numbers of rows as uniforms, one row after the other.
    pub(super) fn uniform(&self) -> &Stages {
        &self.stages[1]
    }

    /// Panics if the number of arguments differs from the program's.
    pub(super) fn check_arguments(&self, inputs: usize, uniforms: usize, outputs: usize) {
        let Program { inputs: own_inputs, uniforms: own_uniforms, outputs: own_outputs, .. } = &self.program;
        let own = (own_inputs.len(), own_uniforms.len(), own_outputs.len());
        assert_eq!((inputs, uniforms, outputs), own, "arguments of a program");
    }
}

/// Keeps memory for the next run on this thread, unless it is large.
pub(super) fn keep(memory: Vec<Line>) {
    if memory.capacity() <= MOST_LINES {
        MEMORY.set(memory);
    }
}

/// The uniforms of the programs over elements: the attributes, and the length of a row.
///
/// # Safety
/// Every attribute has a first row.
pub(super) unsafe fn uniforms_of<T: Tile>(attributes: &[Rows<*const T>], n: usize) -> Vec<T> {
    // SAFETY: by contract.
    let attributes = attributes.iter().map(|attribute| unsafe { *attribute.row(0) });
    attributes.chain([T::constant(Const::Float(n as f64))]).collect()
}

/// Writes the outputs with one number per row, for these rows. `column` is the first number of a column.
///
/// # Safety
/// The columns are computed, and the outputs have these rows.
pub(super) unsafe fn write_numbers<T: Tile + Computed>(
    stages: &Stages,
    masks: &[Vec<bool>; 2],
    outputs: &[Rows<*mut T>],
    rows: Range<usize>,
    column: impl Fn(usize) -> *const T,
) {
    for (slot, output) in &stages.results {
        let Slot::Column(k) = slot else { continue };
        let from = column(*k);
        for (at, row) in rows.clone().enumerate() {
            // SAFETY: by contract.
            unsafe {
                let (value, to) = (*from.add(at), outputs[*output].row(row));
                match masks[1][*output] {
                    true => to.cast::<Truth>().write((value != T::ZERO).store()),
                    false => to.write(value),
                }
            }
        }
    }
}
