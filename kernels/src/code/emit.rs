//! [`Emitter`]: encodes instructions, and accesses memory.

use iced_x86::{Code, Encoder, IcedError, Instruction, OpKind, Register};

use super::accumulator::Accumulator;
use super::form::{Id, Node, Op, Width};
use super::output::Output;
use super::whole_row::WholeRow;
use super::x86::{variants, vector};
use crate::program::Storage;
use crate::runtime::simd::Level;

/// The registers of the arguments: the number of elements, the inputs, the outputs, the uniforms, memory for values, and the row strides.
pub(super) const COUNT: Register = Register::RDI;
pub(super) const INPUTS: Register = Register::RSI;
pub(super) const OUTPUTS: Register = Register::RDX;
pub(super) const UNIFORMS: Register = Register::RCX;
const SLOTS: Register = Register::R8;
pub(super) const STRIDES: Register = Register::R9;
/// The first element of the current iteration.
pub(super) const ELEMENT: Register = Register::RAX;
/// The end of the current run, if there are accumulators. The register belongs to the caller, so it is saved.
pub(super) const RUN_END: Register = Register::RBX;
/// The row strides within a loop over rows. The register belongs to the caller, so it is saved.
pub(super) const KEPT_STRIDES: Register = Register::R12;
/// The starts of inputs and outputs. The last is that of all operands for which there is no other.
const STARTS: [Register; 3] = [Register::R9, Register::R10, Register::R11];

/// The vector register that loads truth values with AVX-512.
pub const TRUTH_HELPER: usize = 31;

/// The size in bytes of a slot of memory for a value.
pub const SLOT: usize = 64;

/// The vectors of a loop.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub level: Level,
    /// The number of elements in a vector.
    pub lanes: usize,
    /// The number of vectors whose instructions alternate.
    pub copies: usize,
    /// The number of groups of that many vectors in an iteration, one after the other.
    pub groups: usize,
    /// Whether the loop runs for several rows, one after the other.
    pub has_rows: bool,
    /// Whether the code for the last elements of each row follows, if they are no whole block.
    pub has_tail: bool,
    /// Whether stores of [non-temporal](Storage::NonTemporal) outputs bypass the cache. Then each vector of such an output is aligned.
    pub bypasses: bool,
}

impl Shape {
    /// The number of elements in an iteration.
    pub fn step(&self) -> usize {
        self.lanes * self.copies * self.groups
    }
}

/// An operand of an instruction.
#[derive(Clone, Copy, Debug)]
pub enum Operand {
    Register(Register),
    Memory {
        base: Register,
        index: Register,
        scale: u32,
        displacement: i64,
        /// Whether all elements are one number.
        is_broadcast: bool,
    },
    Immediate(u32),
}

/// Memory at a distance from a register.
pub(super) fn memory(base: Register, displacement: i64) -> Operand {
    Operand::Memory { base, index: Register::None, scale: 1, displacement, is_broadcast: false }
}

pub struct Emitter<'a> {
    pub shape: Shape,
    /// The position of each node that is a constant.
    pub constants: &'a [i64],
    pub(super) encoder: Encoder,
    pub(super) ip: u64,
    /// Whether the code for the last elements of a row is emitted.
    pub(super) is_tail: bool,
    /// The end of the instruction that skips it.
    pub(super) skip: u64,
    /// The inputs and outputs, as an array of pointers and a position, whose start is in each of `STARTS`.
    started: [Option<(Register, usize)>; STARTS.len()],
    /// The current group of vectors.
    pub group: usize,
    pub(super) accumulators: &'a [Accumulator],
    /// The addresses of the loop over runs, of the loop over iterations, and of the loop over rows.
    pub(super) tops: [u64; 3],
    /// The inputs and outputs that have elements, as for `started`.
    pub(super) operands: Vec<(Register, usize)>,
    /// The rows, if each is computed as a whole.
    pub(super) row: Option<&'a WholeRow<'a>>,
}

