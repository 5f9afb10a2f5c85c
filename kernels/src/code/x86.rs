//! The instructions of x86-64 for each operation, as a table.

use iced_x86::{Code, Register};

use super::form::{Op, Width};
use crate::runtime::simd::Level;

/// The size in bytes of a vector register at a level.
pub fn vector_bytes(level: Level) -> usize {
    if level == Level::Avx512 { 64 } else { 32 }
}

/// A vector register of this size.
pub fn vector(number: usize, bytes: usize) -> Register {
    let first = match bytes {
        64 => Register::ZMM0,
        32 => Register::YMM0,
        _ => Register::XMM0,
    };
    first + number as u32
}

/// A mask register of AVX-512.
pub fn mask(number: usize) -> Register {
    Register::K0 + number as u32
}

/// The first of an instruction's variants. [`Code`] lists the variants by encoding, then by size: XMM, YMM and, with EVEX, ZMM.
#[derive(Clone, Copy, Debug)]
pub enum Variants {
    /// VEX, then EVEX.
    Both(Code),
    /// VEX, then EVEX, where each encoding is first listed for singles, then for doubles.
    Paired(Code, Width),
    /// VEX only.
    Vex(Code),
    /// EVEX only.
    Evex(Code),
}

impl Variants {
    /// The variant for vectors of this size. AVX-512 uses EVEX, which has 32 registers and broadcasts from memory.
    pub fn at(self, level: Level, bytes: usize) -> Code {
        let (first, skipped) = match self {
            Variants::Both(first) => (first, 2),
            Variants::Paired(first, Width::Single) => (first, 4),
            Variants::Paired(first, Width::Double) => (first, 5),
            Variants::Vex(first) | Variants::Evex(first) => (first, 0),
        };
        let size = bytes.ilog2() as usize - 4;
        let skipped = if level == Level::Avx512 { skipped } else { 0 };
        Code::try_from(first as usize + skipped + size).unwrap_or(Code::INVALID)
    }
}

/// The orders of the operands of a fused product, as the instruction set names them: the first two are multiplied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fused {
    Of132,
    Of213,
    Of231,
}

macro_rules! table {
    ($width:expr; $($encodings:ident $pattern:pat => $single:ident $double:ident;)*) => {
        |op| match op {
            $($pattern => Some(table!(@ $encodings, $width, match $width {
                Width::Single => Code::$single,
                Width::Double => Code::$double,
            })),)*
            #[allow(unreachable_patterns)]
            _ => None,
        }
    };
    (@ Paired, $width:expr, $code:expr) => { Variants::Paired($code, $width) };
    (@ $encodings:ident, $width:expr, $code:expr) => { Variants::$encodings($code) };
}

