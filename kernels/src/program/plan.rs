//! [`Plan`]: a program over elements, prepared to run over memory.

use std::convert::Infallible;

use smallvec::SmallVec;

use super::{Id, Instruction, Malformed, OverRows, Primitive, Program, Storage, Tile, ValueType, row_by_row};
use crate::row::LANES;

/// The location of a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// In an input.
    Input(usize),
    /// In an output.
    Output(usize),
    /// In a register, which is a buffer of one tile.
    Register(usize),
}

/// One loop over a tile.
#[derive(Debug)]
pub(super) struct Step {
    pub instruction: Id,
    pub inputs: SmallVec<[Place; 3]>,
    pub output: Place,
}

/// A program that is prepared to run over memory: its steps, with a place for each.
#[derive(Debug)]
pub struct Plan {
    pub(super) program: Program,
    /// True for each input of truth values.
    pub(super) masks: Vec<bool>,
    /// How the numbers of inputs and of outputs are stored.
    pub(super) storage: [Vec<Storage>; 2],
    /// Registers that hold one number throughout, and the instruction that computes it.
    pub(super) filled: Vec<(usize, Id)>,
    pub(super) steps: Vec<Step>,
    /// Outputs that no step computes: inputs, uniforms, constants, or copies of another output.
    pub(super) copies: Vec<(Place, ValueType, usize)>,
    pub(super) registers: usize,
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
                // A constant or a uniform.
                leaf if leaf.operands().is_empty() => {
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
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is no machine code"))]
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
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is no machine code"))]
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

    /// The number of elements that machine code computes at once; 1 if there is none.
    pub(super) fn lanes<T: Tile>(&self) -> usize {
        #[cfg(target_arch = "x86_64")]
        return self.routines.of::<T>(self).map_or(1, |routine| routine.lanes());
        #[cfg(not(target_arch = "x86_64"))]
        1
    }

    /// True if there is machine code for numbers of type `T` at the current SIMD level.
    pub fn has_machine_code<T: Tile>(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.routines.of::<T>(self).is_some();
        #[cfg(not(target_arch = "x86_64"))]
        false
    }
}
