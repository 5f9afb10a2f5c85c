//! The execution of loops: SIMD levels, registers, threads, requests to stop, and values that are kept between calls.

pub mod kept;
#[cfg(feature = "engine")]
pub(crate) mod register;
pub(crate) mod serial;
pub mod simd;
pub mod stop;
#[cfg(feature = "engine")]
pub mod team;
#[cfg(feature = "engine")]
pub mod threads;
#[cfg(not(feature = "engine"))]
#[path = "host_threads.rs"]
pub mod threads;
