//! Memory whose size depends on a tensor's, so that the allocation may fail.

use std::collections::TryReserveError;

/// A vector of `n` zeros.
pub(crate) fn zeros<T: Copy + Default>(n: usize) -> Result<Vec<T>, TryReserveError> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(n)?;
    zeros.resize(n, T::default());
    Ok(zeros)
}
