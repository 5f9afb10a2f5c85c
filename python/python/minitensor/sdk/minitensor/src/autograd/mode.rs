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

/// Recording is on or off on this thread while it lives.
#[must_use = "recording is as it was when the guard is dropped"]
pub struct GradMode {
    before: bool,
    _not_send: PhantomData<*const ()>,
}

impl GradMode {
    /// On or off, until the guard is dropped.
    pub fn new(enabled: bool) -> GradMode {
        GradMode { before: set_grad_enabled(enabled), _not_send: PhantomData }
    }
}

impl Drop for GradMode {
    fn drop(&mut self) {
        set_grad_enabled(self.before);
    }
}

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $value:literal) => {
        $(#[$doc])*
        #[must_use = "recording is as it was when the guard is dropped"]
        pub struct $name(#[allow(dead_code)] GradMode);

        impl $name {
            /// Until the guard is dropped.
            #[allow(clippy::new_without_default)]
            pub fn new() -> Self {
                Self(GradMode::new($value))
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
