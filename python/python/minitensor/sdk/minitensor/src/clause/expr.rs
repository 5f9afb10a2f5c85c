//! Expressions, as Rust reads them.

use super::DEEPEST;
use super::token::{Reader, Token};
use crate::attr::Attr;
use crate::error::Result;

/// An expression.
pub struct Expr<'a> {
    /// As it is written.
    pub text: &'a str,
    pub kind: Kind<'a>,
    /// How many lie in each other.
    depth: usize,
}

pub enum Kind<'a> {
    Name(&'a str),
    Const(Attr),
    Unary(&'static str, Box<Expr<'a>>),
    Binary(&'static str, Box<[Expr<'a>; 2]>),
    /// `f(a, b, name = c)`; of a method the receiver is the first argument.
    Call(String, Vec<(Option<&'a str>, Expr<'a>)>),
    /// `x.shape`
    Property(Box<Expr<'a>>, &'a str),
    List(Vec<Expr<'a>>),
    If(Box<[Expr<'a>; 3]>),
    Block(Vec<Let<'a>>, Box<Expr<'a>>),
}

/// `let a = x;`, `let (a, b) = f(x);`
pub struct Let<'a> {
    pub names: Vec<&'a str>,
    /// Whether the names stand in parentheses.
    pub many: bool,
    pub value: Expr<'a>,
}

/// Binary operators, by how strongly they bind.
const OPERATORS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["==", "!=", "<", "<=", ">", ">="],
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];
const COMPARISONS: usize = 2;

impl<'a> Kind<'a> {
    fn depth(&self) -> usize {
        let deepest = |all: &[Expr<'_>]| all.iter().map(|e| e.depth).max().unwrap_or(0);
        match self {
            Kind::Name(_) | Kind::Const(_) => 0,
            Kind::Unary(_, inner) | Kind::Property(inner, _) => inner.depth,
            Kind::Binary(_, sides) => deepest(&sides[..]),
            Kind::Call(_, args) => args.iter().map(|(_, e)| e.depth).max().unwrap_or(0),
            Kind::List(items) => deepest(items),
            Kind::If(parts) => deepest(&parts[..]),
            Kind::Block(lets, value) => lets.iter().map(|l| l.value.depth).max().unwrap_or(0).max(value.depth),
        }
    }
}

impl<'a> Reader<'a> {
    pub fn expr(&mut self) -> Result<Expr<'a>> {
        self.nested(|r| r.binary(0))
    }

    fn make(&self, start: usize, kind: Kind<'a>) -> Result<Expr<'a>> {
        let depth = kind.depth() + 1;
        if depth > DEEPEST {
            return Err(self.too_deep());
        }
        Ok(Expr { text: self.since(start), kind, depth })
    }

    /// Operators that bind at least so strongly.
    fn binary(&mut self, least: usize) -> Result<Expr<'a>> {
        let start = self.start();
        let (mut left, mut levels) = (self.unary()?, least..OPERATORS.len());
        while let Token::Sign(sign) = self.peek()
            && let Some(level) = OPERATORS.iter().position(|signs| signs.contains(&sign))
            && levels.contains(&level)
        {
            self.next();
            let right = self.binary(level + 1)?;
            left = self.make(start, Kind::Binary(sign, Box::new([left, right])))?;
            // `a < b < c` is nothing.
            levels.end = if level == COMPARISONS { level } else { levels.end };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr<'a>> {
        let start = self.start();
        match self.peek() {
            Token::Sign(sign @ ("-" | "!")) => {
                self.next();
                let inner = self.nested(Self::unary)?;
                self.make(start, Kind::Unary(sign, Box::new(inner)))
            }
            // A reference, as Rust has it.
            Token::Sign("&") => {
                self.next();
                self.nested(Self::unary)
            }
            _ => self.postfix(),
        }
    }

    fn postfix(&mut self) -> Result<Expr<'a>> {
        let start = self.start();
        let mut expr = self.primary()?;
        while self.take(".") {
            let name = self.word("the name of a method")?;
            expr = match self.take("(") {
                true => {
                    let mut args = vec![(None, expr)];
                    args.extend(self.list(")", Self::argument)?);
                    self.make(start, Kind::Call(name.to_owned(), args))?
                }
                false => self.make(start, Kind::Property(Box::new(expr), name))?,
            };
        }
        Ok(expr)
    }