impl<'a> Emitter<'a> {
    pub fn new(
        shape: Shape,
        constants: &'a [i64],
        start: u64,
        accumulators: &'a [Accumulator],
        row: Option<&'a WholeRow<'a>>,
    ) -> Emitter<'a> {
        let (encoder, started) = (Encoder::new(64), [None; STARTS.len()]);
        Emitter {
            shape,
            constants,
            encoder,
            ip: start,
            is_tail: false,
            skip: 0,
            started,
            group: 0,
            accumulators,
            tops: [0; 3],
            operands: vec![],
            row,
        }
    }

    /// The start of the loop over these inputs and outputs.
    pub fn begin(&mut self, inputs: &[usize], outputs: usize) -> Result<(), IcedError> {
        if !self.accumulators.is_empty() {
            self.emit(Code::Push_r64, &[Operand::Register(RUN_END)])?;
        }
        let operands = inputs.iter().map(|k| (INPUTS, *k)).chain((0..outputs).map(|k| (OUTPUTS, k)));
        self.operands = operands.collect();
        if let Some(row) = self.row {
            self.load_mask(row)?;
        }
        if self.shape.has_rows {
            self.begin_rows()?;
        }
        self.emit(Code::Xor_r32_rm32, &[Operand::Register(Register::EAX), Operand::Register(Register::EAX)])?;
        let operands = self.operands.clone();
        // If there are too few registers, the last one changes within the loop.
        let kept = if operands.len() > STARTS.len() { STARTS.len() - 1 } else { operands.len() };
        for (at, (pointers, k)) in operands.into_iter().take(kept).enumerate() {
            self.start(at, pointers, k)?;
        }
        self.begin_runs()?;
        self.tops[1] = self.ip;
        Ok(())
    }

    /// Loads the start of an input or output.
    fn start(&mut self, at: usize, pointers: Register, k: usize) -> Result<(), IcedError> {
        self.started[at] = Some((pointers, k));
        self.emit(Code::Mov_r64_rm64, &[Operand::Register(STARTS[at]), memory(pointers, 8 * k as i64)])
    }

    /// Ends the loops over blocks and runs.
    pub fn end_blocks(&mut self) -> Result<(), IcedError> {
        let step = Operand::Immediate(self.shape.step() as u32);
        self.emit(Code::Add_rm64_imm32, &[Operand::Register(ELEMENT), step])?;
        let end = if self.accumulators.is_empty() { COUNT } else { RUN_END };
        self.emit(Code::Cmp_rm64_r64, &[Operand::Register(ELEMENT), Operand::Register(end)])?;
        self.encode(&Instruction::with_branch(Code::Jb_rel32_64, self.tops[1])?)?;
        self.end_runs()
    }

    /// Ends the code, and returns it. `inputs` is the number of inputs.
    pub fn end(mut self, inputs: usize) -> Result<Vec<u8>, IcedError> {
        self.end_extrema()?;
        if self.shape.has_rows {
            self.end_rows(inputs)?;
        }
        if !self.accumulators.is_empty() {
            self.emit(Code::Pop_r64, &[Operand::Register(RUN_END)])?;
        }
        if self.shape.bypasses {
            // Other threads see these stores only after a fence.
            self.emit(Code::Sfence, &[])?;
        }
        self.emit(Code::VEX_Vzeroupper, &[])?;
        self.emit(Code::Retnq, &[])?;
        Ok(self.encoder.take_buffer())
    }

    pub fn emit(&mut self, code: Code, operands: &[Operand]) -> Result<(), IcedError> {
        self.encode(&instruction(code, operands)?)
    }

    /// An instruction with the operands that exist.
    pub fn emit_some(&mut self, code: Code, operands: [Option<Operand>; 4]) -> Result<(), IcedError> {
        self.emit(code, &operands.into_iter().flatten().collect::<Vec<_>>())
    }

    pub(super) fn encode(&mut self, instruction: &Instruction) -> Result<(), IcedError> {
        let size = self.encoder.encode(instruction, self.ip);
        debug_assert!(size.is_ok(), "{size:?}: {instruction:?}");
        self.ip += size? as u64;
        Ok(())
    }

    /// A constant in memory.
    pub fn constant(&self, at: i64) -> Operand {
        let is_broadcast = self.shape.level == Level::Avx512;
        Operand::Memory { base: Register::RIP, index: Register::None, scale: 1, displacement: at, is_broadcast }
    }

    /// A slot of memory for a value.
    pub fn slot(&self, slot: usize) -> Operand {
        memory(SLOTS, (slot * SLOT) as i64)
    }

    /// Copies a vector or a mask to a register.
    pub fn load(&mut self, to: Operand, from: Operand) -> Result<(), IcedError> {
        let Operand::Register(register) = to else { return Ok(()) };
        let [load, _] = self.moves(register);
        self.emit(load, &[to, from])
    }

    pub(super) fn store(&mut self, to: Operand, from: Operand) -> Result<(), IcedError> {
        let Operand::Register(register) = from else { return Ok(()) };
        let [_, store] = self.moves(register);
        self.emit(store, &[to, from])
    }

    /// Stores a vector without reading its place into the cache.
    fn store_past_cache(&mut self, to: Operand, from: Operand) -> Result<(), IcedError> {
        let Operand::Register(register) = from else { return Ok(()) };
        let code = match self.shape.level {
            Level::Avx512 if register.is_zmm() => Code::EVEX_Vmovntps_m512_zmm,
            Level::Avx512 if register.is_ymm() => Code::EVEX_Vmovntps_m256_ymm,
            _ if register.is_ymm() => Code::VEX_Vmovntps_m256_ymm,
            _ => Code::VEX_Vmovntps_m128_xmm,
        };
        self.emit(code, &[to, from])
    }

    /// The instructions that load and store a register.
    pub(super) fn moves(&self, register: Register) -> [Code; 2] {
        match register {
            r if r.is_k() => [Code::VEX_Kmovw_kr_km16, Code::VEX_Kmovw_m16_kr],
            r if r.is_zmm() => [Code::EVEX_Vmovups_zmm_k1z_zmmm512, Code::EVEX_Vmovups_zmmm512_k1z_zmm],
            r if r.is_ymm() && self.shape.level == Level::Avx512 => {
                [Code::EVEX_Vmovups_ymm_k1z_ymmm256, Code::EVEX_Vmovups_ymmm256_k1z_ymm]
            }
            r if r.is_ymm() => [Code::VEX_Vmovups_ymm_ymmm256, Code::VEX_Vmovups_ymmm256_ymm],
            _ if self.shape.level == Level::Avx512 => {
                [Code::EVEX_Vmovups_xmm_k1z_xmmm128, Code::EVEX_Vmovups_xmmm128_k1z_xmm]
            }
            _ => [Code::VEX_Vmovups_xmm_xmmm128, Code::VEX_Vmovups_xmmm128_xmm],
        }
    }

    /// Stores a value in a slot.
    pub fn spill(&mut self, slot: usize, from: Operand) -> Result<(), IcedError> {
        self.store(self.slot(slot), from)
    }

    /// Fills a register with a constant.
    pub(super) fn load_constant(&mut self, to: Operand, at: i64, width: Width) -> Result<(), IcedError> {
        match self.shape.level {
            Level::Avx512 => self.broadcast(to, memory(Register::RIP, at), width),
            _ => self.load(to, memory(Register::RIP, at)),
        }
    }

    /// Fills a register with one number from memory or from the first lane of another register.
    pub(super) fn broadcast(&mut self, to: Operand, from: Operand, width: Width) -> Result<(), IcedError> {
        let Operand::Register(register) = to else { return Ok(()) };
        let is_avx512 = self.shape.level == Level::Avx512;
        let is_memory = matches!(from, Operand::Memory { .. });
        let code = match (width, is_avx512) {
            (Width::Single, true) if register.is_zmm() => Code::EVEX_Vbroadcastss_zmm_k1z_xmmm32,
            (Width::Single, true) if register.is_ymm() => Code::EVEX_Vbroadcastss_ymm_k1z_xmmm32,
            (Width::Single, true) => Code::EVEX_Vbroadcastss_xmm_k1z_xmmm32,
            (Width::Double, true) if register.is_zmm() => Code::EVEX_Vbroadcastsd_zmm_k1z_xmmm64,
            (Width::Double, true) => Code::EVEX_Vmovddup_xmm_k1z_xmmm64,
            (Width::Single, false) if register.is_ymm() && is_memory => Code::VEX_Vbroadcastss_ymm_m32,
            (Width::Single, false) if register.is_ymm() => Code::VEX_Vbroadcastss_ymm_xmm,
            (Width::Single, false) if is_memory => Code::VEX_Vbroadcastss_xmm_m32,
            (Width::Single, false) => Code::VEX_Vbroadcastss_xmm_xmm,
            (Width::Double, false) if register.is_xmm() => Code::VEX_Vmovddup_xmm_xmmm64,
            (Width::Double, false) if is_memory => Code::VEX_Vbroadcastsd_ymm_m64,
            (Width::Double, false) => Code::VEX_Vbroadcastsd_ymm_xmm,
        };
        self.emit(code, &[to, from])
    }

    /// Loads a node without operands.
    pub fn leaf(&mut self, to: Operand, id: Id, node: &Node, copy: usize) -> Result<(), IcedError> {
        let size = node.width as usize;
        match node.op {
            Op::Input(k, storage) => {
                let k = k as usize;
                if storage == Storage::One {
                    let first = memory(self.start_of(INPUTS, k)?, 0);
                    return self.broadcast(to, first, node.width);
                }
                let from = self.element(INPUTS, k, storage.step(size), copy)?;
                if self.is_tail {
                    return self.move_existing(to, from, node.width, copy);
                }
                match storage {
                    Storage::Own => self.load(to, from),
                    Storage::EveryOther => self.load_every_other(to, from),
                    narrow if narrow.is_narrow() => self.load_narrow(to, from, narrow),
                    _ => self.load_half(to, from, storage),
                }
            }
            Op::Test(k) => {
                let from = self.element(INPUTS, k as usize, 1, copy)?;
                self.load_truth(to, from, node.width)
            }
            Op::Uniform(k) => self.broadcast(to, memory(UNIFORMS, (k as usize * size) as i64), node.width),
            Op::Truth(value) => {
                self.emit(if value { Code::VEX_Kxnorw_kr_kr_kr } else { Code::VEX_Kxorw_kr_kr_kr }, &[to, to, to])
            }
            _ => self.load_constant(to, self.constants[id as usize], node.width),
        }
    }

    /// The instruction for an operation on vectors of this size.
    pub fn code_of(&self, op: Op, width: Width, bytes: usize) -> Code {
        variants(op, width, self.shape.level).map_or(Code::INVALID, |found| found.at(self.shape.level, bytes))
    }

    /// The current elements of an input that is stored as numbers of the program.
    pub fn input(&mut self, k: usize, width: Width, copy: usize) -> Result<Operand, IcedError> {
        self.element(INPUTS, k, width as usize, copy)
    }

    /// The register with the start of an input or output.
    pub(super) fn start_of(&mut self, pointers: Register, k: usize) -> Result<Register, IcedError> {
        let last = STARTS.len() - 1;
        let at = match self.started.iter().position(|started| *started == Some((pointers, k))) {
            Some(at) => at,
            None => {
                self.start(last, pointers, k)?;
                last
            }
        };
        Ok(STARTS[at])
    }

    /// The current elements of an input or output, whose size in bytes is `size`.
    fn element(&mut self, pointers: Register, k: usize, size: usize, copy: usize) -> Result<Operand, IcedError> {
        let base = self.start_of(pointers, k)?;
        let displacement = ((self.group * self.shape.copies + copy) * self.shape.lanes * size) as i64;
        Ok(Operand::Memory { base, index: ELEMENT, scale: size as u32, displacement, is_broadcast: false })
    }

    /// The current elements of an output.
    pub fn output_place(&mut self, k: usize, output: Output, width: Width, copy: usize) -> Result<Operand, IcedError> {
        self.element(OUTPUTS, k, output.size(width), copy)
    }

    /// Stores an output, with the help of a vector register if the output [needs](Output::needs_helper) one.
    pub fn store_output(
        &mut self,
        (k, output): (usize, Output),
        copy: usize,
        value: Operand,
        width: Width,
        helper: usize,
    ) -> Result<(), IcedError> {
        let to = self.output_place(k, output, width, copy)?;
        match output {
            Output::Truth => self.store_truth(to, value, helper),
            Output::Number(Storage::Float16) => self.store_float16(to, value),
            Output::Number(storage) if storage.is_lowest_bits() => {
                self.store_narrow(to, value, storage.step(width as usize), helper)
            }
            Output::Number(_) if self.is_tail => self.move_existing(to, value, width, copy),
            Output::Number(Storage::NonTemporal) if self.shape.bypasses => self.store_past_cache(to, value),
            Output::Number(_) => self.store(to, value),
        }
    }

    /// Loads bytes as truth values: true if not 0.
    fn load_truth(&mut self, to: Operand, from: Operand, width: Width) -> Result<(), IcedError> {
        // The memory before the code begins with zeros.
        let zero = memory(Register::RIP, 0);
        let low = Operand::Register(vector(TRUTH_HELPER, 16));
        let (load, loaded, test, zero) = match (self.shape.level, width, self.shape.lanes) {
            (Level::Avx512, _, 16) => {
                (Code::EVEX_Vmovdqu8_xmm_k1z_xmmm128, low, Code::EVEX_Vptestmb_kr_k1_xmm_xmmm128, low)
            }
            (Level::Avx512, ..) => (Code::EVEX_Vmovq_xmm_rm64, low, Code::EVEX_Vptestmb_kr_k1_xmm_xmmm128, low),
            (_, Width::Single, 8) => (Code::VEX_Vpmovzxbd_ymm_xmmm64, to, Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256, zero),
            (_, Width::Single, _) => (Code::VEX_Vpmovzxbd_xmm_xmmm32, to, Code::VEX_Vpcmpgtd_xmm_xmm_xmmm128, zero),
            (_, Width::Double, _) => (Code::VEX_Vpmovzxbq_ymm_xmmm32, to, Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256, zero),
        };
        self.emit(load, &[loaded, from])?;
        self.emit(test, &[to, loaded, zero])
    }

    /// Stores truth values as bytes, 0 or 1, with the help of a vector register.
    fn store_truth(&mut self, to: Operand, value: Operand, helper: usize) -> Result<(), IcedError> {
        let low = Operand::Register(vector(helper, 16));
        let lanes = self.shape.lanes;
        if self.shape.level == Level::Avx512 {
            self.emit(Code::EVEX_Vpmovm2b_xmm_kr, &[low, value])?;
            self.emit(Code::EVEX_Vpabsb_xmm_k1z_xmmm128, &[low, low])?;
        } else {
            let lower = half(value);
            let upper = if lanes == 8 { self.upper_half(value)? } else { lower };
            self.emit(Code::VEX_Vpackssdw_xmm_xmm_xmmm128, &[low, lower, upper])?;
            self.emit(Code::VEX_Vpacksswb_xmm_xmm_xmmm128, &[low, low, low])?;
            self.emit(Code::VEX_Vpabsb_xmm_xmmm128, &[low, low])?;
        }
        let code = match (self.shape.level, lanes) {
            (Level::Avx512, 16) => Code::EVEX_Vmovdqu8_xmmm128_k1z_xmm,
            (Level::Avx512, _) => Code::EVEX_Vmovq_rm64_xmm,
            (_, 8) => Code::VEX_Vmovq_rm64_xmm,
            _ => Code::VEX_Vmovd_rm32_xmm,
        };
        self.emit(code, &[to, low])
    }

    /// The lower half of each number of 64 bits, with AVX2.
    pub fn narrow_bits(&mut self, to: Operand, from: Operand) -> Result<(), IcedError> {
        let upper = self.upper_half(from)?;
        self.emit(Code::VEX_Vshufps_xmm_xmm_xmmm128_imm8, &[to, half(from), upper, Operand::Immediate(0b10_00_10_00)])
    }

    /// The upper half of a YMM register, in the first slot.
    pub(super) fn upper_half(&mut self, from: Operand) -> Result<Operand, IcedError> {
        let slot = self.slot(0);
        self.emit(Code::VEX_Vextracti128_xmmm128_ymm_imm8, &[slot, from, Operand::Immediate(1)])?;
        Ok(slot)
    }

    /// An instruction whose result is 0 where a mask register has no bit.
    pub fn emit_where(&mut self, code: Code, operands: [Operand; 3], condition: Operand) -> Result<(), IcedError> {
        let mut instruction = instruction(code, &operands)?;
        if let Operand::Register(mask) = condition {
            instruction.set_op_mask(mask);
            instruction.set_zeroing_masking(true);
        }
        self.encode(&instruction)
    }

    /// Selects by a mask register, or with AVX2 by a vector.
    pub fn select(&mut self, code: Code, [out, b, a]: [Operand; 3], condition: Operand) -> Result<(), IcedError> {
        match condition {
            Operand::Register(k) if k.is_k() => {
                let mut select = instruction(code, &[out, b, a])?;
                select.set_op_mask(k);
                self.encode(&select)
            }
            _ => self.emit(code, &[out, b, a, condition]),
        }
    }
}

