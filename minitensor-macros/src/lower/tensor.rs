//! Lowers a body over whole tensors: operators, methods and slices of values that are certainly tensors become calls of ops by
//! name, and `ops::name(…)` too. All other code remains Rust.

mod branch;
mod closure;
mod container;
mod expression;
mod kind;
mod op;
mod scope;
mod slice;
mod statement;

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, FnArg, Ident, Item, ItemFn, ReturnType, Stmt};

use super::call::Calls;
use crate::ast::spelling;
use crate::diag::{Diag, Message, error, messages};
use crate::hygiene::quote;
use crate::lower::shown;
use kind::Kind;
#[cfg(test)]
pub use kind::{Returns, method};
use statement::tail;

/// The function with its body lowered. `caller` describes it in the error for an unknown op.
pub fn function(function: &ItemFn, caller: &str, rt: &TokenStream, diag: &mut Diag) -> ItemFn {
    // A variable may refer to a tensor at first, and hold the result of an op later, or all outputs of an op of which parts are
    // taken later. So lowering repeats until no further variable gets a tensor of its own, or several.
    let (mut owned, mut wanted) = (BTreeSet::new(), BTreeMap::new());
    loop {
        let mut lowered = function.clone();
        let mut lowering = Lowering { owned: owned.clone(), wanted: wanted.clone(), ..Lowering::default() };
        lowering.function(&mut lowered);
        if lowering.owned != owned || lowering.wanted != wanted {
            (owned, wanted) = (lowering.owned, lowering.wanted);
            continue;
        }
        lowering.errors.into_iter().for_each(|e| diag.push(e));
        if !lowering.calls.is_empty() || lowering.is_used {
            let items = lowering.calls.items(caller);
            let items = Item::Verbatim(quote!(use #rt as __private; #items));
            lowered.block.stmts.insert(0, Stmt::Item(items));
        }
        super::recursion::limit(function, &mut lowered, rt);
        return lowered;
    }
}

/// Whether a function has a tensor among its parameters.
pub fn takes_tensor(function: &ItemFn) -> bool {
    function.sig.inputs.iter().any(|arg| match arg {
        FnArg::Typed(arg) => Kind::of_type(&arg.ty).has_tensor(),
        FnArg::Receiver(_) => false,
    })
}

#[derive(Default)]
struct Lowering {
    /// The variables in scope, each with the number of its declaration. The last one with a given name is valid.
    scope: Vec<(String, Kind, usize)>,
    declared: usize,
    /// The declarations of variables that need a tensor of their own.
    owned: BTreeSet<usize>,
    /// The kinds of variables and branches, by declaration, that hold several outputs of an op.
    wanted: BTreeMap<usize, Kind>,
    /// The kind of the result of the function or closure around the current expression.
    returned: Kind,
    calls: Calls,
    /// Whether the body uses the runtime.
    is_used: bool,
    /// Whether the function or closure around the current expression calls ops, which may fail.
    may_fail: bool,
    errors: Vec<syn::Error>,
}

/// What has become of an expression.
struct Lowered {
    /// Its replacement; `None` if it stays.
    replacement: Option<TokenStream>,
    kind: Kind,
}

impl Lowered {
    fn kept(kind: Kind) -> Lowered {
        Lowered { replacement: None, kind }
    }

    fn replaced(tokens: TokenStream, kind: Kind) -> Lowered {
        Lowered { replacement: Some(tokens), kind }
    }
}

impl Lowering {
    fn error(&mut self, at: impl ToTokens, message: &Message, args: &[&dyn std::fmt::Display]) {
        self.errors.push(error(at, message, args));
    }

    fn function(&mut self, function: &mut ItemFn) {
        for arg in &function.sig.inputs {
            if let FnArg::Typed(arg) = arg {
                self.bind(&arg.pat, Kind::of_type(&arg.ty));
            }
        }
        let tail = tail(&function.block);
        self.returned = Kind::of_output(&function.sig.output);
        let kind = self.block(&mut function.block, &self.returned.clone());
        self.result("function", &function.sig.output, &kind, tail);
    }

    /// Checks the result of a function or closure: if it calls ops, it may fail.
    fn result(&mut self, what: &str, output: &ReturnType, kind: &Kind, tail: Option<Expr>) {
        let returned = Kind::of_output(output);
        match (output, tail) {
            _ if !self.may_fail => {}
            (ReturnType::Type(_, ty), _) if !matches!(returned, Kind::Result(_) | Kind::Other) => {
                let spelled = spelling(ty);
                self.error(ty, &messages::TENSOR_FAILS, &[&what, &spelled, &spelled]);
            }
            (_, Some(tail)) if kind.is_tensors() => {
                self.error(&tail, &messages::TENSOR_RESULT, &[&shown(&tail), &what, &shown(&tail)]);
            }
            _ => {}
        }
    }

    /// Lowers an expression.
    fn expr(&mut self, expr: &mut Expr) -> Kind {
        self.value(expr, &Kind::Other)
    }

    /// Lowers an expression. `wanted` is the kind that its place takes, as far as it is certain: an op with several outputs returns
    /// them as that.
    fn value(&mut self, expr: &mut Expr, wanted: &Kind) -> Kind {
        let lowered = match &mut *expr {
            Expr::Path(path) => Lowered::kept(self.variable(path, wanted)),
            Expr::Paren(inner) => Lowered::kept(self.value(&mut inner.expr, wanted)),
            Expr::Group(inner) => Lowered::kept(self.value(&mut inner.expr, wanted)),
            Expr::Reference(inner) => Lowered::kept(self.expr(&mut inner.expr).referred()),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Unary(unary) => self.unary(unary),
            Expr::MethodCall(call) => self.method_call(call, wanted),
            Expr::Call(call) => self.function_call(call, wanted),
            Expr::Index(index) => self.index(index),
            Expr::Field(field) => self.field(field),
            Expr::Try(inner) => self.question(inner, wanted),
            Expr::Assign(assign) => Lowered::kept(self.assignment(assign)),
            Expr::Tuple(tuple) => Lowered::kept(Kind::Tuple(self.parts(&mut tuple.elems, wanted))),
            Expr::Array(array) => Lowered::kept(Kind::List(Box::new(first(self.parts(&mut array.elems, wanted))))),
            Expr::Macro(mac) if mac.mac.path.is_ident("vec") => Lowered::kept(self.vector(mac, wanted)),
            Expr::Closure(closure) => Lowered::kept(self.closure(closure, &[], wanted)),
            Expr::Block(block) => Lowered::kept(self.block(&mut block.block, wanted)),
            Expr::If(_) | Expr::Match(_) => Lowered::kept(self.choice(expr, wanted)),
            Expr::While(each) => Lowered::kept(self.while_loop(each)),
            Expr::ForLoop(each) => Lowered::kept(self.for_loop(each)),
            Expr::Let(test) => {
                let kind = self.value(&mut test.expr, &Kind::of_pattern(&test.pat));
                self.bind(&test.pat, kind);
                Lowered::kept(Kind::Other)
            }
            Expr::Return(returned) => {
                if let Some(value) = &mut returned.expr {
                    self.value(value, &self.returned.clone());
                }
                Lowered::kept(Kind::Never)
            }
            Expr::Break(left) => {
                if let Some(value) = &mut left.expr {
                    self.expr(value);
                }
                Lowered::kept(Kind::Never)
            }
            Expr::Continue(_) => Lowered::kept(Kind::Never),
            _ => {
                visit_mut::visit_expr_mut(self, expr);
                Lowered::kept(Kind::Other)
            }
        };
        if let Some(tokens) = lowered.replacement {
            *expr = Expr::Verbatim(tokens);
        }
        lowered.kind
    }
}

/// The parts of a body that hold no tensors themselves.
impl VisitMut for Lowering {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        self.expr(expr);
    }
    fn visit_block_mut(&mut self, block: &mut Block) {
        self.block(block, &Kind::Other);
    }
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

fn first(kinds: Vec<Kind>) -> Kind {
    kinds.into_iter().next().unwrap_or(Kind::Other).referred()
}

fn as_ident(expr: &Expr) -> Option<&Ident> {
    if let Expr::Path(path) = expr { path.path.get_ident() } else { None }
}

fn without_parens(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(inner) => without_parens(&inner.expr),
        Expr::Group(inner) => without_parens(&inner.expr),
        expr => expr,
    }
}
