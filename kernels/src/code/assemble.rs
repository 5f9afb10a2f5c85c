//! Assembles the loop of a form: assigns registers, and chooses instructions.
//!
//! The loop processes several vectors at once. Their instructions alternate, because the instructions for one vector wait for each
//! other. Registers are assigned in the order of the instructions. If there are too few, the value whose next use is the farthest
//! is stored in memory (Belady, 1966). Constants are read from memory where an instruction can do that.
//!
//! The last inputs and outputs may be accumulators: an output replaces its input in the next iteration. They are in registers
//! throughout the loop if there are enough.

use iced_x86::{Code, IcedError};

use super::accumulator::{Accumulator, Place};
use super::emit::{Emitter, Operand, Shape, TRUTH_HELPER};
use super::form::{Form, Id, Node, Op, Output, Width};
use super::registers::{Registers, Value};
use super::tail::MASKS_FOR_VALUES;
use super::x86::{Fused, fused, immediate, mask, variants, vector};
use crate::program::Storage;
use crate::reduce::rows::LANES;
use crate::runtime::simd::Level;

/// The machine code of a loop.
#[derive(Debug)]
pub struct Loop {
    pub bytes: Vec<u8>,
    /// The number of slots of memory for values.
    pub slots: usize,
}

/// The loop over a form, whose code begins at `start`. `outputs` says how the outputs are stored. The last of them belong to
/// the accumulators, whose places are assigned here, and the last of the `inputs` are their values before.
pub fn assemble(
    form: &Form,
    outputs: &[Output],
    shape: Shape,
    constants: &[i64],
    start: u64,
    inputs: usize,
    mut accumulators: Vec<Accumulator>,
) -> Result<Loop, IcedError> {
    let end = form.nodes.len();
    let mut uses = vec![vec![]; end];
    for (at, node) in form.nodes.iter().enumerate() {
        node.operands().iter().for_each(|id| uses[*id as usize].push(at as u32));
    }
    form.outputs.iter().enumerate().for_each(|(k, id)| uses[*id as usize].push((end + k) as u32));
    let is_avx512 = shape.level == Level::Avx512;
    let end_of_vectors = if is_avx512 { TRUTH_HELPER } else { 16 };
    let block = shape.copies * shape.groups;
    let vectors = accumulators.len() * block;
    let first_kept = if vectors <= end_of_vectors / 2 { end_of_vectors - vectors } else { end_of_vectors };
    for (k, accumulator) in accumulators.iter_mut().enumerate() {
        let bytes = accumulator.width as usize * shape.lanes;
        let place = |at: usize| match first_kept + at < end_of_vectors {
            true => Place::Register(vector(first_kept + at, bytes)),
            // The first slot is for instructions that need memory.
            false => Place::Slot(1 + at),
        };
        accumulator.places = (k * block..(k + 1) * block).map(place).collect();
    }
    let taken = if first_kept == end_of_vectors { vectors } else { 0 };
    let mut assembler = Assembler {
        form,
        uses,
        at: 0,
        copy: 0,
        vectors: Registers::new(0, first_kept),
        first_accumulator: inputs - accumulators.len(),
        // K0 stands for no mask.
        masks: Registers::new(1, if shape.has_tail { MASKS_FOR_VALUES } else { 8 }),
        places: vec![Held::default(); end * shape.copies],
        slots: vec![true; 1 + taken],
        vacated: vec![],
        emitter: Emitter::new(shape, constants, start, &accumulators),
    };
    let input = |node: &Node| match node.op {
        Op::Input(k, _) | Op::Test(k) => Some(k as usize),
        _ => None,
    };
    let (first_input, first_output) = (inputs - accumulators.len(), outputs.len() - accumulators.len());
    // Each input once, since the loop over rows moves its pointer.
    let mut read: Vec<usize> = vec![];
    for k in form.nodes.iter().filter_map(input).filter(|k| *k < first_input) {
        if !read.contains(&k) {
            read.push(k);
        }
    }
    assembler.emitter.begin(&read, first_output)?;
    assembler.block(outputs, shape.groups)?;
    assembler.emitter.end_blocks()?;
    if shape.has_tail {
        assembler.emitter.begin_tail()?;
        assembler.block(outputs, LANES / shape.lanes / shape.copies)?;
        assembler.emitter.end_tail()?;
    }
    Ok(Loop { slots: assembler.slots.len(), bytes: assembler.emitter.end(first_input)? })
}

