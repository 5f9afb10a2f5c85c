//! A loop over rows, around the loop over the elements of a row.
//!
//! The uniforms of a row hold all of its numbers: those that the elements need, and the results of the reductions. The loop moves the
//! pointers to operands and uniforms from row to row.

use iced_x86::{Code, IcedError, Instruction, Register};

use super::accumulator::{Accumulator, combining, has_runs};
use super::emit::{ELEMENT, Emitter, INPUTS, KEPT_STRIDES, OUTPUTS, Operand, RUN_END, STRIDES, UNIFORMS, half, memory};
use super::form::{Op, Width};
use super::x86::{mask, vector};
use crate::program::OverRows;
use crate::reduce::rows::LANES;
use crate::row::Reduction;
use crate::runtime::simd::Level;

/// The comparison of two numbers that tells whether one of them is NaN.
const IS_UNORDERED: Operand = Operand::Immediate(3);

impl Emitter<'_> {
    /// Begins the loop over rows. The totals of a row begin as the results for no elements.
    pub(super) fn begin_rows(&mut self) -> Result<(), IcedError> {
        self.emit(Code::Push_r64, &[Operand::Register(KEPT_STRIDES)])?;
        self.emit(Code::Mov_r64_rm64, &[Operand::Register(KEPT_STRIDES), Operand::Register(STRIDES)])?;
        self.tops[2] = self.ip;
        for accumulator in self.accumulators.iter().filter(|a| a.runs().is_some()) {
            let helper = self.helper(accumulator);
            self.load_constant(helper, accumulator.identity, accumulator.width)?;
            for total in self.totals(accumulator)? {
                self.store(total, helper)?;
            }
        }
        Ok(())
    }

    /// Ends the loop over rows. `inputs` is the number of inputs.
    pub(super) fn end_rows(&mut self, inputs: usize) -> Result<(), IcedError> {
        for accumulator in self.accumulators {
            self.fold(accumulator)?;
        }
        let item = |position: usize| memory(KEPT_STRIDES, 8 * position as i64);
        let stride = Operand::Register(ELEMENT);
        for (pointers, k) in std::mem::take(&mut self.operands) {
            let first = if pointers == INPUTS { OverRows::OPERANDS } else { OverRows::OPERANDS + inputs };
            self.emit(Code::Mov_r64_rm64, &[stride, item(first + k)])?;
            self.emit(Code::Add_rm64_r64, &[memory(pointers, 8 * k as i64), stride])?;
        }
        self.emit(Code::Add_r64_rm64, &[Operand::Register(UNIFORMS), item(OverRows::UNIFORMS)])?;
        self.emit(Code::Dec_rm64, &[item(OverRows::NUMBER)])?;
        self.encode(&Instruction::with_branch(Code::Jne_rel32_64, self.tops[2])?)?;
        self.emit(Code::Pop_r64, &[Operand::Register(KEPT_STRIDES)])
    }

    /// The vectors of totals in memory.
    fn totals(&mut self, accumulator: &Accumulator) -> Result<Vec<Operand>, IcedError> {
        let from = memory(OUTPUTS, 8 * accumulator.output as i64);
        self.emit(Code::Mov_r64_rm64, &[Operand::Register(RUN_END), from])?;
        let (size, bytes) = (LANES * accumulator.width as usize, self.shape.lanes * accumulator.width as usize);
        Ok((0..size).step_by(bytes).map(|at| memory(RUN_END, at as i64)).collect())
    }

    /// Combines all lanes, each with that half as many further on, and writes the result to its uniform.
    fn fold(&mut self, accumulator: &Accumulator) -> Result<(), IcedError> {
        let (reduction, width) = (accumulator.reduction, accumulator.width);
        let bytes = self.shape.lanes * width as usize;
        let mut vectors = self.totals(accumulator)?;
        while vectors.len() > 1 {
            let (lower, upper) = vectors.split_at(vectors.len() / 2);
            let pairs: Vec<_> = lower.iter().copied().zip(upper.iter().copied()).collect();
            vectors.truncate(pairs.len());
            for (at, (lower, upper)) in pairs.into_iter().enumerate() {
                let register = Operand::Register(vector(at, bytes));
                if let Operand::Memory { .. } = lower {
                    self.load(register, lower)?;
                }
                self.combine((reduction, width), register, upper, bytes, AFTER_ELEMENTS)?;
                vectors[at] = register;
            }
        }
        self.fold_lanes((reduction, width), 0, bytes, AFTER_ELEMENTS)?;
        let to = memory(UNIFORMS, (accumulator.result * width as usize) as i64);
        self.store_number(to, Operand::Register(Register::XMM0), width)
    }

    /// Combines the lanes of the first bytes of a register to the first one.
    pub(super) fn fold_lanes(
        &mut self,
        (reduction, width): (Reduction, Width),
        number: usize,
        mut bytes: usize,
        helpers: Helpers,
    ) -> Result<(), IcedError> {
        let is_avx512 = self.shape.level == Level::Avx512;
        while bytes > width as usize {
            let [lanes, upper] = [number, helpers.vectors[0]].map(|k| Operand::Register(vector(k, bytes)));
            let one = Operand::Immediate(1);
            match (bytes, is_avx512) {
                (64, _) => self.emit(Code::EVEX_Vextractf64x4_ymmm256_k1z_zmm_imm8, &[half(upper), lanes, one])?,
                (32, true) => self.emit(Code::EVEX_Vextractf32x4_xmmm128_k1z_ymm_imm8, &[half(upper), lanes, one])?,
                (32, false) => self.emit(Code::VEX_Vextractf128_xmmm128_ymm_imm8, &[half(upper), lanes, one])?,
                (16, true) => self.emit(Code::EVEX_Vmovhlps_xmm_xmm_xmm, &[upper, lanes, lanes])?,
                (16, false) => self.emit(Code::VEX_Vmovhlps_xmm_xmm_xmm, &[upper, lanes, lanes])?,
                (_, true) => self.emit(Code::EVEX_Vmovshdup_xmm_k1z_xmmm128, &[upper, lanes])?,
                (_, false) => self.emit(Code::VEX_Vmovshdup_xmm_xmmm128, &[upper, lanes])?,
            }
            bytes /= 2;
            let [lanes, upper] = [number, helpers.vectors[0]].map(|k| Operand::Register(vector(k, bytes)));
            self.combine((reduction, width), lanes, upper, bytes.max(16), helpers)?;
        }
        Ok(())
    }

    /// Combines the lanes of a register with others. An extremum is NaN if either is.
    pub(super) fn combine(
        &mut self,
        (reduction, width): (Reduction, Width),
        lanes: Operand,
        others: Operand,
        bytes: usize,
        helpers: Helpers,
    ) -> Result<(), IcedError> {
        let combined = self.code_of(combining(reduction), width, bytes);
        if has_runs(reduction) {
            return self.emit(combined, &[lanes, lanes, others]);
        }
        // The instruction returns the second operand if either is NaN.
        let [extremum, is_nan] = [1, 2].map(|k| Operand::Register(vector(helpers.vectors[k], bytes)));
        let is_nan = if self.shape.level == Level::Avx512 { Operand::Register(mask(helpers.mask)) } else { is_nan };
        self.emit(combined, &[extremum, lanes, others])?;
        self.emit(self.code_of(Op::Equal, width, bytes), &[is_nan, lanes, lanes, IS_UNORDERED])?;
        self.select(self.code_of(Op::Select, width, bytes), [lanes, extremum, lanes], is_nan)
    }

    /// Stores the first number of a register.
    pub(super) fn store_number(&mut self, to: Operand, from: Operand, width: Width) -> Result<(), IcedError> {
        let code = match (width, self.shape.level) {
            (Width::Single, Level::Avx512) => Code::EVEX_Vmovss_m32_k1_xmm,
            (Width::Single, _) => Code::VEX_Vmovss_m32_xmm,
            (Width::Double, Level::Avx512) => Code::EVEX_Vmovsd_m64_k1_xmm,
            (Width::Double, _) => Code::VEX_Vmovsd_m64_xmm,
        };
        self.emit(code, &[to, from])
    }
}

/// The registers that combining lanes needs: for lanes, for an extremum, and for truth values, which AVX-512 has in a mask register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Helpers {
    pub vectors: [usize; 3],
    pub mask: usize,
}

/// Those after the elements of a row, when no value is in a register.
const AFTER_ELEMENTS: Helpers = Helpers { vectors: [1, 14, 15], mask: 1 };
