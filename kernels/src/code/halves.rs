//! Half floats: loads widen them to `f32`, and stores round to the nearest, ties to even.

use iced_x86::{Code, IcedError};

use super::emit::{Emitter, Operand, half};
use super::form::{Form, Id, Op, Width};
use crate::program::Storage;

/// The bits of an `f32` that a bfloat16 has.
const UPPER: Op = Op::Constant(0xffff_0000);

impl Form {
    /// Whether a number has been [rounded](crate::math::single::as_bfloat16) to a bfloat16: it has no bits in the lower half.
    fn is_bfloat16(&self, x: Id) -> bool {
        let node = &self.nodes[x as usize];
        node.op == Op::And && node.operands().iter().any(|id| self.nodes[*id as usize].op == UPPER)
    }

    /// The bits of a bfloat16, in the lower half of each number: those of the nearest one, or a quiet NaN.
    pub(super) fn bfloat16(&mut self, x: Id) -> Id {
        let width = Width::Single;
        if self.is_bfloat16(x) {
            return self.add(Op::ShiftRight(16), width, &[x]);
        }
        let [least, half, quiet] = [1, 0x7fff, 0x40].map(|bits| self.add(Op::Constant(bits), width, &[]));
        let truncated = self.add(Op::ShiftRight(16), width, &[x]);
        let is_odd = self.add(Op::And, width, &[truncated, least]);
        let below = self.add(Op::AddInt, width, &[x, half]);
        let sum = self.add(Op::AddInt, width, &[below, is_odd]);
        let rounded = self.add(Op::ShiftRight(16), width, &[sum]);
        let nan = self.add(Op::Or, width, &[truncated, quiet]);
        let is_number = self.add(Op::Equal, width, &[x, x]);
        self.add(Op::Select, width, &[is_number, rounded, nan])
    }
}

impl Emitter<'_> {
    /// Loads half floats as `f32`.
    pub(super) fn load_half(&mut self, to: Operand, from: Operand, storage: Storage) -> Result<(), IcedError> {
        if storage == Storage::Float16 {
            let code = self.of_shape([
                Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae,
                Code::EVEX_Vcvtph2ps_ymm_k1z_xmmm128,
                Code::VEX_Vcvtph2ps_ymm_xmmm128,
                Code::VEX_Vcvtph2ps_xmm_xmmm64,
            ]);
            return self.emit(code, &[to, from]);
        }
        self.load_narrow(to, from, Storage::UInt16)?;
        let shift = self.of_shape([
            Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8,
            Code::EVEX_Vpslld_ymm_k1z_ymmm256b32_imm8,
            Code::VEX_Vpslld_ymm_ymm_imm8,
            Code::VEX_Vpslld_xmm_xmm_imm8,
        ]);
        self.emit(shift, &[to, to, Operand::Immediate(16)])
    }

    /// Stores `f32`s as float16.
    pub(super) fn store_float16(&mut self, to: Operand, value: Operand) -> Result<(), IcedError> {
        let code = self.of_shape([
            Code::EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae,
            Code::EVEX_Vcvtps2ph_xmmm128_k1z_ymm_imm8,
            Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8,
            Code::VEX_Vcvtps2ph_xmmm64_xmm_imm8,
        ]);
        self.emit(code, &[to, value, Operand::Immediate(0)])
    }

    /// Rounds `f32`s to the nearest float16.
    pub(super) fn round_to_float16(&mut self, to: Operand, value: Operand) -> Result<(), IcedError> {
        let bits = half(to);
        self.store_float16(bits, value)?;
        self.load_half(to, bits, Storage::Float16)
    }
}
