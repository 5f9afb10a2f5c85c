//! [`Leaves`]: the leaves whose accumulated gradients a graph reads or replaces.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::ir::{Graph, Source, ValueId};
use crate::autograd::GradMeta;
use crate::tensor::{Storage, Strides, Tensor};

/// The accumulated gradient of a leaf.
pub(super) struct Leaf {
    pub owner: Owner,
    /// The hooks that ran.
    pub hooks: Vec<u64>,
    /// Whether there was one when the function began.
    pub had_gradient: bool,
    /// The gradient at the end: none, or an output of the graph. `None` if it is the same.
    pub replaced: Option<Option<usize>>,
}

/// The leaf that has an accumulated gradient.
pub(super) enum Owner {
    Argument(usize),
    Other(Arc<GradMeta>),
}

impl Owner {
    fn meta<'a>(&'a self, args: &'a [Tensor]) -> Option<&'a Arc<GradMeta>> {
        match self {
            Owner::Argument(at) => args[*at].grad_meta(),
            Owner::Other(meta) => Some(meta),
        }
    }

    /// Whether a value is this gradient at the start of a run.
    fn is_read_as(&self, source: &Source) -> bool {
        match (source, self) {
            (Source::Gradient(meta), Owner::Other(owner)) => Arc::ptr_eq(meta, owner),
            (Source::GradientOf(at), Owner::Argument(owner)) => at == owner,
            _ => false,
        }
    }
}

/// A gradient that has the memory of another tensor.
#[derive(PartialEq)]
struct Shared {
    leaf: usize,
    with: Other,
    /// Where it is in the memory: its offset and strides.
    offset: usize,
    strides: Strides,
}

/// A tensor with the memory of a gradient: an argument, a captured tensor, or the gradient of an earlier leaf.
#[derive(Clone, Copy, PartialEq)]
enum Other {
    /// The position, and the offset in the memory.
    Argument(usize, usize),
    Captured(usize),
    Gradient(usize),
}

/// A gradient that a call computes in place of an unread one.
struct Replacing {
    call: usize,
    leaf: usize,
    value: ValueId,
}

/// The leaves of a graph.
pub(super) struct Leaves {
    leaves: Vec<Leaf>,
    /// The positions of captured memory, by address.
    captured: HashMap<usize, usize>,
    /// The gradients that shared memory when the function was recorded. The graph is valid only while the same ones do.
    shared: Vec<Shared>,
    /// In the order of the calls.
    replacing: Vec<Replacing>,
}

impl Leaves {
    /// The leaves of a graph, each with its gradient when the function began, beside these arguments and this captured memory.
    pub fn new(
        leaves: Vec<(Leaf, Option<Tensor>)>,
        graph: &Graph,
        args: &[Tensor],
        captured: &[Weak<Storage>],
    ) -> Leaves {
        let (leaves, gradients): (Vec<Leaf>, Vec<Option<Tensor>>) = leaves.into_iter().unzip();
        let captured = captured.iter().enumerate().map(|(at, memory)| (memory.as_ptr().addr(), at)).collect();
        let shared = shared(gradients.into_iter(), args, &captured);
        let replacing = replacing(graph, &leaves);
        Leaves { leaves, captured, shared, replacing }
    }

    /// Whether the leaves are as they were when the function was recorded.
    pub fn are_as_before(&self, args: &[Tensor]) -> bool {
        let mut gradients = Vec::with_capacity(self.leaves.len());
        for leaf in &self.leaves {
            let (gradient, hooks) =
                leaf.owner.meta(args).map_or((None, Vec::new()), |meta| (meta.grad(), meta.hook_numbers()));
            if gradient.is_some() != leaf.had_gradient || hooks != leaf.hooks {
                return false;
            }
            gradients.push(gradient);
        }
        shared(gradients.into_iter(), args, &self.captured) == self.shared
    }

    /// Drops the gradients that this call replaces, so that old and new ones do not need memory at the same time.
    pub fn drop_before(&self, call: usize, args: &[Tensor]) {
        self.replaced_by(call).for_each(|at| self.store(at.leaf, None, args));
    }

    /// Stores the gradients that this call has computed.
    pub fn store_after(&self, call: usize, args: &[Tensor], values: &[Option<Tensor>]) {
        self.replaced_by(call).for_each(|at| self.store(at.leaf, values[at.value.at()].clone(), args));
    }

    /// Stores all gradients at the end of a run.
    pub fn store_all(&self, args: &[Tensor], outputs: &[Tensor]) {
        for (at, leaf) in self.leaves.iter().enumerate() {
            if let Some(end) = leaf.replaced {
                self.store(at, end.map(|output| outputs[output].clone()), args);
            }
        }
    }

    fn store(&self, leaf: usize, gradient: Option<Tensor>, args: &[Tensor]) {
        if let Some(meta) = self.leaves[leaf].owner.meta(args) {
            meta.set_grad(gradient);
        }
    }

    fn replaced_by(&self, call: usize) -> impl Iterator<Item = &Replacing> {
        let first = self.replacing.partition_point(|at| at.call < call);
        self.replacing[first..].iter().take_while(move |at| at.call == call)
    }
}

/// The gradients that have the memory of an argument, of a captured tensor, or of an earlier gradient.
fn shared(
    gradients: impl Iterator<Item = Option<Tensor>>,
    args: &[Tensor],
    captured: &HashMap<usize, usize>,
) -> Vec<Shared> {
    let memory = |t: &Tensor| Arc::as_ptr(t.storage()).addr();
    let mut found = Vec::new();
    let mut gradients = gradients.enumerate().filter_map(|(leaf, t)| Some((leaf, t?))).peekable();
    if gradients.peek().is_none() {
        return found;
    }
    let mut others: HashMap<usize, Other> = HashMap::new();
    for (at, t) in args.iter().enumerate() {
        others.entry(memory(t)).or_insert(Other::Argument(at, t.offset()));
    }
    for (leaf, t) in gradients {
        let other = others.get(&memory(&t)).copied();
        match other.or_else(|| captured.get(&memory(&t)).map(|at| Other::Captured(*at))) {
            Some(with) => found.push(Shared { leaf, with, offset: t.offset(), strides: t.strides().into() }),
            None => drop(others.insert(memory(&t), Other::Gradient(leaf))),
        }
    }
    found
}

/// The calls that compute a gradient in place of an unread one.
fn replacing(graph: &Graph, leaves: &[Leaf]) -> Vec<Replacing> {
    let is_gradient = |source: &&Source| matches!(source, Source::Gradient(_) | Source::GradientOf(_));
    let read: Vec<&Source> = graph.values.iter().map(|value| &value.source).filter(is_gradient).collect();
    let mut leaves_of: HashMap<ValueId, Vec<usize>> = HashMap::new();
    for (at, leaf) in leaves.iter().enumerate() {
        if let Some(Some(end)) = leaf.replaced
            && leaf.had_gradient
            && !read.iter().any(|source| leaf.owner.is_read_as(source))
        {
            leaves_of.entry(graph.outputs[end]).or_default().push(at);
        }
    }
    let computed = graph.calls.iter().enumerate().flat_map(|(call, of)| of.computes().map(move |id| (call, id)));
    computed
        .flat_map(|(call, value)| {
            let leaves = leaves_of.remove(&value).unwrap_or_default();
            leaves.into_iter().map(move |leaf| Replacing { call, leaf, value })
        })
        .collect()
}
