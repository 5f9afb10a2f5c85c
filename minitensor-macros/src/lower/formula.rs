//! A backward formula as a function over tensors: data becomes calls of ops by name, what is known stays Rust.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{BinOp, Block, Expr, ExprPath, Ident, Local, Member, Pat, Stmt, UnOp};

use crate::ast::{Arity, Op, text};
use crate::diag::{Diag, Message, error, messages, suggestion};
use crate::expand::attr;
use crate::parse::formula::Formula;

/// The function, and what it needs.
pub struct Lowered {
    pub ident: Ident,
    pub function: TokenStream,
    pub saved_inputs: Vec<usize>,
    pub saved_outputs: Vec<usize>,
    /// Inputs with `none`.
    pub without: Vec<usize>,
}

/// What a name in a formula stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Name {
    Cotangent(usize),
    Input(usize),
    Output(usize),
    Attr(usize),
    Dim,
    /// A `let` with a tensor in it.
    Tensor,
    /// Any other `let`.
    Static,
}

impl Name {
    fn is_data(self) -> bool {
        matches!(self, Name::Cotangent(_) | Name::Input(_) | Name::Output(_) | Name::Tensor)
    }
}

/// The ops that operators stand for.
fn operator(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add(_) => "add",
        BinOp::Sub(_) => "subtract",
        BinOp::Mul(_) => "multiply",
        BinOp::Div(_) => "divide",
        BinOp::Rem(_) => "remainder",
        BinOp::And(_) => "logical_and",
        BinOp::Or(_) => "logical_or",
        BinOp::BitAnd(_) => "bitwise_and",
        BinOp::BitOr(_) => "bitwise_or",
        BinOp::BitXor(_) => "bitwise_xor",
        BinOp::Shl(_) => "bitwise_left_shift",
        BinOp::Shr(_) => "bitwise_right_shift",
        BinOp::Lt(_) => "less",
        BinOp::Le(_) => "less_equal",
        BinOp::Gt(_) => "greater",
        BinOp::Ge(_) => "greater_equal",
        BinOp::Eq(_) => "equal",
        BinOp::Ne(_) => "not_equal",
        _ => return None,
    })
}

