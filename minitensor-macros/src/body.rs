//! Values of a body: either data, or known before the loop runs.

pub mod certain;
mod effects;
pub mod extent;
pub mod flow;
mod item;
pub mod levels;
pub mod methods;
mod scopes;

pub use certain::Certain;
pub use effects::Effects;
pub use flow::Flow;
pub use item::{Item, UNKNOWN};
pub use scopes::{Head, Scopes, add_bits, add_complex};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::Visit;
use syn::{Expr, ExprField, ExprGroup, ExprIndex, ExprMethodCall, ExprParen, ExprReference, ExprUnary, Ident, Lit};

use crate::ast::{Generic, text};

/// The kind of value of an expression, as far as the macro needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// An element of the dtype variable at that position, if known. It may be a mask.
    Data(Option<usize>),
    /// An optional input: its presence is known, its value is not.
    Option(Option<usize>),
    /// In a body of machine numbers, a slice, view, array or iterator of elements.
    Many(Option<usize>),
    /// In a body of machine numbers, a list of known numbers: an attribute `&[f64]`.
    Floats,
    /// A known `bool`.
    Flag,
    /// A known number that cannot be an integer.
    Float,
    /// Any other known value.
    Static,
}

impl ValueKind {
    pub fn is_data(self) -> bool {
        matches!(self, ValueKind::Data(_))
    }

    /// The kind of an array of such values.
    pub fn collected(self, head: &Head) -> ValueKind {
        match self {
            ValueKind::Data(variable) if head.is_machine() => ValueKind::Many(variable),
            // Otherwise a list of complex numbers would be taken for one.
            ValueKind::Data(Some(i)) if head.part(i) != i => ValueKind::Data(None),
            value => value,
        }
    }

    /// Whether it must be converted where data is required.
    pub fn is_static(self) -> bool {
        matches!(self, ValueKind::Flag | ValueKind::Float | ValueKind::Static)
    }

    /// The kind of value of an `if` with these two branches.
    pub fn join(self, other: ValueKind) -> ValueKind {
        match (self, other) {
            (ValueKind::Data(a), ValueKind::Data(b)) => ValueKind::Data(a.or(b)),
            (data @ (ValueKind::Data(_) | ValueKind::Option(_)), _)
            | (_, data @ (ValueKind::Data(_) | ValueKind::Option(_))) => data,
            (a, b) if a == b => a,
            (ValueKind::Float, _) | (_, ValueKind::Float) => ValueKind::Float,
            _ => ValueKind::Static,
        }
    }
}

/// The first literal with a fraction, such as `0.5`.
pub fn fraction(expr: &Expr) -> Option<syn::LitFloat> {
    struct Fraction(Option<syn::LitFloat>);
    impl<'a> Visit<'a> for Fraction {
        fn visit_lit(&mut self, lit: &'a Lit) {
            if let Lit::Float(lit) = lit
                && self.0.is_none()
                && lit.base10_parse::<f64>().is_ok_and(|v| v.fract() != 0.0)
            {
                self.0 = Some(lit.clone());
            }
        }
    }
    let mut found = Fraction(None);
    found.visit_expr(expr);
    found.0
}

/// Whether a type or a path names one of the dtype variables.
pub fn holds(tokens: &impl ToTokens, generics: &[Generic]) -> bool {
    mentions(tokens.to_token_stream(), &|name| generics.iter().any(|g| text(&g.ident) == text(name)))
}

/// The variable at the root of a place: `a` for `a[0]`, `a.1` and `*a`.
pub fn root(place: &Expr) -> Option<&Ident> {
    match place {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Unary(ExprUnary { expr, .. })
        | Expr::Paren(ExprParen { expr, .. })
        | Expr::Group(ExprGroup { expr, .. })
        | Expr::Reference(ExprReference { expr, .. })
        | Expr::Index(ExprIndex { expr, .. })
        | Expr::Field(ExprField { base: expr, .. })
        | Expr::MethodCall(ExprMethodCall { receiver: expr, .. }) => root(expr),
        _ => None,
    }
}

/// Whether it is a compound assignment, for example `+=`.
pub fn is_compound(op: &syn::BinOp) -> bool {
    use syn::BinOp::*;
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// Whether a name that satisfies `named` occurs in the tokens, including those of macro calls.
pub fn mentions(tokens: TokenStream, named: &dyn Fn(&Ident) -> bool) -> bool {
    tokens.into_iter().any(|t| match t {
        TokenTree::Ident(ident) => named(&ident),
        TokenTree::Group(group) => mentions(group.stream(), named),
        _ => false,
    })
}
