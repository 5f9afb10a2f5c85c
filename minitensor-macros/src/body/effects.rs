//! [`Effects`]: the assignments and exits of a branch.

use syn::visit::{self, Visit};
use syn::{
    Arm, Block, Expr, ExprAssign, ExprBinary, ExprBreak, ExprClosure, ExprContinue, ExprForLoop, ExprLoop,
    ExprMethodCall, ExprReference, ExprReturn, ExprTry, ExprWhile, Ident, Local, PatIdent, Stmt,
};

use super::{is_compound, root};
use crate::ast::{spelling, text};
use crate::diag::{error, messages};

/// Methods of Rust's arrays, lists and iterators that modify their receivers.
const MODIFYING: &[&str] = &[
    "append",
    "as_mut",
    "as_mut_slice",
    "by_ref",
    "chunks_exact_mut",
    "chunks_mut",
    "clear",
    "clone_from_slice",
    "copy_from_slice",
    "dedup",
    "drain",
    "extend",
    "extend_from_slice",
    "fill",
    "first_mut",
    "get_mut",
    "iter_mut",
    "last_mut",
    "next",
    "next_back",
    "nth",
    "pop",
    "pop_back",
    "pop_front",
    "push",
    "push_back",
    "push_front",
    "resize",
    "retain",
    "rotate_left",
    "rotate_right",
    "select_nth_unstable",
    "sort_by",
    "sort_by_key",
    "sort_unstable",
    "sort_unstable_by",
    "sort_unstable_by_key",
    "split_at_mut",
    "split_off",
    "swap",
    "swap_remove",
    "truncate",
    "values_mut",
    "windows_mut",
];
/// Those whose names rows and numbers have, too. They modify an array if nothing takes their result.
const IN_PLACE: &[&str] = &["insert", "remove", "replace", "reverse", "sort", "take"];

/// The effects of a branch on the code around it.
#[derive(Default)]
pub struct Effects {
    /// The outer variables that it assigns, in the order of their first assignments, each with the error for a place where that is not
    /// possible.
    pub assigned: Vec<(Ident, syn::Error)>,
    /// The `break`s and `continue`s of a loop around it, as errors.
    pub exits: Vec<syn::Error>,
    /// The `return`s, as errors.
    pub returns: Vec<syn::Error>,
    /// The outer variables that it changes in any way.
    pub changed: Vec<Ident>,
    /// Effects that cannot be limited to the elements that take the branch.
    pub errors: Vec<syn::Error>,
    loops: usize,
    closures: usize,
    own: Vec<String>,
}

impl Effects {
    pub fn of<'a>(branches: impl IntoIterator<Item = &'a Block>) -> Effects {
        let mut found = Effects::default();
        branches.into_iter().for_each(|branch| found.visit_block(branch));
        found
    }

    /// Those of an expression that is computed for every element.
    pub fn of_expr(expr: &Expr) -> Effects {
        let mut found = Effects::default();
        found.visit_expr(expr);
        found
    }

    /// All effects, as errors.
    pub fn into_errors(self) -> Vec<syn::Error> {
        let assigned = self.assigned.into_iter().map(|(_, mistake)| mistake);
        assigned.chain(self.exits).chain(self.returns).chain(self.errors).collect()
    }

    fn leaves(&mut self, at: impl quote::ToTokens, word: &str) {
        if self.closures == 0 {
            self.errors.push(error(at, &messages::LEAVES_IF, &[&word]));
        }
    }

    fn exits(&mut self, at: impl quote::ToTokens, word: &str, is_plain: bool) {
        if self.loops > 0 && is_plain || self.closures > 0 {
            return;
        }
        let exit = error(at, &messages::LEAVES_IF, &[&word]);
        if is_plain { self.exits.push(exit) } else { self.errors.push(exit) }
    }

    fn changes(&mut self, place: &Expr, whole: &dyn quote::ToTokens) {
        match place {
            Expr::Tuple(places) => places.elems.iter().for_each(|p| self.changes(p, whole)),
            Expr::Array(places) => places.elems.iter().for_each(|p| self.changes(p, whole)),
            Expr::Call(pattern) => pattern.args.iter().for_each(|p| self.changes(p, whole)),
            Expr::Struct(pattern) => pattern.fields.iter().for_each(|f| self.changes(&f.expr, whole)),
            _ => {
                let Some(name) = root(place).filter(|name| !self.own.contains(&text(name))) else { return };
                self.changed.push(name.clone());
                let shown = spelling(place);
                let mistake = error(whole, &messages::ASSIGNS_IN_IF, &[name, &shown, &shown]);
                if !matches!(place, Expr::Path(_)) {
                    self.errors.push(mistake);
                } else if !self.assigned.iter().any(|(known, _)| known == name) {
                    self.assigned.push((name.clone(), mistake));
                }
            }
        }
    }

    /// A call of a method that modifies its receiver. A temporary may be modified.
    fn modifies(&mut self, call: &ExprMethodCall) {
        let is_place = matches!(&*call.receiver, Expr::Path(_) | Expr::Field(_) | Expr::Index(_) | Expr::Unary(_));
        if !is_place {
            return;
        }
        if let Some(name) = root(&call.receiver).filter(|name| !self.own.contains(&text(name))) {
            self.changed.push(name.clone());
            let method = text(&call.method);
            self.errors.push(error(&call.method, &messages::MODIFIES_IN_IF, &[name, &method]));
        }
    }

    /// Runs `inside`. Names bound in it go out of scope afterwards.
    fn scope(&mut self, inside: impl FnOnce(&mut Self)) {
        let known = self.own.len();
        inside(self);
        self.own.truncate(known);
    }
}

