//! How many passes over a row the reductions of a body take, so that no more loops are compiled than are run.
//!
//! `x.sum()` takes one pass more than `x`. What can't be followed (a helper function, a loop) is taken to be anything.

use std::collections::HashMap;

use syn::visit::{self, Visit};
use syn::{Block, Expr, Ident, Pat, Stmt};

use crate::ast::{Op, text};

/// What is known of a body's reductions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Levels {
    /// How many there are at most.
    pub reductions: usize,
    /// The least and the most passes they take.
    pub least: usize,
    pub most: usize,
    /// Whether any may be a running sum.
    pub runs: bool,
}

/// What the runtime's `MOST_REDUCTIONS` and `MOST_LEVELS` are.
pub const MOST_REDUCTIONS: usize = 8;
pub const MOST_LEVELS: usize = 4;

/// Methods of a row that gather it, with the passes they take one after another, and the reductions they are made of.
const GATHERING: &[(&str, usize, usize)] = &[
    ("sum", 1, 1),
    ("mean", 1, 1),
    ("max", 1, 1),
    ("min", 1, 1),
    ("any", 1, 1),
    ("all", 1, 1),
    ("dot", 1, 1),
    ("at", 1, 1),
    ("prod", 1, 3),
    ("argmax", 2, 2),
    ("argmin", 2, 2),
    ("var", 2, 2),
    ("logsumexp", 2, 2),
    ("cumsum", 1, 1),
    ("reverse_cumsum", 1, 1),
];

/// Those that give a number for each element.
const RUNNING: [&str; 2] = ["cumsum", "reverse_cumsum"];

/// Whether a method without arguments gathers a row; with one, `max` and `min` compare elements.
pub fn gathers(method: &Ident) -> bool {
    GATHERING.iter().any(|(name, ..)| method == name)
}

pub fn of(op: &Op) -> Levels {
    let variables: Vec<String> = op.generics.iter().map(|g| g.ident.to_string()).collect();
    let mut walk = Walk { variables, names: HashMap::new(), count: 0, most: 0, certain: true, runs: false };
    for input in &op.inputs {
        walk.names.insert(text(&input.ident), 0);
    }
    walk.block(&op.function.block);
    let reductions = walk.count.min(MOST_REDUCTIONS);
    let (most, runs) = (walk.most.min(MOST_LEVELS), walk.runs);
    match walk.certain {
        true => Levels { reductions, least: most, most, runs },
        // Each pass that might be is compiled: fewer than there could be, of a body that can't be followed.
        false => Levels { reductions: MOST_REDUCTIONS, least: 0, most: MOST_LEVELS - 1, runs },
    }
}

struct Walk {
    /// The dtype variables.
    variables: Vec<String>,
    /// The passes it takes to know what a name stands for.
    names: HashMap<String, usize>,
    count: usize,
    most: usize,
    certain: bool,
    runs: bool,
}

impl Walk {
    fn block(&mut self, block: &Block) -> usize {
        let mut level = 0;
        for stmt in &block.stmts {
            level = match stmt {
                Stmt::Local(local) => {
                    let level = local.init.as_ref().map_or(0, |init| self.expr(&init.expr));
                    self.bind(&local.pat, level);
                    0
                }
                Stmt::Expr(expr, None) => self.expr(expr),
                Stmt::Expr(expr, Some(_)) => {
                    self.expr(expr);
                    0
                }
                Stmt::Item(_) | Stmt::Macro(_) => 0,
            };
        }
        level
    }

