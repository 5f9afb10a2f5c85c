//! Ops whose functions are written in Python.

use minitensor::error::counted;
use minitensor::kernels::program::Program;
use minitensor::op::Call;
use minitensor::{Attr, AttrKind, BackwardCall, CustomOpBuilder, Error, OpDef, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::attr;
use super::custom_op::CustomOp;
use crate::dtype;
use crate::error::Result;
use crate::runtime::gil;
use crate::tensor::class::PyTensor;

/// The context of a gradient written in Python: `inputs`, `outputs` and `attrs` of the call, and `needs_input_grad`.
#[pyclass(module = "minitensor", frozen, get_all)]
struct BackwardContext {
    inputs: Py<PyTuple>,
    outputs: Py<PyTuple>,
    attrs: Py<PyDict>,
    needs_input_grad: Py<PyTuple>,
}

/// The kind of an attribute in the Python part of the package.
#[derive(FromPyObject)]
enum Kind {
    /// The name of a type.
    Named(String),
    /// The words of an enum.
    OneOf(Vec<String>),
}

impl Kind {
    fn read(&self) -> Result<AttrKind> {
        let name = match self {
            Kind::Named(name) => name,
            Kind::OneOf(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                return Ok(AttrKind::Enum(minitensor::attr::words(&words)));
            }
        };
        Ok(match name.as_str() {
            "bool" => AttrKind::Bool,
            "int" => AttrKind::Int,
            "float" => AttrKind::Float,
            "str" => AttrKind::Str,
            "list[int]" => AttrKind::Ints,
            "list[float]" => AttrKind::Floats,
            "dtype" => AttrKind::DType,
            other => return Err(PyTypeError::new_err(format!("unknown attribute type '{other}'")).into()),
        })
    }

    fn is_tuned(&self) -> bool {
        matches!(self, Kind::Named(name) if name == "tuned")
    }
}

/// The inputs of an op: their names, and `"one"`, `"optional"` or `"variadic"`.
type Inputs = Vec<(String, String)>;
/// The attributes of an op: name, kind, and optionally a default; for the kind `"tuned"`, the candidates.
type Attributes = Vec<(String, Kind, Vec<Py<PyAny>>)>;

/// An op with these inputs and attributes.
fn declared(py: Python<'_>, name: &str, inputs: &Inputs, attrs: &Attributes) -> Result<CustomOpBuilder> {
    let mut builder = CustomOpBuilder::new(name, 0).inputs(inputs.iter().map(|(n, _)| n.clone()));
    for (i, (_, how)) in inputs.iter().enumerate() {
        builder = match how.as_str() {
            "optional" => builder.optional(i),
            "variadic" => builder.variadic(),
            _ => builder,
        };
    }
    for (attr_name, kind, default) in attrs {
        if kind.is_tuned() {
            builder = builder.tune(attr_name.clone(), &candidates(py, attr_name, default)?);
            continue;
        }
        let kind = kind.read()?;
        let default = default.first().map(|d| default_of(kind, attr_name, d.bind(py))).transpose()?;
        builder = builder.attr(attr_name.clone(), kind, default);
    }
    Ok(builder)
}

fn object(py: Python<'_>, tensor: Option<&Tensor>) -> PyResult<Py<PyAny>> {
    match tensor {
        Some(t) => Ok(Py::new(py, PyTensor::from(t.clone()))?.into_any()),
        None => Ok(py.None()),
    }
}

/// The tensors that a Python function returned: one, or a list or tuple.
fn results(function: &str, given: &Bound<'_, PyAny>) -> Result<Vec<Option<Tensor>>> {
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
            PyTypeError::new_err(format!("{function} must return Tensors, got {class}"))
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
        gil::attach(|py| {
            let inputs: Vec<_> = call.inputs().iter().map(|t| object(py, *t)).collect::<PyResult<_>>()?;
            let keywords = attributes(py, call.op(), &self.attrs, call.attrs())?;
            let given = self.function.bind(py).call(PyTuple::new(py, inputs)?, Some(&keywords))?;
            let what = format!("op '{}': the Python function", self.name);
            let tensors: Option<Vec<Tensor>> = results(&what, &given)?.into_iter().collect();
            let tensors = tensors.ok_or_else(|| {
                PyTypeError::new_err(format!(
                    "{what} must return Tensors, got None; check that it has a return statement"
                ))
            })?;
            if tensors.len() != self.outputs {
                return Err(PyValueError::new_err(format!(
                    "{what} must return {}, got {}",
                    counted(self.outputs, "Tensor"),
                    tensors.len()
                ))
                .into());
            }
            Ok(tensors)
        })
    }
}

