//! The host side: loads libraries, converts their tables to ops, and provides services to them.

mod calls;
mod check;
mod devices;
mod file;
mod library;
mod read;
mod schema;
mod services;
mod tensor;

use std::any::Any;

pub use calls::LoadedOp;
pub(crate) use check::vjp as check_vjp;
pub use file::Metadata;
pub use library::Library;
pub use services::set_log;

/// Takes the locks of this module before a fork. `None` if another thread holds one of them.
pub(crate) fn try_hold() -> Option<[Box<dyn Any>; 3]> {
    Some([devices::try_hold()?, library::try_hold()?, schema::try_hold()?])
}
