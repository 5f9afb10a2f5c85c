//! The structure of values in bodies of machine numbers: the parts of tuples, and the items of lists and iterators.

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprField, ExprMethodCall, ExprUnary, Member, Pat, Token, Type, UnOp};

use super::Lowering;
use super::expression::is_integer;
use super::statement::in_vec;
use crate::ast::{Elem, spelling};
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

impl Lowering<'_> {
    /// `0.0`, `-1.0`, `f64::INFINITY`
    pub fn is_constant_float(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Unary(unary) => self.is_constant_float(&unary.expr),
            Expr::Path(path) => self.scopes.path(&path.path, self.head) == ValueKind::Float,
            _ => is_float(expr),
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

    pub fn structure_of_call(&self, call: &ExprMethodCall) -> Item {
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
    pub fn begins(&self, call: &ExprMethodCall) -> bool {
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
