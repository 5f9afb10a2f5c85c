//! Lists, iterators and closures: which items are plain numbers, and errors about methods that lists of elements lack.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Expr, ExprClosure, ExprMethodCall, Ident};

use super::Lowering;

use super::operand::shown;
use crate::ast::Level;
use crate::body::flow::tables::{SAME, is_in};
use crate::body::methods::{LIST_METHODS, OTHER_CELL_METHODS, OTHER_METHODS, ROW_METHODS, bound_of, renamed};
use crate::body::{Certain, Item, ValueKind, mentions};
use crate::diag::messages;

impl Lowering<'_> {
    /// Whether an element is used like a list.
    pub fn wrong_list(&mut self, list: &Expr, at: impl ToTokens) -> bool {
        match self.certain(list) {
            Some(Certain::Element(_)) => {
                let shown = shown(list);
                match self.head.level {
                    Level::Row => self.report(at, &messages::ROW_IS_NO_LIST, &[&shown]),
                    _ => self.report(at, &messages::ELEMENT_IS_NO_LIST, &[&shown]),
                }
            }
            _ => false,
        }
    }

    /// `(0..n).map(|k| x / k).sum()`
    pub fn wrong_sum(&mut self, call: &ExprMethodCall) -> bool {
        let (Expr::MethodCall(items), "sum" | "product") = (&*call.receiver, &*call.method.to_string()) else {
            return false;
        };
        let mut list = &items.receiver;
        while let Expr::MethodCall(inner) = &**list {
            list = &inner.receiver;
        }
        // `[x, y].iter().sum()`
        let (list, name) = (list.clone(), items.method.to_string());
        let adds = is_in("iter into_iter map copied cloned zip rev", &name)
            && self.certain(&list).is_none()
            && self.is_data(&list);
        let maps = adds || name == "map" && items.args.iter().any(|arg| self.takes_data(arg));
        maps && self.report(&call.method, &messages::LIST_METHOD, &[&call.method, &"write a `for` loop"])
    }

    /// Whether a call on plain numbers folds them to an element: `(0..n).fold(0.0, |total, k| total + x / k)`.
    pub fn folds_elements(&self, call: &ExprMethodCall) -> bool {
        call.method == "fold" && call.args.iter().skip(1).any(|arg| self.takes_data(arg))
    }

    /// Whether the items of an expression are plain numbers: a range, or an attribute that is a list.
    pub fn has_numbers(&self, items: &Expr) -> bool {
        match items {
            Expr::Paren(inner) => self.has_numbers(&inner.expr),
            Expr::Reference(inner) => self.has_numbers(&inner.expr),
            Expr::MethodCall(call) => {
                let keeps = call.method == "enumerate" || is_in(SAME, &call.method.to_string());
                keeps && self.has_numbers(&call.receiver)
            }
            Expr::Path(_) => self.certain(items) == Some(Certain::Rust("a list")),
            items => is_range(items),
        }
    }

    fn takes_data(&self, arg: &Expr) -> bool {
        matches!(arg, Expr::Closure(closure) if self.uses_data(closure))
    }

    /// Whether a closure uses data that is not one of its parameters.
    pub fn uses_data(&self, closure: &ExprClosure) -> bool {
        let own: TokenStream = closure.inputs.iter().map(ToTokens::to_token_stream).collect();
        let is_own = |name: &Ident| mentions(own.clone(), &|own| own == name);
        self.mentioned_beside(closure.body.to_token_stream(), &is_own).is_some()
    }

    /// Whether a method that Rust has for its own numbers is called on elements of a cell.
    pub fn wrong_cell_method(&mut self, call: &ExprMethodCall, items: &Item) -> bool {
        let name = call.method.to_string();
        let help = OTHER_CELL_METHODS.iter().find(|(other, _)| *other == name).map(|(_, help)| *help);
        let are_elements = matches!(items, Item::One(ValueKind::Data(_)));
        match help {
            Some(help) if are_elements => self.report(&call.method, &messages::LIST_METHOD, &[&name, &help]),
            _ => false,
        }
    }

    /// Whether elements of a cell lack a method, or need another bound for it.
    pub fn wrong_element_method(&mut self, call: &ExprMethodCall, variable: usize) -> bool {
        let name = call.method.to_string();
        // Those of the traits of Rust.
        if matches!(&*name, "cmp" | "partial_cmp" | "lt" | "le" | "gt" | "ge" | "into") {
            return false;
        }
        if let Some((_, help)) = OTHER_METHODS.iter().find(|(other, _)| *other == name) {
            return self.report(&call.method, &messages::NO_METHOD, &[&name, help]);
        }
        let bound = bound_of(renamed(&name, call.args.len()));
        bound.is_some_and(|bound| self.wrong_bound(&call.method, &name, bound, variable, ""))
    }

    /// Whether a method of rows is called on the slice of a cell body.
    pub fn wrong_slice(&mut self, call: &ExprMethodCall) -> bool {
        let Expr::Path(path) = &*call.receiver else { return false };
        let binding = path.path.get_ident().and_then(|name| self.scopes.get(name));
        let is_slice = binding.is_some_and(|b| b.certain == Some(Certain::Rust("a slice")));
        let name = call.method.to_string();
        let is_list = LIST_METHODS.contains(&name.as_str());
        let of_rows = ROW_METHODS.contains(&(name.as_str(), call.args.len())) && !is_list;
        is_slice && of_rows && self.report(&call.method, &messages::SLICE_METHOD, &[&shown(&call.receiver), &name])
    }
}

pub fn is_range(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(inner) => is_range(&inner.expr),
        expr => matches!(expr, Expr::Range(_)),
    }
}
