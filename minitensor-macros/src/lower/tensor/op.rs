//! Calls of ops: by operators, as methods of tensors, and by name.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit_mut;
use syn::{Expr, ExprAssign, ExprBinary, ExprCall, ExprMethodCall, ExprUnary};

use super::kind::{self, Kind};
use super::{Lowered, Lowering, as_ident, first};
use crate::ast::text;
use crate::body::is_compound;
use crate::diag::messages;
use crate::hygiene::quote;
use crate::lower::call::{self, Outputs};
use crate::lower::shown;
use minitensor_schema::gradient::{BINARY, UNARY};

impl Lowering {
    pub fn binary(&mut self, binary: &mut ExprBinary) -> Lowered {
        let kinds = [self.expr(&mut binary.left), self.expr(&mut binary.right)];
        let sign = binary.op.to_token_stream().to_string();
        let is_assigned = is_compound(&binary.op);
        let sign = if is_assigned { sign.trim_end_matches('=') } else { &sign };
        let Some(op) = op(BINARY, sign).filter(|_| kinds.iter().any(Kind::is_tensor)) else {
            return Lowered::kept(Kind::Other);
        };
        let sides = [&binary.left, &binary.right];
        for (side, kind) in sides.iter().zip(&kinds) {
            self.operand(side, kind);
        }
        let args = sides.map(|side| argument(side));
        let call = self.call(op, binary.op.span(), &args, &[], Outputs::One);
        if !is_assigned {
            return Lowered::replaced(call, Kind::New);
        }
        self.assigned(&binary.left);
        let place = &binary.left;
        Lowered::replaced(quote!(#place = #call), Kind::Other)
    }

    pub fn unary(&mut self, unary: &mut ExprUnary) -> Lowered {
        let kind = self.expr(&mut unary.expr);
        let sign = unary.op.to_token_stream().to_string();
        match op(UNARY, &sign) {
            Some(op) if kind.is_tensor() => {
                let call = self.call(op, unary.op.span(), &[argument(&unary.expr)], &[], Outputs::One);
                Lowered::replaced(call, Kind::New)
            }
            Some(_) => Lowered::kept(Kind::Other),
            None => Lowered::kept(kind.referred()),
        }
    }

    pub fn method_call(&mut self, call: &mut ExprMethodCall, wanted: &Kind) -> Lowered {
        let receiver = self.expr(&mut call.receiver);
        let name = call.method.unraw().to_string();
        if !receiver.is_tensor() || call.turbofish.is_some() || kind::method(&name).is_some() {
            return Lowered::kept(self.rust_method(&receiver, call));
        }
        let receiver = argument(&call.receiver);
        let (name, span) = (without_underscore(name), call.method.span());
        let (call, kind) = self.call_with(&name, span, Some(receiver), call.args.iter_mut(), wanted);
        Lowered::replaced(call, kind)
    }

    pub fn function_call(&mut self, call: &mut ExprCall, wanted: &Kind) -> Lowered {
        let Expr::Path(path) = &*call.func else {
            visit_mut::visit_expr_call_mut(self, call);
            return Lowered::kept(Kind::Other);
        };
        let path = &path.path;
        if let Some((name, span)) = op_path(path) {
            let (call, kind) = self.call_with(&name, span, None, call.args.iter_mut(), wanted);
            return Lowered::replaced(call, kind);
        }
        // The value in `Some(…)` or `Ok(…)`.
        let is_wrapped = path.is_ident("Some") || path.is_ident("Ok");
        let inside = if is_wrapped { wanted.clone().inside() } else { Kind::Other };
        let kinds: Vec<Kind> = call.args.iter_mut().map(|arg| self.value(arg, &inside)).collect();
        Lowered::kept(match path.get_ident() {
            Some(name) if name == "Some" => Kind::Option(Box::new(first(kinds))),
            Some(name) if name == "Ok" => Kind::Result(Box::new(first(kinds))),
            Some(name) => match self.lookup(name).cloned() {
                Some((_, Kind::Fn(kind), declared)) => {
                    if kind.is_less_than(wanted) {
                        self.want(declared, &Kind::Fn(Box::new(wanted.clone())));
                    }
                    *kind
                }
                _ => Kind::Other,
            },
            None => kind::of_constructor(path),
        })
    }

    fn call(
        &mut self,
        op: &str,
        span: Span,
        args: &[TokenStream],
        keywords: &[(String, TokenStream)],
        outputs: Outputs,
    ) -> TokenStream {
        self.may_fail = true;
        self.calls.call(op, span, args, keywords, outputs, span)
    }

    /// Lowers the arguments of an op, and calls it. Returns the kind of its outputs, too.
    fn call_with<'e>(
        &mut self,
        op: &str,
        span: Span,
        receiver: Option<TokenStream>,
        given: impl Iterator<Item = &'e mut Expr>,
        wanted: &Kind,
    ) -> (TokenStream, Kind) {
        let (mut args, mut keywords): (Vec<_>, Vec<_>) = (receiver.into_iter().collect(), vec![]);
        for arg in given {
            match arg {
                Expr::Assign(ExprAssign { left, right, .. }) if as_ident(left).is_some() => {
                    self.expr(right);
                    keywords.push((as_ident(left).map(text).unwrap_or_default(), argument(right)));
                }
                arg => {
                    self.expr(arg);
                    args.push(argument(arg));
                }
            }
        }
        let (outputs, kind) = match wanted {
            Kind::Result(wanted) => outputs(wanted),
            wanted => outputs(wanted),
        };
        (self.call(op, span, &args, &keywords, outputs), kind)
    }

    /// The operand of an operator, which must not be absent.
    fn operand(&mut self, expr: &Expr, kind: &Kind) {
        if let Kind::Option(inner) = kind
            && inner.is_tensor()
        {
            self.error(expr, &messages::OPTIONAL_OPERAND, &[&shown(expr), &shown(expr)]);
        }
    }
}

fn op(table: &'static [(&str, &str)], sign: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == sign).map(|(_, op)| *op)
}

/// A lowered expression as an argument of an op.
fn argument(expr: &Expr) -> TokenStream {
    match expr {
        Expr::Paren(inner) => argument(&inner.expr),
        Expr::Reference(inner) if inner.mutability.is_none() => argument(&inner.expr),
        Expr::Path(path) if path.path.is_ident("None") => call::none(),
        Expr::Array(array) => call::list(&array.elems.iter().map(argument).collect::<Vec<_>>()),
        expr => call::value(operand(expr)),
    }
}

/// The expression in parentheses, if `&` would bind to a part of it.
pub fn operand(expr: &Expr) -> TokenStream {
    match expr {
        Expr::Binary(_) | Expr::Cast(_) | Expr::Range(_) | Expr::Assign(_) | Expr::Closure(_) => quote!((#expr)),
        expr => expr.to_token_stream(),
    }
}

/// The outputs of an op that are a value of the wanted kind, and their kind.
fn outputs(wanted: &Kind) -> (Outputs, Kind) {
    match wanted {
        Kind::Tuple(parts) => (Outputs::Tuple(parts.len()), Kind::Tuple(vec![Kind::New; parts.len()])),
        Kind::Array(parts) => (Outputs::Array(parts.len()), Kind::Array(vec![Kind::New; parts.len()])),
        Kind::List(_) | Kind::Outputs => (Outputs::All, Kind::Outputs),
        _ => (Outputs::One, Kind::New),
    }
}

/// The name of the op of a path: `linalg::qr` for `ops::linalg::qr`. `None` for other paths, such as `ops::linalg::qr::call`.
fn op_path(path: &syn::Path) -> Option<(String, Span)> {
    let mut names: Vec<String> = path.segments.iter().map(|s| s.ident.unraw().to_string()).collect();
    let is_plain = path.leading_colon.is_none() && path.segments.iter().all(|s| s.arguments.is_none());
    let last = names.pop()?;
    let is_op = is_plain && last != "call" && !last.starts_with(char::is_uppercase);
    (is_op && names.first()? == "ops").then(|| {
        names.push(without_underscore(last));
        (names[1..].join("::"), path.segments[path.segments.len() - 1].ident.span())
    })
}

/// `where_` is the op `where`, whose name is a keyword of Rust.
fn without_underscore(name: String) -> String {
    if name == "where_" { "where".to_owned() } else { name }
}
