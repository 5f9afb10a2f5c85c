//! Runs a program over memory, tile by tile. Each step is one compiled loop over a tile that stays in the L1 cache.

use std::convert::Infallible;
use std::marker::PhantomData;

use smallvec::SmallVec;

use super::{Id, Instruction, Malformed, OverRows, Primitive, Program, Storage, Tile, ValueType, row_by_row};
use crate::map::{Map, map};
use crate::memory::Line;
use crate::number::Truth;
use crate::row::LANES;
use crate::runtime::stop::filled;
use crate::runtime::threads::parallel_for;

/// The number of elements in a tile.
pub const TILE: usize = 512;

/// The minimum work per thread, in elements times steps.
const GRAIN: usize = 128 * 1024;

/// Registers that need at most this number of cache lines are on the stack.
const FEW_LINES: usize = 16;

/// The location of a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// In an input.
    Input(usize),
    /// In an output.
    Output(usize),
    /// In a register, which is a buffer of one tile.
    Register(usize),
}

/// One loop over a tile.
#[derive(Debug)]
struct Step {
    instruction: Id,
    inputs: SmallVec<[Place; 3]>,
    output: Place,
}

/// A program that is prepared to run over memory: its steps, with a place for each.
#[derive(Debug)]
pub struct Plan {
    program: Program,
    /// True for each input of truth values.
    pub(super) masks: Vec<bool>,
    /// How the numbers of inputs and of outputs are stored.
    pub(super) storage: [Vec<Storage>; 2],
    /// Registers that hold one number throughout, and the instruction that computes it.
    filled: Vec<(usize, Id)>,
    steps: Vec<Step>,
    /// Outputs that no step computes: inputs, uniforms, constants, or copies of another output.
    copies: Vec<(Place, ValueType, usize)>,
    registers: usize,
    pub(super) rows: OverRows,
    #[cfg(target_arch = "x86_64")]
    routines: super::routines::Routines,
}

impl Plan {
    /// The plan of a program. The inputs at the positions `masks` are [`Truth`]s in memory.
    ///
    /// # Errors
    /// If the program doesn't [verify](Program::verify), or if it uses a mask for anything other than
    /// [`Primitive::Truthy`].
    pub fn new(program: Program, masks: &[usize]) -> Result<Plan, Malformed> {
        program.verify()?;
        if program.is_of_rows() {
            return Err(Malformed("it has reductions, and elements have no rows to reduce".to_owned()));
        }
        let is_mask =
            |id: &Id| matches!(program.instructions[id.at()], Instruction::Input(k) if masks.contains(&(k as usize)));
        let asks_more = |instruction: &Instruction| {
            !matches!(instruction, Instruction::Apply(Primitive::Truthy, _))
                && instruction.operands().iter().any(|(id, _)| is_mask(id))
        };
        if program.instructions.iter().any(asks_more) || program.outputs.iter().any(|(_, id)| is_mask(id)) {
            return Err(Malformed("an input of truth values is used as a number".to_owned()));
        }
        let masks = (0..program.inputs.len()).map(|k| masks.contains(&k)).collect();
        let storage = [program.inputs.len(), program.outputs.len()].map(|n| vec![Storage::Own; n]);
        let mut plan = Plan {
            program,
            masks,
            storage,
            filled: vec![],
            steps: vec![],
            copies: vec![],
            registers: 0,
            rows: OverRows::default(),
            #[cfg(target_arch = "x86_64")]
            routines: Default::default(),
        };
        let Plan { program, masks, filled, steps, copies, registers, .. } = &mut plan;
        let instructions = &program.instructions;
        let mut last = vec![0; instructions.len()];
        for (at, instruction) in instructions.iter().enumerate() {
            instruction.operands().iter().for_each(|(id, _)| last[id.at()] = at);
        }
        let mut places: Vec<Place> = Vec::with_capacity(instructions.len());
        let mut free: Vec<usize> = vec![];
        for (at, instruction) in instructions.iter().enumerate() {
            let mut register = |free: &mut Vec<usize>| {
                free.pop().unwrap_or_else(|| {
                    *registers += 1;
                    *registers - 1
                })
            };
            places.push(match instruction {
                Instruction::Input(k) => Place::Input(*k as usize),
                Instruction::Apply(Primitive::Truthy, x) if matches!(places[x[0].at()], Place::Input(k) if masks[k]) => {
                    places[x[0].at()]
                }
                Instruction::Uniform(_)
                | Instruction::Constant(_)
                | Instruction::Epsilon
                | Instruction::Truth(_) => {
                    // Not a register that was free before: it is filled before the first step.
                    let register = register(&mut vec![]);
                    filled.push((register, Id(at as u32)));
                    Place::Register(register)
                }
                _ => {
                    let operands = instruction.operands();
                    let output = match program.outputs.iter().position(|(_, id)| id.at() == at) {
                        Some(k) => Place::Output(k),
                        None => Place::Register(register(&mut free)),
                    };
                    let inputs: SmallVec<[Place; 3]> = operands.iter().map(|(id, _)| places[id.at()]).collect();
                    for (k, (id, _)) in operands.iter().enumerate() {
                        let is_done = last[id.at()] == at && !instructions[id.at()].operands().is_empty();
                        let is_first = operands.iter().position(|(other, _)| other == id) == Some(k);
                        if let (Place::Register(r), true) = (places[id.at()], is_done && is_first) {
                            free.push(r);
                        }
                    }
                    steps.push(Step { instruction: Id(at as u32), inputs, output });
                    output
                }
            });
        }
        for (k, (_, id)) in program.outputs.iter().enumerate() {
            if places[id.at()] != Place::Output(k) {
                copies.push((places[id.at()], instructions[id.at()].kind(), k));
            }
        }
        Ok(plan)
    }

