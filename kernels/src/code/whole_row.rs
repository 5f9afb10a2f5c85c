//! A loop over short rows, of which each is computed as a whole.
//!
//! All elements of a row are in registers, or in memory for values, from the first stage to the last. So the form has the reductions, and
//! its nodes have an [`Extent`](super::row_form::Extent): a value for each element, in several vectors, or a number of the row, in the first lane of one register.
//! The code is for rows of one length.

use std::ops::Range;

use iced_x86::{Code, IcedError};

use super::accumulator::{combining, has_runs};
use super::assemble::{Assembler, Body, Loop, assemble};
use super::emit::{Emitter, OUTPUTS, Operand, SLOT, Shape, TRUTH_HELPER, memory};
use super::form::{Form, Id, Node, Op, Width};
use super::lower::lower;
use super::masked::masked;
use super::output::Output;
use super::registers::Value;
use super::routine::{Routine, constant, constants, lanes};
use super::row_form::{Stage, stages, with_repeats};
use super::rows::Helpers;
use super::tail::EXISTING;
use super::x86::vector;
use crate::program::Storage;
use crate::reduce::rows::{LANES, RUN};
use crate::row::Reduction;
use crate::runtime::simd::Level;

/// Rows of one length.
#[derive(Debug)]
pub struct WholeRow<'a> {
    /// The number of elements of a row.
    pub n: usize,
    /// The positions of the masks of the elements in the last vector, for singles and doubles.
    pub masks: [i64; 2],
    /// The position of the result of each reduction for no elements.
    pub identities: [i64; 4],
    pub outputs: RowOutputs<'a>,
    pub stages: Vec<Stage>,
}

/// The most instructions for a row. More do not fit the cache for instructions.
const MOST_INSTRUCTIONS: usize = 4096;

/// The outputs of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowOutputs<'a> {
    /// How each is stored if it is a number.
    pub stored: &'a [Storage],
    /// Whether each has one value per element. The others have a number per row.
    pub gives: &'a [bool],
    /// Whether each is a sum over rows: a row adds its values to those in memory. Outputs beyond the end are no sums.
    pub sums: &'a [bool],
}

impl Routine {
    /// Assembles the form of a row of `n` elements, which has the reductions. `identities` are the bits of their results for no elements.
    /// `None` if there is no such code: the stages of the row are computed one after the other.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn whole(
        mut form: Form,
        inputs: usize,
        row_outputs @ RowOutputs { stored, gives, sums }: RowOutputs<'_>,
        n: usize,
        identities: [u64; 4],
        width: Width,
        level: Level,
    ) -> Option<Routine> {
        assert!(n > 0, "a row has elements");
        if level == Level::Baseline {
            return None;
        }
        let outputs = form.outputs_stored(stored, width);
        let lowered = if level == Level::Avx512 { masked(&form) } else { lower(&form, width) };
        let lowered = with_repeats(&lowered, gives, level)?;
        let lanes = lanes(&lowered, width, level);
        let copies = n.div_ceil(lanes);
        let is_own = lowered.nodes.iter().all(Node::has_own_storage)
            && outputs.iter().all(|output| matches!(output, Output::Number(Storage::Own)));
        // Other ways of storing have no masks, and are not added to.
        let needs_none = n.is_multiple_of(lanes) && !sums.contains(&true);
        if !needs_none && !is_own || lowered.nodes.len() * copies > MOST_INSTRUCTIONS {
            return None;
        }
        let (mut bytes, constants) = constants(&lowered, level, lanes);
        let identities = identities.map(|bits| constant(&mut bytes, bits, width as usize, level, lanes));
        let masks = masks(&mut bytes, n - (copies - 1) * lanes, lanes, level);
        bytes.resize(bytes.len().next_multiple_of(SLOT), 0);
        let row = WholeRow { n, masks, identities, outputs: row_outputs, stages: stages(&lowered) };
        let shape = Shape { level, lanes, copies, groups: 1, has_rows: true, has_tail: false, bypasses: false };
        let start = bytes.len();
        let assembled = assemble(&lowered, &outputs, shape, &constants, start as u64, inputs, Body::WholeRow(&row));
        debug_assert!(assembled.is_ok(), "{assembled:?}");
        let Loop { bytes: code, slots } = assembled.ok()?;
        bytes.extend(code);
        Routine::of_loop(&bytes, start, slots)
    }
}

