//! What computes ops on the devices there are. [`cpu`] is the only backend so far.

pub(crate) mod cpu;
pub(crate) mod precision;
