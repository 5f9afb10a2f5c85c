//! Descriptions of ops: signatures, docstrings, and `mt.ops.describe`.

use std::fmt::Write;

use minitensor::op::{Arity, Backward, DTypeRule, Input, Role, ShapeRule};
use minitensor::{Attr, AttrKind, DType, OpDef, registry};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::Result;
use crate::{discovery, dtype};

/// A default in the notation of Python's text signatures, which support neither `inf` nor dtypes.
fn literal(attr: &Attr) -> String {
    match attr {
        Attr::Float(v) if v.is_nan() => "1e999 - 1e999".into(),
        Attr::Float(v) if v.is_infinite() => if *v > 0.0 { "1e999" } else { "-1e999" }.into(),
        Attr::DType(d) => format!("'{d}'"),
        other => other.to_string(),
    }
}

/// `name(x, lo=-1e999)`. If `first` isn't empty, it replaces the first parameter.
pub fn text_signature(op: &OpDef, name: &str, first: &str) -> String {
    let inputs = op.inputs.iter().map(|i| match i.arity {
        Arity::Optional => format!("{}=None", i.name),
        _ => i.name.to_string(),
    });
    let attrs = op.attr_order().into_iter().map(|i| &op.attrs[i]).map(|a| match &a.default {
        Some(default) => format!("{}={}", a.name, literal(default)),
        None => a.name.to_string(),
    });
    let mut parameters: Vec<String> = inputs.chain(attrs).collect();
    // In Python, an input or attribute without a default can't follow one with a default. None means "not given".
    let mut seen = false;
    for parameter in &mut parameters {
        match parameter.contains('=') {
            true => seen = true,
            false if seen => parameter.push_str("=None"),
            false => {}
        }
    }
    if !first.is_empty() && !parameters.is_empty() {
        parameters[0] = first.to_owned();
    }
    format!("{name}({})", parameters.join(", "))
}

/// The promotion of integers in ops that only compute floats.
fn promoted(op: &OpDef, input: &Input) -> &'static str {
    let DTypeRule::Generic(g) = input.dtype else { return "" };
    let admitted = op.generics[g as usize].dtypes;
    let admits_whole = admitted.iter().any(|d| !d.is_differentiable());
    if admits_whole || input.mutated || !admitted.contains(DType::F32) {
        ""
    } else {
        ", or integers and bools, as float32"
    }
}

fn dtypes(op: &OpDef, rule: DTypeRule) -> String {
    match rule {
        DTypeRule::Generic(g) => op.generics[g as usize].dtypes.to_string(),
        DTypeRule::Fixed(d) => d.to_string(),
        DTypeRule::Attr(a) => format!("the dtype '{}'", op.attrs[a as usize].name),
        DTypeRule::Any => "any dtype its parts take".into(),
    }
}

fn shape_rule(op: &OpDef) -> String {
    match &op.shape {
        ShapeRule::Broadcast if op.inputs.len() == 1 => "the shape of the input".into(),
        ShapeRule::Broadcast => "all inputs broadcast to one shape, which the result has".into(),
        ShapeRule::Core(core) => core.text.to_string(),
        ShapeRule::Traced => "follows from the ops it is made of".into(),
    }
}

fn differentiable(op: &OpDef) -> bool {
    !matches!(op.backward, Backward::None(_) | Backward::NotNeeded)
}

/// The docstring.
pub fn doc(op: &OpDef) -> String {
    let mut doc = op.doc.trim().to_owned();
    let mut line = |text: String| {
        let _ = write!(doc, "\n{text}");
    };
    if !op.inputs.is_empty() || !op.attrs.is_empty() {
        line("\nArgs:".into());
    }
    for input in op.inputs.iter() {
        let promoted = promoted(op, input);
        let how = match (input.arity, input.mutated) {
            (_, true) => ", changed in place",
            (Arity::Optional, _) => ", optional",
            (Arity::Variadic, _) => ", a list or tuple of any number of tensors",
            _ => "",
        };
        line(format!("    {}: tensor of {}{promoted}{how}", input.name, dtypes(op, input.dtype)));
    }
    for attr in op.attr_order().into_iter().map(|i| &op.attrs[i]) {
        let optional = if attr.optional { " or None" } else { "" };
        let default = attr.default.as_ref().map_or_else(String::new, |d| format!(", {d} if not given"));
        line(format!("    {}: {}{optional}{default}", attr.name, attr.kind));
    }
    let returned: Vec<String> = op
        .outputs
        .iter()
        .filter(|o| o.role == Role::Returned)
        .map(|o| format!("{} ({})", o.name, dtypes(op, o.dtype)))
        .collect();
    if !returned.is_empty() {
        line(format!("\nReturns:\n    {}", returned.join(", ")));
    }
    line(format!("\nShape:\n    {}", shape_rule(op)));
    let predicates: Vec<&str> = op.predicates.iter().map(|p| p.text.as_ref()).collect();
    let must = if predicates.is_empty() { String::new() } else { format!(", or if not {}", predicates.join(" and ")) };
    line(format!(
        "\nRaises:\n    TypeError: if an argument is missing, unknown, or of another type or dtype\n    ValueError: if shapes don't fit{must}"
    ));
    match &op.backward {
        Backward::None(why) => line(format!("\nNo gradient: {why}.")),
        Backward::NotNeeded => {}
        _ => line("\nDifferentiable.".into()),
    }
    line(format!("\nDefined at {}", op.location));
    doc
}

