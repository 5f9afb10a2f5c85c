//! The errors of postponed calls. Memory that such a call should have written raises the error in each later use.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::error::Error;
use crate::fork::lock::try_lock;
use crate::tensor::Storage;

/// Memory without its elements, and the reason.
static FAILURES: Mutex<Vec<(Weak<Storage>, Error)>> = Mutex::new(Vec::new());

fn failures() -> MutexGuard<'static, Vec<(Weak<Storage>, Error)>> {
    FAILURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that a call failed which writes this memory. The memory stays postponed.
pub fn note(storage: &Arc<Storage>, error: Error) {
    let mut failures = failures();
    failures.retain(|(known, _)| known.strong_count() > 0);
    if !failures.iter().any(|(known, _)| known.as_ptr() == Arc::as_ptr(storage)) {
        failures.push((Arc::downgrade(storage), error));
    }
}

/// The error of the call that should have written this memory.
pub fn of(storage: &Arc<Storage>) -> Option<Error> {
    let failures = failures();
    failures.iter().find(|(known, _)| known.as_ptr() == Arc::as_ptr(storage)).map(|(_, error)| error.clone())
}

/// Acquires the lock for a fork. `None` if another thread holds it.
pub fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&FAILURES)
}
