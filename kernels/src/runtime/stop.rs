//! Ends a computation before it is complete.
//!
//! Loops don't return errors. They unwind with a [`Stop`] that contains the reason. The caller of the kernel catches it
//! and converts it to an error.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::OnceLock;

use super::threads;

/// The reason why a computation ended early: the payload of the unwinding.
#[derive(Debug)]
pub enum Stop {
    /// Out of memory for this number of elements of this many bytes each.
    OutOfMemory(usize, usize),
    /// The [poll](set_poll) requested the stop, or a part of the computation failed, for this reason.
    Because(Box<dyn Any + Send>),
    /// Another thread has stopped, and has the reason.
    Elsewhere,
}

impl Stop {
    /// Unwinds. No panic message is printed.
    #[cold]
    pub fn raise(self) -> ! {
        resume_unwind(Box::new(self))
    }
}

/// Returns an error with the reason if the computation must end.
pub type Poll = fn() -> Result<(), Box<dyn Any + Send>>;

static POLL: OnceLock<Poll> = OnceLock::new();

/// Sets the function that long loops poll periodically, for example to check for signals of the host language. Only the
/// first call has an effect.
pub fn set_poll(poll: Poll) {
    let _ = POLL.set(poll);
}

/// Ends the computation if the [poll](set_poll) requests it, which only the thread that has started a loop asks, or if the
/// [loop](threads::parallel_for) of this thread has stopped. Loops over many elements call it at least once per few milliseconds of work.
#[inline]
pub fn poll() {
    if threads::has_stopped() {
        Stop::Elsewhere.raise()
    }
    if !threads::is_helper()
        && let Some(poll) = POLL.get()
        && let Err(why) = poll()
    {
        Stop::Because(why).raise()
    }
}

/// Polls at intervals in a loop of many short steps.
pub struct Pace(usize);

impl Pace {
    /// The operations between two polls: about a millisecond of work.
    const INTERVAL: usize = 1 << 20;

    /// [Polls](poll) if many operations were done since the last time. The caller is about to do `more`.
    #[inline]
    pub fn step(&mut self, more: usize) {
        match self.0.checked_sub(more) {
            Some(left) => self.0 = left,
            None => {
                poll();
                self.0 = Pace::INTERVAL;
            }
        }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Pace(Pace::INTERVAL)
    }
}

/// An empty vector with room for `n` elements. Use it, or [`filled`], wherever the size of a tensor determines `n`: a
/// tensor that is too large must end the call, not the process.
pub fn vec_for<T>(n: usize) -> Vec<T> {
    let mut vec = Vec::new();
    if vec.try_reserve_exact(n).is_err() {
        Stop::OutOfMemory(n, size_of::<T>()).raise()
    }
    vec
}

/// A vector of `n` equal elements; see [`vec_for`].
pub fn filled<T: Clone>(value: T, n: usize) -> Vec<T> {
    let mut vec = vec_for(n);
    vec.resize(n, value);
    vec
}