fn kind_name(kind: AttrKind) -> &'static str {
    match kind {
        AttrKind::Bool => "bool",
        AttrKind::Int | AttrKind::Size => "int",
        AttrKind::Float => "float",
        AttrKind::Str | AttrKind::Enum(_) => "str",
        AttrKind::Ints => "list[int]",
        AttrKind::Floats => "list[float]",
        AttrKind::DType => "dtype",
    }
}

/// The value of an attribute as a Python object.
pub fn attr_object<'py>(py: Python<'py>, attr: &Attr) -> Result<Bound<'py, PyAny>> {
    Ok(match attr {
        Attr::None => py.None().into_bound(py),
        Attr::Bool(v) => v.into_bound_py_any(py)?,
        Attr::Int(v) => v.into_bound_py_any(py)?,
        Attr::Float(v) => v.into_bound_py_any(py)?,
        Attr::Str(v) => v.as_ref().into_bound_py_any(py)?,
        Attr::Ints(v) => v.to_vec().into_bound_py_any(py)?,
        Attr::Floats(v) => v.to_vec().into_bound_py_any(py)?,
        Attr::DType(d) => dtype::object(py, *d)?.into_any(),
    })
}

/// Returns a dictionary that describes an op: name, doc, signature, inputs, attributes, outputs, dtypes, shape rule,
/// whether it has a gradient, where it is defined, and the plugin that owns it.
#[pyfunction]
fn describe<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyDict>> {
    let op = discovery::find(py, name)?;
    let out = PyDict::new(py);
    out.set_item("name", op.name.as_ref())?;
    out.set_item("aliases", op.aliases.iter().map(|a| a.as_ref()).collect::<Vec<&str>>())?;
    out.set_item("doc", op.doc.as_ref())?;
    out.set_item("signature", op.signature())?;
    let inputs = PyList::empty(py);
    for input in op.inputs.iter() {
        let d = PyDict::new(py);
        d.set_item("name", input.name.as_ref())?;
        d.set_item("optional", input.arity == Arity::Optional)?;
        d.set_item("variadic", input.arity == Arity::Variadic)?;
        d.set_item("mutated", input.mutated)?;
        d.set_item("dtypes", dtypes(&op, input.dtype))?;
        inputs.append(d)?;
    }
    out.set_item("inputs", inputs)?;
    let attrs = PyList::empty(py);
    for attr in op.attr_order().into_iter().map(|i| &op.attrs[i]) {
        let d = PyDict::new(py);
        d.set_item("name", attr.name.as_ref())?;
        d.set_item("kind", kind_name(attr.kind))?;
        if let AttrKind::Enum(words) = attr.kind {
            d.set_item("words", words.to_vec())?;
        }
        d.set_item("optional", attr.optional)?;
        d.set_item("required", attr.default.is_none())?;
        d.set_item("default", attr_object(py, attr.default.as_ref().unwrap_or(&Attr::None))?)?;
        attrs.append(d)?;
    }
    out.set_item("attributes", attrs)?;
    let outputs = PyList::empty(py);
    for output in op.outputs.iter() {
        let d = PyDict::new(py);
        d.set_item("name", output.name.as_ref())?;
        d.set_item("dtype", dtypes(&op, output.dtype))?;
        let role = match output.role {
            Role::Returned => "returned",
            Role::Saved => "saved",
            Role::Mutates(_) => "mutates",
        };
        d.set_item("role", role)?;
        outputs.append(d)?;
    }
    out.set_item("outputs", outputs)?;
    let generics = PyDict::new(py);
    for g in op.generics.iter() {
        generics.set_item(g.name.as_ref(), g.dtypes.iter().map(|d| d.name()).collect::<Vec<_>>())?;
    }
    out.set_item("dtypes", generics)?;
    out.set_item("shape_rule", shape_rule(&op))?;
    out.set_item("differentiable", differentiable(&op))?;
    let defaults: Option<Vec<Attr>> = op.attrs.iter().map(|a| a.default.clone()).collect();
    if let Some(program) = defaults.and_then(|attrs| op.program(&attrs, |_| true).ok().flatten()) {
        out.set_item("program", program.to_string())?;
        out.set_item("latex", program.to_latex())?;
    }
    out.set_item("location", op.location.to_string())?;
    out.set_item("since", op.since)?;
    out.set_item("plugin", registry::owner(name).as_deref())?;
    Ok(out)
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(describe, m)?)?;
    Ok(())
}
