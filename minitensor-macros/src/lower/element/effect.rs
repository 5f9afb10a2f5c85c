//! Statements under a condition on data: assignments, the end of a loop, and an early `return`. A branch works on copies of the variables
//! that it assigns; then one of the values is selected for each element.

use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, ExprBlock, ExprForLoop, ExprIf, ExprReturn, Ident, Stmt, parse_quote};

use super::branch::{closure, copy, is_value, last};
use super::{Lowering, placeholder, without_parens};
use crate::ast::Elem;
use crate::body::{Certain, Effects, ValueKind};
use crate::diag::{error, messages};
use crate::hygiene::local;

/// The masks of a loop that ends on data: the elements for which it runs, and those for which the rest of the turn does.
#[derive(Clone)]
struct Running {
    loops: Ident,
    turn: Ident,
}

impl Lowering<'_> {
    /// An `if` without a value, whose lowered condition is data. Returns the assignment of the selected values.
    pub fn assignment(&mut self, branch: &mut ExprIf) -> Expr {
        let is_call = |e: &&Expr| matches!(e, Expr::Call(_) | Expr::MethodCall(_) | Expr::Macro(_));
        let lacks_else =
            branch.else_branch.is_none() && last(&branch.then_branch).filter(|e| !is_call(e)).is_some_and(is_value);
        let mut otherwise = match branch.else_branch.take() {
            None => parse_quote!({}),
            Some((_, other)) => match *other {
                Expr::Block(ExprBlock { block, .. }) => block,
                other => Block { brace_token: Default::default(), stmts: vec![Stmt::Expr(other, None)] },
            },
        };
        let then = &mut branch.then_branch;
        let mut effects = Effects::of([&*then, &otherwise]);
        if !effects.exits.is_empty() {
            match self.around.last() {
                Some(Some(id)) => _ = self.ended.insert(*id),
                Some(None) => effects.errors.push(error(branch.if_token, &messages::ENDS_ON_DATA, &[])),
                None => effects.errors.append(&mut effects.exits),
            }
        }
        effects.errors.append(&mut effects.returns);
        let names: Vec<Ident> = effects.assigned.iter().map(|(name, _)| name.clone()).collect();
        if lacks_else || names.is_empty() && effects.exits.is_empty() && effects.errors.is_empty() {
            effects.errors.push(error(branch.if_token, &messages::IF_WITHOUT_ELSE, &[]));
        }
        let mut to = vec![];
        for (name, mistake) in effects.assigned {
            match self.assigned_type(&name) {
                Some(elem) => to.push(elem),
                None => effects.errors.push(mistake),
            }
        }
        if !effects.errors.is_empty() || names.is_empty() {
            self.errors.append(&mut effects.errors);
            return placeholder();
        }
        let result = if let [only] = &names[..] { quote!(#only) } else { quote!((#(#names),*)) };
        let unset = self.unset.clone();
        for block in [&mut *then, &mut otherwise] {
            let own: Vec<Ident> = Effects::of([&*block]).assigned.into_iter().map(|(name, _)| name).collect();
            self.unset.clone_from(&unset);
            self.block(block, None);
            if let Some(Stmt::Expr(last, semi @ None)) = block.stmts.last_mut()
                && !matches!(last, Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) | Expr::If(_) | Expr::Block(_))
            {
                *semi = Some(Default::default());
            }
            copy(&own, &unset, block);
            block.stmts.push(Stmt::Expr(Expr::Verbatim(result.clone()), None));
        }
        self.unset.retain(|name| !names.contains(name));
        let span = branch.if_token.span();
        let value = match &to[..] {
            [Elem::Generic(_) | Elem::Any] => {
                let (rt, condition) = (self.rt, without_parens(&branch.cond));
                let (yes, no) = (closure(then), closure(&otherwise));
                quote_spanned!(span=> #rt::select(#condition, #yes, #no))
            }
            _ => {
                let otherwise = parse_quote!(#otherwise);
                self.select_each(&branch.cond, then, &otherwise, &to, span).to_token_stream()
            }
        };
        // Nothing may read one of several variables afterwards.
        Expr::Verbatim(quote_spanned!(span=> { #[allow(unused_assignments)] let () = { #result = #value; }; }))
    }

    /// The type of a variable that is assigned where a condition on data holds.
    fn assigned_type(&mut self, name: &Ident) -> Option<Elem> {
        let binding = self.scopes.get(name)?;
        let only = self.only_variable().unwrap_or(0);
        match (binding.value, binding.certain, binding.made_by) {
            (_, Some(Certain::Mask(i)), _) => Some(Elem::Mask(i)),
            (ValueKind::Data(Some(i)), ..) => Some(Elem::Generic(i)),
            (ValueKind::Data(None), ..) => Some(Elem::Any),
            (value, _, Some(id)) if value.is_static() => {
                self.promoted.insert(id);
                Some(if value == ValueKind::Flag { Elem::Mask(only) } else { Elem::Generic(only) })
            }
            _ => None,
        }
    }

    /// A `for` loop that ends at another time for each element. The scope of the loop is open.
    pub fn ending_loop(&mut self, each: &mut ExprForLoop, id: usize) -> Expr {
        let running = Running { loops: local("__running", id), turn: local("__turn", id) };
        let Running { loops, turn } = &running;
        for name in [loops, turn] {
            self.scopes.bind(name, ValueKind::Data(Some(0)));
            self.scopes.know(name, Some(Certain::Mask(0)));
        }
        running.clone().guard(&mut each.body);
        let body = &each.body;
        each.body = parse_quote!({ if #turn #body });
        self.block(&mut each.body, None);
        let (rt, variable) = (self.rt, &self.head.generics[0].ident);
        let begin: [Stmt; 2] = [
            Stmt::Expr(Expr::Verbatim(quote!(if #rt::is_known_false(#loops) { break; })), None),
            parse_quote!(let mut #turn = #loops;),
        ];
        each.body.stmts.splice(..0, begin);
        Expr::Verbatim(quote! {{
            let mut #loops = <<#variable as #rt::Element>::Mask as #rt::Mask>::constant(true);
            #each
        }})
    }

    /// Rewrites the statement at `i` of the body of a function, and those after it, if it may return early.
    pub fn early_return(&mut self, block: &mut Block, i: usize) {
        let Stmt::Expr(Expr::If(branch), _) = &block.stmts[i] else { return };
        let otherwise = branch.else_branch.as_ref().map(|(_, other)| &**other);
        let may_return = may_return(&branch.then_branch) || otherwise.is_some_and(expr_may_return);
        if !may_return || self.doubled == MOST_DOUBLED || !self.is_data(&branch.cond) {
            return;
        }
        let rest = block.stmts.split_off(i + 1);
        let Some(Stmt::Expr(Expr::If(branch), semi)) = block.stmts.last_mut() else { return };
        *semi = None;
        let other = branch.else_branch.take().map(|(_, other)| *other);
        let mut otherwise: Block = match other {
            None => parse_quote!({}),
            Some(Expr::Block(ExprBlock { block, .. })) => block,
            Some(other) => parse_quote!({ #other }),
        };
        let is_split = !returns(&branch.then_branch) && !returns(&otherwise);
        self.doubled += usize::from(is_split);
        for block in [&mut branch.then_branch, &mut otherwise] {
            match returns(block) {
                true => unwrap_return(block),
                false => {
                    // Names of the branch are not in scope afterwards.
                    if block.stmts.iter().any(|stmt| matches!(stmt, Stmt::Local(_))) {
                        let inner = &*block;
                        *block = parse_quote!({ #inner });
                    }
                    if let (Some(Stmt::Expr(_, semi @ None)), false) = (block.stmts.last_mut(), rest.is_empty()) {
                        *semi = Some(Default::default());
                    }
                    block.stmts.extend(rest.iter().cloned());
                }
            }
        }
        branch.else_branch = Some((Default::default(), Box::new(parse_quote!(#otherwise))));
    }

    /// Whether an expression is data.
    pub fn is_data(&mut self, expr: &Expr) -> bool {
        let before = (self.errors.len(), self.lets, self.loops);
        let is_data = self.value(&mut expr.clone(), None).is_data();
        self.errors.truncate(before.0);
        (self.lets, self.loops) = (before.1, before.2);
        is_data
    }
}

/// Whether a block ends with a `return` of a value.
fn returns(block: &Block) -> bool {
    matches!(block.stmts.last(), Some(Stmt::Expr(Expr::Return(ExprReturn { expr: Some(_), .. }), _)))
}

/// Whether a block returns, for some elements or for all. A `return` in a loop does not count.
fn may_return(block: &Block) -> bool {
    returns(block)
        || block.stmts.iter().any(|stmt| matches!(stmt, Stmt::Expr(expr @ Expr::If(_), _) if expr_may_return(expr)))
}

fn expr_may_return(expr: &Expr) -> bool {
    match expr {
        Expr::Block(ExprBlock { block, .. }) => may_return(block),
        Expr::If(branch) => {
            may_return(&branch.then_branch)
                || branch.else_branch.as_ref().is_some_and(|(_, other)| expr_may_return(other))
        }
        _ => false,
    }
}

/// The most times that the rest of a body is written twice, because neither branch returns for all elements.
const MOST_DOUBLED: usize = 32;

/// Replaces the final `return` by its value.
fn unwrap_return(block: &mut Block) {
    if let Some(Stmt::Expr(last, semi)) = block.stmts.last_mut()
        && let Expr::Return(ExprReturn { expr: Some(value), .. }) = last
    {
        *last = (**value).clone();
        *semi = None;
    }
}

/// Replaces the exits of a loop by assignments of its masks.
impl Running {
    /// Makes the statements after one with an exit depend on the mask. Returns whether there is an exit.
    fn guard(&mut self, block: &mut Block) -> bool {
        let Some(at) = block.stmts.iter_mut().position(|stmt| self.replace(stmt)) else { return false };
        let mut rest = Block { brace_token: block.brace_token, stmts: block.stmts.split_off(at + 1) };
        if !rest.stmts.is_empty() {
            self.guard(&mut rest);
            let turn = &self.turn;
            block.stmts.push(Stmt::Expr(parse_quote!(if #turn #rest), None));
        }
        true
    }

    fn replace(&mut self, stmt: &mut Stmt) -> bool {
        let mut exits = Exits { running: self, found: false };
        exits.visit_stmt_mut(stmt);
        exits.found
    }
}

struct Exits<'a> {
    running: &'a mut Running,
    found: bool,
}

impl VisitMut for Exits<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        self.found |= self.running.guard(block);
    }
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let Running { loops, turn } = &*self.running;
        match expr {
            Expr::Break(exit) if exit.label.is_none() && exit.expr.is_none() => {
                *expr = parse_quote!({ #loops = false; #turn = false; });
                self.found = true;
            }
            Expr::Continue(exit) if exit.label.is_none() => {
                *expr = parse_quote!({ #turn = false; });
                self.found = true;
            }
            Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) | Expr::Closure(_) => {}
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }
}
