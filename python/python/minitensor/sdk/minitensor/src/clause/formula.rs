//! The clause `backward` as it is written.

use super::expr::{Expr, Kind, Let};
use super::token::{Reader, Token};
use crate::error::Result;

/// `|d, _| { let a = x.exp(); x: d * a, weight: none }`
pub struct Formula<'a> {
    /// The name of each cotangent, `_` included.
    pub cotangents: Vec<&'a str>,
    pub lets: Vec<Let<'a>>,
    pub entries: Vec<Entry<'a>>,
}

/// The gradient of one input.
pub struct Entry<'a> {
    pub input: &'a str,
    /// `None` for `none`.
    pub value: Option<Expr<'a>>,
}

impl<'a> Formula<'a> {
    pub fn read(r: &mut Reader<'a>) -> Result<Formula<'a>> {
        let cotangents = match r.take("||") {
            true => Vec::new(),
            false => {
                r.expect("|")?;
                r.list("|", |r| r.word("the name of a cotangent"))?
            }
        };
        r.expect("{")?;
        let (lets, entries) = (r.lets()?, r.list("}", Entry::read)?);
        match r.peek() {
            Token::End => Ok(Formula { cotangents, lets, entries }),
            _ => r.expected("the end"),
        }
    }
}

impl<'a> Entry<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Entry<'a>> {
        if r.peek() == Token::Word("let") {
            return Err(r.source.error("the 'let's come first, then one entry for each input"));
        }
        let input = r.word("the gradient of an input, such as 'x: d' or 'x: none',")?;
        r.expect(":")?;
        let value = r.expr()?;
        Ok(Entry { input, value: if matches!(value.kind, Kind::Name("none")) { None } else { Some(value) } })
    }
}
