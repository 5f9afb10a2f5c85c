//! The plugin that `python -m minitensor new` begins with, and its own tests.

#[path = "../../python/python/minitensor/_new/rust/src/lib.rs"]
mod template;
