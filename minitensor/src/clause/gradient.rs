//! A parsed formula of gradients or tangents: a small tree of op calls.

use std::sync::OnceLock;

use minitensor_schema::gradient::{Name, Property};
use minitensor_schema::grammar::Mode;

use crate::attr::{Attr, FromAttr};
use crate::autograd::BackwardCall;
use crate::error::{Error, Result, counted};
use crate::op::{self, OpDef, OpRef, bind, dispatch, registry};
use crate::tensor::Tensor;

/// A checked formula.
pub struct Gradient {
    pub mode: Mode,
    pub lets: Vec<Let>,
    /// Positions of inputs, each with its gradient; or of outputs, each with its tangent.
    pub entries: Vec<(usize, FormulaExpr)>,
    /// The number of names that the `let`s bind.
    pub slots: usize,
}

/// `let a = x;`, `let (a, b) = f(x);`
pub struct Let {
    /// The slots that receive the values.
    pub slots: std::ops::Range<usize>,
    pub value: LetValue,
    /// Positions of the entries that use it.
    pub users: Vec<usize>,
}

/// The value of a `let`.
pub enum LetValue {
    /// One value for each name.
    Each(Vec<FormulaExpr>),
    /// The outputs of a call.
    Outputs(FormulaExpr),
}

/// An expression that is evaluated in the backward pass.
pub enum FormulaExpr {
    Name(Name),
    Dim(String),
    Const(Attr),
    /// A property of a tensor.
    Property(Box<FormulaExpr>, Property),
    /// Whether an input is absent (true) or present (false).
    IsNone(Box<FormulaExpr>, bool),
    List(Vec<FormulaExpr>),
    /// A call of an op: positional arguments, then keywords.
    Call(Callee, Vec<FormulaExpr>, Vec<(String, FormulaExpr)>),
    /// An operator on values that are not tensors.
    Operator(&'static str, Vec<FormulaExpr>),
    /// An element of a list that is not a tensor.
    Index(Box<[FormulaExpr; 2]>),
    /// A choice by a condition that is not a tensor.
    If(Box<[FormulaExpr; 3]>),
    Block(Vec<Let>, Box<FormulaExpr>),
}

/// An op by its name. A compiled op is looked up once. An op registered at run time is looked up for each call: its formula may
/// call this op in turn, and the two would then keep each other alive for ever.
pub struct Callee {
    name: String,
    compiled: OnceLock<&'static OpDef>,
}

impl Callee {
    pub fn new(name: impl Into<String>) -> Callee {
        Callee { name: name.into(), compiled: OnceLock::new() }
    }

    fn get(&self) -> Result<OpRef> {
        if let Some(op) = self.compiled.get() {
            return Ok(OpRef::Static(op));
        }
        let op = registry::get_or_gone(&self.name)?;
        if let OpRef::Static(op) = op {
            self.compiled.get_or_init(|| op);
        }
        Ok(op)
    }
}

/// The value of a node in a call.
#[derive(Clone)]
enum Thing {
    Tensor(Tensor),
    Tensors(Vec<Tensor>),
    Known(Attr),
}

impl Gradient {
    /// Returns one gradient for each input that needs one, or one tangent for each output.
    pub fn run(&self, call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
        let (count, is_needed): (_, &dyn Fn(usize) -> bool) = match self.mode {
            Mode::Reverse => (call.num_inputs(), &|i| call.needs(i)),
            Mode::Forward => (call.op().outputs.len(), &|_| true),
        };
        let mut run = Run { call, mode: self.mode, slots: vec![Thing::Known(Attr::None); self.slots] };
        for wanted in self.lets.iter().filter(|l| l.users.iter().any(|i| is_needed(*i))) {
            run.bind(wanted)?;
        }
        let mut found = vec![None; count];
        for (i, node) in self.entries.iter().filter(|(i, _)| is_needed(*i)) {
            found[*i] = match run.value(node)? {
                Thing::Tensor(tensor) => Some(tensor),
                other => {
                    let (what, of) = self.mode.computes();
                    return Err(run.wrong(format!("the {what} of {of} {i} must be a tensor, got {}", other.shown())));
                }
            };
        }
        Ok(found)
    }
}

/// One call of a formula.
struct Run<'a, 'c> {
    call: &'a BackwardCall<'c>,
    mode: Mode,
    slots: Vec<Thing>,
}

impl Run<'_, '_> {
    #[cold]
    fn place(&self) -> String {
        let (what, _) = self.mode.computes();
        format!("op '{}', formula of its {what}", self.call.op().name)
    }

    #[cold]
    fn wrong(&self, what: String) -> Error {
        Error::value(what).context(self.place())
    }

