//! The host's half: loads libraries, makes ops of their tables, and lends them what they ask for.

mod calls;
mod check;
mod file;
mod library;
mod read;
mod schema;
mod services;
mod tensor;

use std::any::Any;

pub use calls::Loaded;
pub use file::Metadata;
pub use library::Library;
pub use services::set_log;

/// Holds the locks of plugins for a fork, unless another thread holds one of them.
pub(crate) fn try_hold() -> Option<[Box<dyn Any>; 2]> {
    Some([library::try_hold()?, schema::try_hold()?])
}
