//! What the body of a cell is rewritten to before anything else.

use quote::{format_ident, quote};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, ExprPath, parse_quote};

use super::is_literal;

/// Writes each `vec!` as a call, whose arguments are expressions, and each function of `f64` as the method, which elements have, too.
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
            // `f64::max(a, b)`
            Expr::Call(call) => {
                let method = function_of_f64(&call.func);
                let receiver = call.args.iter().position(|arg| !is_literal(arg));
                if let (Some(method), Some(at)) = (method, receiver)
                    && (at == 0 || method == "max" || method == "min")
                {
                    let others = call.args.iter().enumerate().filter(|(k, _)| *k != at).map(|(_, arg)| arg);
                    *expr = match &call.args[at] {
                        receiver @ (Expr::Path(_)
                        | Expr::Index(_)
                        | Expr::Field(_)
                        | Expr::Call(_)
                        | Expr::MethodCall(_)) => {
                            parse_quote!(#receiver.#method(#(#others),*))
                        }
                        receiver => parse_quote!((#receiver).#method(#(#others),*)),
                    };
                }
            }
            // `fold(f64::NEG_INFINITY, f64::max)`
            Expr::MethodCall(call) => {
                let takes: usize = match call.method.to_string().as_str() {
                    "fold" | "reduce" => 2,
                    "map" | "mapv" => 1,
                    _ => 0,
                };
                if let Some(last) = call.args.last_mut()
                    && takes > 0
                    && let Some(method) = function_of_f64(last)
                {
                    let mut names = (0..takes).map(|k| format_ident!("x{}", k, span = method.span()));
                    let (first, second) = (names.next(), names.next());
                    *last = parse_quote!(|#first, #second| #first.#method(#second));
                }
            }
            _ => {}
        }
        visit_mut::visit_expr_mut(self, expr);
    }
}

/// The name of a function such as `f64::max`.
fn function_of_f64(expr: &Expr) -> Option<syn::Ident> {
    let Expr::Path(ExprPath { path, .. }) = expr else { return None };
    let [of, name] = &path.segments.iter().collect::<Vec<_>>()[..] else { return None };
    let called = name.ident.to_string();
    let is_method = called.starts_with(char::is_lowercase) && !called.starts_with("from") && called != "default";
    (of.ident == "f64" && is_method).then(|| name.ident.clone())
}