    fn bind(&mut self, bound: &Let) -> Result<()> {
        let values = match &bound.value {
            LetValue::Outputs(FormulaExpr::Call(op, args, keywords)) => {
                let outputs = self.outputs(op, args, keywords)?;
                if outputs.len() != bound.slots.len() {
                    let (name, count) = (&op.name, outputs.len());
                    return Err(self.wrong(format!(
                        "op '{name}' returns {}, but 'let' binds {}",
                        counted(count, "tensor"),
                        counted(bound.slots.len(), "name")
                    )));
                }
                outputs.into_iter().map(Thing::Tensor).collect()
            }
            LetValue::Outputs(node) => vec![self.value(node)?],
            LetValue::Each(nodes) => nodes.iter().map(|node| self.value(node)).collect::<Result<_>>()?,
        };
        self.slots.splice(bound.slots.clone(), values);
        Ok(())
    }

    fn value(&mut self, node: &FormulaExpr) -> Result<Thing> {
        Ok(match node {
            FormulaExpr::Name(name) => self.name(*name)?,
            FormulaExpr::Dim(name) => Thing::Known(self.call.dim(name).into()),
            FormulaExpr::Const(value) => Thing::Known(value.clone()),
            FormulaExpr::Property(of, property) => Thing::Known(self.property(of, *property)?),
            FormulaExpr::List(items) => self.list(items)?,
            FormulaExpr::Call(op, args, keywords) => match &self.outputs(op, args, keywords)?[..] {
                [tensor] => Thing::Tensor(tensor.clone()),
                several => {
                    let name = &op.name;
                    return Err(self.wrong(format!("op '{name}' returns {} tensors, expected one", several.len())));
                }
            },
            FormulaExpr::IsNone(of, wanted) => {
                let is_none = matches!(self.value(of)?, Thing::Known(Attr::None));
                Thing::Known((is_none == *wanted).into())
            }
            FormulaExpr::Index(parts) => {
                let (list, index) = (self.known(&parts[0])?, self.known(&parts[1])?);
                let none = || self.wrong(format!("{list} has no element at index {index}"));
                Thing::Known(element(&list, &index).ok_or_else(none)?)
            }
            FormulaExpr::Operator(sign, args) => {
                let values = args.iter().map(|a| self.known(a)).collect::<Result<Vec<_>>>()?;
                let none = || self.wrong(format!("cannot evaluate operator '{sign}' for {}", shown(&values)));
                Thing::Known(computed(sign, &values).ok_or_else(none)?)
            }
            FormulaExpr::If(parts) => match self.known(&parts[0])? {
                Attr::Bool(chosen) => self.value(&parts[if chosen { 1 } else { 2 }])?,
                other => return Err(self.wrong(format!("the condition of 'if' must be true or false, got {other}"))),
            },
            FormulaExpr::Block(lets, value) => {
                lets.iter().try_for_each(|l| self.bind(l))?;
                self.value(value)?
            }
        })
    }

    fn name(&self, name: Name) -> Result<Thing> {
        Ok(match name {
            Name::Cotangent(k) => Thing::Tensor(self.call.cotangent(k)?),
            Name::Tangent(i) => Thing::Tensor(self.call.tangent(i)?),
            Name::Input(i) => self.call.optional_input(i)?.map_or(Thing::Known(Attr::None), Thing::Tensor),
            Name::Output(k) => Thing::Tensor(self.call.output(k)?),
            Name::Attr(i) => Thing::Known(self.call.attrs()[i].clone()),
            Name::Slot(slot, _) => self.slots[slot].clone(),
            // A dimension is a node of its own, and text formulas have no patterns.
            Name::Dim(_) | Name::Pattern(_) => Thing::Known(Attr::None),
        })
    }

    fn property(&mut self, of: &FormulaExpr, property: Property) -> Result<Attr> {
        if let FormulaExpr::Name(Name::Input(i)) = of {
            let shape = self.call.shape(*i);
            return Ok(match property {
                Property::Shape => shape.into(),
                Property::DType => self.call.dtype(*i).into(),
                Property::Ndim => shape.len().into(),
            });
        }
        match self.value(of)? {
            Thing::Tensor(tensor) => Ok(match property {
                Property::Shape => tensor.shape()[..].into(),
                Property::DType => tensor.dtype().into(),
                Property::Ndim => tensor.ndim().into(),
            }),
            other => {
                Err(self
                    .wrong(format!("only tensors have the properties shape, dtype and ndim, got {}", other.shown())))
            }
        }
    }

    /// A list of tensors or of numbers.
    fn list(&mut self, items: &[FormulaExpr]) -> Result<Thing> {
        let (mut tensors, mut numbers) = (Vec::new(), Vec::new());
        for item in items {
            match self.value(item)? {
                Thing::Tensor(tensor) => tensors.push(tensor),
                Thing::Known(number) => numbers.push(number),
                other => return Err(self.wrong(format!("a list cannot contain {}", other.shown()))),
            }
        }
        let ints = numbers.iter().map(|n| if let Attr::Int(v) = n { Some(*v) } else { None });
        match (tensors.is_empty(), ints.collect::<Option<Vec<i64>>>()) {
            (false, _) if numbers.is_empty() => Ok(Thing::Tensors(tensors)),
            (true, Some(ints)) => Ok(Thing::Known(ints.into())),
            (true, None) => {
                match numbers.iter().map(number).collect::<Option<Vec<f64>>>() {
                    Some(floats) => Ok(Thing::Known(floats.into())),
                    None => Err(self
                        .wrong(format!("a list must contain only tensors or only numbers, got {}", shown(&numbers)))),
                }
            }
            _ => Err(self.wrong(format!(
                "a list must contain only tensors or only numbers, got tensors and {}",
                shown(&numbers)
            ))),
        }
    }

