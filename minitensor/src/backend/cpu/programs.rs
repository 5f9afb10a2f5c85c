//! Programs as element kernels: a plan as a loop over elements.

use minitensor_kernels::program::{Plan, TILE, Tile};
use smallvec::SmallVec;

use super::strided::GRAIN;
use crate::attr::{Attr, AttrKind, uniform};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::program::at_type;
use crate::op::{Attribute, OpDef};

/// The fewest elements for a thread.
pub fn grain(plan: &Plan) -> usize {
    (4 * GRAIN / plan.steps().max(4)).max(TILE)
}

/// The loop over elements of a dtype; the float attributes are the program's uniforms.
pub fn kernel<'a>(
    op: &'a OpDef,
    plan: &'a Plan,
    dtype: DType,
    attrs: &'a [Attr],
) -> impl Fn(usize, &[*const u8], &[*mut u8]) -> Result<()> + Sync + 'a {
    fn at<T: Tile>(
        op: &OpDef,
        plan: &Plan,
        attrs: &[Attr],
        n: usize,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> Result<()> {
        let number = |(k, a): (usize, &Attribute)| uniform::<T>(attrs, k, &a.name);
        let floats = op.attrs.iter().enumerate().filter(|(_, a)| a.kind == AttrKind::Float);
        let uniforms = floats.map(number).collect::<Result<SmallVec<[T; 4]>>>()?;
        // SAFETY: the op takes no dtypes but those that the program runs at; its inputs and outputs are the program's, and
        // the caller gives `n` elements of each in the dtype that is computed in.
        unsafe { plan.run(n, inputs, &uniforms, outputs) };
        Ok(())
    }
    move |n, inputs, outputs| {
        at_type!(dtype, at(op, plan, attrs, n, inputs, outputs) else
            Err(Error::type_(format!("op '{}' has no kernel for {dtype}", op.name))))
    }
}
