//! The position of the parser among the tokens, and the steps that all rules of the grammar share.

use super::token::{Token, TokenKind, Tokens};
use crate::message::{self, Message};
use crate::problem::{Extent, Problem};

/// The limit for nested brackets, operators and calls.
const DEEPEST: usize = 64;

/// The result of a rule.
pub(in crate::grammar) type Parsed<T> = Result<T, Problem>;

/// The kinds of formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Text: the engine evaluates the parts that are not tensors.
    Text,
    /// Rust: the parts that are not tensors may be any Rust code.
    Rust,
}

/// Reads a clause from left to right.
pub struct Parser<'a> {
    pub(in crate::grammar) tokens: &'a Tokens,
    pub(in crate::grammar) dialect: Dialect,
    /// The syntax of the clause, for errors.
    example: &'static str,
    at: usize,
    nesting: usize,
}

impl<'a> Parser<'a> {
    /// A parser at the first token. `example` shows the syntax of the clause.
    pub fn new(tokens: &'a Tokens, dialect: Dialect, example: &'static str) -> Parser<'a> {
        Parser { tokens, dialect, example, at: 0, nesting: 0 }
    }

    /// The position of the next token.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Whether all tokens were read.
    pub fn is_at_end(&self) -> bool {
        self.at == self.tokens.len()
    }

    /// Whether this word is next.
    pub fn is_at(&self, word: &str) -> bool {
        self.is_word(word)
    }

    /// Fails unless all tokens were read.
    ///
    /// # Errors
    /// There are more tokens.
    pub fn finish(&self) -> Parsed<()> {
        if self.is_at_end() { Ok(()) } else { self.expected("the end of the clause") }
    }

    pub(in crate::grammar) fn peek(&self) -> &'a Token {
        self.tokens.get(self.at)
    }

    /// The token at an offset from the next one.
    pub(in crate::grammar) fn ahead(&self, by: usize) -> &'a Token {
        self.tokens.get(self.at + by)
    }

    pub(in crate::grammar) fn next(&mut self) -> &'a Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len());
        token
    }

    pub(in crate::grammar) fn is_sign(&self, sign: &'static str) -> bool {
        self.peek().kind == TokenKind::Sign(sign)
    }

    pub(in crate::grammar) fn is_word(&self, word: &str) -> bool {
        self.peek().is_keyword(word)
    }

    /// Reads this sign if it is next, and returns whether it was.
    pub(in crate::grammar) fn take(&mut self, sign: &'static str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.next();
        }
        found
    }

    /// Reads this word if it is next, and returns whether it was.
    pub(in crate::grammar) fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.next();
        }
        found
    }

    pub(in crate::grammar) fn expect(&mut self, sign: &'static str) -> Parsed<()> {
        if self.take(sign) { Ok(()) } else { self.expected(&format!("`{sign}`")) }
    }

    /// A word, and its extent.
    pub(in crate::grammar) fn word(&mut self, what: &str) -> Parsed<(String, Extent)> {
        match self.peek().kind {
            TokenKind::Word => {
                let at = Extent::of(self.at);
                Ok((self.next().text.clone(), at))
            }
            _ => self.expected(what),
        }
    }

    /// The items up to a closing sign, separated by commas.
    pub(in crate::grammar) fn list<T>(
        &mut self,
        close: &'static str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(item(self)?);
            if !self.take(",") && !self.is_sign(close) {
                return self.expected(&format!("`,` or `{close}`"));
            }
        }
        Ok(items)
    }

    /// Reads a part that is nested one level deeper.
    pub(in crate::grammar) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == DEEPEST {
            return Err(self.too_deep(Extent::of(self.at)));
        }
        self.nesting += 1;
        let inner = read(self);
        self.nesting -= 1;
        inner
    }

    /// Fails if parts are nested too deeply.
    pub(in crate::grammar) fn check_depth(&self, depth: usize, at: Extent) -> Parsed<()> {
        if depth > DEEPEST { Err(self.too_deep(at)) } else { Ok(()) }
    }

    #[cold]
    fn too_deep(&self, at: Extent) -> Problem {
        Problem::tokens(at, &message::TOO_DEEP, &[&DEEPEST])
    }

    /// The error for an unexpected token here.
    #[cold]
    pub(in crate::grammar) fn expected<T>(&self, what: &str) -> Parsed<T> {
        let token = self.peek();
        let found = match token.kind {
            TokenKind::End => "the end".to_owned(),
            _ => format!("`{}`", crate::suggestion::shortened(&token.text)),
        };
        Err(Problem::tokens(Extent::of(self.at), &message::EXPECTED, &[&what, &found, &self.example]))
    }

    /// The error for the tokens read since a position.
    #[cold]
    pub(in crate::grammar) fn wrong<T>(&self, at: Extent, message: &'static Message) -> Parsed<T> {
        Err(Problem::tokens(at, message, &[&self.tokens.spelled(at)]))
    }

    /// Resets to an earlier position.
    pub(in crate::grammar) fn go_to(&mut self, position: usize) {
        self.at = position;
    }

    /// The extent of all tokens read since a position.
    pub(in crate::grammar) fn since(&self, start: usize) -> Extent {
        Extent { start, end: self.at }
    }

    /// Skips the bracket that is next, with its contents and its closing sign.
    pub(in crate::grammar) fn skip_brackets(&mut self) -> Parsed<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek().kind {
                TokenKind::Sign("(" | "[" | "{") => depth += 1,
                TokenKind::Sign(")" | "]" | "}") => depth = depth.saturating_sub(1),
                TokenKind::End => return self.expected("a closing bracket"),
                _ => {}
            }
            self.next();
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Skips to one of these signs. Brackets and their contents are skipped as a whole.
    pub(in crate::grammar) fn skip_to(&mut self, signs: &[&str]) -> Parsed<Extent> {
        let start = self.at;
        loop {
            match self.peek().kind {
                TokenKind::Sign(sign) if signs.contains(&sign) => return Ok(self.since(start)),
                TokenKind::Sign("(" | "[" | "{") => self.skip_brackets()?,
                TokenKind::End | TokenKind::Sign(")" | "]" | "}") => return self.expected(&format!("`{}`", signs[0])),
                _ => drop(self.next()),
            }
        }
    }
}