    /// The same plan, whose inputs and outputs are stored so. Only machine code runs it, if there is any.
    ///
    /// # Panics
    /// If there is not one for each input and output.
    pub fn stored(self, inputs: Vec<Storage>, outputs: Vec<Storage>) -> Plan {
        assert_eq!([inputs.len(), outputs.len()], [0, 1].map(|k| self.storage[k].len()), "inputs and outputs");
        Plan { storage: [inputs, outputs], rows: OverRows { has_loop: true, ..self.rows }, ..self }
    }

    /// The same plan, where those outputs bypass the cache that are stored as numbers of the program, if there is machine code for it.
    pub(super) fn past_cache<T: Tile>(&self) -> Option<Plan> {
        let masks: Vec<usize> = (0..self.masks.len()).filter(|k| self.masks[*k]).collect();
        let [inputs, outputs] = self.storage.clone();
        let bypassing = |storage| if storage == Storage::Own { Storage::NonTemporal } else { storage };
        let plan = Plan::new(self.program.clone(), &masks).ok()?.over_rows(self.rows.clone());
        Some(plan.stored(inputs, outputs.into_iter().map(bypassing).collect())).filter(Plan::has_machine_code::<T>)
    }

    /// Whether an input or output is stored in another way than as numbers of the program.
    fn is_stored(&self) -> bool {
        self.storage.iter().flatten().any(|storage| *storage != Storage::Own)
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The number of loops.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Runs the plan over `n` elements on this thread, as machine code if there is any, else by the interpreter. Both compute the
    /// same bits.
    ///
    /// # Safety
    /// The program [runs at](Program::runs_at) `T`, and the number of inputs, uniforms and outputs equals the
    /// program's. `inputs[k]` points to `n` contiguous `T`s or, for a mask, truth values, unless no step uses it.
    /// `outputs[k]` points to room for `n` of them and overlaps nothing else. If the plan is for other [storage](Plan::stored), these are
    /// stored so, and [there was machine code](Plan::has_machine_code) before.
    pub unsafe fn run<T: Tile>(&self, n: usize, inputs: &[*const u8], uniforms: &[T], outputs: &[*mut u8]) {
        #[cfg(target_arch = "x86_64")]
        {
            // The interpreter cannot read other storage. If the level has changed, the code of another level still runs.
            let of_any = || if self.is_stored() { self.routines.all::<T>().next() } else { None };
            if let Some(routine) = self.routines.of::<T>(self).or_else(of_any) {
                // SAFETY: the caller's contract.
                return unsafe { routine.run(n, inputs, uniforms.as_ptr().cast(), outputs) };
            }
        }
        debug_assert!(!self.is_stored(), "there is machine code");
        // SAFETY: the caller's contract.
        unsafe { self.interpret(n, inputs, uniforms, outputs) }
    }

    /// Runs the plan over several rows of `n` elements on this thread. `steps` are the bytes from one row to the next of each input,
    /// then of each output.
    ///
    /// # Safety
    /// As for [`Plan::run`], for each row.
    pub unsafe fn run_rows<T: Tile>(
        &self,
        rows: usize,
        n: usize,
        inputs: &[*const u8],
        uniforms: &[T],
        outputs: &[*mut u8],
        steps: &[isize],
    ) {
        if rows > 0 && self.has_loop_over_rows::<T>(n) && self.is_aligned::<T>(outputs, &steps[inputs.len()..]) {
            let mut ins: SmallVec<[*mut u8; 8]> = inputs.iter().map(|place| place.cast_mut()).collect();
            let mut outs: SmallVec<[*mut u8; 4]> = outputs.into();
            let mut strides = SmallVec::<[isize; 24]>::from_elem(0, OverRows::OPERANDS);
            strides[OverRows::NUMBER] = rows as isize;
            strides.extend_from_slice(steps);
            let mut uniforms = SmallVec::<[T; 4]>::from_slice(uniforms);
            // SAFETY: the caller's contract. All rows have the same uniforms, since their stride is 0 and there are no reductions.
            return unsafe { self.reduce_rows(n, &mut ins, &mut uniforms, &mut outs, &mut strides) };
        }
        let Ok(()) = row_by_row::<Infallible>(rows, inputs, outputs, steps, |inputs, outputs| {
            // SAFETY: the caller's contract.
            unsafe { self.run(n, inputs, uniforms, outputs) };
            Ok(())
        });
    }

    /// The same plan for the elements of rows. If it has reductions, only machine code runs it.
    pub(super) fn over_rows(self, rows: OverRows) -> Plan {
        Plan { rows, ..self }
    }

    /// Runs the plan over `n` elements, a multiple of [`LANES`]. There is machine code. The last outputs are totals of that many
    /// elements, and the last inputs are not used.
    ///
    /// # Safety
    /// As for [`Plan::run`].
    pub(super) unsafe fn reduce<T: Tile>(&self, n: usize, inputs: &[*const u8], uniforms: &[T], outputs: &[*mut u8]) {
        debug_assert!(n.is_multiple_of(LANES));
        #[cfg(target_arch = "x86_64")]
        if let Some(routine) = self.routines.of::<T>(self) {
            // SAFETY: the caller's contract.
            unsafe { routine.accumulate(n, inputs, uniforms.as_ptr().cast(), outputs) }
        }
    }

    /// Whether [`Plan::reduce_rows`] runs the plan over rows of `n` elements at the current SIMD level.
    pub(super) fn has_loop_over_rows<T: Tile>(&self, n: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.routines.of::<T>(self).is_some_and(|routine| routine.has_rows(n));
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = n;
            false
        }
    }

