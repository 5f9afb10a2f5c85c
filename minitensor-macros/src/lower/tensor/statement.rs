//! Statements of a body over tensors.

use syn::{Block, Expr, ExprAssign, ExprMacro, Pat, Stmt};

use quote::ToTokens;

use super::Lowering;
use super::kind::Kind;
use super::op::operand;
use crate::ast::text;
use crate::diag::messages;
use crate::hygiene::quote;
use crate::lower::shown;

impl Lowering {
    pub fn block(&mut self, block: &mut Block, wanted: &Kind) -> Kind {
        self.scoped(|this| {
            let mut kind = Kind::Other;
            for stmt in &mut block.stmts {
                kind = Kind::Other;
                match stmt {
                    Stmt::Local(local) => this.local(local),
                    Stmt::Expr(expr, None) => kind = this.value(expr, wanted),
                    Stmt::Expr(expr, Some(_)) => {
                        if this.expr(expr) == Kind::Never {
                            kind = Kind::Never;
                        }
                    }
                    Stmt::Macro(mac) if mac.semi_token.is_none() => {
                        let mut expr = Expr::Macro(ExprMacro { attrs: mac.attrs.clone(), mac: mac.mac.clone() });
                        kind = this.expr(&mut expr);
                        *stmt = Stmt::Expr(expr, None);
                    }
                    Stmt::Item(_) | Stmt::Macro(_) => {}
                }
            }
            kind
        })
    }

    fn local(&mut self, local: &mut syn::Local) {
        // A variable is declared before its value, which may contain other declarations.
        let variable = match &local.pat {
            Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => Some(name.clone()),
            _ => None,
        };
        let declared = variable.as_ref().map(|_| self.declaration());
        let mut kind = Kind::Other;
        if let Some(init) = &mut local.init {
            let wanted = declared.and_then(|declared| self.wanted.get(&declared).cloned());
            kind = self.value(&mut init.expr, &wanted.unwrap_or_else(|| Kind::of_pattern(&local.pat)));
            if let Some((_, diverge)) = &mut init.diverge {
                self.expr(diverge);
            }
        }
        let (Some(variable), Some(declared)) = (variable, declared) else { return self.bind(&local.pat, kind) };
        if let Some(init) = &mut local.init
            && variable.mutability.is_some()
            && kind == Kind::Tensor
            && self.owned.contains(&declared)
        {
            self.own(&mut init.expr);
            kind = Kind::New;
        }
        self.scope.push((text(&variable.ident), kind, declared));
    }

    /// Replaces a reference to a tensor by a tensor.
    pub fn own(&mut self, expr: &mut Expr) {
        self.is_used = true;
        let operand = operand(expr);
        *expr = Expr::Verbatim(quote!(__private::owned(&#operand)));
    }

    pub fn assignment(&mut self, assign: &mut ExprAssign) -> Kind {
        if let Expr::Index(index) = &mut *assign.left {
            let (place, tensor) = (index.to_token_stream(), shown(&index.expr));
            if self.expr(&mut index.expr).is_tensor() {
                self.error(place, &messages::TENSOR_PART, &[&tensor]);
                return Kind::Other;
            }
            self.expr(&mut index.index);
        }
        let wanted = self.place(&assign.left);
        let kind = self.value(&mut assign.right, &wanted);
        self.assign(&assign.left, &kind);
        Kind::Other
    }
}

/// The last expression of a block.
pub fn tail(block: &Block) -> Option<Expr> {
    if let Some(Stmt::Expr(tail, None)) = block.stmts.last() { Some(tail.clone()) } else { None }
}
