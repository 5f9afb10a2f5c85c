//! Crossing the border between host and plugin: errors become codes with a sentence, and errors again; no panic crosses.

use std::cell::RefCell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::abi::{self, ErrorSink, Str, code};
use crate::error::{Error, Result, panic_text};
use crate::stop::stopped;

thread_local! {
    /// The last error that went out, so that one that comes back is the same, with what the code and the sentence don't carry.
    static SENT: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Runs what the other side called: gives a code, and its sentence to the sink.
///
/// # Safety
/// The sink is null or lives.
pub unsafe fn answer(sink: *mut ErrorSink, f: impl FnOnce() -> Result<()>) -> i32 {
    let done = catch_unwind(AssertUnwindSafe(f)).or_else(|payload| stopped(payload).map(Err));
    let (code, message) = match done {
        Ok(Ok(())) => return code::OK as i32,
        Ok(Err(error)) => {
            let sentence = error.message().to_owned();
            let code = abi::code_of(&error);
            // What was there before is dropped when it isn't borrowed any more.
            drop(SENT.with(|sent| sent.replace(Some(error))));
            (code, sentence)
        }
        Err(panic) if cfg!(feature = "engine") => {
            let why = format!("minitensor panicked: {}; this is a fault of minitensor", panic_text(&*panic));
            (code::RUNTIME as i32, why)
        }
        Err(panic) => (code::PANIC as i32, panic_text(&*panic).to_owned()),
    };
    // SAFETY: by contract.
    if let Some(sink) = unsafe { sink.as_ref() }
        && let Some(set) = sink.set
    {
        // SAFETY: the text lives during the call.
        unsafe { set(sink.context, Str::of(&message)) }
    }
    code
}

/// Calls the other side, which answers with a code and gives its sentence to the sink.
#[inline]
pub fn ask(f: impl FnOnce(*mut ErrorSink) -> i32) -> Result<()> {
    let mut message = String::new();
    let context = std::ptr::from_mut(&mut message).cast();
    let mut sink = ErrorSink { struct_size: size_of::<ErrorSink>(), context, set: Some(keep) };
    match f(&mut sink) {
        0 => Ok(()),
        failed => Err(error(failed, message)),
    }
}

unsafe extern "C" fn keep(context: *mut c_void, message: Str) {
    // SAFETY: the context is the message of the `ask` under way; the text is lent.
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
        Some(kind) => Error::new(kind, or("it failed, and doesn't say why")),
        None if failed == code::PANIC as i32 => {
            Error::runtime(format!("the plugin panicked: {}; this is a fault of the plugin", or("no message")))
        }
        None => Error::runtime(format!(
            "{} (the code {failed}, which means nothing: a fault of the plugin)",
            or("it failed, and doesn't say why")
        )),
    }
}