impl<'a> Visit<'a> for Effects {
    fn visit_expr_return(&mut self, e: &'a ExprReturn) {
        if self.closures == 0 {
            self.returns.push(error(e.return_token, &messages::LEAVES_IF, &[&"return"]));
        }
        visit::visit_expr_return(self, e);
    }
    fn visit_macro(&mut self, mac: &'a syn::Macro) {
        // `todo!` and `unimplemented!` stay until the body is finished.
        let name = mac.path.segments.last().map(|s| text(&s.ident)).unwrap_or_default();
        if ["panic", "unreachable", "assert", "assert_eq", "assert_ne"].contains(&name.as_str()) {
            self.leaves(&mac.path, &format!("{name}!"));
        }
    }
    fn visit_expr_try(&mut self, e: &'a ExprTry) {
        self.leaves(e.question_token, "?");
    }
    fn visit_expr_break(&mut self, e: &'a ExprBreak) {
        self.exits(e.break_token, "break", e.label.is_none() && e.expr.is_none());
    }
    fn visit_expr_continue(&mut self, e: &'a ExprContinue) {
        self.exits(e.continue_token, "continue", e.label.is_none());
    }
    fn visit_expr_closure(&mut self, e: &'a ExprClosure) {
        self.closures += 1;
        self.scope(|this| visit::visit_expr_closure(this, e));
        self.closures -= 1;
    }
    fn visit_block(&mut self, block: &'a Block) {
        self.scope(|this| visit::visit_block(this, block));
    }
    fn visit_arm(&mut self, arm: &'a Arm) {
        self.scope(|this| visit::visit_arm(this, arm));
    }
    fn visit_expr_for_loop(&mut self, e: &'a ExprForLoop) {
        self.loops += 1;
        self.scope(|this| visit::visit_expr_for_loop(this, e));
        self.loops -= 1;
    }
    fn visit_expr_while(&mut self, e: &'a ExprWhile) {
        self.loops += 1;
        visit::visit_expr_while(self, e);
        self.loops -= 1;
    }
    fn visit_expr_loop(&mut self, e: &'a ExprLoop) {
        self.loops += 1;
        visit::visit_expr_loop(self, e);
        self.loops -= 1;
    }
    fn visit_local(&mut self, local: &'a Local) {
        local.init.iter().for_each(|init| self.visit_local_init(init));
        self.visit_pat(&local.pat);
    }
    fn visit_pat_ident(&mut self, pattern: &'a PatIdent) {
        self.own.push(text(&pattern.ident));
    }
    fn visit_expr_assign(&mut self, e: &'a ExprAssign) {
        self.changes(&e.left, e);
        self.visit_expr(&e.right);
    }
    fn visit_expr_binary(&mut self, e: &'a ExprBinary) {
        if is_compound(&e.op) {
            self.changes(&e.left, e);
        }
        visit::visit_expr_binary(self, e);
    }
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if let Stmt::Expr(Expr::MethodCall(call), Some(_)) = stmt
            && IN_PLACE.contains(&text(&call.method).as_str())
        {
            self.modifies(call);
        }
        visit::visit_stmt(self, stmt);
    }
    fn visit_expr_method_call(&mut self, e: &'a ExprMethodCall) {
        if MODIFYING.contains(&text(&e.method).as_str()) {
            self.modifies(e);
        }
        visit::visit_expr_method_call(self, e);
    }
    fn visit_expr_reference(&mut self, e: &'a ExprReference) {
        // A mutable reference to a temporary has no effect outside.
        let is_place = matches!(&*e.expr, Expr::Path(_) | Expr::Field(_) | Expr::Index(_) | Expr::Unary(_));
        if e.mutability.is_some() && is_place {
            self.changes(&e.expr, e);
        }
        self.visit_expr(&e.expr);
    }
}
