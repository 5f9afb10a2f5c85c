//! The definition of an op whose body is a program, as JSON.

use std::borrow::Cow;

use minitensor::kernels::program::Program;
use minitensor::op::{
    Attribute, Axis, DTypeRule, Mode, Portable, PortableCall, PortableGradient, PortableInput, PortableOutput,
    PortableProgram,
};
use minitensor::{AttrKind, DType, DTypeSet, Error, attr, registry, tuning};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use super::read::{Fields, Part, written};
use crate::bridge::infer::attributes;
use crate::error::{Result, catch_panics};
use crate::ops::custom_op::CustomOp;

type Read<T> = minitensor::error::Result<T>;

/// The most words and candidates of an attribute.
const MOST: usize = 4096;

/// The definition of an op as JSON, with the programs for these calls: pairs of attributes, and whether each input is given.
/// Raises ValueError with the reason if programs cannot express the op.
#[pyfunction]
fn _op_to_json(name: &str, calls: Vec<(Bound<'_, PyDict>, Vec<bool>)>) -> Result<String> {
    let op = registry::get(name)?;
    let calls: Vec<PortableCall> =
        calls.into_iter().map(|(attrs, given)| Ok((attributes(&op, &attrs)?, given))).collect::<Result<_>>()?;
    let portable = catch_panics(&op.name, || Portable::of(&op, &calls))?;
    let text = write(&portable)?;
    // An op that is built from the definition must have the same one.
    let rebuilt = catch_panics(&op.name, || portable.build().and_then(|op| Portable::of(&op, &calls)))?;
    if write(&rebuilt)? != text {
        return Err(Error::value("it has parts that its program does not determine").into());
    }
    Ok(text.to_string())
}

/// The definition of a registered op for the same calls as another definition, in the same form.
#[pyfunction]
fn _op_to_json_like(name: &str, definition: &str) -> Result<String> {
    let op = registry::get(name)?;
    let calls = parse(definition)?.calls();
    if calls.iter().any(|(attrs, given)| attrs.len() != op.attrs.len() || given.len() != op.inputs.len()) {
        return Err(Error::value("it has other inputs or attributes").into());
    }
    let portable = catch_panics(&op.name, || Portable::of(&op, &calls))?;
    Ok(write(&portable)?.to_string())
}

/// A definition in the form in which this version writes it. It may be from any source, and from an earlier version.
#[pyfunction]
fn _op_json_rewritten(definition: &str) -> Result<String> {
    Ok(write(&parse(definition)?)?.to_string())
}

/// An op from its definition, which may be from any source. It is not registered.
#[pyfunction]
fn _op_from_json(definition: &str) -> Result<CustomOp> {
    let portable = parse(definition)?;
    Ok(CustomOp(catch_panics(&portable.name, || portable.build())?))
}

/// The fields with the dtypes of the variables after the first.
const OTHER_DTYPES: [&str; 3] = ["dtypes_of_u", "dtypes_of_v", "dtypes_of_w"];

fn write(op: &Portable) -> Result<Value> {
    let input = |i: &PortableInput| json!({"name": i.name, "optional": i.is_optional, "dtype": dtype(i.dtype)});
    let output = |o: &PortableOutput| json!({"name": o.name, "dtype": dtype(o.dtype), "changes": o.changes});
    let program = |p: &PortableProgram| -> Result<Value> {
        let program: Value = serde_json::from_str(&p.program.to_json()).map_err(|e| Error::value(e.to_string()))?;
        Ok(json!({"attributes": p.attrs.iter().map(written).collect::<Value>(), "given": p.given, "program": program}))
    };
    let axis = op.axis.map(|a| json!({"attribute": a.attr, "keepdims": a.keepdims, "several": a.many}));
    let gradient = match &op.gradient {
        PortableGradient::Derived => json!({"kind": "derived"}),
        PortableGradient::None(why) => json!({"kind": "none", "reason": why}),
        PortableGradient::Formula(Mode::Reverse, text) => json!({"kind": "formula", "formula": text}),
        PortableGradient::Formula(Mode::Forward, text) => json!({"kind": "jvp", "formula": text}),
        PortableGradient::Op(vjp, wrt) => json!({"kind": "op", "op": write(vjp)?, "wrt": wrt}),
    };
    let names = |dtypes: &DTypeSet| dtypes.iter().map(|d| d.name()).collect::<Vec<_>>();
    let mut definition = json!({
        "name": op.name,
        "doc": op.doc,
        "kind": if op.is_of_rows { "row" } else { "element" },
        "inputs": op.inputs.iter().map(input).collect::<Value>(),
        "outputs": op.outputs.iter().map(output).collect::<Value>(),
        "attributes": op.attrs.iter().map(attribute).collect::<Value>(),
        "dtypes": op.dtypes.first().map(names),
        "dtypes_of_u": op.dtypes.get(1).map(names),
        "shape": op.shape,
        "where": op.conditions,
        "axis": axis,
        "gradient": gradient,
        "programs": op.programs.iter().map(program).collect::<Result<Value>>()?,
    });
    // Older versions read files without these fields.
    for (name, dtypes) in OTHER_DTYPES.iter().zip(op.dtypes.iter().skip(1)).skip(1) {
        definition[*name] = names(dtypes).into();
    }
    if !op.properties.is_empty() {
        definition["properties"] = op.properties.clone().into();
    }
    Ok(definition)
}

fn attribute(attr: &Attribute) -> Value {
    let kind = match attr.kind {
        AttrKind::Bool => json!("bool"),
        AttrKind::Int => json!("int"),
        AttrKind::Size => json!("size"),
        AttrKind::Float => json!("float"),
        AttrKind::Str => json!("str"),
        AttrKind::Enum(words) => json!({"words": words}),
        AttrKind::Ints => json!("ints"),
        AttrKind::Floats => json!("floats"),
        AttrKind::DType => json!("dtype"),
        AttrKind::Tuned(candidates) => json!({"tuned": candidates}),
    };
    let mut out = json!({"name": attr.name, "type": kind, "optional": attr.optional});
    if let Some(default) = &attr.default {
        out["default"] = written(default);
    }
    out
}

fn parse(definition: &str) -> Result<Portable> {
    let value: Value = serde_json::from_str(definition).map_err(|e| Error::value(e.to_string()))?;
    Ok(read(&Part { value: &value, place: "the definition".into() }, 4)?)
}

fn read(part: &Part<'_>, depth: usize) -> Read<Portable> {
    let fields = part.fields(&[
        "name",
        "doc",
        "kind",
        "inputs",
        "outputs?",
        "attributes",
        "dtypes",
        "dtypes_of_u?",
        "dtypes_of_v?",
        "dtypes_of_w?",
        "shape",
        "where",
        "axis",
        "properties?",
        "gradient",
        "programs",
    ])?;
    let attrs = fields.get("attributes").each(read_attribute)?;
    let others = OTHER_DTYPES.map(|name| fields.optional(name));
    if let Some(next) = others.windows(2).find_map(|pair| if pair[0].is_none() { pair[1].as_ref() } else { None }) {
        return Err(next.wrong("null, because the variable before it has no dtypes"));
    }
    let dtypes = std::iter::once(fields.get("dtypes"))
        .chain(others.into_iter().flatten())
        .map(|part| Ok(DTypeSet::of(&part.each(Part::dtype)?)))
        .collect::<Read<_>>()?;
    let programs = fields.get("programs").each(|part| read_program(part, &attrs))?;
    // In older files, the program determines the outputs.
    let of_program = || programs.first().map_or_else(Vec::new, |first| PortableOutput::of_program(&first.program));
    let outputs = fields.has("outputs").then(|| fields.get("outputs").each(read_output)).transpose()?;
    Ok(Portable {
        name: fields.get("name").text()?.into(),
        doc: fields.get("doc").text()?.into(),
        is_of_rows: match fields.get("kind").text()? {
            "row" => true,
            "element" => false,
            _ => return Err(fields.get("kind").wrong("'element' or 'row'")),
        },
        inputs: fields.get("inputs").each(read_input)?,
        outputs: outputs.unwrap_or_else(of_program),
        programs,
        dtypes,
        shape: fields.optional("shape").map(|part| part.text().map(str::to_owned)).transpose()?,
        conditions: fields.get("where").each(|part| part.text().map(str::to_owned))?,
        axis: fields.optional("axis").map(|part| read_axis(&part)).transpose()?,
        properties: fields.optional("properties").map_or(Ok(""), |part| part.text())?.into(),
        gradient: read_gradient(&fields, depth)?,
        attrs,
    })
}

fn read_input(part: &Part<'_>) -> Read<PortableInput> {
    let fields = part.fields(&["name", "optional", "dtype"])?;
    Ok(PortableInput {
        name: fields.get("name").text()?.into(),
        is_optional: fields.get("optional").bool()?,
        dtype: read_dtype(&fields.get("dtype"))?,
    })
}

fn read_output(part: &Part<'_>) -> Read<PortableOutput> {
    let fields = part.fields(&["name", "dtype", "changes"])?;
    Ok(PortableOutput {
        name: fields.get("name").text()?.into(),
        dtype: read_dtype(&fields.get("dtype"))?,
        changes: fields.optional("changes").map(|part| part.position()).transpose()?,
    })
}

/// The name of a variable, or of a dtype.
fn dtype(rule: DTypeRule) -> &'static str {
    match rule {
        DTypeRule::Fixed(dtype) => dtype.name(),
        DTypeRule::Generic(g) => Portable::VARIABLES[usize::from(g)],
        _ => Portable::VARIABLES[0],
    }
}

