//! Binding of positional and keyword arguments to an op's parameters.

use minitensor_kernels::Const;
use smallvec::{SmallVec, smallvec};

use crate::attr::{Attr, AttrKind};
use crate::error::{Error, Result, counted};
use crate::op::call::{Arg, Value};
use crate::op::def::{Arity, OpDef};
use minitensor_schema::suggestion::{nearest, synonym};

impl OpDef {
    /// The positions of the attributes, in the order of the parameters. Attributes are stored with `axis` and `keepdims`
    /// last. As a parameter, `axis` precedes the attributes with a default, and `dtype` is the last one, as in NumPy and PyTorch.
    pub fn attr_order(&self) -> SmallVec<[usize; 8]> {
        let mut order: SmallVec<[usize; 8]> = (0..self.attrs.len()).collect();
        if let Some(axis) = self.axis {
            let axis = axis.attr as usize;
            let required = self.attrs[..axis].iter().take_while(|a| a.default.is_none()).count();
            order[required..=axis].rotate_right(1);
            order.sort_by_key(|i| self.attrs[*i].kind == AttrKind::DType && self.attrs[*i].optional);
        }
        order
    }

    /// The names of the parameters: tensors, then attributes.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        let attrs = self.attr_order().into_iter().map(|i| self.attrs[i].name.as_ref());
        self.inputs.iter().map(|i| i.name.as_ref()).chain(attrs)
    }

    /// The signature, as in `clamp(x, lo=-inf, hi=inf)`.
    pub fn signature(&self) -> String {
        format!("{}({})", self.name, self.signature_parts(Attr::to_string).join(", "))
    }

    /// The parameters of the signature, with defaults in some notation. A required attribute after an optional tensor follows a `*`.
    pub fn signature_parts(&self, literal: impl Fn(&Attr) -> String) -> Vec<String> {
        let inputs = self.inputs.iter().map(|i| (&i.name, (i.arity == Arity::Optional).then(|| "None".to_owned())));
        let attrs = self.attr_order().into_iter().map(|i| &self.attrs[i]);
        let attrs = attrs.map(|a| (&a.name, a.default.as_ref().map(&literal)));
        let (mut parts, mut is_optional) = (Vec::new(), false);
        for (name, default) in inputs.chain(attrs) {
            if is_optional && default.is_none() && !parts.contains(&"*".to_owned()) {
                parts.push("*".to_owned());
            }
            is_optional |= default.is_some();
            parts.push(default.map_or_else(|| name.to_string(), |default| format!("{name}={default}")));
        }
        parts
    }

    /// Checks the value of an attribute. Integers are converted for a float attribute.
    pub fn check_attr(&self, index: usize, value: Attr) -> Result<Attr> {
        let attr = &self.attrs[index];
        match (attr.kind, value) {
            (_, Attr::None) if attr.optional => Ok(Attr::None),
            (AttrKind::Float, Attr::Int(v)) => Ok(Attr::Float(v as f64)),
            (AttrKind::Ints, Attr::Int(v)) => Ok(Attr::Ints(vec![v].into())),
            (kind, value) if kind.admits(&value) => Ok(value),
            (kind, value) => {
                let optional = if attr.optional { " or None" } else { "" };
                let message =
                    format!("op '{}': attribute '{}' takes {kind}{optional}, got {value}", self.name, attr.name);
                let known = matches!(
                    (kind, &value),
                    (AttrKind::Enum(_), Attr::Str(_)) | (AttrKind::Size | AttrKind::Tuned(_), Attr::Int(_))
                );
                Err(if known { Error::value(message) } else { Error::type_(message) })
            }
        }
    }

    /// The default of an attribute. An error if it is required.
    pub fn default_attr(&self, index: usize) -> Result<Attr> {
        let attr = &self.attrs[index];
        attr.default.clone().ok_or_else(|| self.missing(&attr.name))
    }

    /// The error for a missing argument.
    #[cold]
    pub fn missing(&self, name: &str) -> Error {
        Error::type_(format!("op '{}': missing argument '{name}'; call it as {}", self.name, self.signature()))
    }
}

