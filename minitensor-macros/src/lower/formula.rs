//! Lowers a formula of `backward` or `jvp` to a function on tensors: tensor expressions become calls of ops by name, all others remain Rust.

mod value;

use std::collections::{BTreeMap, BTreeSet};

use minitensor_schema::check;
use minitensor_schema::gradient::{Gradient, Name};
use minitensor_schema::grammar::{Dialect, Formula, Mode};
use proc_macro2::TokenStream;
use quote::format_ident;
use syn::Ident;

use super::call::Calls;
use crate::ast::{Arity, Op, text};
use crate::diag::Diag;
use crate::expand::attr;
use crate::hygiene::quote;
use crate::source::{Clause, Source};

/// The function of a formula, and the values that it needs.
pub struct Lowered {
    pub ident: Ident,
    pub function: TokenStream,
    pub saved_inputs: Vec<usize>,
    pub saved_outputs: Vec<usize>,
    /// Inputs whose gradient is `none`.
    pub without: Vec<usize>,
    /// The parameters of the op that it mentions.
    pub mentioned: Vec<Ident>,
}

pub fn lower(op: &Op, formula: &Clause<Formula>, diag: &mut Diag) -> Option<Lowered> {
    let signature = op.signature();
    let dims: Vec<&str> = op.shape.iter().flat_map(|s| s.bound()).map(|(name, _)| name).collect();
    let tokens = &formula.source.tokens;
    match check::resolved(&signature.view(), &dims, tokens, Dialect::Rust, formula) {
        Ok(gradient) => Some(function(op, formula, &gradient)),
        Err(problems) => {
            diag.problems(op, Some(&formula.source), &problems);
            None
        }
    }
}

fn function(op: &Op, formula: &Clause<Formula>, gradient: &Gradient) -> Lowered {
    let mut writer = Writer { op, source: &formula.source, used: BTreeMap::new(), calls: Calls::default() };
    let lets: Vec<_> = gradient.lets.iter().map(|l| writer.binding(l)).collect();
    let entries: BTreeMap<usize, TokenStream> =
        gradient.entries.iter().map(|e| (e.of, writer.owned(&e.value))).collect();
    let owners = owners(gradient);
    let shared = lets.iter().zip(&owners).filter(|(_, owner)| owner.is_none()).map(|(tokens, _)| tokens);
    let gradients = entries.iter().map(|(i, value)| {
        let own = lets.iter().zip(&owners).filter(|(_, owner)| **owner == Some(*i)).map(|(tokens, _)| tokens);
        let at = syn::Index::from(*i);
        let is_needed = match formula.mode {
            Mode::Reverse => quote!(if ctx.needs(#at)),
            Mode::Forward => TokenStream::new(),
        };
        quote! {
            #is_needed {
                #(#own)*
                found[#at] = __private::Some(#value);
            }
        }
    });
    let count = syn::Index::from(match formula.mode {
        Mode::Reverse => op.inputs.len(),
        Mode::Forward => op.outputs.len(),
    });
    let (what, _) = formula.mode.computes();
    let ident = format_ident!("__{}_{}", text(op.ident()), formula.mode.clause());
    let items = writer.calls.items(&format!("the {what} of op '{}'", op.name));
    let bindings = writer.bindings();
    let is_param = |what: &Name| matches!(what, Name::Input(_) | Name::Attr(_));
    let mentioned = writer.used.values().filter(|(what, _)| is_param(what)).map(|(_, ident)| ident.clone()).collect();
    let function = quote! {
        fn #ident(ctx: &__private::BackwardCall<'_>) -> __private::Result<__private::Vec<__private::Option<__private::Tensor>>> {
            #items
            #bindings
            #(#shared)*
            let mut found: __private::Vec<__private::Option<__private::Tensor>> = __private::vec![__private::None; #count];
            #(#gradients)*
            __private::Ok(found)
        }
    };
    let all = |positions: &BTreeSet<usize>| positions.iter().copied().collect();
    let (saved_inputs, saved_outputs) = (all(&gradient.saved_inputs), all(&gradient.saved_outputs));
    Lowered { ident, function, saved_inputs, saved_outputs, without: gradient.without.clone(), mentioned }
}

/// For each `let`, the input whose gradient is its only user, so that it is computed only for that gradient. A `let` stays
/// at the start if moving it past a `let` that stays would change the meaning of a name in either.
fn owners(gradient: &Gradient) -> Vec<Option<usize>> {
    let lets = &gradient.lets;
    let bound: Vec<BTreeSet<&String>> = lets.iter().map(|l| l.names.iter().collect()).collect();
    let mut owners = vec![None; lets.len()];
    for k in (0..lets.len()).rev() {
        let meets = |later: &usize| {
            let (mentions, names) = (&lets[*later].mentions, &bound[*later]);
            bound[k].iter().any(|name| mentions.contains(*name) || names.contains(name))
                || names.iter().any(|name| lets[k].mentions.contains(*name))
        };
        let moves = (k + 1..lets.len()).filter(meets).all(|later| owners[later].is_some());
        if let ([only], true) = (&lets[k].users[..], moves) {
            owners[k] = Some(*only);
        }
    }
    owners
}

/// Writes the Rust code of a formula.
struct Writer<'a> {
    op: &'a Op,
    source: &'a Source,
    /// The names whose values the call provides.
    used: BTreeMap<String, (Name, Ident)>,
    calls: Calls,
}

impl Writer<'_> {
    /// The first statements of the function, which bind every name that is mentioned.
    fn bindings(&self) -> TokenStream {
        let each = self.used.iter().map(|(name, (what, ident))| {
            let value = match *what {
                Name::Cotangent(i) => {
                    let at = syn::Index::from(i);
                    quote!(ctx.cotangent(#at)?)
                }
                Name::Tangent(i) => {
                    let at = syn::Index::from(i);
                    quote!(ctx.tangent(#at)?)
                }
                Name::Input(i) => {
                    let at = syn::Index::from(i);
                    match self.op.inputs[i].arity {
                        Arity::Optional => quote!(ctx.optional_input(#at)?),
                        _ => quote!(ctx.input(#at)?),
                    }
                }
                Name::Output(i) => {
                    let at = syn::Index::from(i);
                    quote!(ctx.output(#at)?)
                }
                Name::Attr(i) => attr::read(&self.op.attrs[i], i, &quote!(ctx.attrs())),
                Name::Dim(_) => quote!(ctx.dim(#name)),
                Name::Slot(..) | Name::Pattern(_) => return TokenStream::new(),
            };
            quote!(let #ident = #value;)
        });
        each.collect()
    }
}