/// The instruction for an operation on operands of this width.
#[rustfmt::skip]
pub fn variants(op: Op, width: Width, level: Level) -> Option<Variants> {
    use Op::*;
    let common = table! { width;
        Both Add => VEX_Vaddps_xmm_xmm_xmmm128 VEX_Vaddpd_xmm_xmm_xmmm128;
        Both Subtract => VEX_Vsubps_xmm_xmm_xmmm128 VEX_Vsubpd_xmm_xmm_xmmm128;
        Both Multiply | MultiplyIf => VEX_Vmulps_xmm_xmm_xmmm128 VEX_Vmulpd_xmm_xmm_xmmm128;
        Both Divide => VEX_Vdivps_xmm_xmm_xmmm128 VEX_Vdivpd_xmm_xmm_xmmm128;
        Both Sqrt => VEX_Vsqrtps_xmm_xmmm128 VEX_Vsqrtpd_xmm_xmmm128;
        Both Min => VEX_Vminps_xmm_xmm_xmmm128 VEX_Vminpd_xmm_xmm_xmmm128;
        Both Max => VEX_Vmaxps_xmm_xmm_xmmm128 VEX_Vmaxpd_xmm_xmm_xmmm128;
        Both And => VEX_Vandps_xmm_xmm_xmmm128 VEX_Vandpd_xmm_xmm_xmmm128;
        Both Or => VEX_Vorps_xmm_xmm_xmmm128 VEX_Vorpd_xmm_xmm_xmmm128;
        Both Xor => VEX_Vxorps_xmm_xmm_xmmm128 VEX_Vxorpd_xmm_xmm_xmmm128;
        Both AndNot => VEX_Vandnps_xmm_xmm_xmmm128 VEX_Vandnpd_xmm_xmm_xmmm128;
        Both AddInt => VEX_Vpaddd_xmm_xmm_xmmm128 VEX_Vpaddq_xmm_xmm_xmmm128;
        Both SubtractInt => VEX_Vpsubd_xmm_xmm_xmmm128 VEX_Vpsubq_xmm_xmm_xmmm128;
        Both MultiplyInt => VEX_Vpmulld_xmm_xmm_xmmm128 VEX_Vpmuludq_xmm_xmm_xmmm128;
        Both ShiftLeft(_) => VEX_Vpslld_xmm_xmm_imm8 VEX_Vpsllq_xmm_xmm_imm8;
        Both ShiftRight(_) => VEX_Vpsrld_xmm_xmm_imm8 VEX_Vpsrlq_xmm_xmm_imm8;
        Paired ShiftLeftBy => VEX_Vpsllvd_xmm_xmm_xmmm128 VEX_Vpsllvq_xmm_xmm_xmmm128;
        Paired ShiftRightBy => VEX_Vpsrlvd_xmm_xmm_xmmm128 VEX_Vpsrlvq_xmm_xmm_xmmm128;
        Both Less | LessEqual | Equal | Unequal => VEX_Vcmpps_xmm_xmm_xmmm128_imm8 VEX_Vcmppd_xmm_xmm_xmmm128_imm8;
        Both EqualInt => VEX_Vpcmpeqd_xmm_xmm_xmmm128 VEX_Vpcmpeqq_xmm_xmm_xmmm128;
        Both GreaterSigned => VEX_Vpcmpgtd_xmm_xmm_xmmm128 VEX_Vpcmpgtq_xmm_xmm_xmmm128;
        Both OfSigned => VEX_Vcvtdq2ps_xmm_xmmm128 INVALID;
        Both Narrow => VEX_Vcvtpd2ps_xmm_xmmm128 INVALID;
        Both Widen => INVALID VEX_Vcvtps2pd_xmm_xmmm64;
        Both WidenBits => INVALID VEX_Vpmovzxdq_xmm_xmmm64;
    };
    let evex = table! { width;
        Evex MultiplyWrapping => EVEX_Vpmulld_xmm_k1z_xmm_xmmm128b32 EVEX_Vpmullq_xmm_k1z_xmm_xmmm128b64;
        Evex ShiftRightSignedBy => EVEX_Vpsravd_xmm_k1z_xmm_xmmm128b32 EVEX_Vpsravq_xmm_k1z_xmm_xmmm128b64;
        Evex NarrowBits => EVEX_Vpmovqd_xmmm64_k1z_xmm INVALID;
        Evex Round(_) => EVEX_Vrndscaleps_xmm_k1z_xmmm128b32_imm8 EVEX_Vrndscalepd_xmm_k1z_xmmm128b64_imm8;
        Evex LessInt => EVEX_Vpcmpud_kr_k1_xmm_xmmm128b32_imm8 EVEX_Vpcmpuq_kr_k1_xmm_xmmm128b64_imm8;
        Evex IsNegative => EVEX_Vpmovd2m_kr_xmm EVEX_Vpmovq2m_kr_xmm;
        Evex Select => EVEX_Vblendmps_xmm_k1z_xmm_xmmm128b32 EVEX_Vblendmpd_xmm_k1z_xmm_xmmm128b64;
    };
    let vex = table! { width;
        Vex MultiplyWrapping => VEX_Vpmulld_xmm_xmm_xmmm128 INVALID;
        Vex ShiftRightSignedBy => VEX_Vpsravd_xmm_xmm_xmmm128 INVALID;
        Vex Round(_) => VEX_Vroundps_xmm_xmmm128_imm8 VEX_Vroundpd_xmm_xmmm128_imm8;
        Vex IsNegative => VEX_Vpsrad_xmm_xmm_imm8 INVALID;
        Vex Select => VEX_Vblendvps_xmm_xmm_xmmm128_xmm VEX_Vblendvpd_xmm_xmm_xmmm128_xmm;
        Vex WidenTruth => INVALID VEX_Vpmovsxdq_xmm_xmmm64;
    };
    common(op).or_else(|| if level == Level::Avx512 { evex(op) } else { vex(op) })
}

