//! [`Stages`]: a program over rows, split at its reductions into programs over elements.
//!
//! A stage computes what depends on the reductions of the stages before it. First come the numbers of a row, such as the
//! square root of a variance: a program with one element per row. Then come the elements of the rows: those that the
//! next reductions take, and at the end the outputs. A softmax has three stages:
//!
//! | stage | elements | reductions |
//! |---|---|---|
//! | 0 | | `m = max(x)` |
//! | 1 | `e = exp(x - m)` | `s = sum(e)` |
//! | 2 | `y = e / s` | |
//!
//! A function that takes longer than loading its value, such as this exponential, is computed in one stage and kept for
//! the others.

use smallvec::SmallVec;

use super::{Id, Instruction, Malformed, OverRows, Plan, Primitive, Program, Storage, Tile, ValueType};
use crate::number::scalar::Const;
use crate::row::{Reduction, RowFunction};

/// What a value depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    /// Constants and attributes: it is the same in all rows.
    Fixed,
    /// The row: it is a number for each row.
    Number,
    /// The element.
    Element,
}

/// A buffer, or an argument of the program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Slot {
    /// The elements of an input.
    Input(usize),
    /// The elements of an output.
    Output(usize),
    /// A buffer with the elements of some rows.
    Array(usize),
    /// A buffer with one number for each of some rows.
    Column(usize),
    /// The column with this number, with each number repeated for all elements of its row.
    Repeated(usize),
    /// The positions of the elements in their rows.
    Positions,
}

/// A program over elements, and its arguments.
#[derive(Debug)]
pub(super) struct Part {
    pub plan: Plan,
    pub inputs: Vec<Slot>,
    pub outputs: Vec<Slot>,
}

impl Part {
    /// Computes `n` elements. `data` points to those of the inputs, then of the outputs.
    ///
    /// # Safety
    /// As for [`Plan::run`].
    pub unsafe fn run<T: Tile>(&self, n: usize, data: &[*mut u8], uniforms: &[T]) {
        let (inputs, outputs) = data.split_at(self.inputs.len());
        // SAFETY: both types of pointers are alike. The caller's contract.
        unsafe {
            let inputs = std::slice::from_raw_parts(inputs.as_ptr().cast::<*const u8>(), inputs.len());
            self.plan.run(n, inputs, uniforms, outputs);
        }
    }
}

/// One stage.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// Computes the numbers of rows.
    pub numbers: Option<Part>,
    /// Computes the elements of rows.
    pub elements: Option<Part>,
    /// The reductions, with their arguments and results.
    pub reductions: Vec<(Reduction, Slot, Slot)>,
    /// The functions of whole rows, with their arguments and results.
    pub functions: Vec<(RowFunction, SmallVec<[Slot; 2]>, Slot)>,
    /// Computes the elements of a row and reduces them at the same time.
    pub sums: Option<Sums>,
}

impl Stage {
    /// The reductions whose results are numbers, not running ones.
    pub fn reductions_to_numbers(&self) -> impl Iterator<Item = &(Reduction, Slot, Slot)> {
        self.reductions.iter().filter(|(reduction, ..)| !reduction.is_running())
    }

    /// Whether a function takes the rows of a slot.
    fn takes_row(&self, slot: Slot) -> bool {
        self.functions.iter().any(|(_, from, _)| from.contains(&slot))
    }
}

/// The elements of a stage with accumulators, which machine code keeps in registers. It does not store what is only reduced.
#[derive(Debug)]
pub(super) struct Sums {
    /// The accumulators are the last inputs and outputs. They have no slots.
    pub part: Part,
    /// The reductions in the order of the accumulators, with their results.
    pub reductions: Vec<(Reduction, Slot)>,
}

/// How a program over elements receives the numbers of rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Numbers {
    /// As inputs with an element for each element of the row, so that one call computes many rows.
    Repeated,
    /// As uniforms, so that one call computes one row. They follow the attributes and the length of the row.
    Uniform,
}

/// The stages of a program.
#[derive(Debug)]
pub(super) struct Stages {
    pub all: Vec<Stage>,
    /// The number of arrays.
    pub arrays: usize,
    /// For each array, whether all elements of a row are needed at once: it is read after its stage has computed elements.
    pub lasting: Vec<bool>,
    /// The number of columns. The first ones are the uniforms with one value per row.
    pub columns: usize,
    /// The columns with the results that are numbers of rows, with their outputs.
    pub results: Vec<(Slot, usize)>,
    /// The columns whose numbers are repeated for all elements of their rows.
    pub repeated: Vec<bool>,
    /// The inputs that are read, and whether the positions of elements are.
    pub reads: Vec<bool>,
    pub positions: bool,
}

