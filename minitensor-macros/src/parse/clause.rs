//! The clauses of `#[custom_op(…)]`.

use minitensor_schema::grammar::{
    Formula, Mode, PROPERTY_EXAMPLE, Predicate, PropertyClause, SHAPE_EXAMPLE, Shape, WHERE_EXAMPLE,
};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Ident, Lit, LitInt, LitStr, Path, Token, Type, bracketed, parenthesized};

use crate::diag::{Diag, error, list, messages, suggestion};
use crate::source::{self, Clause};

/// All clauses of an op.
#[derive(Default)]
pub struct Clauses {
    pub shape: Option<Clause<Shape>>,
    pub dtype: Option<DTypes>,
    pub backward: Option<Backward>,
    pub axis: Option<AxisClause>,
    pub combine: Option<Ident>,
    /// The conditions of each clause that has some.
    pub predicates: Vec<Clause<Vec<Predicate>>>,
    /// The clauses `linear`, `symmetric` and `replaces`.
    pub properties: Vec<Clause<PropertyClause>>,
    pub inplace: Option<Ident>,
    pub precompiled: Option<Ident>,
    pub name: Option<LitStr>,
    pub aliases: Vec<LitStr>,
    pub since: Option<u32>,
    pub tune: Vec<Tuned>,
    /// The function of rows that computes the same as a cell body.
    pub program: Option<Path>,
    /// The path of the runtime: `crate = path`.
    pub runtime: Option<Path>,
    /// The words of the clauses, each with the span of its name.
    pub words: Vec<Ident>,
}

/// `(x: T) -> (values: T, i64) where T: f32 | f64`
pub struct DTypes {
    pub inputs: Vec<(Ident, Type)>,
    pub arrow: Token![->],
    pub outputs: Vec<(Option<Ident>, Type)>,
    pub bounds: Vec<(Ident, Vec<Type>)>,
}

impl DTypes {
    /// The span for an error about the number of outputs.
    pub fn end(&self) -> &dyn ToTokens {
        self.outputs.last().map_or(&self.arrow, |(_, ty)| ty)
    }
}

/// The value after `backward =` or `jvp =`.
pub enum Backward {
    Auto(Ident),
    None,
    Function(Mode, Path),
    Formula(Clause<Formula>),
}

/// `axis = -1`, `axis = None`
pub struct AxisClause {
    pub word: Ident,
    pub default: Option<i64>,
}

/// `tile = [16, 32, 64]`
pub struct Tuned {
    pub name: Ident,
    pub candidates: Punctuated<LitInt, Token![,]>,
}

/// Every clause and its syntax.
const CLAUSES: &[(&str, &str)] = &[
    ("shape", "shape = (x: [.., n]) -> [.., n]"),
    ("dtype", "dtype = (x: T) -> T where T: f32 | f64"),
    ("backward", "backward = |d_out| { x: d_out * out }"),
    ("jvp", "jvp = |d_x| { out: d_x * out }"),
    ("axis", "axis = -1"),
    ("combine", "combine = add"),
    ("linear", "linear = x"),
    ("symmetric", "symmetric"),
    ("replaces", "replaces = log(softmax(x, axis = axis))"),
    ("where", "where eps >= 0.0"),
    ("inplace", "inplace"),
    ("name", "name = \"ns::op\""),
    ("alias", "alias = \"other_name\""),
    ("since", "since = 2"),
    ("tune", "tune = [tile = [16, 32, 64]]"),
    ("program", "program = function_of_rows"),
    ("precompiled", "precompiled"),
    ("crate", "crate = ::minitensor"),
    ("cuda", ""),
];