/// The instruction for `±(a · b) ± c`.
#[rustfmt::skip]
pub fn fused(order: Fused, minus: bool, less: bool, width: Width) -> Variants {
    use Fused::{Of132, Of213, Of231};
    let of = table! { width;
        Paired (Of132, false, false) => VEX_Vfmadd132ps_xmm_xmm_xmmm128 VEX_Vfmadd132pd_xmm_xmm_xmmm128;
        Paired (Of213, false, false) => VEX_Vfmadd213ps_xmm_xmm_xmmm128 VEX_Vfmadd213pd_xmm_xmm_xmmm128;
        Paired (Of231, false, false) => VEX_Vfmadd231ps_xmm_xmm_xmmm128 VEX_Vfmadd231pd_xmm_xmm_xmmm128;
        Paired (Of132, false, true) => VEX_Vfmsub132ps_xmm_xmm_xmmm128 VEX_Vfmsub132pd_xmm_xmm_xmmm128;
        Paired (Of213, false, true) => VEX_Vfmsub213ps_xmm_xmm_xmmm128 VEX_Vfmsub213pd_xmm_xmm_xmmm128;
        Paired (Of231, false, true) => VEX_Vfmsub231ps_xmm_xmm_xmmm128 VEX_Vfmsub231pd_xmm_xmm_xmmm128;
        Paired (Of132, true, false) => VEX_Vfnmadd132ps_xmm_xmm_xmmm128 VEX_Vfnmadd132pd_xmm_xmm_xmmm128;
        Paired (Of213, true, false) => VEX_Vfnmadd213ps_xmm_xmm_xmmm128 VEX_Vfnmadd213pd_xmm_xmm_xmmm128;
        Paired (Of231, true, false) => VEX_Vfnmadd231ps_xmm_xmm_xmmm128 VEX_Vfnmadd231pd_xmm_xmm_xmmm128;
        Paired (Of132, true, true) => VEX_Vfnmsub132ps_xmm_xmm_xmmm128 VEX_Vfnmsub132pd_xmm_xmm_xmmm128;
        Paired (Of213, true, true) => VEX_Vfnmsub213ps_xmm_xmm_xmmm128 VEX_Vfnmsub213pd_xmm_xmm_xmmm128;
        Paired (Of231, true, true) => VEX_Vfnmsub231ps_xmm_xmm_xmmm128 VEX_Vfnmsub231pd_xmm_xmm_xmmm128;
    };
    of((order, minus, less)).unwrap_or(Variants::Vex(Code::INVALID))
}

/// The last operand of an instruction that has an immediate. Comparisons of floats have other predicates if their operands are
/// exchanged.
pub fn immediate(op: Op, level: Level, is_exchanged: bool) -> Option<u32> {
    Some(match op {
        Op::ShiftLeft(count) | Op::ShiftRight(count) => count,
        // Without an exception for an inexact result.
        Op::Round(rounding) => rounding as u32 | 8,
        Op::Equal => 0,
        Op::Unequal => 4,
        Op::Less | Op::LessInt => {
            if is_exchanged {
                14
            } else {
                1
            }
        }
        Op::LessEqual => {
            if is_exchanged {
                13
            } else {
                2
            }
        }
        Op::IsNegative if level != Level::Avx512 => 31,
        _ => return None,
    })
}