pub fn lower(op: &Op, formula: &Formula, diag: &mut Diag) -> Lowered {
    let mut lowering = Lowering::new(op, formula);
    let lets: Vec<_> = formula.lets.iter().map(|l| lowering.part(|cx| cx.local(l))).collect();
    let mut without = vec![];
    let mut entries: HashMap<usize, (TokenStream, BTreeSet<String>)> = HashMap::new();
    for entry in &formula.entries {
        let Some(i) = op.inputs.iter().position(|input| input.ident == entry.input) else { continue };
        match &entry.value {
            None => without.push(i),
            Some(value) => {
                entries.insert(i, lowering.part(|cx| cx.entry(value)));
            }
        }
    }
    let owners = owners(formula, &lets, &entries);
    let shared = lets.iter().zip(&owners).filter(|(_, owner)| owner.is_none()).map(|((tokens, _), _)| tokens);
    let gradients = (0..op.inputs.len()).filter_map(|i| {
        let (value, _) = entries.get(&i)?;
        let own = lets.iter().zip(&owners).filter(|(_, owner)| **owner == Some(i)).map(|((tokens, _), _)| tokens);
        let at = syn::Index::from(i);
        Some(quote! {
            if ctx.needs(#at) {
                #(#own)*
                gradients[#at] = Some(#value);
            }
        })
    });
    let count = syn::Index::from(op.inputs.len());
    let ident = format_ident!("{}_backward", text(op.ident()));
    let statics = lowering.ops.iter().map(|(name, ident)| quote!(static #ident: rt::OpName = rt::OpName::new(#name);));
    let bindings = lowering.bindings();
    let function = quote! {
        fn #ident(ctx: &rt::BackwardCall<'_>) -> rt::Result<Vec<Option<rt::Tensor>>> {
            #(#statics)*
            #bindings
            #(#shared)*
            let mut gradients: Vec<Option<rt::Tensor>> = vec![None; #count];
            #(#gradients)*
            Ok(gradients)
        }
    };
    let used =
        |wanted: fn(Name) -> Option<usize>| lowering.used.values().filter_map(|n| wanted(*n)).collect::<BTreeSet<_>>();
    let saved_inputs = used(|n| if let Name::Input(i) = n { Some(i) } else { None }).into_iter().collect();
    let saved_outputs = used(|n| if let Name::Output(i) = n { Some(i) } else { None }).into_iter().collect();
    lowering.errors.into_iter().for_each(|e| diag.push(e));
    Lowered { ident, function, saved_inputs, saved_outputs, without }
}

/// For each `let` the one input whose gradient alone needs it, so that it is computed only then.
fn owners(
    formula: &Formula,
    lets: &[(TokenStream, BTreeSet<String>)],
    entries: &HashMap<usize, (TokenStream, BTreeSet<String>)>,
) -> Vec<Option<usize>> {
    let mut needed: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); lets.len()];
    for k in (0..lets.len()).rev() {
        let names = bound_names(&formula.lets[k].pat);
        let uses = |names_used: &BTreeSet<String>| names.iter().any(|n| names_used.contains(n));
        let mut of: BTreeSet<usize> = entries.iter().filter(|(_, (_, used))| uses(used)).map(|(i, _)| *i).collect();
        for later in k + 1..lets.len() {
            if uses(&lets[later].1) {
                of.extend(needed[later].iter().copied());
            }
        }
        needed[k] = of;
    }
    needed.into_iter().map(|of| if of.len() == 1 { of.into_iter().next() } else { None }).collect()
}

fn bound_names(pattern: &Pat) -> Vec<String> {
    match pattern {
        Pat::Ident(ident) => vec![text(&ident.ident)],
        Pat::Type(inner) => bound_names(&inner.pat),
        Pat::Tuple(tuple) => tuple.elems.iter().flat_map(bound_names).collect(),
        Pat::Paren(inner) => bound_names(&inner.pat),
        Pat::TupleStruct(inner) => inner.elems.iter().flat_map(bound_names).collect(),
        _ => vec![],
    }
}

struct Lowering<'a> {
    op: &'a Op,
    scopes: Vec<HashMap<String, Name>>,
    /// What is mentioned: it is fetched or saved.
    used: BTreeMap<String, Name>,
    /// The names used by the part in hand.
    uses: BTreeSet<String>,
    /// Ops called, each with its static.
    ops: BTreeMap<String, Ident>,
    errors: Vec<syn::Error>,
}

impl<'a> Lowering<'a> {
    fn new(op: &'a Op, formula: &Formula) -> Self {
        let mut names = HashMap::new();
        let dims = op.shape.iter().flat_map(|s| s.bound());
        names.extend(dims.map(|d| (text(d), Name::Dim)));
        names.extend(op.attrs.iter().enumerate().map(|(i, a)| (text(&a.ident), Name::Attr(i))));
        names.extend(op.outputs.iter().enumerate().map(|(i, o)| (text(&o.ident), Name::Output(i))));
        names.extend(op.inputs.iter().enumerate().map(|(i, input)| (text(&input.ident), Name::Input(i))));
        let cotangents = op.visible().zip(&formula.cotangents).filter(|(_, c)| !c.ignored);
        names.extend(cotangents.map(|((i, _), c)| (text(&c.name), Name::Cotangent(i))));
        let (used, uses, ops) = Default::default();
        Lowering { op, scopes: vec![names], used, uses, ops, errors: vec![] }
    }

    /// Lowers one `let` or entry; comes with the names that it uses.
    fn part(&mut self, lower: impl FnOnce(&mut Self) -> TokenStream) -> (TokenStream, BTreeSet<String>) {
        let tokens = lower(self);
        (tokens, std::mem::take(&mut self.uses))
    }