/// The attributes as keywords. A tuned one always has a value for the function.
fn attributes<'py>(py: Python<'py>, op: &OpDef, names: &[String], values: &[Attr]) -> Result<Bound<'py, PyDict>> {
    let keywords = PyDict::new(py);
    for ((name, value), attribute) in names.iter().zip(values).zip(op.attrs.iter()) {
        let value = match (attribute.kind, value) {
            (AttrKind::Tuned([first, ..]), Attr::None) => &Attr::Int(*first),
            _ => value,
        };
        keywords.set_item(name, attr::object(py, value)?)?;
    }
    Ok(keywords)
}

/// Calls the function of a gradient, or of tangents, with the context and its tensors.
fn differentiated(
    py: Python<'_>,
    what: &str,
    names: &[String],
    function: &Py<PyAny>,
    call: &BackwardCall<'_>,
    tensors: impl Iterator<Item = minitensor::Result<Tensor>>,
) -> Result<Vec<Option<Tensor>>> {
    let inputs = (0..call.num_inputs()).map(|i| object(py, call.optional_input(i)?.as_ref()).map_err(Into::into));
    let outputs = call.returned().map(|k| object(py, Some(&call.output(k)?)).map_err(Into::into));
    let context = BackwardContext {
        inputs: PyTuple::new(py, inputs.collect::<Result<Vec<_>>>()?)?.unbind(),
        outputs: PyTuple::new(py, outputs.collect::<Result<Vec<_>>>()?)?.unbind(),
        attrs: attributes(py, call.op(), names, call.attrs())?.unbind(),
        needs_input_grad: PyTuple::new(py, (0..call.num_inputs()).map(|i| call.needs(i)).collect::<Vec<_>>())?.unbind(),
    };
    let mut arguments = vec![Py::new(py, context)?.into_any()];
    for tensor in tensors {
        arguments.push(object(py, Some(&tensor?))?);
    }
    results(what, &function.bind(py).call1(PyTuple::new(py, arguments)?)?)
}

/// The tangents of the outputs, by a function `jvp(ctx, *tangents)`.
fn tangents(
    name: &str,
    names: &[String],
    function: &Py<PyAny>,
    call: &BackwardCall<'_>,
) -> Result<Vec<Option<Tensor>>> {
    let given = (0..call.num_inputs()).map(|i| call.tangent(i));
    gil::attach(|py| differentiated(py, &format!("op '{name}': the jvp function"), names, function, call, given))
}

/// The gradients of the inputs, by a function `backward(ctx, *cotangents)`.
fn gradient(
    name: &str,
    names: &[String],
    function: &Py<PyAny>,
    call: &BackwardCall<'_>,
) -> Result<Vec<Option<Tensor>>> {
    gil::attach(|py| {
        let given = call.returned().map(|k| call.cotangent(k));
        let what = format!("op '{name}': the backward function");
        let grads = differentiated(py, &what, names, function, call, given)?;
        if grads.len() != call.num_inputs() {
            return Err(PyValueError::new_err(format!(
                "op '{name}': the backward function must return one gradient for each of {} inputs, got {}",
                call.num_inputs(),
                grads.len()
            ))
            .into());
        }
        for (i, grad) in grads.iter().enumerate() {
            if let (Some(grad), Some(input)) = (grad, call.optional_input(i)?) {
                check_shape(name, &call.op().parameter(i).name, grad, &input)?;
            }
        }
        Ok(grads)
    })
}

/// An error unless the gradient has the shape of its input, or a shape to which the input broadcasts; then it is summed.
fn check_shape(op: &str, input_name: &str, grad: &Tensor, input: &Tensor) -> Result<()> {
    if input.shape().broadcast(grad.shape()).as_ref() == Some(grad.shape()) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "op '{op}': the backward function must return a gradient of shape {} for the input '{input_name}', got shape {}",
        input.shape(),
        grad.shape()
    ))
    .into())
}

fn default_of(kind: AttrKind, name: &str, value: &Bound<'_, PyAny>) -> Result<Attr> {
    if value.is_none() {
        return Ok(Attr::None);
    }
    let wrong = || PyTypeError::new_err(format!("the default of attribute '{name}' must be {kind}"));
    Ok(attr::of_kind(kind, value)?.ok_or_else(wrong)?)
}

fn candidates(py: Python<'_>, name: &str, values: &[Py<PyAny>]) -> Result<Vec<i64>> {
    let integer = |value: &Py<PyAny>| match attr::of_kind(AttrKind::Int, value.bind(py))? {
        Some(Attr::Int(value)) => Ok(value),
        _ => Err(PyTypeError::new_err(format!("the candidates of attribute '{name}' must be integers")).into()),
    };
    values.iter().map(integer).collect()
}

