//! Bodies of machine numbers: literals and other numbers beside elements become elements. Everything else is plain Rust, so a value is
//! only an element if it is certain to be one. [`Flow`](crate::body::Flow) finds the elements.

use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, ExprCall, ExprStruct, GenericArgument, Ident, Lit, Pat, PatIdent, parse_quote};

use super::prepare::function_of_f64;
use super::{Lowering, is_literal, without_parens};
use crate::ast::{spelling, text};
use crate::body::flow::tables::{VIEWS, WRITES, is_in};
use crate::body::flow::{makes_struct, name_of};
use crate::body::methods::{DATA_METHODS, renamed, returns_element};
use crate::body::{Item, UNKNOWN, ValueKind};
use crate::diag::messages;

/// The names that a pattern binds.
struct Names<'a>(Vec<&'a PatIdent>);

impl<'a> Visit<'a> for Names<'a> {
    fn visit_pat_ident(&mut self, name: &'a PatIdent) {
        // `None` and constants parse as names.
        if !text(&name.ident).starts_with(char::is_uppercase) {
            self.0.push(name);
        }
        visit::visit_pat_ident(self, name);
    }
    fn visit_expr(&mut self, _: &'a Expr) {}
}

fn is_f64(argument: &GenericArgument) -> bool {
    matches!(argument, GenericArgument::Type(ty) if spelling(ty) == "f64")
}

/// Writes `_` for `f64`, as in `.collect::<Vec<f64>>()` of elements.
fn without_f64(argument: &mut GenericArgument) {
    struct Types;
    impl VisitMut for Types {
        fn visit_type_mut(&mut self, ty: &mut syn::Type) {
            if spelling(&*ty) == "f64" {
                *ty = parse_quote!(_);
            }
            visit_mut::visit_type_mut(self, ty);
        }
    }
    Types.visit_generic_argument_mut(argument);
}

