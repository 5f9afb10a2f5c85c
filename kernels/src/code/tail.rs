//! The last elements of a row, if there are fewer than the lanes.
//!
//! The code of the loop follows once more, for a block of which only the first elements exist. Each vector of the block has a mask of its
//! elements that exist. Loads give 0 for the others; stores and accumulators leave them as they are. All rows have the same masks,
//! which are in memory beside the row strides.

use iced_x86::{Code, IcedError, Instruction, Register};

use super::emit::{Emitter, KEPT_STRIDES, Operand, instruction, memory};
use super::form::Width;
use crate::program::OverRows;
use crate::runtime::simd::Level;

/// The mask of the elements that exist.
pub(super) const EXISTING: Register = Register::K7;
/// The number of mask registers for values, if there is a tail.
pub(super) const MASKS_FOR_VALUES: usize = 7;

impl Emitter<'_> {
    /// Begins the code for the last elements, which is skipped if there are none.
    pub(super) fn begin_tail(&mut self) -> Result<(), IcedError> {
        self.emit(Code::Test_rm64_imm32, &[memory(KEPT_STRIDES, 8 * OverRows::MASKS as i64), Operand::Immediate(1)])?;
        self.encode(&Instruction::with_branch(Code::Je_rel32_64, self.ip)?)?;
        self.skip = self.ip;
        self.is_tail = true;
        self.begin_run()
    }

    /// Ends the code for the last elements.
    pub(super) fn end_tail(&mut self) -> Result<(), IcedError> {
        self.end_run()?;
        self.is_tail = false;
        let distance = self.ip - self.skip;
        let mut code = self.encoder.take_buffer();
        let end = code.len() - distance as usize;
        code[end - 4..end].copy_from_slice(&(distance as u32).to_le_bytes());
        self.encoder.set_buffer(code);
        Ok(())
    }

    /// Copies the elements of a vector that exist between memory and a register, or between registers. Those that do not exist become 0
    /// in a register that is loaded, and do not change elsewhere.
    pub(super) fn move_existing(
        &mut self,
        to: Operand,
        from: Operand,
        width: Width,
        copy: usize,
    ) -> Result<(), IcedError> {
        if self.shape.level != Level::Avx512 {
            return self.move_existing_by_vector(to, from, width);
        }
        if self.row.is_none() {
            let at = OverRows::MASKS + self.group * self.shape.copies + copy;
            self.emit(Code::VEX_Kmovw_kr_km16, &[Operand::Register(EXISTING), memory(KEPT_STRIDES, 8 * at as i64)])?;
        }
        let (register, is_store) = match (to, from) {
            (Operand::Register(register), _) => (register, false),
            (_, Operand::Register(register)) => (register, true),
            _ => (Register::None, true),
        };
        // A mask has one bit for each number, so the instruction must know their width.
        let [load, store] = match (width, register.is_zmm()) {
            (Width::Single, _) => self.moves(register),
            (Width::Double, true) => [Code::EVEX_Vmovupd_zmm_k1z_zmmm512, Code::EVEX_Vmovupd_zmmm512_k1z_zmm],
            (Width::Double, false) => [Code::EVEX_Vmovupd_ymm_k1z_ymmm256, Code::EVEX_Vmovupd_ymmm256_k1z_ymm],
        };
        let code = if is_store { store } else { load };
        let mut instruction = instruction(code, &[to, from])?;
        instruction.set_op_mask(EXISTING);
        instruction.set_zeroing_masking(!is_store && matches!(from, Operand::Memory { .. }));
        self.encode(&instruction)
    }
}
