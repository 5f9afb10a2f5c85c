//! Element ops on the parts of a result that is not stored.

use smallvec::{SmallVec, smallvec};

use super::elements;
use super::strided::PartLoop;
use crate::attr::Attr;
use crate::backend::Wanted;
use crate::dispatch::Produced;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{OpDef, OutputPart, PartsKernel};
use crate::stop::{raise, stoppable};
use crate::tensor::{Device, Shape, Tensor};

/// A call whose result comes in parts.
pub struct First<'a> {
    /// Its kernel.
    pub kernel: PartsKernel,
    /// Its inputs.
    pub inputs: &'a [Option<&'a Tensor>],
    /// Its attributes.
    pub attrs: &'a [Attr],
    /// The size of the last axis of its result.
    pub width: usize,
}

/// A call of an element op with this result.
pub struct Then<'a> {
    /// The op.
    pub op: &'a OpDef,
    /// Its inputs; `None` for an absent one, and for the result.
    pub inputs: &'a [Option<&'a Tensor>],
    /// The inputs that are the result.
    pub of_parts: &'a [usize],
    /// Its attributes.
    pub attrs: &'a [Attr],
    /// The outputs that are computed.
    pub wanted: Wanted<'a>,
    /// The shape and the dtype of the result and of the outputs. The last axis of the result may be several axes here.
    pub shape: &'a Shape,
    pub dtype: DType,
}

/// Computes the outputs of both calls together. `None` if they are better computed one after the other.
pub fn run(first: &First<'_>, then: &Then<'_>) -> Result<Option<Produced>> {
    let Then { op, of_parts, attrs, wanted, shape, dtype, .. } = *then;
    // It has the shape of the result, and no memory.
    let form = Tensor::full(Shape::default(), 0.into(), dtype, Device::Cpu)?.broadcast_view(shape);
    let mut inputs: SmallVec<[Option<&Tensor>; 8]> = then.inputs.iter().copied().collect();
    of_parts.iter().for_each(|i| inputs[*i] = Some(&form));
    let mut is_fit = false;
    let outputs = elements::run_by(
        op,
        &inputs,
        attrs,
        &smallvec![dtype],
        Device::Cpu,
        wanted,
        shape,
        |kernel, outputs, output_dtypes| {
            let Some(parts) = PartLoop::new(kernel, (shape, first.width), &inputs, of_parts, outputs, output_dtypes)
            else {
                return Ok(());
            };
            let visit = |part: OutputPart| parts.run(part).unwrap_or_else(|error| raise(error));
            is_fit = stoppable(|| (first.kernel)(first.inputs, first.attrs, &visit))?;
            Ok(())
        },
    )?;
    Ok(is_fit.then_some(outputs))
}
