//! Bodies of machine numbers: which values are elements, so that literals beside them become elements. Everything else is
//! plain Rust, so a value is only an element if it is certain to be one.

use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprField, Member, Pat, parse_quote};

use super::expression::is_integer;
use super::{Lowering, is_literal, without_parens};
use crate::body::methods::{DATA_METHODS, renamed, returns_element};
use crate::body::{Certain, Item, UNKNOWN, ValueKind};

/// Methods of slices and views that return an integer.
const SIZES: &[&str] = &["len", "nrows", "ncols"];
/// Methods of integers that return an integer.
const OF_INTEGERS: &[&str] =
    &["min", "max", "clamp", "pow", "abs_diff", "div_ceil", "isqrt", "saturating_add", "saturating_sub", "rem_euclid"];

/// Functions of `minitensor::kernels::rows` that return an element.
const REDUCTIONS: &[&str] = &["sum", "sum_map", "prod", "dot"];

impl Lowering<'_> {
    /// Whether a static value is not certain to be a number, in a body of machine numbers.
    pub fn is_unknown(&self, expr: &Expr, value: ValueKind) -> bool {
        self.head.is_machine() && value != ValueKind::Float && !self.is_number(expr)
    }

    /// A number without a suffix, which the compiler does not know the type of, a constant, which cannot have a generic type, or an
    /// integer of Rust.
    pub fn is_number(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Path(path) => match path.path.get_ident().and_then(|name| self.scopes.get(name)) {
                Some(local) => local.certain == Some(Certain::NUMBER),
                None => path.path.segments.last().is_some_and(|last| is_constant(&last.ident.to_string())),
            },
            Expr::MethodCall(call) if call.args.is_empty() && SIZES.iter().any(|name| call.method == name) => true,
            Expr::MethodCall(call) => {
                OF_INTEGERS.iter().any(|name| call.method == name)
                    && !matches!(*call.receiver, Expr::Lit(_))
                    && self.is_number(&call.receiver)
                    && call.args.iter().all(|arg| self.is_number(arg))
            }
            Expr::Cast(cast) => is_integer(&cast.ty),
            Expr::Binary(binary) => {
                let is_arithmetic =
                    matches!(binary.op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_));
                is_arithmetic && self.is_number(&binary.left) && self.is_number(&binary.right)
            }
            Expr::Field(ExprField { member: Member::Unnamed(_), .. }) => self.structure(expr) == Item::Number,
            Expr::Index(inner) => match &*inner.expr {
                Expr::Path(_) => self.is_number(&inner.expr) || self.structure(expr) == Item::Number,
                Expr::MethodCall(call) => call.method == "shape" && call.args.is_empty(),
                _ => false,
            },
            Expr::Lit(lit) => match &lit.lit {
                syn::Lit::Int(int) => int.suffix().is_empty(),
                syn::Lit::Float(float) => float.suffix().is_empty(),
                _ => false,
            },
            Expr::Unary(unary) => self.is_number(&unary.expr),
            Expr::Paren(inner) => self.is_number(&inner.expr),
            _ => false,
        }
    }

    /// Whether a function that is not known is called with an element, so that it may return one.
    pub fn maps_element(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Paren(inner) => self.maps_element(&inner.expr),
            Expr::Call(call) => call.args.iter().any(|arg| self.is_element(arg)),
            _ => false,
        }
    }

    /// An element by its name, or by its place in a list.
    fn is_element(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Paren(inner) => self.is_element(&inner.expr),
            Expr::Unary(unary) => self.is_element(&unary.expr),
            Expr::Path(path) => self.scopes.path(&path.path, self.head).is_data(),
            Expr::Index(inner) => {
                !matches!(*inner.index, Expr::Range(_))
                    && matches!(self.items(&inner.expr), Item::One(ValueKind::Data(_)))
            }
            _ => false,
        }
    }

    /// A call or a method call.
    pub fn machine_call(&mut self, expr: &mut Expr) -> ValueKind {
        match expr {
            Expr::MethodCall(call) => {
                if self.wrong_slice(call) {
                    *expr = super::placeholder();
                    return ValueKind::Static;
                }
                let result = self.structure_of_call(call);
                let each = self.items(&call.receiver);
                if self.wrong_cell_method(call, &each) {
                    *expr = super::placeholder();
                    return ValueKind::Data(None);
                }
                let receiver = self.value(&mut call.receiver, None);
                let name = call.method.to_string();
                if let ValueKind::Data(variable) = receiver {
                    let ours = renamed(&name, call.args.len());
                    let are_elements = DATA_METHODS.contains(&ours);
                    if let ("powi", Some(arg)) = (ours, call.args.first_mut().filter(|arg| !is_literal(arg))) {
                        let (rt, bare) = (self.rt, without_parens(arg));
                        *arg = Expr::Verbatim(quote_spanned!(arg.span()=> #rt::exponent(#bare)));
                    }
                    for arg in &mut call.args {
                        let value = self.value(arg, None);
                        if are_elements {
                            self.coerce_beside(arg, value, variable, true);
                        }
                    }
                    call.method = syn::Ident::new(ours, call.method.span());
                    return if returns_element(ours) { receiver } else { ValueKind::Static };
                }
                let (begins, variable) = (self.begins(call), each.element().flatten());
                let first = call.args.first_mut().map(|first| match self.structure(first) {
                    Item::One(ValueKind::Float) | Item::Tuple(_) if begins => {
                        let begun = self.structure(first).promoted(self.head);
                        self.coerce_floats(first, variable);
                        begun
                    }
                    _ => Item::of(self.argument_of(first, &each, None)),
                });
                for arg in call.args.iter_mut().skip(1) {
                    self.argument_of(arg, &each, first.as_ref());
                }
                if let (Item::One(sum @ ValueKind::Data(variable)), "sum" | "product") = (&each, name.as_str()) {
                    // The type of a sum of elements is known here, unlike in Rust.
                    let ty = variable.filter(|_| call.turbofish.is_none()).map(|i| &self.head.generics[i].ident);
                    call.turbofish = ty.map(|ty| parse_quote!(::<#ty>)).or(call.turbofish.take());
                    return *sum;
                }
                match (name.as_str(), first) {
                    ("fold", Some(Item::One(data @ ValueKind::Data(_)))) => data,

                    // A function of a number, such as `(n as f64).sqrt()`.
                    (name, _) if receiver == ValueKind::Float && returns_element(renamed(name, call.args.len())) => {
                        receiver
                    }
                    _ => result.kind().filter(|kind| matches!(kind, ValueKind::Many(_))).unwrap_or(ValueKind::Static),
                }
            }
            Expr::Call(call) => {
                self.fill(call);
                let Expr::Path(path) = &*call.func else {
                    call.args.iter_mut().for_each(|a| _ = self.value(a, None));
                    return ValueKind::Static;
                };
                let path = path.path.clone();
                if self.wrong_function(&path) {
                    *expr = super::placeholder();
                    return ValueKind::Data(None);
                }
                if path.is_ident("Ok") && self.closures == 0 && call.args.len() == 1 {
                    self.value(&mut call.args[0], self.head.returned.as_deref());
                    return ValueKind::Static;
                }
                // `T::zero()`
                let is_constructor = self.head.generics.iter().any(|g| g.ident == path.segments[0].ident);
                let last = path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
                let is_reduction =
                    REDUCTIONS.contains(&last.as_str()) && path.segments.iter().any(|s| s.ident == "rows");
                let each = call.args.first().filter(|_| is_reduction).map_or(UNKNOWN, |first| self.items(first));
                if let (true, "from", Some(number)) = (is_constructor, &*last, call.args.first())
                    && !self.is_element(number)
                {
                    let (rt, variable) = (self.rt, &path.segments[0]);
                    *expr = Expr::Verbatim(quote_spanned!(number.span()=> #rt::lit::<#variable>(#number)));
                    return ValueKind::Data(self.only_variable());
                }
                let values: Vec<_> = call.args.iter_mut().map(|a| self.argument_of(a, &each, None)).collect();
                if is_constructor || values.iter().any(|v| v.is_data()) {
                    // A parameter may be an element, or an `f64`, which is one too.
                    call.args.iter_mut().zip(values).for_each(|(a, value)| self.literal_argument(a, value));
                }
                match each {
                    Item::One(data @ ValueKind::Data(_)) => data,
                    _ if is_constructor && returns_element(&last) => ValueKind::Data(self.only_variable()),
                    _ => ValueKind::Static,
                }
            }
            _ => ValueKind::Static,
        }
    }

    /// `Array2::zeros(shape)` is `Array2::from_elem(shape, 0)`, because elements do not have the traits that ndarray requires.
    fn fill(&self, call: &mut syn::ExprCall) {
        let Expr::Path(path) = &mut *call.func else { return };
        let [.., array, function] = &mut path.path.segments.iter_mut().collect::<Vec<_>>()[..] else { return };
        let value = match function.ident.to_string().as_str() {
            "zeros" => quote!(zero),
            "ones" => quote!(one),
            _ => return,
        };
        if call.args.len() == 1 && array.ident.to_string().starts_with("Array") {
            let rt = self.rt;
            function.ident = syn::Ident::new("from_elem", function.ident.span());
            call.args.push(Expr::Verbatim(quote!(#rt::Filled::#value())));
        }
    }

    /// An argument. The last parameter of a closure is an item, and the first of two is the accumulator.
    fn argument_of(&mut self, arg: &mut Expr, each: &Item, accumulator: Option<&Item>) -> ValueKind {
        let Expr::Closure(closure) = arg else { return self.value(arg, None) };
        self.scopes.push();
        let inputs: Vec<&Pat> = closure.inputs.iter().collect();
        match inputs[..] {
            [item] => self.bind_item(item, each, None),
            [first, item] => {
                self.bind_item(first, accumulator.filter(|a| a.element().is_some()).unwrap_or(&UNKNOWN), None);
                self.bind_item(item, if accumulator.is_some() { each } else { &UNKNOWN }, None);
            }
            _ => inputs.iter().for_each(|p| self.scopes.bind_pattern(p, ValueKind::Static, None)),
        }
        self.closure_body(&mut closure.body, None);
        self.scopes.pop();
        ValueKind::Static
    }
}

/// Whether the name of a value is one of a constant: `FRAC_1_SQRT_2`, `W`.
fn is_constant(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}
