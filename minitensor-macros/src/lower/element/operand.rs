//! Errors about operands, methods, conditions and results whose types are certain. Without them, rustc would report the traits
//! and functions of the expansion.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{BinOp, Expr, ExprBinary, ExprCall, ExprMethodCall, Ident, Lit, Macro, UnOp};

use super::Lowering;
use super::lists::is_range;
use crate::ast::{Elem, Level, text};
use crate::body::methods::{
    COMPLEX_ROW_METHODS, DATA_METHODS, LIST_METHODS, OF_FLOAT_ROWS, OTHER_COMPLEX_METHODS, OTHER_ITEMS, OTHER_METHODS,
    OTHER_ROW_METHODS, ROW_METHODS, RUST_METHODS, arguments, bound_of, bounds_with, is_known, renamed,
};
use crate::body::{Certain, certain};
use crate::diag::{Message, error, messages};
use crate::dtype::{Bound, DType};
use minitensor_schema::message::counted;

/// Macros that show values, and those that test them.
const SHOWING: &[&str] = &["println", "print", "eprintln", "eprint", "dbg", "format", "write", "writeln", "panic"];
const TESTING: &[&str] =
    &["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne", "matches"];

/// Whether the bound with this name is one of rows.
fn is_of_rows(bound: &str) -> bool {
    Bound::named(bound).is_some_and(|bound| bound.is_of_rows())
}

/// Whether bits, which are integers, lack a method. `of_rows`: whether rows have it.
fn lacks_method(name: &str, of_rows: bool) -> bool {
    bound_of(name).map_or(of_rows, |bound| !bounds_with(bound).contains(&"Int"))
}

