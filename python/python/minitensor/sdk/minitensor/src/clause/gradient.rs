//! A formula that was read: a small tree, which calls ops.

use std::sync::OnceLock;

use crate::attr::Attr;
use crate::autograd::BackwardCall;
use crate::error::{Error, Result, counted};
use crate::op::{OpDef, OpRef, Value, bind, dispatch, registry};
use crate::tensor::Tensor;

/// A formula, checked.
pub struct Gradient {
    pub lets: Vec<Let>,
    /// Inputs, each with its gradient.
    pub entries: Vec<(usize, Node)>,
    /// How many names the `let`s bind.
    pub slots: usize,
}

/// `let (a, b) = f(x);`
pub struct Let {
    /// Where the values go.
    pub slots: std::ops::Range<usize>,
    /// Whether the value is that of a call with several outputs.
    pub many: bool,
    pub value: Node,
    /// Inputs whose gradients use it.
    pub users: Vec<usize>,
}

/// A value and how it is computed.
pub enum Node {
    Name(Name),
    Const(Attr),
    /// What is known of a tensor.
    Property(Box<Node>, Property),
    List(Vec<Node>),
    /// The call of an op, with positional arguments and then keywords.
    Call(Callee, Vec<Node>, Vec<(String, Node)>),
    /// An operator on what is no tensor.
    Known(&'static str, Vec<Node>),
    /// Chosen by what is no tensor.
    If(Box<[Node; 3]>),
    Block(Vec<Let>, Box<Node>),
}

/// An op by its name. One that is compiled is looked up once. One made at run time is looked up each time: its formula may call
/// this op in turn, and the two would hold each other for ever.
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

/// What a name stands for.
#[derive(Clone, PartialEq, Debug)]
pub enum Name {
    Cotangent(usize),
    Input(usize),
    Output(usize),
    Attr(usize),
    Dim(String),
    /// A `let`, and whether it holds a tensor.
    Slot(usize, bool),
}

/// What is known of a tensor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Property {
    Shape,
    DType,
    Ndim,
}

/// What a node is at a call.
#[derive(Clone)]
enum Thing {
    Tensor(Tensor),
    Tensors(Vec<Tensor>),
    Known(Attr),
}

impl Gradient {
    /// One gradient for each input that wants one.
    pub fn run(&self, call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
        let mut run = Run { call, slots: vec![Thing::Known(Attr::None); self.slots] };
        for wanted in self.lets.iter().filter(|l| l.users.iter().any(|i| call.needs(*i))) {
            run.bind(wanted)?;
        }
        let mut gradients = vec![None; call.num_inputs()];
        for (i, node) in self.entries.iter().filter(|(i, _)| call.needs(*i)) {
            gradients[*i] = match run.value(node)? {
                Thing::Tensor(tensor) => Some(tensor),
                other => return Err(run.wrong(format!("the gradient of input {i} is {}", other.shown()))),
            };
        }
        Ok(gradients)
    }
}

/// One call of a formula.
struct Run<'a, 'c> {
    call: &'a BackwardCall<'c>,
    slots: Vec<Thing>,
}

impl Run<'_, '_> {
    #[cold]
    fn place(&self) -> String {
        format!("op '{}', in its formula", self.call.op().name)
    }

    #[cold]
    fn wrong(&self, what: String) -> Error {
        Error::value(what).context(self.place())
    }

    fn bind(&mut self, bound: &Let) -> Result<()> {
        let values = match &bound.value {
            Node::Call(op, args, keywords) if bound.many => {
                let outputs = self.outputs(op, args, keywords)?;
                if outputs.len() != bound.slots.len() {
                    let (name, count) = (&op.name, outputs.len());
                    return Err(self.wrong(format!(
                        "op '{name}' gives {} for {}",
                        counted(count, "tensor"),
                        counted(bound.slots.len(), "name")
                    )));
                }
                outputs.into_iter().map(Thing::Tensor).collect()
            }
            node => vec![self.value(node)?],
        };
        self.slots.splice(bound.slots.clone(), values);
        Ok(())
    }

