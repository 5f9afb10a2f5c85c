//! Threads that Python ends while Rust functions are on their stacks.
//!
//! While Python (before 3.14) shuts down, it ends each other thread that requests the GIL, by `pthread_exit`. A thread requests the GIL
//! not only in [`gil::attach`](super::gil::attach), but also in the middle of any Python code that Rust calls: `__index__` of an argument,
//! a finalizer, an import. In glibc, `pthread_exit` unwinds the stack. In Rust functions, this would run destructors without the GIL, or
//! abort the process.
//!
//! For each function with something to clean up, the unwinder first calls the personality function, which is the same for all
//! Rust functions in this library. The linker replaces it by the one below (`build.rs`). At the first such function, the thread stops and
//! waits until the process ends, as in Python 3.14.

use std::ffi::{c_int, c_void};

use super::gil;

/// The flag of the unwinder for `pthread_exit` and the cancellation of a thread; panics do not have it.
const FORCE_UNWIND: c_int = 8;

unsafe extern "C" {
    /// The personality function of Rust's standard library.
    fn __real_rust_eh_personality(
        version: c_int,
        actions: c_int,
        class: u64,
        exception: *mut c_void,
        context: *mut c_void,
    ) -> c_int;
}

/// # Safety
/// Only the unwinder calls this.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rust_eh_personality(
    version: c_int,
    actions: c_int,
    class: u64,
    exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    if actions & FORCE_UNWIND != 0 && gil::is_shutting_down() {
        // No function with something to clean up was left yet, so everything that other threads may access is still there.
        gil::park_forever();
    }
    // SAFETY: these are the arguments of the unwinder.
    unsafe { __real_rust_eh_personality(version, actions, class, exception, context) }
}
