//! The number of passes over a row that the reductions of a body need, so that the macro compiles only loops that run.
//!
//! `x.sum()` needs one pass more than `x`. Code that the analysis cannot follow (a helper function, a loop) may need any
//! number.

use std::collections::HashMap;
use std::mem;

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Block, Expr, Ident, Member, Pat, Stmt, parse_quote};

use super::{Effects, is_compound, mentions};
use crate::ast::{Op, text};

/// The reductions of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Levels {
    /// The maximum number of reductions.
    pub reductions: usize,
    /// The minimum and maximum number of passes.
    pub least: usize,
    pub most: usize,
    /// Whether a reduction may be a running sum.
    pub runs: bool,
}

/// Equal to `MOST_REDUCTIONS` and `MOST_LEVELS` of the runtime.
pub const MOST_REDUCTIONS: usize = 8;
pub const MOST_LEVELS: usize = 4;

/// Methods that reduce a row, each with its number of consecutive passes and its number of reductions.
const GATHERING: &[(&str, usize, usize)] = &[
    ("sum", 1, 1),
    ("mean", 1, 1),
    ("max", 1, 1),
    ("min", 1, 1),
    ("any", 1, 1),
    ("all", 1, 1),
    ("dot", 1, 1),
    ("at", 1, 1),
    ("prod", 1, 5),
    ("argmax", 2, 2),
    ("argmin", 2, 2),
    ("var", 2, 2),
    ("std", 2, 2),
    ("logsumexp", 2, 2),
    ("cumsum", 1, 1),
    ("reverse_cumsum", 1, 1),
];

/// Those that return a number for each element.
const RUNNING: [&str; 2] = ["cumsum", "reverse_cumsum"];

/// Whether a method without arguments reduces a row. With an argument, `max` and `min` compare elements.
pub fn gathers(method: &Ident) -> bool {
    GATHERING.iter().any(|(name, ..)| method == name)
}

pub fn of(op: &Op) -> Levels {
    let walk = walk(op);
    let reductions = walk.count.min(MOST_REDUCTIONS);
    let (most, runs) = (walk.most.min(MOST_LEVELS), walk.runs);
    match walk.certain {
        true => Levels { reductions, least: most, most, runs },
        // Every possible number of passes is compiled. The limit is lower for a body that cannot be followed.
        false => Levels { reductions: MOST_REDUCTIONS, least: 0, most: MOST_LEVELS - 1, runs },
    }
}

/// The number of reductions, and of those that depend on one another, if either certainly exceeds its limit.
pub fn excess(op: &Op) -> Option<(usize, usize)> {
    let walk = walk(op);
    let exceeds = walk.count > MOST_REDUCTIONS || walk.most > MOST_LEVELS;
    (walk.certain && exceeds).then_some((walk.count, walk.most))
}

fn walk(op: &Op) -> Walk {
    let variables = op.generics.iter().map(|g| g.ident.to_string()).collect();
    let names = op.inputs.iter().map(|input| (text(&input.ident), Passes::Row(0))).collect();
    let mut walk = Walk { variables, scopes: vec![names], count: 0, most: 0, certain: true, runs: false };
    walk.block(&op.function.block);
    walk
}

/// The number of passes needed to know a value.
#[derive(Clone, Debug)]
enum Passes {
    /// A value that no row contributes to.
    Static,
    Row(usize),
    /// The passes of each element of a tuple.
    Each(Vec<Passes>),
}

impl Passes {
    fn depth(&self) -> Option<usize> {
        match self {
            Passes::Static => None,
            Passes::Row(level) => Some(*level),
            Passes::Each(all) => all.iter().filter_map(Passes::depth).max(),
        }
    }

    /// The passes of all elements together.
    fn flat(&self) -> Passes {
        self.depth().map_or(Passes::Static, Passes::Row)
    }

    /// The passes of a value that is one of two values, or computed from both.
    fn join(self, other: Passes) -> Passes {
        match (self, other) {
            (Passes::Each(a), Passes::Each(b)) if a.len() == b.len() => {
                Passes::Each(a.into_iter().zip(b).map(|(a, b)| a.join(b)).collect())
            }
            (a, b) => a.depth().max(b.depth()).map_or(Passes::Static, Passes::Row),
        }
    }

