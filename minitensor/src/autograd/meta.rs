//! [`GradMeta`]: the gradient state of a tensor.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::mode::is_grad_enabled;
use super::node::{Edge, Node, Remains};
use super::view;
use crate::dispatch::capture;
use crate::error::{Error, Result};
use crate::graph::record;
use crate::lazy;
use crate::op::by_name::names;
use crate::tensor::Tensor;

/// A function that is called with a gradient, and may return a replacement.
pub type Hook = Arc<dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync>;

/// The gradient state that clones of a tensor share: whether it requires a gradient, its history, and the accumulated
/// gradient.
#[derive(Default)]
pub struct GradMeta {
    requires_grad: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    history: Option<History>,
    grad: Option<Tensor>,
    /// Whether a tensor that is not a leaf keeps its gradient.
    is_retained: bool,
    /// The hooks, by the numbers of their handles.
    hooks: BTreeMap<u64, Hook>,
}

/// The node that computed a tensor, and the version of its memory at that time.
#[derive(Clone)]
struct History {
    node: Arc<Node>,
    index: usize,
    version: u64,
}

/// A gradient, and its sum with the accumulated gradient of a tensor.
pub(crate) struct Sum {
    grad: Tensor,
    is_recorded: bool,
    before: Option<Tensor>,
    sum: Tensor,
}

impl GradMeta {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn computed_by(node: Arc<Node>, index: usize, version: u64) -> Arc<GradMeta> {
        let state = State { history: Some(History { node, index, version }), ..State::default() };
        Arc::new(GradMeta { requires_grad: AtomicBool::new(true), state: Mutex::new(state) })
    }

    /// Replaces the history after an in-place change.
    pub(crate) fn rebase(&self, node: Arc<Node>, index: usize, version: u64) {
        let before = self.state().history.replace(History { node, index, version });
        self.requires_grad.store(true, Ordering::Release);
        drop(before);
    }

    #[inline]
    pub(crate) fn requires_grad(&self) -> bool {
        self.requires_grad.load(Ordering::Acquire)
    }

    /// Tells the recording of a graph that the gradient is read or replaced.
    fn note(self: &Arc<Self>) {
        if capture::is_active() {
            record::note_gradient(self, &|| self.grad());
        }
    }

    pub(crate) fn grad(&self) -> Option<Tensor> {
        self.state().grad.clone()
    }

    pub(crate) fn set_grad(&self, grad: Option<Tensor>) {
        lazy::note_effect();
        let before = std::mem::replace(&mut self.state().grad, grad);
        drop(before);
    }

    /// Adds a gradient to the accumulated one. The sum shares no memory with other tensors.
    pub(crate) fn add(self: &Arc<Self>, grad: Tensor, is_recorded: bool) -> Result<Sum> {
        self.note();
        let before = self.grad();
        let sum = match &before {
            Some(before) => names::ADD.call(&[before.into(), (&grad).into()], &[])?,
            None if is_recorded => names::CLONE.call(&[(&grad).into()], &[])?,
            None if grad.is_contiguous() && grad.is_sole() => grad.detach(),
            None => grad.copied()?,
        };
        Ok(Sum { grad, is_recorded, before, sum })
    }

    /// Stores a sum as the accumulated gradient. If that has changed since `add`, as by a pass on another thread, the sum is
    /// computed again, so no gradient is lost.
    pub(crate) fn store(self: &Arc<Self>, mut sum: Sum) -> Result<()> {
        lazy::note_effect();
        loop {
            let mut state = self.state();
            let is_current = match (&state.grad, &sum.before) {
                (Some(now), Some(before)) => now.is(before),
                (now, before) => now.is_none() && before.is_none(),
            };
            if is_current {
                let before = state.grad.replace(sum.sum);
                drop(state);
                drop(before);
                return Ok(());
            }
            drop(state);
            sum = self.add(sum.grad, sum.is_recorded)?;
        }
    }

    /// The numbers of the hooks.
    pub(crate) fn hook_numbers(&self) -> Vec<u64> {
        self.state().hooks.keys().copied().collect()
    }

    pub(crate) fn hooks(&self) -> Vec<Hook> {
        self.state().hooks.values().cloned().collect()
    }
}

