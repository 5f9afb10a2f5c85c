//! The `shape` clause: its grammar, and what its dimensions mean.
//!
//! ```text
//! (x: [.., n], w: [n, m]) -> [.., m]
//! (x: [.., n]) -> (values: [.., k], [save] order: [.., n])
//! dim := ident | int | dim (+ - * /) dim
//! ```

use std::fmt;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::{BinOp, Expr, ExprLit, ExprUnary, Ident, Lit, Token, UnOp, bracketed, parenthesized};

use crate::ast::text;
use crate::diag::{error, messages};

/// The clause.
pub struct Shape {
    pub inputs: Vec<NamedDims>,
    pub outputs: Vec<NamedDims>,
}

/// The dimensions of one argument.
pub struct NamedDims {
    /// Missing for a single unnamed output.
    pub name: Option<Ident>,
    /// `[save]`
    pub save: bool,
    pub dims: Dims,
}

/// `[.., n, m]`
#[derive(Clone)]
pub struct Dims {
    /// Whether batch dimensions stand before the core.
    pub batch: bool,
    pub core: Vec<Dim>,
    /// As it is written.
    pub tokens: TokenStream,
}

/// One dimension, or a number in a predicate.
#[derive(Clone)]
pub enum Dim {
    Name(Ident),
    Int(i64),
    Float(f64),
    Op(Arithmetic, Box<(Dim, Dim)>),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
}

/// `k <= n`
pub struct Predicate {
    pub left: Dim,
    /// The name of the runtime's `Relation`.
    pub relation: &'static str,
    pub right: Dim,
    /// As it is written.
    pub expr: Expr,
}

impl Dim {
    /// The names in it, left to right.
    pub fn names(&self) -> Vec<&Ident> {
        match self {
            Dim::Name(name) => vec![name],
            Dim::Int(_) | Dim::Float(_) => vec![],
            Dim::Op(_, sides) => [sides.0.names(), sides.1.names()].concat(),
        }
    }

    /// Reads a dimension; `number` says that it stands in a predicate, where numbers may be negative or fractions.
    fn new(expr: &Expr, number: bool) -> syn::Result<Dim> {
        let unknown = || error(expr, &messages::NOT_A_DIMENSION, &[&expr.to_token_stream()]);
        match expr {
            Expr::Path(path) => path.path.get_ident().cloned().map(Dim::Name).ok_or_else(unknown),
            Expr::Paren(inner) => Dim::new(&inner.expr, number),
            Expr::Lit(ExprLit { lit: Lit::Int(lit), .. }) => Ok(Dim::Int(lit.base10_parse()?)),
            Expr::Lit(ExprLit { lit: Lit::Float(lit), .. }) if number => Ok(Dim::Float(lit.base10_parse()?)),
            Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr: inner, .. }) if number => match Dim::new(inner, number)? {
                Dim::Int(value) => Ok(Dim::Int(-value)),
                Dim::Float(value) => Ok(Dim::Float(-value)),
                _ => Err(unknown()),
            },
            Expr::Binary(binary) => {
                let op = match binary.op {
                    BinOp::Add(_) => Arithmetic::Add,
                    BinOp::Sub(_) => Arithmetic::Sub,
                    BinOp::Mul(_) => Arithmetic::Mul,
                    BinOp::Div(_) => Arithmetic::Div,
                    _ => return Err(unknown()),
                };
                Ok(Dim::Op(op, Box::new((Dim::new(&binary.left, number)?, Dim::new(&binary.right, number)?))))
            }
            _ => Err(unknown()),
        }
    }
}

impl Parse for Shape {
    fn parse(input: ParseStream) -> syn::Result<Shape> {
        let inputs;
        parenthesized!(inputs in input);
        let inputs = inputs.parse_terminated(named, Token![,])?;
        input.parse::<Token![->]>()?;
        let outputs = if input.peek(syn::token::Paren) {
            let outputs;
            parenthesized!(outputs in input);
            outputs.parse_terminated(named, Token![,])?.into_iter().collect()
        } else {
            vec![NamedDims { name: None, save: false, dims: input.parse()? }]
        };
        Ok(Shape { inputs: inputs.into_iter().collect(), outputs })
    }
}

/// `x: [.., n]`, `[save] order: [n]`
fn named(input: ParseStream) -> syn::Result<NamedDims> {
    let mut save = false;
    if input.peek(syn::token::Bracket) {
        let word;
        bracketed!(word in input);
        let word: Ident = word.parse()?;
        if word != "save" {
            return Err(error(&word, &messages::NOT_SAVE, &[&word]));
        }
        save = true;
    }
    let name = Some(input.parse()?);
    input.parse::<Token![:]>()?;
    Ok(NamedDims { name, save, dims: input.parse()? })
}

