//! Parameters: their order and their defaults.

use quote::ToTokens;
use syn::{Expr, ExprLit, Ident, Lit, UnOp};

use crate::ast::{Arity, AttrKind, Attribute, Op, Slot, spelling};
use crate::diag::{Diag, messages};

/// Tensors must precede attributes. Required tensors must precede optional ones, and so must required attributes.
pub fn order(op: &Op, diag: &mut Diag) {
    let mut attribute: Option<&Ident> = None;
    let mut optional: Option<&Ident> = None;
    for slot in &op.params {
        let (ident, required) = match *slot {
            Slot::Input(i) => {
                let input = &op.inputs[i];
                if let (Arity::Variadic, Some(before)) = (input.arity, optional) {
                    diag.error(before, &messages::OPTIONAL_BESIDE_LIST, &[before, &input.ident, before]);
                    continue;
                }
                if let Some(before) = attribute {
                    diag.error(&input.ident, &messages::ATTR_BEFORE_TENSOR, &[&input.ident, before]);
                }
                (&input.ident, input.arity != Arity::Optional)
            }
            Slot::Attr(i) => {
                let attr = &op.attrs[i];
                // A required attribute may follow an optional tensor: Python passes it by name.
                if attribute.replace(&attr.ident).is_none() {
                    optional = None;
                }
                (&attr.ident, !attr.has_default())
            }
            Slot::Output(_) => continue,
        };
        match optional {
            Some(before) if required => {
                diag.error(ident, &messages::REQUIRED_AFTER_OPTIONAL, &[ident, before, ident, before]);
            }
            _ if !required => optional = Some(ident),
            _ => {}
        }
    }
}

/// A default must have the type of its parameter, as far as a literal shows.
pub fn defaults(op: &Op, diag: &mut Diag) {
    for attr in &op.attrs {
        if let Some(default) = &attr.default {
            self::default(attr, default, diag);
        }
    }
}

fn default(attr: &Attribute, default: &Expr, diag: &mut Diag) {
    let fits = match (literal(default), attr.kind) {
        (None, _) => match default {
            Expr::Path(path) if path.path.is_ident("None") => attr.optional,
            Expr::Array(_) => matches!(attr.kind, AttrKind::Ints | AttrKind::Floats),
            _ => true,
        },
        (Some(Lit::Bool(_)), kind) => kind == AttrKind::Bool,
        (Some(Lit::Str(_)), kind) => kind == AttrKind::Str,
        (Some(Lit::Float(_)), kind) => kind == AttrKind::Float,
        // In an attribute `-1` is one literal.
        (Some(Lit::Int(lit)), AttrKind::Size) if lit.to_string().starts_with('-') => {
            return diag.error(default, &messages::DEFAULT_NEGATIVE, &[&attr.ident]);
        }
        (Some(Lit::Int(_)), kind) => matches!(kind, AttrKind::Int | AttrKind::Size | AttrKind::Float),
        _ => false,
    };
    if !fits {
        let ty = spelling(&attr.ty);
        diag.error(default, &messages::DEFAULT_TYPE, &[&default.to_token_stream(), &attr.ident, &ty]);
    }
}

/// `1`, `-0.5`, `"text"`
fn literal(expr: &Expr) -> Option<&Lit> {
    match expr {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => literal(&unary.expr),
        _ => None,
    }
}
