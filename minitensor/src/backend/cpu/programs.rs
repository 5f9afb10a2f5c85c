//! Programs as element kernels: a plan as a loop over elements.

use std::ops::Deref;

use minitensor_kernels::program::{Instruction, Plan, Primitive, TILE, Tile};
use smallvec::SmallVec;

use super::strided::{GRAIN, Loop};
use crate::attr::{Attr, AttrKind, uniform};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::element_program::Parts;
use crate::op::program::at_type;
use crate::op::{Attribute, DTypeRule, OpDef};

/// The fewest elements for a thread.
pub fn grain(plan: &Plan) -> usize {
    (4 * GRAIN / plan.steps().max(4)).max(TILE)
}

/// A program as a loop. The float attributes are the program's uniforms.
struct ProgramLoop<T, P> {
    plan: P,
    uniforms: SmallVec<[T; 4]>,
}

// The op takes no dtypes but those that the program runs at; its inputs and outputs are the program's, and the caller gives the elements
// of each, stored as the plan expects.
impl<T: Tile, P: Deref<Target = Plan> + Sync> Loop for ProgramLoop<T, P> {
    fn run(&self, n: usize, inputs: &[*const u8], outputs: &[*mut u8]) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.plan.run(n, inputs, &self.uniforms, outputs) };
        Ok(())
    }

    fn run_rows(
        &self,
        rows: usize,
        n: usize,
        inputs: &[*const u8],
        outputs: &[*mut u8],
        steps: &[isize],
    ) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.plan.run_rows(rows, n, inputs, &self.uniforms, outputs, steps) };
        Ok(())
    }
}

/// The loop over elements of a dtype.
pub fn kernel<'a>(
    op: &OpDef,
    plan: impl Deref<Target = Plan> + Sync + 'a,
    dtype: DType,
    attrs: &[Attr],
) -> Result<Box<dyn Loop + 'a>> {
    fn at<'a, T: Tile>(
        op: &OpDef,
        plan: impl Deref<Target = Plan> + Sync + 'a,
        attrs: &[Attr],
    ) -> Result<Box<dyn Loop + 'a>> {
        let uniforms = uniforms::<T>(op, &plan, attrs)?;
        Ok(Box::new(ProgramLoop { plan, uniforms }))
    }
    at_type!(dtype, at(op, plan, attrs) else Err(no_kernel(op, dtype)))
}

/// Runs such a loop once.
pub fn run(
    op: &OpDef,
    plan: &Plan,
    dtype: DType,
    attrs: &[Attr],
    n: usize,
    inputs: &[*const u8],
    outputs: &[*mut u8],
) -> Result<()> {
    fn at<T: Tile>(
        op: &OpDef,
        plan: &Plan,
        attrs: &[Attr],
        n: usize,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> Result<()> {
        // SAFETY: as above.
        unsafe { plan.run(n, inputs, &uniforms::<T>(op, plan, attrs)?, outputs) };
        Ok(())
    }
    at_type!(dtype, at(op, plan, attrs, n, inputs, outputs) else Err(no_kernel(op, dtype)))
}

fn uniforms<T: Tile>(op: &OpDef, plan: &Plan, attrs: &[Attr]) -> Result<SmallVec<[T; 4]>> {
    let number = |(k, a): (usize, &Attribute)| uniform::<T>(attrs, k, &a.name);
    let floats = op.attrs.iter().enumerate().filter(|(_, a)| a.kind == AttrKind::Float);
    // One of two parts may have none.
    floats.take(plan.program().uniforms().len()).map(number).collect()
}

/// Checks that a dtype can hold the numbers among the attributes, as a computation does.
pub fn check_uniforms(op: &OpDef, dtype: DType, attrs: &[Attr]) -> Result<()> {
    fn check<T: Tile>(op: &OpDef, attrs: &[Attr]) -> Result<()> {
        let mut floats = op.attrs.iter().enumerate().filter(|(_, a)| a.kind == AttrKind::Float);
        floats.try_for_each(|(k, a)| uniform::<T>(attrs, k, &a.name).map(drop))
    }
    at_type!(dtype, check(op, attrs) else Ok(()))
}

#[cold]
fn no_kernel(op: &OpDef, dtype: DType) -> Error {
    Error::type_(format!("op '{}' has no kernel for {dtype}", op.name))
}

/// Whether there is machine code for a plan over elements of a dtype.
pub fn has_machine_code(plan: &Plan, dtype: DType) -> bool {
    fn has<T: Tile>(plan: &Plan) -> bool {
        plan.has_machine_code::<T>()
    }
    at_type!(dtype, has(plan) else false)
}

/// Whether machine code is faster than the compiled loop of integers. Machine code computes integers of 8 and 16 bits in 32 bits, so it
/// wins only for shifts and quotients, which the compiled loop does not vectorize.
pub fn outruns_loop(plan: &Plan, dtype: DType, is_in_place: bool) -> bool {
    use Primitive::{FloorDivide, LeftShift, Remainder, RightShift};
    let is_slow = |instruction: &Instruction| {
        matches!(instruction, Instruction::Apply(FloorDivide | LeftShift | Remainder | RightShift, _))
    };
    let gains = || dtype.size() >= 4 && !is_in_place || plan.program().instructions().iter().any(is_slow);
    gains() && has_machine_code(plan, dtype)
}

/// The loop over elements of several dtypes.
pub fn kernel_of_parts<'a>(
    op: &'a OpDef,
    parts: &'a Parts,
    dtypes: &'a [DType],
    attrs: &[Attr],
) -> Result<Box<dyn Loop + 'a>> {
    let size = |rule: DTypeRule| match rule {
        DTypeRule::Generic(g) => dtypes[usize::from(g)].compute().size(),
        _ => DType::Bool.size(),
    };
    let Parts { split, plans } = parts;
    let loops = split.parts.iter().zip(plans).map(|(part, plan)| kernel(op, plan, dtypes[part.of], attrs));
    let loops = loops.collect::<Result<SmallVec<[_; 3]>>>()?;
    Ok(Box::new(move |n, inputs: &[*const u8], outputs: &[*mut u8]| {
        let mut masks = vec![0_u8; split.masks * TILE];
        for start in (0..n).step_by(TILE) {
            let count = TILE.min(n - start);
            let input = |k: &usize| inputs[*k].wrapping_add(start * size(op.inputs[*k].dtype));
            let output = |k: &usize| outputs[*k].wrapping_add(start * size(op.outputs[*k].dtype));
            let masks: SmallVec<[*mut u8; 4]> = masks.chunks_exact_mut(TILE).map(<[u8]>::as_mut_ptr).collect();
            for (part, run) in split.parts.iter().zip(&loops) {
                let (takes, gives) =
                    (part.takes.iter().map(|k| masks[*k].cast_const()), part.gives.iter().map(|k| masks[*k]));
                let ins: SmallVec<[*const u8; 8]> = part.inputs.iter().map(input).chain(takes).collect();
                let outs: SmallVec<[*mut u8; 4]> = part.outputs.iter().map(output).chain(gives).collect();
                run.run(count, &ins, &outs)?;
            }
        }
        Ok(())
    }))
}