    fn mistake(&mut self, at: impl ToTokens, message: &Message, args: &[&dyn std::fmt::Display]) -> TokenStream {
        self.errors.push(error(at, message, args));
        quote!(::core::unimplemented!())
    }

    fn lookup(&self, name: &Ident) -> Option<Name> {
        let name = text(name);
        self.scopes.iter().rev().find_map(|scope| scope.get(&name).copied())
    }

    fn bind(&mut self, pattern: &Pat, name: Name) {
        let scope = self.scopes.last_mut().expect("a scope is open");
        scope.extend(bound_names(pattern).into_iter().map(|n| (n, name)));
    }

    /// Marks a name as used.
    fn mention(&mut self, ident: &Ident) -> Option<Name> {
        let name = self.lookup(ident)?;
        self.uses.insert(text(ident));
        if !matches!(name, Name::Tensor | Name::Static) {
            self.used.insert(text(ident), name);
        }
        Some(name)
    }

    /// What the function begins with: everything that is mentioned, under its name.
    fn bindings(&self) -> TokenStream {
        let each = self.used.iter().map(|(name, what)| {
            let ident = format_ident!("{name}");
            let value = match *what {
                Name::Cotangent(i) => {
                    let at = syn::Index::from(i);
                    quote!(ctx.cotangent(#at)?)
                }
                Name::Input(i) => {
                    let at = syn::Index::from(i);
                    match self.op.inputs[i].arity {
                        Arity::Optional => quote!(ctx.optional_input(#at)?),
                        _ => quote!(ctx.input(#at)?),
                    }
                }
                Name::Output(i) => {
                    let at = syn::Index::from(i);
                    quote!(ctx.output(#at)?)
                }
                Name::Attr(i) => attr::read(&self.op.attrs[i], i, &quote!(ctx.attrs())),
                Name::Dim => quote!(ctx.dim(#name)),
                Name::Tensor | Name::Static => return TokenStream::new(),
            };
            quote!(let #ident = #value;)
        });
        each.collect()
    }

    fn is_data(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Path(path) => path.path.get_ident().and_then(|i| self.lookup(i)).is_some_and(Name::is_data),
            Expr::Paren(e) => self.is_data(&e.expr),
            Expr::Group(e) => self.is_data(&e.expr),
            Expr::Reference(e) => self.is_data(&e.expr),
            Expr::Unary(e) => self.is_data(&e.expr),
            Expr::Binary(e) => self.is_data(&e.left) || self.is_data(&e.right),
            Expr::MethodCall(e) => self.is_data(&e.receiver) || e.args.iter().any(|a| self.is_data(a)),
            Expr::Call(e) => is_op_path(&e.func) || e.args.iter().any(|a| self.is_data(a)),
            Expr::If(e) => {
                let otherwise = e.else_branch.as_ref().is_some_and(|(_, e)| self.is_data(e));
                self.is_data(&e.cond) || self.block_is_data(&e.then_branch) || otherwise
            }
            Expr::Match(e) => e.arms.iter().any(|arm| self.is_data(&arm.body)),
            Expr::Block(e) => self.block_is_data(&e.block),
            Expr::Tuple(e) => e.elems.iter().any(|e| self.is_data(e)),
            Expr::Assign(e) => self.is_data(&e.right),
            Expr::Index(e) => self.is_data(&e.expr),
            _ => false,
        }
    }

    fn block_is_data(&self, block: &Block) -> bool {
        let lets = block.stmts.iter().any(|s| match s {
            Stmt::Local(local) => local.init.as_ref().is_some_and(|i| self.is_data(&i.expr)),
            _ => false,
        });
        lets || matches!(block.stmts.last(), Some(Stmt::Expr(last, None)) if self.is_data(last))
    }

    // Parts of a formula.

    fn local(&mut self, local: &Local) -> TokenStream {
        let Some(init) = &local.init else { return TokenStream::new() };
        let (pattern, value) = (&local.pat, &init.expr);
        let data = self.is_data(value);
        if let (Pat::Tuple(tuple), true) = (pattern, data) {
            if let Expr::Tuple(values) = &**value
                && values.elems.len() == tuple.elems.len()
            {
                let values: Vec<_> = values.elems.iter().map(|v| (self.is_data(v), self.owned(v))).collect();
                for (pattern, (data, _)) in tuple.elems.iter().zip(&values) {
                    self.bind(pattern, if *data { Name::Tensor } else { Name::Static });
                }
                let values = values.iter().map(|(_, v)| v);
                return quote!(let #pattern = (#(#values),*););
            }
            let count = syn::Index::from(tuple.elems.len());
            let call = self.call(value, Some(&count));
            let names = tuple.elems.iter();
            let tokens = quote!(let [#(#names),*] = #call;);
            self.bind(pattern, Name::Tensor);
            return tokens;
        }
        let tokens = if data { self.owned(value) } else { self.known(value) };
        self.bind(pattern, if data { Name::Tensor } else { Name::Static });
        quote!(let #pattern = #tokens;)
    }

    fn entry(&mut self, value: &Expr) -> TokenStream {
        if !self.is_data(value) {
            // An unknown name says more than that it isn't a tensor.
            let before = self.errors.len();
            self.known(value);
            if self.errors.len() > before {
                return TokenStream::new();
            }
            return self.mistake(value, &messages::ENTRY_NOT_TENSOR, &[&value.to_token_stream()]);
        }
        self.owned(value)
    }

    /// A tensor of its own.
    fn owned(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Path(_) if self.is_data(expr) => {
                let tokens = self.data(expr);
                quote!(#tokens.clone())
            }
            Expr::Paren(e) => self.owned(&e.expr),
            _ if self.is_data(expr) => self.data(expr),
            _ => self.known(expr),
        }
    }

    /// An argument of an op.
    fn argument(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Reference(e) => self.argument(&e.expr),
            Expr::Paren(e) => self.argument(&e.expr),
            Expr::Path(path) if path.path.is_ident("None") => quote!(rt::value(&None::<i64>)),
            Expr::Array(list) if list.elems.iter().any(|e| self.is_data(e)) => {
                let each: Vec<_> = list.elems.iter().map(|e| self.owned(e)).collect();
                quote!(rt::value(&[#(#each),*][..]))
            }
            _ if self.is_data(expr) => {
                let tokens = self.data(expr);
                quote!(rt::value(&#tokens))
            }
            _ => {
                let tokens = self.known(expr);
                match expr {
                    Expr::Binary(_) | Expr::Cast(_) | Expr::Range(_) => quote!(rt::value(&(#tokens))),
                    _ => quote!(rt::value(&#tokens)),
                }
            }
        }
    }

    fn data(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Path(path) => {
                path.path.get_ident().and_then(|i| self.mention(i));
                path.to_token_stream()
            }
            Expr::Paren(e) => self.data(&e.expr),
            Expr::Group(e) => self.data(&e.expr),
            Expr::Reference(e) => self.data(&e.expr),
            Expr::Block(e) => self.block(&e.block),
            Expr::If(_) | Expr::Match(_) => self.choice(expr),
            Expr::Call(_) | Expr::MethodCall(_) | Expr::Binary(_) | Expr::Unary(_) => self.call(expr, None),
            other => self.mistake(other, &messages::FORMULA_EXPR, &[&other.to_token_stream()]),
        }
    }

    fn block(&mut self, block: &Block) -> TokenStream {
        self.scopes.push(HashMap::new());
        let mut tokens = TokenStream::new();
        for stmt in &block.stmts {
            tokens.extend(match stmt {
                Stmt::Local(local) => self.local(local),
                Stmt::Expr(value, None) => self.owned(value),
                other => self.mistake(other, &messages::FORMULA_EXPR, &[&other.to_token_stream()]),
            });
        }
        self.scopes.pop();
        quote!({ #tokens })
    }

    fn choice(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::If(choice) => {
                let Some((_, otherwise)) = &choice.else_branch else {
                    return self.mistake(choice.if_token, &messages::IF_WITHOUT_ELSE, &[]);
                };
                if let Expr::Let(condition) = &*choice.cond {
                    let value = self.data(&condition.expr);
                    let pattern = &condition.pat;
                    self.scopes.push(HashMap::new());
                    self.bind(pattern, Name::Tensor);
                    let yes = self.block(&choice.then_branch);
                    self.scopes.pop();
                    let no = self.otherwise(otherwise);
                    return quote!(if let #pattern = &#value #yes else #no);
                }
                if !self.is_data(&choice.cond) {
                    let (condition, yes) = (self.known(&choice.cond), self.block(&choice.then_branch));
                    let no = self.otherwise(otherwise);
                    return quote!(if #condition #yes else #no);
                }
                let yes = Expr::Block(syn::ExprBlock { attrs: vec![], label: None, block: choice.then_branch.clone() });
                let args = [self.argument(&choice.cond), self.branch(&yes), self.branch(otherwise)];
                let op = self.op("where", choice.if_token.span());
                quote!(#op.call(&[#(#args),*], &[])?)
            }
            Expr::Match(choice) => {
                let scrutinee = self.known(&choice.expr);
                let arms = choice.arms.iter().map(|arm| {
                    self.scopes.push(HashMap::new());
                    self.bind(&arm.pat, Name::Static);
                    let (pattern, body) = (&arm.pat, self.owned(&arm.body));
                    self.scopes.pop();
                    quote!(#pattern => #body,)
                });
                let arms: Vec<_> = arms.collect();
                quote!(match #scrutinee { #(#arms)* })
            }
            _ => TokenStream::new(),
        }
    }

    fn otherwise(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Block(e) => self.block(&e.block),
            other => {
                let tokens = self.owned(other);
                quote!({ #tokens })
            }
        }
    }

    /// A branch of a data `if`: a literal in it stays one.
    fn branch(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Block(e) => match &e.block.stmts[..] {
                [Stmt::Expr(only, None)] => self.argument(only),
                _ => {
                    let tokens = self.block(&e.block);
                    quote!(rt::value(&#tokens))
                }
            },
            other => self.argument(other),
        }
    }

    /// The call of an op; with `count` it gives so many tensors.
    fn call(&mut self, expr: &Expr, count: Option<&syn::Index>) -> TokenStream {
        let span = expr.span();
        let (name, args, at): (String, Vec<&Expr>, _) = match expr {
            Expr::Binary(e) => match operator(&e.op) {
                Some(name) => (name.to_owned(), vec![&e.left, &e.right], e.op.span()),
                None => return self.mistake(expr, &messages::FORMULA_EXPR, &[&expr.to_token_stream()]),
            },
            Expr::Unary(e) => {
                let name = if matches!(e.op, UnOp::Neg(_)) { "negative" } else { "logical_not" };
                (name.to_owned(), vec![&e.expr], e.op.span())
            }
            Expr::MethodCall(e) => {
                let args = std::iter::once(&*e.receiver).chain(&e.args).collect();
                (text(&e.method), args, e.method.span())
            }
            Expr::Call(e) => match &*e.func {
                Expr::Path(path) => {
                    let segments: Vec<_> = path.path.segments.iter().map(|s| text(&s.ident)).collect();
                    (segments.join("::"), e.args.iter().collect(), path.span())
                }
                other => return self.mistake(other, &messages::FORMULA_EXPR, &[&other.to_token_stream()]),
            },
            Expr::Paren(e) => return self.call(&e.expr, count),
            other => return self.mistake(other, &messages::FORMULA_EXPR, &[&other.to_token_stream()]),
        };
        let (mut positional, mut keywords) = (vec![], vec![]);
        for arg in args {
            match arg {
                Expr::Assign(keyword) => match &*keyword.left {
                    Expr::Path(path) if path.path.get_ident().is_some() => {
                        let name = path.path.get_ident().map(text).unwrap_or_default();
                        let value = self.argument(&keyword.right);
                        keywords.push(quote!((#name, #value)));
                    }
                    other => return self.mistake(other, &messages::FORMULA_EXPR, &[&other.to_token_stream()]),
                },
                _ => positional.push(self.argument(arg)),
            }
        }
        let op = self.op(&name, at);
        let method = match count {
            Some(count) => quote!(call_many::<#count>),
            None => quote!(call),
        };
        quote_spanned!(span=> #op.#method(&[#(#positional),*], &[#(#keywords),*])?)
    }

    /// The static of the op called.
    fn op(&mut self, name: &str, span: proc_macro2::Span) -> Ident {
        let ident = name.to_uppercase().replace("::", "__");
        let ident =
            self.ops.entry(name.to_owned()).or_insert_with(|| Ident::new(&ident, proc_macro2::Span::call_site()));
        Ident::new(&ident.to_string(), span)
    }

    // What is known: plain Rust, in which `x.shape` is a shape.

    fn known(&mut self, expr: &Expr) -> TokenStream {
        let mut expr = expr.clone();
        Known(self).visit_expr_mut(&mut expr);
        expr.to_token_stream()
    }
}

struct Known<'b, 'a>(&'b mut Lowering<'a>);

impl VisitMut for Known<'_, '_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Field(field) => {
                if let (Expr::Path(base), Member::Named(member)) = (&*field.base, &field.member)
                    && let Some(name) = base.path.get_ident()
                    && let Some(what) = self.0.lookup(name).filter(|w| w.is_data())
                {
                    *expr = Expr::Verbatim(self.0.property(base, name, what, member));
                    return;
                }
                visit_mut::visit_expr_mut(self, expr);
            }
            Expr::Call(call) => call.args.iter_mut().for_each(|a| self.visit_expr_mut(a)),
            Expr::Closure(_) | Expr::Macro(_) => {}
            Expr::Path(path) => self.path(path),
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }
}

impl Known<'_, '_> {
    fn path(&mut self, path: &ExprPath) {
        let Some(name) = path.path.get_ident() else { return };
        let is_variable = text(name).starts_with(|c: char| c.is_lowercase() || c == '_');
        if self.0.mention(name).is_none() && is_variable {
            let lowering = &mut self.0;
            let known: BTreeSet<String> = lowering.scopes.iter().flat_map(|s| s.keys().cloned()).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let help = suggestion(&text(name), &known);
            lowering.mistake(name, &messages::UNKNOWN_NAME, &[name, &help]);
        }
    }
}

impl Lowering<'_> {
    /// `x.shape` and its kin; of an input they are known without saving it.
    fn property(&mut self, base: &ExprPath, name: &Ident, what: Name, member: &Ident) -> TokenStream {
        let (shape, dtype) = match what {
            Name::Input(i) => {
                let at = syn::Index::from(i);
                (quote!(ctx.shape(#at)), quote!(ctx.dtype(#at)))
            }
            _ => {
                self.mention(name);
                (quote!(#base.shape()[..]), quote!(#base.dtype()))
            }
        };
        match text(member).as_str() {
            "shape" => shape,
            "dtype" => dtype,
            "ndim" => quote!((#shape.len() as i64)),
            _ => self.mistake(member, &messages::PROPERTY, &[member]),
        }
    }
}

/// A single name that is called is an op; a path with `::` may be any function.
fn is_op_path(func: &Expr) -> bool {
    matches!(func, Expr::Path(path) if path.path.get_ident().is_some_and(|i| !text(i).starts_with(char::is_uppercase)))
}