    fn value(&mut self, node: &Node) -> Result<Thing> {
        Ok(match node {
            Node::Name(name) => self.name(name)?,
            Node::Const(value) => Thing::Known(value.clone()),
            Node::Property(of, property) => Thing::Known(self.property(of, *property)?),
            Node::List(items) => self.list(items)?,
            Node::Call(op, args, keywords) => match &self.outputs(op, args, keywords)?[..] {
                [tensor] => Thing::Tensor(tensor.clone()),
                several => {
                    let name = &op.name;
                    return Err(
                        self.wrong(format!("op '{name}' gives {} tensors where one is expected", several.len()))
                    );
                }
            },
            Node::Known(sign, args) => {
                let values = args.iter().map(|a| self.known(a)).collect::<Result<Vec<_>>>()?;
                let none = || self.wrong(format!("'{sign}' can't be computed of {}", shown(&values)));
                Thing::Known(computed(sign, &values).ok_or_else(none)?)
            }
            Node::If(parts) => match self.known(&parts[0])? {
                Attr::Bool(chosen) => self.value(&parts[if chosen { 1 } else { 2 }])?,
                other => return Err(self.wrong(format!("'if' takes true or false, got {other}"))),
            },
            Node::Block(lets, value) => {
                lets.iter().try_for_each(|l| self.bind(l))?;
                self.value(value)?
            }
        })
    }

    fn name(&self, name: &Name) -> Result<Thing> {
        Ok(match name {
            Name::Cotangent(k) => Thing::Tensor(self.call.cotangent(*k)?),
            Name::Input(i) => self.call.optional_input(*i)?.map_or(Thing::Known(Attr::None), Thing::Tensor),
            Name::Output(k) => Thing::Tensor(self.call.output(*k)?),
            Name::Attr(i) => Thing::Known(self.call.attrs()[*i].clone()),
            Name::Dim(name) => Thing::Known(self.call.dim(name).into()),
            Name::Slot(slot, _) => self.slots[*slot].clone(),
        })
    }

    fn property(&mut self, of: &Node, property: Property) -> Result<Attr> {
        if let Node::Name(Name::Input(i)) = of {
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
            other => Err(self.wrong(format!("a property of {} is asked for", other.shown()))),
        }
    }

    /// Tensors, or numbers.
    fn list(&mut self, items: &[Node]) -> Result<Thing> {
        let (mut tensors, mut numbers) = (Vec::new(), Vec::new());
        for item in items {
            match self.value(item)? {
                Thing::Tensor(tensor) => tensors.push(tensor),
                Thing::Known(number) => numbers.push(number),
                other => return Err(self.wrong(format!("a list can't hold {}", other.shown()))),
            }
        }
        let ints = numbers.iter().map(|n| if let Attr::Int(v) = n { Some(*v) } else { None });
        match (tensors.is_empty(), ints.collect::<Option<Vec<i64>>>()) {
            (false, _) if numbers.is_empty() => Ok(Thing::Tensors(tensors)),
            (true, Some(ints)) => Ok(Thing::Known(ints.into())),
            (true, None) => match numbers.iter().map(number).collect::<Option<Vec<f64>>>() {
                Some(floats) => Ok(Thing::Known(floats.into())),
                None => Err(self.wrong(format!("a list of {} is neither of tensors nor of numbers", shown(&numbers)))),
            },
            _ => Err(self.wrong(format!("a list has tensors beside {}", shown(&numbers)))),
        }
    }

    fn known(&mut self, node: &Node) -> Result<Attr> {
        match self.value(node)? {
            Thing::Known(value) => Ok(value),
            // An optional input, of which it is asked whether it is there.
            Thing::Tensor(_) | Thing::Tensors(_) => Ok("a tensor".into()),
        }
    }

    fn outputs(&mut self, op: &Callee, args: &[Node], keywords: &[(String, Node)]) -> Result<Vec<Tensor>> {
        let values = args.iter().map(|a| self.value(a)).collect::<Result<Vec<_>>>()?;
        let named = keywords.iter().map(|(_, a)| self.value(a)).collect::<Result<Vec<_>>>()?;
        let values: Vec<Value<'_>> = values.iter().map(Thing::as_value).collect();
        let named: Vec<(&str, Value<'_>)> =
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
    fn as_value(&self) -> Value<'_> {
        match self {
            Thing::Tensor(tensor) => Value::Tensor(tensor),
            Thing::Tensors(tensors) => Value::Tensors(tensors.iter().collect()),
            Thing::Known(value) => Value::Attr(value.clone()),
        }
    }

    fn shown(&self) -> String {
        match self {
            Thing::Tensor(_) => "a tensor".into(),
            Thing::Tensors(_) => "a list of tensors".into(),
            Thing::Known(value) => format!("{value}, no tensor"),
        }
    }
}

fn shown(values: &[Attr]) -> String {
    values.iter().map(Attr::to_string).collect::<Vec<_>>().join(" and ")
}

fn number(value: &Attr) -> Option<f64> {
    match value {
        Attr::Int(v) => Some(*v as f64),
        Attr::Float(v) => Some(*v),
        _ => None,
    }
}

/// An operator on numbers, truth values and words, as in Rust, but that whole numbers and fractions mix; `None` where there is
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