impl Lowering<'_> {
    /// The structure of an expression in a body of machine numbers. The expression may be lowered already.
    pub fn structure(&self, expr: &Expr) -> Item {
        self.flow.as_ref().map_or(UNKNOWN, |flow| flow.item(expr))
    }

    /// The items that a loop over an expression binds.
    pub fn items(&self, expr: &Expr) -> Item {
        self.structure(expr).items()
    }

    /// The kind of a lowered value, or what is known of it otherwise.
    pub fn or_flow(&self, expr: &Expr, value: ValueKind) -> ValueKind {
        // `Some(x)` is no number.
        let wraps = |call: &syn::ExprCall| matches!(&*call.func, Expr::Path(path) if ["Ok", "Some"].iter().any(|name| path.path.is_ident(name)));
        match (value, expr) {
            (ValueKind::Static, Expr::Call(call)) if wraps(call) => value,
            (ValueKind::Static, expr) if self.head.is_machine() => self.structure(expr).kind(),
            _ => value,
        }
    }

    /// Binds the names of a pattern.
    pub fn bind_flow(&mut self, pattern: &Pat) {
        let mut names = Names(vec![]);
        names.visit_pat(pattern);
        for name in names.0 {
            let item = self.flow.as_ref().map_or(UNKNOWN, |flow| flow.name(name));
            self.scopes.bind(&name.ident, item.kind());
        }
    }

    pub fn machine_local(&mut self, local: &mut syn::Local) {
        let holds = self.flow.as_ref().map_or(UNKNOWN, |flow| flow.pattern(&local.pat));
        if let (Pat::Type(typed), Some(init)) = (&local.pat, &local.init)
            && spelling(&typed.ty) == "f64"
            && self.structure(&init.expr).is_element()
        {
            self.report(&typed.ty, &messages::CONCRETE_LET, &[&"f64"]);
        }
        if let Some(init) = &mut local.init {
            self.value(&mut init.expr, None);
            self.coerce_like(&mut init.expr, &holds);
            if let Some((_, otherwise)) = &mut init.diverge {
                self.value(otherwise, None);
            }
        }
        self.bind_flow(&local.pat);
    }

    /// Converts the numbers of a lowered expression to elements, where its place holds elements.
    pub fn coerce_like(&mut self, expr: &mut Expr, place: &Item) {
        match (expr, place) {
            (Expr::Paren(inner), place) => self.coerce_like(&mut inner.expr, place),
            (Expr::Reference(inner), place) => self.coerce_like(&mut inner.expr, place),
            (Expr::Tuple(tuple), Item::Tuple(parts)) => {
                tuple.elems.iter_mut().zip(parts).for_each(|(e, part)| self.coerce_like(e, part));
            }
            (Expr::Array(array), Item::List(each)) => {
                array.elems.iter_mut().for_each(|e| self.coerce_like(e, each));
            }
            (Expr::Repeat(array), Item::List(each)) => self.coerce_like(&mut array.expr, each),
            (Expr::Block(block), place) => self.coerce_tail(&mut block.block, place),
            (Expr::If(branch), place) => {
                self.coerce_tail(&mut branch.then_branch, place);
                branch.else_branch.iter_mut().for_each(|(_, e)| self.coerce_like(e, place));
            }
            (Expr::Match(choice), place) => {
                choice.arms.iter_mut().for_each(|arm| self.coerce_like(&mut arm.body, place));
            }
            (Expr::Closure(closure), place) => self.coerce_like(&mut closure.body, place),
            (Expr::MethodCall(call), place @ Item::List(each)) => {
                match (call.method.to_string().as_str(), call.args.first_mut()) {
                    ("collect", None) => self.coerce_like(&mut call.receiver, place),
                    ("map", Some(function)) => self.coerce_like(function, each),
                    _ => {}
                }
            }
            (Expr::Call(call), place) => {
                let Expr::Path(path) = &*call.func else { return };
                let name = path.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
                let (first, place) = match (&*name, place) {
                    ("Some" | "Ok" | "vec_of", place) => (call.args.first_mut(), place),
                    ("vec_repeat", Item::List(each)) => (call.args.first_mut(), &**each),
                    ("from_elem" | "from_shape_fn", Item::List(each)) => (call.args.last_mut(), &**each),
                    _ => return,
                };
                first.into_iter().for_each(|first| self.coerce_like(first, place));
            }
            // It is converted already.
            (Expr::Verbatim(_), _) => {}
            (expr, Item::One(ValueKind::Data(variable))) => {
                let value = match self.structure(expr) {
                    Item::One(ValueKind::Float) => ValueKind::Float,
                    item if item.is_number() => ValueKind::Static,
                    _ => return,
                };
                self.coerce_beside(expr, value, *variable, true);
            }
            _ => {}
        }
    }

    fn coerce_tail(&mut self, block: &mut Block, place: &Item) {
        if let Some(syn::Stmt::Expr(tail, None)) = block.stmts.last_mut() {
            self.coerce_like(tail, place);
        }
    }

    /// The fields of a struct.
    pub fn fields(&mut self, expr: &mut Expr) -> ValueKind {
        let Expr::Struct(ExprStruct { path, fields, rest, .. }) = expr else { return ValueKind::Static };
        let of = path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        for field in fields {
            self.value(&mut field.expr, None);
            let holds = self.flow.as_ref().map_or(UNKNOWN, |flow| flow.field(&of, &name_of(&field.member)));
            let was_short = field.colon_token.is_none();
            self.coerce_like(&mut field.expr, &holds);
            if was_short && matches!(field.expr, Expr::Verbatim(_)) {
                field.colon_token = Some(Default::default());
            }
        }
        rest.iter_mut().for_each(|rest| _ = self.value(rest, None));
        ValueKind::Static
    }

    /// Whether a static value is not certain to be a number, in a body of machine numbers.
    pub fn is_unknown(&self, expr: &Expr, value: ValueKind) -> bool {
        self.head.is_machine() && value != ValueKind::Float && !self.is_number(expr)
    }

    /// An integer or a constant of Rust, or a literal without a suffix, which the compiler does not know the type of.
    fn is_number(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Lit(lit) => match &lit.lit {
                Lit::Int(int) => int.suffix().is_empty(),
                Lit::Float(float) => float.suffix().is_empty(),
                _ => false,
            },
            Expr::Unary(unary) => self.is_number(&unary.expr),
            Expr::Paren(inner) => self.is_number(&inner.expr),
            expr => self.structure(expr).is_number(),
        }
    }

    /// Converts the integer beside a float, which Rust does not.
    pub fn level_numbers(&self, left: &mut Expr, right: &mut Expr) {
        let is_float = |expr: &Expr| self.structure(expr) == Item::One(ValueKind::Float);
        let is_integer = |expr: &Expr| self.structure(expr) == Item::Number;
        let integer = match (is_float(left), is_float(right)) {
            (true, false) if is_integer(right) => right,
            (false, true) if is_integer(left) => left,
            _ => return,
        };
        let bare = without_parens(integer);
        *integer = Expr::Verbatim(quote_spanned!(integer.span()=> ((#bare) as f64)));
    }

    /// A call or a method call.
    pub fn machine_call(&mut self, expr: &mut Expr) -> ValueKind {
        let result = self.structure(expr);
        match expr {
            Expr::MethodCall(call) => {
                if self.wrong_slice(call) {
                    *expr = super::placeholder();
                    return ValueKind::Static;
                }
                let each = self.items(&call.receiver);
                if self.wrong_cell_method(call, &each) {
                    *expr = super::placeholder();
                    return ValueKind::Data(None);
                }
                let of = self.structure(&call.receiver);
                let receiver = self.value(&mut call.receiver, None);
                let name = call.method.to_string();
                let gives_same = matches!(&*name, "unwrap_or" | "or" | "map_or");
                if let ValueKind::Data(Some(variable)) = receiver
                    && self.wrong_element_method(call, variable)
                {
                    *expr = super::placeholder();
                    return receiver;
                }
                if let (ValueKind::Data(variable), false) = (receiver, gives_same) {
                    let ours = renamed(&name, call.args.len());
                    self.element_arguments(ours, call.args.iter_mut(), variable);
                    call.method = Ident::new(ours, call.method.span());
                    return if returns_element(ours) { receiver } else { ValueKind::Static };
                }
                call.args.iter_mut().for_each(|arg| _ = self.value(arg, None));
                if let ("collect", true, Some(named)) = (&*name, each.is_element(), &mut call.turbofish) {
                    named.args.iter_mut().for_each(without_f64);
                }
                // The value that a fold begins with is what its closure takes.
                let total = match (&*name, call.args.iter().nth(1)) {
                    ("fold" | "try_fold" | "scan", Some(Expr::Closure(step))) => step.inputs.first(),
                    _ => None,
                };
                let holds = match total {
                    Some(total) => self.flow.as_ref().map_or(UNKNOWN, |flow| flow.pattern(total)),
                    None if name == "map_or" => result,
                    None if gives_same => of,
                    None => each.clone(),
                };
                let written = match () {
                    () if total.is_some() || gives_same => call.args.first_mut(),
                    () if is_in(WRITES, &name) => call.args.last_mut(),
                    () => None,
                };
                written.into_iter().for_each(|arg| self.coerce_like(arg, &holds));
                if let (Item::One(ValueKind::Data(variable)), "sum" | "product") = (&each, name.as_str()) {
                    // A view of ndarray is summed by its iterator.
                    let is_view = match &*call.receiver {
                        Expr::Path(_) => true,
                        Expr::MethodCall(inner) => is_in(VIEWS, &inner.method.to_string()),
                        _ => false,
                    };
                    if is_view {
                        let view = &call.receiver;
                        *call.receiver = parse_quote!(#view.iter());
                    }
                    // The type of a sum of elements is known here, unlike in Rust. `.sum::<f64>()` is one, too.
                    let is_open = call.turbofish.as_ref().is_none_or(|t| t.args.iter().all(is_f64));
                    let ty = variable.filter(|_| is_open).map(|i| &self.head.generics[i].ident);
                    call.turbofish = ty.map(|ty| parse_quote!(::<#ty>)).or(call.turbofish.take());
                }
                // A function of a number, such as `(n as f64).sqrt()`.
                let is_float = receiver == ValueKind::Float && returns_element(renamed(&name, call.args.len()));
                if is_float { receiver } else { ValueKind::Static }
            }
            Expr::Call(call) => {
                if let Some((method, kind)) = self.method_of_f64(call) {
                    *expr = method;
                    return kind;
                }
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
                if let (true, "from", Some(number)) = (is_constructor, &*last, call.args.first())
                    && !self.structure(number).has_element()
                {
                    let (rt, variable) = (self.rt, &path.segments[0]);
                    *expr = Expr::Verbatim(quote_spanned!(number.span()=> #rt::lit::<#variable>(#number)));
                    return ValueKind::Data(self.only_variable());
                }
                let params =
                    self.flow.as_ref().and_then(|flow| flow.closure(&call.func)).map(|(params, _)| params.clone());
                let is_whole = |item: &Item| {
                    matches!(item, Item::One(ValueKind::Data(_)) | Item::Tuple(_) | Item::Struct(_))
                        && item.has_element()
                };
                let takes_elements =
                    call.args.iter().any(|arg| !matches!(arg, Expr::Reference(_)) && is_whole(&self.structure(arg)));
                let takes_views = call.args.iter().any(|arg| self.structure(arg).has_element());
                let values: Vec<_> = call.args.iter_mut().map(|arg| self.value(arg, None)).collect();
                if let ("replace", 2) = (&*last, call.args.len()) {
                    let holds = self.structure(&call.args[0]);
                    self.coerce_like(&mut call.args[1], &holds);
                }
                if makes_struct(&path) {
                    for (k, arg) in call.args.iter_mut().enumerate() {
                        let holds = self.flow.as_ref().map_or(UNKNOWN, |flow| flow.field(&last, &k.to_string()));
                        self.coerce_like(arg, &holds);
                    }
                    return ValueKind::Static;
                }
                match params {
                    Some(params) => {
                        call.args.iter_mut().zip(&params).for_each(|(arg, param)| self.coerce_like(arg, param))
                    }
                    // A parameter may be an element, or an `f64`, which is one too.
                    None if is_constructor || takes_elements => {
                        call.args.iter_mut().zip(values).for_each(|(arg, value)| self.literal_argument(arg, value));
                    }
                    None if takes_views => call.args.iter_mut().for_each(|arg| self.convert_literals(arg)),
                    None => {}
                }
                match is_constructor && returns_element(&last) {
                    true => ValueKind::Data(self.only_variable()),
                    false => ValueKind::Static,
                }
            }
            _ => ValueKind::Static,
        }
    }

    /// Lowers the arguments of a method of an element.
    fn element_arguments<'e>(
        &mut self,
        method: &str,
        args: impl Iterator<Item = &'e mut Expr>,
        variable: Option<usize>,
    ) {
        let are_elements = DATA_METHODS.contains(&method);
        for arg in args {
            if method == "powi" && !is_literal(arg) {
                let (rt, bare) = (self.rt, without_parens(arg));
                *arg = Expr::Verbatim(quote_spanned!(arg.span()=> #rt::exponent(#bare)));
            }
            let value = self.value(arg, None);
            if are_elements {
                self.coerce_beside(arg, value, variable, true);
            }
        }
    }

    /// `f64::max(x, y)` of elements as `x.max(y)`.
    fn method_of_f64(&mut self, call: &mut ExprCall) -> Option<(Expr, ValueKind)> {
        let name = function_of_f64(&call.func)?;
        let Item::One(ValueKind::Data(variable)) =
            call.args.iter().map(|arg| self.structure(arg)).find(Item::is_element)?
        else {
            return None;
        };
        let method = renamed(&name.to_string(), call.args.len() - 1).to_owned();
        let mut args = call.args.iter_mut();
        let receiver = args.next()?;
        let value = self.value(receiver, None);
        self.coerce_beside(receiver, value, variable, true);
        self.element_arguments(&method, args, variable);
        let (receiver, others, name) = (&call.args[0], call.args.iter().skip(1), Ident::new(&method, name.span()));
        let kind = if returns_element(&method) { ValueKind::Data(variable) } else { ValueKind::Static };
        Some((parse_quote!((#receiver).#name(#(#others),*)), kind))
    }

    /// Converts float literals to the type of the parameter: a dtype variable, or `f64`.
    fn convert_literals(&mut self, arg: &mut Expr) {
        match arg {
            Expr::Reference(inner) => self.convert_literals(&mut inner.expr),
            Expr::Array(array) => array.elems.iter_mut().for_each(|item| self.convert_literals(item)),
            Expr::Repeat(array) => self.convert_literals(&mut array.expr),
            Expr::Call(call) => {
                let Expr::Path(path) = &*call.func else { return };
                if path.path.segments.last().is_some_and(|s| s.ident == "vec_of" || s.ident == "vec_repeat") {
                    call.args.first_mut().into_iter().for_each(|list| self.convert_literals(list));
                }
            }
            arg if is_literal(arg) => {
                let value = self.value(arg, None);
                self.literal_argument(arg, value);
            }
            _ => {}
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
}
