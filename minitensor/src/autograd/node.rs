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
use crate::op::pullback::Pullback;
use crate::tensor::{Device, Shape, Tensor};

/// Where the gradient of an input goes.
#[derive(Clone)]
pub enum Edge {
    /// It gathers in a leaf.
    Leaf(Arc<GradMeta>),
    /// It is the cotangent of that output of a node.
    Node(Arc<Node>, usize),
}

/// What is known of a tensor without its elements.
#[derive(Clone)]
pub struct Meta {
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    pub(crate) device: Device,
}

/// One recorded call: the op, its attributes, what it saved, and where its inputs came from.
pub struct Node {
    op: OpRef,
    attrs: SmallVec<[Attr; 2]>,
    /// Grows with time, so that a node is always younger than those it depends on.
    pub(crate) sequence: u64,
    pub(crate) inputs: SmallVec<[Option<Meta>; 2]>,
    pub(crate) outputs: SmallVec<[Meta; 1]>,
    pub(crate) edges: SmallVec<[Option<Edge>; 2]>,
    /// How it is differentiated, if by a derived gradient.
    pub(crate) pullback: Option<Arc<Pullback>>,
    state: Mutex<State>,
}

struct State {
    /// Inputs, then outputs; gone after a backward pass that didn't retain the graph.
    saved: Option<SmallVec<[Option<Saved>; 3]>>,
    /// Each with the output that it is for.
    hooks: BTreeMap<u64, (usize, Hook)>,
}

static SEQUENCE: AtomicU64 = AtomicU64::new(0);

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

    /// Its attributes.
    pub fn attrs(&self) -> &[Attr] {
        &self.attrs
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what was saved; `None` if it was released.
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

/// What dropping a node, or what a tensor knows of gradients, would drop next.
pub(crate) enum Remains {
    Node(#[allow(dead_code)] SmallVec<[Option<Edge>; 2]>, #[allow(dead_code)] Option<SmallVec<[Option<Saved>; 3]>>),
    Grad(#[allow(dead_code)] Tensor),
}

thread_local! {
    /// `Some` while a drop is under way on this thread; nested drops queue up here instead of recursing, so that a
    /// chain of a million nodes takes no more stack than one.
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
    /// Drops them, after those that are waiting.
    pub(crate) fn drop_in_turn(self) {
        let first = REMAINS.try_with(|cell| match cell.borrow_mut().as_mut() {
            Some(queue) => {
                queue.push(self);
                None
            }
            None => Some(self),
        });
        // While the thread ends there is no queue: then dropping recurses.
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

    /// Stands for an output that was not wanted.
    pub(crate) fn nothing() -> Meta {
        Meta { shape: Shape::default(), dtype: DType::Bool, device: Device::default() }
    }
}
