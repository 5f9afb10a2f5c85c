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
use super::form::{Form, Id, Node, Op};
use super::output::Output;
use super::registers::Registers;
use super::row_form::Extent;
use super::tail::MASKS_FOR_VALUES;
use super::values::Held;
use super::whole_row::{self, HELPERS, Pass, WholeRow};
use super::x86::{Fused, fused, immediate, vector};
use crate::reduce::rows::LANES;
use crate::runtime::simd::Level;

/// The machine code of a loop.
#[derive(Debug)]
pub struct Loop {
    pub bytes: Vec<u8>,
    /// The number of slots of memory for values.
    pub slots: usize,
}

/// The body of a loop.
pub enum Body<'a> {
    /// It computes elements, and reduces them to these accumulators.
    Elements(Vec<Accumulator>),
    /// It computes a row.
    WholeRow(&'a WholeRow<'a>),
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
    body: Body<'_>,
) -> Result<Loop, IcedError> {
    let (mut accumulators, row) = match body {
        Body::Elements(accumulators) => (accumulators, None),
        Body::WholeRow(row) => (vec![], Some(row)),
    };
    let end = form.nodes.len();
    let mut uses = vec![vec![]; end];
    for (at, node) in form.nodes.iter().enumerate() {
        node.operands().iter().for_each(|id| uses[*id as usize].push(at as u32));
    }
    form.outputs.iter().enumerate().for_each(|(k, id)| uses[*id as usize].push((end + k) as u32));
    let is_avx512 = shape.level == Level::Avx512;
    let helpers = if row.is_some() { HELPERS } else { 0 };
    let end_of_vectors = if is_avx512 { TRUTH_HELPER } else { 16 } - helpers;
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
        masks: Registers::new(
            1,
            match row {
                Some(_) => whole_row::MASKS_FOR_VALUES,
                None if shape.has_tail => MASKS_FOR_VALUES,
                None => 8,
            },
        ),
        extents: match row {
            Some(_) => Extent::in_row(form),
            None => Extent::in_loop(form),
        },
        is_number: false,
        reduced: vec![],
        pass: Pass::default(),
        places: vec![Held::default(); end * shape.copies],
        slots: vec![true; 1 + taken],
        vacated: vec![],
        emitter: Emitter::new(shape, constants, start, &accumulators, row),
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
    match row {
        Some(row) => assembler.whole_row(row, outputs)?,
        None => {
            assembler.block(outputs, shape.groups)?;
            assembler.emitter.end_blocks()?;
        }
    }
    if shape.has_tail {
        assembler.emitter.begin_tail()?;
        assembler.block(outputs, LANES / shape.lanes / shape.copies)?;
        assembler.emitter.end_tail()?;
    }
    Ok(Loop { slots: assembler.slots.len(), bytes: assembler.emitter.end(first_input)? })
}

pub(super) struct Assembler<'a> {
    pub(super) form: &'a Form,
    /// The positions that use each node. The outputs follow the nodes.
    pub(super) uses: Vec<Vec<u32>>,
    /// The current position and copy.
    pub(super) at: u32,
    pub(super) copy: usize,
    pub(super) vectors: Registers,
    /// The number of inputs before those that are accumulators.
    pub(super) first_accumulator: usize,
    pub(super) masks: Registers,
    pub(super) places: Vec<Held>,
    /// Whether each slot is in use.
    pub(super) slots: Vec<bool>,
    /// Slots that the current instruction may still read.
    pub(super) vacated: Vec<usize>,
    pub(super) extents: Vec<Extent>,
    /// Whether the current instruction computes a number of a row.
    pub(super) is_number: bool,
    /// The reductions whose partial results are computed.
    pub(super) reduced: Vec<Id>,
    /// The elements of a row that are computed.
    pub(super) pass: Pass,
    pub(super) emitter: Emitter<'a>,
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
    pub(super) fn node(&mut self, id: Id) -> Result<(), IcedError> {
        self.begin();
        let node = self.form.nodes[id as usize];
        self.is_number = self.extents[id as usize] == Extent::Number;
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
            (Op::MultiplyIf, &[condition, a, b]) => {
                let condition = self.register(condition)?;
                let a = self.register(a)?;
                let b = self.operand(b)?;
                let out = self.result(id, node.operands())?;
                self.emitter.emit_where(self.code(node.op, node.width, id), [out, a, b], condition)?;
            }
            (Op::NarrowTruth | Op::NarrowBits, &[x]) if level != Level::Avx512 => {
                let wide = self.register(x)?;
                let out = self.result(id, &[x])?;
                self.emitter.narrow_bits(out, wide)?;
            }
            (Op::Repeat, &[x]) => {
                let source = self.register(x)?;
                let out = self.result(id, &[x])?;
                self.emitter.broadcast(out, source, node.width)?;
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
                let is_of_operand = matches!(op, Op::Narrow | Op::NarrowBits) || op.is_truth() && op != Op::WidenTruth;
                let named = if is_of_operand { x } else { id };
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
                self.vectors.hold(register, Some(self.value(id)));
            }
            self.place_mut(self.value(id)).register = register;
        } else {
            let second = self.register(second)?;
            let old = if is_in_memory(self, replaced) { None } else { Some(self.register(replaced)?) };
            let register = self.take(self.value(id), false)?;
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
    pub(super) fn output(&mut self, k: usize, output: Output) -> Result<(), IcedError> {
        self.begin();
        self.is_number = false;
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
            let value = match self.emitter.row {
                Some(row) if row.adds(k) => {
                    let sum = self.emitter.output_place(k, output, width, self.copy)?;
                    self.added(value, sum, width)?
                }
                _ => value,
            };
            let helper = if output.needs_helper() { self.vacate(false)? } else { 0 };
            self.emitter.store_output((k, output), self.copy, value, width, helper)?;
        }
        self.release(&[id]);
        Ok(())
    }
}
