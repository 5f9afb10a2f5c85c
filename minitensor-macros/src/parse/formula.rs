//! A backward formula: `|d_out, _| { let a = x.exp(); x: d_out * a, weight: none }`.

use syn::parse::{Parse, ParseStream};
use syn::{Expr, Ident, Local, Stmt, Token, braced};

use crate::diag::{error, messages};

/// A gradient as it is written.
pub struct Formula {
    pub cotangents: Vec<Cotangent>,
    pub lets: Vec<Local>,
    pub entries: Vec<Entry>,
}

/// A parameter of the closure: the cotangent of one returned output.
pub struct Cotangent {
    /// As it is written, `_` included.
    pub name: Ident,
    /// Whether it is `_`.
    pub ignored: bool,
}

/// The gradient of one input.
pub struct Entry {
    pub input: Ident,
    /// `None` for `none`.
    pub value: Option<Expr>,
}

impl Parse for Formula {
    fn parse(input: ParseStream) -> syn::Result<Formula> {
        let cotangents = cotangents(input)?;
        let body;
        braced!(body in input);
        let mut lets = vec![];
        while body.peek(Token![let]) {
            match body.parse()? {
                Stmt::Local(local) if local.init.as_ref().is_some_and(|i| i.diverge.is_none()) => lets.push(local),
                other => return Err(error(other, &messages::BARE_LET, &[])),
            }
        }
        let entries = body.parse_terminated(entry, Token![,])?.into_iter().collect();
        Ok(Formula { cotangents, lets, entries })
    }
}

fn cotangents(input: ParseStream) -> syn::Result<Vec<Cotangent>> {
    let mut names = vec![];
    if input.parse::<Option<Token![||]>>()?.is_some() {
        return Ok(names);
    }
    input.parse::<Token![|]>()?;
    while !input.peek(Token![|]) {
        names.push(match input.parse::<Option<Token![_]>>()? {
            Some(underscore) => Cotangent { name: Ident::new("_unused", underscore.span), ignored: true },
            None => Cotangent { name: input.parse()?, ignored: false },
        });
        if !input.peek(Token![|]) {
            input.parse::<Token![,]>()?;
        }
    }
    input.parse::<Token![|]>()?;
    Ok(names)
}

fn entry(input: ParseStream) -> syn::Result<Entry> {
    let name: Ident =
        input.parse().map_err(|e| syn::Error::new(e.span(), messages::NOT_AN_ENTRY.filled(&[]).for_rust()))?;
    if !input.peek(Token![:]) {
        return Err(error(&name, &messages::NOT_AN_ENTRY, &[]));
    }
    input.parse::<Token![:]>()?;
    let value: Expr = input.parse()?;
    let none = matches!(&value, Expr::Path(path) if path.path.is_ident("none"));
    Ok(Entry { input: name, value: (!none).then_some(value) })
}
