//! Blocks and statements: which names hold data.

use proc_macro2::TokenTree;
use quote::{ToTokens, quote};
use syn::{Block, Expr, ExprMacro, Pat, Stmt, Type};

use super::{Lowering, placeholder};
use crate::ast::{Elem, spelling};
use crate::body::{Certain, ValueKind, certain, holds};
use crate::diag::{error, messages};
use crate::dtype::DType;
use crate::parse::wrapped;

impl Lowering<'_> {
    pub fn block(&mut self, block: &mut Block, want: Option<&[Elem]>) -> ValueKind {
        let is_tail = std::mem::take(&mut self.is_tail);
        self.scopes.push();
        let mut value = ValueKind::Static;
        let mut i = 0;
        while i < block.stmts.len() {
            if is_tail {
                self.early_return(block, i);
            }
            let is_last = i + 1 == block.stmts.len();
            match &mut block.stmts[i] {
                Stmt::Local(local) => self.local(local),
                Stmt::Expr(expr, semi) if is_last && semi.is_none() => {
                    self.is_tail = is_tail;
                    value = self.value(expr, want);
                    self.is_tail = false;
                }
                Stmt::Expr(expr, _) => {
                    self.value(expr, None);
                }
                Stmt::Macro(stmt) => _ = self.wrong_macro(&stmt.mac),
                Stmt::Item(_) => {}
            }
            i += 1;
        }
        self.scopes.pop();
        value
    }

    pub fn local(&mut self, local: &mut syn::Local) {
        if self.head.is_machine() {
            return self.machine_local(local);
        }
        let id = self.lets;
        self.lets += 1;
        let Some(init) = &mut local.init else {
            // Declared without a value and assigned later. It is assumed to be data.
            let value = ValueKind::Data(self.only_type());
            self.scopes.bind_pattern(&local.pat, value, Some(id));
            let pattern = if let Pat::Type(typed) = &local.pat { &*typed.pat } else { &local.pat };
            if let Pat::Ident(name) = pattern {
                self.unset.push(name.ident.clone());
            }
            return;
        };
        if let (Pat::Tuple(pattern), Expr::Tuple(tuple)) = (&local.pat, &mut *init.expr)
            && pattern.elems.len() == tuple.elems.len()
        {
            if tuple.elems.iter().all(are_floats) {
                self.floats.insert(id);
            }
            let known: Vec<_> = tuple.elems.iter().map(|e| self.certain(e)).collect();
            let values: Vec<_> = tuple.elems.iter_mut().map(|e| self.value(e, None)).collect();
            for (((pattern, value), known), expr) in pattern.elems.iter().zip(values).zip(known).zip(&mut tuple.elems) {
                self.bind_let(id, pattern, expr, (value, known));
            }
            return;
        }
        if self.wrong_results(&local.pat, &init.expr) {
            *init.expr = placeholder();
        }
        // Each name in a tuple pattern has this type.
        let of_each = self.scanned(&init.expr).map(Certain::Element);
        if let Pat::Type(pattern) = &local.pat
            && let Some(value) = self.parts(&mut init.expr, &pattern.ty)
        {
            self.bind_parts(&pattern.pat, &pattern.ty, value, id);
            return;
        }
        let annotated = match &local.pat {
            Pat::Type(pattern) => self.annotation(&pattern.ty),
            _ => None,
        };
        let known = certain::declared(&local.pat, self.head).or_else(|| self.certain(&init.expr));
        if let (Pat::Type(pattern), Some(Certain::Element(_))) = (&local.pat, self.certain(&init.expr))
            && DType::of_rust(&spelling(&pattern.ty)).is_some()
            && spelling(&pattern.ty) != "f32"
        {
            self.errors.push(error(&pattern.ty, &messages::CONCRETE_LET, &[&spelling(&pattern.ty)]));
        }
        if are_floats(&init.expr) {
            self.floats.insert(id);
        }
        let mut value = match &mut *init.expr {
            // What it returns is data, even if it is called without data.
            Expr::Closure(closure) => {
                let data = ValueKind::Data(self.only_type());
                self.uniforms(closure);
                let returned = self.closure(closure, data, data);
                if returned.is_data() { returned } else { ValueKind::Static }
            }
            init => self.value(init, annotated.as_ref().map(std::slice::from_ref)),
        };
        if value == ValueKind::Static && matches!(&local.pat, Pat::Type(pattern) if spelling(&pattern.ty) == "f64") {
            value = ValueKind::Float;
        }
        if let Some(Elem::Generic(i) | Elem::Mask(i)) = annotated {
            value = ValueKind::Data(Some(i));
        }
        self.bind_let(id, &local.pat, &mut init.expr, (value, known));
        if let Pat::Tuple(pattern) = &local.pat {
            pattern.elems.iter().for_each(|part| self.know(part, of_each));
        }
    }

    /// Binds the names of a pattern to a lowered value.
    fn bind_let(&mut self, id: usize, pattern: &Pat, expr: &mut Expr, (value, known): (ValueKind, Option<Certain>)) {
        let known = known.or(self.known_mask(id, value));
        let value = self.promote(id, expr, value);
        self.scopes.bind_pattern(pattern, value, Some(id));
        self.know(pattern, known);
    }

    /// A flag that becomes a mask.
    fn known_mask(&self, id: usize, value: ValueKind) -> Option<Certain> {
        let is_it = value == ValueKind::Flag && self.promoted.contains(&id);
        self.only_variable().filter(|_| is_it).map(Certain::Mask)
    }

    /// Sets the type of the name that a pattern binds.
    fn know(&mut self, pattern: &Pat, known: Option<Certain>) {
        let pattern = if let Pat::Type(typed) = pattern { &*typed.pat } else { pattern };
        if let Pat::Ident(name) = pattern {
            self.scopes.know(&name.ident, known);
        }
    }

    pub fn promote(&mut self, id: usize, expr: &mut Expr, value: ValueKind) -> ValueKind {
        if !value.is_static() || !self.promoted.contains(&id) {
            return value;
        }
        self.coerce_parts(expr, value);
        ValueKind::Data(self.only_variable())
    }

    /// Converts a static value to an element, or each element of an array.
    fn coerce_parts(&mut self, expr: &mut Expr, value: ValueKind) {
        match expr {
            Expr::Array(array) => array.elems.iter_mut().for_each(|e| self.coerce_parts(e, value)),
            Expr::Tuple(tuple) => tuple.elems.iter_mut().for_each(|e| self.coerce_parts(e, value)),
            Expr::Repeat(array) => self.coerce_parts(&mut array.expr, value),
            Expr::Macro(mac) if mac.mac.path.is_ident("vec") => {
                in_vec(mac, |array| self.coerce_parts(array, value));
            }
            _ => self.coerce_beside(expr, value, None, false),
        }
    }

    /// The value of a tuple, an array or a `vec!` with the type of its parts: `(T, T)`, `[T; 3]`, `Vec<T>`. `None` if it has no parts.
    fn parts(&mut self, expr: &mut Expr, ty: &Type) -> Option<ValueKind> {
        match (expr, ty) {
            (Expr::Paren(inner), ty) => self.parts(&mut inner.expr, ty),
            (Expr::Tuple(tuple), Type::Tuple(types)) if tuple.elems.len() == types.elems.len() => {
                let each = tuple.elems.iter_mut().zip(&types.elems);
                each.map(|(e, ty)| self.part(e, ty)).reduce(ValueKind::join)
            }
            (Expr::Array(array), Type::Array(of)) => {
                array.elems.iter_mut().map(|e| self.part(e, &of.elem)).reduce(ValueKind::join)
            }
            (Expr::Repeat(array), Type::Array(of)) => Some(self.part(&mut array.expr, &of.elem)),
            (Expr::Macro(mac), ty) if mac.mac.path.is_ident("vec") => {
                let of = wrapped(ty, "Vec")?;
                in_vec(mac, |array| match array {
                    Expr::Array(array) => array.elems.iter_mut().map(|e| self.part(e, of)).reduce(ValueKind::join),
                    Expr::Repeat(array) => Some(self.part(&mut array.expr, of)),
                    _ => None,
                })?
            }
            (expr, Type::Tuple(_)) => Some(self.value(expr, None)),
            _ => None,
        }
    }

    /// The value of a part with its type.
    fn part(&mut self, expr: &mut Expr, ty: &Type) -> ValueKind {
        if let Some(value) = self.parts(expr, ty) {
            return value;
        }
        let want = self.annotation(ty);
        let value = self.value(expr, want.as_ref().map(std::slice::from_ref));
        match want {
            Some(Elem::Generic(i) | Elem::Mask(i)) => ValueKind::Data(Some(i)),
            _ => value,
        }
    }

    /// Binds the names of a pattern with the type of its parts.
    fn bind_parts(&mut self, pattern: &Pat, ty: &Type, value: ValueKind, id: usize) {
        if let (Pat::Tuple(pattern), Type::Tuple(types)) = (pattern, ty)
            && pattern.elems.len() == types.elems.len()
        {
            for (pattern, ty) in pattern.elems.iter().zip(&types.elems) {
                self.bind_parts(pattern, ty, value, id);
            }
            return;
        }
        let value = match self.annotation(ty) {
            Some(Elem::Generic(i) | Elem::Mask(i)) => ValueKind::Data(Some(i)),
            _ if !holds(ty, &self.head.generics) => match spelling(ty).as_str() {
                "f64" => ValueKind::Float,
                "bool" => ValueKind::Flag,
                _ => ValueKind::Static,
            },
            _ => value.collected(self.head),
        };
        self.scopes.bind_pattern(pattern, value, Some(id));
        self.know(pattern, certain::of_type(ty, self.head));
    }

    /// The dtype variable in the type of a `let`.
    pub fn annotation(&mut self, ty: &Type) -> Option<Elem> {
        let name = ty.to_token_stream().to_string().replace(' ', "");
        if matches!(name.as_str(), "f32" | "f16" | "bf16") && !self.head.is_machine() {
            self.errors.push(error(ty, &messages::CONCRETE_LET, &[&name]));
        }
        let generics = &self.head.generics;
        let generic = (0..generics.len()).find(|i| self.head.spelled(*i) == name).map(Elem::Generic);
        generic.or_else(|| generics.iter().position(|g| name == format!("{}::Mask", g.ident)).map(Elem::Mask))
    }
}

