//! [`Recursion`]: a limit of the stack for functions that call themselves.

use std::cell::Cell;

use minitensor_kernels::stop::Stop;

use crate::error::Error;
use crate::scoped::Scoped;

/// The bytes of stack that nested calls may take. A thread of Rust has 2 MiB.
const LIMIT: usize = 1 << 20;

thread_local! {
    /// The address of the stack at the outermost call.
    static BASE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// One call of a function that calls itself. Without it, a recursion without end would end the process.
pub struct Recursion {
    _outermost: Option<Scoped<Option<usize>>>,
}

impl Recursion {
    /// Enters the function `name`. If the calls are nested too deeply, it ends the computation with an error.
    #[inline(never)]
    pub fn enter(name: &str) -> Recursion {
        let local = 0u8;
        let here = (&raw const local).addr();
        match BASE.get() {
            Some(base) if base.abs_diff(here) > LIMIT => too_deep(name),
            Some(_) => Recursion { _outermost: None },
            None => Recursion { _outermost: Some(Scoped::new(&BASE, Some(here))) },
        }
    }
}

#[cold]
fn too_deep(name: &str) -> ! {
    let error = Error::runtime(format!(
        "the function '{name}' calls itself too often: its calls take more than {} KiB of stack; an `if` on data may compute both branches, so \
         end the recursion by an attribute or a size, or write a loop",
        LIMIT >> 10
    ));
    Stop::Because(Box::new(error)).raise()
}
