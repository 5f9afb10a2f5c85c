//! Tensors in a formula: operators, methods and calls are calls of ops by name.

use std::collections::HashMap;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Block, Expr, Ident, Stmt, UnOp};

use super::{Lowering, Name};
use crate::ast::text;
use crate::diag::messages;
use crate::hygiene::quote;

/// The ops that operators stand for.
fn operator(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add(_) => "add",
        BinOp::Sub(_) => "subtract",
        BinOp::Mul(_) => "multiply",
        BinOp::Div(_) => "divide",
        BinOp::Rem(_) => "remainder",
        BinOp::And(_) => "logical_and",
        BinOp::Or(_) => "logical_or",
        BinOp::BitAnd(_) => "bitwise_and",
        BinOp::BitOr(_) => "bitwise_or",
        BinOp::BitXor(_) => "bitwise_xor",
        BinOp::Shl(_) => "bitwise_left_shift",
        BinOp::Shr(_) => "bitwise_right_shift",
        BinOp::Lt(_) => "less",
        BinOp::Le(_) => "less_equal",
        BinOp::Gt(_) => "greater",
        BinOp::Ge(_) => "greater_equal",
        BinOp::Eq(_) => "equal",
        BinOp::Ne(_) => "not_equal",
        _ => return None,
    })
}

