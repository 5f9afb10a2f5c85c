//! Forking the process.
//!
//! A child has the memory of its parent, and none of the parent's other threads. A lock that one of these holds is never released
//! in the child. So whoever forks holds the locks of this crate meanwhile.

use std::any::Any;
use std::sync::{Mutex, RwLock, TryLockError};

use crate::dispatch::capture;
use crate::op::{registry, trace};
use crate::plugin::host;
use crate::{profiler, random};

/// Locks that are held, until this is dropped: in the parent, and once more in the child.
pub struct Held(#[allow(dead_code)] Vec<Box<dyn Any>>);

impl Held {
    /// Holds all locks, unless another thread holds one of them. Other threads hold them briefly, so trying again helps.
    ///
    /// Locks of a single tensor or graph aren't among them: a child must not use what another thread of the parent is changing.
    pub fn try_all() -> Option<Held> {
        trace::make_ready();
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

/// Holds a lock for a fork, unless another thread holds it.
pub fn try_lock<T>(lock: &'static Mutex<T>) -> Option<Box<dyn Any>> {
    match lock.try_lock() {
        Ok(guard) => Some(Box::new(guard)),
        Err(TryLockError::Poisoned(guard)) => Some(Box::new(guard.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The same of a lock that several may read.
pub fn try_write<T>(lock: &'static RwLock<T>) -> Option<Box<dyn Any>> {
    match lock.try_write() {
        Ok(guard) => Some(Box::new(guard)),
        Err(TryLockError::Poisoned(guard)) => Some(Box::new(guard.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}
