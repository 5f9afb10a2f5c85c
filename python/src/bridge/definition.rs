//! The definition of an op as data, from which a bridge describes the op to another framework.

use minitensor::op::{Arithmetic, Arity, Backward, DTypeRule, Dim, Dims, Property, Role, ShapeRule, results_read};
use minitensor::{Attr, AttrKind, DType, DTypeSet, OpDef, registry};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::Result;
use crate::ops::{attr, lookup};

/// The definition of an op as dictionaries, lists and strings.
#[pyfunction]
fn _definition<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyDict>> {
    let op = lookup::find(py, name)?;
    let out = PyDict::new(py);
    out.set_item("name", op.name.as_ref())?;
    out.set_item("names", op.names().collect::<Vec<&str>>())?;
    let inputs = PyList::empty(py);
    for input in op.inputs.iter() {
        let d = PyDict::new(py);
        d.set_item("name", input.name.as_ref())?;
        d.set_item(
            "arity",
            match input.arity {
                Arity::One => "one",
                Arity::Optional => "optional",
                Arity::Variadic => "variadic",
            },
        )?;
        d.set_item("mutated", input.mutated)?;
        d.set_item("dtype", dtype_rule(py, &op, input.dtype)?)?;
        d.set_item("differentiable", op.is_differentiable(input.dtype))?;
        inputs.append(d)?;
    }
    out.set_item("inputs", inputs)?;
    let attrs = PyList::empty(py);
    for attr in op.attr_order().into_iter().map(|i| &op.attrs[i]) {
        let d = PyDict::new(py);
        d.set_item("name", attr.name.as_ref())?;
        d.set_item("kind", kind(attr.kind))?;
        let choices = if let AttrKind::Enum(names) = attr.kind { names } else { &[] };
        d.set_item("choices", choices)?;
        d.set_item("optional", attr.optional)?;
        d.set_item("required", attr.default.is_none())?;
        d.set_item("default", attr::object(py, attr.default.as_ref().unwrap_or(&Attr::None))?)?;
        attrs.append(d)?;
    }
    out.set_item("attrs", attrs)?;
    let outputs = PyList::empty(py);
    for output in op.outputs.iter().filter(|o| o.role == Role::Returned) {
        let d = PyDict::new(py);
        d.set_item("name", output.name.as_ref())?;
        d.set_item("dtype", dtype_rule(py, &op, output.dtype)?)?;
        d.set_item("differentiable", op.is_differentiable(output.dtype))?;
        outputs.append(d)?;
    }
    out.set_item("outputs", outputs)?;
    let groups = op.properties.iter().filter_map(|p| if let Property::Linear(group) = p { Some(group) } else { None });
    out.set_item(
        "linear",
        groups.map(|group| group.iter().map(|i| u32::from(*i)).collect()).collect::<Vec<Vec<u32>>>(),
    )?;
    out.set_item("combine", op.combine.map(|combine| combine.word()))?;
    out.set_item("gives_list", op.gives_list())?;
    out.set_item("results_read", results_read(&op))?;
    out.set_item("has_program", op.has_program())?;
    let generics = PyDict::new(py);
    for generic in op.generics.iter() {
        generics.set_item(generic.name.as_ref(), names(generic.dtypes))?;
    }
    out.set_item("dtypes", generics)?;
    out.set_item("shape", shape_rule(py, &op)?)?;
    out.set_item(
        "no_gradient",
        match &op.backward {
            Backward::None(why) => Some(why.to_string()),
            Backward::NotNeeded => Some("its results have no derivative".to_owned()),
            _ => None,
        },
    )?;
    Ok(out)
}

/// The name of a dtype variable (`T`), a dtype, the name of an attribute with `=` before it, or `any`.
fn dtype_rule<'py>(py: Python<'py>, op: &OpDef, rule: DTypeRule) -> Result<Bound<'py, PyAny>> {
    Ok(match rule {
        DTypeRule::Generic(g) => op.generics[g as usize].name.to_string(),
        DTypeRule::Fixed(dtype) => dtype.to_string(),
        DTypeRule::Attr(a) => format!("={}", op.attrs[a as usize].name),
        DTypeRule::Any => "any".to_owned(),
    }
    .into_bound_py_any(py)?)
}

