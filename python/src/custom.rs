//! Ops that are written in Python, and the functions of the original API.

use minitensor::error::counted;
use minitensor::op::{Arity, Call};
use minitensor::{Attr, AttrKind, BackwardCall, CustomOpBuilder, Error, OpRef, Tensor, registry};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::built::BuiltOp;
use crate::describe::attr_object;
use crate::discovery;
use crate::error::Result;
use crate::tensor::PyTensor;
use crate::{attr, exit, ops};

/// The context of a gradient written in Python: `inputs`, `outputs` and `attrs` of the call, and `needs_input_grad`.
#[pyclass(module = "minitensor", frozen, get_all)]
struct BackwardContext {
    inputs: Py<PyTuple>,
    outputs: Py<PyTuple>,
    attrs: Py<PyDict>,
    needs_input_grad: Py<PyTuple>,
}

/// The kind of an attribute, from its name in the Python part of the package.
fn kind(word: &str) -> Result<AttrKind> {
    Ok(match word {
        "bool" => AttrKind::Bool,
        "int" => AttrKind::Int,
        "float" => AttrKind::Float,
        "str" => AttrKind::Str,
        "list[int]" => AttrKind::Ints,
        "list[float]" => AttrKind::Floats,
        "dtype" => AttrKind::DType,
        other => return Err(PyTypeError::new_err(format!("an attribute can't be of type {other}")).into()),
    })
}

fn object(py: Python<'_>, tensor: Option<&Tensor>) -> PyResult<Py<PyAny>> {
    match tensor {
        Some(t) => Ok(Py::new(py, PyTensor::from(t.clone()))?.into_any()),
        None => Ok(py.None()),
    }
}

/// The tensors that a Python function returned: one, or a list or tuple.
fn results(who: &str, given: &Bound<'_, PyAny>) -> Result<Vec<Option<Tensor>>> {
    let items: Vec<Bound<'_, PyAny>> = match (given.cast::<PyTuple>(), given.cast::<PyList>()) {
        (Ok(tuple), _) => tuple.iter().collect(),
        (_, Ok(list)) => list.iter().collect(),
        _ => vec![given.clone()],
    };
    let one = |item: &Bound<'_, PyAny>| -> Result<Option<Tensor>> {
        if item.is_none() {
            return Ok(None);
        }
        let tensor = item.cast::<PyTensor>().map_err(|_| {
            let class = item.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
            PyTypeError::new_err(format!("{who} must give Tensors, got {class}"))
        })?;
        Ok(Some(tensor.get().core()?.clone()))
    };
    items.iter().map(one).collect()
}

/// The parts of an op that is made from Python functions.
struct Forward {
    name: String,
    function: Py<PyAny>,
    attrs: Vec<String>,
    outputs: usize,
}

impl Forward {
    fn call(&self, call: &Call<'_>) -> Result<Vec<Tensor>> {
        exit::attach(|py| {
            let inputs: Vec<_> = call.inputs().iter().map(|t| object(py, *t)).collect::<PyResult<_>>()?;
            let keywords = attributes(py, &self.attrs, call.attrs())?;
            let given = self.function.bind(py).call(PyTuple::new(py, inputs)?, Some(&keywords))?;
            let who = format!("op '{}': its Python function", self.name);
            let tensors: Option<Vec<Tensor>> = results(&who, &given)?.into_iter().collect();
            let tensors = tensors.ok_or_else(|| {
                PyTypeError::new_err(format!("{who} must give Tensors, got None; is a return missing?"))
            })?;
            if tensors.len() != self.outputs {
                return Err(PyValueError::new_err(format!(
                    "{who} must give {} Tensors, got {}",
                    self.outputs,
                    tensors.len()
                ))
                .into());
            }
            Ok(tensors)
        })
    }
}

fn attributes<'py>(py: Python<'py>, names: &[String], values: &[Attr]) -> Result<Bound<'py, PyDict>> {
    let keywords = PyDict::new(py);
    for (name, value) in names.iter().zip(values) {
        keywords.set_item(name, attr_object(py, value)?)?;
    }
    Ok(keywords)
}

