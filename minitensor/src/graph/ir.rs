//! [`Graph`]: values, and the calls that compute them.

use std::collections::BTreeSet;
use std::sync::Arc;

use minitensor_kernels::Const;
use smallvec::SmallVec;

use crate::attr::Attr;
use crate::autograd::GradMeta;
use crate::dtype::DType;
use crate::op::{Body, OpName, OpRef, Role};
use crate::random::Block;
use crate::tensor::{Device, Shape, Tensor};

/// The number of a value in its graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueId(pub u32);

impl ValueId {
    /// The number as an index.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// A tensor of a graph: a window of some memory. A call that changes a tensor in place changes all values of its
/// memory, so the order of calls matters where memory is written.
#[derive(Clone)]
pub struct Value {
    /// The sizes of its dimensions.
    pub shape: Shape,
    /// The dtype of its elements.
    pub dtype: DType,
    /// The device of its memory.
    pub device: Device,
    /// The number of its memory. Views have the memory of their base.
    pub memory: u32,
    /// Where it comes from.
    pub source: Source,
}

/// The origin of a value.
#[derive(Clone)]
pub enum Source {
    /// An argument of the graph.
    Input(usize),
    /// A tensor that existed before the graph was recorded, by its number. Each run reads its current elements.
    Captured(usize),
    /// A tensor that was created during the recording, from nothing but shapes and numbers.
    Constant(Tensor),
    /// The accumulated gradient of a leaf at the start of a run.
    Gradient(Arc<GradMeta>),
    /// The accumulated gradient of an argument at the start of a run.
    GradientOf(usize),
    /// The next key of the global generator, for so many numbers. Each run takes a new one.
    Key(usize, Block),
    /// The result of a call.
    Computed,
}

/// An argument of a call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Operand {
    /// An absent optional input.
    None,
    /// A plain number.
    Number(Const),
    /// A value.
    Value(ValueId),
}

/// A call of an op.
#[derive(Clone)]
pub struct Call {
    /// The op.
    pub op: OpRef,
    /// Its attributes.
    pub attrs: SmallVec<[Attr; 2]>,
    /// The attributes that each run sets: their positions, and the position of the first among the numbers of the run.
    pub numbers: Option<(SmallVec<[usize; 4]>, usize)>,
    /// Its arguments.
    pub args: SmallVec<[Operand; 4]>,
    /// Its outputs; `None` for those that are not computed. An output that an input becomes is that input.
    pub outputs: SmallVec<[Option<ValueId>; 1]>,
    /// Whether loops store half floats as `f32`, as within a composite op.
    pub is_wide: bool,
    /// Whether its body takes random numbers from the global generator.
    pub draws: bool,
    /// The number of its origin in the user's code, if it is known.
    pub origin: Option<u32>,
    /// The histories of its arguments that it does not use.
    pub cut: Cut,
}

/// The histories of its arguments that a call does not use, when its function runs again for the gradient of a gradient.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Whether an argument has a history.
    pub has_history: bool,
    /// Whether it uses none, because gradients were not recorded.
    pub is_off: bool,
    /// The positions of the arguments without one, as after `detach()`.
    pub detached: SmallVec<[usize; 1]>,
}

impl Cut {
    /// Whether the call uses all histories.
    pub fn is_nothing(&self) -> bool {
        !self.is_off && self.detached.is_empty()
    }

    /// That of two calls together, none of whose arguments is detached. `None` if only one of them uses histories.
    pub fn with(&self, other: &Cut) -> Option<Cut> {
        let is_alike = self.is_off == other.is_off || !self.has_history || !other.has_history;
        let (has_history, is_off) = (self.has_history || other.has_history, self.is_off || other.is_off);
        is_alike.then(|| Cut { has_history, is_off, detached: SmallVec::new() })
    }
}

impl Call {
    /// The values among the arguments.
    pub fn reads(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.args.iter().filter_map(|arg| if let Operand::Value(id) = arg { Some(*id) } else { None })
    }

