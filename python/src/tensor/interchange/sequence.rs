//! Iterates over the elements of Python sequences.

use minitensor::Error;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyTuple};

use crate::error::{Exception, Result};

/// The number of elements after which Python handles signals: a sequence may be longer than a user wants to wait for.
pub const SIGNAL_INTERVAL: usize = 4096;

/// The maximum nesting depth of lists. Deeper lists contain themselves or are a mistake.
pub const MAX_DEPTH: usize = 64;

/// The elements of a list, tuple or other sequence, one after the other.
pub struct Items<'py> {
    py: Python<'py>,
    source: Source<'py>,
    len: usize,
    taken: usize,
}

enum Source<'py> {
    List(Bound<'py, PyList>),
    Tuple(Bound<'py, PyTuple>),
    Other(Bound<'py, PyIterator>),
}

impl<'py> Items<'py> {
    /// The elements of an object that has a length and is iterable.
    pub fn of(object: &Bound<'py, PyAny>) -> Result<Items<'py>> {
        let (py, len) = (object.py(), object.len());
        let source = if let Ok(list) = object.cast::<PyList>() {
            Source::List(list.clone())
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            Source::Tuple(tuple.clone())
        } else {
            Source::Other(object.try_iter()?)
        };
        let len = len.map_err(|error| match error.is_instance_of::<PyOverflowError>(py) {
            true => Error::memory("a sequence has more elements than fit into memory").into(),
            false => Exception(error),
        })?;
        Ok(Items { py, source, len, taken: 0 })
    }

    /// The initial length.
    pub fn len(&self) -> usize {
        self.len
    }

    fn take(&mut self) -> Result<Option<Bound<'py, PyAny>>> {
        if self.taken % SIGNAL_INTERVAL == SIGNAL_INTERVAL - 1 {
            self.py.check_signals()?;
        }
        let item = match &mut self.source {
            Source::List(list) if self.taken < list.len() => Some(list.get_item(self.taken)?),
            Source::Tuple(tuple) if self.taken < tuple.len() => Some(tuple.get_item(self.taken)?),
            Source::Other(iterator) => iterator.next().transpose()?,
            _ => None,
        };
        match (&item, self.taken == self.len) {
            (Some(_), false) => self.taken += 1,
            (None, true) => {}
            _ => {
                let len = self.len;
                return Err(Error::value(format!(
                    "a sequence has a different number of elements than its length {len}"
                ))
                .into());
            }
        }
        Ok(item)
    }
}

impl<'py> Iterator for Items<'py> {
    type Item = Result<Bound<'py, PyAny>>;
    fn next(&mut self) -> Option<Self::Item> {
        self.take().transpose()
    }
}
