//! Lowers a body over whole tensors: operators, methods and slices of values that are certainly tensors become calls of ops by
//! name, and `ops::name(…)` too. All other code remains Rust.

mod branch;
mod container;
mod kind;
mod scope;
mod slice;

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Block, Expr, ExprAssign, ExprClosure, ExprMacro, ExprMethodCall, ExprRepeat, FnArg, Ident, Item, ItemFn, Pat,
    ReturnType, Stmt, parse_quote,
};

use super::call::{self, Calls, Outputs};
use crate::ast::{spelling, text};
use crate::body::is_compound;
use crate::diag::{Diag, Message, error, messages};
use crate::hygiene::quote;
use crate::lower::shown;
use kind::Kind;
#[cfg(test)]
pub use kind::{Returns, method};
use minitensor_schema::gradient::{BINARY, UNARY};

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

    // Statements.

    fn block(&mut self, block: &mut Block, wanted: &Kind) -> Kind {
        self.scoped(|this| {
            let mut kind = Kind::Other;
            for stmt in &mut block.stmts {
                kind = Kind::Other;
                match stmt {
                    Stmt::Local(local) => this.local(local),
                    Stmt::Expr(expr, None) => kind = this.value(expr, wanted),
                    Stmt::Expr(expr, Some(_)) => {
                        if this.expr(expr) == Kind::Never {
                            kind = Kind::Never;
                        }
                    }
                    Stmt::Macro(mac) if mac.semi_token.is_none() => {
                        let mut expr = Expr::Macro(ExprMacro { attrs: mac.attrs.clone(), mac: mac.mac.clone() });
                        kind = this.expr(&mut expr);
                        *stmt = Stmt::Expr(expr, None);
                    }
                    Stmt::Item(_) | Stmt::Macro(_) => {}
                }
            }
            kind
        })
    }

    fn local(&mut self, local: &mut syn::Local) {
        // A variable is declared before its value, which may contain other declarations.
        let variable = match &local.pat {
            Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => Some(name.clone()),
            _ => None,
        };
        let declared = variable.as_ref().map(|_| self.declaration());
        let mut kind = Kind::Other;
        if let Some(init) = &mut local.init {
            let wanted = declared.and_then(|declared| self.wanted.get(&declared).cloned());
            kind = self.value(&mut init.expr, &wanted.unwrap_or_else(|| Kind::of_pattern(&local.pat)));
            if let Some((_, diverge)) = &mut init.diverge {
                self.expr(diverge);
            }
        }
        let (Some(variable), Some(declared)) = (variable, declared) else { return self.bind(&local.pat, kind) };
        if let Some(init) = &mut local.init
            && variable.mutability.is_some()
            && kind == Kind::Tensor
            && self.owned.contains(&declared)
        {
            self.own(&mut init.expr);
            kind = Kind::New;
        }
        self.scope.push((text(&variable.ident), kind, declared));
    }

    /// Replaces a reference to a tensor by a tensor.
    fn own(&mut self, expr: &mut Expr) {
        self.is_used = true;
        let operand = operand(expr);
        *expr = Expr::Verbatim(quote!(__private::owned(&#operand)));
    }

    // Expressions.

    /// Lowers an expression.
    fn expr(&mut self, expr: &mut Expr) -> Kind {
        self.value(expr, &Kind::Other)
    }

    /// Lowers an expression. `wanted` is the kind that its place takes, as far as it is certain: an op with several outputs returns
    /// them as that.
    fn value(&mut self, expr: &mut Expr, wanted: &Kind) -> Kind {
        match expr {
            Expr::Path(path) => {
                let Some((_, kind, declared)) = path.path.get_ident().and_then(|name| self.lookup(name)).cloned()
                else {
                    return Kind::Other;
                };
                if kind.is_less_than(wanted) || kind == Kind::Outputs && matches!(wanted, Kind::Tuple(_)) {
                    self.want(declared, wanted);
                }
                kind
            }
            Expr::Paren(inner) => self.value(&mut inner.expr, wanted),
            Expr::Group(inner) => self.value(&mut inner.expr, wanted),
            Expr::Reference(inner) => self.expr(&mut inner.expr).referred(),
            Expr::Binary(binary) => {
                let kinds = [self.expr(&mut binary.left), self.expr(&mut binary.right)];
                let sign = binary.op.to_token_stream().to_string();
                let is_assigned = is_compound(&binary.op);
                let sign = if is_assigned { sign.trim_end_matches('=') } else { &sign };
                let Some(op) = op(BINARY, sign).filter(|_| kinds.iter().any(Kind::is_tensor)) else {
                    return Kind::Other;
                };
                let sides = [&binary.left, &binary.right];
                for (side, kind) in sides.iter().zip(&kinds) {
                    self.operand(side, kind);
                }
                let args = sides.map(|side| argument(side));
                let call = self.call(op, binary.op.span(), &args, &[], Outputs::One);
                if !is_assigned {
                    *expr = Expr::Verbatim(call);
                    return Kind::New;
                }
                self.assigned(&binary.left);
                let place = &binary.left;
                *expr = Expr::Verbatim(quote!(#place = #call));
                Kind::Other
            }
            Expr::Unary(unary) => {
                let kind = self.expr(&mut unary.expr);
                let sign = unary.op.to_token_stream().to_string();
                match op(UNARY, &sign) {
                    Some(op) if kind.is_tensor() => {
                        *expr =
                            Expr::Verbatim(self.call(op, unary.op.span(), &[argument(&unary.expr)], &[], Outputs::One));
                        Kind::New
                    }
                    Some(_) => Kind::Other,
                    None => kind.referred(),
                }
            }
            Expr::MethodCall(call) => {
                let receiver = self.expr(&mut call.receiver);
                let name = call.method.unraw().to_string();
                if !receiver.is_tensor() || call.turbofish.is_some() || kind::method(&name).is_some() {
                    return self.rust_method(&receiver, call);
                }
                let receiver = argument(&call.receiver);
                let (name, span) = (without_underscore(name), call.method.span());
                let (call, kind) = self.call_with(&name, span, Some(receiver), call.args.iter_mut(), wanted);
                *expr = Expr::Verbatim(call);
                kind
            }
            Expr::Call(call) => {
                let Expr::Path(path) = &*call.func else {
                    visit_mut::visit_expr_call_mut(self, call);
                    return Kind::Other;
                };
                let path = &path.path;
                if let Some((name, span)) = op_path(path) {
                    let (call, kind) = self.call_with(&name, span, None, call.args.iter_mut(), wanted);
                    *expr = Expr::Verbatim(call);
                    return kind;
                }
                // The value in `Some(…)` or `Ok(…)`.
                let is_wrapped = path.is_ident("Some") || path.is_ident("Ok");
                let inside = if is_wrapped { wanted.clone().inside() } else { Kind::Other };
                let kinds: Vec<Kind> = call.args.iter_mut().map(|arg| self.value(arg, &inside)).collect();
                match path.get_ident() {
                    Some(name) if name == "Some" => Kind::Option(Box::new(first(kinds))),
                    Some(name) if name == "Ok" => Kind::Result(Box::new(first(kinds))),
                    Some(name) => match self.lookup(name).cloned() {
                        Some((_, Kind::Fn(kind), declared)) => {
                            if kind.is_less_than(wanted) {
                                self.want(declared, &Kind::Fn(Box::new(wanted.clone())));
                            }
                            *kind
                        }
                        _ => Kind::Other,
                    },
                    None => kind::of_constructor(path),
                }
            }
            Expr::Index(index) => {
                let list = self.expr(&mut index.expr);
                if list.is_tensor() {
                    *expr = Expr::Verbatim(self.slice(index));
                    return Kind::New;
                }
                self.expr(&mut index.index);
                let is_range = matches!(without_parens(&index.index), Expr::Range(_));
                if is_range { list } else { list.item() }
            }
            Expr::Try(inner) => {
                let kind = self.value(&mut inner.expr, &Kind::Result(Box::new(wanted.clone())));
                match without_parens(&inner.expr) {
                    // The call of an op has its `?` already.
                    Expr::Verbatim(_) if kind.is_tensors() => *expr = (*inner.expr).clone(),
                    tensor if kind.is_tensor() => {
                        self.error(inner.question_token, &messages::TENSOR_TRY, &[&shown(tensor)]);
                    }
                    _ => return kind.inside(),
                }
                kind
            }
            Expr::Assign(assign) => {
                self.assignment(assign);
                Kind::Other
            }
            Expr::Return(returned) => {
                if let Some(value) = &mut returned.expr {
                    self.value(value, &self.returned.clone());
                }
                Kind::Never
            }
            Expr::Continue(_) => Kind::Never,
            Expr::Break(left) => {
                if let Some(value) = &mut left.expr {
                    self.expr(value);
                }
                Kind::Never
            }
            Expr::Field(field) => {
                let syn::Member::Unnamed(at) = field.member.clone() else {
                    self.expr(&mut field.base);
                    return Kind::Other;
                };
                let source = shown(&field.base);
                let kind = self.value(&mut field.base, &Kind::Outputs);
                if kind == Kind::Outputs {
                    (self.is_used, self.may_fail) = (true, true);
                    let base = operand(&field.base);
                    *expr = Expr::Verbatim(quote!(__private::part(&#base, #at)?));
                    return Kind::New;
                }
                if kind.is_tensor() {
                    self.error(&at, &messages::TENSOR_FIELD, &[&source, &at.index]);
                }
                kind.part(at.index as usize)
            }
            Expr::Tuple(tuple) => {
                let each = tuple.elems.iter_mut().enumerate();
                Kind::Tuple(each.map(|(i, elem)| self.value(elem, &wanted.part(i))).collect())
            }
            Expr::Array(array) => {
                let each = array.elems.iter_mut().enumerate();
                let kinds: Vec<Kind> = each.map(|(i, elem)| self.value(elem, &wanted.part(i))).collect();
                Kind::List(Box::new(first(kinds)))
            }
            Expr::Macro(mac) if mac.mac.path.is_ident("vec") => {
                let tokens = &mac.mac.tokens;
                let Ok(mut list) = syn::parse2::<Expr>(quote!([#tokens])) else { return Kind::Other };
                let kind = self.value(&mut list, wanted);
                mac.mac.tokens = match list {
                    Expr::Array(list) => list.elems.into_token_stream(),
                    Expr::Repeat(ExprRepeat { expr, len, .. }) => quote!(#expr; #len),
                    _ => return Kind::Other,
                };
                kind
            }
            Expr::Block(block) => self.block(&mut block.block, wanted),
            Expr::If(_) | Expr::Match(_) => {
                let declared = self.declaration();
                let wanted = self.wanted.get(&declared).cloned().unwrap_or_else(|| wanted.clone());
                let mut ends = vec![];
                let kind = self.branches(expr, &wanted, &mut ends);
                let tuple = ends.iter().find(|end| matches!(end, Kind::Tuple(_)));
                if let (Some(tuple), true) = (tuple, ends.iter().any(|end| matches!(end, Kind::New | Kind::Outputs))) {
                    self.want(declared, tuple);
                }
                self.own_ends(expr, &kind, &mut ends.into_iter());
                kind
            }
            Expr::While(each) => {
                self.scoped(|this| {
                    this.condition(&mut each.cond);
                    this.block(&mut each.body, &Kind::Other);
                });
                Kind::Other
            }
            Expr::ForLoop(each) => {
                let list = self.value(&mut each.expr, &Kind::List(Box::new(Kind::of_pattern(&each.pat))));
                self.scoped(|this| {
                    this.bind(&each.pat, list.item());
                    this.block(&mut each.body, &Kind::Other);
                });
                Kind::Other
            }
            Expr::Closure(closure) => self.closure(closure, &[], wanted),
            Expr::Let(test) => {
                let kind = self.value(&mut test.expr, &Kind::of_pattern(&test.pat));
                self.bind(&test.pat, kind);
                Kind::Other
            }
            other => {
                visit_mut::visit_expr_mut(self, other);
                Kind::Other
            }
        }
    }

    fn assignment(&mut self, assign: &mut syn::ExprAssign) {
        if let Expr::Index(index) = &mut *assign.left {
            let (place, tensor) = (index.to_token_stream(), shown(&index.expr));
            if self.expr(&mut index.expr).is_tensor() {
                return self.error(place, &messages::TENSOR_PART, &[&tensor]);
            }
            self.expr(&mut index.index);
        }
        let wanted = self.place(&assign.left);
        let kind = self.value(&mut assign.right, &wanted);
        self.assign(&assign.left, &kind);
    }

    // Calls of ops.

    fn call(
        &mut self,
        op: &str,
        span: Span,
        args: &[TokenStream],
        keywords: &[(String, TokenStream)],
        outputs: Outputs,
    ) -> TokenStream {
        self.may_fail = true;
        self.calls.call(op, span, args, keywords, outputs, span)
    }

    /// Lowers the arguments of an op, and calls it. Returns the kind of its outputs, too.
    fn call_with<'e>(
        &mut self,
        op: &str,
        span: Span,
        receiver: Option<TokenStream>,
        given: impl Iterator<Item = &'e mut Expr>,
        wanted: &Kind,
    ) -> (TokenStream, Kind) {
        let (mut args, mut keywords): (Vec<_>, Vec<_>) = (receiver.into_iter().collect(), vec![]);
        for arg in given {
            match arg {
                Expr::Assign(ExprAssign { left, right, .. }) if as_ident(left).is_some() => {
                    self.expr(right);
                    keywords.push((as_ident(left).map(text).unwrap_or_default(), argument(right)));
                }
                arg => {
                    self.expr(arg);
                    args.push(argument(arg));
                }
            }
        }
        let (outputs, kind) = match wanted {
            Kind::Result(wanted) => outputs(wanted),
            wanted => outputs(wanted),
        };
        (self.call(op, span, &args, &keywords, outputs), kind)
    }

    /// The operand of an operator, which must not be absent.
    fn operand(&mut self, expr: &Expr, kind: &Kind) {
        if let Kind::Option(inner) = kind
            && inner.is_tensor()
        {
            self.error(expr, &messages::OPTIONAL_OPERAND, &[&shown(expr), &shown(expr)]);
        }
    }

    /// Lowers a closure. `kinds` are those of its arguments, as far as they are known.
    /// `wanted` is that of the closure.
    fn closure(&mut self, closure: &mut ExprClosure, kinds: &[Kind], wanted: &Kind) -> Kind {
        let around = std::mem::take(&mut self.may_fail);
        let returned = match (&closure.output, wanted) {
            (ReturnType::Default, Kind::Fn(wanted)) => (**wanted).clone(),
            (output, _) => Kind::of_output(output),
        };
        let returned_around = std::mem::replace(&mut self.returned, returned.clone());
        let tail = match &*closure.body {
            Expr::Block(block) => tail(&block.block),
            body => Some(body.clone()),
        };
        let kind = self.scoped(|this| {
            for (i, pattern) in closure.inputs.iter().enumerate() {
                this.bind(pattern, kinds.get(i).cloned().unwrap_or(Kind::Other));
            }
            this.value(&mut closure.body, &returned)
        });
        self.returned = returned_around;
        self.result("closure", &closure.output, &kind, tail);
        if std::mem::replace(&mut self.may_fail, around)
            && matches!((&closure.output, &kind), (ReturnType::Default, Kind::Result(_)))
        {
            // The `?` of an op does not determine the type of the error.
            let body = &closure.body;
            closure.output = parse_quote!(-> __private::Result<_>);
            *closure.body = Expr::Verbatim(quote!({ #body }));
        }
        match &closure.output {
            ReturnType::Type(..) if kind == Kind::Other => Kind::Fn(Box::new(Kind::of_output(&closure.output))),
            _ => Kind::Fn(Box::new(kind)),
        }
    }

    /// Lowers the arguments of a Rust method. Returns the kind of its result.
    fn rust_method(&mut self, receiver: &Kind, call: &mut ExprMethodCall) -> Kind {
        let name = call.method.unraw().to_string();
        let mut kinds: Vec<Kind> = vec![];
        for arg in &mut call.args {
            kinds.push(match arg {
                Expr::Closure(closure) => {
                    let given = container::closure_arguments(receiver, &name, &kinds);
                    self.closure(closure, &given, &Kind::Other)
                }
                arg => self.expr(arg),
            });
        }
        match receiver {
            Kind::New if matches!(name.as_str(), "clone" | "detach") => Kind::New,
            tensor if tensor.is_tensor() => kind::method(&name).map_or(Kind::Other, |returns| returns.kind()),
            other => container::method(other, &name, &kinds),
        }
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

fn op(table: &'static [(&str, &str)], sign: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == sign).map(|(_, op)| *op)
}

/// A lowered expression as an argument of an op.
fn argument(expr: &Expr) -> TokenStream {
    match expr {
        Expr::Paren(inner) => argument(&inner.expr),
        Expr::Reference(inner) if inner.mutability.is_none() => argument(&inner.expr),
        Expr::Path(path) if path.path.is_ident("None") => call::none(),
        Expr::Array(array) => call::list(&array.elems.iter().map(argument).collect::<Vec<_>>()),
        expr => call::value(operand(expr)),
    }
}

/// The expression in parentheses, if `&` would bind to a part of it.
fn operand(expr: &Expr) -> TokenStream {
    match expr {
        Expr::Binary(_) | Expr::Cast(_) | Expr::Range(_) | Expr::Assign(_) | Expr::Closure(_) => quote!((#expr)),
        expr => expr.to_token_stream(),
    }
}

/// The outputs of an op that are a value of the wanted kind, and their kind.
fn outputs(wanted: &Kind) -> (Outputs, Kind) {
    match wanted {
        Kind::Tuple(parts) => (Outputs::Tuple(parts.len()), Kind::Tuple(vec![Kind::New; parts.len()])),
        Kind::Array(parts) => (Outputs::Array(parts.len()), Kind::Array(vec![Kind::New; parts.len()])),
        Kind::List(_) | Kind::Outputs => (Outputs::All, Kind::Outputs),
        _ => (Outputs::One, Kind::New),
    }
}

/// The name of the op of a path: `linalg::qr` for `ops::linalg::qr`. `None` for other paths, such as `ops::linalg::qr::call`.
fn op_path(path: &syn::Path) -> Option<(String, Span)> {
    let mut names: Vec<String> = path.segments.iter().map(|s| s.ident.unraw().to_string()).collect();
    let is_plain = path.leading_colon.is_none() && path.segments.iter().all(|s| s.arguments.is_none());
    let last = names.pop()?;
    let is_op = is_plain && last != "call" && !last.starts_with(char::is_uppercase);
    (is_op && names.first()? == "ops").then(|| {
        names.push(without_underscore(last));
        (names[1..].join("::"), path.segments[path.segments.len() - 1].ident.span())
    })
}

/// `where_` is the op `where`, whose name is a keyword of Rust.
fn without_underscore(name: String) -> String {
    if name == "where_" { "where".to_owned() } else { name }
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

/// The last expression of a block.
fn tail(block: &Block) -> Option<Expr> {
    if let Some(Stmt::Expr(tail, None)) = block.stmts.last() { Some(tail.clone()) } else { None }
}
