//! Forking the process.
//!
//! A child has the memory of its parent, but none of the parent's other threads. A lock that such a thread holds is never
//! released in the child. Therefore the forking thread must hold the locks of this crate during the fork.

pub(crate) mod lock;

use std::any::Any;

use crate::dispatch::capture;
use crate::op::gradient::decomposition;
use crate::op::registry;
use crate::plugin::host;
use crate::{attr, lazy, profiler, random, tuning};

pub use lock::{try_lock, try_write};

/// A guard that holds locks until it is dropped, once in the parent and once in the child.
pub struct Held(#[allow(dead_code)] Vec<Box<dyn Any>>);

impl Held {
    /// Acquires all locks. `None` if another thread holds one of them; threads hold them only briefly, so the caller can retry.
    ///
    /// Locks of single tensors and graphs are excluded: a child must not use objects that another thread of the parent changes.
    pub fn try_all() -> Option<Held> {
        decomposition::make_ready();
        minitensor_kernels::program::make_ready();
        let mut guards = Vec::new();
        guards.extend(registry::try_hold()?);
        guards.push(attr::try_hold()?);
        guards.push(random::try_hold()?);
        guards.push(capture::try_hold()?);
        guards.push(profiler::try_hold()?);
        guards.extend(tuning::try_hold()?);
        guards.extend(lazy::try_hold()?);
        guards.extend(host::try_hold()?);
        Some(Held(guards))
    }
}
