//! Calls on tensors of PyTorch without PyTorch's dispatcher.

use minitensor::dispatch;
use minitensor::op::{Arg, Arity};
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::binding::{Slots, argument};
use super::function::{FEW, Function};
use super::returns::Returns;
use crate::bridge::dispatcher::Dispatcher;
use crate::bridge::library::separate;
use crate::error::Result;
use crate::runtime::call;

/// What became of a call.
pub enum Undispatched<'py> {
    Computed(Bound<'py, PyAny>),
    /// Autograd must record the call.
    Recorded,
    /// The dispatcher must see the call, or the arguments are not those of this path.
    Dispatched,
}

impl Function {
    /// Computes a call if its tensors are plain and PyTorch need not see it.
    #[inline]
    pub(super) fn run_undispatched<'py>(&self, py: Python<'py>, slots: &Slots) -> Result<Undispatched<'py>> {
        let Some(dispatcher) = Dispatcher::unobserving(py)? else { return Ok(Undispatched::Dispatched) };
        // PyTorch counts the changes of a tensor.
        let is_other = |i: usize| {
            let input = &self.op.inputs[i];
            let is_absent = || argument(py, slots, i).is_none_or(|object| object.is_none());
            input.mutated || (input.arity != Arity::Optional && is_absent())
        };
        let inputs = 0..self.op.inputs.len();
        if inputs.clone().any(is_other) {
            return Ok(Undispatched::Dispatched);
        }
        let objects = inputs.map(|i| argument(py, slots, i));
        match dispatcher.records(py, objects.clone().flatten())? {
            Some(false) => {}
            Some(true) => return Ok(Undispatched::Recorded),
            None => return Ok(Undispatched::Dispatched),
        }
        let Some(tensors) = dispatcher.tensors(objects)? else { return Ok(Undispatched::Dispatched) };
        let attrs = self.attrs(py, slots)?;
        let args: SmallVec<[Arg<'_>; FEW]> =
            tensors.iter().map(|t| t.as_ref().map_or(Arg::None, Arg::Tensor)).collect();
        let library = dispatcher.library;
        let _entered = library.enter(py, tensors.iter().flatten())?;
        let result = if let Returns::One = self.returns {
            let mut output = [call::call_one(py, &self.op, &args, &attrs)?];
            separate(tensors.iter().flatten(), &mut output)?;
            let [output] = output;
            library.array(py, output)?
        } else {
            let mut outputs = call::call(py, &self.op, &args, || dispatch(&self.op, &args, &attrs))?;
            separate(tensors.iter().flatten(), outputs.as_mut_slice())?;
            self.returns.wrap(py, outputs, slots, |t| library.array(py, t))?
        };
        Ok(Undispatched::Computed(result))
    }
}