/// The lower half of a YMM register.
pub(super) fn half(register: Operand) -> Operand {
    match register {
        Operand::Register(r) if r.is_zmm() => Operand::Register(Register::YMM0 + (r as u32 - Register::ZMM0 as u32)),
        Operand::Register(r) if r.is_ymm() => Operand::Register(Register::XMM0 + (r as u32 - Register::YMM0 as u32)),
        other => other,
    }
}

pub(super) fn instruction(code: Code, operands: &[Operand]) -> Result<Instruction, IcedError> {
    let mut instruction = Instruction::default();
    instruction.set_code(code);
    for (k, operand) in operands.iter().enumerate() {
        let k = k as u32;
        match *operand {
            Operand::Register(register) => {
                instruction.try_set_op_kind(k, OpKind::Register)?;
                instruction.try_set_op_register(k, register)?;
            }
            Operand::Memory { base, index, scale, displacement, is_broadcast } => {
                instruction.try_set_op_kind(k, OpKind::Memory)?;
                instruction.set_memory_base(base);
                instruction.set_memory_index(index);
                instruction.set_memory_index_scale(scale);
                instruction.set_memory_displacement64(displacement as u64);
                instruction.set_memory_displ_size(if base == Register::RIP { 8 } else { 1 });
                instruction.set_is_broadcast(is_broadcast);
            }
            Operand::Immediate(value) => {
                let is_wide = matches!(code, Code::Add_rm64_imm32 | Code::Test_rm64_imm32);
                instruction.try_set_op_kind(k, if is_wide { OpKind::Immediate32to64 } else { OpKind::Immediate8 })?;
                match is_wide {
                    true => instruction.set_immediate32to64(value.into()),
                    false => instruction.set_immediate8(value as u8),
                }
            }
        }
    }
    Ok(instruction)
}
