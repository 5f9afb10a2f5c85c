//! Signals, such as that of Ctrl-C, during long computations.

use std::cell::Cell;
use std::time::{Duration, Instant};

use minitensor::{Error, interrupt};
use pyo3::prelude::*;

use super::{gil, log};
use crate::error::{Exception, Result};

/// The interval at which a long computation checks for signals.
const INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// True if Python handles signals on this thread.
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
    static LAST_CHECK: Cell<Option<Instant>> = const { Cell::new(None) };
}

pub fn install(py: Python<'_>) -> Result<()> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    if main.eq(threading.call_method0("get_ident")?)? {
        set_main_thread();
    }
    interrupt::set_poll(poll);
    Ok(())
}

/// Marks this thread as the one on which Python handles signals. After a fork, this is the forking thread.
pub fn set_main_thread() {
    IS_MAIN.set(true);
}

/// Lets Python handle signals periodically, on the main thread only: Python handles signals there.
fn poll() -> minitensor::Result<()> {
    if !IS_MAIN.get() {
        return Ok(());
    }
    let now = Instant::now();
    let is_due = LAST_CHECK.with(|last| match last.get() {
        Some(before) if now.duration_since(before) < INTERVAL => false,
        _ => {
            last.set(Some(now));
            true
        }
    });
    if !is_due {
        return Ok(());
    }
    let check = |py: Python<'_>| {
        log::flush(py);
        py.check_signals()
    };
    gil::attach(check).map_err(|e| Error::from(Exception(e)))
}