    fn known(&mut self, node: &FormulaExpr) -> Result<Attr> {
        match self.value(node)? {
            Thing::Known(value) => Ok(value),
            // An optional input, which is compared with `None`.
            Thing::Tensor(_) | Thing::Tensors(_) => Ok("a tensor".into()),
        }
    }

    fn outputs(
        &mut self,
        op: &Callee,
        args: &[FormulaExpr],
        keywords: &[(String, FormulaExpr)],
    ) -> Result<Vec<Tensor>> {
        let values = args.iter().map(|a| self.value(a)).collect::<Result<Vec<_>>>()?;
        let named = keywords.iter().map(|(_, a)| self.value(a)).collect::<Result<Vec<_>>>()?;
        let values: Vec<op::Value<'_>> = values.iter().map(Thing::as_value).collect();
        let named: Vec<(&str, op::Value<'_>)> =
            keywords.iter().zip(&named).map(|((name, _), thing)| (name.as_str(), thing.as_value())).collect();
        let call = |op: &OpRef| {
            let (inputs, attrs) = bind(op, &values, &named)?;
            dispatch(op, &inputs, &attrs)
        };
        let outputs = op.get().and_then(|op| call(&op)).map_err(|e| e.context(self.place()))?;
        Ok(outputs.into_vec())
    }
}

impl Thing {
    fn as_value(&self) -> op::Value<'_> {
        match self {
            Thing::Tensor(tensor) => op::Value::Tensor(tensor),
            Thing::Tensors(tensors) => op::Value::Tensors(tensors.iter().collect()),
            Thing::Known(value) => op::Value::Attr(value.clone()),
        }
    }

    fn shown(&self) -> String {
        match self {
            Thing::Tensor(_) => "a tensor".into(),
            Thing::Tensors(_) => "a list of tensors".into(),
            Thing::Known(value) => value.to_string(),
        }
    }
}

fn shown(values: &[Attr]) -> String {
    values.iter().map(Attr::to_string).collect::<Vec<_>>().join(" and ")
}

/// An element of a list. `None` if the index is out of bounds.
fn element(list: &Attr, index: &Attr) -> Option<Attr> {
    let Attr::Int(index) = index else { return None };
    let index = usize::try_from(*index).ok()?;
    match list {
        Attr::Ints(list) => list.get(index).map(|v| Attr::Int(*v)),
        Attr::Floats(list) => list.get(index).map(|v| Attr::Float(*v)),
        _ => None,
    }
}

fn number(value: &Attr) -> Option<f64> {
    f64::from_attr(value).ok()
}

/// The result of an operator on numbers, booleans and words, as in Rust, except that integers and floats mix. `None` if there is
/// no result.
fn computed(sign: &str, values: &[Attr]) -> Option<Attr> {
    Some(match (sign, values) {
        ("-", [Attr::Int(v)]) => v.checked_neg()?.into(),
        ("-", [Attr::Float(v)]) => (-v).into(),
        ("!", [Attr::Bool(v)]) => (!v).into(),
        ("&&" | "&", [Attr::Bool(a), Attr::Bool(b)]) => (*a && *b).into(),
        ("||" | "|", [Attr::Bool(a), Attr::Bool(b)]) => (*a || *b).into(),
        ("+", [Attr::Int(a), Attr::Int(b)]) => a.checked_add(*b)?.into(),
        ("-", [Attr::Int(a), Attr::Int(b)]) => a.checked_sub(*b)?.into(),
        ("*", [Attr::Int(a), Attr::Int(b)]) => a.checked_mul(*b)?.into(),
        ("/", [Attr::Int(a), Attr::Int(b)]) => a.checked_div(*b)?.into(),
        ("%", [Attr::Int(a), Attr::Int(b)]) => a.checked_rem(*b)?.into(),
        ("==" | "!=", [a, b]) => {
            let equal = match (number(a), number(b)) {
                (Some(a), Some(b)) => a == b,
                _ => a == b,
            };
            (equal == (sign == "==")).into()
        }
        (_, [a, b]) => {
            let (a, b) = (number(a)?, number(b)?);
            match sign {
                "+" => (a + b).into(),
                "-" => (a - b).into(),
                "*" => (a * b).into(),
                "/" => (a / b).into(),
                "%" => (a % b).into(),
                "<" => (a < b).into(),
                "<=" => (a <= b).into(),
                ">" => (a > b).into(),
                ">=" => (a >= b).into(),
                _ => return None,
            }
        }
        _ => return None,
    })
}
