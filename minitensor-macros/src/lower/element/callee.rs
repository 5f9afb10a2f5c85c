//! Errors about methods, functions and macros that elements lack, or that are called with wrong arguments.

use proc_macro2::{TokenStream, TokenTree};
use syn::{Expr, ExprCall, ExprMethodCall, Ident, Lit, Macro};

use super::Lowering;
use super::lists::is_range;
use super::operand::shown;
use crate::ast::{Level, text};
use crate::body::Certain;
use crate::body::methods::{
    COMPLEX_ROW_METHODS, DATA_METHODS, LIST_METHODS, OF_FLOAT_ROWS, OTHER_COMPLEX_METHODS, OTHER_ITEMS, OTHER_METHODS,
    OTHER_ROW_METHODS, ROW_METHODS, RUST_METHODS, arguments, bound_of, bounds_with, is_known, renamed,
};
use crate::diag::messages;
use minitensor_schema::message::counted;

/// Macros that show values, and those that test them.
const SHOWING: &[&str] = &["println", "print", "eprintln", "eprint", "dbg", "format", "write", "writeln", "panic"];
const TESTING: &[&str] =
    &["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne", "matches"];

/// Whether bits, which are integers, lack a method. `of_rows`: whether rows have it.
fn lacks_method(name: &str, of_rows: bool) -> bool {
    bound_of(name).map_or(of_rows, |bound| !bounds_with(bound).contains(&"Int"))
}

