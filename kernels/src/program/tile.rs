//! Runs a program over memory, tile by tile. Each step is one compiled loop over a tile that stays in the L1 cache.

use std::marker::PhantomData;

use smallvec::SmallVec;

use super::plan::Place;
use super::{Instruction, Malformed, Plan, Program, Tile, ValueType};
use crate::map::{Map, map};
use crate::memory::Line;
use crate::number::Truth;
use crate::row::RowFunction;
#[cfg(target_arch = "x86_64")]
use crate::runtime::simd::{Level, level};
use crate::runtime::stop::filled;
use crate::runtime::threads::parallel_for;

/// The number of elements in a tile.
pub const TILE: usize = 512;

/// The minimum work per thread, in elements times steps.
const GRAIN: usize = 128 * 1024;

/// Registers that need at most this number of cache lines are on the stack.
const FEW_LINES: usize = 16;
impl Plan {
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

    /// True if machine code can be made for numbers of type `T` at the current SIMD level. The program is one over elements.
    pub fn has_form_at<T: Tile>(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return level() != Level::Baseline && T::CODE.is_some_and(|code| (code.has_form)(self));
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// True if `T` supports all primitives of the program.
    pub fn runs_at<T: Tile>(&self) -> bool {
        self.instructions.iter().all(|instruction| match instruction {
            Instruction::Apply(primitive, _) => T::kernel(*primitive).is_some(),
            Instruction::Powi(_, exponent) => T::one().apply_powi(*exponent).is_some(),
            Instruction::Polygamma(_, order) => T::one().apply_polygamma(*order).is_some(),
            Instruction::Epsilon => T::apply_epsilon().is_some(),
            Instruction::Bits(bits) => T::apply_bits(*bits).is_some(),
            Instruction::Row(RowFunction::Scan(scan), _) => T::HAS_ROWS && scan.runs_at::<T>(),
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
                Instruction::Truth(_) | Instruction::Bits(_) => {}
                // `Plan::new` refuses these.
                Instruction::Reduce(..) | Instruction::Row(..) | Instruction::Position | Instruction::Count => {}
            }
        }
    }
}