    /// Whether the machine code may write rows of outputs with these row strides.
    pub(super) fn is_aligned<T: Tile>(&self, outputs: &[*mut u8], strides: &[isize]) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.routines.of::<T>(self).is_none_or(|routine| routine.is_aligned(outputs, strides));
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (outputs, strides);
            true
        }
    }

    /// Runs the plan over several rows of `n` elements. `strides` are the number of rows, the distance in bytes from one row to the next of
    /// the uniforms, and from [`OverRows::OPERANDS`] on of each input and of each output. The results of reductions become uniforms. The number
    /// of rows, the pointers and the other integers change.
    ///
    /// # Safety
    /// As for [`Plan::run`], for each row. There [is](Plan::has_loop_over_rows) a loop over such rows. All rows have uniforms.
    pub(super) unsafe fn reduce_rows<T: Tile>(
        &self,
        n: usize,
        inputs: &mut [*mut u8],
        uniforms: &mut [T],
        outputs: &mut [*mut u8],
        strides: &mut [isize],
    ) {
        // If the level has changed, the code of another level still runs.
        #[cfg(target_arch = "x86_64")]
        if let Some(routine) =
            self.routines.of::<T>(self).into_iter().chain(self.routines.all::<T>()).find(|routine| routine.has_rows(n))
        {
            // SAFETY: the caller's contract.
            unsafe { routine.run_rows(n, inputs, uniforms.as_mut_ptr().cast(), outputs, strides) };
        }
    }

    /// True if there is machine code for numbers of type `T` at the current SIMD level.
    pub fn has_machine_code<T: Tile>(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.routines.of::<T>(self).is_some();
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Runs the plan over `n` elements on this thread by the interpreter.
    ///
    /// # Safety
    /// As for [`Plan::run`].
    pub unsafe fn interpret<T: Tile>(&self, n: usize, inputs: &[*const u8], uniforms: &[T], outputs: &[*mut u8]) {
        let work = Work { plan: self, inputs: Shared(inputs), uniforms, outputs: Shared(outputs) };
        // SAFETY: the caller's contract.
        unsafe { work.run(0..n, TILE.min(n)) }
    }
}

/// An elementwise loop whose step has a parameter.
struct With<T, P>(P, PhantomData<T>);

