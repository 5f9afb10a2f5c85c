//! What is known in a formula: plain Rust, in which `x.shape` is a shape.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprPath, Ident, Member};

use super::{Lowering, Name};
use crate::ast::text;
use crate::diag::{messages, suggestion};
use crate::hygiene::quote;

impl Lowering<'_> {
    pub fn known(&mut self, expr: &Expr) -> TokenStream {
        let mut expr = expr.clone();
        Known(self).visit_expr_mut(&mut expr);
        expr.to_token_stream()
    }
}

struct Known<'b, 'a>(&'b mut Lowering<'a>);

impl VisitMut for Known<'_, '_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Field(field) => {
                if let (Expr::Path(base), Member::Named(member)) = (&*field.base, &field.member)
                    && let Some(name) = base.path.get_ident()
                    && let Some(what) = self.0.lookup(name).filter(|w| w.is_data())
                {
                    *expr = Expr::Verbatim(self.0.property(base, name, what, member));
                    return;
                }
                visit_mut::visit_expr_mut(self, expr);
            }
            Expr::Call(call) => call.args.iter_mut().for_each(|a| self.visit_expr_mut(a)),
            Expr::Closure(_) | Expr::Macro(_) => {}
            Expr::Path(path) => self.path(path),
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }
}

impl Known<'_, '_> {
    fn path(&mut self, path: &ExprPath) {
        let Some(name) = path.path.get_ident() else { return };
        let is_variable = text(name).starts_with(|c: char| c.is_lowercase() || c == '_');
        if self.0.mention(name).is_none() && is_variable {
            let lowering = &mut self.0;
            let known: BTreeSet<String> = lowering.scopes.iter().flat_map(|s| s.keys().cloned()).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let help = suggestion(&text(name), &known);
            lowering.mistake(name, &messages::UNKNOWN_NAME, &[name, &help]);
        }
    }
}

impl Lowering<'_> {
    /// `x.shape` and its kin; of an input they are known without saving it.
    fn property(&mut self, base: &ExprPath, name: &Ident, what: Name, member: &Ident) -> TokenStream {
        let (shape, dtype) = match what {
            Name::Input(i) => {
                let at = syn::Index::from(i);
                (quote!(ctx.shape(#at)), quote!(ctx.dtype(#at)))
            }
            _ => {
                self.mention(name);
                (quote!(#base.shape()[..]), quote!(#base.dtype()))
            }
        };
        match text(member).as_str() {
            "shape" => shape,
            "dtype" => dtype,
            "ndim" => quote!((#shape.len() as __rt::i64)),
            _ => self.mistake(member, &messages::PROPERTY, &[member]),
        }
    }
}