    fn bind(&mut self, pattern: &Pat, level: usize) {
        struct Names<'a>(&'a mut Walk, usize);
        impl<'a> Visit<'a> for Names<'_> {
            fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
                let known = self.0.names.entry(text(&pattern.ident)).or_default();
                *known = self.1;
            }
        }
        Names(self, level).visit_pat(pattern);
    }

    fn all<'e>(&mut self, all: impl IntoIterator<Item = &'e Expr>) -> usize {
        all.into_iter().map(|e| self.expr(e)).max().unwrap_or(0)
    }

    fn gathered(&mut self, level: usize, name: &Ident) -> usize {
        let Some((_, levels, count)) = GATHERING.iter().find(|(method, ..)| name == method) else { return level };
        self.count += count;
        self.runs |= RUNNING.iter().any(|running| name == running);
        self.most = self.most.max(level + levels);
        level + levels
    }

    fn expr(&mut self, expr: &Expr) -> usize {
        match expr {
            Expr::Path(path) => path.path.get_ident().and_then(|i| self.names.get(&text(i)).copied()).unwrap_or(0),
            Expr::Paren(e) => self.expr(&e.expr),
            Expr::Group(e) => self.expr(&e.expr),
            Expr::Reference(e) => self.expr(&e.expr),
            Expr::Unary(e) => self.expr(&e.expr),
            Expr::Cast(e) => self.expr(&e.expr),
            Expr::Binary(e) => self.all([&*e.left, &*e.right]),
            Expr::Tuple(e) => self.all(&e.elems),
            Expr::Array(e) => self.all(&e.elems),
            Expr::Block(e) => self.block(&e.block),
            Expr::Lit(_) => 0,
            Expr::MethodCall(call) => {
                let receiver = self.expr(&call.receiver);
                let level = receiver.max(self.all(&call.args));
                let compares = matches!(call.method.to_string().as_str(), "max" | "min") && !call.args.is_empty();
                if compares { level } else { self.gathered(level, &call.method) }
            }
            Expr::Call(call) => {
                let level = self.all(&call.args);
                match &*call.func {
                    // `R::any(…)`, `R::zero()`
                    Expr::Path(path) if self.variables.iter().any(|v| path.path.segments[0].ident == v) => {
                        let last = path.path.segments.last().map(|s| s.ident.clone());
                        last.map_or(level, |name| self.gathered(level, &name))
                    }
                    Expr::Path(path) if path.path.is_ident("Some") => level,
                    _ => self.lost(expr),
                }
            }
            Expr::If(branch) => {
                // Whether an optional input is there is known.
                let is_known = matches!(&*branch.cond, Expr::Let(_)) || !self.is_data(&branch.cond);
                let before = self.count;
                let condition = self.expr(&branch.cond);
                let gathered = self.count;
                let then = self.block(&branch.then_branch);
                let otherwise = branch.else_branch.as_ref().map_or(0, |(_, e)| self.expr(e));
                // A branch on what is known is taken or not, and its reductions with it.
                let is_alike = self.count == gathered && then == otherwise;
                self.certain &= is_alike || gathered > before || !is_known;
                condition.max(then).max(otherwise)
            }
            Expr::Let(e) => {
                let level = self.expr(&e.expr);
                self.bind(&e.pat, level);
                level
            }
            Expr::Assign(e) => {
                let level = self.expr(&e.right);
                self.assign(&e.left, level)
            }
            _ => self.lost(expr),
        }
    }

    fn assign(&mut self, place: &Expr, level: usize) -> usize {
        if let Expr::Path(path) = place
            && let Some(ident) = path.path.get_ident()
        {
            let known = self.names.entry(text(ident)).or_default();
            *known = (*known).max(level);
        }
        0
    }

    /// Whether an input takes part.
    fn is_data(&self, expr: &Expr) -> bool {
        struct Data<'a>(&'a Walk, bool);
        impl<'a> Visit<'a> for Data<'_> {
            fn visit_ident(&mut self, ident: &'a Ident) {
                self.1 |= self.0.names.contains_key(&text(ident));
            }
        }
        let mut found = Data(self, false);
        found.visit_expr(expr);
        found.1
    }

    /// Something that isn't followed: only what mentions no data is certain to gather nothing.
    fn lost(&mut self, expr: &Expr) -> usize {
        let is_followed = !self.is_data(expr);
        self.certain &= is_followed;
        self.runs |= !is_followed;
        struct Deepest<'a>(&'a Walk, usize);
        impl<'a> Visit<'a> for Deepest<'_> {
            fn visit_ident(&mut self, ident: &'a Ident) {
                self.1 = self.1.max(self.0.names.get(&text(ident)).copied().unwrap_or(0));
            }
            fn visit_expr(&mut self, expr: &'a Expr) {
                visit::visit_expr(self, expr);
            }
        }
        let mut deepest = Deepest(self, 0);
        deepest.visit_expr(expr);
        deepest.1
    }
}
