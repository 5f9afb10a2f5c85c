//! The plugin ABI: `plugin-sdk/include/minitensor_plugin.h` in Rust. The header documents every item. A test checks that both
//! have the same layout (`plugin-sdk/tests/header.rs`).

#![allow(missing_docs)]

mod convert;
pub mod most;
mod numbers;
mod table;

pub use convert::slice;
pub use numbers::*;
pub use table::*;

pub const MAGIC: u64 = u64::from_le_bytes(*b"MTPLUGIN");
pub const MAJOR: u32 = 1;
pub const MINOR: u32 = 4;
/// The name of the exported symbol.
pub const SYMBOL: &str = "minitensor_plugin";
