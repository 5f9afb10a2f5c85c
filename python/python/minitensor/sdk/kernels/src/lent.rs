//! Loops on the threads that a host lends; on the caller's alone while there is none.

use std::ops::Range;
use std::sync::OnceLock;

/// Calls a function with consecutive ranges that together are `0..n`, of `grain` indices at least, on several threads.
pub type ParallelFor = fn(n: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync));

static HOST: OnceLock<ParallelFor> = OnceLock::new();

/// From now on loops run on the host's threads.
pub fn lend(parallel_for: ParallelFor) {
    HOST.get_or_init(|| parallel_for);
}

/// Calls `f` with consecutive ranges that together are `0..n`, on several threads if there is more than one range.
///
/// The ranges hold at least `grain` indices each (but for the last). A panic in `f` comes through.
pub fn parallel_for(n: usize, grain: usize, f: impl Fn(Range<usize>) + Sync) {
    match HOST.get() {
        Some(parallel_for) if n > grain.max(1) => parallel_for(n, grain, &f),
        _ if n > 0 => f(0..n),
        _ => {}
    }
}
