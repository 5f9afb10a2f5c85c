//! The clauses `shape` and `where`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::expr::{Expr, Kind};
use super::token::{Reader, Token};
use super::{Source, suggestion};
use crate::attr::{Attr, AttrKind};
use crate::error::{Error, Result};
use crate::op::{Arithmetic, Arity, CoreShapes, Dim, Dims, List, OpDef, Predicate, Relation, Role, ShapeRule};

/// What a shape clause says.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The core dimensions; `None` if there are conditions alone.
    pub shapes: Option<CoreShapes>,
    /// What stands behind `where`.
    pub predicates: Vec<Predicate>,
    /// Positions of the outputs that only the gradient gets.
    pub saved: Vec<usize>,
}

/// Reads `(x: [.., n]) -> (values: [.., k], [save] order: [.., n]) where k <= n`, `(x: [.., n]) -> [..]`, or `where b > 0.0` on
/// its own, for an op whose inputs, attributes and outputs are known.
///
/// # Errors
/// What the macro would refuse too, with the clause and the place.
pub fn shape(op: &OpDef, text: &str) -> Result<Shape> {
    let source = Source { op: &op.name, clause: "shape", text: text.trim() };
    let mut reader = Reader::new(source)?;
    let clause = Clause::read(&mut reader)?;
    let dims = Dimensions { op, source, bound: clause.bound() };
    let shapes = match clause.arguments {
        Some([inputs, outputs]) => Some(dims.shapes(inputs, outputs, clause.text)?),
        None => None,
    };
    let (shapes, saved) = shapes.unzip();
    let predicates = clause.conditions.iter().map(|e| dims.predicate(e)).collect::<Result<_>>()?;
    Ok(Shape { shapes, predicates, saved: saved.unwrap_or_default() })
}

impl Shape {
    /// Lets the op have it.
    pub fn apply_to(self, op: &mut OpDef) {
        if let Some(shapes) = self.shapes {
            op.shape = ShapeRule::Core(shapes);
        }
        op.predicates = self.predicates.into();
        self.saved.into_iter().for_each(|k| op.outputs.to_mut()[k].role = Role::Saved);
    }
}

/// The clause as it is written.
struct Clause<'a> {
    /// Inputs and outputs.
    arguments: Option<[Vec<Argument<'a>>; 2]>,
    /// Those alone.
    text: &'a str,
    conditions: Vec<Expr<'a>>,
}

/// `x: [.., n]`
struct Argument<'a> {
    /// Missing for a single unnamed output.
    name: Option<&'a str>,
    save: bool,
    batch: bool,
    core: Vec<Expr<'a>>,
}

impl<'a> Clause<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Clause<'a>> {
        let mut arguments = None;
        if r.peek() != Token::Word("where") {
            r.expect("(")?;
            let inputs = r.list(")", Argument::named)?;
            r.expect("->")?;
            let outputs = if r.take("(") { r.list(")", Argument::named)? } else { vec![Argument::dims(r, None)?] };
            arguments = Some([inputs, outputs]);
        }
        let (text, mut conditions) = (r.since(0), Vec::new());
        if r.take_word("where") {
            loop {
                conditions.push(r.expr()?);
                if !r.take(",") || r.peek() == Token::End {
                    break;
                }
            }
        }
        match r.peek() {
            Token::End => Ok(Clause { arguments, text, conditions }),
            _ => r.expected(if conditions.is_empty() { "'where' or the end" } else { "',' or the end" }),
        }
    }

    /// Names that some input has as a dimension of its own.
    fn bound(&self) -> Vec<&'a str> {
        let inputs = self.arguments.iter().flat_map(|[inputs, _]| inputs);
        let name = |e: &Expr<'a>| if let Kind::Name(name) = e.kind { Some(name) } else { None };
        let names: BTreeSet<&str> = inputs.flat_map(|i| &i.core).filter_map(name).collect();
        names.into_iter().collect()
    }
}