fn read_dtype(part: &Part<'_>) -> Read<DTypeRule> {
    let name = part.text()?;
    match (0..).zip(Portable::VARIABLES).find(|(_, variable)| *variable == name) {
        Some((g, _)) => Ok(DTypeRule::Generic(g)),
        None => match DType::ALL.iter().find(|dtype| dtype.name() == name) {
            Some(dtype) if *dtype == DType::Bool || dtype.is_integer() => Ok(DTypeRule::Fixed(*dtype)),
            _ => Err(part.wrong("'T', 'U', 'V', 'W', 'bool' or an integer dtype")),
        },
    }
}

fn read_attribute(part: &Part<'_>) -> Read<Attribute> {
    let fields = part.fields(&["name", "type", "optional", "default?"])?;
    let of = fields.get("type");
    let kind = match of.value.as_str() {
        Some("bool") => AttrKind::Bool,
        Some("int") => AttrKind::Int,
        Some("size") => AttrKind::Size,
        Some("float") => AttrKind::Float,
        Some("str") => AttrKind::Str,
        Some("ints") => AttrKind::Ints,
        Some("floats") => AttrKind::Floats,
        Some("dtype") => AttrKind::DType,
        Some(_) => return Err(of.wrong("a type of attributes")),
        None if of.value.get("words").is_some() => {
            let words = of.fields(&["words"])?.get("words");
            let list = words.each(Part::text)?;
            if list.is_empty() || list.len() > MOST {
                return Err(words.wrong("a list of words"));
            }
            AttrKind::Enum(attr::words(&list))
        }
        None => {
            let candidates = of.fields(&["tuned"])?.get("tuned");
            let list = candidates.each(Part::int)?;
            if list.is_empty() || list.len() > MOST || list.iter().any(|v| *v < 1) {
                return Err(candidates.wrong("a list of positive integers"));
            }
            AttrKind::Tuned(tuning::candidates(&list))
        }
    };
    let default = fields.has("default").then(|| fields.get("default").attr(kind)).transpose()?;
    let name = Cow::Owned(fields.get("name").text()?.to_owned());
    Ok(Attribute { name, kind, optional: fields.get("optional").bool()?, default })
}

