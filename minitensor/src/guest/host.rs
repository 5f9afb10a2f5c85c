//! Access of a plugin to its host: the table of functions that `init` receives.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::plugin::abi::{self, ErrorSink, Host};
use crate::plugin::ffi::{catch, checked};

static HOST: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());

/// Stores the table that `init` receives.
pub fn set(host: *const Host) {
    HOST.store(host.cast_mut(), Ordering::Release);
    minitensor_kernels::threads::set_parallel_for(parallel_for);
}

/// The table of the host.
///
/// # Errors
/// There is no host before the plugin is loaded. A test of the crate itself needs the feature `engine`.
pub fn host() -> Result<&'static Host> {
    // SAFETY: the table of the host is a constant that outlives the plugin.
    unsafe { HOST.load(Ordering::Acquire).as_ref() }.ok_or_else(|| {
        Error::runtime(
            "the plugin is not loaded, so it cannot use tensors; for tests, depend on minitensor-plugin-sdk with the \
             feature `engine`",
        )
    })
}

/// The pointer that a function of the host returns, or its error.
pub fn pointer<T>(f: impl FnOnce(*mut ErrorSink) -> *mut T) -> Result<NonNull<T>> {
    let mut given = std::ptr::null_mut();
    let done = checked(|sink| {
        given = f(sink);
        // A function that returns a pointer has no error code, only a message.
        if given.is_null() { abi::code::RUNTIME as i32 } else { 0 }
    });
    done?;
    NonNull::new(given).ok_or_else(|| Error::runtime("the host returned a null pointer"))
}

/// Returns an error if the user has interrupted the call.
pub fn check_interrupt() -> Result<()> {
    // SAFETY: the function of the host is called as the ABI requires.
    host().map_or(Ok(()), |host| checked(|sink| unsafe { (host.check_interrupt)(sink) }))
}

type Loop<'a> = &'a (dyn Fn(Range<usize>) + Sync);
/// The payload of the first panic in the loop, which resumes in the caller of the loop.
type Panic = Mutex<Option<Box<dyn std::any::Any + Send>>>;

fn parallel_for(n: usize, grain: usize, f: Loop<'_>) {
    unsafe extern "C" fn body(context: *mut std::ffi::c_void, begin: i64, end: i64, error: *mut ErrorSink) -> i32 {
        // SAFETY: the context is the pair below, which outlives the loop. The sink is valid for the call.
        unsafe {
            let (f, panic) = &*context.cast::<(Loop<'_>, Panic)>();
            catch(error, || {
                catch_unwind(AssertUnwindSafe(|| f(begin as usize..end as usize))).map_err(|payload| {
                    panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(payload);
                    Error::runtime("a loop panicked")
                })
            })
        }
    }
    let Ok(host) = host() else { return f(0..n) };
    let mut context: (Loop<'_>, Panic) = (f, Mutex::new(None));
    let pointer = std::ptr::from_mut(&mut context).cast();
    // SAFETY: the function of the host is called as the ABI requires.
    let done = checked(|sink| unsafe { (host.parallel_for)(n as i64, grain as i64, body, pointer, sink) });
    if let Some(payload) = context.1.into_inner().unwrap_or_else(PoisonError::into_inner) {
        resume_unwind(payload);
    }
    if let Err(error) = done {
        panic!("{error}");
    }
}
