//! Rewrites the function and the backward formula before the expansion.

mod call;
mod element;
pub mod formula;
mod recursion;
pub mod tensor;

pub use element::shown;

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};
use syn::{FnArg, ItemFn, WherePredicate, parse_quote};

use crate::ast::{Generic, Gradient, Level, Op, spelling};
use crate::body::{Head, mentions};
use crate::diag::Diag;
use crate::dtype::operand;
use element::Lowering;

/// The rewritten parts of an op.
pub struct Lowered {
    pub function: ItemFn,
    pub formula: Option<formula::Lowered>,
}

/// Rewrites the function according to its level, and the backward formula.
pub fn op(op: &Op, rt: &TokenStream, diag: &mut Diag) -> Lowered {
    let mut function = match op.level {
        Level::Tensor => tensor::function(&op.function, &format!("op '{}'", op.name), rt, diag),
        _ => function(&op.function, &Head::of(op), rt, diag),
    };
    if let Some(dtype) = op.accumulator().map(|i| &op.attrs[i].ident) {
        // The engine has already converted the inputs, so the body may ignore the attribute.
        function.block.stmts.insert(0, parse_quote!(let _ = #dtype;));
    }
    let formula = match &op.gradient {
        Gradient::Formula(formula) => formula::lower(op, formula, diag),
        _ => None,
    };
    // A parameter that only the gradient uses is used.
    let used = match &op.gradient {
        Gradient::Function(..) => op.attrs.iter().map(|a| a.ident.clone()).collect(),
        _ => formula.as_ref().map_or(vec![], |formula| formula.mentioned.clone()),
    };
    let body = op.function.block.to_token_stream();
    for name in used.into_iter().filter(|name| !mentions(body.clone(), &|own| own == name)) {
        function.block.stmts.insert(0, parse_quote!(let _ = &#name;));
    }
    Lowered { function, formula }
}

/// The function with its body lowered. In element and row bodies, its `f64` parameters become elements.
pub fn function(function: &ItemFn, head: &Head, rt: &TokenStream, diag: &mut Diag) -> ItemFn {
    // A `let mut acc = 0.0` is static until data is assigned to it, which may be later. So lowering repeats until no further
    // `let` becomes data, and no further loop ends on data.
    let (mut promoted, mut ended) = (BTreeSet::new(), BTreeSet::new());
    let mut lowered = loop {
        let mut lowered = function.clone();
        if head.is_machine() {
            element::prepare(&mut lowered.block, rt);
        }
        let mut lowering = Lowering::new(head, rt, promoted.clone(), ended.clone());
        lowering.body(&mut lowered.block);
        if lowering.promoted != promoted || lowering.ended != ended {
            (promoted, ended) = (lowering.promoted, lowering.ended);
            continue;
        }
        lowering.errors.into_iter().for_each(|e| diag.push(e));
        break lowered;
    };
    match head.is_machine() {
        true => machine_bounds(head, rt, &mut lowered),
        false => {
            uniforms(head, &mut lowered);
            one_mask(head.variables(), rt, &mut lowered);
        }
    }
    // Inlining compiles the function for the SIMD level of each kernel.
    if !lowered.attrs.iter().any(|a| a.path().is_ident("inline")) {
        lowered.attrs.push(parse_quote!(#[inline(always)]));
    }
    recursion::limit(function, &mut lowered, rt);
    lowered
}

/// Restricts the dtype variables to types that memory can hold.
fn machine_bounds(head: &Head, rt: &TokenStream, function: &mut ItemFn) {
    let mut references: Vec<WherePredicate> = vec![];
    let end = function.sig.paren_token.span.close();
    for param in function.sig.generics.type_params_mut() {
        let Some(generic) = head.generics.iter().find(|g| g.ident == param.ident) else { continue };
        param.bounds.push(parse_quote!(#rt::Machine));
        if generic.bound.is_ordered {
            param.bounds.push(parse_quote!(::core::cmp::PartialOrd));
        }
        let Some((operand, reference)) = operand(&generic.bound) else { continue };
        param.bounds.push(parse_quote!(#rt::#operand));
        let name = &param.ident;
        let predicate = quote_spanned!(end=> for<'reference> &'reference #name: #rt::#reference<#name>);
        references.push(parse_quote!(#predicate));
    }
    if !references.is_empty() {
        function.sig.generics.make_where_clause().predicates.extend(references);
        function.attrs.push(parse_quote!(#[allow(clippy::multiple_bound_locations)]));
    }
}

/// Requires equal masks, so that a comparison of one dtype variable can select values of the other.
pub fn one_mask(generics: &[Generic], rt: &TokenStream, function: &mut ItemFn) {
    let [Generic { ident: first, .. }, others @ ..] = generics else { return };
    for Generic { ident, .. } in others {
        let same = parse_quote!(#ident: #rt::Element<Mask = <#first as #rt::Element>::Mask>);
        function.sig.generics.make_where_clause().predicates.push(same);
    }
    if !others.is_empty() {
        function.attrs.push(parse_quote!(#[allow(clippy::multiple_bound_locations)]));
    }
}

/// Changes `f64` parameters to elements of the first dtype variable.
fn uniforms(head: &Head, function: &mut ItemFn) {
    let Some(variable) = head.generics.first().map(|g| &g.ident) else { return };
    for arg in &mut function.sig.inputs {
        let FnArg::Typed(arg) = arg else { continue };
        match spelling(&arg.ty).as_str() {
            "f64" => *arg.ty = parse_quote!(#variable),
            option if option.ends_with("Option<f64>") => *arg.ty = parse_quote!(::core::option::Option<#variable>),
            _ => {}
        }
    }
}