fn read_axis(part: &Part<'_>) -> Read<Axis> {
    let fields = part.fields(&["attribute", "keepdims", "several"])?;
    Ok(Axis {
        attr: fields.get("attribute").position()?,
        keepdims: fields.optional("keepdims").map(|part| part.position()).transpose()?,
        many: fields.get("several").bool()?,
    })
}

fn read_gradient(op: &Fields<'_>, depth: usize) -> Read<PortableGradient> {
    let part = op.get("gradient");
    let fields = part.fields(&["kind", "reason?", "formula?", "op?", "wrt?"])?;
    Ok(match fields.get("kind").text()? {
        "derived" => PortableGradient::Derived,
        "none" => PortableGradient::None(fields.get("reason").text()?.into()),
        "formula" => PortableGradient::Formula(Mode::Reverse, fields.get("formula").text()?.into()),
        "jvp" => PortableGradient::Formula(Mode::Forward, fields.get("formula").text()?.into()),
        "op" if depth == 0 => return Err(Error::value(format!("{} is nested too deeply", part.place))),
        "op" => {
            let vjp = read(&fields.get("op"), depth - 1)?;
            PortableGradient::Op(Box::new(vjp), fields.get("wrt").each(Part::position)?)
        }
        _ => return Err(fields.get("kind").wrong("'derived', 'none', 'formula', 'jvp' or 'op'")),
    })
}

fn read_program(part: &Part<'_>, attrs: &[Attribute]) -> Read<PortableProgram> {
    let fields = part.fields(&["attributes", "given", "program"])?;
    let values = fields.get("attributes").list()?;
    if values.len() != attrs.len() {
        return Err(fields.get("attributes").wrong("a list with a value for each attribute"));
    }
    let program = fields.get("program");
    Ok(PortableProgram {
        attrs: values.iter().zip(attrs).map(|(part, attr)| part.attr(attr.kind)).collect::<Read<_>>()?,
        given: fields.get("given").each(Part::bool)?,
        program: Program::from_json(&program.value.to_string())
            .map_err(|e| Error::value(format!("{}: {e}", program.place)))?,
    })
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    m.add_function(wrap_pyfunction!(_op_to_json, m)?)?;
    m.add_function(wrap_pyfunction!(_op_to_json_like, m)?)?;
    m.add_function(wrap_pyfunction!(_op_json_rewritten, m)?)?;
    m.add_function(wrap_pyfunction!(_op_from_json, m)?)?;
    Ok(())
}