macro_rules! loops {
    ($($p:ty, ($($x:ident: $t:ty),+) -> $out:ty, |$this:ident| $y:expr;)*) => {$(
        impl<T: Tile> Map for With<T, $p> {
            type In = ($($t,)+);
            type Out = ($out,);
            #[inline(always)]
            fn eval(&self, ($($x,)+): Self::In) -> Self::Out { let $this = &self.0; ($y,) }
        }
    )*};
}

struct Powi(i64);
struct Polygamma(u32);
struct Select;
struct And;
struct Or;
struct Not;
struct Copy;
struct CopyMask;
loops! {
    Powi, (x: T) -> T, |n| x.apply_powi(n.0).unwrap_or(x);
    Polygamma, (x: T) -> T, |n| x.apply_polygamma(n.0).unwrap_or(x);
    Select, (m: bool, a: T, b: T) -> T, |_p| T::select(m, a, b);
    And, (a: bool, b: bool) -> bool, |_p| a & b;
    Or, (a: bool, b: bool) -> bool, |_p| a | b;
    Not, (a: bool) -> bool, |_p| !a;
    Copy, (x: T) -> T, |_p| x;
    CopyMask, (x: bool) -> bool, |_p| x;
}

/// # Safety
/// As for [`map`].
unsafe fn run_with<T: Tile, P>(parameter: P, n: usize, inputs: &[*const u8], output: *mut u8)
where
    With<T, P>: Map,
{
    // SAFETY: the caller's contract.
    unsafe { map(&With::<T, P>(parameter, PhantomData), n, inputs, &[output]) }
}

impl Program {
    /// Runs the program over `n` elements, on several threads if there is enough work. Masks are [`Truth`]s in memory.
    ///
    /// # Errors
    /// If `T` lacks a primitive of the program.
    ///
    /// # Panics
    /// If the number of inputs, uniforms or outputs differs from the program's.
    ///
    /// # Safety
    /// The program [verifies](Program::verify). `inputs[k]` points to `n` contiguous `T`s. `outputs[k]` points to room
    /// for `n` `T`s or, for a mask, [`Truth`]s, and overlaps nothing else.
    pub unsafe fn run<T: Tile>(
        &self,
        n: usize,
        inputs: &[*const T],
        uniforms: &[T],
        outputs: &[*mut u8],
    ) -> Result<(), Malformed> {
        assert_eq!((inputs.len(), uniforms.len()), (self.inputs.len(), self.uniforms.len()), "arguments of a program");
        assert_eq!(outputs.len(), self.outputs.len(), "outputs of a program");
        if !self.runs_at::<T>() {
            return Err(Malformed(format!("{} lacks one of its primitives", std::any::type_name::<T>())));
        }
        let plan = Plan::new(self.clone(), &[])?;
        let inputs: Vec<*const u8> = inputs.iter().map(|x| x.cast()).collect();
        let work = Work { plan: &plan, inputs: Shared(&inputs[..]), uniforms, outputs: Shared(outputs) };
        parallel_for(n, (GRAIN / plan.steps.len().max(1)).next_multiple_of(TILE), |range| {
            // SAFETY: the caller's contract; ranges don't overlap.
            unsafe { work.run(range, TILE) }
        });
        Ok(())
    }

    /// True if `T` supports all primitives of the program.
    pub fn runs_at<T: Tile>(&self) -> bool {
        self.instructions.iter().all(|instruction| match instruction {
            Instruction::Apply(primitive, _) => T::kernel(*primitive).is_some(),
            Instruction::Powi(_, exponent) => T::one().apply_powi(*exponent).is_some(),
            Instruction::Polygamma(_, order) => T::one().apply_polygamma(*order).is_some(),
            Instruction::Epsilon => T::apply_epsilon().is_some(),
            Instruction::Reduce(..) | Instruction::Row(..) | Instruction::Position | Instruction::Count => T::HAS_ROWS,
            _ => true,
        })
    }
}

/// A reference to pointers that several threads access, each in its own range.
pub(super) struct Shared<'a, P: ?Sized>(pub &'a P);
// SAFETY: by the contracts of `Program::run` and `RowPlan::run` the memory is valid; each thread writes to its own range.
unsafe impl<P: ?Sized> Sync for Shared<'_, P> {}

impl<'a, P: ?Sized> Shared<'a, P> {
    pub(super) fn get(&self) -> &'a P {
        self.0
    }
}

struct Work<'a, T> {
    plan: &'a Plan,
    inputs: Shared<'a, [*const u8]>,
    uniforms: &'a [T],
    outputs: Shared<'a, [*mut u8]>,
}

