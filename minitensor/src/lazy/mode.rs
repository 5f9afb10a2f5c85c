//! The state of each thread: whether it postpones calls, and what an access to elements means.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use crate::dispatch::capture::{self, Counted};
use crate::graph::record;

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::NEW) };
    /// So that dispatch looks at the state.
    static COUNTED: RefCell<Option<Counted>> = const { RefCell::new(None) };
}

#[derive(Clone, Copy)]
struct State {
    is_on: bool,
    is_paused: bool,
    access: Access,
    /// Whether the code has changed more than its own tensors.
    has_effect: bool,
}

impl State {
    const NEW: State = State { is_on: false, is_paused: false, access: Access::Computes, has_effect: false };
}

/// What an access to memory of postponed calls does.
#[derive(Clone, Copy, PartialEq)]
pub enum Access {
    /// It computes these calls.
    Computes,
    /// It ends the body of an op, by unwinding with [`Ended`]: the call is then postponed as a whole.
    Ends,
    /// As `Ends`, in the body of an op that copies. Its copies are not calls of such ops.
    EndsCopy,
    /// Nothing: the thread is computing them. Memory without elements cannot be read.
    Proceeds,
}

/// The payload of the unwinding that ends a body.
pub struct Ended;

/// Restores the state of the thread.
pub struct Restore(State);

impl Drop for Restore {
    fn drop(&mut self) {
        // An effect is also one of the code around this.
        let has_effect = self.0.has_effect || STATE.get().has_effect;
        STATE.set(State { has_effect, ..self.0 });
    }
}

/// Notes that the code has changed more than its own tensors, so that the bodies which it is part of must not end early.
pub fn note_effect() {
    STATE.set(State { has_effect: true, ..STATE.get() });
}

/// Whether this thread postpones calls.
#[inline]
pub fn is_on() -> bool {
    if !capture::is_active() {
        return false;
    }
    let State { is_on, is_paused, .. } = STATE.get();
    is_on && !is_paused && !record::is_recording()
}

/// What an access does.
pub fn access() -> Access {
    STATE.get().access
}

/// Whether an access ends the body that is running.
pub fn ends_body() -> bool {
    is_on() && matches!(access(), Access::Ends | Access::EndsCopy) && !STATE.get().has_effect
}

/// Sets what an access does, until the result is dropped.
pub fn with_access(access: Access) -> Restore {
    Restore(STATE.replace(State { access, has_effect: false, ..STATE.get() }))
}

/// Runs code, and also returns whether it changed more than its own tensors.
pub fn with_effects<T>(run: impl FnOnce() -> T) -> (T, bool) {
    let _restore = with_access(access());
    let result = run();
    (result, STATE.get().has_effect)
}

/// Postpones no calls, until the result is dropped.
pub fn paused(access: Access) -> Restore {
    Restore(STATE.replace(State { is_paused: true, access, has_effect: false, ..STATE.get() }))
}

/// Turns lazy mode on or off for this thread, and returns whether it was on.
pub fn set_lazy(is_on: bool) -> bool {
    let before = STATE.replace(State { is_on, ..STATE.get() });
    if is_on != before.is_on {
        COUNTED.with(|cell| *cell.borrow_mut() = is_on.then(Counted::new));
    }
    before.is_on
}

/// While this guard lives, calls on this thread are postponed until their results are read.
#[must_use = "dropping the guard restores the previous mode"]
pub struct Lazy {
    before: bool,
    _not_send: PhantomData<*const ()>,
}

impl Lazy {
    /// Starts; dropping the guard ends it. It computes nothing.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Lazy {
        Lazy { before: set_lazy(true), _not_send: PhantomData }
    }
}

impl Drop for Lazy {
    fn drop(&mut self) {
        set_lazy(self.before);
    }
}
