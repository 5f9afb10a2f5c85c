//! Expressions of Rust that hold elements.

use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprArray, ExprAssign, ExprClosure, ExprIndex, Pat, UnOp, parse_quote};

use super::{Lowering, is_literal, placeholder, shown, without_parens};
use crate::ast::{Elem, spelling};
use crate::body::flow::is_integer;
use crate::body::{Certain, ValueKind, certain};
use crate::diag::messages;

impl Lowering<'_> {
    pub fn unary(&mut self, expr: &mut Expr) -> ValueKind {
        let Expr::Unary(unary) = expr else { return ValueKind::Static };
        let value = self.value(&mut unary.expr, None);
        if matches!(unary.op, UnOp::Neg(_)) && value.is_data() && !self.has_negation(value) {
            let (rt, bare, span) = (self.rt, without_parens(&unary.expr), unary.op.span());
            *expr = Expr::Verbatim(quote_spanned!(span=> #rt::negative(#bare)));
        }
        value
    }

    /// Whether `-x` is the operator of Rust, which references have, too.
    fn has_negation(&self, value: ValueKind) -> bool {
        let variable = if let ValueKind::Data(i) = value { i.or(self.only_variable()) } else { None };
        let is_field = |i: usize| matches!(self.head.generics[i].bound.name, "Field" | "Float");
        self.head.is_machine() && variable.is_some_and(is_field)
    }

    /// `table[x]`: an element of a table at an index that is data.
    pub fn lookup(&mut self, expr: &mut Expr) -> ValueKind {
        let Expr::Index(inner) = expr else { return ValueKind::Static };
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

    pub fn index(&mut self, inner: &mut ExprIndex) -> ValueKind {
        let at = inner.index.clone();
        if matches!(self.value(&mut inner.index, None), ValueKind::Data(Some(_))) && self.head.is_machine() {
            self.mistake(&mut inner.index, &at, &messages::ELEMENT_INDEX, &[&shown(&at), &shown(&at)]);
        }
        match self.value(&mut inner.expr, None) {
            ValueKind::Many(variable) if !matches!(*inner.index, Expr::Range(_)) => ValueKind::Data(variable),
            ValueKind::Floats if !matches!(*inner.index, Expr::Range(_)) => ValueKind::Float,
            _ if self.head.is_machine() => ValueKind::Static,
            value => value,
        }
    }

    /// `z.re`.
    pub fn complex_part(&mut self, expr: &mut Expr) -> ValueKind {
        let part = self.certain(expr);
        let Expr::Field(inner) = expr else { return ValueKind::Static };
        self.value(&mut inner.base, None);
        if let Some(Certain::Element(i)) = part { ValueKind::Data(Some(i)) } else { ValueKind::Data(None) }
    }

    pub fn cast(&mut self, expr: &mut Expr) -> ValueKind {
        let Expr::Cast(cast) = expr else { return ValueKind::Static };
        let condition = self.certain(&cast.expr);
        match self.value(&mut cast.expr, None) {
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
            // A condition is 1 or 0.
            ValueKind::Data(_) if self.is_mask_as_number(&condition, &cast.ty) => {
                let (rt, mask) = (self.rt, without_parens(&cast.expr));
                let ty = self.head.ty(self.only_variable().unwrap_or(0), rt);
                let select =
                    quote_spanned!(cast.span()=> <#ty as #rt::Element>::select(#mask, #rt::lit(1), #rt::lit(0)));
                *expr = Expr::Verbatim(select);
                ValueKind::Data(self.only_variable())
            }
            // An `f64` attribute is an element already.
            ValueKind::Data(Some(i)) if certain::of_type(&cast.ty, self.head) == Some(Certain::Element(i)) => {
                *expr = (*cast.expr).clone();
                ValueKind::Data(Some(i))
            }
            value if value.is_data() => {
                let (ty, at) = (cast.ty.to_token_stream(), cast.clone());
                let message = if self.head.is_machine() { &messages::CAST_IN_CELL } else { &messages::CAST };
                self.mistake(expr, at, message, &[&ty]);
                ValueKind::Data(None)
            }
            _ if matches!(cast.ty.to_token_stream().to_string().as_str(), "f32" | "f64") => ValueKind::Float,
            // `k as T`
            _ => match certain::of_type(&cast.ty, self.head) {
                Some(Certain::Element(variable)) => {
                    let (rt, number, ty) = (self.rt, without_parens(&cast.expr), &cast.ty);
                    *expr = Expr::Verbatim(quote_spanned!(cast.span()=> #rt::lit::<#ty>(#number)));
                    ValueKind::Data(Some(variable))
                }
                _ => ValueKind::Static,
            },
        }
    }

    /// Whether a mask is cast to a number of the only dtype variable.
    fn is_mask_as_number(&self, value: &Option<Certain>, ty: &syn::Type) -> bool {
        let is_number =
            certain::of_type(ty, self.head) == Some(Certain::Element(0)) || ty.to_token_stream().to_string() == "f64";
        matches!(value, Some(Certain::Mask(0))) && is_number && self.only_variable() == Some(0)
    }

    /// `x?`.
    pub fn question(&mut self, expr: &mut Expr) -> ValueKind {
        let Expr::Try(tried) = expr else { return ValueKind::Static };
        if self.closures > 0 || self.head.returned.is_none() || self.head.is_machine() {
            return ValueKind::Static;
        }
        let at = tried.question_token;
        self.mistake(expr, at, &messages::QUESTION_MARK, &[]);
        ValueKind::Data(None)
    }

    pub fn array(&mut self, array: &mut ExprArray) -> ValueKind {
        let value = self.list(array.elems.iter_mut());
        if let ValueKind::Data(variable) = value {
            for e in &mut array.elems {
                let each = if is_literal(e) { ValueKind::Float } else { ValueKind::Data(None) };
                self.coerce_beside(e, each, variable, true);
            }
        }
        value.collected(self.head)
    }

    pub fn list<'e>(&mut self, elems: impl Iterator<Item = &'e mut Expr>) -> ValueKind {
        elems.map(|e| self.value(e, None)).reduce(ValueKind::join).unwrap_or(ValueKind::Static)
    }

    /// `let pattern = value` as a condition.
    pub fn condition(&mut self, expr: &mut Expr) -> ValueKind {
        let Expr::Let(condition) = expr else { return ValueKind::Flag };
        if matches!(self.certain(&condition.expr), Some(Certain::Element(_) | Certain::Mask(_))) {
            let at = condition.let_token;
            self.mistake(expr, at, &messages::MATCH, &[]);
            return ValueKind::Flag;
        }
        let bound = match self.value(&mut condition.expr, None) {
            ValueKind::Option(variable) => ValueKind::Data(variable),
            other => other,
        };
        match self.head.is_machine() {
            true => self.bind_flow(&condition.pat),
            false => self.scopes.bind_pattern(&condition.pat, bound, None),
        }
        ValueKind::Flag
    }

    pub fn returned(&mut self, expr: &mut Expr) -> ValueKind {
        let Expr::Return(returned) = expr else { return ValueKind::Static };
        if self.selected > 0 && self.closures == 0 {
            let at = returned.return_token;
            self.mistake(expr, at, &messages::LEAVES_IF, &[&"return"]);
        } else if let Some(inner) = &mut returned.expr {
            let want = self.head.returned.as_deref().filter(|_| self.closures == 0);
            self.value(inner, want);
        }
        ValueKind::Data(None)
    }

    /// A closure whose last parameter is such an item, and the one before it such a total.
    pub fn closure(&mut self, closure: &mut ExprClosure, total: ValueKind, item: ValueKind) -> ValueKind {
        self.scopes.push();
        if self.head.is_machine() {
            closure.inputs.iter().for_each(|pattern| self.bind_flow(pattern));
            let value = self.closure_body(&mut closure.body, None);
            self.scopes.pop();
            return value;
        }
        let last = closure.inputs.len().saturating_sub(1);
        for (k, pattern) in closure.inputs.iter().enumerate() {
            let own = match pattern {
                Pat::Type(typed) => self.annotation(&typed.ty),
                _ => None,
            };
            let value = match own {
                Some(Elem::Generic(i) | Elem::Mask(i)) => ValueKind::Data(Some(i)),
                _ if matches!(pattern, Pat::Type(typed) if is_integer(&typed.ty)) => ValueKind::Static,
                _ if k == last => item,
                _ => total,
            };
            self.scopes.bind_pattern(pattern, value, None);
        }
        let value = self.closure_body(&mut closure.body, None);
        self.scopes.pop();
        value
    }

    /// Makes the `f64` parameters of a closure that uses elements elements, as those of a function are.
    pub fn uniforms(&self, closure: &mut ExprClosure) {
        let Some(variable) = self.only_variable().filter(|_| self.uses_data(closure)) else { return };
        let variable = self.head.ty(variable, self.rt);
        for pattern in &mut closure.inputs {
            if let Pat::Type(typed) = pattern
                && spelling(&typed.ty) == "f64"
            {
                *typed.ty = parse_quote!(#variable);
            }
        }
    }

    /// The body of a closure. The loops around it are not its own.
    pub fn closure_body(&mut self, body: &mut Expr, want: Option<&[Elem]>) -> ValueKind {
        self.closures += 1;
        let around = std::mem::take(&mut self.around);
        let value = self.value(body, want);
        self.around = around;
        self.closures -= 1;
        value
    }

    pub fn assign(&mut self, assign: &mut ExprAssign) -> ValueKind {
        if let (Expr::Tuple(left), Expr::Tuple(right)) = (&mut *assign.left, &mut *assign.right)
            && left.elems.len() == right.elems.len()
        {
            for (left, right) in left.elems.iter_mut().zip(&mut right.elems) {
                let value = self.value(left, None);
                self.assigned(left, value, right);
            }
            return ValueKind::Static;
        }
        let left = self.value(&mut assign.left, None);
        if self.wrong_place(&assign.left) {
            return ValueKind::Static;
        }
        self.assigned(&assign.left, left, &mut assign.right);
        if left == ValueKind::Data(None) && self.head.has_types() && is_literal(&assign.right) {
            // rustc infers whether the variable is complex, or bits.
            let (rt, bare) = (self.rt, &assign.right);
            *assign.right = Expr::Verbatim(quote_spanned!(assign.right.span()=> #rt::lit(#bare)));
        }
        ValueKind::Static
    }

    /// Whether a place is an element of an input of a cell.
    pub fn wrong_place(&mut self, place: &Expr) -> bool {
        let Expr::Index(index) = place else { return false };
        let Expr::Path(path) = &*index.expr else { return false };
        let binding = path.path.get_ident().and_then(|name| self.scopes.get(name));
        let is_input = binding.is_some_and(|b| b.certain == Some(Certain::Rust("a slice")));
        let name = shown(&index.expr);
        is_input && self.report(place, &messages::INPUT_PLACE, &[&name, &name, &name, &name])
    }

    /// The right side of an assignment to `left`.
    pub fn assigned(&mut self, place: &Expr, left: ValueKind, right: &mut Expr) {
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
        let made_by = match root(place) {
            Expr::Path(path) => path.path.get_ident().and_then(|name| self.scopes.get(name)?.made_by),
            _ => None,
        };
        // A list of integers becomes one of data only if data is certain.
        let is_promoted = match place {
            Expr::Path(_) => true,
            _ if made_by.is_some_and(|id| self.floats.contains(&id)) => true,
            Expr::Index(_) if is_indexed(place) => {
                matches!(self.certain(right), Some(Certain::Element(_) | Certain::Mask(_)))
            }
            _ => false,
        };
        let want = match left {
            // Masks and elements cannot be distinguished here. A literal decides.
            ValueKind::Data(Some(_)) if matches!(self.certain(right), Some(Certain::Mask(_))) => None,
            ValueKind::Data(Some(i)) => Some(if is_flag(right) { Elem::Mask(i) } else { Elem::Generic(i) }),
            _ => None,
        };
        let value = self.value(right, want.as_ref().map(std::slice::from_ref));
        if self.head.is_machine() {
            if let (ValueKind::Float, ValueKind::Data(_)) = (left, value) {
                let (at, place) = (right.clone(), shown(place));
                return self.mistake(right, &at, &messages::FLOAT_PLACE, &[&shown(&at), &place]);
            }
            return self.coerce_like(right, &self.structure(place));
        }
        let right = value;
        if left.is_static()
            && right.is_data()
            && is_promoted
            && let Some(id) = made_by
        {
            self.promoted.insert(id);
        }
    }
}

/// Whether it is `s[0]` or `s[0][1]`, but not `s.a[0]`.
fn is_indexed(place: &Expr) -> bool {
    match place {
        Expr::Index(inner) => is_indexed(&inner.expr),
        place => matches!(place, Expr::Path(_)),
    }
}

/// `s` of `s[0].1`
fn root(place: &Expr) -> &Expr {
    match place {
        Expr::Index(inner) => root(&inner.expr),
        Expr::Field(inner) => root(&inner.base),
        place => place,
    }
}

fn is_flag(expr: &Expr) -> bool {
    matches!(expr, Expr::Lit(lit) if matches!(lit.lit, syn::Lit::Bool(_)))
}
