//! The recording mode of each thread.

use std::cell::Cell;

use crate::scoped::Scoped;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
}

/// Whether operations on this thread are recorded for gradients.
#[inline]
pub fn is_grad_enabled() -> bool {
    ENABLED.with(Cell::get)
}

/// Turns recording on or off for this thread, and returns the previous mode.
pub fn set_grad_enabled(enabled: bool) -> bool {
    ENABLED.with(|cell| cell.replace(enabled))
}

/// A guard that turns recording on or off for this thread.
#[must_use = "dropping the guard restores the previous recording mode"]
pub struct GradMode(#[allow(dead_code)] Scoped<bool>);

impl GradMode {
    /// Turns recording on or off until the guard is dropped.
    pub fn new(enabled: bool) -> GradMode {
        GradMode(Scoped::new(&ENABLED, enabled))
    }
}

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $value:literal) => {
        $(#[$doc])*
        #[must_use = "dropping the guard restores the previous recording mode"]
        pub struct $name(#[allow(dead_code)] GradMode);

        impl $name {
            /// Sets the mode until the guard is dropped.
            #[allow(clippy::new_without_default)]
            pub fn new() -> Self {
                Self(GradMode::new($value))
            }
        }
    };
}

guard! {
    /// A guard that turns recording off for this thread.
    NoGrad, false
}
guard! {
    /// A guard that turns recording on for this thread.
    EnableGrad, true
}
