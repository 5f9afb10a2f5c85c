//! Parses expressions, with the syntax of Rust.

use super::{Argument, Expr, ExprKind, Let};
use crate::attr::Attr;
use crate::grammar::parser::{Dialect, Parsed, Parser};
use crate::grammar::token::TokenKind;
use crate::message;
use crate::problem::{Extent, Problem};

/// Binary operators, by precedence.
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

impl Parser<'_> {
    /// Reads an expression.
    ///
    /// # Errors
    /// The tokens are not an expression.
    pub fn expr(&mut self) -> Parsed<Expr> {
        self.nested(|p| p.binary(0))
    }

    fn is_rust(&self) -> bool {
        self.dialect == Dialect::Rust
    }

    fn make(&self, start: usize, kind: ExprKind) -> Parsed<Expr> {
        let (at, depth) = (self.since(start), kind.depth() + 1);
        self.check_depth(depth, at)?;
        Ok(Expr { kind, at, depth })
    }

    /// Parses operators with at least the precedence of a level.
    fn binary(&mut self, least: usize) -> Parsed<Expr> {
        let start = self.position();
        let (mut left, mut levels) = (self.cast()?, least..OPERATORS.len());
        while let TokenKind::Sign(sign) = self.peek().kind
            && let Some(level) = OPERATORS.iter().position(|signs| signs.contains(&sign))
            && levels.contains(&level)
        {
            let sign_at = Extent::of(self.position());
            self.next();
            let right = self.binary(level + 1)?;
            left = self.make(start, ExprKind::Binary { sign, sign_at, sides: Box::new([left, right]) })?;
            // `a < b < c` is not an expression.
            levels.end = if level == COMPARISONS { level } else { levels.end };
        }
        Ok(left)
    }

    /// `n as f64`
    fn cast(&mut self) -> Parsed<Expr> {
        let start = self.position();
        let mut expr = self.unary()?;
        while self.is_rust() && self.take_word("as") {
            self.word("a type")?;
            while self.take("::") {
                self.word("a type")?;
            }
            expr = self.make(start, ExprKind::Rust(vec![expr]))?;
        }
        Ok(expr)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.position();
        match self.peek().kind {
            TokenKind::Sign(sign @ ("-" | "!")) => {
                let sign_at = Extent::of(self.position());
                self.next();
                let inner = Box::new(self.nested(Self::unary)?);
                self.make(start, ExprKind::Unary { sign, sign_at, inner })
            }
            // A reference, as in Rust.
            TokenKind::Sign("&") => {
                self.next();
                self.nested(Self::unary)
            }
            TokenKind::Sign("*") if self.is_rust() => {
                self.next();
                let inner = self.nested(Self::unary)?;
                self.make(start, ExprKind::Rust(vec![inner]))
            }
            _ => self.postfix(),
        }
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let start = self.position();
        let mut expr = self.primary()?;
        loop {
            let kind = match self.peek().kind {
                TokenKind::Sign(".") => {
                    self.next();
                    self.member(expr)?
                }
                TokenKind::Sign("[") => {
                    self.next();
                    let index = self.expr()?;
                    self.expect("]")?;
                    ExprKind::Index(Box::new([expr, index]))
                }
                TokenKind::Sign("?") if self.is_rust() => {
                    self.next();
                    ExprKind::Rust(vec![expr])
                }
                _ => return Ok(expr),
            };
            expr = self.make(start, kind)?;
        }
    }

    /// `exp()`, `shape`
    fn member(&mut self, of: Expr) -> Parsed<ExprKind> {
        if self.is_rust() && matches!(self.peek().kind, TokenKind::Int(_) | TokenKind::Float(_)) {
            self.next();
            return Ok(ExprKind::Rust(vec![of]));
        }
        let (name, name_at) = self.word("the name of a method")?;
        if self.is_rust() && self.take("::") {
            self.type_arguments()?;
        }
        if !self.take("(") {
            return Ok(ExprKind::Property { of: Box::new(of), name, name_at });
        }
        let mut args = vec![Argument { keyword: None, value: of }];
        args.extend(self.list(")", Self::argument)?);
        Ok(ExprKind::Call { name, name_at, is_method: true, args })
    }

    /// `<Vec<_>>`
    fn type_arguments(&mut self) -> Parsed<()> {
        let mut depth = 0_i32;
        loop {
            match self.peek().kind {
                TokenKind::Sign("<") => depth += 1,
                TokenKind::Sign("<<") => depth += 2,
                TokenKind::Sign(">") => depth -= 1,
                TokenKind::Sign(">>") => depth -= 2,
                TokenKind::Word | TokenKind::Sign("::" | "," | "&") => {}
                _ => return self.expected("a type"),
            }
            self.next();
            if depth <= 0 {
                return Ok(());
            }
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let start = self.position();
        let token = self.peek();
        let kind = match token.kind {
            TokenKind::Word => match if token.is_raw { "" } else { token.text.as_str() } {
                "if" => return self.choice(),
                "match" if self.is_rust() => return self.alternatives(),
                "move" if self.is_rust() => return self.closure(),
                "true" => self.constant(ExprKind::Const(Attr::Bool(true))),
                "false" => self.constant(ExprKind::Const(Attr::Bool(false))),
                "None" => self.constant(ExprKind::Const(Attr::None)),
                _ => self.name()?,
            },
            TokenKind::Int(value) => self.constant(ExprKind::Int(value)),
            TokenKind::Float(value) => self.constant(ExprKind::Float(value)),
            TokenKind::Text => {
                let text = token.text.trim_matches('"').to_owned();
                self.constant(ExprKind::Const(Attr::from(text)))
            }
            TokenKind::Literal => self.constant(ExprKind::Rust(vec![])),
            TokenKind::Sign("(") => return self.parentheses(),
            TokenKind::Sign("[") => {
                self.next();
                ExprKind::List(self.list("]", Self::expr)?)
            }
            TokenKind::Sign("{") => return self.block(),
            TokenKind::Sign("|" | "||") if self.is_rust() => return self.closure(),
            _ => return self.expected("a value"),
        };
        self.make(start, kind)
    }

    fn constant(&mut self, kind: ExprKind) -> ExprKind {
        self.next();
        kind
    }

    /// `(a)`, `(a, b)`
    fn parentheses(&mut self) -> Parsed<Expr> {
        let start = self.position();
        self.next();
        if self.take(")") {
            return self.make(start, ExprKind::Tuple(vec![]));
        }
        let first = self.expr()?;
        if self.take(")") {
            return Ok(first);
        }
        if !self.take(",") {
            return self.expected("`)`");
        }
        let mut items = vec![first];
        items.extend(self.list(")", Self::expr)?);
        self.make(start, ExprKind::Tuple(items))
    }

    /// `x`, `f(…)`, `ns::f(…)`
    fn name(&mut self) -> Parsed<ExprKind> {
        let start = self.position();
        let (mut path, _) = self.word("a name")?;
        let is_path = self.is_sign("::");
        while self.take("::") {
            if self.is_rust() && self.is_sign("<") {
                self.type_arguments()?;
                continue;
            }
            path = path + "::" + &self.word("a name")?.0;
        }
        let name_at = self.since(start);
        if self.take("(") {
            let args = self.list(")", Self::argument)?;
            return Ok(ExprKind::Call { name: path, name_at, is_method: false, args });
        }
        if self.is_rust() && self.is_sign("!") {
            self.next();
            self.skip_brackets()?;
            return Ok(ExprKind::Rust(vec![]));
        }
        match is_path {
            false => Ok(ExprKind::Name(path)),
            true if self.is_rust() => Ok(ExprKind::Rust(vec![])),
            true => self.expected(&format!("the arguments of `{path}`")),
        }
    }

    /// `|v| v * 2`. Its parameters are unknown, so its body is not analysed.
    fn closure(&mut self) -> Parsed<Expr> {
        let start = self.position();
        self.take_word("move");
        if !self.take("||") {
            self.expect("|")?;
            self.skip_to(&["|"])?;
            self.expect("|")?;
        }
        if self.is_sign("{") {
            self.skip_brackets()?;
        } else {
            self.expr()?;
        }
        self.make(start, ExprKind::Rust(vec![]))
    }

    /// `x`, `axis = -1`
    fn argument(&mut self) -> Parsed<Argument> {
        let mut keyword = None;
        if self.peek().kind == TokenKind::Word && self.ahead(1).kind == TokenKind::Sign("=") {
            keyword = Some(self.next().text.clone());
            self.next();
        }
        Ok(Argument { keyword, value: self.expr()? })
    }

    /// `if c { a } else { b }`
    fn choice(&mut self) -> Parsed<Expr> {
        let start = self.position();
        self.next();
        let pattern = match self.is_rust() && self.take_word("let") {
            true => {
                let pattern = self.skip_to(&["="])?;
                self.expect("=")?;
                Some(pattern)
            }
            false => None,
        };
        let (condition, yes) = (self.expr()?, self.nested(Self::block)?);
        if !self.take_word("else") {
            return Err(Problem::tokens(Extent::of(start), &message::FORMULA_IF, &[]));
        }
        let is_chain = self.is_word("if");
        let no = self.nested(if is_chain { Self::choice } else { Self::block })?;
        let parts = Box::new([condition, yes, no]);
        self.make(
            start,
            if let Some(pattern) = pattern { ExprKind::IfLet(pattern, parts) } else { ExprKind::If(parts) },
        )
    }

    /// `match mode { Mode::A => a, _ => b }`
    fn alternatives(&mut self) -> Parsed<Expr> {
        let start = self.position();
        self.next();
        let of = self.expr()?;
        self.expect("{")?;
        let mut arms = Vec::new();
        while !self.take("}") {
            let pattern = self.skip_to(&["=>"])?;
            self.expect("=>")?;
            let is_block = self.is_sign("{");
            arms.push((pattern, self.expr()?));
            if !self.take(",") && !is_block && !self.is_sign("}") {
                return self.expected("`,` or `}`");
            }
        }
        self.make(start, ExprKind::Match(Box::new(of), arms))
    }

    /// `{ let a = x; a * a }`
    fn block(&mut self) -> Parsed<Expr> {
        let start = self.position();
        self.expect("{")?;
        let (lets, value) = (self.lets()?, self.expr()?);
        self.expect("}")?;
        match lets.is_empty() {
            true => Ok(value),
            false => self.make(start, ExprKind::Block(lets, Box::new(value))),
        }
    }

    /// Any number of `let`s.
    pub(in crate::grammar) fn lets(&mut self) -> Parsed<Vec<Let>> {
        let mut lets = Vec::new();
        while self.is_word("let") {
            lets.push(self.binding()?);
        }
        Ok(lets)
    }

    fn binding(&mut self) -> Parsed<Let> {
        let start = self.position();
        self.next();
        let pattern_start = self.position();
        let is_tuple = self.take("(");
        let name = |p: &mut Self| p.word("a name").map(|(name, _)| name);
        let names = if is_tuple { self.list(")", name) } else { name(self).map(|name| vec![name]) };
        let (names, is_tuple, pattern) = match names {
            Ok(names) if !self.is_rust() || self.is_sign("=") => (names, is_tuple, self.since(pattern_start)),
            Err(problem) if !self.is_rust() => return Err(problem),
            // Any other Rust pattern, and its type.
            _ => {
                self.go_to(pattern_start);
                let pattern = self.skip_to(&["=", ";"])?;
                (self.tokens.names_in(pattern), false, pattern)
            }
        };
        if self.take(";") {
            return self.wrong(self.since(start), &message::BARE_LET);
        }
        self.expect("=")?;
        let value = self.expr()?;
        self.expect(";")?;
        Ok(Let { names, is_tuple, pattern, value })
    }
}
