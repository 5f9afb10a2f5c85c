//! [`Split`]: a program while it is split into [stages](super).

use smallvec::SmallVec;

use super::{Numbers, Part, Slot, Stage, Sums, is_read};
use crate::number::scalar::Const;
use crate::program::{Id, Instruction, Malformed, OverRows, Plan, Primitive, Program, Storage, ValueType};
use crate::row::{Reduction, RowFunction};

/// The number of values: one for all rows, one for each row, or one for each element.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// Constants and attributes: it is the same in all rows.
    Fixed,
    /// The row: it is a number for each row.
    Number,
    /// The element.
    Element,
}

/// The state of a split before the elements of a stage are computed.
pub struct Before {
    pub slots: Vec<Option<Slot>>,
    /// The elements that the stage computes, and its reductions.
    pub roots: Vec<(Id, Slot)>,
    pub reductions: Vec<(Id, Reduction, Id)>,
}

/// A program that is being split.
pub struct Split<'a> {
    program: &'a Program,
    per_row: usize,
    masks: &'a [usize],
    storage: &'a [Vec<Storage>; 2],
    numbers: Numbers,
    pub extents: Vec<Extent>,
    /// The number of reductions before each value, along the longest path.
    pub levels: Vec<usize>,
    /// The slots of the values that are in memory.
    pub slots: Vec<Option<Slot>>,
    pub arrays: usize,
    pub columns: usize,
}

impl<'a> Split<'a> {
    pub fn of(
        program: &'a Program,
        per_row: usize,
        masks: &'a [usize],
        storage: &'a [Vec<Storage>; 2],
        numbers: Numbers,
    ) -> Split<'a> {
        let (mut extents, mut levels, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        for instruction in &program.instructions {
            let operands = instruction.operands();
            let widest = operands.iter().map(|(id, _)| extents[id.at()]).max().unwrap_or(Extent::Fixed);
            let deepest = operands.iter().map(|(id, _)| levels[id.at()]).max().unwrap_or(0);
            let (extent, level, slot) = match instruction {
                Instruction::Input(k) => (Extent::Element, 0, Some(Slot::Input(*k as usize))),
                Instruction::Position => (Extent::Element, 0, Some(Slot::Positions)),
                Instruction::Uniform(k) if (*k as usize) < per_row => {
                    (Extent::Number, 0, Some(Slot::Column(*k as usize)))
                }
                Instruction::Reduce(reduction, _) if reduction.is_running() => (Extent::Element, deepest + 1, None),
                Instruction::Reduce(..) => (Extent::Number, deepest + 1, None),
                Instruction::Row(..) => (Extent::Element, deepest + 1, None),
                _ => (widest, deepest, None),
            };
            extents.push(extent);
            levels.push(level);
            slots.push(slot);
        }
        Split { program, per_row, masks, storage, numbers, extents, levels, slots, arrays: 0, columns: per_row }
    }

    pub fn new_array(&mut self) -> Slot {
        self.arrays += 1;
        Slot::Array(self.arrays - 1)
    }

    pub fn new_column(&mut self) -> Slot {
        self.columns += 1;
        Slot::Column(self.columns - 1)
    }

    /// The column of a number.
    pub fn column(&mut self, id: Id) -> Slot {
        self.slots[id.at()].unwrap_or_else(|| self.new_column())
    }

    pub fn of_level(&self, level: usize) -> Vec<Id> {
        (0..self.levels.len()).filter(|at| self.levels[*at] == level).map(|at| Id(at as u32)).collect()
    }

    /// The reductions of a level, with their arguments.
    pub fn reductions_of(&self, level: usize) -> Vec<(Id, Reduction, Id)> {
        let reduction = |id: Id| match self.program.instructions[id.at()] {
            Instruction::Reduce(reduction, argument) => Some((id, reduction, argument)),
            _ => None,
        };
        self.of_level(level).into_iter().filter_map(reduction).collect()
    }

    /// The functions of whole rows of a level, with their arguments.
    pub fn functions_of(&self, level: usize) -> Vec<(Id, RowFunction, SmallVec<[Id; 3]>)> {
        let function = |id: Id| match &self.program.instructions[id.at()] {
            Instruction::Row(function, arguments) => Some((id, function.clone(), arguments.clone())),
            _ => None,
        };
        self.of_level(level).into_iter().filter_map(function).collect()
    }

    /// A slot with the elements of a value. If there is none, the value is added to those that the stage computes. Positions are there for a
    /// part of a row only.
    pub fn row_of(&mut self, id: Id, roots: &mut Vec<(Id, Slot)>) -> Slot {
        let known = self.slots[id.at()].filter(|slot| !matches!(slot, Slot::Column(_) | Slot::Positions));
        let known = known.or_else(|| roots.iter().find(|(r, _)| *r == id).map(|(_, slot)| *slot));
        known.unwrap_or_else(|| {
            let slot = self.new_array();
            roots.push((id, slot));
            slot
        })
    }

