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

mod split;

use std::sync::OnceLock;

use smallvec::SmallVec;

use self::split::{Before, Extent, Split};
use super::buffers::Places;
use super::{Id, Malformed, Plan, Program, Storage, Tile};
use crate::row::{Reduction, RowFunction};

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
    /// The plan whose outputs bypass the cache, at `f32` and at `f64`.
    past_cache: [OnceLock<Option<Plan>>; 2],
}

impl Part {
    pub fn new(plan: Plan, inputs: Vec<Slot>, outputs: Vec<Slot>) -> Part {
        Part { plan, inputs, outputs, past_cache: Default::default() }
    }

    /// The plan for rows in these places. If the outputs of the program are `large`, they bypass the cache.
    pub fn plan_for<T: Tile>(&self, places: &Places, large: bool) -> &Plan {
        let is_output = |slot: &Slot| matches!(slot, Slot::Output(_));
        if !large || self.outputs.is_empty() || !self.outputs.iter().all(is_output) {
            return &self.plan;
        }
        let past_cache = self.past_cache[usize::from(size_of::<T>() == 8)].get_or_init(|| self.plan.past_cache::<T>());
        let (data, steps) = (&places.data[self.inputs.len()..], &places.steps[self.inputs.len()..]);
        past_cache.as_ref().filter(|plan| plan.is_aligned::<T>(data, steps)).unwrap_or(&self.plan)
    }

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
    /// The functions of whole rows.
    pub functions: Vec<OfRows>,
    /// Computes the elements of a row and reduces them at the same time.
    pub sums: Option<Sums>,
}

impl Stage {
    /// The reductions whose results are numbers, not running ones.
    pub fn reductions_to_numbers(&self) -> impl Iterator<Item = &(Reduction, Slot, Slot)> {
        self.reductions.iter().filter(|(reduction, ..)| !reduction.is_running())
    }

    /// The program over its elements, with accumulators if it has any.
    pub fn pass(&self) -> Option<&Part> {
        self.sums.as_ref().map(|sums| &sums.part).or(self.elements.as_ref())
    }

    /// Whether it needs all elements of a row at once.
    pub fn takes_whole_rows(&self) -> bool {
        !self.functions.is_empty() || self.reductions.iter().any(|(reduction, ..)| reduction.is_running())
    }

    /// Whether a function takes the rows of a slot.
    fn takes_row(&self, slot: Slot) -> bool {
        self.functions.iter().any(|function| function.from.contains(&slot))
    }
}

/// A function of whole rows in a stage, with its arguments and results. Only a scan has several results.
#[derive(Debug)]
pub(super) struct OfRows {
    pub function: RowFunction,
    pub from: SmallVec<[Slot; 2]>,
    pub to: SmallVec<[Slot; 1]>,
}

impl OfRows {
    /// Whether both are computed at the same time, because they are results of one scan.
    fn is_beside(&self, function: &RowFunction, from: &[Slot]) -> bool {
        match (&self.function, function) {
            (RowFunction::Scan(a), RowFunction::Scan(b)) => self.from[..] == *from && a.is_beside(b),
            _ => false,
        }
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
                        "output '{name}' is a number for each row, but differs along a row; reduce it, for example by a sum, or \
                         declare it as a row: [.., n]"
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
            let mut results_of_functions = Vec::with_capacity(functions.len());
            for (id, function, arguments) in functions {
                let from: SmallVec<[Slot; 2]> = arguments.iter().map(|id| split.row_of(*id, &mut roots)).collect();
                let (output, count) = match &function {
                    RowFunction::Scan(scan) => (scan.output, scan.states()),
                    _ => (0, 1),
                };
                let known = stage.functions.iter().position(|known| known.is_beside(&function, &from));
                let at = known.unwrap_or(stage.functions.len());
                if known.is_none() {
                    let to = (0..count).map(|_| split.new_array()).collect();
                    stage.functions.push(OfRows { function, from, to });
                }
                results_of_functions.push((id, stage.functions[at].to[output]));
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
            for (id, to) in results_of_functions {
                split.slots[id.at()] = Some(to);
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
            || stage.functions.iter().any(|function| function.to.contains(&slot))
            || stage.reductions.iter().any(is_running)
    };
    let is_computed = |stage: &Stage| stage.elements.as_ref().is_some_and(|part| part.outputs.contains(&slot));
    let first = stages.iter().position(is_computed).map_or(0, |at| at + 1);
    stages.iter().any(of_rows) || is_read(&stages[first..], slot)
}
