//! Signals, such as that of Ctrl-C, during long computations.

use std::cell::Cell;
use std::time::Duration;

use minitensor::{Error, interrupt};
use pyo3::prelude::*;

use super::{gil, log};
use crate::error::{Exception, Result};

/// The interval at which a long computation checks for signals.
const INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// True if Python handles signals on this thread.
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
    static LAST_CHECK: Cell<Option<Duration>> = const { Cell::new(None) };
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
    let now = now();
    let is_due = LAST_CHECK.with(|last| match last.get() {
        Some(before) if now.saturating_sub(before) < INTERVAL => false,
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

/// The time since some start. Loops read it often, so it is that of the last tick, a few milliseconds ago: an exact time would also wait for
/// all earlier loads.
#[cfg(target_os = "linux")]
fn now() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: every Linux has this clock, and the place for the time is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

/// The time since the first call.
#[cfg(not(target_os = "linux"))]
fn now() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}
