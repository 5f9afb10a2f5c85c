//! Computations that end half way: kernels unwind with a [`Stop`], and here it becomes an error.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use minitensor_kernels::stop::Stop;

use crate::error::{Error, Result};

/// Calls what may end half way. A panic comes through.
pub fn stoppable<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    ended(f).flatten()
}

/// The same; an error of the call itself is told from that of ending half way, which is the outer one.
pub fn ended<T>(f: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f)).or_else(|payload| match stopped(payload) {
        Ok(error) => Err(error),
        Err(panic) => resume_unwind(panic),
    })
}

/// The error of an unwinding that was a [`Stop`]; the payload if it was a panic.
#[cold]
pub fn stopped(payload: Box<dyn Any + Send>) -> std::result::Result<Error, Box<dyn Any + Send>> {
    Ok(match *payload.downcast::<Stop>()? {
        Stop::OutOfMemory(n, size) => Error::memory(format!("can't allocate {n} elements of {size} bytes")),
        Stop::Asked(why) => why.downcast::<Error>().map_or_else(|_| Error::runtime("interrupted"), |error| *error),
    })
}
