//! [`Node`]: one recorded call of an op.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use super::meta::{GradMeta, Hook, next_number};
use super::saved::Saved;
use crate::attr::Attr;
use crate::dtype::DType;
use crate::op::OpRef;
use crate::op::gradient::pullback::Pullback;
use crate::precision::is_wide;
use crate::tensor::{Device, Shape, Tensor};

/// The destination of the gradient of an input.
#[derive(Clone)]
pub enum Edge {
    /// The gradient accumulates in a leaf.
    Leaf(Arc<GradMeta>),
    /// The gradient is the cotangent of this output of a node.
    Node(Arc<Node>, usize),
}

/// What identifies the end of an edge: a leaf, or an output of a node.
pub(super) type Place = (*const (), usize);

impl Edge {
    pub(super) fn place(&self) -> Place {
        match self {
            Edge::Leaf(meta) => place(meta, 0),
            Edge::Node(node, output) => place(node, *output),
        }
    }
}

/// The place of a leaf, or of an output of a node.
pub(super) fn place<T>(at: &Arc<T>, output: usize) -> Place {
    (Arc::as_ptr(at).cast(), output)
}

/// The properties of a tensor without its elements.
#[derive(Clone)]
pub struct Meta {
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    pub(crate) device: Device,
}

/// One recorded call: the op, its attributes, the saved tensors, and the edges to the origins of its inputs.
pub struct Node {
    op: OpRef,
    attrs: SmallVec<[Attr; 2]>,
    /// The sequence number. It increases over time, so a node has a larger number than the nodes on which it depends.
    pub(crate) sequence: u64,
    /// Whether half floats were computed as `float32`: within the body of an op, or in a gradient.
    pub(crate) is_wide: bool,
    pub(crate) inputs: SmallVec<[Option<Meta>; 2]>,
    pub(crate) outputs: SmallVec<[Meta; 1]>,
    pub(crate) edges: SmallVec<[Option<Edge>; 2]>,
    /// The pullback, if the gradient is derived.
    pub(crate) pullback: Option<Arc<Pullback>>,
    state: Mutex<State>,
}

struct State {
    /// The saved inputs, then the saved outputs. `None` after a backward pass that did not retain the graph.
    saved: Option<SmallVec<[Option<Saved>; 3]>>,
    /// The hooks by number, each with the output to which it belongs.
    hooks: BTreeMap<u64, (usize, Hook)>,
}

static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// The number of the next recorded call.
pub(crate) fn next_sequence() -> u64 {
    SEQUENCE.load(Ordering::Relaxed)
}

impl Node {
    pub(crate) fn new(
        op: OpRef,
        attrs: &[Attr],
        inputs: SmallVec<[Option<Meta>; 2]>,
        outputs: SmallVec<[Meta; 1]>,
        edges: SmallVec<[Option<Edge>; 2]>,
        pullback: Option<Arc<Pullback>>,
        saved: SmallVec<[Option<Saved>; 3]>,
    ) -> Node {
        Node {
            op,
            attrs: attrs.iter().cloned().collect(),
            sequence: SEQUENCE.fetch_add(1, Ordering::Relaxed),
            is_wide: is_wide(),
            inputs,
            outputs,
            edges,
            pullback,
            state: Mutex::new(State { saved: Some(saved), hooks: BTreeMap::new() }),
        }
    }

    /// The op that was called.
    pub fn op(&self) -> &OpRef {
        &self.op
    }

    /// The attributes of the call.
    pub fn attrs(&self) -> &[Attr] {
        &self.attrs
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `read` with the saved tensors; with `None` if they were released.
    pub(crate) fn with_saved<R>(&self, read: impl FnOnce(Option<&[Option<Saved>]>) -> R) -> R {
        read(self.state().saved.as_deref())
    }

    pub(crate) fn release(&self) {
        let saved = self.state().saved.take();
        drop(saved);
    }

    pub(crate) fn add_hook(&self, output: usize, hook: Hook) -> u64 {
        let number = next_number();
        self.state().hooks.insert(number, (output, hook));
        number
    }

    pub(crate) fn remove_hook(&self, number: u64) {
        let hook = self.state().hooks.remove(&number);
        drop(hook);
    }

    pub(crate) fn hooks(&self, output: usize) -> Vec<Hook> {
        let state = self.state();
        if state.hooks.is_empty() {
            return Vec::new();
        }
        state.hooks.values().filter(|(o, _)| *o == output).map(|(_, h)| h.clone()).collect()
    }
}

/// The values that dropping a [`Node`] or a [`GradMeta`] would drop recursively.
pub(crate) enum Remains {
    Node(#[allow(dead_code)] SmallVec<[Option<Edge>; 2]>, #[allow(dead_code)] Option<SmallVec<[Option<Saved>; 3]>>),
    Grad(#[allow(dead_code)] Tensor),
}

thread_local! {
    /// `Some` while a drop is running on this thread. Nested drops are queued here instead of recursing, so that a chain of
    /// a million nodes needs no more stack than one node.
    static REMAINS: RefCell<Option<Vec<Remains>>> = const { RefCell::new(None) };
}

impl Drop for Node {
    fn drop(&mut self) {
        let edges = std::mem::take(&mut self.edges);
        let saved = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).saved.take();
        Remains::Node(edges, saved).drop_in_turn();
    }
}

impl Remains {
    /// Drops the values, or queues them if a drop is running on this thread.
    pub(crate) fn drop_in_turn(self) {
        let first = REMAINS.try_with(|cell| match cell.borrow_mut().as_mut() {
            Some(queue) => {
                queue.push(self);
                None
            }
            None => Some(self),
        });
        // There is no queue while the thread exits: the values are dropped recursively.
        let Ok(Some(first)) = first else { return };
        REMAINS.with(|cell| *cell.borrow_mut() = Some(Vec::new()));
        drop(first);
        while let Some(next) = REMAINS.with(|cell| cell.borrow_mut().as_mut().and_then(Vec::pop)) {
            drop(next);
        }
        REMAINS.with(|cell| *cell.borrow_mut() = None);
    }
}

impl Meta {
    pub(crate) fn of(tensor: &crate::tensor::Tensor) -> Meta {
        Meta { shape: tensor.shape().clone(), dtype: tensor.dtype(), device: tensor.device() }
    }

    /// A placeholder for an output that was not computed.
    pub(crate) fn nothing() -> Meta {
        Meta { shape: Shape::default(), dtype: DType::Bool, device: Device::default() }
    }
}
