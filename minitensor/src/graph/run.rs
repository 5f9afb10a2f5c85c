//! [`Executable`]: a graph that runs.

use smallvec::SmallVec;

use super::ir::{Call, Graph, Operand, Source, ValueId};
use super::leaf::Leaves;
use crate::attr::Attr;
use crate::autograd::{NoGrad, is_grad_enabled};
use crate::backend::Wanted;
use crate::dispatch::dispatch_wanted;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::op::{Arg, Body};
use crate::precision::Wide;
use crate::random::next_key;
use crate::tensor::Tensor;

/// The tensors and numbers that a run reads.
#[derive(Clone, Copy)]
pub struct Reads<'a> {
    /// The arguments.
    pub args: &'a [Tensor],
    /// The captured tensors.
    pub captured: &'a [Tensor],
    /// The numbers that calls take in each run.
    pub numbers: &'a [f64],
}

/// A graph, and after each call the values that are no longer needed.
pub struct Executable {
    graph: Graph,
    last_used: Vec<SmallVec<[ValueId; 2]>>,
    /// Constants that must be copied for each run, because the run changes them or returns them.
    copied: Vec<bool>,
    bytes: usize,
}

impl Executable {
    /// Prepares a valid graph.
    pub fn new(graph: Graph) -> Executable {
        let mut is_kept = vec![false; graph.values.len()];
        graph.outputs.iter().for_each(|id| is_kept[id.at()] = true);
        let mut last_used = vec![SmallVec::new(); graph.calls.len()];
        for (at, call) in graph.calls.iter().enumerate().rev() {
            for id in call.reads().chain(call.computes()) {
                if !std::mem::replace(&mut is_kept[id.at()], true) {
                    last_used[at].push(id);
                }
            }
        }
        let written = graph.written();
        let mut is_returned = vec![false; written.len()];
        graph.outputs.iter().for_each(|id| is_returned[graph.value(*id).memory as usize] = true);
        let is_copied = |memory: u32| written[memory as usize] || is_returned[memory as usize];
        let copied =
            graph.values.iter().map(|v| matches!(v.source, Source::Constant(_)) && is_copied(v.memory)).collect();
        let bytes =
            graph.values.iter().map(|v| v.shape.numel().saturating_mul(v.dtype.size())).fold(0, usize::saturating_add);
        Executable { graph, last_used, copied, bytes }
    }

    /// The size of all values together, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Runs the calls, and returns the results. They are recorded for gradients if `is_recorded`.
    ///
    /// # Errors
    /// The error of a call.
    pub fn run(&self, reads: Reads<'_>, is_recorded: bool) -> Result<Vec<Tensor>> {
        let _mode = (!is_recorded).then(NoGrad::new);
        self.run_calls(reads, None)
    }

    /// Runs the calls, and returns the results. Each accumulated gradient is replaced when its call runs.
    ///
    /// # Errors
    /// The error of a call.
    pub(super) fn run_with(&self, reads: Reads<'_>, leaves: &Leaves) -> Result<Vec<Tensor>> {
        let _mode = NoGrad::new();
        self.run_calls(reads, Some(leaves))
    }

    fn run_calls(&self, reads: Reads<'_>, leaves: Option<&Leaves>) -> Result<Vec<Tensor>> {
        let mut values = self.begin(reads)?;
        for at in 0..self.graph.calls.len() {
            interrupt::check()?;
            if let Some(leaves) = leaves {
                leaves.drop_before(at, reads.args);
            }
            self.step(at, &mut values, reads.numbers)?;
            if let Some(leaves) = leaves {
                leaves.store_after(at, reads.args, &values);
            }
            self.forget(at, &mut values);
        }
        self.graph.outputs.iter().map(|id| values[id.at()].clone().ok_or_else(|| missing("a result"))).collect()
    }

    /// The values before the first call.
    pub(crate) fn begin(&self, reads: Reads<'_>) -> Result<Vec<Option<Tensor>>> {
        let mut values: Vec<Option<Tensor>> = Vec::with_capacity(self.graph.values.len());
        for (value, is_copied) in self.graph.values.iter().zip(&self.copied) {
            values.push(match &value.source {
                Source::Input(at) => Some(reads.args[*at].clone()),
                Source::Captured(at) => Some(reads.captured[*at].clone()),
                Source::Constant(t) if *is_copied => Some(t.copied()?),
                Source::Constant(t) => Some(t.clone()),
                Source::Gradient(meta) => Some(meta.grad().ok_or_else(|| missing("a gradient"))?),
                Source::GradientOf(at) => Some(reads.args[*at].grad().ok_or_else(|| missing("a gradient"))?),
                Source::Key(n, block) => Some(next_key(*n, *block, value.device)?),
                Source::Computed => None,
            });
        }
        Ok(values)
    }

