//! Positions and random numbers. A definition with them makes two ops: one computes them, and calls one in the namespace `given`, which
//! takes them as inputs.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use super::opcheck::quietly;
use super::sample::{Sample, made};
use crate::attr::Attr;
use crate::dispatch::Produced;
use crate::dispatch::capture::{Observer, observe};
use crate::error::Result;
use crate::op::{Arg, Input, OpDef, OpRef, ShapeRule, registry};
use crate::random::manual_seed;
use crate::tensor::{Shape, Tensor};

/// The op that computes inputs of this one.
fn caller(op: &OpDef) -> Option<OpRef> {
    let name = op.name.strip_prefix("given::")?;
    let is_passed = |input: &Input| input.name == "key" || op.inputs.iter().any(|own| own.name == input.name);
    registry::list().into_iter().find(|other| {
        other.location == op.location && other.name.replace("::", "_") == name && other.inputs.iter().all(is_passed)
    })
}

/// The inputs that another op computes. Their values are never others, so no check changes them, and they need no gradient.
pub fn computed(op: &OpDef) -> Vec<usize> {
    let Some(caller) = caller(op) else { return Vec::new() };
    let is_passed = |i: &usize| caller.inputs.iter().any(|input| input.name == op.inputs[*i].name);
    (0..op.inputs.len()).filter(|i| !is_passed(i)).collect()
}

/// The calls of an op by the one that computes its inputs, for the samples of that one. `None` if no op computes them.
pub fn samples(op: &OpRef) -> Option<(Vec<Sample>, Option<String>)> {
    let caller = caller(op)?;
    let (given, refusal) = made(&caller);
    let called = given.iter().filter_map(|sample| {
        let calls = Arc::new(Calls { op: op.clone(), thread: thread::current().id(), last: Mutex::default() });
        let _calls = observe(calls.clone());
        manual_seed(0);
        quietly(|| sample.call(&caller)).ok()?;
        let inputs = calls.last.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let inputs = if let ShapeRule::Broadcast = op.shape { broadcast(inputs)? } else { inputs };
        let of_caller = |name: &str| caller.attrs.iter().position(|attr| attr.name == name);
        let attrs = op.attrs.iter().map(|attr| match of_caller(&attr.name) {
            Some(k) => sample.attrs[k].clone(),
            None => attr.default.clone().unwrap_or(Attr::None),
        });
        Some(Sample { inputs, attrs: attrs.collect() })
    });
    Some((called.collect(), refusal))
}

/// The inputs of elements in one shape, as in other samples. Positions have the size 1 along other axes.
fn broadcast(inputs: Vec<Option<Tensor>>) -> Option<Vec<Option<Tensor>>> {
    let shape = inputs.iter().flatten().try_fold(Shape::default(), |shape, t| shape.broadcast(t.shape()))?;
    let copied = |t: Option<Tensor>| t.map(|t| t.broadcast_view(&shape).copied()).transpose();
    inputs.into_iter().map(copied).collect::<Result<_>>().ok()
}

/// Keeps the inputs of the last call of an op by a thread.
struct Calls {
    op: OpRef,
    thread: ThreadId,
    last: Mutex<Option<Vec<Option<Tensor>>>>,
}

impl Observer for Calls {
    fn call(&self, op: &OpRef, args: &[Arg<'_>], proceed: &mut dyn FnMut() -> Result<Produced>) -> Result<Produced> {
        if op.is(&self.op) && thread::current().id() == self.thread {
            let tensor = |arg: &Arg<'_>| if let Arg::Tensor(t) = arg { Some(t.detach()) } else { None };
            let inputs = args.iter().map(tensor).collect();
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(inputs);
        }
        proceed()
    }
}
