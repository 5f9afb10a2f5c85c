//! Calls between host and plugin. Errors become codes with a message, and are restored from them. No panic crosses the ABI.

use std::cell::RefCell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::abi::{self, ErrorSink, Str, code};
use crate::error::{Error, Result, panic_text};
use crate::stop::stopped;

thread_local! {
    /// The last error sent. If it is returned to this side, it is restored with the details that code and message do not carry.
    static SENT: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// The first words of the error if the other side, a plugin, panicked.
pub const PANICKED: &str = "the plugin panicked";

/// Runs `f` for the other side. Returns an error code, and passes the error message to the sink.
///
/// # Safety
/// The sink is null, or valid for the whole call.
pub unsafe fn catch(sink: *mut ErrorSink, f: impl FnOnce() -> Result<()>) -> i32 {
    let done = catch_unwind(AssertUnwindSafe(f)).or_else(|payload| stopped(payload).map(Err));
    let (code, message) = match done {
        Ok(Ok(())) => return code::OK as i32,
        Ok(Err(error)) => {
            let sentence = error.message().to_owned();
            let code = abi::code_of(&error);
            // The previous error is dropped after the borrow ends, because its destructor may use this cell.
            drop(SENT.with(|sent| sent.replace(Some(error))));
            (code, sentence)
        }
        Err(panic) if cfg!(feature = "engine") => {
            let why = format!("minitensor panicked: {}; this is a bug in minitensor", panic_text(&*panic));
            (code::RUNTIME as i32, why)
        }
        Err(panic) => (code::PANIC as i32, panic_text(&*panic).to_owned()),
    };
    // SAFETY: by the contract of this function, the sink is null or valid.
    if let Some(sink) = unsafe { sink.as_ref() }
        && let Some(set) = sink.set
    {
        // SAFETY: `message` outlives the call, and the sink provides `set` for its own context.
        unsafe { set(sink.context, Str::of(&message)) }
    }
    code
}

/// Calls the other side, which returns an error code and passes its message to the sink.
#[inline]
pub fn checked(f: impl FnOnce(*mut ErrorSink) -> i32) -> Result<()> {
    let mut message = String::new();
    let context = std::ptr::from_mut(&mut message).cast();
    let mut sink = ErrorSink { struct_size: size_of::<ErrorSink>(), context, set: Some(keep) };
    match f(&mut sink) {
        0 => Ok(()),
        failed => Err(error(failed, message)),
    }
}

unsafe extern "C" fn keep(context: *mut c_void, message: Str) {
    // SAFETY: the context is the message of the `ask` that is in progress. The text is valid for this call.
    unsafe { *context.cast::<String>() = message.lossy() }
}

#[cold]
fn error(failed: i32, message: String) -> Error {
    let sent = SENT.with(|sent| sent.borrow_mut().take());
    if let Some(sent) = sent.filter(|sent| sent.message() == message) {
        return sent;
    }
    let or = |instead: &str| if message.is_empty() { instead.to_owned() } else { message.clone() };
    match abi::kind_of(failed) {
        Some(kind) => Error::new(kind, or("the call failed without an error message")),
        None if failed == code::PANIC as i32 => {
            Error::runtime(format!("{PANICKED}: {}; this is a bug in the plugin", or("no message")))
        }
        None => Error::runtime(format!(
            "{} (the plugin returned the unknown error code {failed}, which is a bug in the plugin)",
            or("the call failed without an error message")
        )),
    }
}
