//! [`Replay`]: the recorded calls, made for all examples.

use smallvec::SmallVec;

use super::rule::{self, Given, Together};
use super::{History, Randomness};
use crate::attr::Attr;
use crate::autograd::{GradMode, is_grad_enabled};
use crate::backend::Wanted;
use crate::dispatch::{Produced, dispatch_wanted};
use crate::error::{Error, Result};
use crate::graph::record;
use crate::graph::recorder::Recorder;
use crate::graph::{Call, Graph, Operand, Source, ValueId};
use crate::interrupt;
use crate::op::by_name::names;
use crate::op::{Arg, OpName, OpRef};
use crate::precision::Wide;
use crate::random::next_key;
use crate::tensor::{Layout, Region, Shape, Tensor};

static MOVEAXIS: OpName = OpName::new("moveaxis");
static STACK: OpName = OpName::new("stack");

/// The calls of a function of one example, ready to be made for all examples.
pub struct Replay {
    graph: Graph,
    histories: Vec<History>,
    /// The tensors of the example.
    held: Vec<Tensor>,
    /// The arguments, with the axis of the examples.
    tensors: Vec<Tensor>,
    /// The results of the function, and whether they are without the history of their values.
    results: Vec<(ValueId, bool)>,
    size: usize,
    randomness: Randomness,
    /// The values for the whole batch, and whether their first axis is that of the examples.
    values: Vec<Option<(Tensor, bool)>>,
    /// For each memory, whether a call changes it in place. All its values have the axis of the examples.
    written: Vec<bool>,
}

impl Replay {
    pub(super) fn new(
        recorder: Recorder,
        tensors: Vec<Tensor>,
        results: Vec<(ValueId, bool)>,
        size: usize,
        randomness: Randomness,
    ) -> Result<Replay> {
        let Recorder { graph, held, histories, .. } = recorder;
        if randomness == Randomness::Error && graph.draws() {
            return Err(Error::runtime(
                "the function of mt.vmap draws random numbers; choose with randomness=\"different\" or randomness=\"same\" whether \
                 each example gets its own",
            ));
        }
        let histories = histories.map_or_else(Vec::new, super::Histories::into_calls);
        let (written, values) = (graph.written(), Vec::with_capacity(held.len()));
        Ok(Replay { graph, histories, held, tensors, results, size, randomness, values, written })
    }

    /// About the size of all tensors of a run together, in bytes.
    pub fn bytes(&self) -> usize {
        let bytes = |t: &Tensor| t.numel().saturating_mul(t.dtype().size()).saturating_mul(self.size);
        self.held.iter().map(bytes).fold(0, usize::saturating_add)
    }

    /// Makes the calls. Each result has the examples along its first axis.
    ///
    /// # Errors
    /// The error of a call.
    pub fn run(mut self) -> Result<Vec<Tensor>> {
        for at in 0..self.graph.values.len() {
            let value = self.source(ValueId(at as u32))?;
            self.values.push(value);
        }
        self.calls()?;
        self.results.iter().map(|(id, is_cut)| self.result(*id, *is_cut)).collect()
    }

    /// A value that no call computes.
    fn source(&self, id: ValueId) -> Result<Option<(Tensor, bool)>> {
        let value = self.graph.value(id);
        let given = match &value.source {
            Source::Input(at) => (self.tensors[*at].clone(), true),
            Source::Captured(_) => (self.held[id.at()].clone(), false),
            Source::Constant(t) => (t.clone(), false),
            Source::Gradient(meta) => {
                let now = meta.grad();
                record::note_gradient(meta, &|| now.clone());
                (now.ok_or_else(|| Error::runtime("a gradient is missing"))?, false)
            }
            Source::GradientOf(_) => return Err(Error::runtime("a gradient of an argument is missing")),
            Source::Key(n, block) if self.randomness == Randomness::Different => {
                let keys = (0..self.size).map(|_| next_key(*n, *block, value.device)).collect::<Result<Vec<_>>>()?;
                (self.stack(&keys, &self.held[id.at()])?, true)
            }
            Source::Key(n, block) => (next_key(*n, *block, value.device)?, false),
            Source::Computed => return Ok(None),
        };
        self.for_writing(id, given).map(Some)
    }

    /// Makes all calls on which the results depend.
    fn calls(&mut self) -> Result<()> {
        let mut is_used = vec![false; self.values.len()];
        self.results.iter().for_each(|(id, _)| is_used[id.at()] = true);
        let mut last_used: Vec<SmallVec<[ValueId; 2]>> = vec![SmallVec::new(); self.graph.calls.len()];
        let mut is_needed = vec![false; self.graph.calls.len()];
        for (at, call) in self.graph.calls.iter().enumerate().rev() {
            let is_written = |id: ValueId| self.written[self.graph.value(id).memory as usize];
            is_needed[at] = call.changes().next().is_some()
                || call.outputs.iter().flatten().any(|id| is_used[id.at()] || is_written(*id));
            if is_needed[at] {
                let unused =
                    call.reads().chain(call.computes()).filter(|id| !std::mem::replace(&mut is_used[id.at()], true));
                last_used[at] = unused.collect();
            }
        }
        for at in 0..self.graph.calls.len() {
            if is_needed[at] {
                interrupt::check()?;
                let call = self.graph.calls[at].clone();
                self.call(&call, at).map_err(|e| e.context("mt.vmap"))?;
                last_used[at].iter().for_each(|id| self.values[id.at()] = None);
            }
        }
        Ok(())
    }

