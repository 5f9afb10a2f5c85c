//! The precision of half floats inside of a composite op and of a gradient: `float32` from start to end.
//!
//! There, a loop stores a `float16` or `bfloat16` result as `float32`. The results of the whole op are rounded once, so they
//! are as exact as those of a single loop.

use std::cell::Cell;

use crate::dtype::DType;
use crate::scoped::Scoped;

thread_local! {
    static WIDE: Cell<bool> = const { Cell::new(false) };
}

/// While this guard lives, loops on this thread store half results as `float32`.
#[must_use = "dropping the guard restores the previous precision"]
pub struct Wide(#[allow(dead_code)] Scoped<bool>);

impl Wide {
    /// Starts; dropping the guard ends it.
    pub fn new() -> Wide {
        Wide(Scoped::new(&WIDE, true))
    }
}

/// While this guard lives, loops on this thread store results in their own dtypes.
#[must_use = "dropping the guard restores the previous precision"]
pub struct Narrow(#[allow(dead_code)] Scoped<bool>);

impl Narrow {
    /// Starts; dropping the guard ends it.
    pub fn new() -> Narrow {
        Narrow(Scoped::new(&WIDE, false))
    }
}

/// Whether loops on this thread store half results as `float32`.
pub fn is_wide() -> bool {
    WIDE.with(Cell::get)
}

/// The dtype in which a loop stores a result of this dtype.
#[inline]
pub fn stored_dtype(dtype: DType) -> DType {
    if dtype.compute() != dtype && is_wide() { dtype.compute() } else { dtype }
}