    /// The numbers of rows that later numbers or elements use, apart from uniforms and reductions.
    pub fn numbers_used(&self, gives: &[bool]) -> Vec<bool> {
        let mut used = vec![false; self.extents.len()];
        for (at, instruction) in self.program.instructions.iter().enumerate() {
            let is_later = |id: Id| {
                let is_reduced = matches!(instruction, Instruction::Reduce(..) | Instruction::Row(..));
                is_reduced || self.extents[at] == Extent::Element || self.levels[at] > self.levels[id.at()]
            };
            instruction.operands().iter().filter(|(id, _)| is_later(*id)).for_each(|(id, _)| used[id.at()] = true);
        }
        let outputs = self.program.outputs.iter().zip(gives).filter(|(_, gives)| **gives);
        outputs.for_each(|((_, id), _)| used[id.at()] = true);
        for (at, used) in used.iter_mut().enumerate() {
            let is_leaf = matches!(self.program.instructions[at], Instruction::Uniform(_) | Instruction::Reduce(..));
            *used &= self.extents[at] == Extent::Number && !is_leaf;
        }
        used
    }

    /// For each value that is kept, the stage that computes it: the first of several that need it.
    pub fn kept(&self, gives: &[bool], depth: usize) -> Vec<Option<usize>> {
        let count = self.extents.len();
        let (mut first, mut kept, mut last) = (vec![None; count], vec![None; count], vec![None; count]);
        let mut reduced: Vec<Option<usize>> = vec![None; count];
        for level in 0..=depth {
            let reduced_now = self.reductions_of(level + 1).into_iter().map(|(.., argument)| argument);
            let taken = self.functions_of(level + 1).into_iter().flat_map(|(.., arguments)| arguments);
            let arguments: Vec<Id> = reduced_now.chain(taken).collect();
            let mut open = arguments.clone();
            if level == depth {
                open.extend(
                    self.program.outputs.iter().zip(gives).filter(|(_, gives)| **gives).map(|((_, id), _)| *id),
                );
            }
            while let Some(id) = open.pop() {
                let instruction = &self.program.instructions[id.at()];
                let is_leaf = self.extents[id.at()] != Extent::Element
                    || matches!(instruction, Instruction::Reduce(..) | Instruction::Row(..));
                let is_known = reduced[id.at()].is_some_and(|at| at < level);
                if is_leaf || is_known || last[id.at()].replace(level) == Some(level) {
                    continue;
                }
                let before = *first[id.at()].get_or_insert(level);
                if before < level && instruction.is_dear() {
                    kept[id.at()] = Some(before);
                    continue;
                }
                open.extend(instruction.operands().iter().map(|(id, _)| *id));
            }
            arguments.iter().for_each(|id| reduced[id.at()] = reduced[id.at()].or(Some(level)));
        }
        kept
    }

    /// The elements of a stage with accumulators. `None` if nothing is reduced to a number.
    pub fn sums(&mut self, all: &[Stage], at: usize, before: Before) -> Result<Option<Sums>, Malformed> {
        let Before { slots, roots, reductions } = before;
        let (stage, later) = (&all[at], &all[at + 1..]);
        let pairs = reductions.iter().zip(&stage.reductions).filter(|((_, reduction, _), _)| !reduction.is_running());
        let (sums, reductions): (Vec<_>, Vec<_>) =
            pairs.map(|((_, reduction, id), (.., to))| ((*reduction, *id, *to), (*reduction, *to))).unzip();
        let is_running = |slot: Slot| stage.reductions.iter().any(|(r, from, _)| r.is_running() && *from == slot);
        let is_stored = |slot: Slot| {
            matches!(slot, Slot::Output(_)) || is_running(slot) || stage.takes_row(slot) || is_read(later, slot)
        };
        let stored: Vec<(Id, Slot)> = roots.iter().copied().filter(|(_, slot)| is_stored(*slot)).collect();
        if sums.is_empty() {
            return Ok(None);
        }
        self.slots = slots;
        let part = self.part(&stored, &sums, Extent::Element)?;
        Ok(part.map(|part| Sums { part, reductions }))
    }