/// Where a value is: in a register, in a slot of memory, in both, or nowhere.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    register: Option<usize>,
    slot: Option<usize>,
}

struct Assembler<'a> {
    form: &'a Form,
    /// The positions that use each node. The outputs follow the nodes.
    uses: Vec<Vec<u32>>,
    /// The current position and copy.
    at: u32,
    copy: usize,
    vectors: Registers,
    /// The number of inputs before those that are accumulators.
    first_accumulator: usize,
    masks: Registers,
    places: Vec<Held>,
    /// Whether each slot is in use.
    slots: Vec<bool>,
    /// Slots that the current instruction may still read.
    vacated: Vec<usize>,
    emitter: Emitter<'a>,
}

impl Assembler<'_> {
    /// Computes some groups of vectors.
    fn block(&mut self, outputs: &[Output], groups: usize) -> Result<(), IcedError> {
        let end = self.form.nodes.len();
        for group in 0..groups {
            self.emitter.group = group;
            for at in 0..end {
                self.at = at as u32;
                for copy in 0..self.emitter.shape.copies {
                    self.copy = copy;
                    self.node(at as Id)?;
                }
            }
            for (k, output) in outputs.iter().enumerate() {
                self.at = (end + k) as u32;
                for copy in 0..self.emitter.shape.copies {
                    self.copy = copy;
                    self.output(k, *output)?;
                }
            }
        }
        Ok(())
    }

    /// Computes a node. Inputs, constants and uniforms are loaded at their uses.
    fn node(&mut self, id: Id) -> Result<(), IcedError> {
        self.begin();
        let node = self.form.nodes[id as usize];
        let Shape { level, .. } = self.emitter.shape;
        let immediate = |is_exchanged| immediate(node.op, level, is_exchanged).map(Operand::Immediate);
        match (node.op, node.operands()) {
            (Op::MulAdd { minus, less }, &[a, b, c]) => self.mul_add(id, (minus, less), [a, b, c])?,
            (Op::Select, &[condition, a, b]) => {
                let condition = self.register(condition)?;
                let b = self.register(b)?;
                let a = self.operand(a)?;
                let out = self.result(id, node.operands())?;
                let code = self.code(node.op, node.width, id);
                self.emitter.select(code, [out, b, a], condition)?;
            }
            (Op::NarrowTruth, &[x]) => {
                let wide = self.register(x)?;
                let out = self.result(id, &[x])?;
                self.emitter.narrow_truth(out, wide)?;
            }
            (Op::NearestFloat16, &[x]) => {
                let source = self.register(x)?;
                let out = self.result(id, &[x])?;
                self.emitter.round_to_float16(out, source)?;
            }
            (Op::Not, &[x]) => {
                let x_register = self.register(x)?;
                let out = self.result(id, &[x])?;
                self.emitter.emit(Code::VEX_Knotw_kr_kr, &[out, x_register])?;
            }
            (Op::Both | Op::Either, &[a, b]) => {
                let (x, y) = (self.register(a)?, self.register(b)?);
                let out = self.result(id, &[a, b])?;
                let code = if node.op == Op::Both { Code::VEX_Kandw_kr_kr_kr } else { Code::VEX_Korw_kr_kr_kr };
                self.emitter.emit(code, &[out, x, y])?;
            }
            (op, &[x]) => {
                let source = self.register(x)?;
                let out = self.result(id, &[x])?;
                // A conversion to half the width is named for its operand, like a test.
                let named = if op == Op::Narrow || op.is_truth() && op != Op::WidenTruth { x } else { id };
                let code = self.code(op, node.width, named);
                self.emitter.emit_some(code, [Some(out), Some(source), immediate(false), None])?;
            }
            (op, &[a, b]) => {
                let is_exchanged =
                    matches!(op, Op::Less | Op::LessEqual) && self.is_constant(a) && !self.is_constant(b);
                let (x, y) = if is_exchanged { (b, a) } else { (a, b) };
                let first = self.register(x)?;
                let second = self.operand(y)?;
                let out = self.result(id, &[a, b])?;
                let code = self.code(op, node.width, a);
                self.emitter.emit_some(code, [Some(out), Some(first), Some(second), immediate(is_exchanged)])?;
            }
            _ => {}
        }
        Ok(())
    }

    /// `±(a · b) ± c`. The instruction replaces an operand: one that is not used again, or a copy of one.
    fn mul_add(&mut self, id: Id, (minus, less): (bool, bool), [a, b, c]: [Id; 3]) -> Result<(), IcedError> {
        for x in [a, b, c] {
            if !self.is_constant(x) && self.read_once(x).is_none() {
                self.register(x)?;
            }
        }
        let is_last = |this: &Self, x: Id| this.is_last_use(x) && this.place(x).register.is_some();
        let is_in_memory = |this: &Self, x: Id| this.place(x).register.is_none();
        let (order, replaced, second, third) = match () {
            () if is_last(self, c) => (Fused::Of231, c, a, b),
            () if is_last(self, a) && is_in_memory(self, b) => (Fused::Of132, a, c, b),
            () if is_last(self, a) => (Fused::Of213, a, b, c),
            () if is_last(self, b) => (Fused::Of213, b, a, c),
            () if is_in_memory(self, b) && !is_in_memory(self, c) => (Fused::Of213, b, a, c),
            () => (Fused::Of231, c, a, b),
        };
        let code =
            fused(order, minus, less, self.form.nodes[id as usize].width).at(self.emitter.shape.level, self.bytes(id));
        if is_last(self, replaced) {
            let old = self.register(replaced)?;
            let second = self.register(second)?;
            let third = self.operand(third)?;
            self.emitter.emit(code, &[old, second, third])?;
            let register = self.place(replaced).register;
            self.release(&[a, b, c]);
            if let Some(register) = register {
                self.vectors.hold(register, Some((id, self.copy)));
            }
            self.place_mut((id, self.copy)).register = register;
        } else {
            let second = self.register(second)?;
            let old = if is_in_memory(self, replaced) { None } else { Some(self.register(replaced)?) };
            let register = self.take((id, self.copy), false)?;
            let out = self.named(id, register);
            match old {
                Some(old) => self.emitter.load(out, old)?,
                None => self.leaf(out, replaced)?,
            }
            // Last, because loading another operand may change the register with its start.
            let third = self.operand(third)?;
            self.emitter.emit(code, &[out, second, third])?;
            self.release(&[a, b, c]);
        }
        Ok(())
    }

    /// Stores an output.
    fn output(&mut self, k: usize, output: Output) -> Result<(), IcedError> {
        self.begin();
        let id = self.form.outputs[k];
        let width = self.form.nodes[id as usize].width;
        let value = self.register(id)?;
        let first = self.form.outputs.len() - self.emitter.accumulators.len();
        if let Some(accumulator) = k.checked_sub(first) {
            match self.emitter.place(accumulator, self.copy) {
                place if self.emitter.is_tail => self.emitter.move_existing(place, value, width, self.copy)?,
                Operand::Register(_) if self.in_place(id).is_some() => {}
                Operand::Register(register) => self.emitter.load(Operand::Register(register), value)?,
                place => self.emitter.store(place, value)?,
            }
        } else {
            let helper = if output.needs_helper() { self.vacate(false)? } else { 0 };
            self.emitter.store_output((k, output), self.copy, value, width, helper)?;
        }
        self.release(&[id]);
        Ok(())
    }

    /// The place of a node that is an accumulator.
    fn accumulator(&self, id: Id) -> Option<Operand> {
        let Op::Input(k, _) = self.form.nodes[id as usize].op else { return None };
        Some(self.emitter.place((k as usize).checked_sub(self.first_accumulator)?, self.copy))
    }

    /// The register of the accumulator that a node replaces, if nothing else uses the node, and nothing later the accumulator.
    fn in_place(&self, id: Id) -> Option<Operand> {
        // A fused product replaces one of its own operands.
        if self.emitter.is_tail || matches!(self.form.nodes[id as usize].op, Op::MulAdd { .. }) {
            return None;
        }
        let first = self.form.outputs.len() - self.emitter.accumulators.len();
        let &[output] = self.uses[id as usize].as_slice() else { return None };
        let k = (output as usize).checked_sub(self.form.nodes.len() + first)?;
        let is_own =
            |node: &Node| matches!(node.op, Op::Input(input, _) if input as usize == self.first_accumulator + k);
        let own = self.form.nodes.iter().position(is_own)?;
        let place = self.emitter.place(k, self.copy);
        (self.uses[own].last() == Some(&id)).then_some(place).filter(|place| matches!(place, Operand::Register(_)))
    }

    /// Loads a node without operands.
    fn leaf(&mut self, to: Operand, id: Id) -> Result<(), IcedError> {
        match self.accumulator(id) {
            Some(place) => self.emitter.load(to, place),
            None => self.emitter.leaf(to, id, &self.form.nodes[id as usize], self.copy),
        }
    }

    fn is_constant(&self, id: Id) -> bool {
        matches!(self.form.nodes[id as usize].op, Op::Constant(_))
    }

    /// The input that a node is, if no instruction has loaded it and only this one reads it.
    fn read_once(&self, id: Id) -> Option<usize> {
        let Op::Input(k, Storage::Own) = self.form.nodes[id as usize].op else { return None };
        let is_loaded = self.place(id).register.is_some();
        let is_read_once = !self.emitter.is_tail && !is_loaded && self.is_last_use(id);
        Some(k as usize).filter(|k| is_read_once && *k < self.first_accumulator)
    }

    /// The position of a constant in memory.
    fn constant(&self, id: Id) -> Option<i64> {
        self.is_constant(id).then(|| self.emitter.constants[id as usize])
    }

    /// The instruction for an operation on vectors of the size of a node.
    fn code(&self, op: Op, width: Width, like: Id) -> Code {
        let level = self.emitter.shape.level;
        variants(op, width, level).map_or(Code::INVALID, |variants| variants.at(level, self.bytes(like)))
    }

    /// The size in bytes of the vector of a node.
    fn bytes(&self, id: Id) -> usize {
        self.emitter.shape.lanes * self.form.nodes[id as usize].width as usize
    }

    /// Whether a node is in a mask register.
    fn is_mask(&self, id: Id) -> bool {
        self.emitter.shape.level == Level::Avx512 && self.form.nodes[id as usize].op.is_truth()
    }

    /// The registers for masks or for vectors.
    fn registers(&mut self, is_mask: bool) -> &mut Registers {
        if is_mask { &mut self.masks } else { &mut self.vectors }
    }

    /// The register of this number for the value of a node.
    fn named(&self, id: Id, number: usize) -> Operand {
        Operand::Register(if self.is_mask(id) { mask(number) } else { vector(number, self.bytes(id)) })
    }

    /// The value of a node in the current copy.
    fn value(&self, id: Id) -> Value {
        (id, if self.is_shared(id) { 0 } else { self.copy })
    }

    fn place(&self, id: Id) -> Held {
        let (id, copy) = self.value(id);
        self.places[id as usize * self.emitter.shape.copies + copy]
    }

    fn place_mut(&mut self, (id, copy): Value) -> &mut Held {
        &mut self.places[id as usize * self.emitter.shape.copies + copy]
    }

    /// The next position that uses a value. Later copies still need their operands at the current position.
    fn next_use(&self, (id, copy): Value) -> u32 {
        let uses = &self.uses[id as usize];
        let is_over = |at: u32| at < self.at || at == self.at && copy < self.copy && !self.is_shared(id);
        uses.get(uses.partition_point(|at| is_over(*at))).copied().unwrap_or(u32::MAX)
    }

    /// Whether this is the last use of a node in all copies that share it.
    fn is_last_use(&self, id: Id) -> bool {
        let is_last_copy = self.copy + 1 == self.emitter.shape.copies;
        (is_last_copy || !self.is_shared(id)) && self.uses[id as usize].last().is_none_or(|last| *last <= self.at)
    }

    /// Whether all copies share the value of a node, because it does not depend on the element.
    fn is_shared(&self, id: Id) -> bool {
        use Op::{Constant, Input, Truth, Uniform};
        matches!(self.form.nodes[id as usize].op, Constant(_) | Uniform(_) | Truth(_) | Input(_, Storage::One))
    }

    /// A node in a register, which is kept until the end of the instruction.
    fn register(&mut self, id: Id) -> Result<Operand, IcedError> {
        if let Some(Operand::Register(register)) = self.accumulator(id).or_else(|| self.in_place(id)) {
            return Ok(Operand::Register(register));
        }
        let is_mask = self.is_mask(id);
        let Held { register, slot } = self.place(id);
        let number = match register {
            Some(register) => register,
            None => self.take(self.value(id), is_mask)?,
        };
        self.registers(is_mask).pin(number);
        let operand = self.named(id, number);
        match (register, slot) {
            (Some(_), _) => {}
            (None, Some(slot)) => self.emitter.load(operand, self.emitter.slot(slot))?,
            (None, None) => self.leaf(operand, id)?,
        }
        Ok(operand)
    }

    /// A node as the last operand of an instruction, which may be in memory.
    fn operand(&mut self, id: Id) -> Result<Operand, IcedError> {
        let Held { register, slot } = self.place(id);
        match (register, self.constant(id), slot) {
            (None, Some(at), _) => Ok(self.emitter.constant(at)),
            (None, _, Some(slot)) if !self.is_mask(id) => Ok(self.emitter.slot(slot)),
            _ => match self.read_once(id) {
                Some(k) => self.emitter.input(k, self.form.nodes[id as usize].width, self.copy),
                None => self.register(id),
            },
        }
    }

    /// The register for the result of an instruction. It may be that of an operand.
    fn result(&mut self, id: Id, operands: &[Id]) -> Result<Operand, IcedError> {
        self.unpin();
        self.release(operands);
        if let Some(place) = self.in_place(id) {
            return Ok(place);
        }
        let is_mask = self.is_mask(id);
        let register = self.take((id, self.copy), is_mask)?;
        Ok(self.named(id, register))
    }

    /// Takes a register for a value.
    fn take(&mut self, value: Value, is_mask: bool) -> Result<usize, IcedError> {
        let register = self.vacate(is_mask)?;
        self.registers(is_mask).hold(register, Some(value));
        self.place_mut(value).register = Some(register);
        Ok(register)
    }

    /// A register that holds no value. The value that it held is stored, unless it is in memory already or can be loaded again.
    fn vacate(&mut self, is_mask: bool) -> Result<usize, IcedError> {
        let registers = if is_mask { &self.masks } else { &self.vectors };
        let register = registers.choose(|value| self.next_use(value));
        let Some(evicted) = self.registers(is_mask).hold(register, None) else { return Ok(register) };
        self.place_mut(evicted).register = None;
        let is_leaf = self.form.nodes[evicted.0 as usize].operands().is_empty();
        if !is_leaf && self.place_mut(evicted).slot.is_none() {
            let slot = self.slots.iter().position(|is_used| !is_used).unwrap_or(self.slots.len());
            self.slots.resize(self.slots.len().max(slot + 1), false);
            self.slots[slot] = true;
            self.place_mut(evicted).slot = Some(slot);
            let from = self.named(evicted.0, register);
            self.emitter.spill(slot, from)?;
        }
        Ok(register)
    }

    /// Frees the places of nodes that are not used again.
    fn release(&mut self, ids: &[Id]) {
        for id in ids {
            if !self.is_last_use(*id) {
                continue;
            }
            let is_mask = self.is_mask(*id);
            let value = self.value(*id);
            let Held { register, slot } = std::mem::take(self.place_mut(value));
            if let Some(register) = register {
                self.registers(is_mask).hold(register, None);
            }
            self.vacated.extend(slot);
        }
    }

    /// Begins an instruction.
    fn begin(&mut self) {
        self.unpin();
        while let Some(slot) = self.vacated.pop() {
            self.slots[slot] = false;
        }
    }

    fn unpin(&mut self) {
        self.vectors.unpin();
        self.masks.unpin();
    }
}