impl Lowering<'_> {
    /// Whether a method does not apply to its receiver or arguments.
    pub fn wrong_method(&mut self, call: &ExprMethodCall) -> bool {
        let (name, given) = (call.method.to_string(), call.args.len());
        let ours = renamed(&name, given);
        let is_ours = is_known(ours);
        let of_rows = ROW_METHODS.contains(&(name.as_str(), given));
        let is_row = self.head.level == Level::Row;
        if let Some(data) =
            call.args.iter().find(|arg| matches!(self.certain(without_borrow(arg)), Some(Certain::Element(_))))
            && is_range(&call.receiver)
            && name == "contains"
        {
            return self.report(&call.receiver, &messages::RANGE, &[&shown(without_borrow(data))]);
        }
        let receiver = self.certain(&call.receiver);
        let other = OTHER_COMPLEX_METHODS.iter().find(|(other, _)| *other == name).map(|(_, ours)| ours);
        if let (Some(Certain::Element(i)), Some(ours)) = (receiver, other)
            && self.head.is_complex(i)
        {
            return self.report(&call.method, &messages::NO_COMPLEX, &[&"method", &name, &format!("write `{ours}`")]);
        }
        match receiver {
            Some(Certain::Element(i)) if self.head.is_complex(i) && crate::body::methods::is_complex(ours) => {
                is_ours && self.wrong_arguments(call, ours, i)
            }
            Some(Certain::Element(i)) if self.head.is_complex(i) && COMPLEX_ROW_METHODS.contains(&name.as_str()) => {
                is_row && self.wrong_arguments(call, ours, i)
            }
            Some(Certain::Element(i)) if self.head.is_complex(i) && (is_ours || of_rows) => {
                let of = match &*call.receiver {
                    Expr::Paren(_) => format!("({})", shown(&call.receiver)),
                    other => shown(other),
                };
                let help = format!("compute with the parts `{of}.re()` and `{of}.im()`");
                self.report(&call.method, &messages::NO_COMPLEX, &[&"method", &name, &help])
            }
            Some(Certain::Element(i)) if self.head.is_bits(i) && lacks_method(ours, of_rows) => {
                let help = format!("numbers have it: `{}.to_number()`", shown(&call.receiver));
                self.report(&call.method, &messages::NO_BITS, &[&name, &help])
            }
            Some(Certain::Element(i)) => {
                let other = OTHER_METHODS.iter().find(|(other, _)| *other == name).map(|(_, help)| *help);
                let other_row = OTHER_ROW_METHODS.iter().find(|(other, _)| *other == name).map(|(_, help)| *help);
                match (other, other_row) {
                    (Some(help), _) => return self.report(&call.method, &messages::NO_METHOD, &[&name, &help]),
                    (_, Some(help)) if is_row => {
                        return self.report(&call.method, &messages::NO_METHOD, &[&name, &help]);
                    }
                    _ => {}
                }
                if !is_row && (of_rows || other_row.is_some()) {
                    return self.report(
                        &call.method,
                        &messages::ROW_METHOD,
                        &[&name, &shown(&call.receiver), &self.row_bound(i)],
                    );
                }
                let of_rows_with = ROW_METHODS.iter().find(|(own, _)| is_row && *own == name).map(|(_, takes)| *takes);
                if let Some(takes) = of_rows_with.filter(|_| !of_rows && !is_ours) {
                    let takes = counted(takes, "argument");
                    return self.report(&call.method, &messages::ARGUMENTS, &[&name, &takes, &given]);
                }
                if LIST_METHODS.contains(&name.as_str()) && !of_rows {
                    return self.wrong_list(&call.receiver, &call.method);
                }
                if is_ours || of_rows {
                    return self.wrong_arguments(call, ours, i);
                }
                let takes = RUST_METHODS.iter().find(|(rust, ..)| *rust == name).map(|(_, takes, _)| *takes);
                let takes = takes.or_else(|| arguments(ours).filter(|_| is_row));
                if let Some(takes) = takes {
                    let takes = counted(takes, "argument");
                    return self.report(&call.method, &messages::ARGUMENTS, &[&name, &takes, &given]);
                }
                false
            }
            Some(Certain::Mask(_)) if matches!(name.as_str(), "any" | "all") && is_row => {
                let variable = self.variable_name(0);
                let help = format!("write `{variable}::{name}({})`", shown(&call.receiver));
                self.report(&call.method, &messages::NO_MASK_METHOD, &[&name, &help])
            }
            Some(has) if is_ours || of_rows => self.wrong_operand(&call.receiver, has),
            _ => false,
        }
    }

    /// The bound of rows with the dtypes of a variable.
    fn row_bound(&self, variable: usize) -> &'static str {
        if self.head.generics[variable].bound.is_of_integers() { "IntRow" } else { "Row" }
    }

    /// The bound, the number and the types of the arguments of a method that elements have.
    fn wrong_arguments(&mut self, call: &ExprMethodCall, ours: &str, variable: usize) -> bool {
        let (name, given) = (call.method.to_string(), call.args.len());
        if let Some(takes) = arguments(ours).filter(|takes| *takes != given) {
            let takes = counted(takes, "argument");
            return self.report(&call.method, &messages::ARGUMENTS, &[&name, &takes, &given]);
        }
        let instead = if ours == "mean" { ", or write `x.sum().floor_divide(x.count())`" } else { "" };
        let bound = if OF_FLOAT_ROWS.contains(&ours) { Some("Row") } else { bound_of(ours) };
        if let Some(bound) = bound.filter(|_| !self.head.is_complex(variable))
            && self.wrong_bound(&call.method, &name, bound, variable, instead)
        {
            return true;
        }
        for arg in &call.args {
            let has = self.certain(arg);
            let is_float = matches!(arg, Expr::Lit(l) if matches!(l.lit, Lit::Float(_)));
            match (ours, has) {
                ("powi", Some(Certain::Element(_))) => {
                    return self.report(arg, &messages::POWER, &[&shown(arg), &shown(arg)]);
                }
                ("powi", None) if is_float => return self.report(arg, &messages::POWER, &[&shown(arg), &shown(arg)]),
                ("shift", Some(Certain::Element(_))) => return self.report(arg, &messages::PLACES, &[&shown(arg)]),
                ("shift", None) if is_float => return self.report(arg, &messages::PLACES, &[&shown(arg)]),
                ("at", has) if !matches!(has, None | Some(Certain::Index | Certain::Element(_))) || is_float => {
                    return self.report(arg, &messages::NOT_AN_INDEX, &[&shown(arg)]);
                }
                (_, Some(Certain::Element(j))) if DATA_METHODS.contains(&ours) && j != variable => {
                    self.mixed(&call.receiver, variable, arg, j);
                    return true;
                }
                (_, Some(has)) if DATA_METHODS.contains(&ours) && self.wrong_operand(arg, has) => return true,
                _ => {}
            }
        }
        false
    }

    /// A dimension of the `shape` clause, which is not in scope in a body.
    pub fn wrong_dimension(&mut self, path: &syn::Path) -> bool {
        let Some(name) = path.get_ident() else { return false };
        if self.scopes.get(name).is_some() || !self.head.dims.contains(&text(name)) {
            return false;
        }
        let instead = if self.head.is_machine() { "x.len()` or `x.shape()" } else { "x.count()" };
        self.report(name, &messages::DIMENSION, &[name, &instead])
    }

    /// `relu::call(x)` in the body of an element or row op.
    pub fn wrong_tensor_call(&mut self, call: &ExprCall) -> bool {
        let Expr::Path(function) = &*call.func else { return false };
        let mut names = function.path.segments.iter().rev().map(|s| &s.ident);
        let (Some(last), Some(op)) = (names.next(), names.next()) else { return false };
        let data =
            call.args.iter().map(without_borrow).find(|arg| matches!(self.certain(arg), Some(Certain::Element(_))));
        match data {
            Some(data) if last == "call" => {
                let called = shown(&call.func);
                self.report(&call.func, &messages::TENSOR_CALL, &[&called, &shown(data), op])
            }
            _ => false,
        }
    }

    /// `f64::max(x, y)`, `std::cmp::max(x, y)`
    pub fn wrong_machine_function(&mut self, call: &ExprCall) -> bool {
        let Expr::Path(function) = &*call.func else { return false };
        let mut modules = function.path.segments.iter().rev().skip(1);
        let is_machine = modules.any(|s| ["f32", "f64", "i32", "i64", "cmp"].iter().any(|name| s.ident == name));
        let data = call.args.iter().find(|arg| matches!(self.certain(arg), Some(Certain::Element(_))));
        let (true, Some(data), Some(last)) = (is_machine, data, function.path.segments.last()) else { return false };
        let called = shown(&call.func);
        self.report(&call.func, &messages::MACHINE_FUNCTION, &[&called, &shown(data), &shown(data), &last.ident])
    }

    /// `T::any(…)` in an element op, `T::infinity()` where the bound lacks it, `T::PI`.
    pub fn wrong_function(&mut self, path: &syn::Path) -> bool {
        let [variable, name] = &path.segments.iter().collect::<Vec<_>>()[..] else { return false };
        let Some(i) = self.head.generics.iter().position(|g| g.ident == variable.ident) else { return false };
        let is_row = self.head.generics[i].bound.is_of_rows();
        let called = name.ident.to_string();
        if let Some((_, help)) = OTHER_ITEMS.iter().find(|(other, _)| *other == called)
            && !(self.head.is_machine() && called == "default")
        {
            let help = help.replace("T::", &format!("{}::", variable.ident));
            return self.report(&name.ident, &messages::NO_ITEM, &[&variable.ident, &called, &help]);
        }
        if self.head.is_machine() {
            return false;
        }
        if self.head.is_complex(i) {
            let real = self.head.spelled(self.head.part(i));
            if matches!(called.as_str(), "scan" | "any" | "all") {
                let help =
                    format!("write `{real}::{called}` with real numbers, such as the parts `z.re()` and `z.im()`");
                return self.report(&name.ident, &messages::NO_ITEM, &[&variable.ident, &called, &help]);
            }
            let help = format!("write `Complex::from({real}::{called}())`");
            return matches!(called.as_str(), "nan" | "infinity" | "epsilon")
                && self.report(&name.ident, &messages::NO_ITEM, &[&variable.ident, &called, &help]);
        }
        if matches!(called.as_str(), "any" | "all" | "scan") && !is_row {
            return self.report(&name.ident, &messages::ROW_METHOD, &[&called, &variable.ident, &self.row_bound(i)]);
        }
        bound_of(&called).is_some_and(|bound| self.wrong_bound(&name.ident, &called, bound, i, ""))
    }

    /// A macro that shows or tests data, which has no value when the body is recorded or differentiated.
    pub fn wrong_macro(&mut self, mac: &Macro) -> bool {
        let name = mac.path.segments.last().map(|s| text(&s.ident)).unwrap_or_default();
        let is_showing = SHOWING.contains(&name.as_str());
        if self.head.is_machine() || !is_showing && !TESTING.contains(&name.as_str()) {
            return false;
        }
        let Some(data) = self.mentioned(mac.tokens.clone()) else { return false };
        let message = match name.as_str() {
            _ if is_showing => &messages::SHOWS_DATA,
            "matches" => return self.report(&mac.path, &messages::MATCH, &[]),
            _ => &messages::TESTS_DATA,
        };
        self.report(&mac.path, message, &[&name, &data])
    }

    /// The first name of data in the tokens, also in the text of a format.
    fn mentioned(&self, tokens: TokenStream) -> Option<String> {
        self.mentioned_beside(tokens, &|_| false)
    }

    /// The same, except for some names.
    pub fn mentioned_beside(&self, tokens: TokenStream, except: &dyn Fn(&Ident) -> bool) -> Option<String> {
        let is_data = |name: &Ident| self.scopes.get(name).is_some_and(|b| b.value.is_data()) && !except(name);
        tokens.into_iter().find_map(|token| match token {
            TokenTree::Ident(name) if is_data(&name) => Some(text(&name)),
            TokenTree::Group(group) => self.mentioned_beside(group.stream(), except),
            TokenTree::Literal(literal) => {
                let literal = literal.to_string();
                let names = literal.split('{').skip(1).filter_map(|part| part.split(['}', ':']).next());
                let mut names = names.filter_map(|name| syn::parse_str::<Ident>(name).ok());
                names.find(is_data).map(|name| text(&name))
            }
            _ => None,
        })
    }
}

fn without_borrow(expr: &Expr) -> &Expr {
    match expr {
        Expr::Reference(inner) => &inner.expr,
        expr => expr,
    }
}
