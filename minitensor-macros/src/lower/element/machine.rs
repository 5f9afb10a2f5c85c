//! Bodies of machine numbers: which values are elements, so that literals beside them become elements. Everything else is
//! plain Rust, so a value is only an element if it is certain to be one.

use quote::{ToTokens, quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprField, ExprUnary, Member, Pat, Token, Type, UnOp, parse_quote};

use super::expression::is_integer;
use super::statement::in_vec;
use super::{Lowering, is_literal, without_parens};
use crate::ast::{Elem, spelling};
use crate::body::methods::{DATA_METHODS, renamed, returns_element};
use crate::body::{Binding, Certain, Item, UNKNOWN, ValueKind, mentions};
use crate::parse::wrapped;

/// Methods of slices, views and iterators that keep the items.
pub const SAME_ITEMS: &[&str] = &[
    "iter",
    "iter_mut",
    "into_iter",
    "rev",
    "skip",
    "take",
    "step_by",
    "copied",
    "cloned",
    "by_ref",
    "to_vec",
    "to_owned",
    "view",
    "view_mut",
    "row",
    "row_mut",
    "column",
    "column_mut",
    "slice",
    "slice_mut",
];

/// Those whose items are slices or views.
const PARTS: &[&str] = &[
    "windows",
    "chunks",
    "chunks_mut",
    "chunks_exact",
    "chunks_exact_mut",
    "rows",
    "rows_mut",
    "columns",
    "columns_mut",
    "outer_iter",
    "outer_iter_mut",
];

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

    /// `0.0`, `-1.0`, `f64::INFINITY`
    fn is_constant_float(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Unary(unary) => self.is_constant_float(&unary.expr),
            Expr::Path(path) => self.scopes.path(&path.path, self.head) == ValueKind::Float,
            _ => is_float(expr),
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

    /// The dtype variable in the type of a `let` that holds many elements: `Vec<T>`, `Array2<T>`, `[T; 4]`, `&[T]`.
    pub fn many(&self, ty: &Type) -> Option<usize> {
        let elem = match ty {
            Type::Reference(inner) => return self.many(&inner.elem),
            Type::Array(array) => &*array.elem,
            Type::Slice(slice) => &*slice.elem,
            Type::Path(path) => {
                let is_list = |name: String| name == "Vec" || name.starts_with("Array");
                let last = path.path.segments.last().filter(|s| is_list(s.ident.to_string()))?;
                let name = last.arguments.to_token_stream().to_string().replace(' ', "");
                return self.head.generics.iter().position(|g| name == format!("<{}>", g.ident));
            }
            _ => return None,
        };
        let is_machine = self.head.is_machine();
        self.head.generics.iter().position(|g| is_machine && g.ident == elem.to_token_stream().to_string())
    }

    /// The items that a loop over an expression binds.
    pub fn items(&self, expr: &Expr) -> Item {
        self.structure(expr).items()
    }

    /// The structure of an expression before it is lowered.
    pub fn structure(&self, expr: &Expr) -> Item {
        match expr {
            Expr::Paren(inner) => self.structure(&inner.expr),
            Expr::Reference(inner) => self.structure(&inner.expr),
            Expr::Unary(ExprUnary { op: UnOp::Deref(_), expr, .. }) => self.structure(expr),
            Expr::Path(path) => match path.path.get_ident().and_then(|name| self.scopes.get(name)) {
                Some(Binding { item: Some(item), .. }) => item,
                Some(binding) if binding.certain == Some(Certain::NUMBER) => Item::Number,
                _ => match self.scopes.path(&path.path, self.head) {
                    ValueKind::Static if self.is_number(expr) => Item::Number,
                    kind => Item::of(kind),
                },
            },
            Expr::Index(inner) if matches!(*inner.index, Expr::Range(_)) => self.structure(&inner.expr),
            Expr::Index(inner) => self.items(&inner.expr),
            Expr::Field(ExprField { base, member: Member::Unnamed(at), .. }) => {
                self.structure(base).part(at.index as usize)
            }
            Expr::MethodCall(call) => self.structure_of_call(call),
            Expr::Range(range) => {
                let are_numbers = [&range.start, &range.end].into_iter().flatten().all(|end| self.is_number(end));
                Item::list(if are_numbers { Item::Number } else { UNKNOWN })
            }
            Expr::Tuple(tuple) => Item::Tuple(tuple.elems.iter().map(|e| self.structure(e)).collect()),
            Expr::Array(array) => {
                let each: Vec<_> = array.elems.iter().map(|e| self.structure(e)).collect();
                let are_equal = each.windows(2).all(|pair| pair[0] == pair[1]);
                Item::list(each.into_iter().next().filter(|_| are_equal).unwrap_or(UNKNOWN))
            }
            Expr::Repeat(array) => Item::list(self.structure(&array.expr)),
            Expr::Macro(mac) if mac.mac.path.is_ident("vec") => {
                in_vec(&mut mac.clone(), |array| self.structure(array)).unwrap_or(UNKNOWN)
            }
            expr if self.is_constant_float(expr) => Item::One(ValueKind::Float),
            expr if self.is_number(expr) => Item::Number,
            _ => UNKNOWN,
        }
    }

    fn structure_of_call(&self, call: &syn::ExprMethodCall) -> Item {
        let (name, value) = (call.method.to_string(), self.structure(&call.receiver));
        match name.as_str() {
            name if SAME_ITEMS.contains(&name) => value,
            name if PARTS.contains(&name) => Item::list(value),
            "enumerate" | "indexed_iter" | "indexed_iter_mut" => {
                let at = if name == "enumerate" { Item::Number } else { UNKNOWN };
                Item::list(Item::Tuple(vec![at, value.items()]))
            }
            "zip" if call.args.len() == 1 => Item::list(Item::Tuple(vec![value.items(), self.items(&call.args[0])])),
            "fold" if self.begins(call) => self.structure(&call.args[0]).promoted(self.head),
            _ => UNKNOWN,
        }
    }

    /// Whether the first argument of a call is a value that elements are added to.
    fn begins(&self, call: &syn::ExprMethodCall) -> bool {
        let is_fold = call.method == "fold" && !self.is_plain && uses_item(&call.args);
        (is_fold || call.method == "fill") && self.items(&call.receiver).element().is_some()
    }

    /// The structure of a value with this type.
    pub fn structure_of_type(&mut self, ty: &Type) -> Item {
        match ty {
            Type::Reference(inner) => self.structure_of_type(&inner.elem),
            Type::Tuple(tuple) => Item::Tuple(tuple.elems.iter().map(|ty| self.structure_of_type(ty)).collect()),
            Type::Array(array) => Item::list(self.structure_of_type(&array.elem)),
            Type::Slice(slice) => Item::list(self.structure_of_type(&slice.elem)),
            ty if is_integer(ty) => Item::Number,
            ty => match (wrapped(ty, "Vec"), self.annotation(ty)) {
                (Some(of), _) => Item::list(self.structure_of_type(of)),
                (_, Some(Elem::Generic(i))) => Item::One(ValueKind::Data(Some(i))),
                _ if spelling(ty) == "f64" => Item::One(ValueKind::Float),
                _ => UNKNOWN,
            },
        }
    }

    /// Binds the names of a pattern to the parts of an item.
    pub fn bind_item(&mut self, pattern: &Pat, item: &Item, made_by: Option<usize>) {
        match (pattern, item) {
            (Pat::Reference(inner), item) => self.bind_item(&inner.pat, item, made_by),
            (Pat::Paren(inner), item) => self.bind_item(&inner.pat, item, made_by),
            (Pat::Type(typed), item) => match self.annotation(&typed.ty) {
                Some(Elem::Generic(i)) => {
                    self.bind_item(&typed.pat, &Item::One(ValueKind::Data(Some(i))), made_by);
                }
                _ => self.bind_item(&typed.pat, item, made_by),
            },
            (Pat::Ident(name), item) => {
                self.scopes.bind_let(&name.ident, item.kind().unwrap_or(ValueKind::Static), made_by);
                match item {
                    Item::Number => self.scopes.know(&name.ident, Some(Certain::NUMBER)),
                    item if item.kind().is_none() => self.scopes.structure(&name.ident, item.clone()),
                    _ => {}
                }
            }
            (Pat::Tuple(tuple), Item::Tuple(parts)) if tuple.elems.len() == parts.len() => {
                for (pattern, part) in tuple.elems.iter().zip(parts) {
                    self.bind_item(pattern, part, made_by);
                }
            }
            (pattern, _) => self.scopes.bind_pattern(pattern, ValueKind::Static, made_by),
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

/// `0.5`, without a suffix
fn is_float(expr: &Expr) -> bool {
    matches!(expr, Expr::Lit(lit) if matches!(&lit.lit, syn::Lit::Float(float) if float.suffix().is_empty()))
}

/// Whether the closure of a fold uses its item: `|total, x| total + x`, but not `|count, _| count + 1.0`.
fn uses_item(args: &Punctuated<Expr, Token![,]>) -> bool {
    let Some(Expr::Closure(closure)) = args.iter().nth(1) else { return false };
    let item = closure.inputs.last().map(ToTokens::to_token_stream).unwrap_or_default();
    mentions(closure.body.to_token_stream(), &|name| mentions(item.clone(), &|item| item == name))
}
