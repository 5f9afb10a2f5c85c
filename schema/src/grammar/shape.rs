//! The clauses `shape` and `where` as trees.
//!
//! ```text
//! (x: [.., n], w: [n, m]) -> [.., m]
//! (x: [.., n]) -> (values: [.., k], [save] order: [.., n])
//! k <= n, eps >= 0.0
//! dim := name | number | dim (+ - * /) dim | (dim)
//! ```

use std::fmt;

use super::expr::{Expr, ExprKind};
use super::parser::{Parsed, Parser};
use super::token::TokenKind;
use crate::message;
use crate::problem::Extent;
use crate::shape::{Arithmetic, Relation};

/// The clause `shape`.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The inputs, in the order of the clause.
    pub inputs: Vec<NamedDims>,
    /// The outputs, in the order of the clause.
    pub outputs: Vec<NamedDims>,
}

/// The dimensions of one argument: `x: [.., n]`.
#[derive(Clone, Debug)]
pub struct NamedDims {
    /// Missing for a single unnamed output.
    pub name: Option<String>,
    /// The extent of the name, or of the dimensions if there is none.
    pub at: Extent,
    /// `[save]`
    pub save: bool,
    /// The dimensions.
    pub dims: Dims,
}

/// `[.., n, m]`
#[derive(Clone, Debug)]
pub struct Dims {
    /// Whether batch dimensions precede the core.
    pub batch: bool,
    /// The core dimensions.
    pub core: Vec<Dim>,
    /// Their extent, including the brackets.
    pub at: Extent,
}

/// One dimension, or a number in a condition.
#[derive(Clone, Debug)]
pub struct Dim {
    /// Its kind.
    pub kind: DimKind,
    /// Its extent.
    pub at: Extent,
}

/// The kind of a dimension.
#[derive(Clone, Debug)]
pub enum DimKind {
    /// A dimension or an attribute with that name.
    Name(String),
    /// An integer.
    Int(i64),
    /// Any other number, in conditions only.
    Float(f64),
    /// Arithmetic on two dimensions.
    Op(Arithmetic, Box<[Dim; 2]>),
}

/// A condition: `k <= n`.
#[derive(Clone, Debug)]
pub struct Predicate {
    /// The left side.
    pub left: Dim,
    /// The comparison.
    pub relation: Relation,
    /// The right side.
    pub right: Dim,
    /// Its extent.
    pub at: Extent,
}

/// The syntax of a `shape` clause, for errors.
pub const EXAMPLE: &str = "(x: [.., n]) -> [.., n]";

/// The syntax of a `where` clause, for errors.
pub const WHERE_EXAMPLE: &str = "k <= n, eps >= 0.0";

impl Parser<'_> {
    /// Reads `(x: [.., n]) -> [.., n]`.
    ///
    /// # Errors
    /// The tokens are not a `shape` clause.
    pub fn shape(&mut self) -> Parsed<Shape> {
        self.expect("(")?;
        let inputs = self.list(")", Self::named_dims)?;
        self.expect("->")?;
        let outputs = match self.take("(") {
            true => self.list(")", Self::named_dims)?,
            false => {
                let dims = self.dims()?;
                vec![NamedDims { name: None, at: dims.at, save: false, dims }]
            }
        };
        Ok(Shape { inputs, outputs })
    }

    /// Reads `where k <= n, eps >= 0.0` if it is next.
    ///
    /// # Errors
    /// The tokens are not a condition.
    pub fn optional_where(&mut self) -> Parsed<Vec<Predicate>> {
        if self.take_word("where") { self.predicates() } else { Ok(Vec::new()) }
    }

    /// Reads `k <= n, eps >= 0.0`, up to the end or the next clause.
    ///
    /// # Errors
    /// The tokens are not a condition.
    pub fn predicates(&mut self) -> Parsed<Vec<Predicate>> {
        let mut predicates = Vec::new();
        loop {
            predicates.push(self.predicate()?);
            if !self.is_sign(",") || self.is_before_clause() {
                return Ok(predicates);
            }
            self.next();
            if self.is_at_end() {
                return Ok(predicates);
            }
        }
    }

    /// Whether the next comma ends the clause.
    fn is_before_clause(&self) -> bool {
        let word = self.ahead(1);
        match word.kind {
            TokenKind::Word => {
                self.ahead(2).kind == TokenKind::Sign("=")
                    || ["inplace", "precompiled", "symmetric", "where"].iter().any(|known| word.is_keyword(known))
            }
            _ => false,
        }
    }

    /// `x: [.., n]`, `[save] order: [n]`
    fn named_dims(&mut self) -> Parsed<NamedDims> {
        let save = self.take("[");
        if save {
            let (word, at) = self.word("`save`")?;
            if word != "save" {
                return self.wrong(at, &message::NOT_SAVE);
            }
            self.expect("]")?;
        }
        let (name, at) = self.word("the name of a tensor")?;
        self.expect(":")?;
        Ok(NamedDims { name: Some(name), at, save, dims: self.dims()? })
    }

    fn dims(&mut self) -> Parsed<Dims> {
        let start = self.position();
        self.expect("[")?;
        let batch = self.take("..");
        if batch && !self.take(",") && !self.is_sign("]") {
            return self.expected("`,` or `]`");
        }
        let core = self.list("]", |p| {
            let expr = p.expr()?;
            p.dim(&expr, false)
        })?;
        Ok(Dims { batch, core, at: self.since(start) })
    }

    fn predicate(&mut self) -> Parsed<Predicate> {
        let expr = self.expr()?;
        let ExprKind::Binary { sign, sides, .. } = &expr.kind else {
            return self.wrong(expr.at, &message::NOT_A_PREDICATE);
        };
        match Relation::of_sign(sign) {
            Some(relation) => {
                let (left, right) = (self.dim(&sides[0], true)?, self.dim(&sides[1], true)?);
                Ok(Predicate { left, relation, right, at: expr.at })
            }
            None => self.wrong(expr.at, &message::NOT_A_PREDICATE),
        }
    }

    /// A dimension. In a condition also a number, which may be negative or a fraction.
    fn dim(&self, expr: &Expr, is_condition: bool) -> Parsed<Dim> {
        let at = expr.at;
        let kind = match &expr.kind {
            ExprKind::Name(name) => DimKind::Name(name.clone()),
            ExprKind::Int(value) => DimKind::Int(*value),
            ExprKind::Float(value) if is_condition => DimKind::Float(*value),
            ExprKind::Unary { sign: "-", inner, .. } if is_condition => match self.dim(inner, true)?.kind {
                DimKind::Int(value) => DimKind::Int(-value),
                DimKind::Float(value) => DimKind::Float(-value),
                _ => return self.wrong(at, &message::NOT_A_DIMENSION),
            },
            ExprKind::Binary { sign, sides, .. } => match Arithmetic::of_sign(sign) {
                Some(op) => {
                    let sides = [self.dim(&sides[0], is_condition)?, self.dim(&sides[1], is_condition)?];
                    if op == Arithmetic::Div && matches!(sides[1].kind, DimKind::Int(0)) {
                        return self.wrong(at, &message::DIVIDES_BY_ZERO);
                    }
                    DimKind::Op(op, Box::new(sides))
                }
                None => return self.wrong(at, &message::NOT_A_DIMENSION),
            },
            _ => return self.wrong(at, &message::NOT_A_DIMENSION),
        };
        Ok(Dim { kind, at })
    }
}

