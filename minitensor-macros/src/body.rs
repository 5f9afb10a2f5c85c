//! Values of a body: either data, or known before the loop runs.

pub mod certain;
pub mod extent;
pub mod levels;
pub mod methods;
mod scopes;

pub use certain::Certain;
pub use scopes::{Head, Scopes};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, ExprAssign, ExprBinary, ExprBreak, ExprClosure, ExprContinue, ExprField, ExprForLoop, ExprGroup};
use syn::{ExprIndex, ExprLoop, ExprMethodCall, ExprParen, ExprReference, ExprReturn, ExprTry, ExprUnary, ExprWhile};
use syn::{Ident, Lit, Local, PatIdent};

use crate::ast::{spelling, text};
use crate::diag::{error, messages};

/// The kind of value of an expression, as far as the macro needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// An element of the dtype variable at that position, if known. It may be a mask.
    Data(Option<usize>),
    /// An optional input: its presence is known, its value is not.
    Option(Option<usize>),
    /// In a body of machine numbers, a slice, view, array or iterator of elements.
    Many(Option<usize>),
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

/// Errors in a branch that is computed even if it is not selected: such a branch must not exit, and must not mutate anything
/// outside of it.
pub fn branch_mistakes(branch: &syn::Block) -> Vec<syn::Error> {
    #[derive(Default)]
    struct Branch {
        errors: Vec<syn::Error>,
        loops: usize,
        closures: usize,
        own: Vec<String>,
    }
    impl Branch {
        fn leaves(&mut self, at: impl quote::ToTokens, word: &str) {
            if self.closures == 0 {
                self.errors.push(error(at, &messages::LEAVES_IF, &[&word]));
            }
        }
        fn changes(&mut self, place: &Expr, whole: &dyn quote::ToTokens) {
            match place {
                Expr::Tuple(places) => places.elems.iter().for_each(|p| self.changes(p, whole)),
                Expr::Array(places) => places.elems.iter().for_each(|p| self.changes(p, whole)),
                Expr::Call(pattern) => pattern.args.iter().for_each(|p| self.changes(p, whole)),
                Expr::Struct(pattern) => pattern.fields.iter().for_each(|f| self.changes(&f.expr, whole)),
                _ => {
                    if let Some(name) = root(place).filter(|name| !self.own.contains(&text(name))) {
                        let shown = spelling(place);
                        self.errors.push(error(whole, &messages::ASSIGNS_IN_IF, &[name, &shown, &shown]));
                    }
                }
            }
        }
        /// Runs `inside`. Names bound in it go out of scope afterwards.
        fn scope(&mut self, inside: impl FnOnce(&mut Self)) {
            let known = self.own.len();
            inside(self);
            self.own.truncate(known);
        }
    }
    impl<'a> Visit<'a> for Branch {
        fn visit_expr_return(&mut self, e: &'a ExprReturn) {
            self.leaves(e.return_token, "return");
        }
        fn visit_macro(&mut self, mac: &'a syn::Macro) {
            // `todo!` and `unimplemented!` stay until the body is finished.
            let name = mac.path.segments.last().map(|s| text(&s.ident)).unwrap_or_default();
            if ["panic", "unreachable", "assert", "assert_eq", "assert_ne"].contains(&name.as_str()) {
                self.leaves(&mac.path, &format!("{name}!"));
            }
        }
        fn visit_expr_try(&mut self, e: &'a ExprTry) {
            self.leaves(e.question_token, "?");
        }
        fn visit_expr_break(&mut self, e: &'a ExprBreak) {
            if self.loops == 0 {
                self.leaves(e.break_token, "break");
            }
        }
        fn visit_expr_continue(&mut self, e: &'a ExprContinue) {
            if self.loops == 0 {
                self.leaves(e.continue_token, "continue");
            }
        }
        fn visit_expr_closure(&mut self, e: &'a ExprClosure) {
            self.closures += 1;
            self.scope(|this| visit::visit_expr_closure(this, e));
            self.closures -= 1;
        }
        fn visit_block(&mut self, block: &'a syn::Block) {
            self.scope(|this| visit::visit_block(this, block));
        }
        fn visit_arm(&mut self, arm: &'a syn::Arm) {
            self.scope(|this| visit::visit_arm(this, arm));
        }
        fn visit_expr_for_loop(&mut self, e: &'a ExprForLoop) {
            self.loops += 1;
            self.scope(|this| visit::visit_expr_for_loop(this, e));
            self.loops -= 1;
        }
        fn visit_expr_while(&mut self, e: &'a ExprWhile) {
            self.loops += 1;
            visit::visit_expr_while(self, e);
            self.loops -= 1;
        }
        fn visit_expr_loop(&mut self, e: &'a ExprLoop) {
            self.loops += 1;
            visit::visit_expr_loop(self, e);
            self.loops -= 1;
        }
        fn visit_local(&mut self, local: &'a Local) {
            local.init.iter().for_each(|init| self.visit_local_init(init));
            self.visit_pat(&local.pat);
        }
        fn visit_pat_ident(&mut self, pattern: &'a PatIdent) {
            self.own.push(text(&pattern.ident));
        }
        fn visit_expr_assign(&mut self, e: &'a ExprAssign) {
            self.changes(&e.left, e);
            self.visit_expr(&e.right);
        }
        fn visit_expr_binary(&mut self, e: &'a ExprBinary) {
            if is_compound(&e.op) {
                self.changes(&e.left, e);
            }
            visit::visit_expr_binary(self, e);
        }
        fn visit_expr_reference(&mut self, e: &'a ExprReference) {
            // A mutable reference to a temporary has no effect outside.
            let is_place = matches!(&*e.expr, Expr::Path(_) | Expr::Field(_) | Expr::Index(_) | Expr::Unary(_));
            if e.mutability.is_some() && is_place {
                self.changes(&e.expr, e);
            }
            self.visit_expr(&e.expr);
        }
    }
    let mut found = Branch::default();
    found.visit_block(branch);
    found.errors
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
