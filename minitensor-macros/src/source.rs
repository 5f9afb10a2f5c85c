//! Converts the tokens of a clause for the grammar of the schema, and keeps their spans for errors and the expansion.

use std::ops::Deref;
use std::rc::Rc;

use minitensor_schema::grammar::{Dialect, Parser, Token, TokenKind, Tokens};
use minitensor_schema::{Extent, Problem, problem};
use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Ident, Lit};

/// A clause parsed by the grammar of the schema, with its source tokens.
#[derive(Clone)]
pub struct Clause<T> {
    pub tree: T,
    pub source: Rc<Source>,
}

impl<T> Deref for Clause<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.tree
    }
}

/// The tokens of a clause, with their spans.
#[derive(Default)]
pub struct Source {
    pub tokens: Tokens,
    pieces: Vec<Piece>,
}

/// The Rust source of one token.
struct Piece {
    span: Span,
    rust: Rust,
    /// The number of token trees of the clause that end before it.
    trees: usize,
}

enum Rust {
    Trees(Vec<TokenTree>),
    Open(Delimiter),
    Close,
}

/// Reads a clause from the next tokens.
pub fn read<T>(
    input: ParseStream,
    example: &'static str,
    rule: impl FnOnce(&mut Parser<'_>) -> Result<T, Problem>,
) -> syn::Result<Clause<T>> {
    let source = Source::new(input.fork().parse()?);
    let mut parser = Parser::new(&source.tokens, Dialect::Rust, example);
    let tree = rule(&mut parser).map_err(|problem| source.error(&problem))?;
    let read = source.trees_before(parser.position());
    for _ in 0..read {
        input.parse::<TokenTree>()?;
    }
    Ok(Clause { tree, source: Rc::new(source) })
}

/// A clause that consists of one word.
pub fn of_word<T>(word: &Ident, tree: impl FnOnce(Extent) -> T) -> Clause<T> {
    Clause { tree: tree(Extent::of(0)), source: Rc::new(Source::new(word.to_token_stream())) }
}

impl Source {
    fn new(stream: TokenStream) -> Source {
        let mut flat = Flat::default();
        for tree in stream {
            flat.tree(tree);
            flat.trees += 1;
        }
        flat.end_run();
        Source { tokens: Tokens::new(flat.tokens), pieces: flat.pieces }
    }

    fn trees_before(&self, position: usize) -> usize {
        self.pieces.get(position).map_or_else(|| self.pieces.last().map_or(0, |p| p.trees + 1), |p| p.trees)
    }

    /// The span of the token at a position. After the end, the span of the last token.
    pub fn span(&self, position: usize) -> Span {
        self.pieces.get(position).or(self.pieces.last()).map_or_else(Span::call_site, |p| p.span)
    }

    /// Tokens that cover the extent, for an error to underline.
    pub fn anchor(&self, at: Extent) -> TokenStream {
        let (start, end) = (self.span(at.start), self.span(at.end.saturating_sub(1).max(at.start)));
        [quote_spanned!(start=> x), quote_spanned!(end=> x)].into_iter().collect()
    }

    fn error(&self, problem: &Problem) -> syn::Error {
        let at = match problem.at {
            problem::At::Tokens(at) => at,
            _ => Extent::of(0),
        };
        syn::Error::new_spanned(self.anchor(at), problem.sentence.for_rust())
    }

    /// The Rust source of an extent, with some parts replaced. The parts are ordered from left to right.
    pub fn rust(&self, at: Extent, replaced: &[(Extent, TokenStream)]) -> TokenStream {
        let mut open: Vec<(Delimiter, Span, TokenStream)> = vec![];
        let mut tokens = TokenStream::new();
        let mut replaced = replaced.iter().peekable();
        let mut position = at.start;
        while position < at.end {
            if let Some((part, new)) = replaced.next_if(|(part, _)| part.start == position) {
                tokens.extend(new.clone());
                position = part.end;
                continue;
            }
            let piece = &self.pieces[position];
            match &piece.rust {
                Rust::Trees(trees) => tokens.extend(trees.iter().cloned()),
                Rust::Open(delimiter) => open.push((*delimiter, piece.span, std::mem::take(&mut tokens))),
                Rust::Close => {
                    if let Some((delimiter, span, before)) = open.pop() {
                        let mut group = Group::new(delimiter, std::mem::replace(&mut tokens, before));
                        group.set_span(span);
                        tokens.extend([TokenTree::Group(group)]);
                    }
                }
            }
            position += 1;
        }
        tokens
    }
}

/// Flattens token trees to tokens: opens groups, and joins punctuation.
#[derive(Default)]
struct Flat {
    tokens: Vec<Token>,
    pieces: Vec<Piece>,
    trees: usize,
    /// Adjacent punctuation, each with the number of trees before it.
    run: Vec<(TokenTree, usize)>,
}

impl Flat {
    fn tree(&mut self, tree: TokenTree) {
        match tree {
            TokenTree::Punct(punct) => {
                let is_last = punct.spacing() == proc_macro2::Spacing::Alone;
                self.run.push((punct.into(), self.trees));
                if is_last {
                    self.end_run();
                }
            }
            TokenTree::Group(group) => {
                self.end_run();
                self.group(&group);
            }
            TokenTree::Ident(ident) => {
                self.end_run();
                let token = Token::word(ident.unraw().to_string(), ident != ident.unraw());
                self.push(token, ident.span(), Rust::Trees(vec![ident.into()]), self.trees);
            }
            TokenTree::Literal(literal) => {
                self.end_run();
                let kind = kind(&Lit::new(literal.clone()));
                let token = Token::new(kind, literal.to_string());
                self.push(token, literal.span(), Rust::Trees(vec![literal.into()]), self.trees);
            }
        }
    }

    fn group(&mut self, group: &Group) {
        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
        let signs = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => ("{", "}"),
            // An invisible group around a name or a literal, from a `macro_rules!` argument.
            Delimiter::None if inner.len() == 1 => return inner.into_iter().for_each(|tree| self.tree(tree)),
            Delimiter::None => ("(", ")"),
        };
        let sign = |sign: &'static str| Token::new(TokenKind::Sign(sign), sign);
        self.push(sign(signs.0), group.span_open(), Rust::Open(group.delimiter()), self.trees);
        inner.into_iter().for_each(|tree| self.tree(tree));
        self.end_run();
        self.push(sign(signs.1), group.span_close(), Rust::Close, self.trees);
    }

    fn push(&mut self, token: Token, span: Span, rust: Rust, trees: usize) {
        self.tokens.push(token);
        self.pieces.push(Piece { span, rust, trees });
    }

    /// Ends a run of punctuation, and splits it into signs.
    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        let text: String = run.iter().map(|(punct, _)| punct.to_string()).collect();
        let mut at = 0;
        while let Some(token) = Token::first_sign(&text[at..]) {
            let parts = &run[at..at + token.text.len()];
            at += token.text.len();
            let trees = parts.iter().map(|(punct, _)| punct.clone()).collect();
            self.push(token, parts[0].0.span(), Rust::Trees(trees), parts[0].1);
        }
    }
}

/// The kind of token of a literal in the grammar.
fn kind(literal: &Lit) -> TokenKind {
    match literal {
        Lit::Int(int) if int.suffix().is_empty() => int.base10_parse().map_or(TokenKind::Literal, TokenKind::Int),
        Lit::Float(float) if float.suffix().is_empty() => {
            float.base10_parse().map_or(TokenKind::Literal, TokenKind::Float)
        }
        Lit::Str(text) if text.suffix().is_empty() => TokenKind::Text,
        _ => TokenKind::Literal,
    }
}