/// For each parameter, the position of its argument in the list of `positional` arguments followed by `keywords`.
pub fn slots(op: &OpDef, positional: usize, keywords: &[&str]) -> Result<SmallVec<[Option<usize>; 8]>> {
    let count = op.inputs.len() + op.attrs.len();
    if positional > count {
        return Err(Error::type_(format!(
            "op '{}' takes {}, got {positional}; call it as {}",
            op.name,
            counted(count, "argument"),
            op.signature()
        )));
    }
    let mut slots: SmallVec<[Option<usize>; 8]> = smallvec![None; count];
    slots.iter_mut().take(positional).enumerate().for_each(|(i, slot)| *slot = Some(i));
    for (k, keyword) in keywords.iter().enumerate() {
        let Some(at) = op.parameters().position(|p| p == *keyword) else {
            let near = synonym(keyword, op.parameters()).or_else(|| nearest(keyword, op.parameters()));
            let hint = match near {
                Some(name) => format!("did you mean '{name}'? Call it as {}", op.signature()),
                None => format!("call it as {}", op.signature()),
            };
            return Err(Error::type_(format!("op '{}' has no argument '{keyword}'; {hint}", op.name)));
        };
        if slots[at].replace(positional + k).is_some() {
            return Err(Error::type_(format!("op '{}': argument '{keyword}' is passed twice", op.name)));
        }
    }
    Ok(slots)
}

/// The inputs and attributes of a call, as [`dispatch`](crate::op::dispatch) takes them.
pub type Bound<'a> = (SmallVec<[Arg<'a>; 4]>, SmallVec<[Attr; 4]>);

/// Binds the arguments of a call by name.
pub fn bind<'a>(op: &OpDef, args: &[Value<'a>], keywords: &[(&str, Value<'a>)]) -> Result<Bound<'a>> {
    let names: SmallVec<[&str; 4]> = keywords.iter().map(|(name, _)| *name).collect();
    let slots = slots(op, args.len(), &names)?;
    let value = |slot: Option<usize>| slot.map(|i| args.get(i).unwrap_or_else(|| &keywords[i - args.len()].1));
    let mut inputs = SmallVec::new();
    for (input, slot) in op.inputs.iter().zip(&slots) {
        match (input.arity, value(*slot)) {
            (Arity::Variadic, Some(Value::Tensors(tensors))) => inputs.extend(tensors.iter().map(|t| Arg::Tensor(t))),
            (Arity::Optional, None | Some(Value::Attr(Attr::None))) => inputs.push(Arg::None),
            (_, Some(Value::Tensor(tensor))) => inputs.push(Arg::Tensor(tensor)),
            (_, Some(Value::Attr(Attr::Bool(v)))) => inputs.push(Arg::Number(Const::Bool(*v))),
            (_, Some(Value::Attr(Attr::Int(v)))) => inputs.push(Arg::Number(Const::Int((*v).into()))),
            (_, Some(Value::Attr(Attr::Float(v)))) => inputs.push(Arg::Number(Const::Float(*v))),
            (_, None) => return Err(op.missing(&input.name)),
            (_, Some(other)) => {
                return Err(Error::type_(format!(
                    "op '{}': input '{}' takes a tensor, got {other:?}",
                    op.name, input.name
                )));
            }
        }
    }
    let mut attrs = smallvec![Attr::None; op.attrs.len()];
    for (index, slot) in op.attr_order().into_iter().zip(&slots[op.inputs.len()..]) {
        attrs[index] = match value(*slot) {
            None => op.default_attr(index)?,
            Some(Value::Attr(attr)) => op.check_attr(index, attr.clone())?,
            Some(_) => {
                let attr = &op.attrs[index];
                return Err(Error::type_(format!(
                    "op '{}': attribute '{}' takes {}, got a tensor",
                    op.name, attr.name, attr.kind
                )));
            }
        };
    }
    Ok((inputs, attrs))
}
