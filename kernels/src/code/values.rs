//! Where the values of a loop are while it is assembled: in registers, and in slots of memory.

use iced_x86::{Code, IcedError};

use super::assemble::Assembler;
use super::emit::Operand;
use super::form::{Id, Node, Op, Width};
use super::registers::{Registers, Value};
use super::row_form::Extent;
use super::whole_row::Pass;
use super::x86::{mask, vector};
use crate::program::Storage;
use crate::runtime::simd::Level;

/// Where a value is: in a register, in a slot of memory, in both, or nowhere.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) register: Option<usize>,
    pub(super) slot: Option<usize>,
}

impl Assembler<'_> {
    /// The place of a node that is an accumulator.
    pub(super) fn accumulator(&self, id: Id) -> Option<Operand> {
        let Op::Input(k, _) = self.form.nodes[id as usize].op else { return None };
        Some(self.emitter.place((k as usize).checked_sub(self.first_accumulator)?, self.copy))
    }

    /// The register of the accumulator that a node replaces, if nothing else uses the node, and nothing later the accumulator.
    pub(super) fn in_place(&self, id: Id) -> Option<Operand> {
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
    pub(super) fn leaf(&mut self, to: Operand, id: Id) -> Result<(), IcedError> {
        match self.accumulator(id) {
            Some(place) => self.emitter.load(to, place),
            None => self.emitter.leaf(to, id, &self.form.nodes[id as usize], self.copy),
        }
    }

    pub(super) fn is_constant(&self, id: Id) -> bool {
        matches!(self.form.nodes[id as usize].op, Op::Constant(_))
    }

    /// The input that a node is, if no instruction has loaded it and only this one reads it.
    pub(super) fn read_once(&self, id: Id) -> Option<usize> {
        let Op::Input(k, Storage::Own) = self.form.nodes[id as usize].op else { return None };
        let is_loaded = self.place(id).register.is_some();
        let is_read_once = !self.emitter.is_tail && !is_loaded && self.is_last_use(id);
        Some(k as usize).filter(|k| is_read_once && *k < self.first_accumulator)
    }

    /// The position of a constant in memory.
    pub(super) fn constant(&self, id: Id) -> Option<i64> {
        self.is_constant(id).then(|| self.emitter.constants[id as usize])
    }

    /// The instruction for an operation on vectors of the size of a node.
    pub(super) fn code(&self, op: Op, width: Width, like: Id) -> Code {
        self.emitter.code_of(op, width, self.bytes_of(like))
    }

    /// The size in bytes of the vector of a node.
    pub(super) fn bytes(&self, id: Id) -> usize {
        match self.extents[id as usize] {
            Extent::Number if !self.reduced.contains(&id) => 16,
            _ => self.emitter.shape.lanes * self.form.nodes[id as usize].width as usize,
        }
    }

    /// The size in bytes of the vector of a node in the current instruction.
    pub(super) fn bytes_of(&self, id: Id) -> usize {
        if self.is_number { 16 } else { self.bytes(id) }
    }

    /// Whether a node is in a mask register.
    pub(super) fn is_mask(&self, id: Id) -> bool {
        self.emitter.shape.level == Level::Avx512 && self.form.nodes[id as usize].op.is_truth()
    }

    /// The registers for masks or for vectors.
    pub(super) fn registers(&mut self, is_mask: bool) -> &mut Registers {
        if is_mask { &mut self.masks } else { &mut self.vectors }
    }

    /// The register of this number for the value of a node.
    pub(super) fn named(&self, id: Id, number: usize) -> Operand {
        Operand::Register(if self.is_mask(id) { mask(number) } else { vector(number, self.bytes(id)) })
    }

    /// The value of a node in the current copy.
    pub(super) fn value(&self, id: Id) -> Value {
        (id, if self.is_shared(id) { 0 } else { self.copy })
    }

    pub(super) fn place(&self, id: Id) -> Held {
        let (id, copy) = self.value(id);
        self.places[id as usize * self.emitter.shape.copies + copy]
    }

    pub(super) fn place_mut(&mut self, (id, copy): Value) -> &mut Held {
        &mut self.places[id as usize * self.emitter.shape.copies + copy]
    }

    /// The next position that uses a value. Later copies still need their operands at the current position.
    pub(super) fn next_use(&self, (id, copy): Value) -> u32 {
        let uses = &self.uses[id as usize];
        let Pass { positions, copies } = &self.pass;
        if !copies.is_empty() && !copies.contains(&copy) && !self.is_shared(id) {
            // Vectors before these are complete, and those after them come next.
            let is_over = |at: u32| at < if copy < copies.start { positions.end } else { positions.start };
            return uses.get(uses.partition_point(|at| is_over(*at))).map_or(u32::MAX, |at| (*at).max(positions.end));
        }
        let is_over = |at: u32| at < self.at || at == self.at && copy < self.copy && !self.is_shared(id);
        uses.get(uses.partition_point(|at| is_over(*at))).copied().unwrap_or(u32::MAX)
    }

    /// Whether this is the last use of a node in all copies that share it.
    pub(super) fn is_last_use(&self, id: Id) -> bool {
        let is_last_copy = self.copy + 1 == self.emitter.shape.copies;
        (is_last_copy || !self.is_shared(id)) && self.uses[id as usize].last().is_none_or(|last| *last <= self.at)
    }

    /// Whether all copies share the value of a node, because it does not depend on the element.
    pub(super) fn is_shared(&self, id: Id) -> bool {
        self.extents[id as usize] != Extent::Element || self.form.nodes[id as usize].op == Op::Repeat
    }

    /// A node in a register, which is kept until the end of the instruction.
    pub(super) fn register(&mut self, id: Id) -> Result<Operand, IcedError> {
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
        Ok(if self.is_number && !is_mask { Operand::Register(vector(number, 16)) } else { operand })
    }

    /// A node as the last operand of an instruction, which may be in memory.
    pub(super) fn operand(&mut self, id: Id) -> Result<Operand, IcedError> {
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
    pub(super) fn result(&mut self, id: Id, operands: &[Id]) -> Result<Operand, IcedError> {
        self.unpin();
        self.release(operands);
        if let Some(place) = self.in_place(id) {
            return Ok(place);
        }
        let is_mask = self.is_mask(id);
        let register = self.take(self.value(id), is_mask)?;
        Ok(self.named(id, register))
    }

    /// Takes a register for a value.
    pub(super) fn take(&mut self, value: Value, is_mask: bool) -> Result<usize, IcedError> {
        let register = self.vacate(is_mask)?;
        self.registers(is_mask).hold(register, Some(value));
        self.place_mut(value).register = Some(register);
        Ok(register)
    }

    /// A register that holds no value. The value that it held is stored, unless it is in memory already or can be loaded again.
    pub(super) fn vacate(&mut self, is_mask: bool) -> Result<usize, IcedError> {
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
    pub(super) fn release(&mut self, ids: &[Id]) {
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

    /// Frees the register of a value.
    pub(super) fn free(&mut self, value: Value) {
        if let Some(register) = std::mem::take(self.place_mut(value)).register {
            self.vectors.hold(register, None);
        }
    }

    /// Whether a value is in a register or a slot.
    pub(super) fn is_held(&mut self, value: Value) -> bool {
        let held = self.place_mut(value);
        held.register.is_some() || held.slot.is_some()
    }

    /// The register of a value, and its slot, which it leaves: the value is about to change.
    pub(super) fn take_slot(&mut self, value: Value) -> (Option<usize>, Option<usize>) {
        let held = self.place_mut(value);
        let (register, slot) = (held.register, held.slot.take());
        self.vacated.extend(slot);
        (register, slot)
    }

    /// Begins an instruction.
    pub(super) fn begin(&mut self) {
        self.unpin();
        while let Some(slot) = self.vacated.pop() {
            self.slots[slot] = false;
        }
    }

    pub(super) fn unpin(&mut self) {
        self.vectors.unpin();
        self.masks.unpin();
    }
}
