//! Evaluation of the `shape` and `where` clauses of a call: the sizes of the named dimensions, and the conditions.

pub use minitensor_schema::shape::{Arithmetic, CoreShapes, Dim, Dims, Predicate, Relation};
use smallvec::SmallVec;

use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::def::{Body, OpDef, ShapeRule};

/// The sizes of the named dimensions of one call.
#[derive(Clone, Debug, Default)]
pub struct Bindings<'a>(SmallVec<[(&'a str, i64); 4]>);

impl<'a> Bindings<'a> {
    /// The size of a dimension.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
    }

    /// All names with their sizes.
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

    /// The size of a dimension for the bound names. `None` if a name is unbound, a division has a remainder, or it overflows.
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

    /// Binds the core dimensions of one argument, and checks those that are bound already.
    pub fn bind(&mut self, dims: &'a [Dim], sizes: &[usize], attrs: &[Attr]) -> Result<(), String> {
        for (dim, size) in dims.iter().zip(sizes) {
            let size = *size as i64;
            match (dim, self.size(dim, attrs)) {
                (_, Some(expected)) if expected == size => {}
                (Dim::Name(name), Some(expected)) => {
                    return Err(format!("expected size {expected} for dimension {name}, got {size}"));
                }
                (_, Some(expected)) => return Err(format!("expected a dimension of size {expected}, got {size}")),
                (Dim::Name(name), None) => self.0.push((name, size)),
                (_, None) => return Err("a dimension cannot be computed from the others".into()),
            }
        }
        Ok(())
    }

    /// Binds the dimensions of inputs that are only a name, if other inputs have dimensions that are computed from them: the cotangents of
    /// a gradient precede its inputs.
    pub fn bind_names<'s>(&mut self, rule: &'a CoreShapes, shapes: impl Iterator<Item = (usize, &'s [usize])>) {
        let is_computed = |dim: &Dim| matches!(dim, Dim::Op(..));
        if !rule.inputs.iter().any(|dims| dims.core.iter().any(is_computed)) {
            return;
        }
        for (i, shape) in shapes {
            let dims = &rule.input(i).core;
            for (dim, size) in dims.iter().rev().zip(shape.iter().rev()) {
                if let Dim::Name(name) = dim
                    && self.get(name).is_none()
                {
                    self.0.push((name, *size as i64));
                }
            }
        }
    }

    /// The core sizes of an output.
    pub fn sizes(&self, dims: &[Dim], attrs: &[Attr]) -> Result<SmallVec<[usize; 4]>, String> {
        dims.iter()
            .map(|dim| match self.size(dim, attrs) {
                Some(v) if v >= 0 => Ok(v as usize),
                Some(v) => Err(format!("an output dimension would have the negative size {v}")),
                None => Err(match self.free(dim) {
                    Some(name) => format!("dimension {name} is unknown, because no argument that has it was passed"),
                    None => "the size of an output dimension is not an integer".into(),
                }),
            })
            .collect()
    }

    /// An unbound name in a dimension.
    fn free<'d>(&self, dim: &'d Dim) -> Option<&'d str> {
        match dim {
            Dim::Name(name) if self.get(name).is_none() => Some(name),
            Dim::Op(_, sides) => sides.iter().find_map(|side| self.free(side)),
            _ => None,
        }
    }
}

impl OpDef {
    /// Checks the conditions on dimensions and attributes.
    pub(crate) fn check_predicates(&self, bindings: &Bindings<'_>, attrs: &[Attr]) -> Result<()> {
        for p in self.predicates.iter() {
            // An optional attribute that is not given is not checked.
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
                return Err(self.unmet(p, bindings, attrs));
            }
        }
        Ok(())
    }

    /// Checks the conditions on attributes for their defaults, and that integer elements can represent these.
    pub(crate) fn check_defaults(&self) -> Result<()> {
        let defaults: SmallVec<[Attr; 4]> =
            self.attrs.iter().map(|a| a.default.clone().unwrap_or(Attr::None)).collect();
        self.check_predicates(&Bindings::default(), &defaults)
            .map_err(|e| Error::value(format!("{} by default", e.message())))?;
        // Numbers for elements are converted to their dtype.
        let is_of_elements = matches!(self.shape, ShapeRule::Broadcast) || matches!(self.body, Body::Cell(Some(_)));
        let is_of_integers = is_of_elements
            && !self.generics.is_empty()
            && self.generics.iter().flat_map(|generic| generic.dtypes.iter()).all(DType::is_integer);
        let is_fraction = |value: &Attr| matches!(value, Attr::Float(v) if v.is_finite() && v.fract() != 0.0);
        match self.attrs.iter().zip(&defaults).find(|(_, value)| is_of_integers && is_fraction(value)) {
            Some((attr, value)) => Err(Error::value(format!(
                "op '{}' has only integer dtypes, so '{}' must be an integer, got {value} by default",
                self.name, attr.name
            ))),
            None => Ok(()),
        }
    }

    /// The error for a condition that does not hold.
    #[cold]
    fn unmet(&self, p: &Predicate, bindings: &Bindings<'_>, attrs: &[Attr]) -> Error {
        if let (Relation::Greater, Dim::Name(name), Dim::Int(0)) = (p.relation, &p.left, &p.right)
            && bindings.get(name) == Some(0)
        {
            let (empty, along) = match self.axis.map(|axis| &attrs[axis.attr as usize]) {
                Some(Attr::Ints(axes)) if axes.len() != 1 => {
                    (format!("the axes {axes:?} have no elements"), " along them")
                }
                Some(Attr::Ints(axes)) => (format!("axis {} has size 0", axes[0]), " along it"),
                Some(Attr::Int(axis)) => (format!("axis {axis} has size 0"), " along it"),
                Some(_) => ("the tensor is empty".to_owned(), ""),
                None => (format!("the dimension {name} has size 0"), " along it"),
            };
            return Error::value(format!(
                "op '{}' is undefined for zero elements: {empty}; pass a tensor with at least one element{along}",
                self.name
            ));
        }
        let mut known: Vec<_> = bindings.0.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        known.extend(self.attrs.iter().zip(attrs).map(|(a, v)| format!("{} = {v}", a.name)));
        known.retain(|k| {
            k.split(" = ")
                .next()
                .is_some_and(|name| p.text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == name))
        });
        Error::value(format!("op '{}' needs {}, got {}", self.name, p.text, known.join(", ")))
    }
}
