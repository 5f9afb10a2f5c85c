//! `mt.ops.describe`: an op as a dictionary.

use minitensor::op::{Arity, Backward, Formula, Mode, Role};
use minitensor::{Attr, AttrKind, OpDef, registry};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::docstring::{dtypes, is_differentiable, shape_rule};
use super::{attr, lookup};
use crate::error::Result;

fn kind_name(kind: AttrKind) -> &'static str {
    match kind {
        AttrKind::Bool => "bool",
        AttrKind::Int | AttrKind::Size | AttrKind::Tuned(_) => "int",
        AttrKind::Float => "float",
        AttrKind::Str | AttrKind::Enum(_) => "str",
        AttrKind::Ints => "list[int]",
        AttrKind::Floats => "list[float]",
        AttrKind::DType => "dtype",
    }
}

/// The origin of the gradient.
fn gradient(op: &OpDef) -> &'static str {
    match &op.backward {
        Backward::None(_) | Backward::NotNeeded => "none",
        Backward::Derived(_) | Backward::Program(_) => "derived",
        Backward::Formula(Formula { mode: Mode::Forward, .. }) => "jvp",
        Backward::Formula(_) => "formula",
        Backward::Composite => "of the called ops",
    }
}

/// Attributes that select a program: the defaults. A number without a default is a symbol in the program, so any value serves.
fn attributes(op: &OpDef) -> Option<Vec<Attr>> {
    let symbol = |kind: AttrKind| (kind == AttrKind::Float).then_some(Attr::Float(0.0));
    op.attrs.iter().map(|a| a.default.clone().or_else(|| symbol(a.kind))).collect()
}

/// Returns a dictionary that describes an op: name, doc, signature, inputs, attributes, outputs, dtypes, shape rule,
/// its properties, its gradient, its program, where it is defined, and the plugin that owns it.
#[pyfunction]
fn describe<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyDict>> {
    let op = lookup::find(py, name)?;
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
        if let AttrKind::Tuned(candidates) = attr.kind {
            d.set_item("candidates", candidates.to_vec())?;
        }
        d.set_item("optional", attr.optional)?;
        d.set_item("required", attr.default.is_none())?;
        d.set_item("default", attr::object(py, attr.default.as_ref().unwrap_or(&Attr::None))?)?;
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
    out.set_item("properties", op.properties_text())?;
    out.set_item("differentiable", is_differentiable(&op))?;
    out.set_item("gradient", gradient(&op))?;
    if let Some(program) = attributes(&op).and_then(|attrs| op.program(&attrs, |_| true).ok().flatten()) {
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