fn gradient(
    name: &str,
    names: &[String],
    function: &Py<PyAny>,
    call: &BackwardCall<'_>,
) -> Result<Vec<Option<Tensor>>> {
    exit::attach(|py| {
        let mut inputs = Vec::new();
        for i in 0..call.num_inputs() {
            inputs.push(object(py, call.optional_input(i)?.as_ref())?);
        }
        let (mut outputs, mut arguments) = (Vec::new(), Vec::new());
        for k in call.returned() {
            outputs.push(object(py, Some(&call.output(k)?))?);
            arguments.push(object(py, Some(&call.cotangent(k)?))?);
        }
        let needs: Vec<bool> = (0..call.num_inputs()).map(|i| call.needs(i)).collect();
        let context = BackwardContext {
            inputs: PyTuple::new(py, inputs)?.unbind(),
            outputs: PyTuple::new(py, outputs)?.unbind(),
            attrs: attributes(py, names, call.attrs())?.unbind(),
            needs_input_grad: PyTuple::new(py, &needs)?.unbind(),
        };
        arguments.insert(0, Py::new(py, context)?.into_any());
        let given = function.bind(py).call1(PyTuple::new(py, arguments)?)?;
        let grads = results(&format!("op '{name}': its backward"), &given)?;
        if grads.len() != needs.len() {
            return Err(PyValueError::new_err(format!(
                "op '{name}': its backward must give one gradient for each of {} inputs, got {}",
                needs.len(),
                grads.len()
            ))
            .into());
        }
        Ok(grads)
    })
}

fn default_of(kind: AttrKind, name: &str, value: &Bound<'_, PyAny>) -> Result<Attr> {
    if value.is_none() {
        return Ok(Attr::None);
    }
    let wrong = || PyTypeError::new_err(format!("the default of '{name}' should be {kind}"));
    Ok(attr::of_kind(kind, value)?.ok_or_else(wrong)?)
}

/// Builds an op from Python functions. `inputs` are pairs of a name and `"one"`, `"optional"` or `"variadic"`. `attrs`
/// are tuples of name, kind, and optionally a default.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
#[pyo3(signature = (name, forward, inputs, attrs, outputs, backward, validate, doc, file, line))]
fn _build_op(
    py: Python<'_>,
    name: String,
    forward: Py<PyAny>,
    inputs: Vec<(String, String)>,
    attrs: Vec<(String, String, Vec<Py<PyAny>>)>,
    outputs: Vec<String>,
    backward: Option<&Bound<'_, PyAny>>,
    validate: Option<Py<PyAny>>,
    doc: String,
    file: String,
    line: u32,
) -> Result<BuiltOp> {
    let names: Vec<String> = attrs.iter().map(|(n, ..)| n.clone()).collect();
    let mut builder =
        CustomOpBuilder::new(name.clone(), 0).inputs(inputs.iter().map(|(n, _)| n.clone())).outputs(outputs.clone());
    for (i, (_, how)) in inputs.iter().enumerate() {
        builder = match how.as_str() {
            "optional" => builder.optional(i),
            "variadic" => builder.variadic(),
            _ => builder,
        };
    }
    for (attr_name, word, default) in &attrs {
        let kind = kind(word)?;
        let default = default.first().map(|d| default_of(kind, attr_name, d.bind(py))).transpose()?;
        builder = builder.attr(attr_name.clone(), kind, default);
    }
    let body = Forward { name: name.clone(), function: forward, attrs: names.clone(), outputs: outputs.len() };
    builder = builder.doc(doc).location(file, line).body(move |call| body.call(call).map_err(Error::from));
    if let Some(backward) = backward {
        builder = match backward.extract::<String>() {
            Ok(_) => builder.no_backward(format!("'{name}' is defined without a gradient (backward='none')")),
            Err(_) => {
                let function = backward.clone().unbind();
                builder.backward(move |call| gradient(&name, &names, &function, call).map_err(Error::from))
            }
        };
    }
    if let Some(validate) = validate {
        builder = builder.validate(move |inputs| {
            let check = |py: Python<'_>| -> Result<()> {
                let inputs: Vec<_> = inputs.iter().map(|t| object(py, Some(t))).collect::<PyResult<_>>()?;
                validate.call1(py, PyTuple::new(py, inputs)?)?;
                Ok(())
            };
            exit::attach(check).map_err(Error::from)
        });
    }
    Ok(BuiltOp(builder.build()?.definition()))
}

/// Returns the names of all registered ops, sorted, including those of installed plugins.
#[pyfunction]
fn list_custom_ops_py(py: Python<'_>) -> Result<Vec<String>> {
    discovery::discover(py)?;
    Ok(registry::list().iter().map(|op| op.name.to_string()).collect())
}