impl Lowering<'_> {
    /// A tensor of its own.
    pub fn owned(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Path(_) if self.is_data(expr) => {
                let tokens = self.data(expr);
                quote!(#tokens.clone())
            }
            Expr::Paren(e) => self.owned(&e.expr),
            _ if self.is_data(expr) => self.data(expr),
            _ => self.known(expr),
        }
    }

    /// An argument of an op.
    fn argument(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Reference(e) => self.argument(&e.expr),
            Expr::Paren(e) => self.argument(&e.expr),
            Expr::Path(path) if path.path.is_ident("None") => quote!(__rt::value(&__rt::Option::<__rt::i64>::None)),
            Expr::Array(list) if list.elems.iter().any(|e| self.is_data(e)) => {
                let each: Vec<_> = list.elems.iter().map(|e| self.owned(e)).collect();
                quote!(__rt::value(&[#(#each),*][..]))
            }
            _ if self.is_data(expr) => {
                let tokens = self.data(expr);
                quote!(__rt::value(&#tokens))
            }
            _ => {
                let tokens = self.known(expr);
                match expr {
                    Expr::Binary(_) | Expr::Cast(_) | Expr::Range(_) => quote!(__rt::value(&(#tokens))),
                    _ => quote!(__rt::value(&#tokens)),
                }
            }
        }
    }

    fn data(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Path(path) => {
                path.path.get_ident().and_then(|i| self.mention(i));
                path.to_token_stream()
            }
            Expr::Paren(e) => self.data(&e.expr),
            Expr::Group(e) => self.data(&e.expr),
            Expr::Reference(e) => self.data(&e.expr),
            Expr::Block(e) => self.block(&e.block),
            Expr::If(_) | Expr::Match(_) => self.choice(expr),
            Expr::Call(_) | Expr::MethodCall(_) | Expr::Binary(_) | Expr::Unary(_) => self.call(expr, None),
            other => self.mistake(other, &messages::FORMULA_EXPR, &[&other.to_token_stream()]),
        }
    }

    fn block(&mut self, block: &Block) -> TokenStream {
        self.scopes.push(HashMap::new());
        let mut tokens = TokenStream::new();
        for stmt in &block.stmts {
            tokens.extend(match stmt {
                Stmt::Local(local) => self.local(local),
                Stmt::Expr(value, None) => self.owned(value),
                other => self.mistake(other, &messages::FORMULA_EXPR, &[&other.to_token_stream()]),
            });
        }
        self.scopes.pop();
        quote!({ #tokens })
    }

    fn choice(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::If(choice) => {
                let Some((_, otherwise)) = &choice.else_branch else {
                    return self.mistake(choice.if_token, &messages::IF_WITHOUT_ELSE, &[]);
                };
                if let Expr::Let(condition) = &*choice.cond {
                    let value = self.data(&condition.expr);
                    let pattern = &condition.pat;
                    self.scopes.push(HashMap::new());
                    self.bind(pattern, Name::Tensor);
                    let yes = self.block(&choice.then_branch);
                    self.scopes.pop();
                    let no = self.otherwise(otherwise);
                    return quote!(if let #pattern = &#value #yes else #no);
                }
                if !self.is_data(&choice.cond) {
                    let (condition, yes) = (self.known(&choice.cond), self.block(&choice.then_branch));
                    let no = self.otherwise(otherwise);
                    return quote!(if #condition #yes else #no);
                }
                let yes = Expr::Block(syn::ExprBlock { attrs: vec![], label: None, block: choice.then_branch.clone() });
                let args = [self.argument(&choice.cond), self.branch(&yes), self.branch(otherwise)];
                let op = self.op("where", choice.if_token.span());
                quote!(#op.call(&[#(#args),*], &[])?)
            }
            Expr::Match(choice) => {
                let scrutinee = self.known(&choice.expr);
                let arms = choice.arms.iter().map(|arm| {
                    self.scopes.push(HashMap::new());
                    self.bind(&arm.pat, Name::Static);
                    let (pattern, body) = (&arm.pat, self.owned(&arm.body));
                    self.scopes.pop();
                    quote!(#pattern => #body,)
                });
                let arms: Vec<_> = arms.collect();
                quote!(match #scrutinee { #(#arms)* })
            }
            _ => TokenStream::new(),
        }
    }

    fn otherwise(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Block(e) => self.block(&e.block),
            other => {
                let tokens = self.owned(other);
                quote!({ #tokens })
            }
        }
    }

    /// A branch of a data `if`: a literal in it stays one.
    fn branch(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Block(e) => match &e.block.stmts[..] {
                [Stmt::Expr(only, None)] => self.argument(only),
                _ => {
                    let tokens = self.block(&e.block);
                    quote!(__rt::value(&#tokens))
                }
            },
            other => self.argument(other),
        }
    }

    /// The call of an op; with `count` it gives so many tensors.
    pub fn call(&mut self, expr: &Expr, count: Option<&syn::Index>) -> TokenStream {
        let span = expr.span();
        let (name, args, at): (String, Vec<&Expr>, _) = match expr {
            Expr::Binary(e) => match operator(&e.op) {
                Some(name) => (name.to_owned(), vec![&e.left, &e.right], e.op.span()),
                None => return self.mistake(expr, &messages::FORMULA_EXPR, &[&expr.to_token_stream()]),
            },
            Expr::Unary(e) => {
                let name = if matches!(e.op, UnOp::Neg(_)) { "negative" } else { "logical_not" };
                (name.to_owned(), vec![&e.expr], e.op.span())
            }
            Expr::MethodCall(e) => {
                let args = std::iter::once(&*e.receiver).chain(&e.args).collect();
                (text(&e.method), args, e.method.span())
            }
            Expr::Call(e) => match &*e.func {
                Expr::Path(path) => {
                    let segments: Vec<_> = path.path.segments.iter().map(|s| text(&s.ident)).collect();
                    (segments.join("::"), e.args.iter().collect(), path.span())
                }
                other => return self.mistake(other, &messages::FORMULA_EXPR, &[&other.to_token_stream()]),
            },
            Expr::Paren(e) => return self.call(&e.expr, count),
            other => return self.mistake(other, &messages::FORMULA_EXPR, &[&other.to_token_stream()]),
        };
        let (mut positional, mut keywords) = (vec![], vec![]);
        for arg in args {
            match arg {
                Expr::Assign(keyword) => match &*keyword.left {
                    Expr::Path(path) if path.path.get_ident().is_some() => {
                        let name = path.path.get_ident().map(text).unwrap_or_default();
                        let value = self.argument(&keyword.right);
                        keywords.push(quote!((#name, #value)));
                    }
                    other => return self.mistake(other, &messages::FORMULA_EXPR, &[&other.to_token_stream()]),
                },
                _ => positional.push(self.argument(arg)),
            }
        }
        let op = self.op(&name, at);
        let method = match count {
            Some(count) => quote!(call_many::<#count>),
            None => quote!(call),
        };
        quote_spanned!(span=> #op.#method(&[#(#positional),*], &[#(#keywords),*])?)
    }

    /// The static of the op called.
    fn op(&mut self, name: &str, span: Span) -> Ident {
        let ident = format!("__OP{}_{}", self.ops.len(), name.to_uppercase().replace("::", "_"));
        let ident = self.ops.entry(name.to_owned()).or_insert_with(|| Ident::new(&ident, Span::call_site()));
        Ident::new(&ident.to_string(), span)
    }
}