impl<'a> Argument<'a> {
    fn named(r: &mut Reader<'a>) -> Result<Argument<'a>> {
        let save = r.take("[");
        if save {
            let word = r.word("'save'")?;
            if word != "save" {
                return Err(r.source.error(format!("'[{word}]' is nothing to say of an output; [save] is")));
            }
            r.expect("]")?;
        }
        let name = r.word("a name")?;
        r.expect(":")?;
        Ok(Argument { save, ..Argument::dims(r, Some(name))? })
    }

    fn dims(r: &mut Reader<'a>, name: Option<&'a str>) -> Result<Argument<'a>> {
        r.expect("[")?;
        let batch = r.take("..");
        if batch && !r.take(",") && r.peek() != Token::Sign("]") {
            return r.expected("',' or ']'");
        }
        Ok(Argument { name, save: false, batch, core: r.list("]", Reader::expr)? })
    }
}

/// What the names of a clause stand for.
struct Dimensions<'a> {
    op: &'a OpDef,
    source: Source<'a>,
    bound: Vec<&'a str>,
}

impl Dimensions<'_> {
    /// The dimensions in the op's order, and which outputs are saved.
    fn shapes(
        &self,
        inputs: Vec<Argument<'_>>,
        outputs: Vec<Argument<'_>>,
        text: &str,
    ) -> Result<(CoreShapes, Vec<usize>)> {
        let op = self.op;
        if matches!(op.shape, ShapeRule::Broadcast) {
            return Err(self.source.error("the inputs of an element op broadcast; write 'where …' alone"));
        }
        if let Some(input) = inputs.iter().find(|i| i.save) {
            let name = input.name.unwrap_or_default();
            return Err(self
                .source
                .error(format!("the input '{name}' can't be [save]; what a formula mentions is saved")));
        }
        if let Some(list) = op.inputs.iter().find(|i| i.arity == Arity::Variadic) {
            return Err(self
                .source
                .error(format!("'{}' is any number of tensors, which have no dimensions in common", list.name)));
        }
        if let ([Argument { name: None, .. }], [_, second, ..]) = (&outputs[..], op.outputs.as_ref()) {
            let (count, first) = (op.outputs.len(), &op.outputs[0].name);
            return Err(self.source.error(format!(
                "dimensions for one output, and the op has {count}; name them: '-> ({first}: [..], {}: [..])'",
                second.name
            )));
        }
        let is_saved = |k: &usize| outputs.iter().any(|o| o.save && o.name == Some(&op.outputs[*k].name));
        let saved = (0..op.outputs.len()).filter(is_saved).collect();
        let shapes = CoreShapes {
            inputs: self.arguments("input", &inputs, op.inputs.iter().map(|i| i.name.as_ref()).collect())?,
            outputs: self.arguments("output", &outputs, op.outputs.iter().map(|o| o.name.as_ref()).collect())?,
            text: Cow::Owned(text.to_owned()),
        };
        Ok((shapes, saved))
    }

    /// Each of the op's has its dimensions, once.
    fn arguments(&self, what: &str, written: &[Argument<'_>], names: Vec<&str>) -> Result<List<Dims>> {
        for (i, name) in written.iter().enumerate().filter_map(|(i, a)| Some((i, a.name?))) {
            if !names.contains(&name) {
                return Err(self.source.error(format!("there is no {what} '{name}'; {}", suggestion(name, &names))));
            }
            if written[..i].iter().any(|before| before.name == Some(name)) {
                return Err(self.source.error(format!("it has '{name}' twice; leave one of them out")));
            }
        }
        let dims = names.iter().map(|name| {
            let argument = written.iter().find(|a| a.name.is_none_or(|n| n == *name));
            let missing = || self.source.error(format!("it doesn't mention the {what} '{name}'; add '{name}: [..]'"));
            let Argument { batch, core, .. } = argument.ok_or_else(missing)?;
            let core = core.iter().map(|e| self.dim(e, false)).collect::<Result<_>>()?;
            Ok(Dims { batch: *batch, core })
        });
        dims.collect()
    }

    /// A dimension; in a condition a number, which may be negative or a fraction.
    fn dim(&self, expr: &Expr<'_>, number: bool) -> Result<Dim> {
        match &expr.kind {
            Kind::Name(name) => self.named(name, number),
            Kind::Const(Attr::Int(value)) => Ok(Dim::Int(*value)),
            Kind::Const(Attr::Float(value)) if number => Ok(Dim::Float(*value)),
            Kind::Unary("-", inner) if number => match self.dim(inner, number)? {
                Dim::Int(value) => Ok(Dim::Int(-value)),
                Dim::Float(value) => Ok(Dim::Float(-value)),
                _ => Err(self.no_dimension(expr)),
            },
            Kind::Binary(sign, sides) => {
                let op = match *sign {
                    "+" => Arithmetic::Add,
                    "-" => Arithmetic::Sub,
                    "*" => Arithmetic::Mul,
                    "/" => Arithmetic::Div,
                    _ => return Err(self.no_dimension(expr)),
                };
                let sides = [self.dim(&sides[0], number)?, self.dim(&sides[1], number)?];
                if op == Arithmetic::Div && matches!(sides[1], Dim::Int(0)) {
                    return Err(self.source.error(format!("'{}' divides by 0", expr.text)));
                }
                Ok(Dim::Op(op, Cow::Owned(sides.to_vec())))
            }
            _ => Err(self.no_dimension(expr)),
        }
    }

    fn no_dimension(&self, expr: &Expr<'_>) -> Error {
        self.source.error(format!("'{}' is no dimension; that is a name, a number, or '+ - * /' of those", expr.text))
    }

    fn named(&self, name: &str, number: bool) -> Result<Dim> {
        let attr = self.op.attrs.iter().take(256).position(|a| a.name == name);
        match attr.map(|i| (i, self.op.attrs[i].kind)) {
            Some((i, AttrKind::Int | AttrKind::Size)) => Ok(Dim::Attr(i as u8)),
            Some((i, AttrKind::Float)) if number => Ok(Dim::Attr(i as u8)),
            Some((_, kind)) => Err(self.source.error(format!(
                "'{name}' is an attribute that takes {kind}, and {}",
                if number { "can't be compared; numbers can" } else { "only whole numbers are dimensions; rename one" }
            ))),
            None if self.bound.contains(&name) => Ok(Dim::Name(Cow::Owned(name.to_owned()))),
            None => {
                let attrs = self.op.attrs.iter().map(|a| a.name.as_ref());
                let known: Vec<&str> = self.bound.iter().copied().chain(attrs).collect();
                Err(self.source.error(format!(
                    "'{name}' is in no input and is no attribute; let an input have it as a dimension, or an attribute be called \
                     so; {}",
                    suggestion(name, &known)
                )))
            }
        }
    }

    fn predicate(&self, expr: &Expr<'_>) -> Result<Predicate> {
        let relation = |sign: &str| {
            Some(match sign {
                "<" => Relation::Less,
                "<=" => Relation::LessEqual,
                ">" => Relation::Greater,
                ">=" => Relation::GreaterEqual,
                "==" => Relation::Equal,
                "!=" => Relation::NotEqual,
                _ => return None,
            })
        };
        let Kind::Binary(sign, sides) = &expr.kind else { return Err(self.no_condition(expr)) };
        let relation = relation(sign).ok_or_else(|| self.no_condition(expr))?;
        let (left, right) = (self.dim(&sides[0], true)?, self.dim(&sides[1], true)?);
        Ok(Predicate { left, relation, right, text: Cow::Owned(expr.text.to_owned()) })
    }

    fn no_condition(&self, expr: &Expr<'_>) -> Error {
        self.source.error(format!("'{}' is no condition; write a comparison such as 'k <= n'", expr.text))
    }
}
