//! Rewrites the function and the backward formula before the expansion.

mod element;
pub mod formula;

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use syn::{FnArg, ItemFn, Pat, parse_quote};

use crate::ast::{AttrKind, Gradient, Level, Op};
use crate::diag::Diag;
use element::Lowering;

/// The rewritten parts of an op.
pub struct Lowered {
    pub function: ItemFn,
    pub formula: Option<formula::Lowered>,
}

/// Rewrites the function according to its level, and the backward formula.
pub fn op(op: &Op, rt: &TokenStream, diag: &mut Diag) -> Lowered {
    let function = match op.level {
        Level::Element | Level::Row => element(op, rt, diag),
        Level::Cell => bounded(op, rt),
        Level::Tensor => op.function.clone(),
    };
    let formula = match &op.gradient {
        Gradient::Formula(formula) => formula::lower(op, formula, diag),
        _ => None,
    };
    Lowered { function, formula }
}

/// A cell body is unchanged, but its dtype variables are restricted to types that memory can hold.
fn bounded(op: &Op, rt: &TokenStream) -> ItemFn {
    let mut function = op.function.clone();
    for param in function.sig.generics.type_params_mut() {
        let Some(generic) = op.generics.iter().find(|g| g.ident == param.ident) else { continue };
        param.bounds.push(parse_quote!(#rt::Machine));
        if generic.bound.is_ordered {
            param.bounds.push(parse_quote!(::core::cmp::PartialOrd));
        }
    }
    // Inlining compiles the function for the SIMD level of each kernel.
    if !function.attrs.iter().any(|a| a.path().is_ident("inline")) {
        function.attrs.push(parse_quote!(#[inline(always)]));
    }
    function
}

/// The function with its body lowered, and its `f64` attributes as elements.
fn element(op: &Op, rt: &TokenStream, diag: &mut Diag) -> ItemFn {
    // A `let mut acc = 0.0` is static until data is assigned to it, which may be later. So lowering repeats until no further
    // `let` becomes data.
    let mut promoted = BTreeSet::new();
    loop {
        let mut function = op.function.clone();
        let mut lowering = Lowering::new(op, rt, promoted.clone());
        lowering.body(&mut function.block);
        if lowering.promoted != promoted {
            promoted = lowering.promoted;
            continue;
        }
        lowering.errors.into_iter().for_each(|e| diag.push(e));
        uniforms(op, &mut function);
        one_mask(op, rt, &mut function);
        function.attrs.push(parse_quote!(#[inline(always)]));
        return function;
    }
}

/// Requires equal masks, so that a comparison of one dtype variable can select values of the other.
pub fn one_mask(op: &Op, rt: &TokenStream, function: &mut ItemFn) {
    if let [first, second] = &op.generics[..] {
        let (first, second) = (&first.ident, &second.ident);
        let same = parse_quote!(#second: #rt::Element<Mask = <#first as #rt::Element>::Mask>);
        function.sig.generics.make_where_clause().predicates.push(same);
    }
}

/// Changes `f64` parameters to elements of the first dtype variable.
fn uniforms(op: &Op, function: &mut ItemFn) {
    let Some(variable) = op.generics.first().map(|g| &g.ident) else { return };
    for arg in &mut function.sig.inputs {
        let FnArg::Typed(arg) = arg else { continue };
        let Pat::Ident(pattern) = &*arg.pat else { continue };
        let attr = op.attrs.iter().find(|a| a.ident == pattern.ident && a.kind == AttrKind::Float);
        match attr {
            Some(attr) if attr.optional => *arg.ty = parse_quote!(::core::option::Option<#variable>),
            Some(_) => *arg.ty = parse_quote!(#variable),
            None => {}
        }
    }
}
