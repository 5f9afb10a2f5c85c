//! [`internal_op`]: ops that only the engine calls. They are not registered.

use std::borrow::Cow;
use std::sync::Arc;

use super::def::*;
use super::kernel::KernelTable;

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
