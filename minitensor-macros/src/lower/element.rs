//! Lowers a body to generic Rust. The macro rewrites syntax that Rust cannot overload (a literal as an operand of data,
//! comparisons, `if`, `&&`, `||`). Types do the rest. In a body of machine numbers, only literals are rewritten.

mod branch;
mod call;
mod effect;
mod lists;
mod machine;
mod operand;
mod statement;

pub use operand::shown;

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{Block, Expr, Ident, Pat, UnOp, parse_quote};

use crate::ast::Elem;
use crate::body::{Certain, Head, Scopes, ValueKind, fraction};
use crate::diag::{Message, error, messages};
use crate::dtype::{DType, DTypeSet};

pub struct Lowering<'a> {
    head: &'a Head,
    rt: &'a TokenStream,
    scopes: Scopes,
    pub errors: Vec<syn::Error>,
    /// The `let`s that hold data although their initial value is a literal.
    pub promoted: BTreeSet<usize>,
    lets: usize,
    /// The loops that end on data.
    pub ended: BTreeSet<usize>,
    loops: usize,
    /// The loops around the current expression. `None` for those without a bound.
    around: Vec<Option<usize>>,
    /// The variables that were declared without a value, and not assigned since.
    unset: Vec<Ident>,
    /// Whether the next block or expression is the result of the function.
    is_tail: bool,
    /// The number of branches around the current expression of which one is selected.
    selected: usize,
    /// The number of closures around the current expression.
    closures: usize,
    /// Whether the value of the current `let` is a number that is no element: `let n: f64 = …`.
    is_plain: bool,
}

impl<'a> Lowering<'a> {
    pub fn new(head: &'a Head, rt: &'a TokenStream, promoted: BTreeSet<usize>, ended: BTreeSet<usize>) -> Self {
        Lowering {
            head,
            rt,
            scopes: Scopes::new(head),
            errors: vec![],
            promoted,
            lets: 0,
            ended,
            loops: 0,
            around: vec![],
            unset: vec![],
            is_tail: false,
            selected: 0,
            closures: 0,
            is_plain: false,
        }
    }

    pub fn body(&mut self, block: &mut Block) {
        self.is_tail = self.head.returned.is_some() && !self.head.is_machine();
        self.block(block, self.head.returned.as_deref());
    }

    /// Reports an error, and replaces the expression by one of any type, so that rustc reports no further error.
    fn mistake(&mut self, expr: &mut Expr, at: impl ToTokens, message: &Message, args: &[&dyn std::fmt::Display]) {
        self.errors.push(error(at, message, args));
        *expr = placeholder();
    }

    // Conversion of static values to data.

    /// The dtype variable of a literal if nothing else determines it: the only one.
    fn only_variable(&self) -> Option<usize> {
        (self.head.variables().len() == 1).then_some(0)
    }

    /// As `only_variable`, for a value that may be complex.
    fn only_type(&self) -> Option<usize> {
        self.only_variable().filter(|_| self.head.complex.is_none())
    }

