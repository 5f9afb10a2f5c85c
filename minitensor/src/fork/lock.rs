//! Acquires single locks for a fork.

use std::any::Any;
use std::sync::{Mutex, RwLock, TryLockError};

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