impl Lowering<'_> {
    /// The type of an expression before it is lowered. Bodies of machine numbers are left to rustc.
    pub fn certain(&self, expr: &Expr) -> Option<Certain> {
        if self.head.is_machine() { None } else { certain::of(expr, &self.scopes, self.head) }
    }

    pub fn report(&mut self, at: impl ToTokens, message: &Message, args: &[&dyn std::fmt::Display]) -> bool {
        self.errors.push(error(at, message, args));
        true
    }

    fn variable_name(&self, i: usize) -> String {
        self.head.spelled(i)
    }

    /// An element or a mask is expected here, but the value is neither.
    fn wrong_operand(&mut self, operand: &Expr, has: Certain) -> bool {
        let shown = shown(operand);
        match has {
            Certain::Mask(_) => self.report(operand, &messages::MASK_OPERAND, &[&shown, &shown]),
            Certain::Optional => self.report(operand, &messages::OPTIONAL_OPERAND, &[&shown, &shown]),
            Certain::Index => self.report(operand, &messages::INDEX_OPERAND, &[&shown, &shown]),
            Certain::Place(_) => self.report(operand, &messages::PLACE_OPERAND, &[&shown, &shown]),
            Certain::Rust("a `bool`") => self.report(operand, &messages::FLAG_OPERAND, &[&shown, &shown]),
            Certain::Rust(kind) => self.report(operand, &messages::RUST_OPERAND, &[&shown, &kind]),
            Certain::Element(_) => false,
        }
    }

    /// Whether a binary operation on data has an operand of a wrong type. The error is reported.
    pub fn wrong_binary(&mut self, binary: &ExprBinary) -> bool {
        let (left, right) = (self.certain(&binary.left), self.certain(&binary.right));
        let is_data = |c| matches!(c, Some(Certain::Element(_) | Certain::Mask(_)));
        let is_known = |c: Option<Certain>| c.is_none_or(|c| matches!(c, Certain::Rust("a `bool`")));
        let logical = matches!(binary.op, BinOp::And(_) | BinOp::Or(_));
        if !is_data(left) && !is_data(right) {
            // Neither an index nor an optional number has operators.
            let is_arithmetic = matches!(binary.op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_));
            let has_none = |c| c == Some(Certain::Index) || is_arithmetic && c == Some(Certain::Optional);
            return match (has_none(left), has_none(right)) {
                (true, _) => left.is_some_and(|has| self.wrong_operand(&binary.left, has)),
                (_, true) => right.is_some_and(|has| self.wrong_operand(&binary.right, has)),
                _ => false,
            };
        }
        for (operand, has) in [(&*binary.left, left), (&*binary.right, right)] {
            let Some(has) = has else { continue };
            let wrong = match has {
                Certain::Element(_) if logical => self.wrong_condition(operand),
                Certain::Mask(_) if logical || is_bitwise(&binary.op) => false,
                has if logical && is_known(Some(has)) => false,
                // The place of `*p += 1` is not an operand.
                Certain::Place(_) if crate::body::is_compound(&binary.op) => false,
                has => self.wrong_operand(operand, has),
            };
            if wrong {
                return true;
            }
        }
        match (left, right) {
            // A real and a complex number have the operators `+ - * /`.
            (Some(Certain::Element(i)), Some(Certain::Element(j)))
                if i != j && (self.head.is_bits(i) || self.head.is_bits(j)) =>
            {
                let (number, bits) =
                    if self.head.is_bits(i) { (&binary.right, &binary.left) } else { (&binary.left, &binary.right) };
                let (number, bits) = (shown(number), shown(bits));
                self.report(binary.op, &messages::BITS_MIXED, &[&number, &bits, &number, &number, &bits])
            }
            (Some(Certain::Element(i)), Some(Certain::Element(j)))
                if i != j
                    && self.head.part(i) == self.head.part(j)
                    && is_arithmetic(&binary.op, self.head.is_complex(i)) =>
            {
                false
            }
            (Some(Certain::Element(i)), Some(Certain::Element(j))) if i != j => {
                let complex = if self.head.is_complex(i) { i } else { j };
                if self.head.is_complex(complex) && self.wrong_operator(&binary.op, complex) {
                    return true;
                }
                self.mixed(&binary.left, i, &binary.right, j);
                true
            }
            (Some(Certain::Element(i)), _) | (_, Some(Certain::Element(i))) => self.wrong_operator(&binary.op, i),
            _ => false,
        }
    }

    fn mixed(&mut self, left: &Expr, i: usize, right: &Expr, j: usize) {
        if self.head.part(i) == self.head.part(j) {
            let (real, complex) = if self.head.is_complex(i) { (right, left) } else { (left, right) };
            let (real, complex) = (shown(real), shown(complex));
            self.report(right, &messages::COMPLEX_MIXED, &[&real, &complex, &real]);
            return;
        }
        let (t, u) = (self.variable_name(i), self.variable_name(j));
        self.report(right, &messages::MIXED_DTYPES, &[&shown(right), &u, &shown(left), &t, &t]);
    }

    /// An operator that the bound of the dtype variable lacks.
    fn wrong_operator(&mut self, op: &BinOp, variable: usize) -> bool {
        if self.head.is_complex(variable) {
            let sign = op.to_token_stream().to_string();
            return match op {
                BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) => self.report(
                    op,
                    &messages::NO_COMPLEX,
                    &[&"operator", &sign, &"compare real numbers, such as `z.abs() < 1.0`"],
                ),
                BinOp::Rem(_)
                | BinOp::BitXor(_)
                | BinOp::BitAnd(_)
                | BinOp::BitOr(_)
                | BinOp::Shl(_)
                | BinOp::Shr(_) => self.report(
                    op,
                    &messages::NO_COMPLEX,
                    &[&"operator", &sign, &"compute with the parts `z.re()` and `z.im()`"],
                ),
                _ => false,
            };
        }
        let (needed, instead) = match op {
            BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) => ("Num", ""),
            BinOp::Div(_) => ("Field", ", or write `x.floor_divide(y)`"),
            BinOp::Rem(_) => ("Float", ", or write `x.remainder(y)`"),
            BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) => ("Real", ""),
            BinOp::BitXor(_) => ("Int", "; a power is `x.powi(2)` or `x.pow(y)`"),
            BinOp::BitAnd(_) | BinOp::BitOr(_) => ("Int", "; for conditions, write `&&` and `||`"),
            BinOp::Shl(_) | BinOp::Shr(_) => ("Int", ""),
            _ => return false,
        };
        self.wrong_bound(op, &op.to_token_stream().to_string(), needed, variable, instead)
    }

    pub fn wrong_bound(&mut self, at: impl ToTokens, what: &str, needed: &str, variable: usize, instead: &str) -> bool {
        let has = self.head.generics[variable].bound.name;
        let enough = bounds_with(needed);
        if enough.contains(&has) {
            return false;
        }
        if let (true, Some(instead)) =
            (self.head.generics[variable].bound.is_of_integers(), instead.strip_prefix(", or "))
        {
            return self.report(at, &messages::NOT_OF_INTEGERS, &[&what, &self.variable_name(variable), &instead]);
        }
        let is_row = self.head.generics[variable].bound.is_of_rows();
        let shown: Vec<_> = enough.iter().filter(|b| is_row == is_of_rows(b)).map(|b| format!("`{b}`")).collect();
        let name = self.variable_name(variable);
        self.report(at, &messages::WEAK_BOUND, &[&what, &name, &name, &shown.join(" or "), &has, &instead])
    }

    /// Whether an element is used as a condition. The error is reported.
    pub fn wrong_condition(&mut self, condition: &Expr) -> bool {
        let Some(Certain::Element(_)) = self.certain(condition) else { return false };
        let shown = shown(condition);
        self.report(condition, &messages::NOT_A_CONDITION, &[&shown, &shown])
    }

    /// Whether a unary operator does not apply to its operand.
    pub fn wrong_unary(&mut self, op: &UnOp, operand: &Expr) -> bool {
        match (op, self.certain(operand)) {
            (UnOp::Not(_), Some(Certain::Element(i))) if !self.head.generics[i].bound.is_of_integers() => {
                self.wrong_condition(operand)
            }
            (UnOp::Deref(_), Some(Certain::Element(_))) => {
                let shown = shown(operand);
                self.report(op, &messages::DEREFERENCED, &[&shown, &shown])
            }
            (UnOp::Neg(_), Some(has @ (Certain::Mask(_) | Certain::Optional | Certain::Index))) => {
                self.wrong_operand(operand, has)
            }
            _ => false,
        }
    }

    /// Whether a result has another type than the function returns.
    pub fn wrong_result(&mut self, result: &Expr, want: Elem) -> bool {
        if self.is_several(result) {
            return true;
        }
        if let (Expr::Tuple(tuple), Elem::Generic(i)) = (result, want)
            && self.head.is_complex(i)
            && tuple.elems.len() == 2
        {
            let (re, im) = (shown(&tuple.elems[0]), shown(&tuple.elems[1]));
            return self.report(result, &messages::TUPLE_RESULT, &[&re, &im]);
        }
        let Some(has) = self.certain(result) else { return false };
        let shown = shown(result);
        match (has, want) {
            (Certain::Mask(_), Elem::Generic(i)) => {
                let name = self.variable_name(i);
                self.report(result, &messages::MASK_RESULT, &[&shown, &name, &name, &shown])
            }
            (Certain::Element(_), Elem::Mask(i)) => {
                let name = self.variable_name(i);
                self.report(result, &messages::ELEMENT_RESULT, &[&shown, &name, &shown])
            }
            (Certain::Element(i), Elem::Fixed(DType::I64)) if self.head.level == Level::Row => {
                let name = self.variable_name(i);
                self.report(result, &messages::INDEX_RESULT, &[&shown, &name, &shown])
            }
            (Certain::Element(i), Elem::Generic(j)) if i != j && self.head.is_bits(i) => {
                let variable = self.variable_name(self.head.part(i));
                self.report(result, &messages::BITS_RESULT, &[&shown, &shown, &variable, &shown])
            }
            (Certain::Element(i), Elem::Generic(j)) if i != j && self.head.is_bits(j) => {
                self.report(result, &messages::NUMBER_RESULT, &[&shown, &shown, &shown])
            }
            (Certain::Element(i), Elem::Generic(j)) if i != j && self.head.part(i) == self.head.part(j) => {
                let want = self.variable_name(j);
                match self.head.is_complex(i) {
                    true => {
                        let of = if let Expr::Binary(_) = result { format!("({shown})") } else { shown.clone() };
                        self.report(result, &messages::REAL_RESULT, &[&shown, &want, &of, &of])
                    }
                    false => self.report(result, &messages::COMPLEX_RESULT, &[&shown, &want, &shown]),
                }
            }
            (Certain::Element(i), Elem::Generic(j)) if i != j => {
                let (has, want) = (self.variable_name(i), self.variable_name(j));
                self.report(result, &messages::MIXED_RESULT, &[&shown, &has, &want, &has])
            }
            (Certain::Element(_) | Certain::Mask(_), _) | (Certain::Rust("a `bool`"), Elem::Mask(_)) => false,
            (has, Elem::Generic(_) | Elem::Mask(_)) => self.wrong_operand(result, has),
            _ => false,
        }
    }

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
            return self.report(&name.ident, &messages::NO_ITEM, &[&variable.ident, &called, help]);
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

