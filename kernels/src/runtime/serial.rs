//! [`Serial`]: loops on the current thread only.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local!(static DEPTH: Cell<usize> = const { Cell::new(0) });

/// While it lives, parallel loops that this thread starts run on this thread: their numbers are recorded on its tape.
pub(crate) struct Serial(PhantomData<*mut ()>);

impl Serial {
    pub fn new() -> Serial {
        DEPTH.set(DEPTH.get() + 1);
        Serial(PhantomData)
    }
}

impl Drop for Serial {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Whether loops of this thread run on this thread only.
pub(crate) fn is_serial() -> bool {
    DEPTH.get() > 0
}
