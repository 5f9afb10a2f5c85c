//! Numbers of 8 and 16 bits: loads widen them to 32 bits, and stores keep the lower bits.

use iced_x86::{Code, IcedError};

use super::emit::{Emitter, Operand, half};
use super::form::{Form, Id, Op, Width};
use super::x86::vector;
use crate::program::Storage;
use crate::runtime::simd::Level;

impl Form {
    /// The lowest bits of a number, as many as `storage` has. AVX2 cannot store them without the others being 0.
    pub(super) fn lowest(&mut self, x: Id, storage: Storage) -> Id {
        let bits = if matches!(storage, Storage::Int8 | Storage::UInt8) { 0xff } else { 0xffff };
        let bits = self.add(Op::Constant(bits), Width::Single, &[]);
        self.add(Op::And, Width::Single, &[x, bits])
    }
}

impl Emitter<'_> {
    /// The code for vectors of 16 and of 8 numbers at AVX-512, and of 8 and of 4 at AVX2.
    pub(super) fn of_shape(&self, codes: [Code; 4]) -> Code {
        codes[match (self.shape.level, self.shape.lanes) {
            (Level::Avx512, 16) => 0,
            (Level::Avx512, _) => 1,
            (_, 8) => 2,
            _ => 3,
        }]
    }

    /// Loads integers of 8 or 16 bits.
    #[rustfmt::skip]
    pub(super) fn load_narrow(&mut self, to: Operand, from: Operand, storage: Storage) -> Result<(), IcedError> {
        use Code::*;
        let codes = match storage {
            Storage::Int8 => [EVEX_Vpmovsxbd_zmm_k1z_xmmm128, EVEX_Vpmovsxbd_ymm_k1z_xmmm64, VEX_Vpmovsxbd_ymm_xmmm64, VEX_Vpmovsxbd_xmm_xmmm32],
            Storage::UInt8 => [EVEX_Vpmovzxbd_zmm_k1z_xmmm128, EVEX_Vpmovzxbd_ymm_k1z_xmmm64, VEX_Vpmovzxbd_ymm_xmmm64, VEX_Vpmovzxbd_xmm_xmmm32],
            Storage::Int16 => [EVEX_Vpmovsxwd_zmm_k1z_ymmm256, EVEX_Vpmovsxwd_ymm_k1z_xmmm128, VEX_Vpmovsxwd_ymm_xmmm128, VEX_Vpmovsxwd_xmm_xmmm64],
            _ => [EVEX_Vpmovzxwd_zmm_k1z_ymmm256, EVEX_Vpmovzxwd_ymm_k1z_xmmm128, VEX_Vpmovzxwd_ymm_xmmm128, VEX_Vpmovzxwd_xmm_xmmm64],
        };
        self.emit(self.of_shape(codes), &[to, from])
    }

    /// Stores the lowest byte, or the lowest two, of each number. AVX2 needs the other bytes to be 0, and the help of a vector register.
    #[rustfmt::skip]
    pub(super) fn store_narrow(&mut self, to: Operand, value: Operand, bytes: usize, helper: usize) -> Result<(), IcedError> {
        use Code::*;
        let [byte, two] = [
            [EVEX_Vpmovdb_xmmm128_k1z_zmm, EVEX_Vpmovdb_xmmm64_k1z_ymm, VEX_Vmovq_rm64_xmm, VEX_Vmovd_rm32_xmm],
            [EVEX_Vpmovdw_ymmm256_k1z_zmm, EVEX_Vpmovdw_xmmm128_k1z_ymm, VEX_Vmovups_xmmm128_xmm, VEX_Vmovq_rm64_xmm],
        ];
        let store = self.of_shape(if bytes == 1 { byte } else { two });
        if self.shape.level == Level::Avx512 {
            return self.emit(store, &[to, value]);
        }
        let packed = Operand::Register(vector(helper, 16));
        let lower = half(value);
        let upper = if self.shape.lanes == 8 { self.upper_half(value)? } else { lower };
        self.emit(VEX_Vpackusdw_xmm_xmm_xmmm128, &[packed, lower, upper])?;
        if bytes == 1 {
            self.emit(VEX_Vpackuswb_xmm_xmm_xmmm128, &[packed, packed, packed])?;
        }
        self.emit(store, &[to, packed])
    }
}
