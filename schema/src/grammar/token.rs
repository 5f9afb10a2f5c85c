//! Tokens, independent of their source.

use crate::problem::Extent;

/// The tokens of a clause, [`TokenKind::End`] last.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Vec<Token>);

/// A word, a number, a text or a sign.
#[derive(Clone, PartialEq, Debug)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Its text. For a word, without `r#`.
    pub text: String,
    /// Whether it is a word with `r#`, which is never a keyword.
    pub is_raw: bool,
}

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TokenKind {
    /// A name or a keyword.
    Word,
    /// An integer.
    Int(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// A text in double quotes.
    Text,
    /// A literal that only Rust has.
    Literal,
    /// One of [`SIGNS`].
    Sign(&'static str),
    /// A sign that clauses do not use.
    Unknown,
    /// The end.
    End,
}

/// The signs of the grammar. A longer sign precedes its prefixes.
pub const SIGNS: &[&str] = &[
    "->", "=>", "..", "::", "||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "(", ")", "[", "]", "{", "}", "|", "&",
    "=", "!", "<", ">", ",", ":", ";", ".", "+", "-", "*", "/", "%", "^", "?",
];

impl Token {
    /// A token of this kind with this text.
    pub fn new(kind: TokenKind, text: impl Into<String>) -> Token {
        Token { kind, text: text.into(), is_raw: false }
    }

    /// A name. `is_raw` means that it was written with `r#`.
    pub fn word(name: impl Into<String>, is_raw: bool) -> Token {
        Token { is_raw, ..Token::new(TokenKind::Word, name) }
    }

    /// Whether it is this word, as a keyword.
    pub fn is_keyword(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && !self.is_raw && self.text == word
    }

    /// The first sign in a run of punctuation, and its length; any other character is [`TokenKind::Unknown`].
    pub fn first_sign(run: &str) -> Option<Token> {
        let first = run.chars().next()?;
        let sign = SIGNS.iter().find(|sign| run.starts_with(**sign));
        Some(
            sign.map_or_else(|| Token::new(TokenKind::Unknown, first), |sign| Token::new(TokenKind::Sign(sign), *sign)),
        )
    }
}

impl Tokens {
    /// These tokens, followed by the end.
    pub fn new(mut tokens: Vec<Token>) -> Tokens {
        tokens.push(Token::new(TokenKind::End, ""));
        Tokens(tokens)
    }

    /// The token at a position. After the last one, the end.
    pub fn get(&self, position: usize) -> &Token {
        &self.0[position.min(self.0.len() - 1)]
    }

    /// The number of tokens, without the end.
    pub fn len(&self) -> usize {
        self.0.len() - 1
    }

    /// Whether there is no token except the end.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names that a Rust pattern binds: lower-case words that are not paths, keywords or types.
    pub fn names_in(&self, pattern: Extent) -> Vec<String> {
        let is_sign = |at: usize, sign: &'static str| self.get(at).kind == TokenKind::Sign(sign);
        let mut is_type = false;
        let mut names = Vec::new();
        for at in pattern.start..pattern.end {
            let token = self.get(at);
            is_type = (is_type || is_sign(at, ":")) && !is_sign(at, ",");
            let is_path = is_sign(at + 1, "::") || at > 0 && is_sign(at - 1, "::");
            let is_name =
                token.kind == TokenKind::Word && token.text.starts_with(|c: char| c.is_lowercase() || c == '_');
            if is_name
                && !is_type
                && !is_path
                && !["mut", "ref", "if", "_", "true", "false"].iter().any(|word| token.is_keyword(word))
            {
                names.push(token.text.clone());
            }
        }
        names
    }

    /// The text of a part of the clause, with the usual spacing of Rust.
    pub fn spelled(&self, extent: Extent) -> String {
        let mut spelled = String::new();
        for at in extent.start..extent.end.min(self.len()) {
            if at > extent.start && self.is_spaced(at, extent.start) {
                spelled.push(' ');
            }
            spelled.push_str(&self.0[at].text);
        }
        spelled
    }

    /// Whether a space precedes the token, in a part that begins at `start`.
    fn is_spaced(&self, at: usize, start: usize) -> bool {
        let (before, token) = (&self.0[at - 1], &self.0[at]);
        let is_one_of = |token: &Token, signs: &[&str]| matches!(token.kind, TokenKind::Sign(s) if signs.contains(&s));
        let is_keyword =
            |at: usize| ["if", "else", "match", "let", "as", "in"].iter().any(|word| self.0[at].is_keyword(word));
        let is_unary = is_one_of(before, &["-", "!", "&", "*"])
            && (at - 1 == start || {
                let earlier = &self.0[at - 2];
                matches!(earlier.kind, TokenKind::Sign(s) if ![")", "]", "}", "?"].contains(&s)) || is_keyword(at - 2)
            });
        if is_one_of(token, &[",", ";", ")", "]", ".", ":", "::", "?"])
            || is_one_of(before, &["(", "[", ".", "::", ".."])
            || is_unary
        {
            return false;
        }
        match token.kind {
            TokenKind::Sign("(" | "[") => {
                is_keyword(at - 1) || !(before.kind == TokenKind::Word || is_one_of(before, &[")", "]"]))
            }
            TokenKind::Sign("!") => before.kind != TokenKind::Word || is_keyword(at - 1),
            _ => true,
        }
    }
}
