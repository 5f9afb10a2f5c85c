//! Tokens of a text, and errors that point into it.

use std::ops::Range;

use super::token::{Token, TokenKind, Tokens};
use crate::message::{self, Sentence};
use crate::problem::Extent;
use crate::suggestion::shortened;

/// The length limit of a clause, in bytes.
pub const LONGEST: usize = 16 * 1024;

/// The length limit of a line in an error, in characters.
const WIDEST: usize = 100;

/// A clause as text.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    text: &'a str,
    /// The position of each token, including the end.
    places: Vec<Range<usize>>,
}

impl Tokens {
    /// Splits a text into tokens.
    ///
    /// # Errors
    /// A text that is too long, with only the message. An invalid token, with the message and the line of the text.
    pub fn of_text(text: &str) -> Result<(Tokens, Source<'_>), (Sentence, Source<'_>)> {
        let mut source = Source { text, places: Vec::new() };
        if text.len() > LONGEST {
            source.text = "";
            return Err((message::LONG_CLAUSE.filled(&[&text.len(), &LONGEST]), source));
        }
        let (mut tokens, mut start) = (Vec::new(), 0);
        while let Some(space) = text[start..].find(|c: char| !c.is_whitespace()) {
            start += space;
            match next(&text[start..]) {
                Ok((token, length)) => {
                    source.places.push(start..start + length);
                    tokens.push(token);
                    start += length;
                }
                Err((sentence, length)) => {
                    source.places.clear();
                    source.places.push(start..start + length);
                    return Err((sentence, source));
                }
            }
        }
        source.places.push(text.len()..text.len());
        Ok((Tokens::new(tokens), source))
    }
}

impl Source<'_> {
    /// The line of the text that contains the extent, and below it `^^^` under the extent. Empty if the text is empty.
    pub fn underlined(&self, extent: Extent) -> String {
        let (Some(first), Some(last)) = (self.places.get(extent.start), self.places.get(extent.end.saturating_sub(1)))
        else {
            return String::new();
        };
        let (start, end) = (first.start, last.end.max(first.start));
        let line_start = self.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |newline| start + newline);
        let line = &self.text[line_start..line_end];
        let column = self.text[line_start..start].chars().count();
        // Leading spaces are omitted, and so is text far from the extent.
        let indent = line.chars().take_while(|c| c.is_whitespace()).count();
        let from = if column < WIDEST { indent.min(column) } else { column - WIDEST / 2 };
        let is_control = |c: char| c.is_control();
        let shown: String = line.chars().skip(from).take(WIDEST).map(|c| if is_control(c) { ' ' } else { c }).collect();
        let width = self.text[start..end.min(line_end).max(start)].chars().count();
        let marks = "^".repeat(width.clamp(1, (WIDEST + 1).saturating_sub(column - from).max(1)));
        if line.is_empty() {
            return String::new();
        }
        format!("  {}\n  {}{marks}", shown.trim_end(), " ".repeat(column - from))
    }

    /// The whole text on one line, truncated.
    pub fn shortened(&self) -> String {
        shortened(self.text)
    }
}

/// The first token of a text and its length, or the problem with it.
fn next(text: &str) -> Result<(Token, usize), (Sentence, usize)> {
    let length = |text: &str, part: fn(char) -> bool| text.find(|c| !part(c)).unwrap_or(text.len());
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return number(text);
    }
    if let Some(word) = text.strip_prefix("r#") {
        let end = length(word, is_word);
        return Ok((Token::word(&word[..end], true), end + 2));
    }
    if text.starts_with(is_word) {
        let end = length(text, is_word);
        return Ok((Token::word(&text[..end], false), end));
    }
    if let Some(inside) = text.strip_prefix('"') {
        let end = inside.find('"').ok_or_else(|| (message::OPEN_TEXT.filled(&[]), 1))?;
        return match inside[..end].contains('\\') {
            true => Err((message::ESCAPE.filled(&[]), end + 2)),
            false => Ok((Token::new(TokenKind::Text, &text[..end + 2]), end + 2)),
        };
    }
    match Token::first_sign(text) {
        Some(Token { kind: TokenKind::Unknown, text, .. }) => {
            let shown: String = text.escape_default().collect();
            Err((message::UNKNOWN_SIGN.filled(&[&shown]), text.len()))
        }
        Some(token) => {
            let length = token.text.len();
            Ok((token, length))
        }
        None => Ok((Token::new(TokenKind::End, ""), 0)),
    }
}

/// `12`, `1_000`, `0.5`, `1e-6`
fn number(text: &str) -> Result<(Token, usize), (Sentence, usize)> {
    let digits =
        |from: usize| from + text[from..].find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len() - from);
    let mut end = digits(0);
    // `1.5` and `1.` are numbers, but not `1..` or `1.exp()`.
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
    let after = text[end..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len() - end);
    let kind = if after == 0 { number_kind(written) } else { None };
    match kind {
        Some(kind) => Ok((Token::new(kind, written), end)),
        None => Err((message::NOT_A_NUMBER.filled(&[&shortened(&text[..end + after])]), end + after)),
    }
}

/// The value of a literal without a suffix.
fn number_kind(written: &str) -> Option<TokenKind> {
    let value = written.replace('_', "");
    match value.bytes().all(|b| b.is_ascii_digit()) {
        true => value.parse().map(TokenKind::Int).ok(),
        false => value.parse().map(TokenKind::Float).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_is_spelled_as_rust_usually_is() {
        for text in [
            "(x: [.., n], [save] w: [n, m]) -> [.., (m - 1) / 2]",
            "where count <= n, (count - 1) * 2 < n, scale >= -0.5",
            "|d, _| { let a = -x.exp(); x: if !a { f(d, axis = -1)[0] } else { ns::g([d, 1.5]) }, y: none }",
        ] {
            let (tokens, _) = Tokens::of_text(text).expect(text);
            assert_eq!(tokens.spelled(Extent { start: 0, end: tokens.len() }), text.replace("|d, _|", "| d, _ |"));
        }
    }

    #[test]
    fn a_part_of_a_text_is_underlined() {
        let text = "first\n    second part\nthird";
        let (_, source) = Tokens::of_text(text).expect(text);
        assert_eq!(source.underlined(Extent::of(2)), "  second part\n         ^^^^");
        assert_eq!(source.underlined(Extent { start: 1, end: 4 }), "  second part\n  ^^^^^^^^^^^");
        assert_eq!(source.underlined(Extent::of(4)), "  third\n       ^");
        let long = format!("{} here {}", "word ".repeat(100), "word ".repeat(100));
        let (_, source) = Tokens::of_text(&long).expect("words");
        let shown = source.underlined(Extent::of(100));
        let (line, marks) = shown.split_once('\n').expect("two lines");
        assert_eq!(line.find("here"), marks.find("^^^^"));
        assert!(line.len() < 110, "{line}");
    }
}
