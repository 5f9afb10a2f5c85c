//! Whether operations are recorded, for each thread.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
}

/// Whether operations on this thread are recorded for gradients.
#[inline]
pub fn is_grad_enabled() -> bool {
    ENABLED.with(Cell::get)
}

/// Turns recording on or off for this thread, and tells how it was.
pub fn set_grad_enabled(enabled: bool) -> bool {
    ENABLED.with(|cell| cell.replace(enabled))
}

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $value:literal) => {
        $(#[$doc])*
        #[must_use = "recording is as it was when the guard is dropped"]
        pub struct $name { before: bool, _not_send: PhantomData<*const ()> }

        impl $name {
            /// Until the guard is dropped.
            #[allow(clippy::new_without_default)]
            pub fn new() -> Self {
                Self { before: set_grad_enabled($value), _not_send: PhantomData }
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                set_grad_enabled(self.before);
            }
        }
    };
}

guard! {
    /// Nothing is recorded on this thread while it lives.
    NoGrad, false
}
guard! {
    /// Operations are recorded on this thread while it lives.
    EnableGrad, true
}