    fn primary(&mut self) -> Result<Expr<'a>> {
        let start = self.start();
        let kind = match self.peek() {
            Token::Word("if") => return self.choice(),
            Token::Word(word) => {
                self.next();
                match word {
                    "true" => Kind::Const(Attr::Bool(true)),
                    "false" => Kind::Const(Attr::Bool(false)),
                    "None" => Kind::Const(Attr::None),
                    _ => self.name(word)?,
                }
            }
            Token::Int(value) => self.constant(Attr::Int(value)),
            Token::Float(value) => self.constant(Attr::Float(value)),
            Token::Text(text) => self.constant(text.into()),
            Token::Sign("(") => {
                self.next();
                let mut inner = self.expr()?;
                self.expect(")")?;
                inner.text = self.since(start);
                return Ok(inner);
            }
            Token::Sign("[") => {
                self.next();
                Kind::List(self.list("]", Self::expr)?)
            }
            Token::Sign("{") => return self.block(),
            _ => return self.expected("a value"),
        };
        self.make(start, kind)
    }

    fn constant(&mut self, value: Attr) -> Kind<'a> {
        self.next();
        Kind::Const(value)
    }

    /// `x`, `f(…)`, `ns::f(…)`
    fn name(&mut self, word: &'a str) -> Result<Kind<'a>> {
        let mut path = word.to_owned();
        while self.take("::") {
            path = path + "::" + self.word("a name")?;
        }
        match self.take("(") {
            true => Ok(Kind::Call(path, self.list(")", Self::argument)?)),
            false if path == word => Ok(Kind::Name(word)),
            false => self.expected(&format!("the arguments of '{path}'")),
        }
    }

    /// `x`, `axis = -1`
    fn argument(&mut self) -> Result<(Option<&'a str>, Expr<'a>)> {
        let keyword = match (self.peek(), self.second()) {
            (Token::Word(name), Token::Sign("=")) => Some(name),
            _ => None,
        };
        if keyword.is_some() {
            self.next();
            self.next();
        }
        Ok((keyword, self.expr()?))
    }

    /// `if c { a } else { b }`
    fn choice(&mut self) -> Result<Expr<'a>> {
        let start = self.start();
        self.next();
        let (condition, yes) = (self.expr()?, self.nested(Self::block)?);
        if !self.take_word("else") {
            return self.expected("'else'");
        }
        let is_chain = self.peek() == Token::Word("if");
        let no = self.nested(if is_chain { Self::choice } else { Self::block })?;
        self.make(start, Kind::If(Box::new([condition, yes, no])))
    }

    /// `{ let a = x; a * a }`
    fn block(&mut self) -> Result<Expr<'a>> {
        let start = self.start();
        self.expect("{")?;
        let (lets, value) = (self.lets()?, self.expr()?);
        self.expect("}")?;
        match lets.is_empty() {
            true => Ok(value),
            false => self.make(start, Kind::Block(lets, Box::new(value))),
        }
    }

    /// As many `let`s as there are.
    pub fn lets(&mut self) -> Result<Vec<Let<'a>>> {
        let mut lets = Vec::new();
        while self.take_word("let") {
            let many = self.take("(");
            let name = |r: &mut Self| r.word("a name");
            let names = if many { self.list(")", name)? } else { vec![name(self)?] };
            self.expect("=")?;
            let value = self.expr()?;
            self.expect(";")?;
            lets.push(Let { names, many, value });
        }
        Ok(lets)
    }
}
