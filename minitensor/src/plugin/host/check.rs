//! Checks that the parts of an op of a plugin are consistent. The macro guarantees this for the ops that it defines. A table may
//! contain anything.

use minitensor_kernels::program::Program;
use minitensor_schema::check;

use super::calls::LoadedOp;
use crate::attr::{Attr, AttrKind};
use crate::dtype::DType;
use crate::error::{Error, Result, counted};
use crate::op::*;
use crate::plugin::abi::body;

fn wrong<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::value(why))
}

/// The default of an attribute must be of its kind.
pub fn defaults(op: &mut OpDef) -> Result<()> {
    for i in 0..op.attrs.len() {
        let Some(default) = op.attrs[i].default.clone() else { continue };
        let checked = op.check_attr(i, default);
        let checked = checked.map_err(|e| e.context(format!("the default of '{}'", op.attrs[i].name)))?;
        op.attrs.to_mut()[i].default = Some(checked);
    }
    Ok(())
}

/// All checks of an op except those of its kernels and its gradient.
pub fn parts(op: &OpDef, kind: u32) -> Result<()> {
    check::signature(&op.schema()).into_iter().next().map_or(Ok(()), |problem| Err(problem.sentence))?;
    inputs(op, kind)?;
    outputs(op)?;
    dtypes(op)?;
    cores(op, kind)?;
    axis(op, kind)
}

fn inputs(op: &OpDef, kind: u32) -> Result<()> {
    for (what, is_empty) in [("inputs", op.inputs.is_empty()), ("outputs", op.outputs.is_empty())] {
        if is_empty && kind != body::TENSORS {
            return wrong(format!("it has no {what}, which only a body over tensors supports"));
        }
    }
    for (i, input) in op.inputs.iter().enumerate().filter(|(_, input)| input.mutated) {
        if ![body::ELEMENTS, body::CELLS].contains(&kind) {
            return wrong(format!(
                "input '{}' is changed in place, which only a body of elements or cells supports",
                input.name
            ));
        }
        let Some(output) = op.outputs.iter().position(|o| o.role == Role::Mutates(i as u8)) else {
            return wrong(format!(
                "input '{}' is changed in place, but no output has the role MT_MUTATES for it",
                input.name
            ));
        };
        if !op.may_change(output, i) {
            return wrong(format!(
                "input '{}' is changed in place, so it must be required, and exactly one output of its dtype must have the role \
                 MT_MUTATES for it",
                input.name
            ));
        }
    }
    Ok(())
}

/// Several outputs form a named tuple in Python.
fn outputs(op: &OpDef) -> Result<()> {
    let returned: Vec<&str> = op.outputs.iter().filter(|o| o.role == Role::Returned).map(|o| o.name.as_ref()).collect();
    for name in returned.iter().filter(|_| returned.len() > 1) {
        if name.starts_with('_') {
            return wrong(format!(
                "the name of output '{name}' must not start with '_', because several outputs form a named tuple"
            ));
        }
    }
    Ok(())
}

fn dtypes(op: &OpDef) -> Result<()> {
    if let Some(input) = op.inputs.iter().find(|input| matches!(input.dtype, DTypeRule::Attr(_))) {
        return wrong(format!("input '{}' takes its dtype from an attribute, which only outputs support", input.name));
    }
    for output in op.outputs.iter() {
        if let DTypeRule::Attr(a) = output.dtype
            && op.attrs[a as usize].kind != AttrKind::DType
        {
            let (name, attr) = (&output.name, &op.attrs[a as usize].name);
            return wrong(format!(
                "output '{name}' takes its dtype from attribute '{attr}', which must be of the kind MT_KIND_DTYPE"
            ));
        }
    }
    Ok(())
}

