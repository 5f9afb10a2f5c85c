//! Loads of every other number.
//!
//! Two vectors hold the numbers. The second one begins one number early, so that it ends with the last number that is needed: what
//! follows may be no memory.

use iced_x86::{Code, IcedError, Register};

use super::emit::{Emitter, Operand, SLOT, TRUTH_HELPER, memory};
use super::form::Width;
use super::x86::vector;
use crate::runtime::simd::Level;

/// The positions of the numbers in both vectors, which have this number of lanes.
pub(super) fn every_other(lanes: usize) -> Vec<u32> {
    (0..lanes as u32).map(|at| 2 * at + u32::from(2 * at >= lanes as u32)).collect()
}

impl Emitter<'_> {
    /// Loads every other `f32` from memory.
    pub(super) fn load_every_other(&mut self, to: Operand, from: Operand) -> Result<(), IcedError> {
        let Operand::Memory { base, index, scale, displacement, is_broadcast } = from else { return Ok(()) };
        let size = Width::Single as i64;
        let displacement = displacement + (self.shape.lanes as i64 - 1) * size;
        let second = Operand::Memory { base, index, scale, displacement, is_broadcast };
        self.load(to, from)?;
        let is_full = self.shape.lanes == 16;
        if self.shape.level == Level::Avx512 {
            let positions = Operand::Register(vector(TRUTH_HELPER, self.shape.lanes * size as usize));
            self.load(positions, memory(Register::RIP, SLOT as i64))?;
            let code = match is_full {
                true => Code::EVEX_Vpermt2ps_zmm_k1z_zmm_zmmm512b32,
                false => Code::EVEX_Vpermt2ps_ymm_k1z_ymm_ymmm256b32,
            };
            return self.emit(code, &[to, positions, second]);
        }
        // Numbers 0 and 2 of the first vector, then 1 and 3 of the second one, in each half of a register.
        let order = Operand::Immediate(0b11_01_10_00);
        if self.shape.lanes == 4 {
            return self.emit(Code::VEX_Vshufps_xmm_xmm_xmmm128_imm8, &[to, to, second, order]);
        }
        self.emit(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, &[to, to, second, order])?;
        self.emit(Code::VEX_Vpermpd_ymm_ymmm256_imm8, &[to, to, order])
    }
}