    /// Runs the call at this position.
    pub(crate) fn step(&self, at: usize, values: &mut [Option<Tensor>], numbers: &[f64]) -> Result<()> {
        let call = &self.graph.calls[at];
        run(call, values, numbers)?;
        self.expect_shapes(call, values)
    }

    /// Drops the values that no call after this one uses.
    pub(crate) fn forget(&self, at: usize, values: &mut [Option<Tensor>]) {
        self.last_used[at].iter().for_each(|id| values[id.at()] = None);
    }

    /// An error if a body over whole tensors returned other sizes than when it was recorded.
    fn expect_shapes(&self, call: &Call, values: &[Option<Tensor>]) -> Result<()> {
        if !matches!(call.op.body, Body::Tensor(_) | Body::Dynamic(_)) {
            return Ok(());
        }
        for id in call.computes() {
            let expected = &self.graph.value(id).shape;
            if let Some(t) = values[id.at()].as_ref().filter(|t| t.shape() != expected) {
                return Err(Error::runtime(format!(
                    "op '{}' returned shape {}, but {expected} when its graph was recorded; sizes that depend on elements cannot be part of \
                     a function under mt.jit; pass size= to ops that take it, such as nonzero and unique_values, use mt.where, or call \
                     the op outside of the function",
                    call.op.name,
                    t.shape()
                )));
            }
        }
        Ok(())
    }
}

#[cold]
fn missing(what: &str) -> Error {
    Error::runtime(format!("graph: {what} is missing"))
}

fn value(operand: Operand, values: &[Option<Tensor>]) -> Option<&Tensor> {
    if let Operand::Value(id) = operand { values[id.at()].as_ref() } else { None }
}

fn run(call: &Call, values: &mut [Option<Tensor>], numbers: &[f64]) -> Result<()> {
    let has_histories = is_grad_enabled();
    let _off = (has_histories && call.cut.is_off).then(NoGrad::new);
    let detached: &[usize] = if has_histories { &call.cut.detached } else { &[] };
    let detached: SmallVec<[(usize, Tensor); 1]> =
        detached.iter().filter_map(|i| Some((*i, value(call.args[*i], values)?.detach()))).collect();
    let outputs = {
        let mut args: SmallVec<[Arg<'_>; 8]> = SmallVec::new();
        for (i, arg) in call.args.iter().enumerate() {
            args.push(match arg {
                Operand::None => Arg::None,
                Operand::Number(number) => Arg::Number(*number),
                Operand::Value(_) => match detached.iter().find(|(at, _)| *at == i) {
                    Some((_, t)) => Arg::Tensor(t),
                    None => Arg::Tensor(value(*arg, values).ok_or_else(|| missing("an argument"))?),
                },
            });
        }
        let filled: Option<SmallVec<[Attr; 8]>> = call.numbers.as_ref().map(|(positions, first)| {
            let mut attrs: SmallVec<[Attr; 8]> = call.attrs.iter().cloned().collect();
            positions.iter().zip(&numbers[*first..]).for_each(|(at, v)| attrs[*at] = Attr::Float(*v));
            attrs
        });
        let attrs = filled.as_deref().unwrap_or(&call.attrs);
        let _wide = call.is_wide.then(Wide::new);
        dispatch_wanted(&call.op, &args, attrs, wanted(call))?
    };
    for (id, t) in call.outputs.iter().zip(outputs) {
        if let Some(id) = id {
            values[id.at()] = t;
        }
    }
    Ok(())
}

/// The outputs that a call computes. A body over whole tensors computes all.
fn wanted(call: &Call) -> Wanted<'static> {
    let is_loop = !matches!(call.op.body, Body::Tensor(_) | Body::Dynamic(_));
    if is_loop { Wanted::these(call.outputs.iter().map(Option::is_some)) } else { Wanted::ALL }
}
