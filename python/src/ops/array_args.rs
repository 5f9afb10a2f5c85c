//! [`Arrays`]: arrays of other libraries among the arguments of a call.

use minitensor::OpDef;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::binding::{Slots, argument};
use crate::bridge::library::Library;
use crate::error::Result;
use crate::tensor::class::PyTensor;
use crate::tensor::interchange::number;

/// What computes a call with arrays of another library.
pub enum Arrays<'py> {
    /// We do. The results are arrays of this library.
    Of(Library),
    /// A bridge: a function of the op's name and the arguments by name.
    Bridged(Bound<'py, PyAny>),
}

impl<'py> Arrays<'py> {
    /// The arrays among the arguments; `None` if there are none, or if a tensor of ours is among them. `bridged` if arrays of a
    /// framework go to its bridge.
    pub fn among(py: Python<'py>, op: &OpDef, slots: &Slots, bridged: bool) -> Result<Option<Arrays<'py>>> {
        let mut found = None;
        for i in 0..op.inputs.len() {
            let Some(object) = argument(py, slots, i) else { continue };
            let items: Vec<Bound<'py, PyAny>> = match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
                (Ok(list), _) => list.iter().collect(),
                (_, Ok(tuple)) => tuple.iter().collect(),
                _ => vec![object.to_owned()],
            };
            for item in &items {
                if item.is_instance_of::<PyTensor>() {
                    return Ok(None);
                }
                if found.is_none() {
                    found = Arrays::of(item, bridged)?;
                }
            }
        }
        Ok(found)
    }

    fn of(object: &Bound<'py, PyAny>, bridged: bool) -> Result<Option<Arrays<'py>>> {
        if object.is_none() || number::read(object)?.is_some() {
            return Ok(None);
        }
        if bridged {
            let find = object.py().import("minitensor._bridges")?.getattr("find")?;
            let call = find.call1((object.get_type(),))?;
            if !call.is_none() {
                return Ok(Some(Arrays::Bridged(call)));
            }
        }
        Ok(Library::of(object)?.map(Arrays::Of))
    }
}