/// True if an op with this name is registered.
#[pyfunction]
fn is_custom_op_registered_py(py: Python<'_>, name: &str) -> Result<bool> {
    if !registry::contains(name) {
        discovery::discover(py)?;
    }
    Ok(registry::contains(name))
}

/// Calls an op by name with a list of tensors; attributes have their defaults.
#[pyfunction]
fn execute_custom_op_py<'py>(name: &str, inputs: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    execute_custom_op(name, inputs, None)
}

/// Calls an op by name with a list of tensors, and attributes as keywords.
///
/// >>> import minitensor as mt
/// >>> mt.execute_custom_op("clamp", [mt.Tensor([1.0, 3.0])], hi=2.0)
/// tensor([1., 2.])
#[pyfunction]
#[pyo3(signature = (name, inputs, **attrs))]
fn execute_custom_op<'py>(
    name: &str,
    inputs: &Bound<'py, PyAny>,
    attrs: Option<&Bound<'py, PyDict>>,
) -> Result<Bound<'py, PyAny>> {
    let py = inputs.py();
    let op = discovery::find(py, name)?;
    let items: Vec<Bound<'_, PyAny>> = match (inputs.cast::<PyList>(), inputs.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => {
            return Err(PyTypeError::new_err(format!(
                "op '{name}': inputs are given as a list of tensors, got {}",
                inputs.get_type().name()?
            ))
            .into());
        }
    };
    check_count(&op, items.len())?;
    // A variadic input takes the tensors that the other inputs leave.
    let variadic = op.inputs.last().is_some_and(|i| i.arity == Arity::Variadic);
    let fixed = if variadic { op.inputs.len() - 1 } else { items.len() };
    let mut arguments: Vec<Bound<'py, PyAny>> = items[..fixed].to_vec();
    if variadic {
        arguments.push(PyList::new(py, &items[fixed..])?.into_any());
    }
    let (count, mut keywords) = (arguments.len(), Vec::new());
    for (name, value) in attrs.into_iter().flatten() {
        keywords.push(name);
        arguments.push(value);
    }
    let keywords = PyTuple::new(py, keywords)?;
    let pointers: Vec<_> = arguments.iter().map(Bound::as_ptr).collect();
    // SAFETY: the pointers are `count` positional arguments, then one for each keyword; all are alive.
    unsafe { ops::function(py, &op)?.call(py, pointers.as_ptr(), count, keywords.as_ptr()) }
}

fn check_count(op: &OpRef, got: usize) -> Result<()> {
    let least = op.inputs.iter().filter(|i| i.arity == Arity::One).count();
    let most = if op.inputs.iter().any(|i| i.arity == Arity::Variadic) { usize::MAX } else { op.inputs.len() };
    if (least..=most).contains(&got) {
        return Ok(());
    }
    let names: Vec<&str> = op.inputs.iter().map(|i| i.name.as_ref()).collect();
    let (how, count) = (if least == most { "" } else { "at least " }, counted(least, "tensor"));
    let message = format!("op '{}' takes {how}{count} ({}), got {got}", op.name, names.join(", "));
    Err(Error::type_(message).into())
}

/// Unregisters an op. Tensors and graphs that use it stay valid; calling its function raises an error.
#[pyfunction]
fn unregister_custom_op_py(py: Python<'_>, name: &str) -> Result<()> {
    ops::unregister_all(py, &[registry::get(name)?], None)
}

/// Registers the example ops of the documentation (swish, gelu, power, layer_norm). They are built in, so this has an
/// effect only after they were unregistered.
#[pyfunction]
fn register_example_custom_ops(py: Python<'_>) -> Result<()> {
    for op in exit::detach(py, || registry::restore(&["swish", "gelu", "power", "layer_norm"]))? {
        ops::add(py, &op)?;
    }
    Ok(())
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_class::<BackwardContext>()?;
    m.add_function(wrap_pyfunction!(_build_op, m)?)?;
    m.add_function(wrap_pyfunction!(list_custom_ops_py, m)?)?;
    m.add_function(wrap_pyfunction!(is_custom_op_registered_py, m)?)?;
    m.add_function(wrap_pyfunction!(execute_custom_op_py, m)?)?;
    m.add_function(wrap_pyfunction!(execute_custom_op, m)?)?;
    m.add_function(wrap_pyfunction!(unregister_custom_op_py, m)?)?;
    m.add_function(wrap_pyfunction!(register_example_custom_ops, m)?)?;
    Ok(())
}
