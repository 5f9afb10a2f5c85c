//! Whether a result of a row body has one value for each element or one for the row, where this is certain.

use std::collections::{HashMap, HashSet};

use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprAssign, ExprBinary, Pat, Stmt};

use super::is_compound;
use super::methods::{ROW_FUNCTIONS, ROW_METHODS, is_scan, renamed, returns_element};
use crate::ast::{Op, text};

/// The number of values of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Extent {
    One,
    Row,
    Unknown,
}

impl Extent {
    /// The extent of a value that is computed from two values.
    fn join(self, other: Extent) -> Extent {
        match (self, other) {
            (Extent::Row, _) | (_, Extent::Row) => Extent::Row,
            (Extent::Unknown, _) | (_, Extent::Unknown) => Extent::Unknown,
            _ => Extent::One,
        }
    }
}

/// What certainly has a value for each element of the row.
pub struct Along {
    /// The results: their positions and expressions.
    pub results: Vec<(usize, Expr)>,
    /// The positions `i` in `x.at(i)`.
    pub positions: Vec<Expr>,
}

pub fn along_the_row(op: &Op) -> Along {
    let inputs = op.inputs.iter().map(|input| {
        (text(&input.ident), if input.core.is_along() && !input.is_index() { Extent::Row } else { Extent::One })
    });
    let attrs = op.attrs.iter().map(|attr| (text(&attr.ident), Extent::One));
    let mut assigned = Assigned(HashSet::new());
    assigned.visit_block(&op.function.block);
    let mut walk = Walk { scopes: vec![inputs.chain(attrs).collect()], assigned: assigned.0, positions: Vec::new() };
    walk.scopes.push(HashMap::new());
    let tail = walk.statements(&op.function.block);
    let parts: Vec<&Expr> = match tail {
        Some(Expr::Tuple(tuple)) => tuple.elems.iter().collect(),
        Some(other) => vec![other],
        None => vec![],
    };
    let parts: Vec<(&Expr, Extent)> = parts.into_iter().map(|part| (part, walk.expr(part))).collect();
    let are_known = parts.len() == op.returned().count();
    let results = parts.into_iter().enumerate().filter(|(_, (_, extent))| are_known && *extent == Extent::Row);
    Along { results: results.map(|(k, (part, _))| (k, part.clone())).collect(), positions: walk.positions }
}

/// The names that are assigned after they were bound.
struct Assigned(HashSet<String>);

impl<'a> Visit<'a> for Assigned {
    fn visit_expr_assign(&mut self, e: &'a ExprAssign) {
        self.place(&e.left);
        visit::visit_expr_assign(self, e);
    }
    fn visit_expr_binary(&mut self, e: &'a ExprBinary) {
        if is_compound(&e.op) {
            self.place(&e.left);
        }
        visit::visit_expr_binary(self, e);
    }
}

impl Assigned {
    fn place(&mut self, place: &Expr) {
        self.0.extend(super::root(place).map(text));
    }
}

struct Walk {
    scopes: Vec<HashMap<String, Extent>>,
    assigned: HashSet<String>,
    positions: Vec<Expr>,
}

impl Walk {
    /// Binds the names of the `let`s, and returns the final expression.
    fn statements<'a>(&mut self, block: &'a Block) -> Option<&'a Expr> {
        let mut tail = None;
        for stmt in &block.stmts {
            match stmt {
                Stmt::Local(local) => {
                    let extent = local.init.as_ref().map_or(Extent::Unknown, |init| self.expr(&init.expr));
                    self.bind(&local.pat, extent);
                }
                Stmt::Expr(expr, None) => tail = Some(expr),
                _ => {}
            }
        }
        tail
    }

    fn bind(&mut self, pattern: &Pat, extent: Extent) {
        let mut names = Names(vec![]);
        names.visit_pat(pattern);
        let is_plain = matches!(pattern, Pat::Ident(_) | Pat::Type(_));
        let scope = self.scopes.last_mut().expect("a scope is open");
        for name in names.0 {
            let extent = if is_plain && !self.assigned.contains(&name) { extent } else { Extent::Unknown };
            scope.insert(name, extent);
        }
    }

    fn block(&mut self, block: &Block) -> Extent {
        self.scopes.push(HashMap::new());
        let extent = self.statements(block).map_or(Extent::Unknown, |tail| self.expr(tail));
        self.scopes.pop();
        extent
    }

    fn all<'a>(&mut self, all: impl IntoIterator<Item = &'a Expr>) -> Extent {
        all.into_iter().map(|e| self.expr(e)).fold(Extent::One, Extent::join)
    }

    fn expr(&mut self, expr: &Expr) -> Extent {
        match expr {
            Expr::Lit(_) => Extent::One,
            Expr::Paren(inner) => self.expr(&inner.expr),
            Expr::Group(inner) => self.expr(&inner.expr),
            Expr::Unary(inner) => self.expr(&inner.expr),
            Expr::Path(path) => {
                let Some(name) = path.path.get_ident().map(text) else { return Extent::One };
                let known = self.scopes.iter().rev().find_map(|scope| scope.get(&name).copied());
                known.filter(|_| !self.assigned.contains(&name)).unwrap_or(Extent::Unknown)
            }
            Expr::Binary(binary) => self.all([&*binary.left, &*binary.right]),
            Expr::Block(inner) => self.block(&inner.block),
            Expr::If(branch) if !matches!(*branch.cond, Expr::Let(_)) => {
                let condition = self.expr(&branch.cond);
                let then = self.block(&branch.then_branch);
                let otherwise = branch.else_branch.as_ref().map_or(Extent::Unknown, |(_, e)| self.expr(e));
                match condition {
                    // One of the branches is the result.
                    Extent::One | Extent::Unknown if then != otherwise => Extent::Unknown,
                    _ => condition.join(then).join(otherwise),
                }
            }
            Expr::Call(call) if is_scan(&call.func) => Extent::Row,
            Expr::MethodCall(call) => {
                let (name, given) = (call.method.to_string(), call.args.len());
                let given_values = self.all(&call.args);
                let values = self.expr(&call.receiver).join(given_values);
                if name == "at" && given_values == Extent::Row {
                    self.positions.extend(call.args.first().cloned());
                }
                match name.as_str() {
                    "cumsum" | "reverse_cumsum" | "position" => Extent::Row,
                    name if ROW_FUNCTIONS.contains(&name) => Extent::Row,
                    "detach" | "to_index" => values,
                    _ if ROW_METHODS.contains(&(name.as_str(), given)) => Extent::One,
                    name if returns_element(renamed(name, given)) => values,
                    _ => Extent::Unknown,
                }
            }
            _ => Extent::Unknown,
        }
    }
}

struct Names(Vec<String>);

impl<'a> Visit<'a> for Names {
    fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
        self.0.push(text(&pattern.ident));
    }
}
