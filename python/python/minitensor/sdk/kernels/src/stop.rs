//! Ending a computation half way.
//!
//! Loops have no results in which they could return an error: they unwind, with a [`Stop`] that tells why. Whoever called the
//! kernel catches it and makes an error of it.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::OnceLock;

/// Why a computation ended half way: the payload of the unwinding.
#[derive(Debug)]
pub enum Stop {
    /// There is no memory for this many elements of this many bytes each.
    OutOfMemory(usize, usize),
    /// The [poll](set_poll) asked for it, for this reason.
    Asked(Box<dyn Any + Send>),
}

impl Stop {
    /// Unwinds. This is no panic: no message is printed.
    #[cold]
    pub fn raise(self) -> ! {
        resume_unwind(Box::new(self))
    }
}

/// Asks whether to end the computation, and if so, why.
pub type Poll = fn() -> Result<(), Box<dyn Any + Send>>;

static POLL: OnceLock<Poll> = OnceLock::new();

/// Sets what long loops ask every now and then, such as for the signals of the host language. The first one stays.
pub fn set_poll(poll: Poll) {
    let _ = POLL.set(poll);
}

/// Ends the computation if the [poll](set_poll) asks for it. Loops over many elements call it on the thread that was called,
/// at least once for every few milliseconds of work.
#[inline]
pub fn poll() {
    if let Some(poll) = POLL.get()
        && let Err(why) = poll()
    {
        Stop::Asked(why).raise()
    }
}

/// An empty vector with room for `n` elements. Use it, or [`filled`], wherever a tensor's size decides on `n`: too large a tensor
/// must end the call, and not the process.
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