/// Reads all clauses. An error in one clause does not hide those in others.
pub fn parse(attr: TokenStream, diag: &mut Diag) -> Clauses {
    let mut clauses = Clauses::default();
    let parser = |input: ParseStream| {
        while !input.is_empty() {
            // Parses on a fork, so that the unread rest of a wrong clause is not a second error.
            let ahead = input.fork();
            match clause(&ahead, &mut clauses) {
                Ok(()) => input.advance_to(&ahead),
                Err(mistake) => {
                    diag.push(mistake);
                    skip(input);
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    let parsed = parser.parse2(attr);
    diag.ok(parsed);
    clauses
}

fn clause(input: ParseStream, clauses: &mut Clauses) -> syn::Result<()> {
    let word = Ident::parse_any(input).map_err(|e| error_at(e, &messages::NOT_A_CLAUSE))?;
    let name = word.to_string();
    let Some((_, example)) = CLAUSES.iter().find(|(known, _)| *known == name) else {
        let known: Vec<_> = CLAUSES.iter().map(|(known, _)| *known).take(CLAUSES.len() - 1).collect();
        return Err(error(&word, &messages::UNKNOWN_CLAUSE, &[&word, &suggestion(&name, &known)]));
    };
    if name == "cuda" {
        return Err(error(&word, &messages::NO_CUDA, &[&word]));
    }
    if clauses.words.contains(&word) {
        return Err(error(&word, &messages::DOUBLED_CLAUSE, &[&word]));
    }
    let value = value(&word, input, clauses).and_then(|()| match input.is_empty() || input.peek(Token![,]) {
        true => Ok(()),
        false => Err(input.error("expected `,`")),
    });
    clauses.words.push(word);
    // Errors of our own parsers are kept. Errors of syn are extended with an example.
    value.map_err(|e| match e.to_string().contains("\nhelp: ") {
        true => e,
        false => syn::Error::new(e.span(), format!("{e}\nhelp: write the clause like `{example}`")),
    })
}

fn value(word: &Ident, input: ParseStream, clauses: &mut Clauses) -> syn::Result<()> {
    let name = word.to_string();
    if !is_flag(&name) {
        input.parse::<Token![=]>()?;
    }
    match name.as_str() {
        "shape" => {
            clauses.shape = Some(source::read(input, SHAPE_EXAMPLE, |p| p.shape())?);
            if input.peek(Token![where]) {
                input.parse::<Token![where]>()?;
                clauses.predicates.push(source::read(input, WHERE_EXAMPLE, |p| p.predicates())?);
            }
        }
        "where" => clauses.predicates.push(source::read(input, WHERE_EXAMPLE, |p| p.predicates())?),
        "dtype" => clauses.dtype = Some(input.parse()?),
        "backward" | "jvp" if clauses.backward.is_some() => {
            return Err(error(word, &messages::TWO_GRADIENTS, &[]));
        }
        "backward" => clauses.backward = Some(gradient(input, Mode::Reverse)?),
        "jvp" => clauses.backward = Some(gradient(input, Mode::Forward)?),
        "axis" => clauses.axis = Some(AxisClause { word: word.clone(), default: axis(input)? }),
        "combine" => clauses.combine = Some(Ident::parse_any(input)?),
        "linear" => clauses.properties.push(source::read(input, PROPERTY_EXAMPLE, |p| p.linear())?),
        "symmetric" => clauses.properties.push(source::of_word(word, PropertyClause::Symmetric)),
        "replaces" => {
            clauses.properties.push(source::read(input, PROPERTY_EXAMPLE, |p| p.expr().map(PropertyClause::Replaces))?);
        }
        "inplace" => clauses.inplace = Some(word.clone()),
        "precompiled" => clauses.precompiled = Some(word.clone()),
        "name" => clauses.name = Some(input.parse()?),
        "alias" => clauses.aliases = aliases(input)?,
        "tune" => clauses.tune = tuned(input)?,
        "program" => clauses.program = Some(input.parse()?),
        "since" => {
            let version: LitInt = input.parse()?;
            clauses.since = match version.base10_parse()? {
                0 => return Err(error(version, &messages::SINCE_ZERO, &[])),
                since => Some(since),
            }
        }
        _ => clauses.runtime = Some(Path::parse_mod_style(input)?),
    }
    Ok(())
}

/// Whether the next tokens are a comma and a clause, or the end.
fn at_clause(input: ParseStream) -> bool {
    if input.parse::<Token![,]>().is_err() {
        return false;
    }
    if input.is_empty() {
        return true;
    }
    let word = Ident::parse_any(input).ok();
    let value = input.peek(Token![=]) && !input.peek(Token![==]);
    word.is_some_and(|word| value || is_flag(&word.to_string()))
}

/// Whether a word is a clause without `=`.
fn is_flag(word: &str) -> bool {
    matches!(word, "inplace" | "precompiled" | "symmetric" | "where")
}

/// Whether tokens begin with a clause.
pub fn starts_clause(tokens: &[TokenTree]) -> bool {
    let Some(TokenTree::Ident(word)) = tokens.first() else { return false };
    let punct =
        |at: usize| if let Some(TokenTree::Punct(punct)) = tokens.get(at) { Some(punct.as_char()) } else { None };
    let word = word.to_string();
    is_flag(&word) || CLAUSES.iter().any(|(known, _)| *known == word) && punct(1) == Some('=') && punct(2) != Some('=')
}

/// Skips to the next clause after an error.
fn skip(input: ParseStream) {
    while !input.is_empty() && !at_clause(&input.fork()) {
        let _ = input.parse::<TokenTree>();
    }
}

fn axis(input: ParseStream) -> syn::Result<Option<i64>> {
    let expr: Expr = input.parse()?;
    let sign = if matches!(&expr, Expr::Unary(_)) { -1 } else { 1 };
    match &expr {
        Expr::Path(path) if path.path.is_ident("None") => Ok(None),
        Expr::Lit(ExprLit { lit: Lit::Int(lit), .. }) => Ok(Some(lit.base10_parse()?)),
        Expr::Unary(unary) => match &*unary.expr {
            Expr::Lit(ExprLit { lit: Lit::Int(lit), .. }) => Ok(Some(sign * lit.base10_parse::<i64>()?)),
            _ => Err(error(&expr, &messages::NOT_AN_AXIS, &[])),
        },
        _ => Err(error(&expr, &messages::NOT_AN_AXIS, &[])),
    }
}

/// `"a"` or `["a", "b"]`
fn aliases(input: ParseStream) -> syn::Result<Vec<LitStr>> {
    if !input.peek(syn::token::Bracket) {
        return Ok(vec![input.parse()?]);
    }
    let names;
    bracketed!(names in input);
    Ok(names.parse_terminated(<LitStr as Parse>::parse, Token![,])?.into_iter().collect())
}

/// `[tile = [16, 32, 64], grain = [1024, 4096]]`
fn tuned(input: ParseStream) -> syn::Result<Vec<Tuned>> {
    let items;
    bracketed!(items in input);
    let item = |input: ParseStream| {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        let candidates;
        bracketed!(candidates in input);
        Ok(Tuned { name, candidates: Punctuated::parse_terminated(&candidates)? })
    };
    Ok(items.parse_terminated(item, Token![,])?.into_iter().collect())
}

impl Parse for DTypes {
    fn parse(input: ParseStream) -> syn::Result<DTypes> {
        let inputs;
        parenthesized!(inputs in input);
        let inputs = inputs.parse_terminated(named_dtype, Token![,])?.into_iter().collect();
        let arrow = input.parse()?;
        let outputs = if input.peek(syn::token::Paren) {
            let outputs;
            parenthesized!(outputs in input);
            outputs.parse_terminated(output_dtype, Token![,])?.into_iter().collect()
        } else {
            vec![(None, input.parse()?)]
        };
        let mut bounds = vec![];
        if input.peek(Token![where]) {
            input.parse::<Token![where]>()?;
            loop {
                let variable: Ident = input.parse()?;
                input.parse::<Token![:]>()?;
                let mut types = vec![input.parse()?];
                while input.peek(Token![|]) {
                    input.parse::<Token![|]>()?;
                    types.push(input.parse()?);
                }
                bounds.push((variable, types));
                let more = input.peek(Token![,]) && input.peek2(Ident) && input.peek3(Token![:]);
                if !more {
                    break;
                }
                input.parse::<Token![,]>()?;
            }
        }
        Ok(DTypes { inputs, arrow, outputs, bounds })
    }
}

/// `x: T`
fn named_dtype(input: ParseStream) -> syn::Result<(Ident, Type)> {
    let name = input.parse()?;
    input.parse::<Token![:]>()?;
    Ok((name, input.parse()?))
}

/// `T`, `out: T`
fn output_dtype(input: ParseStream) -> syn::Result<(Option<Ident>, Type)> {
    if input.peek(Ident) && input.peek2(Token![:]) && !input.peek2(Token![::]) {
        return named_dtype(input).map(|(name, ty)| (Some(name), ty));
    }
    Ok((None, input.parse()?))
}

/// `auto`, `none`, a path, or a formula. A `jvp` is a path or a formula.
fn gradient(input: ParseStream, mode: Mode) -> syn::Result<Backward> {
    if input.peek(Token![|]) || input.peek(Token![||]) {
        return source::read(input, mode.example(), |p| p.formula(mode)).map(Backward::Formula);
    }
    let message = if mode == Mode::Reverse { &messages::NOT_A_BACKWARD } else { &messages::NOT_A_JVP };
    let path = input.parse::<Path>().map_err(|e| error_at(e, message))?;
    match path.get_ident() {
        Some(word) if (word == "auto" || word == "none") && mode == Mode::Forward => Err(error(word, message, &[])),
        Some(word) if word == "auto" => Ok(Backward::Auto(word.clone())),
        Some(word) if word == "none" => Ok(Backward::None),
        _ => Ok(Backward::Function(mode, path)),
    }
}

/// A specific message where syn only reports "expected identifier".
fn error_at(e: syn::Error, message: &messages::Message) -> syn::Error {
    let known: Vec<_> = CLAUSES.iter().map(|(known, _)| *known).take(CLAUSES.len() - 1).collect();
    syn::Error::new(e.span(), message.filled(&[&list(&known)]).for_rust())
}