    /// The program that computes these values from those in memory, and adds to accumulators. It takes the attributes and the length of the row as
    /// uniforms. Truth values are in buffers as the numbers 0 and 1.
    pub fn part(
        &self,
        roots: &[(Id, Slot)],
        sums: &[(Reduction, Id, Slot)],
        extent: Extent,
    ) -> Result<Option<Part>, Malformed> {
        if roots.is_empty() && sums.is_empty() {
            return Ok(None);
        }
        let instructions = &self.program.instructions;
        let attributes = self.program.uniforms.len() - self.per_row;
        let mut is_needed = vec![false; instructions.len()];
        roots.iter().map(|(id, _)| id).chain(sums.iter().map(|(_, id, _)| id)).for_each(|id| is_needed[id.at()] = true);
        for at in (0..instructions.len()).rev().filter(|at| self.slots[*at].is_none()).collect::<Vec<_>>() {
            if is_needed[at] {
                instructions[at].operands().iter().for_each(|(id, _)| is_needed[id.at()] = true);
            }
        }
        let mut inputs: Vec<Slot> = Vec::new();
        let mut uniforms = attributes + 1;
        let mut written: Vec<Instruction> = Vec::new();
        let mut moved = vec![Id(0); instructions.len()];
        let push = |written: &mut Vec<Instruction>, instruction: Instruction| {
            written.push(instruction);
            Id(written.len() as u32 - 1)
        };
        for (at, instruction) in instructions.iter().enumerate().filter(|(at, _)| is_needed[*at]) {
            let in_memory = self.slots[at].map(|slot| match slot {
                Slot::Column(k) if extent == Extent::Element && self.numbers == Numbers::Uniform => {
                    uniforms = uniforms.max(attributes + 2 + k);
                    Instruction::Uniform((attributes + 1 + k) as u32)
                }
                slot => {
                    let slot = match slot {
                        Slot::Column(k) if extent == Extent::Element => Slot::Repeated(k),
                        slot => slot,
                    };
                    let known = inputs.iter().position(|input| *input == slot).unwrap_or_else(|| {
                        inputs.push(slot);
                        inputs.len() - 1
                    });
                    Instruction::Input(known as u32)
                }
            });
            let is_loaded = in_memory.is_some();
            let copied = in_memory.unwrap_or_else(|| match instruction {
                Instruction::Uniform(k) => Instruction::Uniform(k - self.per_row as u32),
                Instruction::Count => Instruction::Uniform(attributes as u32),
                other => other.clone().moved(|id| moved[id.at()]),
            });
            moved[at] = push(&mut written, copied);
            if is_loaded && instruction.kind() == ValueType::Mask {
                moved[at] = push(&mut written, Instruction::apply(Primitive::Truthy, &[moved[at]]));
            }
        }
        let mut outputs = Vec::new();
        for (k, (id, slot)) in roots.iter().enumerate() {
            let mut value = moved[id.at()];
            if instructions[id.at()].kind() == ValueType::Mask && !matches!(slot, Slot::Output(_)) {
                let [one, zero] = [1.0, 0.0].map(|x| push(&mut written, Instruction::Constant(Const::Float(x))));
                value = push(&mut written, Instruction::Select(value, one, zero));
            }
            outputs.push((format!("y{k}"), value));
        }
        for (k, (reduction, id, _)) in sums.iter().enumerate() {
            let accumulator = push(&mut written, Instruction::Input((inputs.len() + k) as u32));
            let combined = Instruction::apply(combining(*reduction), &[accumulator, moved[id.at()]]);
            outputs.push((format!("s{k}"), push(&mut written, combined)));
        }
        let names = |prefix: &str, count: usize| (0..count).map(|k| format!("{prefix}{k}")).collect();
        let program = Program {
            inputs: names("x", inputs.len() + sums.len()),
            uniforms: names("u", uniforms),
            instructions: written,
            outputs,
        };
        let is_mask = |k: &usize| matches!(inputs[*k], Slot::Input(input) if self.masks.contains(&input));
        let masks: Vec<usize> = (0..inputs.len()).filter(is_mask).collect();
        let outputs: Vec<Slot> = roots.iter().map(|(_, slot)| *slot).collect();
        let of_slot = |slot: &Slot| match slot {
            Slot::Input(k) => self.storage[0][*k],
            Slot::Output(k) => self.storage[1][*k],
            _ => Storage::Own,
        };
        let of_sums = || sums.iter().map(|_| Storage::Own);
        let [read, written] = [&inputs, &outputs].map(|slots| slots.iter().map(of_slot).chain(of_sums()).collect());
        let plan = Plan::new(program, &masks)?.stored(read, written);
        let result = |(reduction, _, slot): &(Reduction, Id, Slot)| match slot {
            Slot::Column(k) => Some((*reduction, attributes + 1 + k)),
            _ => None,
        };
        let has_loop = extent == Extent::Element;
        let rows = OverRows { has_loop, reductions: sums.iter().filter_map(result).collect() };
        Ok(Some(Part::new(plan.over_rows(rows), inputs, outputs)))
    }
}

/// The function that combines two results of a reduction.
fn combining(reduction: Reduction) -> Primitive {
    match reduction {
        Reduction::Sum | Reduction::Cumsum | Reduction::ReverseCumsum => Primitive::Add,
        Reduction::Prod => Primitive::Multiply,
        Reduction::Max => Primitive::Maximum,
        Reduction::Min => Primitive::Minimum,
    }
}