impl Drop for GradMeta {
    fn drop(&mut self) {
        // A gradient may have a gradient, and so on, to any depth.
        if let Some(grad) = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).grad.take() {
            Remains::Grad(grad).drop_in_turn();
        }
    }
}

impl Tensor {
    /// Whether operations on the tensor are recorded.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        self.grad_meta().is_some_and(|m| m.requires_grad()) || self.is_behind()
    }

    /// Whether it is a view without history, and its base tensor has acquired a history.
    fn is_behind(&self) -> bool {
        self.is_outdated()
            && self.grad_meta().is_none_or(|m| !m.requires_grad())
            && self.origin().is_some_and(|origin| origin.whole.requires_grad())
    }

    /// Sets whether the tensor requires a gradient. Only a leaf can stop requiring one.
    pub fn set_requires_grad(&self, requires_grad: bool) -> Result<()> {
        if requires_grad && !self.dtype().is_differentiable() {
            return Err(Error::runtime(format!(
                "only floating and complex tensors can require a gradient, got {}; convert the tensor with astype() \
                 first",
                self.dtype()
            )));
        }
        if !requires_grad && !self.is_leaf() {
            return Err(Error::runtime(
                "only a leaf can stop requiring a gradient; use detach() to get a tensor without history",
            ));
        }
        if requires_grad || self.grad_meta().is_some() {
            let was_required = self.grad_meta_or_init().requires_grad.swap(requires_grad, Ordering::AcqRel);
            if requires_grad && !was_required && capture::is_active() {
                record::note_leaf(self.grad_meta_or_init());
            }
        }
        Ok(())
    }

    /// The tensor, after it was set to require a gradient.
    pub fn with_requires_grad(self) -> Result<Tensor> {
        self.set_requires_grad(true)?;
        Ok(self)
    }

    /// Whether the tensor was created by the user, rather than computed from tensors that require gradients.
    pub fn is_leaf(&self) -> bool {
        self.grad_meta().is_none_or(|m| m.state().history.is_none()) && !self.is_behind()
    }

    /// Whether it is a leaf that requires a gradient, or a view of one.
    pub(crate) fn is_of_leaf(&self) -> bool {
        let whole = self.origin().map_or(self, |origin| &origin.whole);
        whole.requires_grad() && whole.is_leaf()
    }

    /// Whether the gradients of both arrive at the same place.
    pub(crate) fn has_edge_of(&self, other: &Tensor) -> bool {
        match (self.edge(), other.edge()) {
            (Ok(Some(Edge::Leaf(a))), Ok(Some(Edge::Leaf(b)))) => Arc::ptr_eq(&a, &b),
            (Ok(Some(Edge::Node(a, i))), Ok(Some(Edge::Node(b, j)))) => Arc::ptr_eq(&a, &b) && i == j,
            _ => false,
        }
    }

    /// Whether a recorded call with this number or a later one computed the tensor.
    pub(crate) fn is_computed_since(&self, sequence: u64) -> bool {
        matches!(self.edge(), Ok(Some(Edge::Node(node, _))) if node.sequence >= sequence)
    }

    /// The accumulated gradient.
    pub fn grad(&self) -> Option<Tensor> {
        let meta = self.grad_meta()?;
        meta.note();
        meta.grad()
    }

    /// Replaces the accumulated gradient.
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        if let Some(g) = &grad
            && (g.shape() != self.shape() || g.dtype() != self.dtype())
        {
            return Err(Error::value(format!(
                "a gradient must have the shape and dtype of its tensor: expected {} {}, got {} {}",
                self.shape(),
                self.dtype(),
                g.shape(),
                g.dtype()
            )));
        }
        if grad.as_ref().is_some_and(|g| g.is(self)) {
            return Err(Error::value("a tensor cannot be its own gradient; clone() it first"));
        }
        if grad.is_some() || self.grad_meta().is_some() {
            let meta = self.grad_meta_or_init();
            meta.note();
            meta.set_grad(grad);
        }
        Ok(())
    }

    /// The name of the op that computed the tensor, if the call was recorded.
    pub fn grad_fn_name(&self) -> Option<String> {
        // This updates the history of a view whose base tensor has changed.
        let _ = self.edge();
        let state = self.grad_meta()?.state();
        state.history.as_ref().map(|h| h.node.op().name.to_string())
    }

    /// Calls `hook` with the gradient of this tensor whenever one is computed. A tensor that the hook returns replaces the
    /// gradient. The handle removes the hook.
    pub fn register_hook(&self, hook: Hook) -> Result<HookHandle> {
        if !self.requires_grad() {
            return Err(Error::runtime(
                "cannot register a hook on a tensor that does not require a gradient; create the tensor with \
                 requires_grad=True",
            ));
        }
        self.edge()?;
        let meta = self.grad_meta_or_init().clone();
        let history = meta.state().history.clone();
        Ok(match history {
            Some(h) => HookHandle { number: h.node.add_hook(h.index, hook), owner: HookOwner::Node(h.node) },
            None => {
                let number = next_number();
                meta.state().hooks.insert(number, hook);
                HookHandle { number, owner: HookOwner::Leaf(meta) }
            }
        })
    }

    /// Also keeps the gradient of a tensor that is not a leaf.
    pub fn retain_grad(&self) -> Result<()> {
        if self.is_leaf() {
            return self.requires_grad().then_some(()).ok_or_else(|| {
                Error::runtime("cannot retain the gradient of a tensor that does not require a gradient")
            });
        }
        let meta = self.grad_meta_or_init();
        if std::mem::replace(&mut meta.state().is_retained, true) {
            return Ok(());
        }
        let meta = Arc::downgrade(meta);
        let keep = move |g: &Tensor| {
            if let Some(meta) = meta.upgrade() {
                meta.store(meta.add(g.clone(), is_grad_enabled())?)?;
            }
            Ok(None)
        };
        self.register_hook(Arc::new(keep)).map(|_| ())
    }

    /// The destination of gradients of this tensor. A change that was not recorded, such as one under `no_grad()`, does not affect it. An
    /// error after a recorded change through a tensor that is not known to be a view.
    pub(crate) fn edge(&self) -> Result<Option<Edge>> {
        let meta = self.grad_meta().filter(|m| m.requires_grad());
        let history = meta.and_then(|meta| meta.state().history.clone());
        let version = self.storage().version();
        match (meta, &history) {
            (_, Some(h)) if h.version >= self.storage().recorded() => {
                return Ok(Some(Edge::Node(h.node.clone(), h.index)));
            }
            (Some(meta), None) if !self.is_outdated() => return Ok(Some(Edge::Leaf(meta.clone()))),
            (None, None) if !self.is_outdated() => return Ok(None),
            _ => {}
        }
        let is_leaf = meta.is_some() && history.is_none();
        if let Some(origin) = self.origin().filter(|_| !is_leaf)
            && let Some((node, index)) = view::follow(self, origin)?
        {
            self.grad_meta_or_init().rebase(node.clone(), index, version);
            return Ok(Some(Edge::Node(node, index)));
        }
        // The correct history is that of the change, which this tensor does not have.
        Err(changed(&history.map_or("a tensor".to_owned(), |h| format!("a tensor computed by '{}'", h.node.op().name))))
    }
}

#[cold]
fn changed(what: &str) -> Error {
    Error::runtime(format!(
        "{what} was changed in place through another tensor that shares its memory, so its gradient would be wrong; clone() it before the \
         change, or change it out of place"
    ))
}

/// A unique number that identifies a hook. Later hooks have larger numbers.
pub(crate) fn next_number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// A handle that removes a hook.
pub struct HookHandle {
    number: u64,
    owner: HookOwner,
}

enum HookOwner {
    Leaf(Arc<GradMeta>),
    Node(Arc<Node>),
}

impl HookHandle {
    /// Removes the hook.
    pub fn remove(&self) {
        match &self.owner {
            HookOwner::Leaf(meta) => {
                // The hook is dropped after the lock is released.
                let hook = meta.state().hooks.remove(&self.number);
                drop(hook);
            }
            HookOwner::Node(node) => node.remove_hook(self.number),
        }
    }
}
