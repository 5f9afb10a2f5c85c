//! [`Accumulator`]: a reduction within a loop.
//!
//! Each lane of a block of elements has a partial result. The results of a run of some iterations are added to totals in memory,
//! in the order of [`sweep`](crate::row). Maxima and minima do not depend on the order, so they have no runs.

use iced_x86::{Code, IcedError, Instruction, Register};

use super::emit::{COUNT, ELEMENT, Emitter, OUTPUTS, Operand, RUN_END, memory};
use super::form::{Op, Width};
use super::x86::{variants, vector};
use crate::reduce::rows::{LANES, RUN};
use crate::row::Reduction;

/// A reduction within a loop.
#[derive(Clone, Debug)]
pub struct Accumulator {
    /// The output that has its next value. The memory of the output has the totals.
    pub output: usize,
    /// The reduction, and the uniform to which a loop over rows writes its result.
    pub reduction: Reduction,
    pub result: usize,
    /// The position of its first value in the constants.
    pub identity: i64,
    pub width: Width,
    /// Where the vectors of a block are.
    pub places: Vec<Place>,
}

impl Accumulator {
    /// The operation that combines runs. `None` if there are none.
    pub fn runs(&self) -> Option<Op> {
        has_runs(self.reduction).then(|| combining(self.reduction))
    }
}

/// Whether the result depends on the order. Then the elements of a run are combined before runs are.
pub(super) fn has_runs(reduction: Reduction) -> bool {
    matches!(combining(reduction), Op::Add | Op::Multiply)
}

/// The operation that combines lanes.
pub(super) fn combining(reduction: Reduction) -> Op {
    match reduction {
        Reduction::Max => Op::Max,
        Reduction::Min => Op::Min,
        Reduction::Prod => Op::Multiply,
        _ => Op::Add,
    }
}

/// The place of a vector.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Register(Register),
    /// A slot of memory.
    Slot(usize),
}

impl Emitter<'_> {
    /// The place of an accumulator in the current group.
    pub fn place(&self, k: usize, copy: usize) -> Operand {
        match self.accumulators[k].places[self.group * self.shape.copies + copy] {
            Place::Register(register) => Operand::Register(register),
            Place::Slot(slot) => self.slot(slot),
        }
    }

    /// The start of a run.
    pub(super) fn begin_runs(&mut self) -> Result<(), IcedError> {
        let all = self.accumulators;
        for accumulator in all.iter().filter(|a| a.runs().is_none()) {
            self.begin_accumulator(accumulator)?;
        }
        if all.is_empty() {
            return Ok(());
        }
        self.tops[0] = self.ip;
        let [count, end] = [COUNT, RUN_END].map(Operand::Register);
        self.emit(Code::Lea_r64_m, &[end, memory(ELEMENT, (RUN * LANES) as i64)])?;
        self.emit(Code::Cmp_rm64_r64, &[end, count])?;
        self.emit(Code::Cmova_r64_rm64, &[end, count])?;
        self.begin_run()
    }

    /// Begins the sums and products of a run.
    pub(super) fn begin_run(&mut self) -> Result<(), IcedError> {
        for accumulator in self.accumulators.iter().filter(|a| a.runs().is_some()) {
            self.begin_accumulator(accumulator)?;
        }
        Ok(())
    }

    /// Sets all lanes to the result for no elements.
    fn begin_accumulator(&mut self, accumulator: &Accumulator) -> Result<(), IcedError> {
        let helper = self.helper(accumulator);
        for place in &accumulator.places {
            match *place {
                Place::Register(register) => {
                    self.load_constant(Operand::Register(register), accumulator.identity, accumulator.width)?;
                }
                Place::Slot(slot) => {
                    self.load_constant(helper, accumulator.identity, accumulator.width)?;
                    self.spill(slot, helper)?;
                }
            }
        }
        Ok(())
    }

    /// The end of a run, and of the loop over all runs.
    pub(super) fn end_runs(&mut self) -> Result<(), IcedError> {
        if self.accumulators.is_empty() {
            return Ok(());
        }
        self.end_run()?;
        self.emit(Code::Cmp_rm64_r64, &[Operand::Register(ELEMENT), Operand::Register(COUNT)])?;
        self.encode(&Instruction::with_branch(Code::Jb_rel32_64, self.tops[0])?)
    }

    /// Adds the sums and products of a run to the totals.
    pub(super) fn end_run(&mut self) -> Result<(), IcedError> {
        for accumulator in self.accumulators.iter().filter(|a| a.runs().is_some()) {
            self.end_accumulator(accumulator)?;
        }
        Ok(())
    }

    /// Stores the extrema of all elements.
    pub(super) fn end_extrema(&mut self) -> Result<(), IcedError> {
        for accumulator in self.accumulators.iter().filter(|a| a.runs().is_none()) {
            self.end_accumulator(accumulator)?;
        }
        Ok(())
    }

    /// Adds all lanes to the totals, or stores them there.
    fn end_accumulator(&mut self, accumulator: &Accumulator) -> Result<(), IcedError> {
        let helper = self.helper(accumulator);
        let bytes = self.shape.lanes * accumulator.width as usize;
        self.emit(Code::Mov_r64_rm64, &[Operand::Register(RUN_END), memory(OUTPUTS, 8 * accumulator.output as i64)])?;
        for (at, place) in accumulator.places.iter().enumerate() {
            let total = memory(RUN_END, (at * bytes) as i64);
            let value = match *place {
                Place::Register(register) => Operand::Register(register),
                Place::Slot(slot) => {
                    self.load(helper, self.slot(slot))?;
                    helper
                }
            };
            if let Some(code) = accumulator.runs().and_then(|op| variants(op, accumulator.width, self.shape.level)) {
                self.emit(code.at(self.shape.level, bytes), &[value, value, total])?;
            }
            self.store(total, value)?;
        }
        Ok(())
    }

    /// A register that holds no value before and after an iteration.
    pub(super) fn helper(&self, accumulator: &Accumulator) -> Operand {
        Operand::Register(vector(0, self.shape.lanes * accumulator.width as usize))
    }
}