    /// Whether both values need the same passes.
    fn is_like(&self, other: &Passes) -> bool {
        match (self, other) {
            (Passes::Each(a), Passes::Each(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_like(b)),
            (Passes::Each(_), _) | (_, Passes::Each(_)) => false,
            (a, b) => a.depth().unwrap_or(0) == b.depth().unwrap_or(0),
        }
    }
}

struct Walk {
    /// The dtype variables.
    variables: Vec<String>,
    /// The passes of the names in scope, innermost last.
    scopes: Vec<HashMap<String, Passes>>,
    count: usize,
    most: usize,
    certain: bool,
    runs: bool,
}

impl Walk {
    fn block(&mut self, block: &Block) -> Passes {
        self.scopes.push(HashMap::new());
        let mut passes = Passes::Static;
        for stmt in &block.stmts {
            passes = match stmt {
                Stmt::Local(local) => {
                    if let Some(init) = &local.init {
                        self.certain &= init.diverge.is_none();
                        let passes = self.expr(&init.expr);
                        self.bind(&local.pat, passes);
                    } else {
                        self.bind(&local.pat, Passes::Static);
                    }
                    Passes::Static
                }
                Stmt::Expr(expr, None) => self.expr(expr),
                Stmt::Expr(expr, Some(_)) => {
                    self.expr(expr);
                    Passes::Static
                }
                Stmt::Macro(stmt) => self.lost(stmt),
                Stmt::Item(_) => Passes::Static,
            };
        }
        self.scopes.pop();
        passes
    }

