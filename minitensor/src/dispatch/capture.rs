//! The layer that shows calls to observers and to the recording of a graph. Without any it costs one load of an atomic.

use std::any::Any;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::Produced;
use crate::attr::Attr;
use crate::error::Result;
use crate::fork::lock;
use crate::graph::record;
use crate::lazy;
use crate::op::{Arg, OpRef};
use crate::scoped::Scoped;

/// Sees the calls of all threads.
pub trait Observer: Send + Sync {
    /// Sees one call. `proceed` computes its outputs, and is called once.
    fn call(&self, op: &OpRef, args: &[Arg<'_>], proceed: &mut dyn FnMut() -> Result<Produced>) -> Result<Produced>;
}

/// The observers, the outermost first.
static OBSERVERS: RwLock<Vec<Arc<dyn Observer>>> = RwLock::new(Vec::new());
/// The number of observers and recordings.
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether the calls of this thread are hidden.
    static HIDDEN: Cell<bool> = const { Cell::new(false) };
}

/// Whether there are observers, or recordings of graphs.
#[inline(always)]
pub fn is_active() -> bool {
    COUNT.load(Ordering::Relaxed) != 0 && !HIDDEN.get()
}

/// Makes [`is_active`] true while it lives.
pub struct Counted(());

impl Counted {
    pub fn new() -> Counted {
        COUNT.fetch_add(1, Ordering::Relaxed);
        Counted(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Hides the calls of this thread from observers, until it is dropped.
#[must_use = "dropping the guard ends it"]
pub struct Hiding(#[allow(dead_code)] Scoped<bool>);

impl Hiding {
    pub fn new() -> Hiding {
        Hiding(Scoped::new(&HIDDEN, true))
    }
}

/// An observer sees the calls that begin while this guard lives.
#[must_use = "dropping the guard removes the observer"]
pub struct Observing {
    observer: Arc<dyn Observer>,
    _counted: Counted,
}

/// Adds an observer.
pub fn observe(observer: Arc<dyn Observer>) -> Observing {
    let mut observers = OBSERVERS.write().unwrap_or_else(PoisonError::into_inner);
    observers.push(observer.clone());
    Observing { observer, _counted: Counted::new() }
}

impl Drop for Observing {
    fn drop(&mut self) {
        let mut observers = OBSERVERS.write().unwrap_or_else(PoisonError::into_inner);
        observers.retain(|observer| !Arc::ptr_eq(observer, &self.observer));
    }
}

/// Holds the list's lock for a [fork](crate::fork), unless another thread holds it.
pub fn try_hold() -> Option<Box<dyn Any>> {
    lock::try_write(&OBSERVERS)
}

/// Passes a call through the recording of a graph and all observers.
#[cold]
pub fn call(
    op: &OpRef,
    args: &[Arg<'_>],
    attrs: &[Attr],
    mut proceed: impl FnMut() -> Result<Produced>,
) -> Result<Produced> {
    // A call that is postponed is seen when it is computed.
    if lazy::is_on() && !op.body.is_interpreted() {
        return proceed();
    }
    // A copy: observers come and go while the call runs.
    let observers = OBSERVERS.read().unwrap_or_else(PoisonError::into_inner).clone();
    record::call(op, args, attrs, &mut || through(&observers, op, args, &mut proceed))
}

fn through(
    observers: &[Arc<dyn Observer>],
    op: &OpRef,
    args: &[Arg<'_>],
    proceed: &mut dyn FnMut() -> Result<Produced>,
) -> Result<Produced> {
    match observers.split_first() {
        Some((first, others)) => first.call(op, args, &mut || through(others, op, args, proceed)),
        None => proceed(),
    }
}
