//! The `shape` clause as data: named core dimensions, arithmetic on them, predicates.

use std::fmt;

use smallvec::SmallVec;

use crate::attr::Attr;
use crate::error::{Error, Result};
use crate::op::def::{List, OpDef, Text};

/// The core dimensions of every argument: `(x: [.., n], w: [n, m]) -> [.., m]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreShapes {
    /// One for each input.
    pub inputs: List<Dims>,
    /// One for each output, saved ones included.
    pub outputs: List<Dims>,
    /// The clause as it is written, for docs and errors.
    pub text: Text,
}

/// The dimensions of one argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Dims {
    /// Whether batch dimensions stand before the core (`..`).
    pub batch: bool,
    /// The core dimensions.
    pub core: List<Dim>,
}

/// One dimension, or a number in a predicate.
#[derive(Clone, Debug, PartialEq)]
pub enum Dim {
    /// A name bound by the first input that has it.
    Name(Text),
    /// A number.
    Int(i64),
    /// A number that isn't whole; predicates only.
    Float(f64),
    /// The value of the attribute of that position.
    Attr(u8),
    /// Arithmetic on two; division must have no remainder.
    Op(Arithmetic, List<Dim>),
}

/// Arithmetic on dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
}

/// What must hold: `k <= n`.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// The left side.
    pub left: Dim,
    /// How they compare.
    pub relation: Relation,
    /// The right side.
    pub right: Dim,
    /// As it is written.
    pub text: Text,
}

/// How two numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Relation {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

impl CoreShapes {
    /// The dimensions of a flat input: of all tensors that a list takes, those of the list.
    pub fn input(&self, flat: usize) -> &Dims {
        &self.inputs[flat.min(self.inputs.len() - 1)]
    }

    /// The dimensions of an output: of all that a list gives, those of the list.
    pub fn output(&self, flat: usize) -> &Dims {
        &self.outputs[flat.min(self.outputs.len() - 1)]
    }
}

impl fmt::Display for CoreShapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The values of the named dimensions of one call.
#[derive(Clone, Debug, Default)]
pub struct Bindings<'a>(SmallVec<[(&'a str, i64); 4]>);

impl<'a> Bindings<'a> {
    /// The size of a dimension.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
    }

    /// All names, and their sizes.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, i64)> + '_ {
        self.0.iter().copied()
    }

    fn value(&self, dim: &Dim, attrs: &[Attr]) -> Option<f64> {
        Some(match dim {
            Dim::Float(v) => *v,
            Dim::Attr(a) => match &attrs[*a as usize] {
                Attr::Int(v) => *v as f64,
                Attr::Float(v) => *v,
                Attr::Bool(v) => f64::from(u8::from(*v)),
                _ => return None,
            },
            Dim::Op(op, sides) => {
                let (a, b) = (self.value(&sides[0], attrs)?, self.value(&sides[1], attrs)?);
                match op {
                    Arithmetic::Add => a + b,
                    Arithmetic::Sub => a - b,
                    Arithmetic::Mul => a * b,
                    Arithmetic::Div => a / b,
                }
            }
            other => self.size(other, attrs)? as f64,
        })
    }

    /// The size a dimension has by what is bound; `None` if a name is free, a division has a remainder, or it overflows.
    pub fn size(&self, dim: &Dim, attrs: &[Attr]) -> Option<i64> {
        match dim {
            Dim::Name(name) => self.get(name),
            Dim::Int(v) => Some(*v),
            Dim::Float(_) => None,
            Dim::Attr(a) => match attrs[*a as usize] {
                Attr::Int(v) => Some(v),
                _ => None,
            },
            Dim::Op(op, sides) => {
                let (a, b) = (self.size(&sides[0], attrs)?, self.size(&sides[1], attrs)?);
                match op {
                    Arithmetic::Add => a.checked_add(b),
                    Arithmetic::Sub => a.checked_sub(b),
                    Arithmetic::Mul => a.checked_mul(b),
                    Arithmetic::Div => a.checked_rem(b).filter(|rest| *rest == 0).and_then(|_| a.checked_div(b)),
                }
            }
        }
    }

    /// Binds, or checks, the core dimensions of one argument.
    pub fn bind(&mut self, dims: &'a [Dim], sizes: &[usize], attrs: &[Attr]) -> Result<(), String> {
        for (dim, size) in dims.iter().zip(sizes) {
            let size = *size as i64;
            match (dim, self.size(dim, attrs)) {
                (_, Some(expected)) if expected == size => {}
                (Dim::Name(name), Some(expected)) => {
                    return Err(format!("dimension {name} is {expected} elsewhere and {size} here"));
                }
                (_, Some(expected)) => return Err(format!("a dimension should be {expected} and is {size}")),
                (Dim::Name(name), None) => self.0.push((name, size)),
                (_, None) => return Err("a dimension can't be computed from the others".into()),
            }
        }
        Ok(())
    }

    /// The core sizes of an output.
    pub fn sizes(&self, dims: &[Dim], attrs: &[Attr]) -> Result<SmallVec<[usize; 4]>, String> {
        dims.iter()
            .map(|dim| match self.size(dim, attrs) {
                Some(v) if v >= 0 => Ok(v as usize),
                Some(v) => Err(format!("an output dimension would be {v}")),
                None => Err(match self.free(dim) {
                    Some(name) => format!("dimension {name} isn't known without the arguments that have it"),
                    None => "an output dimension isn't a whole number".into(),
                }),
            })
            .collect()
    }

    /// A name in a dimension that isn't bound.
    fn free<'d>(&self, dim: &'d Dim) -> Option<&'d str> {
        match dim {
            Dim::Name(name) if self.get(name).is_none() => Some(name),
            Dim::Op(_, sides) => sides.iter().find_map(|side| self.free(side)),
            _ => None,
        }
    }
}

impl OpDef {
    /// Checks what must hold of dimensions and attributes.
    pub(crate) fn check_predicates(&self, bindings: &Bindings<'_>, attrs: &[Attr]) -> Result<()> {
        for p in self.predicates.iter() {
            // An optional attribute that isn't given has nothing to check.
            let (Some(left), Some(right)) = (bindings.value(&p.left, attrs), bindings.value(&p.right, attrs)) else {
                continue;
            };
            let holds = match p.relation {
                Relation::Less => left < right,
                Relation::LessEqual => left <= right,
                Relation::Greater => left > right,
                Relation::GreaterEqual => left >= right,
                Relation::Equal => left == right,
                Relation::NotEqual => left != right,
            };
            if !holds {
                let mut known: Vec<_> = bindings.0.iter().map(|(n, v)| format!("{n} = {v}")).collect();
                known.extend(self.attrs.iter().zip(attrs).map(|(a, v)| format!("{} = {v}", a.name)));
                known.retain(|k| {
                    k.split(" = ")
                        .next()
                        .is_some_and(|name| p.text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == name))
                });
                return Err(Error::value(format!("op '{}' needs {}, got {}", self.name, p.text, known.join(", "))));
            }
        }
        Ok(())
    }
}
