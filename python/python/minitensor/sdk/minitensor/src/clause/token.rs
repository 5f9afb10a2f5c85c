//! The words and signs of a clause.

use std::ops::Range;

use super::{DEEPEST, LONGEST, Source, shown};
use crate::error::Result;

/// A word or a sign.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Token<'a> {
    Word(&'a str),
    Int(i64),
    Float(f64),
    Text(&'a str),
    Sign(&'static str),
    End,
}

/// Longer ones before those they begin with.
const SIGNS: &[&str] = &[
    "->", "..", "::", "||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "(", ")", "[", "]", "{", "}", "|", "&", "=", "!",
    "<", ">", ",", ":", ";", ".", "+", "-", "*", "/", "%", "^",
];

/// Reads a clause from left to right.
pub struct Reader<'a> {
    pub source: Source<'a>,
    tokens: Vec<(Token<'a>, Range<usize>)>,
    at: usize,
    nesting: usize,
}

impl<'a> Reader<'a> {
    /// The tokens of a clause, the end last.
    pub fn new(source: Source<'a>) -> Result<Reader<'a>> {
        let text = source.text;
        if text.len() > LONGEST {
            return Err(source.error(format!("it has {} bytes, and {LONGEST} are the most", text.len())));
        }
        let (mut tokens, mut start) = (Vec::new(), 0);
        while let Some(space) = text[start..].find(|c: char| !c.is_whitespace()) {
            start += space;
            let (token, length) = next(&text[start..]).map_err(|what| source.error(what))?;
            tokens.push((token, start..start + length));
            start += length;
        }
        tokens.push((Token::End, text.len()..text.len()));
        Ok(Reader { source, tokens, at: 0, nesting: 0 })
    }

    pub fn peek(&self) -> Token<'a> {
        self.tokens[self.at].0
    }

    /// The token after the next one.
    pub fn second(&self) -> Token<'a> {
        self.tokens.get(self.at + 1).map_or(Token::End, |(token, _)| *token)
    }

    pub fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Whether that sign is next; it is then read.
    pub fn take(&mut self, sign: &'static str) -> bool {
        self.take_token(Token::Sign(sign))
    }

    /// Whether that word is next; it is then read.
    pub fn take_word(&mut self, word: &str) -> bool {
        self.take_token(Token::Word(word))
    }

    fn take_token(&mut self, token: Token<'_>) -> bool {
        let found = self.peek() == token;
        if found {
            self.next();
        }
        found
    }

    pub fn expect(&mut self, sign: &'static str) -> Result<()> {
        if self.take(sign) { Ok(()) } else { self.expected(&format!("'{sign}'")) }
    }

    pub fn word(&mut self, what: &str) -> Result<&'a str> {
        match self.peek() {
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            _ => self.expected(what),
        }
    }

    /// What stands between here and a closing sign, with commas between.
    pub fn list<T>(&mut self, close: &'static str, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(item(self)?);
            if !self.take(",") && self.peek() != Token::Sign(close) {
                return self.expected(&format!("',' or '{close}'"));
            }
        }
        Ok(items)
    }

    /// Reads what lies one level deeper.
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting == DEEPEST {
            return Err(self.too_deep());
        }
        self.nesting += 1;
        let inner = read(self);
        self.nesting -= 1;
        inner
    }

    #[cold]
    pub fn too_deep(&self) -> crate::Error {
        self.source.error(format!("its parts lie more than {DEEPEST} deep in each other"))
    }

    /// Something else is needed here: says what, and where that is.
    #[cold]
    pub fn expected<T>(&self, what: &str) -> Result<T> {
        let (token, place) = &self.tokens[self.at];
        let found = match token {
            Token::End => "the end".to_owned(),
            _ => format!("'{}'", shown(&self.source.text[place.clone()])),
        };
        let before = &self.tokens[self.at.saturating_sub(3)..self.at];
        let place = match (before.first(), before.last()) {
            (Some((_, first)), Some((_, last))) => {
                format!("behind '{}'", shown(&self.source.text[first.start..last.end]))
            }
            _ => "at the beginning".to_owned(),
        };
        Err(self.source.error(format!("expected {what} {place}, found {found}")))
    }

    /// Where the next token begins.
    pub fn start(&self) -> usize {
        self.tokens[self.at].1.start
    }

    /// What was read since then, as it is written.
    pub fn since(&self, start: usize) -> &'a str {
        let end = self.tokens[self.at.saturating_sub(1)].1.end;
        self.source.text.get(start..end).unwrap_or_default()
    }
}

/// The first token of a text, and its length.
fn next(text: &str) -> Result<(Token<'_>, usize), String> {
    let length = |text: &str, part: fn(char) -> bool| text.find(|c| !part(c)).unwrap_or(text.len());
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return number(text);
    }
    if let Some(word) = text.strip_prefix("r#") {
        let end = length(word, is_word);
        return Ok((Token::Word(&word[..end]), end + 2));
    }
    if text.starts_with(is_word) {
        let end = length(text, is_word);
        return Ok((Token::Word(&text[..end]), end));
    }
    if let Some(inside) = text.strip_prefix('"') {
        let end = inside.find('"').ok_or("a text has no '\"' at its end")?;
        return match inside[..end].contains('\\') {
            true => Err("a text can't have '\\'".into()),
            false => Ok((Token::Text(&inside[..end]), end + 2)),
        };
    }
    let sign = SIGNS.iter().find(|sign| text.starts_with(**sign));
    let unknown = || format!("a clause can't have '{}'", text.chars().next().unwrap_or_default().escape_default());
    sign.map(|sign| (Token::Sign(sign), sign.len())).ok_or_else(unknown)
}

/// `12`, `1_000`, `0.5`, `1e-6`
fn number(text: &str) -> Result<(Token<'_>, usize), String> {
    let digits =
        |from: usize| from + text[from..].find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len() - from);
    let mut end = digits(0);
    // `1.5` and `1.`, but neither `1..` nor `1.exp()`.
    let rest = text[end..].strip_prefix('.');
    if rest.is_some_and(|rest| !rest.starts_with(|c: char| c == '.' || c == '_' || c.is_alphabetic())) {
        end = digits(end + 1);
    }
    if let Some(rest) = text[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(rest.starts_with(['+', '-']));
        if rest[sign..].starts_with(|c: char| c.is_ascii_digit()) {
            end = digits(end + 1 + sign);
        }
    }
    let written = &text[..end];
    let value = written.replace('_', "");
    let is_int = value.bytes().all(|b| b.is_ascii_digit());
    let token = if is_int { value.parse().map(Token::Int).ok() } else { value.parse().map(Token::Float).ok() };
    let ends = !text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let token = token.filter(|_| ends).ok_or_else(|| format!("'{}' is no number", shown(written)))?;
    Ok((token, end))
}
