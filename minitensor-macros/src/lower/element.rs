//! Lowers a body to generic Rust. The macro rewrites syntax that Rust cannot overload (a literal as an operand of data,
//! comparisons, `if`, `&&`, `||`). Types do the rest. In a body of machine numbers, only literals are rewritten.

mod branch;
mod call;
mod callee;
mod effect;
mod expression;
mod lists;
mod loops;
mod machine;
mod operand;
mod prepare;
mod quotient;
mod scan;
mod statement;

pub use operand::shown;
pub use prepare::prepare;

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, ExprLit, Ident, Lit, parse_quote};

use crate::ast::Elem;
use crate::body::{Certain, Flow, Head, Scopes, ValueKind, fraction};
use crate::diag::{Message, error, messages};
use crate::dtype::DTypeSet;

pub struct Lowering<'a> {
    head: &'a Head,
    rt: &'a TokenStream,
    scopes: Scopes,
    pub errors: Vec<syn::Error>,
    /// The `let`s that hold data although their initial value is a literal.
    pub promoted: BTreeSet<usize>,
    lets: usize,
    /// The `let`s of lists and tuples of floating-point literals.
    floats: BTreeSet<usize>,
    /// The loops that end on data.
    pub ended: BTreeSet<usize>,
    loops: usize,
    /// The loops around the current expression. `None` for those without a bound.
    around: Vec<Option<usize>>,
    /// The variables that were declared without a value, and not assigned since.
    unset: Vec<Ident>,
    /// Whether the next block or expression is the result of the function.
    is_tail: bool,
    /// How often the rest of the body was written twice.
    doubled: usize,
    /// The number of branches around the current expression of which one is selected.
    selected: usize,
    /// The number of closures around the current expression.
    closures: usize,
    /// The structure of the values of a body of machine numbers.
    flow: Option<Flow<'a>>,
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
            floats: BTreeSet::new(),
            ended,
            loops: 0,
            around: vec![],
            unset: vec![],
            is_tail: false,
            doubled: 0,
            selected: 0,
            closures: 0,
            flow: None,
        }
    }

    pub fn body(&mut self, block: &mut Block) {
        let mut imaginary = Imaginary(vec![]);
        imaginary.visit_block(block);
        if let [first, ..] = &imaginary.0[..] {
            self.report(first, &messages::IMAGINARY, &[&first.to_token_stream()]);
            return;
        }
        if self.head.is_machine() {
            self.flow = Some(Flow::of(block, self.head));
        }
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

    /// As `only_variable`, for a value that may be complex, or bits.
    fn only_type(&self) -> Option<usize> {
        self.only_variable().filter(|_| !self.head.has_types())
    }

    /// Converts a static value to an element or a mask.
    fn coerce(&mut self, expr: &mut Expr, value: ValueKind, to: Elem) {
        if !value.is_static() || matches!(expr, Expr::Macro(_)) || self.is_unknown(expr, value) {
            return;
        }
        if let Expr::Reference(inner) = expr {
            return self.coerce(&mut inner.expr, value, to);
        }
        if let Elem::Generic(i) = to
            && (self.flag_operand(expr) || !self.head.generics[i].is_of_integers() && self.divides_integers(expr))
        {
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
            if self.head.is_bits(i) {
                self.mistake(expr, &literal, &messages::BITS_FRACTION, &[&literal]);
                return;
            }
            let floats = if generic.bound.is_of_rows() { "Row" } else { "Float" };
            self.mistake(expr, &literal, &messages::FRACTION, &[&literal, &variable, &variable, &floats]);
            return;
        }
        let bare = widened(bare, rt);
        *expr = Expr::Verbatim(quote_spanned!(span=> #rt::lit::<#variable>(#bare)));
    }

    /// As `coerce`, for a variable that may be unknown. `infer` means that the compiler can infer it.
    fn coerce_beside(&mut self, expr: &mut Expr, value: ValueKind, variable: Option<usize>, infer: bool) {
        if !value.is_static() {
            return;
        }
        // Beside an unknown value, rustc infers whether a literal is an element or bits.
        let only = || self.only_variable().filter(|_| !(infer && self.head.bits.is_some()));
        match variable.or_else(only) {
            Some(i) if value == ValueKind::Flag => self.coerce(expr, value, Elem::Mask(i)),
            Some(i) => self.coerce(expr, value, Elem::Generic(i)),
            None if infer && self.divides_integers(expr) => {}
            None if infer => {
                let (rt, bare) = (self.rt, widened(without_parens(expr), self.rt));
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
                let value = self.or_flow(expr, value);
                if let Some([to]) = want {
                    self.coerce(expr, value, *to);
                }
                value
            }
        }
    }

    fn plain(&mut self, expr: &mut Expr) -> ValueKind {
        let refused = |expr: &mut Expr, value: ValueKind| {
            *expr = placeholder();
            value
        };
        match expr {
            Expr::Lit(lit) => match &lit.lit {
                syn::Lit::Bool(_) => ValueKind::Flag,
                syn::Lit::Float(_) => ValueKind::Float,
                _ => ValueKind::Static,
            },
            Expr::Path(path) if self.wrong_function(&path.path) => refused(expr, ValueKind::Data(None)),
            Expr::Path(path) if self.wrong_dimension(&path.path) => refused(expr, ValueKind::Static),
            Expr::Path(path) => self.scopes.path(&path.path, self.head),
            Expr::Unary(unary) if self.wrong_unary(&unary.op, &unary.expr) => refused(expr, ValueKind::Data(None)),
            Expr::Unary(_) => self.unary(expr),
            Expr::Binary(_) => self.binary(expr),
            Expr::Call(_) | Expr::MethodCall(_) => self.call(expr),
            Expr::Index(inner) if matches!(self.certain(&inner.index), Some(Certain::Element(_))) => self.lookup(expr),
            Expr::Index(inner) if self.wrong_list(&inner.expr, &inner.expr) => refused(expr, ValueKind::Data(None)),
            Expr::Index(inner) => self.index(inner),
            Expr::Field(_) if matches!(self.certain(expr), Some(Certain::Element(_))) => self.complex_part(expr),
            Expr::Field(inner) => {
                let base = self.value(&mut inner.base, None);
                if self.head.is_machine() { ValueKind::Static } else { base }
            }
            Expr::Struct(_) if self.head.is_machine() => self.fields(expr),
            Expr::Break(end) if self.head.is_machine() => {
                end.expr.iter_mut().for_each(|value| _ = self.value(value, None));
                ValueKind::Static
            }
            Expr::Cast(_) => self.cast(expr),
            Expr::Reference(inner) => self.value(&mut inner.expr, None),
            Expr::Try(_) => self.question(expr),
            Expr::Assign(assign) => self.assign(assign),
            Expr::Tuple(tuple) => match self.list(tuple.elems.iter_mut()) {
                // The elements of a tuple may have different types.
                _ if self.head.is_machine() => ValueKind::Static,
                value => value,
            },
            Expr::Array(array) => self.array(array),
            Expr::Repeat(array) => self.value(&mut array.expr, None).collected(self.head),
            Expr::Range(range) => {
                let ends = [&mut range.start, &mut range.end].into_iter().flatten();
                ends.map(|e| self.value(e, None)).fold(ValueKind::Static, ValueKind::join)
            }
            Expr::Let(_) => self.condition(expr),
            Expr::Closure(closure) => {
                let data = if self.head.is_machine() { ValueKind::Static } else { ValueKind::Data(self.only_type()) };
                self.closure(closure, data, data);
                ValueKind::Static
            }
            Expr::Return(_) => self.returned(expr),
            Expr::ForLoop(_) => self.for_loop(expr),
            Expr::While(_) => self.while_loop(expr),
            Expr::Loop(each) => self.endless_loop(each),
            Expr::Macro(mac) if self.wrong_macro(&mac.mac) => refused(expr, ValueKind::Data(None)),
            Expr::Macro(mac) if mac.mac.path.is_ident("matches") => ValueKind::Flag,
            Expr::Macro(mac) if mac.mac.path.is_ident("vec") => {
                statement::in_vec(mac, |array| self.value(array, None)).unwrap_or(ValueKind::Static)
            }
            _ => ValueKind::Static,
        }
    }
}

/// Literals such as `2i`.
struct Imaginary(Vec<Lit>);

impl<'a> Visit<'a> for Imaginary {
    fn visit_lit(&mut self, lit: &'a Lit) {
        let suffix = match lit {
            Lit::Int(int) => int.suffix(),
            Lit::Float(float) => float.suffix(),
            _ => "",
        };
        if matches!(suffix, "i" | "j") {
            self.0.push(lit.clone());
        }
    }
}

/// The replacement of a wrong expression: it has any type.
fn placeholder() -> Expr {
    parse_quote!({ ::core::unimplemented!() })
}

/// An expression of literals, with a type that holds its integers if they do not fit in `i32`. A literal with a suffix would have another
/// spelling than its span, which confuses lints.
fn widened(expr: &Expr, rt: &TokenStream) -> TokenStream {
    /// The largest integer without a type. `None` if there is anything else.
    fn most(expr: &Expr) -> Option<u64> {
        match expr {
            Expr::Lit(ExprLit { lit: Lit::Int(lit), .. }) if lit.suffix().is_empty() => lit.base10_parse().ok(),
            Expr::Paren(inner) => most(&inner.expr),
            Expr::Unary(unary) => most(&unary.expr),
            Expr::Binary(binary) => Some(most(&binary.left)?.max(most(&binary.right)?)),
            _ => None,
        }
    }
    match most(expr) {
        Some(most) if most > i64::MAX as u64 => quote_spanned!(expr.span()=> #rt::of_u64(#expr)),
        Some(most) if most > i32::MAX as u64 => quote_spanned!(expr.span()=> #rt::of_i64(#expr)),
        _ => expr.to_token_stream(),
    }
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
