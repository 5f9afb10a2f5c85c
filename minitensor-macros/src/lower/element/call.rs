//! Operators, calls and methods: literal operands of data become data, and comparisons become functions.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprBinary, Ident, parse_quote};

use super::operand::compares_masks;
use super::{Lowering, is_literal, placeholder, shown, without_parens};
use crate::ast::{Elem, Generic, Level};
use crate::body::flow::tables::{LIST_SIZES, is_in};
use crate::body::methods::{COMPLEX_ITEMS, DATA_METHODS, renamed};
use crate::body::{Certain, Effects, Item, ValueKind, holds, is_compound, levels};
use crate::diag::messages;

impl Lowering<'_> {
    pub fn binary(&mut self, expr: &mut Expr) -> ValueKind {
        let Expr::Binary(binary) = expr else { return ValueKind::Static };
        if self.wrong_binary(binary) {
            *expr = placeholder();
            return ValueKind::Data(None);
        }
        if let Some(op) = self.operator_of_assignment(binary) {
            let (left, right) = (binary.left.clone(), &binary.right);
            *expr = parse_quote!(#left = #left #op (#right));
            let Expr::Assign(assign) = expr else { return ValueKind::Static };
            return self.assign(assign);
        }
        if is_compound(&binary.op) {
            let left = self.value(&mut binary.left, None);
            if self.wrong_place(&binary.left) {
                *expr = placeholder();
                return ValueKind::Static;
            }
            self.assigned(&binary.left, left, &mut binary.right);
            if self.head.is_machine() && left == ValueKind::Float {
                self.level_numbers(&mut binary.left, &mut binary.right);
            }
            if let (ValueKind::Data(None), true, real @ Some(_)) = (left, is_literal(&binary.right), self.head.complex)
            {
                // `z *= 2.0`
                self.coerce_beside(&mut binary.right, ValueKind::Static, real, false);
            }
            return ValueKind::Static;
        }
        let (result, sides) = match self.head.complex {
            Some(real) => {
                let side =
                    |side: &Expr| if is_literal(side) { Some(Certain::Element(real)) } else { self.certain(side) };
                (self.certain(&Expr::Binary(binary.clone())), Some([side(&binary.left), side(&binary.right)]))
            }
            None => (None, None),
        };
        let is_mask = |side: &Expr| matches!(self.certain(side), Some(Certain::Mask(_)));
        let of_masks = compares_masks(&binary.op) && (is_mask(&binary.left) || is_mask(&binary.right));
        let logical = matches!(binary.op, BinOp::And(_) | BinOp::Or(_));
        // Both sides are computed for every element.
        let effects = if logical { Effects::of_expr(&binary.right).into_errors() } else { vec![] };
        if self.is_lost_fraction(binary) {
            let (at, divisor) = (binary.clone(), shown(&binary.right));
            self.mistake(expr, &at, &messages::LOST_FRACTION, &[&divisor, &divisor]);
            return ValueKind::Float;
        }
        let maps = [&binary.left, &binary.right].map(|side| self.structure(side) == Item::Maybe);
        let (mut left, mut right) = (self.value(&mut binary.left, None), self.value(&mut binary.right, None));
        // Beside a float, a function of an element returns an element.
        match maps {
            [true, _] if right == ValueKind::Float && left.is_static() => left = ValueKind::Data(self.only_variable()),
            [_, true] if left == ValueKind::Float && right.is_static() => right = ValueKind::Data(self.only_variable()),
            _ => {}
        }
        let comparison = comparison(&binary.op);
        if self.head.is_machine() && !left.is_data() && !right.is_data() {
            self.level_numbers(&mut binary.left, &mut binary.right);
        }
        if (left.is_data() || right.is_data()) && !self.head.is_machine() && !effects.is_empty() {
            self.errors.extend(effects);
            *expr = placeholder();
            return ValueKind::Data(None);
        }
        if !left.is_data() && !right.is_data() {
            return match left.join(right) {
                _ if comparison.is_some() || logical => ValueKind::Flag,
                joined => joined,
            };
        }
        let ValueKind::Data(mut variable) = left.join(right) else { return ValueKind::Data(None) };
        let before = self.errors.len();
        let mixed = self.mixed_operator(&binary.op, sides);
        let of_complex = [left, right].into_iter().find_map(|side| match side {
            ValueKind::Data(Some(i)) if self.head.is_complex(i) => Some(i),
            _ => None,
        });
        if mixed.is_some() {
            // A literal stays real.
            variable = self.head.complex;
        }
        self.coerce_beside(&mut binary.right, right, variable, true);
        self.coerce_beside(&mut binary.left, left, variable, false);
        if self.errors.len() > before {
            // If one operand is wrong, the whole operation is replaced.
            *expr = placeholder();
            return ValueKind::Data(variable);
        }
        if self.head.is_machine()
            && let Some(i) = variable
            && self.wrong_operator(&binary.op, i)
        {
            *expr = placeholder();
            return if comparison.is_some() { ValueKind::Flag } else { ValueKind::Data(variable) };
        }
        if self.head.is_machine() && (comparison.is_some() || logical) {
            return ValueKind::Flag;
        }
        let (rt, span) = (self.rt, binary.op.span());
        if let Some(name) = mixed {
            let name = Ident::new(name, span);
            let (left, right) = (without_parens(&binary.left), without_parens(&binary.right));
            *expr = Expr::Verbatim(quote_spanned!(span=> #rt::#name(#left, #right)));
            let real = match result {
                Some(Certain::Element(i)) => Some(i),
                _ => None,
            };
            return ValueKind::Data(of_complex.or(real));
        }
        if comparison.is_some() {
            variable = variable.map(|i| self.head.part(i));
        }
        let function = match binary.op {
            BinOp::And(_) => quote_spanned!(span=> #rt::and),
            BinOp::Or(_) => quote_spanned!(span=> #rt::or),
            BinOp::Eq(_) if of_masks => quote_spanned!(span=> #rt::alike),
            _ if of_masks => quote_spanned!(span=> #rt::unlike),
            BinOp::BitXor(_) => quote_spanned!(span=> #rt::Int::bitwise_xor),
            BinOp::Shl(_) => quote_spanned!(span=> #rt::Int::left_shift),
            BinOp::Shr(_) => quote_spanned!(span=> #rt::Int::right_shift),
            BinOp::Div(_) if self.may_be_complex() => quote_spanned!(span=> #rt::divide),
            _ => match comparison {
                Some(name) => {
                    let name = Ident::new(name, span);
                    quote_spanned!(span=> #rt::#name)
                }
                None => return ValueKind::Data(variable),
            },
        };
        let (left, right) = (without_parens(&binary.left), without_parens(&binary.right));
        *expr = Expr::Verbatim(quote!(#function(#left, #right)));
        ValueKind::Data(variable)
    }

    /// The operator of a compound assignment that elements and masks do not have: `x |= y` is `x = x | y`.
    fn operator_of_assignment(&self, binary: &ExprBinary) -> Option<TokenStream> {
        let span = binary.op.span();
        let (bits, masks) = match binary.op {
            BinOp::RemAssign(_) => (quote_spanned!(span=> %), None),
            BinOp::DivAssign(_) if self.head.variables().iter().all(Generic::is_of_integers) => {
                (quote_spanned!(span=> /), None)
            }
            BinOp::BitAndAssign(_) => (quote_spanned!(span=> &), Some(quote_spanned!(span=> &&))),
            BinOp::BitOrAssign(_) => (quote_spanned!(span=> |), Some(quote_spanned!(span=> ||))),
            BinOp::BitXorAssign(_) => (quote_spanned!(span=> ^), Some(quote_spanned!(span=> ^))),
            BinOp::ShlAssign(_) => (quote_spanned!(span=> <<), None),
            BinOp::ShrAssign(_) => (quote_spanned!(span=> >>), None),
            _ => return None,
        };
        match self.certain(&binary.left) {
            Some(Certain::Mask(_)) if !self.head.is_machine() => masks,
            Some(Certain::Element(_)) => Some(bits),
            None if [&binary.left, &binary.right].into_iter().any(|side| self.is_element(side)) => Some(bits),
            _ => None,
        }
    }

    fn is_element(&self, expr: &Expr) -> bool {
        let name = if let Expr::Path(path) = expr { path.path.get_ident() } else { None };
        name.and_then(|name| self.scopes.get(name)).is_some_and(|binding| binding.value.is_data())
            || matches!(self.certain(expr), Some(Certain::Element(_)))
            || self.structure(expr).is_element()
    }

    /// The function of the runtime for an operator of which an operand may be complex.
    fn mixed_operator(&self, op: &BinOp, sides: Option<[Option<Certain>; 2]>) -> Option<&'static str> {
        let is_real = |side: &Option<Certain>| matches!(side, Some(Certain::Element(i)) if !self.head.is_complex(*i));
        if sides?.iter().all(is_real) {
            return None;
        }
        Some(match op {
            BinOp::Add(_) => "plus",
            BinOp::Sub(_) => "minus",
            BinOp::Mul(_) => "multiplied",
            BinOp::Div(_) => "divided",
            _ => return None,
        })
    }

    /// Whether data may be complex: Rust's own complex `/` can overflow in intermediate results.
    fn may_be_complex(&self) -> bool {
        self.head.generics.iter().any(|g| g.bound.name == "Field")
    }

    pub fn call(&mut self, expr: &mut Expr) -> ValueKind {
        if self.head.is_machine() {
            return self.machine_call(expr);
        }
        let certain = if self.head.has_types() { self.certain(expr) } else { None };
        let is_wrong = match expr {
            Expr::MethodCall(call) => self.wrong_method(call) || self.wrong_sum(call),
            Expr::Call(call) => {
                let is_wrong = matches!(&*call.func, Expr::Path(path) if self.wrong_function(&path.path));
                is_wrong || self.wrong_machine_function(call) || self.wrong_tensor_call(call)
            }
            _ => false,
        };
        if is_wrong {
            *expr = placeholder();
            return ValueKind::Data(None);
        }
        if let Expr::Call(call) = expr
            && matches!(&*call.func, Expr::Path(path) if path.path.segments.last().is_some_and(|s| s.ident == "from_fn"))
            && let Some(Expr::Closure(closure)) = call.args.first_mut()
        {
            // The closure takes positions.
            return self.closure(closure, ValueKind::Static, ValueKind::Static);
        }
        if let Expr::MethodCall(call) = expr
            && is_in(LIST_SIZES, &call.method.to_string())
            && self.certain(&call.receiver).is_none()
        {
            // The size of a list of elements.
            self.value(&mut call.receiver, None);
            return if call.method == "is_empty" { ValueKind::Flag } else { ValueKind::Static };
        }
        if let Some(variable) = self.scanned(expr) {
            return self.scan(expr, variable);
        }
        if let Some(value) = self.at_number(expr) {
            return value;
        }
        let of_numbers = matches!(expr, Expr::MethodCall(call) if self.has_numbers(&call.receiver));
        let folds = of_numbers && matches!(expr, Expr::MethodCall(call) if self.folds_elements(call));
        let (mut callee, args, elements) = match expr {
            Expr::MethodCall(call) => {
                if folds && let Some(first) = call.args.first_mut().filter(|first| is_literal(first)) {
                    self.coerce_beside(first, ValueKind::Float, None, false);
                }
                let receiver = self.value(&mut call.receiver, None);
                let name = call.method.to_string();
                if let ValueKind::Option(variable) = receiver {
                    call.args.iter_mut().for_each(|a| self.argument(a, variable, false));
                    return match name.as_str() {
                        "is_some" | "is_none" => ValueKind::Flag,
                        "map" | "filter" | "or" | "and" | "zip" | "as_ref" | "copied" => receiver,
                        _ => ValueKind::Data(variable),
                    };
                }
                let are_elements = DATA_METHODS.contains(&renamed(&name, call.args.len()));
                (receiver, &mut call.args, are_elements)
            }
            // `minitensor::kernels::lit(0.5)`, which takes the number itself.
            Expr::Call(call) if matches!(&*call.func, Expr::Path(path) if is_lit(&path.path)) => {
                return ValueKind::Data(self.only_variable());
            }
            Expr::Call(call) if matches!(&*call.func, Expr::Path(path) if self.is_of_complex(&path.path)) => {
                for arg in &mut call.args {
                    let value = self.value(arg, None);
                    self.coerce_beside(arg, value, self.head.complex, true);
                }
                return ValueKind::Data(Some(self.head.variables().len()));
            }
            Expr::Call(call) if matches!(&*call.func, Expr::Path(path) if self.is_from_bits(&path.path)) => {
                let bits = self.head.bits.and_then(|i| self.head.bits_of(i));
                for arg in &mut call.args {
                    if bits.is_some_and(|bits| self.wrong_result(arg, Elem::Generic(bits))) {
                        *arg = placeholder();
                        continue;
                    }
                    let value = self.value(arg, None);
                    self.coerce_beside(arg, value, bits, true);
                }
                return ValueKind::Data(self.head.bits);
            }
            Expr::Call(call) => {
                let callee = match &*call.func {
                    Expr::Path(path) if holds(&path.path, &self.head.generics) => ValueKind::Data(self.only_variable()),
                    // A closure.
                    Expr::Path(path) if path.path.get_ident().is_some() => self.scopes.path(&path.path, self.head),
                    _ => ValueKind::Static,
                };
                (callee, &mut call.args, false)
            }
            _ => return ValueKind::Static,
        };
        let before = callee;
        // The kind of the initial value of a fold.
        let total = match args.first().filter(|_| of_numbers).and_then(|first| self.certain(first)) {
            Some(Certain::Element(i)) => ValueKind::Data(Some(i)),
            _ if folds => ValueKind::Data(self.only_variable()),
            _ => ValueKind::Static,
        };
        let each = |arg: &mut Expr| match arg {
            Expr::Closure(closure) if of_numbers => {
                self.closure(closure, total, ValueKind::Static);
                ValueKind::Static
            }
            arg => self.value(arg, None),
        };
        let values: Vec<ValueKind> = args.iter_mut().map(each).collect();
        for value in &values {
            if value.is_data() || matches!(value, ValueKind::Option(_)) {
                callee = callee.join(*value);
            }
        }
        let variable = match callee {
            ValueKind::Data(variable) | ValueKind::Option(variable) => variable,
            _ if folds => return ValueKind::Data(self.only_variable()),
            _ => return callee,
        };
        for (arg, value) in args.iter_mut().zip(values) {
            if elements {
                self.coerce_beside(arg, value, variable, true);
            } else {
                self.literal_argument(arg, value);
            }
        }
        if let Expr::MethodCall(call) = expr
            && matches!(&*call.method.to_string(), "powi" | "shift")
            && let Some(arg) = call.args.first_mut().filter(|arg| !is_literal(arg))
        {
            let (rt, bare) = (self.rt, without_parens(arg));
            *arg = Expr::Verbatim(quote_spanned!(arg.span()=> #rt::exponent(#bare)));
        }
        if let Expr::MethodCall(call) = expr {
            if !of_numbers {
                self.coerce_beside(&mut call.receiver, before, variable, false);
            }
            // `x.max()` reduces a row, `x.max(y)` compares two elements.
            let gathers = self.head.level == Level::Row && call.args.is_empty() && levels::gathers(&call.method);
            if !gathers {
                call.method = Ident::new(renamed(&call.method.to_string(), call.args.len()), call.method.span());
            }
        }
        match certain {
            // The absolute value of a complex number is real, and the bits of a real number are none.
            Some(Certain::Element(i) | Certain::Mask(i)) => ValueKind::Data(Some(i)),
            _ => ValueKind::Data(variable),
        }
    }

    fn argument(&mut self, arg: &mut Expr, variable: Option<usize>, elements: bool) {
        let value = self.value(arg, None);
        if elements {
            self.coerce_beside(arg, value, variable, true);
        } else {
            self.literal_argument(arg, value);
        }
    }

    /// Converts a float argument of a function to an element, because `f64` attributes are elements in the body.
    pub fn literal_argument(&mut self, arg: &mut Expr, value: ValueKind) {
        match arg {
            Expr::Reference(inner) => return self.literal_argument(&mut inner.expr, value),
            Expr::Array(array) => {
                let literals = array.elems.iter_mut().filter(|item| is_literal(item));
                return literals.for_each(|item| self.literal_argument(item, value));
            }
            _ => {}
        }
        if value == ValueKind::Float {
            let (rt, bare) = (self.rt, without_parens(arg));
            *arg = Expr::Verbatim(quote_spanned!(arg.span()=> #rt::lit(#bare)));
        }
    }
}

impl Lowering<'_> {
    /// Lowers `x.at(number)`. `None` for another call.
    fn at_number(&mut self, expr: &mut Expr) -> Option<ValueKind> {
        let Expr::MethodCall(call) = expr else { return None };
        let is_it = self.head.level == Level::Row && call.method == "at" && call.args.len() == 1;
        let is_element = match self.certain(call.args.first().filter(|_| is_it)?) {
            Some(Certain::Element(_)) => true,
            None => false,
            _ => return None,
        };
        let row = self.value(&mut call.receiver, None);
        let number = self.value(&mut call.args[0], None);
        let variable = if let ValueKind::Data(variable) = row { variable } else { self.only_variable() };
        // Another value may be an index.
        if is_element || number.is_static() {
            self.coerce_beside(&mut call.args[0], number, variable, false);
            let (rt, row, number) = (self.rt, &call.receiver, &call.args[0]);
            let is_of_floats = variable.is_none_or(|i| self.head.generics[i].bound.is_of_floats());
            let at = Ident::new(if is_of_floats { "at_number" } else { "at_integer" }, call.method.span());
            *expr = Expr::Verbatim(quote_spanned!(call.method.span()=> #rt::#at(#row, #number)));
        }
        Some(ValueKind::Data(variable))
    }

    /// `T::from_bits`
    fn is_from_bits(&self, path: &syn::Path) -> bool {
        let segments: Vec<_> = path.segments.iter().map(|s| &s.ident).collect();
        let is_variable = |ty: &Ident| self.head.bits.is_some_and(|i| self.head.generics[i].ident == *ty);
        matches!(segments[..], [ty, name] if is_variable(ty) && name == "from_bits")
    }

    /// `Complex::new`
    fn is_of_complex(&self, path: &syn::Path) -> bool {
        let segments: Vec<_> = path.segments.iter().map(|s| &s.ident).collect();
        matches!(segments[..], [ty, name] if self.head.complex.is_some() && ty == "Complex"
            && COMPLEX_ITEMS.iter().any(|item| name == item))
    }
}

fn is_lit(path: &syn::Path) -> bool {
    path.segments.last().is_some_and(|s| s.ident == "lit")
}

/// The function of the runtime for a comparison.
fn comparison(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Lt(_) => "less",
        BinOp::Le(_) => "less_equal",
        BinOp::Gt(_) => "greater",
        BinOp::Ge(_) => "greater_equal",
        BinOp::Eq(_) => "equal",
        BinOp::Ne(_) => "not_equal",
        _ => return None,
    })
}