    /// A result, with the axis of the examples.
    fn result(&self, id: ValueId, is_cut: bool) -> Result<Tensor> {
        let (t, is_batched) = self.values[id.at()].clone().ok_or_else(|| Error::runtime("a result is missing"))?;
        let t = cut(t, is_cut);
        if is_batched { Ok(t) } else { self.repeated(&t) }
    }

    fn call(&mut self, call: &Call, at: usize) -> Result<()> {
        let history = &self.histories[at];
        let _mode = GradMode::new(history.is_recorded);
        let _wide = call.is_wide.then(Wide::new);
        let mut given: SmallVec<[Given; 4]> = SmallVec::new();
        for (arg, is_cut) in call.args.iter().zip(&history.is_cut) {
            given.push(match arg {
                Operand::None => Given::None,
                Operand::Number(value) => Given::Number(*value),
                Operand::Value(id) => {
                    let (t, is_batched) =
                        self.values[id.at()].clone().ok_or_else(|| Error::runtime("an argument is missing"))?;
                    Given::Tensor(cut(t, *is_cut), is_batched)
                }
            });
        }
        separate(call, &mut given)?;
        let differs = call.draws && self.randomness == Randomness::Different;
        let is_batched = given.iter().any(Given::is_batched) || differs;
        let outputs = if !is_batched {
            dispatched(&call.op, &given, &call.attrs)?
        } else if call.draws && !differs {
            return Err(Error::runtime(format!(
                "op '{}' draws random numbers in its own code, so all examples cannot have the same; use \
                 randomness=\"different\"",
                call.op.name
            )));
        } else {
            let results: SmallVec<[Option<&Tensor>; 1]> =
                call.outputs.iter().map(|id| id.map(|id| &self.held[id.at()])).collect();
            match if differs { None } else { rule::whole(call, &given, &results, self.size)? } {
                Some(together) => self.whole(call, together)?,
                None => self.one_by_one(call, &given)?,
            }
        };
        let computed: SmallVec<[ValueId; 2]> = call.computes().collect();
        for (id, t) in call.outputs.iter().zip(outputs) {
            if let (Some(id), Some(t)) = (id.filter(|id| computed.contains(id)), t) {
                if is_batched && t.shape()[..] != [&[self.size], &self.held[id.at()].shape()[..]].concat() {
                    return Err(Error::runtime(format!(
                        "op '{}' returned shape {} for {} examples of shape {}",
                        call.op.name,
                        t.shape(),
                        self.size,
                        self.held[id.at()].shape()
                    )));
                }
                let t = self.as_recorded(call, id, t, &given)?;
                self.values[id.at()] = Some(self.for_writing(id, (t, is_batched))?);
            }
        }
        Ok(())
    }

    /// A result that is a view, or a copy, as it is for one example: that matters where memory is changed in place.
    fn as_recorded(&self, call: &Call, id: ValueId, t: Tensor, given: &[Given]) -> Result<Tensor> {
        let memory = self.graph.value(id).memory;
        for (arg, whole) in call.args.iter().zip(given) {
            let (Operand::Value(of), Given::Tensor(whole, _)) = (arg, whole) else { continue };
            let other = self.graph.value(*of).memory;
            let (is_view, shares) = (memory == other, whole.shares_storage(&t));
            if is_view == shares || t.numel() == 0 || !self.written[memory as usize] && !self.written[other as usize] {
                continue;
            }
            if !is_view {
                return names::CLONE.call(&[(&t).into()], &[]);
            }
            return Err(Error::runtime(format!(
                "op '{}' returns a view, which is changed in place, but mt.vmap has a copy; change a clone() instead",
                call.op.name
            )));
        }
        Ok(t)
    }

    /// The call for all examples.
    fn whole(&self, call: &Call, together: Together) -> Result<Produced> {
        let mut outputs = dispatched(&call.op, &together.args, &together.attrs)?;
        if let (Some((shape, axis)), Some(Some(t))) = (&together.result, outputs.first_mut()) {
            let (before, after) = shape.split_at(*axis);
            *t = rule::reshaped(t, before.iter().chain([&self.size]).chain(after).copied())?;
            if *axis > 0 {
                *t = MOVEAXIS.call(&[(&*t).into(), (*axis as i64).into(), 0i64.into()], &[])?;
            }
        }
        Ok(outputs)
    }

