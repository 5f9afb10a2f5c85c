//! The language in which ops are defined: dtypes, names, clauses, and the rules that a definition must follow.
//!
//! The macro reads a definition from Rust tokens and reports errors at spans. The engine reads it from text or from a plugin's
//! tables and reports errors as sentences. Both use these types, tables and checks, so one definition means the same everywhere.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod attr;
pub mod check;
pub mod combine;
pub mod dtype;
pub mod gradient;
pub mod grammar;
pub mod message;
pub mod name;
pub mod problem;
pub mod property;
pub mod shape;
pub mod signature;
pub mod suggestion;

pub use attr::{Attr, AttrKind};
pub use combine::Combine;
pub use dtype::{DType, DTypeSet};
pub use message::{Message, Sentence};
pub use problem::{At, Extent, Problem};
pub use property::Property;
pub use signature::Signature;
