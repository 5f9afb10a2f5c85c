//! The host's half: loads libraries, makes ops of their tables, and lends them what they ask for.

mod calls;
mod check;
mod file;
mod library;
mod read;
mod schema;
mod services;
mod tensor;

pub use calls::Loaded;
pub use file::Metadata;
pub use library::Library;
pub use services::set_log;