impl Stages {
    /// Splits a program. `gives` marks the outputs with one value per element. The first `per_row` uniforms have one value
    /// per row; the others are the same for all rows. The inputs at the positions `masks` are truth values in memory. `storage` is that
    /// of inputs and of outputs.
    pub fn of(
        program: &Program,
        gives: &[bool],
        per_row: usize,
        masks: &[usize],
        storage: &[Vec<Storage>; 2],
        numbers: Numbers,
    ) -> Result<Stages, Malformed> {
        let mut split = Split::of(program, per_row, masks, storage, numbers);
        let depth = split.levels.iter().copied().max().unwrap_or(0);
        let numbers_used = split.numbers_used(gives);
        let kept = split.kept(gives, depth);
        let mut all = Vec::with_capacity(depth + 1);
        let (mut results, mut before) = (Vec::new(), Vec::new());
        for level in 0..=depth {
            let is_last = level == depth;
            let mut roots: Vec<(Id, Slot)> = Vec::new();
            for id in split.of_level(level).into_iter().filter(|id| numbers_used[id.at()]) {
                roots.push((id, split.column(id)));
            }
            for (k, (_, id)) in program.outputs.iter().enumerate().filter(|(k, _)| is_last && !gives[*k]) {
                if split.extents[id.at()] == Extent::Element {
                    let name = &program.outputs[k].0;
                    return Err(Malformed(format!(
                        "output '{name}' is a number for each row, but differs along a row"
                    )));
                }
                let known = split.slots[id.at()].or_else(|| roots.iter().find(|(r, _)| r == id).map(|(_, slot)| *slot));
                let slot = known.unwrap_or_else(|| {
                    let slot = split.new_column();
                    roots.push((*id, slot));
                    slot
                });
                results.push((slot, k));
            }
            let mut stage = Stage { numbers: split.part(&roots, &[], Extent::Number)?, ..Stage::default() };
            roots
                .iter()
                .filter(|(id, _)| numbers_used[id.at()])
                .for_each(|(id, slot)| split.slots[id.at()] = Some(*slot));

            let mut roots: Vec<(Id, Slot)> = Vec::new();
            for at in (0..kept.len()).filter(|at| kept[*at] == Some(level)) {
                roots.push((Id(at as u32), split.new_array()));
            }
            let reductions = split.reductions_of(level + 1);
            for (id, reduction, argument) in &reductions {
                let from = split.row_of(*argument, &mut roots);
                let to = if reduction.is_running() { split.new_array() } else { split.column(*id) };
                stage.reductions.push((*reduction, from, to));
            }
            let functions = split.functions_of(level + 1);
            for (_, function, arguments) in &functions {
                let from = arguments.iter().map(|id| split.row_of(*id, &mut roots)).collect();
                stage.functions.push((*function, from, split.new_array()));
            }
            let outputs = program.outputs.iter().enumerate().filter(|(k, _)| is_last && gives[*k]);
            roots.extend(outputs.map(|(k, (_, id))| (*id, Slot::Output(k))));
            stage.elements = split.part(&roots, &[], Extent::Element)?;
            before.push(Before { slots: split.slots.clone(), roots: roots.clone(), reductions: reductions.clone() });
            for (id, slot) in roots.iter().filter(|(id, _)| split.extents[id.at()] == Extent::Element) {
                split.slots[id.at()].get_or_insert(*slot);
            }
            for ((id, ..), (.., to)) in reductions.iter().zip(&stage.reductions) {
                split.slots[id.at()] = Some(*to);
            }
            for ((id, ..), (.., to)) in functions.iter().zip(&stage.functions) {
                split.slots[id.at()] = Some(*to);
            }
            all.push(stage);
        }
        for (at, before) in before.into_iter().enumerate().filter(|_| numbers == Numbers::Uniform) {
            all[at].sums = split.sums(&all, at, before)?;
        }
        let is_read = |slot: Slot| is_read(&all, slot);
        let repeated = (0..split.columns).map(|k| is_read(Slot::Repeated(k))).collect();
        let reads = (0..program.inputs.len()).map(|k| is_read(Slot::Input(k))).collect();
        let positions = is_read(Slot::Positions);
        let lasting = (0..split.arrays).map(|k| lasts(&all, Slot::Array(k))).collect();
        Ok(Stages { all, arrays: split.arrays, lasting, columns: split.columns, results, repeated, reads, positions })
    }
}

impl Stages {
    /// Whether only one stage goes through the elements of rows, and needs no memory for them.
    pub fn are_one_pass(&self) -> bool {
        let is_pass =
            |stage: &&Stage| stage.elements.is_some() || !stage.reductions.is_empty() || !stage.functions.is_empty();
        self.arrays == 0 && !self.positions && self.all.iter().filter(is_pass).count() <= 1
    }
}

