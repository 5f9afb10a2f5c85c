//! Definitions of hand-written ops: objects that implement [`CustomOp`].

use std::borrow::Cow;
use std::sync::Arc;

use crate::autograd::BackwardCall;
use crate::error::{Error, Result};
use crate::op::CustomOp;
use crate::op::def::*;
use crate::op::kernel::KernelTable;
use crate::tensor::{Device, Tensor};

/// The definition of an op object.
pub fn definition<O: CustomOp + ?Sized + 'static>(object: Arc<O>) -> OpRef
where
    Arc<O>: Send + Sync,
{
    let (n, name) = (object.num_inputs(), object.name().to_owned());
    let input = |i: usize| Input {
        name: if n <= 3 { ["x", "y", "z"][i].into() } else { format!("x{i}").into() },
        arity: Arity::One,
        dtype: DTypeRule::Any,
        mutated: false,
        core: Core::Scalar,
    };
    let output = Output { name: "out".into(), dtype: DTypeRule::Any, role: Role::Returned, core: Core::Scalar };
    let all: List<u8> = (0..n as u8).collect();
    let differentiated = object.clone();
    OpRef::Shared(Arc::new(OpDef {
        name: name.into(),
        aliases: Cow::Borrowed(&[]),
        doc: Cow::Borrowed(""),
        inputs: (0..n).map(input).collect(),
        attrs: Cow::Borrowed(&[]),
        outputs: Cow::Owned(vec![output]),
        generics: Cow::Borrowed(&[]),
        shape: ShapeRule::Inferred,
        predicates: Cow::Borrowed(&[]),
        axis: None,
        combine: None,
        properties: Cow::Borrowed(&[]),
        body: Body::Dynamic(Dynamic {
            run: Arc::new(move |call| forward(&*object, call.inputs()).map(|t| vec![t])),
            is_interpreted: false,
        }),
        backward: Backward::Formula(Formula {
            mode: Mode::Reverse,
            run: BackwardBody::Shared(Arc::new(move |call| backward(&*differentiated, call))),
            saved_inputs: all,
            saved_outputs: Cow::Borrowed(&[0]),
            without: Cow::Borrowed(&[]),
        }),
        kernels: KernelTable::new(),
        since: 0,
        location: Location { file: Cow::Borrowed("an implementation of CustomOp"), line: 0 },
    }))
}

fn forward<O: CustomOp + ?Sized>(object: &O, inputs: &[Option<&Tensor>]) -> Result<Tensor> {
    let inputs: Vec<&Tensor> = inputs.iter().copied().flatten().collect();
    if inputs.first().is_some_and(|t| t.device() == Device::Meta) {
        let shapes: Vec<_> = inputs.iter().map(|t| t.shape()).collect();
        let dtypes: Vec<_> = inputs.iter().map(|t| t.dtype()).collect();
        return Tensor::empty(object.output_shape(&shapes)?, object.output_dtype(&dtypes)?, Device::Meta);
    }
    object.validate_inputs(&inputs)?;
    object.forward(&inputs)
}

fn backward<O: CustomOp + ?Sized>(object: &O, call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
    let inputs: Vec<Tensor> = (0..call.num_inputs()).map(|i| call.input(i)).collect::<Result<_>>()?;
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    match object.create_gradient_function(&inputs, &call.output(0)?) {
        Some(gradient) => gradient.backward(&call.cotangent(0)?),
        None => Err(Error::runtime(format!("op '{}' has no gradient", object.name()))),
    }
}
