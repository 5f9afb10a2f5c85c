//! Scans of rows: `R::scan(x, |before, x| …)`.

use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ExprClosure, ExprMethodCall, Pat};

use super::{Lowering, placeholder, shown};
use crate::ast::{Elem, Generic};
use crate::body::methods::{ROW_METHODS, is_scan};
use crate::body::{Certain, Effects, ValueKind, certain};
use crate::diag::messages;

/// The most rows that are scanned together.
const MOST_ROWS: usize = 8;

/// The number of rows that a scan takes.
fn row_count(rows: &Expr) -> usize {
    if let Expr::Tuple(tuple) = rows { tuple.elems.len() } else { 1 }
}

/// Whether a pattern certainly has another number of parts than there are rows.
fn is_wrong_pattern(pattern: &Pat, count: usize, is_one: bool) -> bool {
    match pattern {
        Pat::Tuple(tuple) => {
            let has_rest = tuple.elems.iter().any(|part| matches!(part, Pat::Rest(_)));
            !has_rest && tuple.elems.len() != count && (count > 1 || is_one)
        }
        _ => false,
    }
}

fn shown_rows(count: usize) -> String {
    if count == 1 { "one row".to_owned() } else { format!("{count} rows") }
}

impl Lowering<'_> {
    /// Reports a `let` that takes another number of results than a scan has.
    pub fn wrong_results(&mut self, pattern: &Pat, scan: &Expr) -> bool {
        let Expr::Call(call) = scan else { return false };
        let Some(rows) = call.args.first().filter(|_| self.scanned(scan).is_some()) else { return false };
        let (count, is_one) = (row_count(rows), matches!(self.certain(rows), Some(Certain::Element(_))));
        is_wrong_pattern(pattern, count, is_one) && self.report(pattern, &messages::SCAN_PATTERN, &[&shown_rows(count)])
    }

    /// The dtype variable of the rows that an expression scans.
    pub fn scanned(&self, expr: &Expr) -> Option<usize> {
        let Expr::Call(call) = expr else { return None };
        let Expr::Path(path) = &*call.func else { return None };
        let is_it = |variable: &Generic| path.path.segments[0].ident == variable.ident;
        self.head.generics.iter().position(is_it).filter(|_| is_scan(&call.func))
    }

    /// Reports rows of a scan that are no rows of real numbers.
    fn wrong_rows(&mut self, rows: &Expr) -> bool {
        let each: Vec<&Expr> = if let Expr::Tuple(tuple) = rows { tuple.elems.iter().collect() } else { vec![rows] };
        if matches!(rows, Expr::Tuple(_)) && each.len() == 1 {
            return self.report(rows, &messages::SCAN_ONE, &[&shown(each[0])]);
        }
        each.into_iter().any(|row| match self.certain(row) {
            Some(Certain::Element(i)) if self.head.is_complex(i) => {
                self.report(row, &messages::SCAN_COMPLEX, &[&shown(row)])
            }
            Some(Certain::Mask(_)) => self.report(row, &messages::SCAN_MASK, &[&shown(row), &shown(row)]),
            _ => false,
        })
    }

    /// Reports a scan of several rows where one row is expected.
    pub fn is_several(&mut self, result: &Expr) -> bool {
        let Expr::Call(call) = result else { return false };
        let Some(rows) = call.args.first().filter(|_| self.scanned(result).is_some()) else { return false };
        let count = row_count(rows);
        count > 1 && self.report(&call.func, &messages::SCAN_RESULT, &[&count])
    }

    /// Lowers a scan. Its rows, and the parameters and results of its step, are elements.
    pub fn scan(&mut self, expr: &mut Expr, variable: usize) -> ValueKind {
        let Expr::Call(call) = expr else { return ValueKind::Static };
        let mut rows_and_step = call.args.iter_mut();
        let (Some(rows), Some(Expr::Closure(step)), None) =
            (rows_and_step.next(), rows_and_step.next(), rows_and_step.next())
        else {
            self.report(call.func.clone(), &messages::SCAN_STEP, &[]);
            *expr = placeholder();
            return ValueKind::Data(None);
        };
        if self.wrong_step(step) {
            *expr = placeholder();
            return ValueKind::Data(None);
        }
        if self.wrong_rows(rows) {
            *expr = placeholder();
            return ValueKind::Data(None);
        }
        let (count, is_one) = (row_count(rows), matches!(self.certain(rows), Some(Certain::Element(_))));
        if count > MOST_ROWS {
            self.report(rows, &messages::SCAN_MANY, &[&count, &MOST_ROWS]);
            *expr = placeholder();
            return ValueKind::Data(None);
        }
        let wrong = step.inputs.iter().find(|pattern| is_wrong_pattern(pattern, count, is_one));
        if let Some(pattern) = wrong.cloned() {
            self.report(pattern, &messages::SCAN_PATTERN, &[&shown_rows(count)]);
            *expr = placeholder();
            return ValueKind::Data(None);
        }
        let elements = vec![Elem::Generic(variable); count];
        self.value(rows, Some(&elements));
        self.scopes.push();
        for pattern in &step.inputs {
            self.scopes.bind_pattern(pattern, ValueKind::Data(Some(variable)), None);
            let names: Vec<&Pat> = match pattern {
                Pat::Tuple(tuple) => tuple.elems.iter().collect(),
                pattern if is_one => vec![pattern],
                _ => vec![],
            };
            for name in names {
                if let Pat::Ident(name) = name {
                    self.scopes.know(&name.ident, Some(Certain::Element(variable)));
                }
            }
        }
        if let Some(result) = self.wrong_count(&step.body, count) {
            self.report(result, &messages::SCAN_RESULTS, &[&count]);
            *step.body = placeholder();
        }
        self.closure_body(&mut step.body, Some(&elements));
        self.scopes.pop();
        ValueKind::Data(Some(variable))
    }

    /// The result of a step, if it certainly has another number of elements than there are rows.
    fn wrong_count(&self, body: &Expr, count: usize) -> Option<Expr> {
        let result = if let Expr::Block(block) = body { certain::tail(&block.block)? } else { body };
        let is_wrong = match result {
            Expr::Tuple(tuple) => count > 1 && tuple.elems.len() != count,
            result => count > 1 && matches!(self.certain(result), Some(Certain::Element(_))),
        };
        is_wrong.then(|| result.clone())
    }

    /// Reports a step that assigns a variable of the body, calls a function of rows, or does not have two parameters.
    fn wrong_step(&mut self, step: &ExprClosure) -> bool {
        struct OfRows<'a>(Vec<&'a syn::Ident>);
        impl<'a> Visit<'a> for OfRows<'a> {
            fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
                let name = call.method.to_string();
                if ROW_METHODS.contains(&(&name, call.args.len())) && name != "position" && name != "count" {
                    self.0.push(&call.method);
                }
                visit::visit_expr_method_call(self, call);
            }
            fn visit_expr_call(&mut self, call: &'a ExprCall) {
                if let Expr::Path(path) = &*call.func
                    && let Some(name) = path.path.segments.last()
                    && path.path.segments.len() == 2
                    && ["any", "all", "scan"].iter().any(|word| name.ident == word)
                {
                    self.0.push(&name.ident);
                }
                visit::visit_expr_call(self, call);
            }
        }
        if step.inputs.len() != 2 {
            return self.report(step, &messages::SCAN_STEP, &[]);
        }
        let changed = Effects::of_expr(&Expr::Closure(step.clone())).changed;
        for name in &changed {
            self.report(name, &messages::SCAN_CHANGES, &[name]);
        }
        let mut of_rows = OfRows(vec![]);
        of_rows.visit_expr(&step.body);
        for name in &of_rows.0 {
            self.report(name, &messages::SCAN_ROWS, &[name]);
        }
        !of_rows.0.is_empty() || !changed.is_empty()
    }
}
