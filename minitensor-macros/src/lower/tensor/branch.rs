//! Conditions, and the branches of `if` and `match`, which return values of one kind.

use quote::ToTokens;
use syn::{Block, Expr, Pat, Stmt};

use super::Lowering;
use super::kind::Kind;
use crate::diag::messages;
use crate::lower::shown;

impl Lowering {
    /// A condition, which must not be a tensor.
    pub(super) fn condition(&mut self, condition: &mut Expr) {
        let shown = shown(condition);
        let at = condition.to_token_stream();
        if self.expr(condition).is_tensor() {
            self.error(at, &messages::TENSOR_CONDITION, &[&shown, &shown]);
        }
    }

    /// Lowers an `if` or a `match`. Returns the joined kind of its branches; `ends` are their kinds.
    pub(super) fn branches(&mut self, expr: &mut Expr, wanted: &Kind, ends: &mut Vec<Kind>) -> Kind {
        match expr {
            Expr::If(branch) => {
                let then = self.scoped(|this| {
                    this.condition(&mut branch.cond);
                    this.block(&mut branch.then_branch, wanted)
                });
                ends.push(then.clone());
                match &mut branch.else_branch {
                    Some((_, otherwise)) => then.join(self.branches(otherwise, wanted, ends)),
                    None => Kind::Other,
                }
            }
            Expr::Match(each) => {
                let taken = each.arms.iter().map(|arm| Kind::of_pattern(&arm.pat)).find(|kind| *kind != Kind::Other);
                let of = self.value(&mut each.expr, &taken.unwrap_or(Kind::Other));
                let kinds: Vec<Kind> = each
                    .arms
                    .iter_mut()
                    .map(|arm| {
                        self.scoped(|this| {
                            this.bind(&arm.pat, of.clone());
                            if let Pat::Guard(pattern) = &mut arm.pat {
                                this.condition(&mut pattern.guard);
                            }
                            this.value(&mut arm.body, wanted)
                        })
                    })
                    .collect();
                ends.extend(kinds.iter().cloned());
                kinds.into_iter().reduce(Kind::join).unwrap_or(Kind::Other)
            }
            Expr::Block(block) => {
                let kind = self.block(&mut block.block, wanted);
                ends.push(kind.clone());
                kind
            }
            other => {
                let kind = self.value(other, wanted);
                ends.push(kind.clone());
                kind
            }
        }
    }

    /// Makes the branches that refer to a tensor return a tensor, like those that call an op. `to` is the kind of all branches, `ends`
    /// are the kinds of each.
    pub(super) fn own_ends(&mut self, expr: &mut Expr, to: &Kind, ends: &mut impl Iterator<Item = Kind>) {
        match expr {
            Expr::If(branch) => {
                self.own_end(&mut branch.then_branch, to, ends);
                if let Some((_, otherwise)) = &mut branch.else_branch {
                    self.own_ends(otherwise, to, ends);
                }
            }
            Expr::Match(each) => each.arms.iter_mut().for_each(|arm| match &mut *arm.body {
                Expr::Block(block) => self.own_end(&mut block.block, to, ends),
                body => self.own_as(body, to, &ends.next().unwrap_or(Kind::Other)),
            }),
            Expr::Block(block) => self.own_end(&mut block.block, to, ends),
            _ => {}
        }
    }

    fn own_end(&mut self, block: &mut Block, to: &Kind, ends: &mut impl Iterator<Item = Kind>) {
        if let (Some(kind), Some(Stmt::Expr(end, None))) = (ends.next(), block.stmts.last_mut()) {
            self.own_as(end, to, &kind);
        }
    }

    /// Replaces references to tensors by tensors, where the kind `to` has tensors.
    fn own_as(&mut self, expr: &mut Expr, to: &Kind, kind: &Kind) {
        match (to, kind, expr) {
            (Kind::New, Kind::Tensor, expr) => self.own(expr),
            (Kind::Tuple(to), Kind::Tuple(kinds), Expr::Tuple(tuple)) => {
                let parts = tuple.elems.iter_mut().zip(to).zip(kinds);
                parts.for_each(|((part, to), kind)| self.own_as(part, to, kind));
            }
            _ => {}
        }
    }
}
