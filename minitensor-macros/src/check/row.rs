//! The rules for row bodies.

use minitensor_schema::grammar::{Dim, DimKind, NamedDims};

use crate::ast::{Arity, Elem, Input, Level, Op, spelling, text};
use crate::body::levels::MOST_REDUCTIONS;
use crate::diag::{Diag, messages};

/// The rules also hold for cell bodies with a program of rows. All rows must have one length, which a required input determines. Every output must have batch dimensions.
pub fn row(op: &Op, diag: &mut Diag) {
    if let Some(word) = op.precompiled.as_ref().filter(|_| !matches!(op.level, Level::Element | Level::Row)) {
        diag.error(word, &messages::PRECOMPILED_LEVEL, &[]);
    }
    match &op.program {
        Some(program) if op.level != Level::Cell => return diag.error(program, &messages::PROGRAM_LEVEL, &[]),
        None if op.level != Level::Row => return,
        _ => {}
    }
    if let Some(second) = op.generics.get(1) {
        diag.error(&second.ident, &messages::ROW_VARIABLES, &[&second.ident]);
    }
    // Other integers are rows that the `dtype` clause declares.
    let is_index = |i: &Input| op.level == Level::Cell || spelling(&i.ty).ends_with("::Index");
    let is_position = |i: &Input| matches!(i.elem, Elem::Fixed(_)) && is_index(i);
    for input in &op.inputs {
        let optional_position = is_position(input) && input.arity == Arity::Optional;
        let is_reference = op.level == Level::Row && matches!(input.ty, syn::Type::Reference(_));
        if is_reference || optional_position {
            diag.error(&input.ty, &messages::ROW_INPUT, &[&spelling(&input.ty)]);
        }
    }
    let floats = op.inputs.iter().filter(|i| !is_position(i));
    if let Some(extra) = floats.clone().nth(MOST_REDUCTIONS) {
        diag.error(&extra.ident, &messages::ROW_MANY, &[&MOST_REDUCTIONS, &floats.count()]);
    }
    let is_truth = |elem| matches!(elem, Elem::Mask(_));
    if let Some(word) = &op.precompiled {
        let masks = op.inputs.iter().map(|i| i.elem).chain(op.outputs.iter().map(|o| o.elem)).any(is_truth);
        if masks || op.outputs.iter().any(|o| matches!(o.elem, Elem::Fixed(_))) {
            diag.error(word, &messages::PRECOMPILED_DTYPES, &[op.ident()]);
        }
    }
    let Some(shape) = &op.shape else {
        return diag.error(op.ident(), &messages::ROW_NEEDS_SHAPE, &[op.ident()]);
    };
    let mut length: Option<String> = None;
    let mut dimensions = |name: &str, named: &NamedDims, diag: &mut Diag| {
        let fits = match &named.dims.core[..] {
            [] => true,
            [Dim { kind: DimKind::Name(dim), .. }] => length.get_or_insert_with(|| dim.clone()) == dim,
            _ => false,
        };
        if !fits {
            diag.error(shape.source.anchor(named.dims.at), &messages::ROW_DIMENSIONS, &[&name, &named.dims]);
        }
    };
    for input in &op.inputs {
        let Some(named) = shape.input(&text(&input.ident)) else { continue };
        if is_position(input) && (!named.dims.core.is_empty() || !named.dims.batch) {
            diag.error(shape.source.anchor(named.dims.at), &messages::ROW_INDEX, &[&input.ident, &named.dims]);
            continue;
        }
        let is_stored = is_truth(input.elem) || matches!(input.elem, Elem::Fixed(_));
        if is_stored && !is_position(input) && named.dims.core.is_empty() {
            diag.error(shape.source.anchor(named.dims.at), &messages::ROW_MASK, &[&input.ident, &named.dims]);
            continue;
        }
        dimensions(&input.ident.to_string(), named, diag);
    }
    for (k, output) in op.outputs.iter().enumerate() {
        let Some(named) = shape.output(&text(&output.ident), k) else { continue };
        dimensions(&output.ident.to_string(), named, diag);
        if !named.dims.batch {
            diag.error(shape.source.anchor(named.dims.at), &messages::ROW_BATCH, &[]);
        }
    }
    let is_row = |i: &crate::ast::Input| shape.input(&text(&i.ident)).is_some_and(|named| !named.dims.core.is_empty());
    if !op.inputs.iter().any(|i| i.arity == Arity::One && is_row(i)) {
        diag.error(op.ident(), &messages::ROW_NONE, &[op.ident()]);
    }
}
