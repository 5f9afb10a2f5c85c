//! A backward formula as a function over tensors: data becomes calls of ops by name, what is known stays Rust.

mod call;
mod known;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident};
use syn::{Block, Expr, Ident, Local, Pat, Stmt};

use crate::ast::{Arity, Op, text};
use crate::diag::{Diag, Message, error, messages};
use crate::expand::attr;
use crate::hygiene::quote;
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
                gradients[#at] = __rt::Some(#value);
            }
        })
    });
    let count = syn::Index::from(op.inputs.len());
    let ident = format_ident!("__{}_backward", text(op.ident()));
    let statics =
        lowering.ops.iter().map(|(name, ident)| quote!(static #ident: __rt::OpName = __rt::OpName::new(#name);));
    let bindings = lowering.bindings();
    let function = quote! {
        fn #ident(ctx: &__rt::BackwardCall<'_>) -> __rt::Result<__rt::Vec<__rt::Option<__rt::Tensor>>> {
            #(#statics)*
            #bindings
            #(#shared)*
            let mut gradients: __rt::Vec<__rt::Option<__rt::Tensor>> = __rt::vec![__rt::None; #count];
            #(#gradients)*
            __rt::Ok(gradients)
        }
    };
    let used = |wanted: fn(Name) -> Option<usize>| {
        lowering.used.values().filter_map(|(n, _)| wanted(*n)).collect::<BTreeSet<_>>()
    };
    let saved_inputs = used(|n| if let Name::Input(i) = n { Some(i) } else { None }).into_iter().collect();
    let saved_outputs = used(|n| if let Name::Output(i) = n { Some(i) } else { None }).into_iter().collect();
    lowering.errors.into_iter().for_each(|e| diag.push(e));
    Lowered { ident, function, saved_inputs, saved_outputs, without }
}

/// For each `let` the one input whose gradient alone needs it, so that it is computed only then. A `let` stays in front
/// if moving it behind another that stays would change what a name in either of them means.
fn owners(
    formula: &Formula,
    lets: &[(TokenStream, BTreeSet<String>)],
    entries: &HashMap<usize, (TokenStream, BTreeSet<String>)>,
) -> Vec<Option<usize>> {
    let bound: Vec<BTreeSet<String>> = formula.lets.iter().map(|l| bound_names(&l.pat).into_iter().collect()).collect();
    let mut needed: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); lets.len()];
    let mut owners = vec![None; lets.len()];
    for k in (0..lets.len()).rev() {
        let uses = |names: &BTreeSet<String>| !bound[k].is_disjoint(names);
        let mut of: BTreeSet<usize> = entries.iter().filter(|(_, (_, used))| uses(used)).map(|(i, _)| *i).collect();
        let mut moves = true;
        for later in k + 1..lets.len() {
            if uses(&lets[later].1) {
                of.extend(needed[later].iter().copied());
            }
            let meets = uses(&lets[later].1) || uses(&bound[later]) || !lets[k].1.is_disjoint(&bound[later]);
            moves &= owners[later].is_some() || !meets;
        }
        if of.len() == 1 && moves {
            owners[k] = of.first().copied();
        }
        needed[k] = of;
    }
    owners
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
    used: BTreeMap<String, (Name, Ident)>,
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
            self.used.entry(text(ident)).or_insert((name, ident.clone()));
        }
        Some(name)
    }

    /// What the function begins with: everything that is mentioned, under its name.
    fn bindings(&self) -> TokenStream {
        let each = self.used.iter().map(|(name, (what, ident))| {
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
}

/// A single name that is called is an op; a path with `::` may be any function.
fn is_op_path(func: &Expr) -> bool {
    matches!(func, Expr::Path(path) if path.path.get_ident().is_some_and(|i| !text(i).starts_with(char::is_uppercase)))
}