impl<T: Tile> Work<'_, T> {
    /// # Safety
    /// As for [`Program::run`], for the elements of this range, which no other thread writes.
    unsafe fn run(&self, range: std::ops::Range<usize>, tile: usize) {
        // One line more than a tile: tiles that start at the same page offset would compete for the same cache sets.
        let stride = (tile * size_of::<T>()).next_multiple_of(Line::BYTES) + Line::BYTES;
        let lines = self.plan.registers * stride / Line::BYTES;
        let mut memory: SmallVec<[Line; FEW_LINES]> =
            if lines > FEW_LINES { filled(Line::ZERO, lines).into() } else { SmallVec::from_elem(Line::ZERO, lines) };
        let registers = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: the memory has that many registers.
        let register = |r: usize| unsafe { registers.add(r * stride) };
        for (r, id) in &self.plan.filled {
            let instruction = &self.plan.program.instructions[id.at()];
            match instruction.value::<T>(&[], self.uniforms, &[]) {
                // SAFETY: a register has room for a tile, and is aligned for 16 bytes.
                Some(super::ScalarValue::Number(x)) => unsafe {
                    std::slice::from_raw_parts_mut(register(*r).cast::<T>(), tile).fill(x);
                },
                // SAFETY: as above.
                Some(super::ScalarValue::Mask(t)) => unsafe {
                    std::slice::from_raw_parts_mut(register(*r).cast::<Truth>(), tile).fill(t.into());
                },
                None => {}
            }
        }
        for start in range.clone().step_by(tile.max(1)) {
            let n = tile.min(range.end - start);
            let at = |place: Place| -> *mut u8 {
                match place {
                    // SAFETY: the caller's contract: the elements from `start` on are valid.
                    Place::Input(k) => unsafe { self.inputs.0[k].add(start * self.input_size(k)).cast_mut() },
                    // SAFETY: as above.
                    Place::Output(k) => unsafe { self.outputs.0[k].add(start * self.output_size(k)) },
                    Place::Register(r) => register(r),
                }
            };
            for step in &self.plan.steps {
                let inputs: SmallVec<[*const u8; 3]> = step.inputs.iter().map(|p| at(*p).cast_const()).collect();
                // SAFETY: all places hold a tile of the type that the instruction requires; the output is no input.
                unsafe {
                    self.step(&self.plan.program.instructions[step.instruction.at()], n, &inputs, at(step.output))
                }
            }
            for (from, kind, k) in &self.plan.copies {
                let inputs = [at(*from).cast_const()];
                // SAFETY: as above.
                unsafe {
                    match kind {
                        ValueType::Number => run_with::<T, _>(Copy, n, &inputs, at(Place::Output(*k))),
                        ValueType::Mask => run_with::<T, _>(CopyMask, n, &inputs, at(Place::Output(*k))),
                    }
                }
            }
        }
    }

    fn input_size(&self, k: usize) -> usize {
        if self.plan.masks[k] { size_of::<Truth>() } else { size_of::<T>() }
    }

    fn output_size(&self, k: usize) -> usize {
        match self.plan.program.instructions[self.plan.program.outputs[k].1.at()].kind() {
            ValueType::Number => size_of::<T>(),
            ValueType::Mask => size_of::<Truth>(),
        }
    }

    /// # Safety
    /// As for [`map`].
    unsafe fn step(&self, instruction: &Instruction, n: usize, inputs: &[*const u8], output: *mut u8) {
        // SAFETY: the caller's contract.
        unsafe {
            match instruction {
                Instruction::Apply(p, _) => {
                    if let Some(kernel) = T::kernel(*p) {
                        kernel(n, inputs, output);
                    }
                }
                Instruction::Powi(_, e) => run_with::<T, _>(Powi(*e), n, inputs, output),
                Instruction::Polygamma(_, order) => run_with::<T, _>(Polygamma(*order), n, inputs, output),
                Instruction::Select(..) => run_with::<T, _>(Select, n, inputs, output),
                Instruction::And(..) => run_with::<T, _>(And, n, inputs, output),
                Instruction::Or(..) => run_with::<T, _>(Or, n, inputs, output),
                Instruction::Not(_) => run_with::<T, _>(Not, n, inputs, output),
                Instruction::Detach(_) => run_with::<T, _>(Copy, n, inputs, output),
                Instruction::Input(_) | Instruction::Uniform(_) | Instruction::Constant(_) | Instruction::Epsilon => {}
                Instruction::Truth(_) => {}
                // `Plan::new` refuses these.
                Instruction::Reduce(..) | Instruction::Row(..) | Instruction::Position | Instruction::Count => {}
            }
        }
    }
}
