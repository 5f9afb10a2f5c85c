//! [`GradMeta`]: what a tensor knows of gradients.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::node::{Edge, Node};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Called with a gradient; may give another in its place.
pub type Hook = Arc<dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync>;

/// Shared by the clones of a tensor: whether it needs a gradient, where it came from, what has gathered.
#[derive(Default)]
pub struct GradMeta {
    requires_grad: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    history: Option<History>,
    grad: Option<Tensor>,
    hooks: Vec<Option<Hook>>,
}

/// The node that computed a tensor, and the version its memory had then.
#[derive(Clone)]
struct History {
    node: Arc<Node>,
    index: usize,
    version: u64,
}

impl GradMeta {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn computed_by(node: Arc<Node>, index: usize, version: u64) -> Arc<GradMeta> {
        let state = State { history: Some(History { node, index, version }), ..State::default() };
        Arc::new(GradMeta { requires_grad: AtomicBool::new(true), state: Mutex::new(state) })
    }

    /// The history of a tensor that was changed in place starts anew.
    pub(crate) fn rebase(&self, node: Arc<Node>, index: usize, version: u64) {
        let before = self.state().history.replace(History { node, index, version });
        self.requires_grad.store(true, Ordering::Release);
        drop(before);
    }

    #[inline]
    pub(crate) fn requires_grad(&self) -> bool {
        self.requires_grad.load(Ordering::Acquire)
    }

    pub(crate) fn grad(&self) -> Option<Tensor> {
        self.state().grad.clone()
    }

    pub(crate) fn set_grad(&self, grad: Option<Tensor>) {
        let before = std::mem::replace(&mut self.state().grad, grad);
        drop(before);
    }

    pub(crate) fn hooks(&self) -> Vec<Hook> {
        self.state().hooks.iter().flatten().cloned().collect()
    }
}

impl Tensor {
    /// Whether operations on it are recorded.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        self.grad_meta().is_some_and(|m| m.requires_grad())
    }

    /// Asks for a gradient, or stops asking. Only a leaf can stop.
    pub fn set_requires_grad(&self, requires_grad: bool) -> Result<()> {
        if requires_grad && !self.dtype().is_differentiable() {
            return Err(Error::runtime(format!(
                "only floating and complex tensors can require a gradient, this one is {}; convert it with astype first",
                self.dtype()
            )));
        }
        if !requires_grad && !self.is_leaf() {
            return Err(Error::runtime(
                "only a leaf can stop requiring a gradient; use detach() for a tensor apart from its history",
            ));
        }
        if requires_grad || self.grad_meta().is_some() {
            self.grad_meta_or_init().requires_grad.store(requires_grad, Ordering::Release);
        }
        Ok(())
    }

    /// The tensor, asking for a gradient.
    pub fn with_requires_grad(self) -> Result<Tensor> {
        self.set_requires_grad(true)?;
        Ok(self)
    }

    /// Whether it was made by the user, not computed from tensors that require gradients.
    pub fn is_leaf(&self) -> bool {
        self.grad_meta().is_none_or(|m| m.state().history.is_none())
    }

    /// The gradient that has gathered in a leaf.
    pub fn grad(&self) -> Option<Tensor> {
        self.grad_meta()?.grad()
    }

    /// Replaces the gathered gradient.
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        if let Some(g) = &grad
            && (g.shape() != self.shape() || g.dtype() != self.dtype())
        {
            return Err(Error::value(format!(
                "a gradient has its tensor's shape and dtype: expected {} {}, got {} {}",
                self.shape(),
                self.dtype(),
                g.shape(),
                g.dtype()
            )));
        }
        if grad.is_some() || self.grad_meta().is_some() {
            self.grad_meta_or_init().set_grad(grad);
        }
        Ok(())
    }

    /// The name of the op that computed it, if that was recorded.
    pub fn grad_fn_name(&self) -> Option<String> {
        let state = self.grad_meta()?.state();
        state.history.as_ref().map(|h| h.node.op().name.to_string())
    }

    /// Calls `hook` with the gradient of this tensor whenever one is computed; what it gives takes its place.
    /// The handle removes it.
    pub fn register_hook(&self, hook: Hook) -> Result<HookHandle> {
        if !self.requires_grad() {
            return Err(Error::runtime("can't register a hook on a tensor that doesn't require a gradient"));
        }
        let meta = self.grad_meta_or_init().clone();
        let history = meta.state().history.clone();
        Ok(match history {
            Some(h) => HookHandle { slot: h.node.add_hook(h.index, hook), owner: HookOwner::Node(h.node) },
            None => {
                let mut state = meta.state();
                state.hooks.push(Some(hook));
                let slot = state.hooks.len() - 1;
                drop(state);
                HookHandle { slot, owner: HookOwner::Leaf(meta) }
            }
        })
    }

    /// Keeps the gradient of a tensor that is no leaf, too.
    pub fn retain_grad(&self) -> Result<()> {
        if self.is_leaf() {
            return self
                .requires_grad()
                .then_some(())
                .ok_or_else(|| Error::runtime("can't retain the gradient of a tensor that doesn't require one"));
        }
        let meta = Arc::downgrade(self.grad_meta_or_init());
        let keep = move |g: &Tensor| {
            if let Some(meta) = meta.upgrade() {
                let sum = match meta.state().grad.clone() {
                    Some(before) => crate::op::names::ADD.call(&[(&before).into(), g.into()], &[])?,
                    None => g.clone(),
                };
                meta.set_grad(Some(sum));
            }
            Ok(None)
        };
        self.register_hook(Arc::new(keep)).map(|_| ())
    }

    /// Where gradients of this tensor go; an error if its memory was changed in place behind its history's back.
    pub(crate) fn edge(&self) -> Result<Option<Edge>> {
        let Some(meta) = self.grad_meta().filter(|m| m.requires_grad()) else { return Ok(None) };
        match &meta.state().history {
            None => Ok(Some(Edge::Leaf(meta.clone()))),
            Some(h) if h.version == self.storage().version() => Ok(Some(Edge::Node(h.node.clone(), h.index))),
            Some(h) => Err(Error::runtime(format!(
                "a tensor computed by '{}' was changed in place through another view of its memory, so its gradient would be \
                 wrong; clone() it before the change, or change it out of place",
                h.node.op().name
            ))),
        }
    }
}

/// Removes a hook.
pub struct HookHandle {
    slot: usize,
    owner: HookOwner,
}

enum HookOwner {
    Leaf(Arc<GradMeta>),
    Node(Arc<Node>),
}

impl HookHandle {
    /// The hook isn't called any more.
    pub fn remove(&self) {
        match &self.owner {
            HookOwner::Leaf(meta) => meta.state().hooks[self.slot] = None,
            HookOwner::Node(node) => node.remove_hook(self.slot),
        }
    }
}