fn names(dtypes: DTypeSet) -> Vec<String> {
    dtypes.iter().map(|d: DType| d.to_string()).collect()
}

fn kind(kind: AttrKind) -> &'static str {
    match kind {
        AttrKind::Bool => "bool",
        AttrKind::Int | AttrKind::Size | AttrKind::Tuned(_) => "int",
        AttrKind::Float => "float",
        AttrKind::Str | AttrKind::Enum(_) => "str",
        AttrKind::Ints => "ints",
        AttrKind::Floats => "floats",
        AttrKind::DType => "dtype",
    }
}

/// `("broadcast",)`, `("inferred",)`, or `("core", inputs, outputs, axis)`. A list has `(batch, dims)` for each tensor. `axis` is
/// `None`, or the names of the attributes for the axes and for `keepdims`, and whether several axes are admitted.
fn shape_rule<'py>(py: Python<'py>, op: &OpDef) -> Result<Bound<'py, PyAny>> {
    let ShapeRule::Core(core) = &op.shape else {
        let name = if matches!(op.shape, ShapeRule::Broadcast) { "broadcast" } else { "inferred" };
        return Ok((name,).into_bound_py_any(py)?);
    };
    let all = |all: &[&Dims]| all.iter().map(|d| dims(py, op, d)).collect::<Result<Vec<_>>>();
    let inputs = all(&core.inputs.iter().collect::<Vec<_>>())?;
    let returned = core.outputs.iter().zip(op.outputs.iter()).filter(|(_, o)| o.role == Role::Returned);
    let outputs = all(&returned.map(|(d, _)| d).collect::<Vec<_>>())?;
    let attr = |index: u8| op.attrs[index as usize].name.to_string();
    let axis = op.axis.map(|axis| (attr(axis.attr), axis.keepdims.map(attr), axis.many));
    Ok(("core", inputs, outputs, axis).into_bound_py_any(py)?)
}

fn dims<'py>(py: Python<'py>, op: &OpDef, dims: &Dims) -> Result<Bound<'py, PyAny>> {
    let core = dims.core.iter().map(|d| dim(py, op, d)).collect::<Result<Vec<_>>>()?;
    Ok((dims.batch, core).into_bound_py_any(py)?)
}

/// A number, a name, `("attr", name)`, or `(operator, left, right)`.
fn dim<'py>(py: Python<'py>, op: &OpDef, of: &Dim) -> Result<Bound<'py, PyAny>> {
    Ok(match of {
        Dim::Name(name) => name.as_ref().into_bound_py_any(py)?,
        Dim::Int(n) => n.into_bound_py_any(py)?,
        Dim::Float(x) => x.into_bound_py_any(py)?,
        Dim::Attr(a) => ("attr", op.attrs[*a as usize].name.as_ref()).into_bound_py_any(py)?,
        Dim::Op(operator, sides) => {
            let operator = match operator {
                Arithmetic::Add => "+",
                Arithmetic::Sub => "-",
                Arithmetic::Mul => "*",
                Arithmetic::Div => "/",
            };
            (operator, dim(py, op, &sides[0])?, dim(py, op, &sides[1])?).into_bound_py_any(py)?
        }
    })
}

/// A number that identifies the definition of a name for as long as a function of the op exists; `None` if no op has the name.
#[pyfunction]
fn _op_identity(name: &str) -> Option<usize> {
    let op = registry::get(name).ok()?;
    Some(std::ptr::from_ref::<OpDef>(&op).addr())
}

/// A number that changes whenever an op is registered or unregistered.
#[pyfunction]
fn _registry_generation() -> u64 {
    registry::generation()
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_definition, m)?)?;
    m.add_function(wrap_pyfunction!(_op_identity, m)?)?;
    m.add_function(wrap_pyfunction!(_registry_generation, m)?)?;
    Ok(())
}
