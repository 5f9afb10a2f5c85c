//! `if` and `match` with a value. With a condition on data, both branches are computed and one is selected. With a known condition,
//! the code is unchanged.

use proc_macro2::Span;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Block, Expr, ExprBlock, ExprIf, Ident, Pat, Stmt, parse_quote};

use super::{Lowering, placeholder, without_parens};
use crate::ast::Elem;
use crate::body::{Certain, Effects, ValueKind, is_compound};
use crate::diag::messages;
use crate::hygiene::local;

impl Lowering<'_> {
    pub fn branches(&mut self, expr: &mut Expr, want: Option<&[Elem]>) -> ValueKind {
        let Expr::If(branch) = expr else { return ValueKind::Static };
        let is_tail = std::mem::take(&mut self.is_tail);
        if self.wrong_condition(&branch.cond) {
            *expr = placeholder();
            return ValueKind::Data(None);
        }
        self.scopes.push();
        let condition = self.value(&mut branch.cond, None);
        if !condition.is_data() || self.head.is_machine() {
            self.is_tail = is_tail;
            let mut value = self.block(&mut branch.then_branch, want);
            if let Some((_, otherwise)) = &mut branch.else_branch {
                self.is_tail = is_tail;
                let other = self.value(otherwise, want);
                self.is_tail = false;
                if want.is_none() {
                    self.level_out(&mut branch.then_branch, value, other);
                    self.level_out_else(otherwise, other, value);
                }
                value = value.join(other);
                into_block(otherwise);
            }
            self.scopes.pop();
            return value;
        }
        if branch.else_branch.is_none() || !has_value(branch) {
            let statement = self.assignment(branch);
            self.scopes.pop();
            *expr = statement;
            return ValueKind::Static;
        }
        let Some((_, otherwise)) = &mut branch.else_branch else { return ValueKind::Static };
        let mut assigned = vec![];
        let mut mistakes = vec![];
        for block in [Some(&mut branch.then_branch), block_of(otherwise)].into_iter().flatten() {
            let mut effects = Effects::of([&*block]);
            effects.errors.append(&mut effects.exits);
            let (names, errors): (Vec<_>, Vec<_>) = effects.assigned.into_iter().unzip();
            // Nothing reads the variables after the result. Lowering looks for each `return`.
            if !is_tail {
                effects.errors.extend(errors.into_iter().chain(effects.returns));
            }
            assigned.push(names);
            mistakes.append(&mut effects.errors);
        }
        if !mistakes.is_empty() {
            self.scopes.pop();
            self.errors.extend(mistakes);
            *expr = placeholder();
            return ValueKind::Data(None);
        }
        self.selected += 1;
        let (then_tail, else_tail) = (last(&branch.then_branch), last_of(otherwise));
        // A result after other statements may depend on names that are not in scope here.
        let only = then_tail.filter(|_| branch.then_branch.stmts.len() == 1);
        let only_else = else_tail.filter(|_| is_only(otherwise));
        let count = want.map(<[Elem]>::len).or(then_tail.and_then(arity)).or(else_tail.and_then(arity)).unwrap_or(1);
        if count > 1 {
            let to = match want {
                Some(want) => want.to_vec(),
                None => (0..count).map(|k| self.wanted(part(only, k), part(only_else, k))).collect(),
            };
            self.is_tail = is_tail;
            self.block(&mut branch.then_branch, Some(&to));
            self.is_tail = is_tail;
            self.value(otherwise, Some(&to));
            self.is_tail = false;
            self.selected -= 1;
            self.scopes.pop();
            copy_all(&assigned, &mut branch.cond, &mut branch.then_branch, otherwise);
            *expr = self.select_each(&branch.cond, &branch.then_branch, otherwise, &to, branch.if_token.span());
            return ValueKind::Data(None);
        }
        let want = match (want, self.wanted(only, only_else)) {
            (None, mask @ Elem::Mask(_)) => Some(vec![mask]),
            (want, _) => want.map(<[Elem]>::to_vec),
        };
        let want = want.as_deref();
        self.is_tail = is_tail;
        let value = self.block(&mut branch.then_branch, want);
        self.is_tail = is_tail;
        let other = self.value(otherwise, want);
        self.is_tail = false;
        self.selected -= 1;
        let joined = value.join(other);
        if want.is_none() {
            let to = match joined {
                ValueKind::Data(variable) => variable.or(self.only_variable()).map(Elem::Generic),
                ValueKind::Flag => self.only_variable().map(Elem::Mask),
                _ => self.only_variable().map(Elem::Generic),
            };
            match to {
                // If the other branch is a mask, a flag becomes a mask too.
                Some(Elem::Generic(i)) if value == ValueKind::Flag || other == ValueKind::Flag => {
                    self.coerce_branches(&mut branch.then_branch, value, otherwise, other, Elem::Mask(i));
                }
                Some(to) => self.coerce_branches(&mut branch.then_branch, value, otherwise, other, to),
                None if value.is_static() || other.is_static() => {
                    let (shown, names) = (tail(&branch.then_branch), self.variables());
                    self.scopes.pop();
                    self.mistake(expr, &shown, &messages::AMBIGUOUS, &[&shown, &names]);
                    return ValueKind::Data(None);
                }
                None => {}
            }
        }
        self.scopes.pop();
        copy_all(&assigned, &mut branch.cond, &mut branch.then_branch, otherwise);
        if let Some(&[mask @ Elem::Mask(i)]) = want {
            *expr = self.select_each(&branch.cond, &branch.then_branch, otherwise, &[mask], branch.if_token.span());
            return ValueKind::Data(Some(i));
        }
        let (rt, span) = (self.rt, branch.if_token.span());
        let (condition, yes, no) = (without_parens(&branch.cond), closure(&branch.then_branch), closure_of(otherwise));
        *expr = Expr::Verbatim(quote_spanned!(span=> #rt::select(#condition, #yes, #no)));
        match joined {
            ValueKind::Data(variable) => ValueKind::Data(variable),
            _ => ValueKind::Data(self.only_variable()),
        }
    }

    /// The type of an `if` with these results.
    fn wanted(&self, then: Option<&Expr>, otherwise: Option<&Expr>) -> Elem {
        let certain = [then, otherwise].into_iter().flatten().find_map(|tail| self.certain(tail));
        match certain {
            Some(Certain::Element(i)) => Elem::Generic(i),
            Some(Certain::Mask(i)) => Elem::Mask(i),
            _ => self.only_variable().map_or(Elem::Any, Elem::Generic),
        }
    }

    /// Selects each part of a tuple. One part may be a mask itself.
    pub fn select_each(&self, condition: &Expr, then: &Block, otherwise: &Expr, to: &[Elem], span: Span) -> Expr {
        let rt = self.rt;
        let [mask, yes, no] = ["mask", "yes", "no"].map(|name| local(name, 0));
        let is_one = to.len() == 1;
        let each = to.iter().enumerate().map(|(k, to)| {
            let at = syn::Index::from(k);
            let (a, b) = if is_one { (quote!(#yes), quote!(#no)) } else { (quote!(#yes.#at), quote!(#no.#at)) };
            match to {
                Elem::Mask(_) => quote_spanned!(span=> #rt::or(#rt::and(#mask, #a), #rt::and(#rt::not(#mask), #b))),
                _ => quote_spanned!(span=> #rt::select(#mask, || #a, || #b)),
            }
        });
        let condition = without_parens(condition);
        let value = if to.len() == 1 { quote!(#(#each)*) } else { quote!((#(#each),*)) };
        Expr::Verbatim(quote_spanned!(span=> {
            let #mask = #condition;
            let #yes = #rt::branch(|| #then);
            let #no = #rt::branch(|| #otherwise);
            #value
        }))
    }

    fn coerce_branches(
        &mut self,
        then: &mut Block,
        value: ValueKind,
        otherwise: &mut Expr,
        other: ValueKind,
        to: Elem,
    ) {
        if let Some(Stmt::Expr(last, None)) = then.stmts.last_mut() {
            self.coerce(last, value, to);
        }
        match otherwise {
            Expr::Block(ExprBlock { block, .. }) => {
                if let Some(Stmt::Expr(last, None)) = block.stmts.last_mut() {
                    self.coerce(last, other, to);
                }
            }
            other_expr => self.coerce(other_expr, other, to),
        }
    }

    /// Converts a literal branch to data if the other branch is data.
    fn level_out(&mut self, block: &mut Block, value: ValueKind, other: ValueKind) {
        if let (true, ValueKind::Data(variable)) = (value.is_static(), other)
            && let Some(Stmt::Expr(last, None)) = block.stmts.last_mut()
        {
            self.coerce_beside(last, value, variable, true);
        }
    }

    fn level_out_else(&mut self, otherwise: &mut Expr, value: ValueKind, other: ValueKind) {
        match otherwise {
            Expr::Block(ExprBlock { block, .. }) => self.level_out(block, value, other),
            expr => {
                if let (true, ValueKind::Data(variable)) = (value.is_static(), other) {
                    self.coerce_beside(expr, value, variable, true);
                }
            }
        }
    }

    pub fn arms(&mut self, expr: &mut Expr, want: Option<&[Elem]>) -> ValueKind {
        let Expr::Match(choice) = expr else { return ValueKind::Static };
        let bound = match self.value(&mut choice.expr, None) {
            ValueKind::Data(_) if !self.head.is_machine() => {
                let at = choice.match_token;
                self.mistake(expr, at, &messages::MATCH, &[]);
                return ValueKind::Data(None);
            }
            ValueKind::Option(variable) => ValueKind::Data(variable),
            other => other,
        };
        let mut values = vec![];
        for arm in &mut choice.arms {
            self.scopes.push();
            match self.head.is_machine() {
                true => self.bind_flow(&arm.pat),
                false => self.scopes.bind_pattern(&arm.pat, bound, None),
            }
            if let Pat::Guard(guard) = &mut arm.pat {
                self.value(&mut guard.guard, None);
            }
            values.push(self.value(&mut arm.body, want));
            self.scopes.pop();
        }
        let joined = values.iter().copied().reduce(ValueKind::join).unwrap_or(ValueKind::Static);
        if let (ValueKind::Data(variable), None) = (joined, want) {
            for (arm, value) in choice.arms.iter_mut().zip(values) {
                match &mut *arm.body {
                    Expr::Block(ExprBlock { block, .. }) => self.level_out(block, value, joined),
                    body => self.coerce_beside(body, value, variable, true),
                }
            }
        }
        joined
    }
}

/// Whether an `if` may have a value: a branch ends with an expression.
fn has_value(branch: &ExprIf) -> bool {
    let otherwise = branch.else_branch.as_ref().is_some_and(|(_, e)| is_value(e));
    otherwise || last(&branch.then_branch).is_some_and(is_value)
}

pub fn is_value(expr: &Expr) -> bool {
    match expr {
        Expr::If(branch) => has_value(branch),
        Expr::Block(inner) => last(&inner.block).is_some_and(is_value),
        Expr::Binary(binary) => !is_compound(&binary.op),
        Expr::Assign(_) | Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) | Expr::Break(_) | Expr::Continue(_) => {
            false
        }
        _ => true,
    }
}

/// The block of an `else`, unless another `if` follows.
fn block_of(otherwise: &mut Expr) -> Option<&mut Block> {
    if let Expr::Block(ExprBlock { block, .. }) = otherwise { Some(block) } else { None }
}

/// Lets the branches assign copies of variables.
fn copy_all(assigned: &[Vec<Ident>], condition: &mut Expr, then: &mut Block, otherwise: &mut Expr) {
    let mut names = assigned.iter().flatten().peekable();
    if names.peek().is_some() {
        // The user declared them `mut`, which nothing else may need.
        *condition = parse_quote!({ #(let _ = &mut #names;)* #condition });
    }
    let blocks = [Some(then), block_of(otherwise)].into_iter().flatten();
    blocks.zip(assigned).for_each(|(block, names)| copy(names, &[], block));
}

/// Lets a block assign copies of variables. Those in `unset` have no value yet.
pub fn copy(names: &[Ident], unset: &[Ident], block: &mut Block) {
    let copied = |name: &Ident| match unset.contains(name) {
        true => parse_quote!(#[allow(unused_mut)] let mut #name;),
        false => parse_quote!(#[allow(unused_assignments)] let mut #name = #name;),
    };
    block.stmts.splice(..0, names.iter().map(copied));
}

/// The final expression of a block.
pub fn last(block: &Block) -> Option<&Expr> {
    match block.stmts.last() {
        Some(Stmt::Expr(last, None)) => Some(last),
        _ => None,
    }
}

/// That of an `else`.
fn last_of(otherwise: &Expr) -> Option<&Expr> {
    match otherwise {
        Expr::Block(ExprBlock { block, .. }) => last(block),
        Expr::If(branch) => last(&branch.then_branch),
        other => Some(other),
    }
}

/// Whether there is nothing before the final expression of an `else`.
fn is_only(otherwise: &Expr) -> bool {
    match otherwise {
        Expr::Block(ExprBlock { block, .. }) => block.stmts.len() == 1,
        Expr::If(branch) => branch.then_branch.stmts.len() == 1,
        _ => true,
    }
}

/// The number of parts of a tuple.
fn arity(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Tuple(tuple) if tuple.elems.len() > 1 => Some(tuple.elems.len()),
        _ => None,
    }
}

fn part(expr: Option<&Expr>, k: usize) -> Option<&Expr> {
    match expr {
        Some(Expr::Tuple(tuple)) => tuple.elems.get(k),
        _ => None,
    }
}

/// The final expression of a block, or the block itself.
fn tail(block: &Block) -> proc_macro2::TokenStream {
    match block.stmts.last() {
        Some(Stmt::Expr(last, None)) => last.to_token_stream(),
        _ => block.to_token_stream(),
    }
}

pub fn closure(block: &Block) -> proc_macro2::TokenStream {
    match &block.stmts[..] {
        [Stmt::Expr(only, None)] => quote!(|| #only),
        _ => quote!(|| #block),
    }
}

fn closure_of(expr: &Expr) -> proc_macro2::TokenStream {
    match expr {
        Expr::Block(ExprBlock { block, .. }) => closure(block),
        other => quote!(|| #other),
    }
}

/// Converts to a block, because only a block or an `if` may follow `else`.
fn into_block(expr: &mut Expr) {
    if !matches!(expr, Expr::Block(_) | Expr::If(_)) {
        let inner = &*expr;
        *expr = syn::parse_quote!({ #inner });
    }
}
