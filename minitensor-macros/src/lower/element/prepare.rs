//! Rewrites the body of a cell before it is lowered.

use quote::quote;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, ExprPath, Ident, parse_quote};

use crate::hygiene::local;

/// Writes each `vec!` as a call, whose arguments are expressions, and each function of `f64` that is an argument as a closure, whose
/// parameters may be elements.
pub fn prepare(block: &mut Block, rt: &proc_macro2::TokenStream) {
    Preparation(rt).visit_block_mut(block);
}

struct Preparation<'a>(&'a proc_macro2::TokenStream);

impl VisitMut for Preparation<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let rt = self.0;
        match expr {
            Expr::Macro(mac) if mac.mac.path.is_ident("vec") => {
                let tokens = &mac.mac.tokens;
                match syn::parse2::<Expr>(quote!([#tokens])) {
                    Ok(Expr::Repeat(list)) => {
                        let (each, len) = (&list.expr, &list.len);
                        *expr = parse_quote!(#rt::vec_repeat(#each, #len));
                    }
                    Ok(list) => *expr = parse_quote!(#rt::vec_of(#list)),
                    Err(_) => return,
                }
            }
            // `fold(f64::NEG_INFINITY, f64::max)`
            Expr::MethodCall(call) => {
                let params: &[Ident] = match call.method.to_string().as_str() {
                    "fold" | "reduce" => &[local("x", 0), local("x", 1)],
                    "map" | "mapv" => &[local("x", 0)],
                    _ => &[],
                };
                if let Some(function) = call.args.last_mut()
                    && !params.is_empty()
                    && function_of_f64(function).is_some()
                {
                    *function = parse_quote!(|#(#params),*| #function(#(#params),*));
                }
            }
            _ => {}
        }
        visit_mut::visit_expr_mut(self, expr);
    }
}

/// The name of a function such as `f64::max`.
pub fn function_of_f64(expr: &Expr) -> Option<Ident> {
    let Expr::Path(ExprPath { path, .. }) = expr else { return None };
    let [of, name] = &path.segments.iter().collect::<Vec<_>>()[..] else { return None };
    let called = name.ident.to_string();
    let is_method = called.starts_with(char::is_lowercase) && !called.starts_with("from") && called != "default";
    (of.ident == "f64" && is_method).then(|| name.ident.clone())
}
