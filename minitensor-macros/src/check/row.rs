//! The rules for row bodies.

use minitensor_schema::grammar::{Dim, DimKind, NamedDims};
use syn::visit::{self, Visit};
use syn::{ExprCall, ExprMethodCall};

use crate::ast::{Arity, Elem, Input, Level, Op, spelling, text};
use crate::body::extent;
use crate::body::levels::{self, MOST_LEVELS, MOST_REDUCTIONS};
use crate::body::methods::{ROW_FUNCTIONS, is_scan};
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
    let is_position = |i: &Input| i.is_index() || op.level == Level::Cell && matches!(i.elem, Elem::Fixed(_));
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
        functions(op, diag);
        let is_of_integers = op.generics.iter().any(|g| g.bound.is_of_integers());
        let masks = op.inputs.iter().map(|i| i.elem).chain(op.outputs.iter().map(|o| o.elem)).any(is_truth);
        if masks || is_of_integers || op.outputs.iter().any(|o| matches!(o.elem, Elem::Fixed(_))) {
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
        if let [Dim { kind: DimKind::Name(dim), at, .. }] = &named.dims.core[..]
            && let Some(attr) = op.attrs.iter().find(|attr| text(&attr.ident) == *dim)
        {
            return diag.error(shape.source.anchor(*at), &messages::ROW_ATTR, &[dim, &attr.ident]);
        }
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

/// A result with a value for each element needs the dimension of the row. A precompiled body has a limited number of reductions.
pub fn results(op: &Op, diag: &mut Diag) {
    let (Level::Row, Some(shape)) = (op.level, &op.shape) else { return };
    let outputs: Vec<_> = op.returned().collect();
    let along = extent::along_the_row(op);
    for position in along.positions {
        let shown = crate::lower::shown(&position);
        diag.error(&position, &messages::AT_ALONG, &[&shown, &shown]);
    }
    for (k, result) in along.results {
        let (at, output) = outputs[k];
        let is_one = shape.output(&text(&output.ident), at).is_some_and(|named| named.dims.core.is_empty());
        if is_one {
            diag.error(
                &result,
                &messages::ROW_VARIES,
                &[&minitensor_schema::suggestion::shortened(&crate::lower::shown(&result)), &output.ident],
            );
        }
    }
    if let (Some(word), Some((count, depth))) = (&op.precompiled, levels::excess(op)) {
        let limits: [&dyn std::fmt::Display; 4] = [&count, &depth, &MOST_REDUCTIONS, &MOST_LEVELS];
        diag.error(word, &messages::PRECOMPILED_MANY, &limits);
    }
}

/// A precompiled body has no functions of the whole row.
fn functions(op: &Op, diag: &mut Diag) {
    struct Calls<'a>(&'a mut Diag);
    impl<'a> Visit<'a> for Calls<'_> {
        fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
            if ROW_FUNCTIONS.iter().any(|name| call.method == name) {
                self.0.error(&call.method, &messages::PRECOMPILED_FUNCTION, &[&call.method]);
            }
            visit::visit_expr_method_call(self, call);
        }
        fn visit_expr_call(&mut self, call: &'a ExprCall) {
            if is_scan(&call.func) {
                self.0.error(&call.func, &messages::PRECOMPILED_FUNCTION, &[&"scan"]);
            }
            visit::visit_expr_call(self, call);
        }
    }
    if op.level == Level::Row {
        Calls(diag).visit_block(&op.function.block);
    }
}