/// Builds an op from Python functions.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
#[pyo3(signature = (name, forward, inputs, attrs, outputs, backward, jvp, validate, properties, doc, file, line))]
fn _build_op(
    py: Python<'_>,
    name: String,
    forward: Py<PyAny>,
    inputs: Inputs,
    attrs: Attributes,
    outputs: Vec<String>,
    backward: Option<&Bound<'_, PyAny>>,
    jvp: Option<Py<PyAny>>,
    validate: Option<Py<PyAny>>,
    properties: Option<String>,
    doc: String,
    file: String,
    line: u32,
) -> Result<CustomOp> {
    let names: Vec<String> = attrs.iter().map(|(n, ..)| n.clone()).collect();
    let mut builder = declared(py, &name, &inputs, &attrs)?.outputs(outputs.clone());
    let body = Forward { name: name.clone(), function: forward, attrs: names.clone(), outputs: outputs.len() };
    builder = builder.properties(properties.unwrap_or_default());
    builder = builder.doc(doc).location(file, line).body(move |call| body.call(call).map_err(Error::from));
    if let Some(backward) = backward {
        builder = match backward.extract::<String>() {
            Ok(_) => builder.no_backward(format!("'{name}' is defined without a gradient (backward='none')")),
            Err(_) => {
                let (name, names, function) = (name.clone(), names.clone(), backward.clone().unbind());
                builder.backward(move |call| gradient(&name, &names, &function, call).map_err(Error::from))
            }
        };
    }
    if let Some(function) = jvp {
        let (name, names) = (name.clone(), names.clone());
        builder = builder.jvp(move |call| tangents(&name, &names, &function, call).map_err(Error::from));
    }
    if let Some(validate) = validate {
        builder = builder.validate(move |inputs| {
            let check = |py: Python<'_>| -> Result<()> {
                let inputs: Vec<_> = inputs.iter().map(|t| object(py, Some(t))).collect::<PyResult<_>>()?;
                validate.call1(py, PyTuple::new(py, inputs)?)?;
                Ok(())
            };
            gil::attach(check).map_err(Error::from)
        });
    }
    Ok(CustomOp(builder.build()?.definition()))
}

/// The shape clause of a row op, and, if the caller chooses the axis, its default, where `None` means all axes.
type RowClauses = (Option<String>, Option<(Option<i64>,)>);

/// Builds an element or row op from the function that writes its programs as JSON: from the values of the attributes, and, for
/// each input, whether it is given. `row` has the shape clause of a row op, and its axis. `conditions` are those on attributes.
#[pyfunction]
#[pyo3(signature = (name, write, inputs, attrs, row, conditions, properties, dtypes, doc, file, line))]
#[allow(clippy::too_many_arguments)]
fn _build_program_op(
    py: Python<'_>,
    name: String,
    write: Py<PyAny>,
    inputs: Inputs,
    attrs: Attributes,
    row: Option<RowClauses>,
    conditions: Option<&str>,
    properties: Option<String>,
    dtypes: Vec<(String, Bound<'_, PyAny>)>,
    doc: String,
    file: String,
    line: u32,
) -> Result<CustomOp> {
    let mut builder = declared(py, &name, &inputs, &attrs)?.doc(doc).location(file, line);
    builder = builder.properties(properties.unwrap_or_default());
    if let Some(text) = conditions {
        builder = builder.conditions(text);
    }
    let write = move |attrs: &[Attr], given: &[bool]| program(&write, attrs, given).map_err(Error::from);
    builder = match row {
        None => builder.programs(write)?,
        Some((shape, axis)) => {
            let builder = builder.row_programs(shape.as_deref(), write)?;
            if let Some((axis,)) = axis { builder.axis(axis)? } else { builder }
        }
    };
    let parsed = dtypes.iter().map(|(tensor, value)| match dtype::parse(value) {
        Ok(dtype) => Ok((tensor.as_str(), dtype)),
        Err(e) => Err(e.about(py, format_args!("op '{name}': the dtype of '{tensor}'"))),
    });
    builder = builder.stored_as(parsed.collect::<Result<Vec<_>>>()?)?;
    Ok(CustomOp(builder.build()?.definition()))
}

fn program(write: &Py<PyAny>, attrs: &[Attr], given: &[bool]) -> Result<Program> {
    let json: String = gil::attach(|py| -> Result<String> {
        let attrs = attrs.iter().map(|value| attr::object(py, value)).collect::<Result<Vec<_>>>()?;
        Ok(write.bind(py).call1((attrs, given.to_vec()))?.extract()?)
    })?;
    Ok(Program::from_json(&json).map_err(|e| Error::value(e.to_string()))?)
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_class::<BackwardContext>()?;
    m.add_function(wrap_pyfunction!(_build_op, m)?)?;
    m.add_function(wrap_pyfunction!(_build_program_op, m)?)?;
    Ok(())
}