/// Adds the masks of the first elements of a vector: a bit for each, or with AVX2 all bits of their numbers. Returns their positions.
fn masks(bytes: &mut Vec<u8>, count: usize, lanes: usize, level: Level) -> [i64; 2] {
    [Width::Single, Width::Double].map(|width| {
        if level == Level::Avx512 {
            return constant(bytes, (1 << count) - 1, 4, level, lanes);
        }
        bytes.resize(bytes.len().next_multiple_of(SLOT), 0);
        let position = bytes.len() as i64;
        (0..lanes).for_each(|at| bytes.extend([if at < count { u8::MAX } else { 0 }].repeat(width as usize)));
        position
    })
}

impl WholeRow<'_> {
    /// Whether an output has one value per element.
    fn gives(&self, output: usize) -> bool {
        self.outputs.gives[output]
    }

    /// Whether an output is a sum over rows.
    pub fn adds(&self, output: usize) -> bool {
        self.outputs.sums.get(output) == Some(&true)
    }

    /// Whether only some elements of a vector exist.
    pub fn is_part(&self, copy: usize, lanes: usize) -> bool {
        (copy + 1) * lanes > self.n
    }
}

/// The registers that are not for values.
struct RowHelpers {
    /// For elements of which only some exist.
    part: usize,
    combining: Helpers,
}

/// The elements that are computed at a time: the positions of their instructions, and their vectors.
#[derive(Debug, Default)]
pub struct Pass {
    pub positions: Range<u32>,
    pub copies: Range<usize>,
}

/// The number of vector registers that are not for values. They are the last ones.
pub const HELPERS: usize = 4;
/// The number of mask registers for values, if rows are computed as a whole.
pub const MASKS_FOR_VALUES: usize = 6;

impl Emitter<'_> {
    /// Loads the mask of the elements in the last vector of each row, if it is not a whole vector.
    pub(super) fn load_mask(&mut self, row: &WholeRow<'_>) -> Result<(), IcedError> {
        if row.n.is_multiple_of(self.shape.lanes) || self.shape.level != Level::Avx512 {
            return Ok(());
        }
        self.emit(
            Code::VEX_Kmovw_kr_km16,
            &[Operand::Register(EXISTING), memory(iced_x86::Register::RIP, row.masks[0])],
        )
    }
}

/// The number of vectors whose instructions alternate.
fn together(level: Level) -> usize {
    if level == Level::Avx512 { 4 } else { 2 }
}

impl Emitter<'_> {
    /// [`move_existing`](Emitter::move_existing) with AVX2, whose masks are vectors.
    pub(super) fn move_existing_by_vector(
        &mut self,
        to: Operand,
        from: Operand,
        width: Width,
    ) -> Result<(), IcedError> {
        let Some(row) = self.row else { return Ok(()) };
        let bytes = self.shape.lanes * width as usize;
        let mask = Operand::Register(vector(RowHelpers::of(self.shape.level).combining.vectors[0], bytes));
        self.load(mask, memory(iced_x86::Register::RIP, row.masks[usize::from(width == Width::Double)]))?;
        let [load, store] = match (width, bytes) {
            (Width::Single, 32) => [Code::VEX_Vmaskmovps_ymm_ymm_m256, Code::VEX_Vmaskmovps_m256_ymm_ymm],
            (Width::Single, _) => [Code::VEX_Vmaskmovps_xmm_xmm_m128, Code::VEX_Vmaskmovps_m128_xmm_xmm],
            (Width::Double, 32) => [Code::VEX_Vmaskmovpd_ymm_ymm_m256, Code::VEX_Vmaskmovpd_m256_ymm_ymm],
            (Width::Double, _) => [Code::VEX_Vmaskmovpd_xmm_xmm_m128, Code::VEX_Vmaskmovpd_m128_xmm_xmm],
        };
        match (to, from) {
            (Operand::Register(_), Operand::Register(_)) => {
                self.emit(self.code_of(Op::Select, width, bytes), &[to, to, from, mask])
            }
            (Operand::Register(_), _) => self.emit(load, &[to, mask, from]),
            _ => self.emit(store, &[to, mask, from]),
        }
    }
}

impl RowHelpers {
    fn of(level: Level) -> RowHelpers {
        let last = if level == Level::Avx512 { TRUTH_HELPER } else { 16 };
        let [part, upper, extremum, is_nan] = [1, 2, 3, 4].map(|k| last - k);
        RowHelpers { part, combining: Helpers { vectors: [upper, extremum, is_nan], mask: MASKS_FOR_VALUES } }
    }
}