/// The dimensions of all arguments by the shape clause, if there is one.
fn dimensions(op: &OpDef) -> impl Iterator<Item = (&Text, Core, &Dims)> {
    let rule = match &op.shape {
        ShapeRule::Core(rule) => Some(rule),
        _ => None,
    };
    rule.into_iter().flat_map(|rule| {
        let inputs = op.inputs.iter().map(|i| (&i.name, i.core)).zip(rule.inputs.iter());
        let outputs = op.outputs.iter().map(|o| (&o.name, o.core)).zip(rule.outputs.iter());
        inputs.chain(outputs).map(|((name, core), dims)| (name, core, dims))
    })
}

fn cores(op: &OpDef, kind: u32) -> Result<()> {
    match dimensions(op).find(|(_, core, dims)| *core == Core::Scalar && !dims.core.is_empty()) {
        Some((name, ..)) if kind == body::CELLS => wrong(format!(
            "'{name}' has dimensions in the shape, but its core is MT_SCALAR; use the core MT_SLICE or MT_VIEW"
        )),
        _ => Ok(()),
    }
}

fn axis(op: &OpDef, kind: u32) -> Result<()> {
    let reduces =
        matches!((&op.inputs[..], &op.outputs[..]), ([x], [out]) if x.core == Core::Slice && out.core == Core::Scalar);
    if op.combine.is_some() && (op.axis.is_none() || !reduces) {
        return wrong("its 'combine' needs an axis, one input along it, and one output without its dimension");
    }
    let Some(Axis { attr, keepdims, many }) = op.axis else { return Ok(()) };
    if !matches!(kind, body::CELLS | body::TENSORS) {
        return wrong("a body of elements has no 'axis'; it may have a plain attribute of this name");
    }
    let kind = |a: u8| &op.attrs[a as usize].kind;
    if *kind(attr) != if many { AttrKind::Ints } else { AttrKind::Int } {
        return wrong(format!("its 'axis' must be of the kind {}", if many { "MT_KIND_INTS" } else { "MT_KIND_INT" }));
    }
    if keepdims.is_some_and(|k| *kind(k) != AttrKind::Bool) {
        return wrong("its 'keepdims' must be of the kind MT_KIND_BOOL");
    }
    let ShapeRule::Core(shapes) = &op.shape else { return Ok(()) };
    check::axis(&op.schema(), shapes, many).map_or(Ok(()), |problem| Err(problem.sentence.into()))
}

/// Every combination of dtypes that the op accepts must have a kernel.
pub fn kernels(op: &OpDef, loaded: LoadedOp) -> Result<()> {
    check::kernels(&op.schema()).map_or(Ok(()), |problem| Err(problem.sentence))?;
    let combinations = op.schema().kernels();
    if op.generics.len() > 2 && loaded.count_kernels() != combinations.len() {
        return wrong(format!(
            "it has {}, expected {}: one for each combination of the dtypes of its {} variables, in order",
            counted(loaded.count_kernels(), "kernel"),
            combinations.len(),
            op.generics.len()
        ));
    }
    match combinations.iter().find(|dtypes| loaded.find(dtypes).is_none()) {
        Some(dtypes) => {
            let names: Vec<_> = dtypes.iter().map(|d| d.name()).collect();
            wrong(format!("it has no kernel for {}, which its dtype variables include", names.join(" with ")))
        }
        None => Ok(()),
    }
}

/// Attributes for making a program that does not depend on them.
pub fn placeholders(op: &OpDef) -> Vec<Attr> {
    op.attrs.iter().map(|a| a.default.clone().unwrap_or(Attr::Float(0.0))).collect()
}

fn list<'a, A, B: std::fmt::Debug>(items: &'a [A], of: impl Fn(&'a A) -> B) -> String {
    format!("{:?}", items.iter().map(of).collect::<Vec<_>>())
}

