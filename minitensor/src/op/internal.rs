//! [`internal_op`]: ops that only the engine calls. They are not registered.

use std::borrow::Cow;
use std::sync::Arc;

use super::call::Call;
use super::def::*;
use super::kernel::KernelTable;
use crate::error::Error;

/// An op that occurs only in histories: its gradient reads tensors that its node saves.
pub(crate) fn history_op(name: String, is_interpreted: bool, gradient: Arc<DynamicBackwardFn>) -> OpRef {
    let body = |_: &Call<'_>| Err(Error::runtime("it occurs only in histories, and is not called"));
    let none: List<u8> = Cow::Borrowed(&[]);
    let backward = Backward::Formula(Formula {
        mode: Mode::Reverse,
        run: BackwardBody::Shared(gradient),
        saved_inputs: none.clone(),
        saved_outputs: none.clone(),
        without: none,
    });
    internal_op(name, Dynamic { run: Arc::new(body), is_interpreted }, backward)
}

/// An op that takes a list of tensors of any shapes and dtypes, and returns such a list.
pub(crate) fn internal_op(name: String, body: Dynamic, backward: Backward) -> OpRef {
    let any = DTypeRule::Any;
    let input =
        Input { name: Cow::Borrowed("args"), arity: Arity::Variadic, dtype: any, mutated: false, core: Core::Scalar };
    let output = Output { name: Cow::Borrowed("outs"), dtype: any, role: Role::Returned, core: Core::Scalar };
    OpRef::Shared(Arc::new(OpDef {
        name: Cow::Owned(name),
        aliases: Cow::Borrowed(&[]),
        doc: Cow::Borrowed(""),
        inputs: Cow::Owned(vec![input]),
        attrs: Cow::Borrowed(&[]),
        outputs: Cow::Owned(vec![output]),
        generics: Cow::Borrowed(&[]),
        shape: ShapeRule::Inferred,
        predicates: Cow::Borrowed(&[]),
        axis: None,
        combine: None,
        properties: Cow::Borrowed(&[]),
        body: Body::Dynamic(body),
        backward,
        kernels: KernelTable::new(),
        since: 0,
        location: Location { file: Cow::Borrowed(file!()), line: line!() },
    }))
}