/// Whether elements of these stages are computed from a slot, or reduced from it.
fn is_read(stages: &[Stage], slot: Slot) -> bool {
    let reads = |part: &Part| part.inputs.contains(&slot);
    let reduces = |stage: &Stage| stage.reductions.iter().any(|(_, from, _)| *from == slot);
    stages.iter().any(|stage| stage.elements.as_ref().is_some_and(reads) || reduces(stage) || stage.takes_row(slot))
}

/// Whether a slot is read after the elements of its stage have been computed and reduced.
fn lasts(stages: &[Stage], slot: Slot) -> bool {
    let of_rows = |stage: &Stage| {
        let is_running = |(r, from, to): &(Reduction, Slot, Slot)| r.is_running() && (*from == slot || *to == slot);
        stage.takes_row(slot)
            || stage.functions.iter().any(|(.., to)| *to == slot)
            || stage.reductions.iter().any(is_running)
    };
    let is_computed = |stage: &Stage| stage.elements.as_ref().is_some_and(|part| part.outputs.contains(&slot));
    let first = stages.iter().position(is_computed).map_or(0, |at| at + 1);
    stages.iter().any(of_rows) || is_read(&stages[first..], slot)
}

/// What is known before the elements of a stage are computed.
struct Before {
    slots: Vec<Option<Slot>>,
    /// The elements that the stage computes, and its reductions.
    roots: Vec<(Id, Slot)>,
    reductions: Vec<(Id, Reduction, Id)>,
}

/// A program that is being split.
struct Split<'a> {
    program: &'a Program,
    per_row: usize,
    masks: &'a [usize],
    storage: &'a [Vec<Storage>; 2],
    numbers: Numbers,
    extents: Vec<Extent>,
    /// The number of reductions before each value, along the longest path.
    levels: Vec<usize>,
    /// The slots of the values that are in memory.
    slots: Vec<Option<Slot>>,
    arrays: usize,
    columns: usize,
}

impl<'a> Split<'a> {
    fn of(
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

    fn new_array(&mut self) -> Slot {
        self.arrays += 1;
        Slot::Array(self.arrays - 1)
    }

    fn new_column(&mut self) -> Slot {
        self.columns += 1;
        Slot::Column(self.columns - 1)
    }

    /// The column of a number.
    fn column(&mut self, id: Id) -> Slot {
        self.slots[id.at()].unwrap_or_else(|| self.new_column())
    }

    fn of_level(&self, level: usize) -> Vec<Id> {
        (0..self.levels.len()).filter(|at| self.levels[*at] == level).map(|at| Id(at as u32)).collect()
    }

    /// The reductions of a level, with their arguments.
    fn reductions_of(&self, level: usize) -> Vec<(Id, Reduction, Id)> {
        let reduction = |id: Id| match self.program.instructions[id.at()] {
            Instruction::Reduce(reduction, argument) => Some((id, reduction, argument)),
            _ => None,
        };
        self.of_level(level).into_iter().filter_map(reduction).collect()
    }

    /// The functions of whole rows of a level, with their arguments.
    fn functions_of(&self, level: usize) -> Vec<(Id, RowFunction, SmallVec<[Id; 3]>)> {
        let function = |id: Id| match &self.program.instructions[id.at()] {
            Instruction::Row(function, arguments) => Some((id, *function, arguments.clone())),
            _ => None,
        };
        self.of_level(level).into_iter().filter_map(function).collect()
    }

    /// A slot with the elements of a value. If there is none, the value is added to those that the stage computes.
    fn row_of(&mut self, id: Id, roots: &mut Vec<(Id, Slot)>) -> Slot {
        let known = self.slots[id.at()].filter(|slot| !matches!(slot, Slot::Column(_)));
        let known = known.or_else(|| roots.iter().find(|(r, _)| *r == id).map(|(_, slot)| *slot));
        known.unwrap_or_else(|| {
            let slot = self.new_array();
            roots.push((id, slot));
            slot
        })
    }

    /// The numbers of rows that later numbers or elements use, apart from uniforms and reductions.
    fn numbers_used(&self, gives: &[bool]) -> Vec<bool> {
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
    fn kept(&self, gives: &[bool], depth: usize) -> Vec<Option<usize>> {
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
    fn sums(&mut self, all: &[Stage], at: usize, before: Before) -> Result<Option<Sums>, Malformed> {
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
    fn part(
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
        let has_loop = extent == Extent::Element && self.numbers == Numbers::Uniform;
        let rows = OverRows { has_loop, reductions: sums.iter().filter_map(result).collect() };
        Ok(Some(Part { plan: plan.over_rows(rows), inputs, outputs }))
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