/// The op that a program defines, if the table declares the same inputs, attributes and outputs.
pub fn program_op(op: &OpDef, program: Program) -> Result<OpRef> {
    let masks = op.inputs.iter().map(|i| i.dtype == DTypeRule::Fixed(DType::Bool)).enumerate().filter(|(_, is)| *is);
    let made = masks.fold(CustomOpBuilder::from_program(op.name.clone(), program)?, |b, (i, _)| b.mask(i)).finish()?;
    let parts = |op: &OpDef| {
        [
            ("inputs", list(&op.inputs, |i| (&i.name, i.dtype, i.arity, i.mutated))),
            ("attributes", list(&op.attrs, |a| (&a.name, a.kind, a.optional))),
            ("outputs", list(&op.outputs, |o| (&o.name, o.dtype, o.role))),
        ]
    };
    for ((what, said), (_, has)) in parts(op).iter().zip(parts(&made)) {
        if *said != has {
            return wrong(format!("its program has the {what} {has}, but its table has {said}"));
        }
    }
    let [own] = op.generics.as_ref() else {
        return wrong(format!("a program needs one dtype variable, but its table has {}", op.generics.len()));
    };
    match own.dtypes.iter().find(|dtype| !made.generics[0].dtypes.contains(*dtype)) {
        Some(dtype) => wrong(format!("its program does not support {dtype}, which its dtype variable includes")),
        None => Ok(made),
    }
}

/// The program must have the names of the table in the same order, because arguments are matched by position.
pub fn program_names(op: &OpDef, program: &Program) -> Result<()> {
    let outputs: Vec<String> = program.outputs().iter().map(|(name, _)| name.clone()).collect();
    let has = [program.inputs(), program.uniforms(), &outputs];
    for ((what, wanted), has) in ["inputs", "uniforms", "outputs"].iter().zip(op.program_names()).zip(has) {
        if wanted != has {
            return wrong(format!("it has the {what} {has:?}, but the table of the op has {wanted:?}"));
        }
    }
    Ok(())
}

/// A program of an op with cell kernels describes a row: each argument is a number, or has one contiguous dimension.
pub fn program_of_rows(op: &OpDef) -> Result<()> {
    let mut row: Option<&Dim> = None;
    for (name, core, dims) in dimensions(op) {
        let fits = match (core, dims.core.as_ref()) {
            (Core::Scalar, []) => true,
            (Core::Slice, [dim @ Dim::Name(_)]) => *row.get_or_insert(dim) == dim,
            _ => false,
        };
        if !fits {
            return wrong(format!(
                "a program of cells describes a row, so '{name}' must be a scalar, or have the core MT_SLICE and only \
                 the dimension of the row"
            ));
        }
    }
    Ok(())
}

/// The inputs of a gradient are the cotangents of all differentiable returned outputs, followed by the inputs of the op. Its
/// attributes are the first attributes of the op.
pub fn vjp(op: &OpDef, vjp: &OpDef, wanted: usize) -> Result<()> {
    let cotangents = op.cotangents().count();
    let taken = cotangents + op.inputs.len();
    if vjp.inputs.len() != taken || vjp.outputs.len() != wanted {
        return wrong(format!(
            "its gradient '{}' takes {} and returns {}; it must take {} and {}, and return one for each item of \
             'wrt': {wanted}",
            vjp.name,
            counted(vjp.inputs.len(), "tensor"),
            vjp.outputs.len(),
            counted(cotangents, "cotangent"),
            counted(op.inputs.len(), "input")
        ));
    }
    let attrs = |op: &OpDef, n: usize| op.attrs[..n].iter().map(|a| (a.name.clone(), a.kind)).collect::<Vec<_>>();
    let n = vjp.attrs.len();
    if n > op.attrs.len() || attrs(op, n) != attrs(vjp, n) {
        let names: Vec<_> = vjp.attrs.iter().map(|a| a.name.as_ref()).collect();
        return wrong(format!(
            "its gradient '{}' has the attributes ({}), which are not the first attributes of the op",
            vjp.name,
            names.join(", ")
        ));
    }
    Ok(())
}
