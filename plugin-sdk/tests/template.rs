//! Compiles the plugin of `python -m minitensor new`, and runs its tests.

#[path = "../../python/python/minitensor/_new/rust/src/lib.rs"]
mod template;