/// Whether it is `+ - * /`, or the assignment of such a result to a complex number.
fn is_arithmetic(op: &BinOp, assigns_complex: bool) -> bool {
    match op {
        BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) => true,
        BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::MulAssign(_) | BinOp::DivAssign(_) => assigns_complex,
        _ => false,
    }
}

fn without_borrow(expr: &Expr) -> &Expr {
    match expr {
        Expr::Reference(inner) => &inner.expr,
        expr => expr,
    }
}

fn is_bitwise(op: &BinOp) -> bool {
    matches!(op, BinOp::BitAnd(_) | BinOp::BitOr(_) | BinOp::BitAndAssign(_) | BinOp::BitOrAssign(_))
}

/// The source of an expression in a message.
pub fn shown(expr: &Expr) -> String {
    if let Expr::Paren(inner) = expr {
        return shown(&inner.expr);
    }
    let tokens = expr.to_token_stream().to_string();
    let mut shown =
        tokens.replace(" . ", ".").replace("( ", "(").replace(" )", ")").replace(" (", "(").replace(" ,", ",");
    shown = shown.replace(" :: ", "::").replace("- ", "-").replace(" -", " - ").replace("* (", "*(").replace(" [", "[");
    minitensor_schema::suggestion::shortened(&shown)
}