impl Shape {
    /// The dimensions of the input with that name.
    pub fn input(&self, name: &str) -> Option<&NamedDims> {
        self.inputs.iter().find(|i| i.name.as_deref() == Some(name))
    }

    /// The dimensions of an output, by its name or its position among the outputs.
    pub fn output(&self, name: &str, position: usize) -> Option<&NamedDims> {
        self.outputs.iter().find(|o| o.name.as_deref() == Some(name)).or_else(|| self.outputs.get(position))
    }

    /// Inputs, then outputs.
    pub fn arguments(&self) -> impl Iterator<Item = &NamedDims> {
        self.inputs.iter().chain(&self.outputs)
    }

    /// Every name that is alone a dimension of some input, with the extent of its first occurrence.
    pub fn bound(&self) -> Vec<(&str, Extent)> {
        let mut names: Vec<(&str, Extent)> = Vec::new();
        for dim in self.inputs.iter().flat_map(|i| &i.dims.core) {
            if let DimKind::Name(name) = &dim.kind
                && !names.iter().any(|(known, _)| known == name)
            {
                names.push((name, dim.at));
            }
        }
        names
    }
}

impl Dim {
    /// The names in it from left to right, each with its extent.
    pub fn names(&self) -> Vec<(&str, Extent)> {
        match &self.kind {
            DimKind::Name(name) => vec![(name, self.at)],
            DimKind::Int(_) | DimKind::Float(_) => vec![],
            DimKind::Op(_, sides) => [sides[0].names(), sides[1].names()].concat(),
        }
    }
}

// For docs and errors.

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |list: &[NamedDims]| list.iter().map(NamedDims::to_string).collect::<Vec<_>>().join(", ");
        match &self.outputs[..] {
            [NamedDims { name: None, dims, .. }] => write!(f, "({}) -> {dims}", join(&self.inputs)),
            outputs => write!(f, "({}) -> ({})", join(&self.inputs), join(outputs)),
        }
    }
}

impl fmt::Display for NamedDims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let save = if self.save { "[save] " } else { "" };
        match &self.name {
            Some(name) => write!(f, "{save}{name}: {}", self.dims),
            None => write!(f, "{}", self.dims),
        }
    }
}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let batch = self.batch.then(|| "..".to_owned());
        let dims = batch.into_iter().chain(self.core.iter().map(Dim::to_string));
        write!(f, "[{}]", dims.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = Relation::SIGNS.iter().find(|(_, relation)| *relation == self.relation).map_or("", |(sign, _)| sign);
        write!(f, "{} {sign} {}", self.left, self.right)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            DimKind::Name(name) => f.write_str(name),
            DimKind::Int(value) => write!(f, "{value}"),
            DimKind::Float(value) => write!(f, "{value:?}"),
            DimKind::Op(op, sides) => {
                let sign = Arithmetic::SIGNS[*op as usize].0;
                write!(f, "{} {sign} {}", Side(&sides[0], *op, false), Side(&sides[1], *op, true))
            }
        }
    }
}

/// An operand of arithmetic, in parentheses if required.
struct Side<'a>(&'a Dim, Arithmetic, bool);

impl fmt::Display for Side<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = |op: Arithmetic| u8::from(matches!(op, Arithmetic::Mul | Arithmetic::Div));
        match &self.0.kind {
            DimKind::Op(inner, _) if level(*inner) < level(self.1) || (self.2 && level(*inner) == level(self.1)) => {
                write!(f, "({})", self.0)
            }
            _ => write!(f, "{}", self.0),
        }
    }
}
