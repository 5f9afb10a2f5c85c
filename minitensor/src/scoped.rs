//! [`Scoped`]: a value of a thread until the end of a scope.

use std::cell::Cell;
use std::marker::PhantomData;
use std::thread::LocalKey;

/// A guard that gives a variable of this thread another value. Dropping it restores the previous one.
#[must_use = "dropping the guard restores the previous value"]
pub(crate) struct Scoped<T: Copy + 'static> {
    variable: &'static LocalKey<Cell<T>>,
    before: T,
    _not_send: PhantomData<*const ()>,
}

impl<T: Copy> Scoped<T> {
    /// Sets the variable.
    pub fn new(variable: &'static LocalKey<Cell<T>>, value: T) -> Scoped<T> {
        Scoped { variable, before: variable.replace(value), _not_send: PhantomData }
    }
}

impl<T: Copy> Drop for Scoped<T> {
    fn drop(&mut self) {
        self.variable.set(self.before);
    }
}
