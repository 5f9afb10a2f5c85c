//! [`Team`]: threads of another library, on which the loops of a call run.
//!
//! The workers of a library wait for its next loop at full speed. If our loops ran on threads of ours between those of the library, each
//! would take the cores from the other.

use std::cell::Cell;
use std::marker::PhantomData;

/// Calls `f(k)` for each `k < n`, at the same time as far as there are threads, and returns when all calls have returned. `f` does not
/// panic, and a call finds nothing to do if the others have done it. The result is false if there are no threads and `f` was not called.
pub type Team = fn(n: usize, f: &(dyn Fn(usize) + Sync)) -> bool;

thread_local!(static CURRENT: Cell<Option<Team>> = const { Cell::new(None) });

/// Restores the previous team of this thread when it is dropped.
#[must_use]
pub struct Entered {
    previous: Option<Team>,
    /// It belongs to one thread.
    thread: PhantomData<*mut ()>,
}

/// Runs the loops of this thread on a team until the result is dropped.
pub fn enter(team: Team) -> Entered {
    Entered { previous: CURRENT.replace(Some(team)), thread: PhantomData }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.previous);
    }
}

/// The team of this thread.
pub(super) fn current() -> Option<Team> {
    CURRENT.get()
}