    fn bind(&mut self, pattern: &Pat, passes: Passes) {
        match (pattern, passes) {
            (Pat::Ident(name), passes) => {
                self.scopes.last_mut().expect("a scope is open").insert(text(&name.ident), passes);
            }
            (Pat::Type(inner), passes) => self.bind(&inner.pat, passes),
            (Pat::Paren(inner), passes) => self.bind(&inner.pat, passes),
            (Pat::TupleStruct(some), passes) if some.elems.len() == 1 => self.bind(&some.elems[0], passes),
            (Pat::Tuple(tuple), Passes::Each(all)) if is_even(&tuple.elems, &all) => {
                tuple.elems.iter().zip(all).for_each(|(pattern, passes)| self.bind(pattern, passes));
            }
            (Pat::Slice(slice), Passes::Each(all)) if is_even(&slice.elems, &all) => {
                slice.elems.iter().zip(all).for_each(|(pattern, passes)| self.bind(pattern, passes));
            }
            (_, passes) => {
                self.certain &= !matches!(passes, Passes::Each(_));
                struct Names<'a>(&'a mut Walk, Passes);
                impl<'a> Visit<'a> for Names<'_> {
                    fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
                        let scope = self.0.scopes.last_mut().expect("a scope is open");
                        scope.insert(text(&pattern.ident), self.1.clone());
                        visit::visit_pat_ident(self, pattern);
                    }
                }
                Names(self, passes.flat()).visit_pat(pattern);
            }
        }
    }

    fn all<'e>(&mut self, all: impl IntoIterator<Item = &'e Expr>) -> Passes {
        all.into_iter().map(|e| self.expr(e).flat()).reduce(Passes::join).unwrap_or(Passes::Static)
    }

    fn gathered(&mut self, passes: Passes, name: &Ident) -> Passes {
        let Some((_, levels, count)) = GATHERING.iter().find(|(method, ..)| name == method) else { return passes };
        let level = passes.depth().unwrap_or(0) + levels;
        self.count += count;
        self.runs |= RUNNING.iter().any(|running| name == running);
        self.most = self.most.max(level);
        Passes::Row(level)
    }

    fn expr(&mut self, expr: &Expr) -> Passes {
        match expr {
            Expr::Path(path) => path.path.get_ident().and_then(|i| self.get(i)).cloned().unwrap_or(Passes::Static),
            Expr::Paren(e) => self.expr(&e.expr),
            Expr::Group(e) => self.expr(&e.expr),
            Expr::Reference(e) => {
                // The value may be mutated through the reference.
                self.certain &= e.mutability.is_none();
                self.expr(&e.expr)
            }
            Expr::Unary(e) => self.expr(&e.expr),
            Expr::Cast(e) => self.expr(&e.expr),
            Expr::Binary(e) => {
                let passes = self.all([&*e.left, &*e.right]);
                if is_compound(&e.op) { self.assign(&e.left, passes) } else { passes }
            }
            Expr::Tuple(e) => Passes::Each(e.elems.iter().map(|e| self.expr(e)).collect()),
            Expr::Array(e) => Passes::Each(e.elems.iter().map(|e| self.expr(e)).collect()),
            Expr::Field(e) => match (self.expr(&e.base), &e.member) {
                (Passes::Each(all), Member::Unnamed(at)) if (at.index as usize) < all.len() => {
                    all[at.index as usize].clone()
                }
                (Passes::Static, _) => Passes::Static,
                _ => self.lost(expr),
            },
            Expr::Block(e) => self.block(&e.block),
            Expr::Lit(_) => Passes::Static,
            Expr::MethodCall(call) => {
                let receiver = self.expr(&call.receiver).flat();
                let passes = receiver.join(self.all(&call.args));
                let compares = matches!(call.method.to_string().as_str(), "max" | "min") && !call.args.is_empty();
                // The presence of an optional input is known.
                let asks = matches!(call.method.to_string().as_str(), "is_some" | "is_none");
                match passes.depth() {
                    Some(_) if asks => Passes::Static,
                    Some(_) if !compares => self.gathered(passes, &call.method),
                    _ => passes,
                }
            }
            Expr::Call(call) => match &*call.func {
                // `R::any(…)`, `R::zero()`
                Expr::Path(path) if self.variables.iter().any(|v| path.path.segments[0].ident == v) => {
                    let passes = self.all(&call.args).join(Passes::Row(0));
                    let last = path.path.segments.last().map(|s| s.ident.clone());
                    last.map_or(passes.clone(), |name| self.gathered(passes, &name))
                }
                Expr::Path(path) if path.path.is_ident("Some") && call.args.len() == 1 => self.expr(&call.args[0]),
                _ => self.lost(expr),
            },
            Expr::If(branch) => self.choice(branch),
            Expr::Let(e) => {
                let passes = self.expr(&e.expr);
                self.bind(&e.pat, passes.clone());
                passes
            }
            Expr::Assign(e) => {
                let passes = self.expr(&e.right);
                self.assign(&e.left, passes)
            }
            // The arguments of the closure are unknown.
            Expr::Closure(_) => {
                self.certain = false;
                self.lost(expr)
            }
            _ => self.lost(expr),
        }
    }

    fn choice(&mut self, branch: &syn::ExprIf) -> Passes {
        self.scopes.push(HashMap::new());
        let condition = self.expr(&branch.cond);
        let is_known = matches!(&*branch.cond, Expr::Let(_)) || condition.depth().is_none();
        let (count, before) = (self.count, self.scopes.clone());
        let then = self.block(&branch.then_branch);
        let mut after = mem::replace(&mut self.scopes, before);
        after.pop();
        self.scopes.pop();
        let otherwise = branch.else_branch.as_ref().map_or(Passes::Static, |(_, e)| self.expr(e));
        let mut is_alike = self.count == count && then.is_like(&otherwise);
        for (scope, then) in self.scopes.iter_mut().zip(after) {
            for (name, passes) in then {
                let otherwise = scope.entry(name).or_insert(Passes::Static);
                is_alike &= passes.is_like(otherwise);
                *otherwise = mem::replace(otherwise, Passes::Static).join(passes);
            }
        }
        if !is_known {
            // The condition selects the value of each variable.
            let otherwise: Option<Block> = branch.else_branch.as_ref().map(|(_, e)| parse_quote!({ #e }));
            for (name, _) in Effects::of([Some(&branch.then_branch), otherwise.as_ref()].into_iter().flatten()).assigned
            {
                let known = self.get(&name).cloned().unwrap_or(Passes::Static);
                self.assign(&parse_quote!(#name), known.join(condition.clone()));
            }
        }
        // A branch on a known condition may not run, and neither do its reductions and assignments.
        self.certain &= is_alike || !is_known;
        match is_known {
            true => then.join(otherwise),
            false => condition.join(then).join(otherwise).flat(),
        }
    }

    fn assign(&mut self, place: &Expr, passes: Passes) -> Passes {
        match place {
            Expr::Path(path) => {
                let name = path.path.get_ident().map(text).unwrap_or_default();
                match self.scopes.iter_mut().rev().find_map(|scope| scope.get_mut(&name)) {
                    Some(known) => *known = passes,
                    None => self.certain = false,
                }
            }
            Expr::Paren(inner) => return self.assign(&inner.expr, passes),
            // An assignment to a part of a value. If it cannot be followed, the result is uncertain.
            _ => {
                self.lost(place);
                self.certain &= passes.depth().is_none();
            }
        }
        Passes::Static
    }

    fn get(&self, name: &Ident) -> Option<&Passes> {
        let name = text(name);
        self.scopes.iter().rev().find_map(|scope| scope.get(&name))
    }

    /// Code that cannot be followed. It is certain to contain no reduction only if it mentions no row.
    fn lost(&mut self, what: impl ToTokens) -> Passes {
        let is_row = |name: &Ident| self.get(name).is_some_and(|passes| passes.depth().is_some());
        let is_variable = |name: &Ident| self.variables.iter().any(|v| name == v);
        if !mentions(what.to_token_stream(), &|name| is_row(name) || is_variable(name)) {
            return Passes::Static;
        }
        (self.certain, self.runs) = (false, true);
        Passes::Row(0)
    }
}

/// Whether each element is bound to its own name.
fn is_even(patterns: &syn::punctuated::Punctuated<Pat, syn::Token![,]>, all: &[Passes]) -> bool {
    patterns.len() == all.len() && !patterns.iter().any(|p| matches!(p, Pat::Rest(_)))
}