    /// The calls for each example, and their results joined.
    fn one_by_one(&self, call: &Call, given: &[Given]) -> Result<Produced> {
        let mut parts: SmallVec<[Vec<Tensor>; 1]> = call.outputs.iter().map(|_| Vec::new()).collect();
        for k in 0..self.size {
            interrupt::check()?;
            let args = given.iter().enumerate().map(|(i, arg)| match arg {
                Given::Tensor(t, true) => part(t, k, call.op.parameter(i).mutated).map(|t| Given::Tensor(t, false)),
                other => Ok(other.clone()),
            });
            let args = args.collect::<Result<SmallVec<[Given; 4]>>>()?;
            for (part, t) in parts.iter_mut().zip(dispatched(&call.op, &args, &call.attrs)?) {
                part.extend(t);
            }
        }
        let computed: SmallVec<[ValueId; 2]> = call.computes().collect();
        let mut outputs = Produced::new();
        for (id, parts) in call.outputs.iter().zip(parts) {
            let id = id.filter(|id| computed.contains(id));
            let stacked = id.map(|id| self.stack(&parts, &self.held[id.at()])).transpose();
            outputs.push(stacked.map_err(|e| e.context(format!("op '{}'", call.op.name)))?);
        }
        Ok(outputs)
    }

    /// Joins tensors of the examples. All have the shape of `like`.
    fn stack(&self, parts: &[Tensor], like: &Tensor) -> Result<Tensor> {
        if parts.is_empty() {
            return Tensor::zeros(self.batched(like.shape()), like.dtype(), like.device());
        }
        if let Some((k, other)) = parts.iter().enumerate().find(|(_, t)| t.shape() != like.shape()) {
            return Err(Error::runtime(format!(
                "the result of example {k} has shape {}, but that of the first {}; sizes must not depend on elements; \
                 pass size= to ops that take it, such as nonzero and unique_values, or use mt.where",
                other.shape(),
                like.shape()
            )));
        }
        let stack = STACK.get()?;
        let args: Vec<Arg<'_>> = parts.iter().map(Arg::Tensor).collect();
        let attrs: SmallVec<[Attr; 1]> = stack.attrs.iter().map(|_| Attr::Int(0)).collect();
        crate::dispatch::dispatch_one(stack, &args, &attrs)
    }

    fn batched(&self, shape: &Shape) -> Shape {
        std::iter::once(self.size).chain(shape.iter().copied()).collect()
    }

    /// A value, with the axis of the examples and in memory of its own if it is changed in place.
    fn for_writing(&self, id: ValueId, (t, is_batched): (Tensor, bool)) -> Result<(Tensor, bool)> {
        match self.written[self.graph.value(id).memory as usize] && !is_batched {
            true => self.repeated(&t).map(|t| (t, true)),
            false => Ok((t, is_batched)),
        }
    }

    /// A copy for each example.
    fn repeated(&self, t: &Tensor) -> Result<Tensor> {
        let sizes: Vec<i64> = self.batched(t.shape()).iter().map(|n| *n as i64).collect();
        let wide = names::EXPAND.call(&[t.into(), sizes.into()], &[])?;
        names::CLONE.call(&[(&wide).into()], &[])
    }
}

/// Copies arguments that share memory with one that the call changes in place. Those of one example may be apart, while those of
/// the batch are interleaved.
fn separate(call: &Call, given: &mut [Given]) -> Result<()> {
    for i in (0..given.len()).filter(|i| call.op.parameter(*i).mutated) {
        let Given::Tensor(changed, _) = given[i].clone() else { continue };
        for (_, arg) in given.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            if let Given::Tensor(t, _) = arg
                && t.shares_storage(&changed)
                && t.layout() != changed.layout()
            {
                *t = names::CLONE.call(&[(&*t).into()], &[])?;
            }
        }
    }
    Ok(())
}

/// The tensor, without its history if that is cut. A tensor without one stays the same: its views are views of it.
fn cut(t: Tensor, is_cut: bool) -> Tensor {
    if is_cut && t.requires_grad() { t.detach() } else { t }
}

fn dispatched(op: &OpRef, given: &[Given], attrs: &[Attr]) -> Result<Produced> {
    let args: SmallVec<[Arg<'_>; 8]> = given.iter().map(Given::as_arg).collect();
    dispatch_wanted(op, &args, attrs, Wanted::ALL)
}

/// Example `k` of a tensor. It is a view, with a history if a recorded call may need one.
fn part(t: &Tensor, k: usize, is_changed: bool) -> Result<Tensor> {
    let Layout { shape, strides, offset } = t.layout();
    let offset = offset.wrapping_add_signed(k as isize * strides[0]);
    let layout = Layout { shape: shape.iter().skip(1).copied().collect(), strides: strides[1..].into(), offset };
    let part = t.with_layout(layout);
    if !is_grad_enabled() || !is_changed && !t.requires_grad() {
        return Ok(part);
    }
    names::PART.call(&[t.into(), Region::of(t, &part).to_ints().into()], &[])
}
