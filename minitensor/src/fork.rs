//! Forking the process.
//!
//! A child has the memory of its parent, but none of the parent's other threads. A lock that such a thread holds is never
//! released in the child. Therefore the forking thread must hold the locks of this crate during the fork.

use std::any::Any;
use std::sync::{Mutex, RwLock, TryLockError};

use crate::dispatch::capture;
use crate::op::gradient::decomposition;
use crate::op::registry;
use crate::plugin::host;
use crate::{profiler, random};

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
        guards.push(random::try_hold()?);
        guards.push(capture::try_hold()?);
        guards.push(profiler::try_hold()?);
        guards.extend(host::try_hold()?);
        Some(Held(guards))
    }
}

/// Acquires a lock for a fork. `None` if another thread holds it.
pub fn try_lock<T>(lock: &'static Mutex<T>) -> Option<Box<dyn Any>> {
    match lock.try_lock() {
        Ok(guard) => Some(Box::new(guard)),
        Err(TryLockError::Poisoned(guard)) => Some(Box::new(guard.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Acquires a read-write lock for a fork. `None` if another thread holds it.
pub fn try_write<T>(lock: &'static RwLock<T>) -> Option<Box<dyn Any>> {
    match lock.try_write() {
        Ok(guard) => Some(Box::new(guard)),
        Err(TryLockError::Poisoned(guard)) => Some(Box::new(guard.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}
