//! How loops run: SIMD levels, threads, and requests to stop.

pub mod simd;
pub mod stop;
#[cfg(feature = "engine")]
pub mod threads;
#[cfg(not(feature = "engine"))]
#[path = "host_threads.rs"]
pub mod threads;
