//! Parallel loops on the threads of a host; on the caller's thread if there is no host.

use std::ops::Range;
use std::sync::OnceLock;

use super::serial::is_serial;

/// Calls a function with consecutive ranges that together cover `0..n`, of at least `grain` indices each, on several
/// threads.
pub type ParallelFor = fn(n: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync));

static HOST: OnceLock<ParallelFor> = OnceLock::new();

/// Sets the loop of the host that later loops use. Only the first call has an effect.
pub fn set_parallel_for(parallel_for: ParallelFor) {
    HOST.get_or_init(|| parallel_for);
}

/// Whether the loop of this thread has stopped. The [poll](super::stop::set_poll) of the host knows it.
pub fn has_stopped() -> bool {
    false
}

/// Whether this thread helps with a loop of another thread. The poll of the host knows it.
pub fn is_helper() -> bool {
    false
}

/// Calls `f` with consecutive ranges that together cover `0..n`, on several threads if there is more than one range.
///
/// Each range except the last has at least `grain` indices. A panic in `f` propagates.
pub fn parallel_for(n: usize, grain: usize, f: impl Fn(Range<usize>) + Sync) {
    match HOST.get() {
        Some(parallel_for) if n > grain.max(1) && !is_serial() => parallel_for(n, grain, &f),
        _ if n > 0 => f(0..n),
        _ => {}
    }
}
