//! [`Origin`]: the call of the user's code that a postponed call is part of.

use std::cell::RefCell;

use crate::dispatch::named;
use crate::error::Error;
use crate::graph::record;
use crate::op::OpRef;

thread_local! {
    /// The outermost op whose body is running.
    static OUTERMOST: RefCell<Option<OpRef>> = const { RefCell::new(None) };
}

/// What an error of a postponed call says about the call.
pub struct Origin {
    /// The op that was called, if the postponed call is part of its body.
    op: Option<OpRef>,
    /// The position in the user's code, if it is known.
    place: Option<String>,
}

impl Origin {
    /// That of a call which is being made.
    pub fn of_call() -> Origin {
        Origin { op: OUTERMOST.with_borrow(Option::clone), place: record::locate() }
    }

    /// The error as the call would have raised it, with the position.
    pub fn explain(&self, error: Error) -> Error {
        let error = match &self.op {
            Some(op) => named(op, error),
            None => error,
        };
        match &self.place {
            Some(place) => error.called_at(place),
            None => error,
        }
    }
}

/// While this guard lives, the body of an op runs.
#[must_use = "dropping the guard ends the body"]
pub struct Entered {
    is_outermost: bool,
}

impl Entered {
    /// Enters the body of an op.
    pub fn new(op: &OpRef) -> Entered {
        OUTERMOST.with_borrow_mut(|outermost| {
            let is_outermost = outermost.is_none();
            outermost.get_or_insert_with(|| op.clone());
            Entered { is_outermost }
        })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.is_outermost {
            // The op may run code when it is dropped.
            let op = OUTERMOST.take();
            drop(op);
        }
    }
}
