//! Memory: copies between layouts, buffers that are aligned to cache lines, and accesses with cache hints.

pub(crate) mod copy;
mod line;
pub(crate) mod stream;
mod zeros;

pub use copy::{contiguous, copy, copy_plane};
pub use line::{Aligned, Line, Lines};
pub use stream::LARGE;
pub(crate) use zeros::zeros;