/// Whether all parts of a list or tuple are floating-point literals.
fn are_floats(expr: &Expr) -> bool {
    let is_float = |e: &Expr| matches!(e, Expr::Lit(lit) if matches!(lit.lit, syn::Lit::Float(_))) || are_floats(e);
    match expr {
        Expr::Array(array) => array.elems.iter().all(is_float),
        Expr::Tuple(tuple) => tuple.elems.iter().all(is_float),
        Expr::Repeat(array) => is_float(&array.expr),
        Expr::Macro(mac) if mac.mac.path.is_ident("vec") => {
            in_vec(&mut mac.clone(), |array| are_floats(array)).unwrap_or(false)
        }
        _ => false,
    }
}

/// Rewrites the elements of a `vec!`, as those of an array. `None` if they are neither a list nor a repetition.
pub fn in_vec<V>(mac: &mut ExprMacro, change: impl FnOnce(&mut Expr) -> V) -> Option<V> {
    let tokens = &mac.mac.tokens;
    let mut array: Expr = syn::parse2(quote!([#tokens])).ok()?;
    let value = change(&mut array);
    let mut tokens = array.into_token_stream().into_iter();
    if let Some(TokenTree::Group(group)) = tokens.next() {
        mac.mac.tokens = group.stream();
    }
    Some(value)
}