impl Parse for Dims {
    fn parse(input: ParseStream) -> syn::Result<Dims> {
        let tokens = input.fork().parse::<proc_macro2::TokenTree>()?.into_token_stream();
        let inner;
        bracketed!(inner in input);
        let batch = inner.peek(Token![..]);
        if batch {
            inner.parse::<Token![..]>()?;
            if !inner.is_empty() {
                inner.parse::<Token![,]>()?;
            }
        }
        let core = inner.parse_terminated(Expr::parse, Token![,])?;
        let core = core.iter().map(|d| Dim::new(d, false)).collect::<syn::Result<_>>()?;
        Ok(Dims { batch, core, tokens })
    }
}

impl Parse for Predicate {
    fn parse(input: ParseStream) -> syn::Result<Predicate> {
        let expr: Expr = input.parse()?;
        let Expr::Binary(binary) = &expr else {
            return Err(error(&expr, &messages::NOT_A_PREDICATE, &[&expr.to_token_stream()]));
        };
        let relation = match binary.op {
            BinOp::Lt(_) => "Less",
            BinOp::Le(_) => "LessEqual",
            BinOp::Gt(_) => "Greater",
            BinOp::Ge(_) => "GreaterEqual",
            BinOp::Eq(_) => "Equal",
            BinOp::Ne(_) => "NotEqual",
            _ => return Err(error(&expr, &messages::NOT_A_PREDICATE, &[&expr.to_token_stream()])),
        };
        let (left, right) = (Dim::new(&binary.left, true)?, Dim::new(&binary.right, true)?);
        Ok(Predicate { left, relation, right, expr })
    }
}

// As it is written, for docs and errors.

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |list: &[NamedDims]| list.iter().map(NamedDims::to_string).collect::<Vec<_>>().join(", ");
        match &self.outputs[..] {
            [NamedDims { name: None, dims, .. }] => write!(f, "({}) -> {dims}", join(&self.inputs)),
            outputs => write!(f, "({}) -> ({})", join(&self.inputs), join(outputs)),
        }
    }
}

impl fmt::Display for NamedDims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let save = if self.save { "[save] " } else { "" };
        match &self.name {
            Some(name) => write!(f, "{save}{}: {}", text(name), self.dims),
            None => write!(f, "{}", self.dims),
        }
    }
}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let batch = self.batch.then(|| "..".to_owned());
        let dims = batch.into_iter().chain(self.core.iter().map(Dim::to_string));
        write!(f, "[{}]", dims.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Name(name) => write!(f, "{}", text(name)),
            Dim::Int(value) => write!(f, "{value}"),
            Dim::Float(value) => write!(f, "{value}"),
            Dim::Op(op, sides) => {
                let sign = ["+", "-", "*", "/"][*op as usize];
                write!(f, "{} {sign} {}", Operand(&sides.0, *op, false), Operand(&sides.1, *op, true))
            }
        }
    }
}

/// One side of arithmetic, in parentheses where they are needed.
struct Operand<'a>(&'a Dim, Arithmetic, bool);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = |op: Arithmetic| u8::from(op >= Arithmetic::Mul);
        match self.0 {
            Dim::Op(inner, _) if level(*inner) < level(self.1) || (self.2 && level(*inner) == level(self.1)) => {
                write!(f, "({})", self.0)
            }
            dim => write!(f, "{dim}"),
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expr = &self.expr;
        // A name is written as Python knows it.
        write!(f, "{}", quote!(#expr).to_string().replace("r#", ""))
    }
}

impl Shape {
    /// The dimensions of the input of that name.
    pub fn input(&self, name: &Ident) -> Option<&NamedDims> {
        self.inputs.iter().find(|i| i.name.as_ref() == Some(name))
    }

    /// The dimensions of an output, by its name or its position among the outputs.
    pub fn output(&self, name: &Ident, position: usize) -> Option<&NamedDims> {
        self.outputs.iter().find(|o| o.name.as_ref() == Some(name)).or_else(|| self.outputs.get(position))
    }

    /// Every name that some input binds by having it as a dimension of its own.
    pub fn bound(&self) -> Vec<&Ident> {
        let dims = self.inputs.iter().flat_map(|i| &i.dims.core);
        let mut names: Vec<&Ident> = vec![];
        for dim in dims {
            if let Dim::Name(name) = dim
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        names
    }
}
