//! [`Returns`]: the form in which an op returns its outputs to Python.

use minitensor::op::{Outputs, Role};
use minitensor::{OpDef, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::binding::{Slots, argument};
use crate::error::Result;

/// The form of a call's result.
pub enum Returns {
    /// The input at this position, which was modified in place.
    Input(usize),
    Nothing,
    One,
    Tuple,
    /// A namedtuple class.
    Named(Py<PyAny>),
}

impl Returns {
    /// The form of the results of an op.
    pub fn of(py: Python<'_>, op: &OpDef) -> Result<Returns> {
        let returned: Vec<&str> =
            op.outputs.iter().filter(|o| o.role == Role::Returned).map(|o| o.name.as_ref()).collect();
        let changed: Vec<usize> = (0..op.inputs.len()).filter(|i| op.inputs[*i].mutated).collect();
        Ok(match (returned.as_slice(), changed.as_slice()) {
            ([], [one]) => Returns::Input(*one),
            ([], _) => Returns::Nothing,
            _ if op.gives_list() => Returns::Tuple,
            ([_], _) => Returns::One,
            (names, _) => {
                let make = py.import("minitensor._results")?.getattr("result_class")?;
                let class = make.call1((op.name.as_ref(), class_name(&op.name), names.to_vec()))?;
                Returns::Named(class.unbind())
            }
        })
    }

    /// The namedtuple class, if the result is a namedtuple.
    pub fn class<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Returns::Named(class) => Some(class.bind(py).clone()),
            _ => None,
        }
    }

    /// The result of a call. `object` converts each output.
    #[inline]
    pub fn wrap<'py>(
        &self,
        py: Python<'py>,
        outputs: Outputs,
        slots: &Slots,
        object: impl Fn(Tensor) -> Result<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let tuple = |outputs: Outputs| -> Result<Bound<'py, PyTuple>> {
            let objects = outputs.into_vec().into_iter().map(&object).collect::<Result<Vec<_>>>()?;
            Ok(PyTuple::new(py, objects)?)
        };
        match self {
            Returns::One => object(outputs.single()),
            Returns::Nothing => Ok(py.None().into_bound(py)),
            Returns::Input(i) => Ok(argument(py, slots, *i).map_or_else(|| py.None().into_bound(py), |o| o.to_owned())),
            Returns::Tuple => Ok(tuple(outputs)?.into_any()),
            Returns::Named(class) => Ok(class.bind(py).call1(tuple(outputs)?)?),
        }
    }
}

/// `layer_norm` → `LayerNormResult`.
fn class_name(op: &str) -> String {
    let words = op.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    let camel = words.map(|w| w[..1].to_uppercase() + &w[1..]);
    camel.chain(["Result".to_owned()]).collect()
}
