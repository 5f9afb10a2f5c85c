//! Signatures and docstrings of ops.

use std::fmt::Write;

use minitensor::op::{Arity, Backward, DTypeRule, Input, Role, ShapeRule};
use minitensor::{Attr, DType, OpDef};

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
    let mut parts = op.signature_parts(literal);
    if !first.is_empty() && !parts.is_empty() {
        parts[0] = first.to_owned();
    }
    format!("{name}({})", parts.join(", "))
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

/// The dtypes that a rule admits, as text.
pub fn dtypes(op: &OpDef, rule: DTypeRule) -> String {
    match rule {
        DTypeRule::Generic(g) => op.generics[g as usize].dtypes.to_string(),
        DTypeRule::Fixed(d) => d.to_string(),
        DTypeRule::Attr(a) => format!("the dtype '{}'", op.attrs[a as usize].name),
        DTypeRule::Any => "any dtype that the ops it calls accept".into(),
    }
}

/// The rule of the output shapes, as text.
pub fn shape_rule(op: &OpDef) -> String {
    match &op.shape {
        ShapeRule::Broadcast if op.inputs.len() == 1 => "the shape of the input".into(),
        ShapeRule::Broadcast => "the common shape to which the inputs broadcast".into(),
        ShapeRule::Core(core) => core.text.to_string(),
        ShapeRule::Inferred => "determined by the ops that it calls".into(),
    }
}

/// True if the op has a gradient.
pub fn is_differentiable(op: &OpDef) -> bool {
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
    let must = if predicates.is_empty() {
        String::new()
    } else {
        format!(", or a condition does not hold: {}", predicates.join(" and "))
    };
    line(format!(
        "\nRaises:\n    TypeError: if an argument is missing, unknown, or of another type or dtype\n    ValueError: if the shapes do not match{must}"
    ));
    match &op.backward {
        Backward::None(why) => line(format!("\nNo gradient: {why}.")),
        Backward::NotNeeded => {}
        _ => line("\nDifferentiable.".into()),
    }
    line(format!("\nDefined at {}", op.location));
    doc
}
