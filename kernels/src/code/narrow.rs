//! Integers of 8 and 16 bits: loads widen them to 32 bits, and stores keep the lower bits.

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
    /// Loads integers of 8 or 16 bits.
    pub(super) fn load_narrow(&mut self, to: Operand, from: Operand, storage: Storage) -> Result<(), IcedError> {
        macro_rules! of_size {
            ($zmm:ident $evex:ident $ymm:ident $xmm:ident) => {
                match (self.shape.level, self.shape.lanes) {
                    (Level::Avx512, 16) => Code::$zmm,
                    (Level::Avx512, _) => Code::$evex,
                    (_, 8) => Code::$ymm,
                    _ => Code::$xmm,
                }
            };
        }
        #[rustfmt::skip]
        let code = match storage {
            Storage::Int8 => of_size!(EVEX_Vpmovsxbd_zmm_k1z_xmmm128 EVEX_Vpmovsxbd_ymm_k1z_xmmm64 VEX_Vpmovsxbd_ymm_xmmm64 VEX_Vpmovsxbd_xmm_xmmm32),
            Storage::UInt8 => of_size!(EVEX_Vpmovzxbd_zmm_k1z_xmmm128 EVEX_Vpmovzxbd_ymm_k1z_xmmm64 VEX_Vpmovzxbd_ymm_xmmm64 VEX_Vpmovzxbd_xmm_xmmm32),
            Storage::Int16 => of_size!(EVEX_Vpmovsxwd_zmm_k1z_ymmm256 EVEX_Vpmovsxwd_ymm_k1z_xmmm128 VEX_Vpmovsxwd_ymm_xmmm128 VEX_Vpmovsxwd_xmm_xmmm64),
            _ => of_size!(EVEX_Vpmovzxwd_zmm_k1z_ymmm256 EVEX_Vpmovzxwd_ymm_k1z_xmmm128 VEX_Vpmovzxwd_ymm_xmmm128 VEX_Vpmovzxwd_xmm_xmmm64),
        };
        self.emit(code, &[to, from])
    }

    /// Stores the lowest byte of each number, whose other bytes are 0, with the help of a vector register.
    pub(super) fn store_lowest_byte(&mut self, to: Operand, value: Operand, helper: usize) -> Result<(), IcedError> {
        let lanes = self.shape.lanes;
        match (self.shape.level, lanes) {
            (Level::Avx512, 16) => return self.emit(Code::EVEX_Vpmovdb_xmmm128_k1z_zmm, &[to, value]),
            (Level::Avx512, _) => return self.emit(Code::EVEX_Vpmovdb_xmmm64_k1z_ymm, &[to, value]),
            _ => {}
        }
        let low = Operand::Register(vector(helper, 16));
        let lower = half(value);
        let upper = if lanes == 8 { self.upper_half(value)? } else { lower };
        self.emit(Code::VEX_Vpackusdw_xmm_xmm_xmmm128, &[low, lower, upper])?;
        self.emit(Code::VEX_Vpackuswb_xmm_xmm_xmmm128, &[low, low, low])?;
        let store = if lanes == 8 { Code::VEX_Vmovq_rm64_xmm } else { Code::VEX_Vmovd_rm32_xmm };
        self.emit(store, &[to, low])
    }
}