    /// Converts a static value to an element or a mask.
    fn coerce(&mut self, expr: &mut Expr, value: ValueKind, to: Elem) {
        if !value.is_static() || matches!(expr, Expr::Macro(_)) || self.is_unknown(expr, value) {
            return;
        }
        let rt = self.rt;
        let span = expr.span();
        let bare = without_parens(expr);
        let (Elem::Generic(i) | Elem::Mask(i)) = to else { return };
        let (generic, variable) = (&self.head.generics[i], self.head.ty(i, rt));
        if let Elem::Mask(_) = to {
            let mask = quote_spanned!(span=> <<#variable as #rt::Element>::Mask as #rt::Mask>::constant(#bare));
            *expr = Expr::Verbatim(mask);
            return;
        }
        if !generic.bound.dtypes.intersection(DTypeSet::INT).is_empty()
            && let Some(literal) = fraction(expr)
        {
            self.mistake(expr, &literal, &messages::FRACTION, &[&literal, &variable, &variable]);
            return;
        }
        *expr = Expr::Verbatim(quote_spanned!(span=> #rt::lit::<#variable>(#bare)));
    }

    /// As `coerce`, for a variable that may be unknown. `infer` means that the compiler can infer it.
    fn coerce_beside(&mut self, expr: &mut Expr, value: ValueKind, variable: Option<usize>, infer: bool) {
        if !value.is_static() {
            return;
        }
        match variable.or(self.only_variable()) {
            Some(i) if value == ValueKind::Flag => self.coerce(expr, value, Elem::Mask(i)),
            Some(i) => self.coerce(expr, value, Elem::Generic(i)),
            None if infer => {
                let (rt, bare) = (self.rt, without_parens(expr));
                *expr = Expr::Verbatim(quote_spanned!(expr.span()=> #rt::lit(#bare)));
            }
            None => {
                let (shown, names) = (expr.to_token_stream(), self.variables());
                self.mistake(expr, &shown, &messages::AMBIGUOUS, &[&shown, &names]);
            }
        }
    }

    fn variables(&self) -> String {
        let names: Vec<_> = self.head.variables().iter().map(|g| format!("`{}`", g.ident)).collect();
        names.join(" or ")
    }

    // Expressions.

    /// Lowers an expression. `want` is the required type of data, if any.
    fn value(&mut self, expr: &mut Expr, want: Option<&[Elem]>) -> ValueKind {
        if !matches!(expr, Expr::Block(_) | Expr::If(_) | Expr::Paren(_) | Expr::Group(_)) {
            self.is_tail = false;
        }
        match expr {
            Expr::Paren(inner) => self.value(&mut inner.expr, want),
            Expr::Group(inner) => self.value(&mut inner.expr, want),
            Expr::Block(inner) => self.block(&mut inner.block, want),
            Expr::Unsafe(inner) => self.block(&mut inner.block, want),
            Expr::If(_) => self.branches(expr, want),
            Expr::Match(_) => self.arms(expr, want),
            Expr::Tuple(tuple) if want.is_some_and(|w| w.len() == tuple.elems.len() && w.len() > 1) => {
                let want = want.unwrap_or_default();
                let each = tuple.elems.iter_mut().zip(want);
                each.map(|(e, to)| self.value(e, Some(std::slice::from_ref(to))))
                    .fold(ValueKind::Data(None), ValueKind::join)
            }
            _ => {
                if let Some([to]) = want
                    && self.wrong_result(expr, *to)
                {
                    *expr = placeholder();
                    return ValueKind::Data(None);
                }
                let value = self.plain(expr);
                if let Some([to]) = want {
                    self.coerce(expr, value, *to);
                }
                value
            }
        }
    }

    fn plain(&mut self, expr: &mut Expr) -> ValueKind {
        match expr {
            Expr::Lit(lit) => match &lit.lit {
                syn::Lit::Bool(_) => ValueKind::Flag,
                syn::Lit::Float(_) => ValueKind::Float,
                _ => ValueKind::Static,
            },
            Expr::Path(path) if self.wrong_function(&path.path) => {
                *expr = placeholder();
                ValueKind::Data(None)
            }
            Expr::Path(path) if self.wrong_dimension(&path.path) => {
                *expr = placeholder();
                ValueKind::Static
            }
            Expr::Try(tried) if self.closures == 0 && self.head.returned.is_some() && !self.head.is_machine() => {
                let at = tried.question_token;
                self.mistake(expr, at, &messages::QUESTION_MARK, &[]);
                ValueKind::Data(None)
            }
            Expr::Path(path) => self.scopes.path(&path.path, self.head),
            Expr::Binary(_) => self.binary(expr),
            Expr::Unary(unary) if self.wrong_unary(&unary.op, &unary.expr) => {
                *expr = placeholder();
                ValueKind::Data(None)
            }
            Expr::Index(inner) if matches!(self.certain(&inner.index), Some(Certain::Element(_))) => {
                if self.value(&mut inner.expr, None).is_static() {
                    self.value(&mut inner.index, None);
                    let (rt, table, at) = (self.rt, &inner.expr, without_parens(&inner.index));
                    let lookup = quote_spanned!(inner.index.span()=> #rt::lookup(#at, #table.iter().as_slice()));
                    *expr = Expr::Verbatim(lookup);
                    return ValueKind::Data(None);
                }
                let at = inner.index.clone();
                self.mistake(expr, &at, &messages::INDEXED_BY_DATA, &[&shown(&at)]);
                ValueKind::Data(None)
            }
            Expr::Index(inner) if self.wrong_list(&inner.expr, &inner.expr) => {
                *expr = placeholder();
                ValueKind::Data(None)
            }
            Expr::Unary(unary) => {
                let value = self.value(&mut unary.expr, None);
                if matches!(unary.op, UnOp::Neg(_)) && value.is_data() {
                    let (rt, bare, span) = (self.rt, without_parens(&unary.expr), unary.op.span());
                    *expr = Expr::Verbatim(quote_spanned!(span=> #rt::negative(#bare)));
                }
                value
            }
            Expr::Assign(assign) => {
                let left = self.value(&mut assign.left, None);
                self.assigned(&assign.left, left, &mut assign.right);
                if left == ValueKind::Data(None) && self.head.complex.is_some() && is_literal(&assign.right) {
                    // rustc infers whether the variable is complex.
                    let (rt, bare) = (self.rt, &assign.right);
                    *assign.right = Expr::Verbatim(quote_spanned!(assign.right.span()=> #rt::lit(#bare)));
                }
                ValueKind::Static
            }
            Expr::Call(_) | Expr::MethodCall(_) => self.call(expr),
            Expr::Cast(cast) => match self.value(&mut cast.expr, None) {
                ValueKind::Data(variable) if self.head.is_machine() && is_integer(&cast.ty) => {
                    if variable.is_some_and(|i| self.wrong_bound(cast.as_token, "as", "Real", i, "")) {
                        *expr = placeholder();
                        return ValueKind::Static;
                    }
                    let (rt, x, ty) = (self.rt, without_parens(&cast.expr), &cast.ty);
                    let limits = quote_spanned!(cast.span()=> <#ty>::MIN as i128, <#ty>::MAX as i128);
                    *expr = parse_quote!((#rt::truncated(#x, #limits) as #ty));
                    ValueKind::Static
                }
                value if value.is_data() => {
                    let (ty, at) = (cast.ty.to_token_stream(), cast.clone());
                    let message = if self.head.is_machine() { &messages::CAST_IN_CELL } else { &messages::CAST };
                    self.mistake(expr, at, message, &[&ty]);
                    ValueKind::Data(None)
                }
                _ if matches!(cast.ty.to_token_stream().to_string().as_str(), "f32" | "f64") => ValueKind::Float,
                _ => ValueKind::Static,
            },
            Expr::Reference(inner) => self.value(&mut inner.expr, None),
            Expr::Field(_) if matches!(self.certain(expr), Some(Certain::Element(_))) => {
                let part = self.certain(expr);
                let Expr::Field(inner) = expr else { return ValueKind::Static };
                self.value(&mut inner.base, None);
                if let Some(Certain::Element(i)) = part { ValueKind::Data(Some(i)) } else { ValueKind::Data(None) }
            }
            Expr::Field(inner) => self.value(&mut inner.base, None),
            Expr::Index(inner) => {
                self.value(&mut inner.index, None);
                match self.value(&mut inner.expr, None) {
                    ValueKind::Many(variable) if !matches!(*inner.index, Expr::Range(_)) => ValueKind::Data(variable),
                    ValueKind::Floats if !matches!(*inner.index, Expr::Range(_)) => ValueKind::Float,
                    value => value,
                }
            }
            Expr::Tuple(tuple) => match self.list(tuple.elems.iter_mut()) {
                // The elements of a tuple may have different types.
                _ if self.head.is_machine() => ValueKind::Static,
                value => value,
            },
            Expr::Array(array) => {
                let value = self.list(array.elems.iter_mut());
                if let ValueKind::Data(variable) = value {
                    for e in &mut array.elems {
                        let each = if is_literal(e) { ValueKind::Float } else { ValueKind::Data(None) };
                        self.coerce_beside(e, each, variable, true);
                    }
                }
                value.collected(self.head)
            }
            Expr::Repeat(array) => self.value(&mut array.expr, None).collected(self.head),
            Expr::Let(condition)
                if matches!(self.certain(&condition.expr), Some(Certain::Element(_) | Certain::Mask(_))) =>
            {
                let at = condition.let_token;
                self.mistake(expr, at, &messages::MATCH, &[]);
                ValueKind::Flag
            }
            Expr::Let(condition) => {
                let bound = match self.value(&mut condition.expr, None) {
                    ValueKind::Option(variable) => ValueKind::Data(variable),
                    other => other,
                };
                self.scopes.bind_pattern(&condition.pat, bound, None);
                ValueKind::Flag
            }
            Expr::Closure(closure) => {
                let data = if self.head.is_machine() { ValueKind::Static } else { ValueKind::Data(self.only_type()) };
                self.closure(closure, data, data);
                ValueKind::Static
            }
            Expr::Return(returned) if self.selected > 0 && self.closures == 0 => {
                let at = returned.return_token;
                self.mistake(expr, at, &messages::LEAVES_IF, &[&"return"]);
                ValueKind::Data(None)
            }
            Expr::Return(returned) => {
                if let Some(inner) = &mut returned.expr {
                    self.value(inner, self.head.returned.as_deref());
                }
                ValueKind::Data(None)
            }
            Expr::ForLoop(each) => {
                let end = match &*each.expr {
                    Expr::Range(range) => range.end.as_deref().and_then(|end| self.certain(end)),
                    _ => None,
                };
                if matches!(end, Some(Certain::Element(_))) {
                    let at = each.expr.clone();
                    self.mistake(expr, at, &messages::COUNT, &[]);
                    return ValueKind::Static;
                }
                if self.wrong_list(&each.expr, &each.expr) {
                    *expr = placeholder();
                    return ValueKind::Static;
                }
                let value = self.value(&mut each.expr, None);
                let id = self.loops;
                self.loops += 1;
                self.scopes.push();
                match self.head.is_machine() {
                    true => self.bind_item(&each.pat, &self.items(&each.expr)),
                    false => self.scopes.bind_pattern(&each.pat, value, None),
                }
                self.around.push(Some(id));
                let ending = self.ended.contains(&id).then(|| self.ending_loop(each, id));
                if ending.is_none() {
                    self.block(&mut each.body, None);
                }
                self.around.pop();
                self.scopes.pop();
                ending.into_iter().for_each(|ending| *expr = ending);
                ValueKind::Static
            }
            Expr::While(each) => {
                self.scopes.push();
                let written = each.cond.clone();
                let condition = self.value(&mut each.cond, None);
                self.around.push(None);
                self.block(&mut each.body, None);
                self.around.pop();
                self.scopes.pop();
                if condition.is_data() && !self.head.is_machine() {
                    let (at, condition) = (each.while_token, shown(&written));
                    self.mistake(expr, at, &messages::WHILE, &[&condition]);
                }
                ValueKind::Static
            }
            Expr::Loop(each) => {
                self.around.push(None);
                self.block(&mut each.body, None);
                self.around.pop();
                ValueKind::Static
            }
            Expr::Range(range) => {
                let ends = [&mut range.start, &mut range.end].into_iter().flatten();
                ends.map(|e| self.value(e, None)).fold(ValueKind::Static, ValueKind::join)
            }
            Expr::Macro(mac) if self.wrong_macro(&mac.mac) => {
                *expr = placeholder();
                ValueKind::Data(None)
            }
            Expr::Macro(mac) if mac.mac.path.is_ident("matches") => ValueKind::Flag,
            Expr::Macro(mac) if mac.mac.path.is_ident("vec") => {
                statement::in_vec(mac, |array| self.value(array, None)).unwrap_or(ValueKind::Static)
            }
            _ => ValueKind::Static,
        }
    }

    /// A closure whose last parameter is such an item, and the one before it such a total.
    fn closure(&mut self, closure: &mut syn::ExprClosure, total: ValueKind, item: ValueKind) {
        self.scopes.push();
        let last = closure.inputs.len().saturating_sub(1);
        for (k, pattern) in closure.inputs.iter().enumerate() {
            let own = match pattern {
                Pat::Type(typed) => self.annotation(&typed.ty),
                _ => None,
            };
            let value = match own {
                Some(Elem::Generic(i) | Elem::Mask(i)) => ValueKind::Data(Some(i)),
                _ if k == last => item,
                _ => total,
            };
            self.scopes.bind_pattern(pattern, value, None);
        }
        self.closures += 1;
        let around = std::mem::take(&mut self.around);
        self.value(&mut closure.body, None);
        self.around = around;
        self.closures -= 1;
        self.scopes.pop();
    }

    fn list<'e>(&mut self, elems: impl Iterator<Item = &'e mut Expr>) -> ValueKind {
        elems.map(|e| self.value(e, None)).reduce(ValueKind::join).unwrap_or(ValueKind::Static)
    }

    /// The right side of an assignment to `left`.
    fn assigned(&mut self, place: &Expr, left: ValueKind, right: &mut Expr) {
        if let Expr::Path(path) = place {
            self.unset.retain(|name| !path.path.is_ident(name));
        }
        let is_real = matches!(left, ValueKind::Data(Some(i)) if !self.head.is_complex(i)) || left.is_static();
        if is_real
            && let Some(Certain::Element(i)) = self.certain(right)
            && self.head.is_complex(i)
        {
            let (at, place, ty) = (right.clone(), shown(place), self.head.spelled(i));
            return self.mistake(right, &at, &messages::COMPLEX_ASSIGNED, &[&shown(&at), &place, &place, &ty]);
        }
        // An array of literals becomes one of data only if data is certain.
        let is_promoted = match place {
            Expr::Index(_) => matches!(self.certain(right), Some(Certain::Element(_) | Certain::Mask(_))),
            _ => true,
        };
        let want = match left {
            // Masks and elements cannot be distinguished here. A literal decides.
            ValueKind::Data(Some(_)) if matches!(self.certain(right), Some(Certain::Mask(_))) => None,
            ValueKind::Data(Some(i)) => Some(if is_flag(right) { Elem::Mask(i) } else { Elem::Generic(i) }),
            _ => None,
        };
        let right = self.value(right, want.as_ref().map(std::slice::from_ref));
        if left.is_static()
            && right.is_data()
            && is_promoted
            && let Expr::Path(path) = indexed(place)
            && let Some(id) = path.path.get_ident().and_then(|name| self.scopes.get(name)?.made_by)
        {
            self.promoted.insert(id);
        }
    }
}

/// The replacement of a wrong expression: it has any type.
fn placeholder() -> Expr {
    parse_quote!({ ::core::unimplemented!() })
}

/// `usize`, `i64`
fn is_integer(ty: &syn::Type) -> bool {
    let name = ty.to_token_stream().to_string();
    matches!(name.as_str(), "usize" | "isize") || DType::of_rust(&name).is_some_and(|d| DTypeSet::INT.contains(d))
}

/// `s` of `s[0]`, but not of `s.a[0]`
fn indexed(place: &Expr) -> &Expr {
    if let Expr::Index(inner) = place { indexed(&inner.expr) } else { place }
}

fn is_flag(expr: &Expr) -> bool {
    matches!(expr, Expr::Lit(lit) if matches!(lit.lit, syn::Lit::Bool(_)))
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) => true,
        Expr::Unary(unary) => is_literal(&unary.expr),
        _ => false,
    }
}

/// Removes parentheses that an argument does not need, because rustc would warn about them.
fn without_parens(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(inner) => without_parens(&inner.expr),
        other => other,
    }
}