impl Assembler<'_> {
    /// Computes a row, stage by stage. Within a stage, some vectors are computed at a time.
    pub(super) fn whole_row(&mut self, row: &WholeRow<'_>, outputs: &[Output]) -> Result<(), IcedError> {
        let Shape { level, copies, .. } = self.emitter.shape;
        let end = self.form.nodes.len() as u32;
        for (at, stage) in row.stages.iter().enumerate() {
            let is_last = at + 1 == row.stages.len();
            for id in stage.numbers.clone() {
                self.go_to(id, copies - 1);
                self.node(id)?;
            }
            self.reduced.extend(stage.reductions.clone());
            for first in (0..copies).step_by(together(level)) {
                let group = first..copies.min(first + together(level));
                let end_of_stage = if is_last { u32::MAX } else { stage.reductions.end };
                self.pass = Pass { positions: stage.elements.start..end_of_stage, copies: group.clone() };
                for (id, copy) in stage.elements.clone().flat_map(|id| group.clone().map(move |copy| (id, copy))) {
                    self.go_to(id, copy);
                    self.node(id)?;
                }
                for (id, copy) in stage.reductions.clone().flat_map(|id| group.clone().map(move |copy| (id, copy))) {
                    self.go_to(id, copy);
                    self.accumulate(id, row)?;
                }
                for (k, output) in outputs.iter().enumerate().filter(|(k, _)| is_last && row.gives(*k)) {
                    for copy in group.clone() {
                        self.go_to(end + k as u32, copy);
                        self.output(k, *output)?;
                    }
                }
            }
            self.pass = Pass::default();
            for id in stage.reductions.clone() {
                self.go_to(id, copies - 1);
                self.fold_row(id, row)?;
            }
        }
        for k in (0..outputs.len()).filter(|k| !row.gives(*k)) {
            self.go_to(end + k as u32, copies - 1);
            self.output_number(k)?;
        }
        Ok(())
    }

    /// The sum of an output in memory and the value of this row, in a register that is not for values.
    pub(super) fn added(&mut self, value: Operand, sum: Operand, width: Width) -> Result<Operand, IcedError> {
        let bytes = if self.is_number { 16 } else { self.emitter.shape.lanes * width as usize };
        let register = Operand::Register(vector(self.helpers().part, bytes));
        match () {
            () if self.is_number => self.emitter.broadcast(register, sum, width)?,
            () if self.emitter.is_tail => self.emitter.move_existing(register, sum, width, self.copy)?,
            () => self.emitter.load(register, sum)?,
        }
        self.emitter.emit(self.emitter.code_of(Op::Add, width, bytes), &[register, register, value])?;
        Ok(register)
    }

    /// Goes to a position and copy.
    fn go_to(&mut self, at: u32, copy: usize) {
        (self.at, self.copy) = (at, copy);
        self.emitter.is_tail = self.emitter.row.is_some_and(|row| row.is_part(copy, self.emitter.shape.lanes));
    }

    /// Adds a vector to the partial results of a reduction. There is one for each vector of a block of all lanes, in the order of
    /// [`reduce::rows`](crate::reduce::rows).
    fn accumulate(&mut self, id: Id, row: &WholeRow<'_>) -> Result<(), IcedError> {
        let Node { op: Op::Reduce(reduction), width, .. } = self.form.nodes[id as usize] else { return Ok(()) };
        let x = self.form.nodes[id as usize].operands()[0];
        let (copy, lanes) = (self.copy, self.emitter.shape.lanes);
        let bytes = lanes * width as usize;
        self.begin();
        self.is_number = false;
        let mut elements = self.register(x)?;
        if self.emitter.is_tail {
            let to = Operand::Register(vector(self.helpers().part, bytes));
            self.emitter.load_constant(to, row.identities[reduction as usize], width)?;
            self.emitter.move_existing(to, elements, width, copy)?;
            elements = to;
        }
        let (block, at) = (copy / (LANES / lanes), copy % (LANES / lanes));
        // Sums and products of further runs are computed apart. The elements after the last block are no run.
        let has_runs = has_runs(reduction) && row.n >= (RUN + 1) * LANES;
        let is_in_run = has_runs && block >= RUN && block < row.n / LANES;
        let begins = if is_in_run { block.is_multiple_of(RUN) } else { block == 0 };
        if has_runs && (begins && is_in_run || block == row.n / LANES) {
            self.end_run((id, at), (reduction, width))?;
        }
        let value = if is_in_run { self.run((id, at)) } else { (id, at) };
        if begins {
            let register = self.take(value, false)?;
            self.emitter.load(Operand::Register(vector(register, bytes)), elements)?;
        } else {
            let to = self.partial(value, bytes)?;
            self.emitter.combine((reduction, width), to, elements, bytes, self.helpers().combining)?;
        }
        self.release(&[x]);
        Ok(())
    }

    /// The partial result of the current run beside that of the runs before it.
    fn run(&self, (id, at): Value) -> Value {
        (id, at + LANES / self.emitter.shape.lanes)
    }

    /// Adds the partial result of the current run to that of the runs before it, if there is one.
    fn end_run(&mut self, value: Value, kind @ (_, width): (Reduction, Width)) -> Result<(), IcedError> {
        let run = self.run(value);
        if run.1 >= self.emitter.shape.copies || !self.is_held(run) {
            return Ok(());
        }
        let bytes = self.emitter.shape.lanes * width as usize;
        let to = self.partial(value, bytes)?;
        let from = self.partial(run, bytes)?;
        self.emitter.combine(kind, to, from, bytes, self.helpers().combining)?;
        self.free(run);
        Ok(())
    }

    /// A partial result in a register, where it is about to change.
    fn partial(&mut self, value: Value, bytes: usize) -> Result<Operand, IcedError> {
        let (known, slot) = self.take_slot(value);
        let register = match known {
            Some(register) => register,
            None => self.take(value, false)?,
        };
        self.vectors.pin(register);
        let operand = Operand::Register(vector(register, bytes));
        if let (None, Some(slot)) = (known, slot) {
            self.emitter.load(operand, self.emitter.slot(slot))?;
        }
        Ok(operand)
    }

    /// Combines the partial results of a reduction: all lanes with those half as many further on, again and again.
    fn fold_row(&mut self, id: Id, row: &WholeRow<'_>) -> Result<(), IcedError> {
        let Node { op: Op::Reduce(reduction), width, .. } = self.form.nodes[id as usize] else { return Ok(()) };
        let Shape { lanes, copies, .. } = self.emitter.shape;
        let (bytes, kind) = (lanes * width as usize, (reduction, width));
        let helpers = self.helpers().combining;
        let mut left = copies.min(LANES / lanes);
        for at in 0..left {
            self.begin();
            self.end_run((id, at), kind)?;
        }
        while left > 1 {
            let half = left.next_power_of_two() / 2;
            for at in half..left {
                self.begin();
                let to = self.partial((id, at - half), bytes)?;
                let from = self.partial((id, at), bytes)?;
                self.emitter.combine(kind, to, from, bytes, helpers)?;
                self.free((id, at));
            }
            left = half;
        }
        self.begin();
        self.partial((id, 0), bytes)?;
        self.reduced.retain(|other| *other != id);
        let Some(register) = self.place(id).register else { return Ok(()) };
        let used = if copies == 1 { row.n.next_power_of_two() * width as usize } else { bytes };
        self.emitter.fold_lanes(kind, register, used.min(bytes), helpers)?;
        if combining(reduction) == Op::Add {
            // A sum begins with 0, so that it is not −0.
            let result = Operand::Register(vector(register, 16));
            let zero = self.emitter.constant(row.identities[reduction as usize]);
            self.emitter.emit(self.emitter.code_of(Op::Add, width, 16), &[result, result, zero])?;
        }
        Ok(())
    }

    fn helpers(&self) -> RowHelpers {
        RowHelpers::of(self.emitter.shape.level)
    }

    /// Stores a number of a row.
    pub(super) fn output_number(&mut self, k: usize) -> Result<(), IcedError> {
        self.begin();
        let id = self.form.outputs[k];
        self.is_number = true;
        let width = self.form.nodes[id as usize].width;
        let mut value = self.register(id)?;
        let to = memory(self.emitter.start_of(OUTPUTS, k)?, 0);
        if self.emitter.row.is_some_and(|row| row.adds(k)) {
            value = self.added(value, to, width)?;
        }
        self.emitter.store_number(to, value, width)?;
        self.release(&[id]);
        Ok(())
    }
}
