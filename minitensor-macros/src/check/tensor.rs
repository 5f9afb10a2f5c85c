//! Bodies over whole tensors: what belongs in the body of an element or row op.

use std::collections::HashSet;

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprBinary, ExprMethodCall, ExprTry, PatIdent};

use crate::ast::{Arity, Level, Op, text};
use crate::body::methods::{ROW_METHODS, renamed, returns_element};
use crate::diag::{Diag, messages};

/// Operators, methods of numbers and `?` do not apply to a tensor.
pub fn body(op: &Op, diag: &mut Diag) {
    if op.level != Level::Tensor {
        return;
    }
    let inputs = op.inputs.iter().filter(|i| i.arity == Arity::One).map(|i| text(&i.ident));
    let mut bound = Bound(HashSet::new());
    bound.visit_block(&op.function.block);
    let tensors = inputs.filter(|name| !bound.0.contains(name)).collect();
    Body { tensors, diag }.visit_block(&op.function.block);
}

/// The names that the body binds again.
struct Bound(HashSet<String>);

impl<'a> Visit<'a> for Bound {
    fn visit_pat_ident(&mut self, pattern: &'a PatIdent) {
        self.0.insert(text(&pattern.ident));
        visit::visit_pat_ident(self, pattern);
    }
}

struct Body<'d> {
    tensors: HashSet<String>,
    diag: &'d mut Diag,
}

impl Body<'_> {
    /// The name of a tensor.
    fn tensor(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Paren(inner) => self.tensor(&inner.expr),
            Expr::Reference(inner) => self.tensor(&inner.expr),
            Expr::Path(path) => path.path.get_ident().map(text).filter(|name| self.tensors.contains(name)),
            _ => None,
        }
    }
}

impl<'a> Visit<'a> for Body<'_> {
    fn visit_expr_binary(&mut self, e: &'a ExprBinary) {
        let tensor = self.tensor(&e.left).or_else(|| self.tensor(&e.right));
        if let (Some(tensor), Some(function)) = (tensor, function(&e.op)) {
            let op = e.op.to_token_stream();
            return self.diag.error(e.op, &messages::TENSOR_OPERATOR, &[&tensor, &op, &function]);
        }
        visit::visit_expr_binary(self, e);
    }

    fn visit_expr_method_call(&mut self, e: &'a ExprMethodCall) {
        if let Some(tensor) = self.tensor(&e.receiver) {
            let (name, given) = (e.method.to_string(), e.args.len());
            let ours = renamed(&name, given);
            let is_of_elements = returns_element(ours) || ROW_METHODS.iter().any(|(row, _)| *row == name);
            // A tensor has this method, too.
            if is_of_elements && name != "detach" {
                return self.diag.error(&e.method, &messages::TENSOR_METHOD, &[&tensor, &name, &ours]);
            }
        }
        visit::visit_expr_method_call(self, e);
    }

    fn visit_expr_try(&mut self, e: &'a ExprTry) {
        if let Some(tensor) = self.tensor(&e.expr) {
            return self.diag.error(e.question_token, &messages::TENSOR_TRY, &[&tensor]);
        }
        visit::visit_expr_try(self, e);
    }
}

/// The built-in op of an operator.
fn function(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add(_) => "add",
        BinOp::Sub(_) => "subtract",
        BinOp::Mul(_) => "multiply",
        BinOp::Div(_) => "divide",
        BinOp::Rem(_) => "remainder",
        BinOp::Lt(_) => "less",
        BinOp::Le(_) => "less_equal",
        BinOp::Gt(_) => "greater",
        BinOp::Ge(_) => "greater_equal",
        BinOp::Eq(_) => "equal",
        BinOp::Ne(_) => "not_equal",
        _ => return None,
    })
}
