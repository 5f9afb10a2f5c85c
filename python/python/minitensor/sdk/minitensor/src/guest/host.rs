//! The host, as a plugin sees it: the table of functions that `init` was given.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::plugin::abi::{self, ErrorSink, Host};
use crate::plugin::border::{answer, ask};

static HOST: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());

/// Keeps what `init` was given.
pub fn set(host: *const Host) {
    HOST.store(host.cast_mut(), Ordering::Release);
    minitensor_kernels::threads::lend(parallel_for);
}

/// The host.
///
/// # Errors
/// There is none before the plugin is loaded: in a test of the crate, for one, which needs the feature `engine`.
pub fn host() -> Result<&'static Host> {
    // SAFETY: the host's table is a constant, which outlives the plugin.
    unsafe { HOST.load(Ordering::Acquire).as_ref() }.ok_or_else(|| {
        Error::runtime(
            "the plugin isn't loaded, so there are no tensors yet; for tests, depend on minitensor-plugin-sdk with the feature `engine`",
        )
    })
}

/// A pointer from a function of the host that gives one or fails.
pub fn pointer<T>(f: impl FnOnce(*mut ErrorSink) -> *mut T) -> Result<NonNull<T>> {
    let mut given = std::ptr::null_mut();
    let done = ask(|sink| {
        given = f(sink);
        // The code isn't told where a pointer is given: the sentence is all there is.
        if given.is_null() { abi::code::RUNTIME as i32 } else { 0 }
    });
    done?;
    NonNull::new(given).ok_or_else(|| Error::runtime("the host gave a null pointer"))
}

/// An error if the user wants to stop.
pub fn check_interrupt() -> Result<()> {
    // SAFETY: a function of the host, called as the ABI says.
    host().map_or(Ok(()), |host| ask(|sink| unsafe { (host.check_interrupt)(sink) }))
}

type Loop<'a> = &'a (dyn Fn(Range<usize>) + Sync);
/// A panic on its way back to the caller of the loop.
type Panic = Mutex<Option<Box<dyn std::any::Any + Send>>>;

fn parallel_for(n: usize, grain: usize, f: Loop<'_>) {
    unsafe extern "C" fn body(context: *mut std::ffi::c_void, begin: i64, end: i64, error: *mut ErrorSink) -> i32 {
        // SAFETY: the context is the pair below, which lives until the loop has ended; the sink is the host's.
        unsafe {
            let (f, panic) = &*context.cast::<(Loop<'_>, Panic)>();
            answer(error, || {
                catch_unwind(AssertUnwindSafe(|| f(begin as usize..end as usize))).map_err(|payload| {
                    *panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(payload);
                    Error::runtime("a loop panicked")
                })
            })
        }
    }
    let Ok(host) = host() else { return f(0..n) };
    let mut context: (Loop<'_>, Panic) = (f, Mutex::new(None));
    let pointer = std::ptr::from_mut(&mut context).cast();
    // SAFETY: a function of the host, called as the ABI says.
    let done = ask(|sink| unsafe { (host.parallel_for)(n as i64, grain as i64, body, pointer, sink) });
    if let Some(payload) = context.1.into_inner().unwrap_or_else(PoisonError::into_inner) {
        resume_unwind(payload);
    }
    if let Err(error) = done {
        panic!("{error}");
    }
}
