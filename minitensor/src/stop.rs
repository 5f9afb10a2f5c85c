//! Interrupted computations: kernels unwind with a [`Stop`], which is converted to an error here.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use minitensor_kernels::stop::Stop;
use minitensor_kernels::threads;

use crate::error::{Error, Result, counted};

/// Calls `f`, and returns an error if it was stopped. Panics propagate.
pub fn stoppable<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    ended(f).flatten()
}

/// Calls `f`, and returns an error if it was stopped. A result of `f` is nested, so its errors are distinct. Panics propagate.
pub fn ended<T>(f: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f)).or_else(|payload| match stopped(payload) {
        Ok(error) => Err(error),
        Err(panic) => resume_unwind(panic),
    })
}

/// Calls `f` as [`threads::parallel_for`] does. The first error of a range stops the loop and is returned.
pub fn parallel_for(n: usize, grain: usize, f: impl Fn(Range<usize>) -> Result<()> + Sync) -> Result<()> {
    stoppable(|| {
        threads::parallel_for(n, grain, |range| f(range).unwrap_or_else(|error| raise(error)));
        Ok(())
    })
}

/// Ends a computation that cannot return an error. A caller that is [`stoppable`] returns it.
#[cold]
pub fn raise(error: Error) -> ! {
    Stop::Because(Box::new(error)).raise()
}

/// Converts an unwinding payload: the error if it is a [`Stop`], else the payload of the panic.
#[cold]
pub fn stopped(payload: Box<dyn Any + Send>) -> std::result::Result<Error, Box<dyn Any + Send>> {
    Ok(match *payload.downcast::<Stop>()? {
        Stop::OutOfMemory(n, size) => {
            Error::memory(format!("cannot allocate {} of {}", counted(n, "element"), counted(size, "byte")))
        }
        Stop::Because(why) => why.downcast::<Error>().map_or_else(|_| Error::runtime("interrupted"), |error| *error),
        Stop::Elsewhere => Error::runtime("interrupted"),
    })
}