    /// The values that it computes.
    pub fn computes(&self) -> impl Iterator<Item = ValueId> + '_ {
        let is_new = |k: usize| !matches!(self.op.outputs.get(k).map(|o| o.role), Some(Role::Mutates(_)));
        self.outputs.iter().enumerate().filter(move |(k, _)| is_new(*k)).filter_map(|(_, id)| *id)
    }

    /// The arguments that it changes in place.
    pub fn changes(&self) -> impl Iterator<Item = ValueId> + '_ {
        let changed = |(i, arg): (usize, &Operand)| match arg {
            Operand::Value(id) if self.op.parameter(i).mutated => Some(*id),
            _ => None,
        };
        self.args.iter().enumerate().filter_map(changed)
    }

    /// Whether the call does nothing but compute its outputs, which are the same for the same arguments.
    pub fn is_pure(&self) -> bool {
        self.numbers.is_none() && !self.has_effects()
    }

    /// Whether the call does more than compute its outputs.
    pub fn has_effects(&self) -> bool {
        self.draws || self.op.body.is_interpreted() || self.changes().next().is_some()
    }

    /// Whether the op is the one with this name.
    pub fn is_of(&self, name: &OpName) -> bool {
        name.get().is_ok_and(|op| std::ptr::eq(&*self.op, &**op))
    }

    /// Whether the op is computed element by element.
    pub fn is_elementwise(&self) -> bool {
        matches!(self.op.body, Body::Element(_))
    }
}

/// A list of calls with the values between them.
#[derive(Clone, Default)]
pub struct Graph {
    /// All values.
    pub values: Vec<Value>,
    /// The calls, in an order in which they can run.
    pub calls: Vec<Call>,
    /// The results.
    pub outputs: Vec<ValueId>,
}

impl Graph {
    /// A value.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.at()]
    }

    /// The memory of a value, as an index.
    pub fn memory(&self, id: ValueId) -> usize {
        self.value(id).memory as usize
    }

    /// More than the number of each memory.
    pub fn memories(&self) -> usize {
        self.values.iter().map(|v| v.memory as usize + 1).max().unwrap_or(0)
    }

    /// For each memory, whether a call changes it in place.
    pub fn written(&self) -> Vec<bool> {
        let mut written = vec![false; self.memories()];
        for id in self.calls.iter().flat_map(Call::changes) {
            written[self.memory(id)] = true;
        }
        written
    }

    /// Whether a run does nothing but compute the outputs.
    pub fn is_pure(&self) -> bool {
        !self.draws() && self.calls.iter().all(Call::is_pure)
    }

    /// The graph for runs that record no gradient, in which histories have no meaning.
    pub fn without_histories(mut self) -> Graph {
        self.calls.iter_mut().for_each(|call| call.cut = Cut::default());
        self
    }

    /// Removes the calls at these positions.
    pub fn remove_calls(&mut self, removed: &BTreeSet<usize>) {
        let mut at = 0..;
        self.calls.retain(|_| at.next().is_none_or(|at| !removed.contains(&at)));
    }

    /// Whether each run takes random numbers from the global generator.
    pub fn draws(&self) -> bool {
        self.values.iter().any(|v| matches!(v.source, Source::Key(..))) || self.calls.iter().any(|call| call.draws)
    }

    /// The graph without the values that nothing refers to, except for keys: taking one changes the generator.
    pub fn compact(mut self) -> Graph {
        let mut is_used: Vec<bool> = self.values.iter().map(|v| matches!(v.source, Source::Key(..))).collect();
        let used = self.calls.iter().flat_map(|call| call.reads().chain(call.outputs.iter().flatten().copied()));
        used.chain(self.outputs.iter().copied()).for_each(|id| is_used[id.at()] = true);
        let mut moved = vec![ValueId(0); self.values.len()];
        let mut values = Vec::new();
        for (at, value) in std::mem::take(&mut self.values).into_iter().enumerate().filter(|(at, _)| is_used[*at]) {
            moved[at] = ValueId(values.len() as u32);
            values.push(value);
        }
        for call in &mut self.calls {
            for arg in &mut call.args {
                if let Operand::Value(id) = arg {
                    *id = moved[id.at()];
                }
            }
            call.outputs.iter_mut().flatten().for_each(|id| *id = moved[id.at()]);
        }
        self.outputs.iter_mut().for_each(|id| *id = moved[id.at()]);
        Graph { values, ..self }
    }
}
