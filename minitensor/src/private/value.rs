//! The arguments of ops that formulas and bodies over whole tensors call by name, and slices of tensors.

use super::Exponent;
use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{OpName, Value};
use crate::tensor::{Shape, Tensor};

/// A value that an op takes.
#[diagnostic::on_unimplemented(
    message = "an op cannot take this value",
    label = "`{Self}` is not a tensor, a number or another attribute",
    note = "write `?` after a call that returns a `Result`"
)]
pub trait AsValue {
    #[doc(hidden)]
    fn as_value(&self) -> Value<'_>;
}
impl AsValue for Tensor {
    fn as_value(&self) -> Value<'_> {
        Value::Tensor(self)
    }
}
impl<T: AsValue + ?Sized> AsValue for &T {
    fn as_value(&self) -> Value<'_> {
        (**self).as_value()
    }
}
impl<T: AsValue + ?Sized> AsValue for &mut T {
    fn as_value(&self) -> Value<'_> {
        (**self).as_value()
    }
}
impl<T: AsValue> AsValue for Option<T> {
    fn as_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Attr(Attr::None), AsValue::as_value)
    }
}
impl<T> AsValue for Vec<T>
where
    [T]: AsValue,
{
    fn as_value(&self) -> Value<'_> {
        self.as_slice().as_value()
    }
}
impl<T, const N: usize> AsValue for [T; N]
where
    [T]: AsValue,
{
    fn as_value(&self) -> Value<'_> {
        self.as_slice().as_value()
    }
}
macro_rules! attributes {
    ($($t:ty),*) => {$( impl AsValue for $t { fn as_value(&self) -> Value<'_> { Value::Attr(self.clone().into()) } } )*};
}
attributes!(bool, i32, i64, usize, f32, f64, String, DType);
macro_rules! unsized_attributes {
    ($($t:ty),*) => {$( impl AsValue for $t { fn as_value(&self) -> Value<'_> { Value::Attr(self.into()) } } )*};
}
unsized_attributes!(str, [i64], [f64], [usize]);
impl AsValue for [i32] {
    fn as_value(&self) -> Value<'_> {
        Value::Attr(self.iter().map(|v| i64::from(*v)).collect::<Vec<_>>().into())
    }
}
impl AsValue for Shape {
    fn as_value(&self) -> Value<'_> {
        self.dims().as_value()
    }
}
impl AsValue for [Tensor] {
    fn as_value(&self) -> Value<'_> {
        Value::Tensors(self.iter().collect())
    }
}
impl AsValue for [&Tensor] {
    fn as_value(&self) -> Value<'_> {
        Value::Tensors(self.to_vec())
    }
}

/// An argument of an op.
pub fn value<V: AsValue + ?Sized>(v: &V) -> Value<'_> {
    v.as_value()
}

/// `[a, b]`, of tensors or of numbers.
pub fn list<'a>(items: &[Value<'a>]) -> Result<Value<'a>> {
    let tensors = items.iter().map(|v| if let Value::Tensor(t) = v { Some(*t) } else { None });
    let ints = items.iter().map(|v| if let Value::Attr(Attr::Int(i)) = v { Some(*i) } else { None });
    let floats = items.iter().map(|v| match v {
        Value::Attr(Attr::Int(i)) => Some(*i as f64),
        Value::Attr(Attr::Float(f)) => Some(*f),
        _ => None,
    });
    let numbers = || {
        ints.collect::<Option<Vec<i64>>>()
            .map(Attr::from)
            .or_else(|| floats.collect::<Option<Vec<f64>>>().map(Attr::from))
    };
    let attr = numbers().map(Value::Attr);
    attr.or_else(|| tensors.collect::<Option<_>>().map(Value::Tensors))
        .ok_or_else(|| Error::type_(format!("a list contains either tensors or numbers, got {items:?}")))
}

/// A tensor of its own for a variable, whatever the expression refers to.
pub fn owned(tensor: &Tensor) -> Tensor {
    tensor.clone()
}

/// One output of an op, by its position.
///
/// # Errors
/// If there are fewer outputs.
pub fn part(outputs: &[Tensor], at: usize) -> Result<Tensor> {
    let count = outputs.len();
    outputs.get(at).cloned().ok_or_else(|| {
        Error::type_(format!("an op returns {}, so it has no output {at}", crate::error::counted(count, "tensor")))
    })
}

/// One part of `x[(.., 0, 1..n, None)]`.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// `..`: the axes that no other part selects.
    Rest,
    /// `i`: one position of an axis, which is removed.
    At(i64),
    /// `a..b`: positions of an axis.
    Range(Option<i64>, Option<i64>),
    /// `None`: a new axis of size 1.
    New,
}

/// A position in an index.
#[inline]
pub fn at(position: impl Exponent) -> i64 {
    position.exponent()
}

/// `x[(.., 1..n)]`, by calls of ops.
pub fn sliced(x: &Tensor, parts: &[Part]) -> Result<Tensor> {
    static SLICE: OpName = OpName::new("slice");
    static SQUEEZE: OpName = OpName::new("squeeze");
    static UNSQUEEZE: OpName = OpName::new("unsqueeze");
    let taken = parts.iter().filter(|p| matches!(p, Part::At(_) | Part::Range(..))).count();
    if taken > x.ndim() {
        return Err(Error::index(format!("an index of {taken} axes for a tensor of shape {}", x.shape())));
    }
    // The axis of `x`, and that of the result.
    let (mut axis, mut to) = (0, 0);
    let (mut removed, mut added): (Vec<i64>, Vec<i64>) = Default::default();
    let mut out = x.clone();
    let mut slice = |axis: usize, start: Option<i64>, stop: Option<i64>| -> Result<()> {
        out = SLICE.call(&[value(&out), value(&axis), value(&start), value(&stop)], &[])?;
        Ok(())
    };
    for part in parts {
        match *part {
            Part::Rest => {
                axis += x.ndim() - taken;
                to += (x.ndim() - taken) as i64;
                continue;
            }
            Part::New => {
                added.push(to);
                to += 1;
                continue;
            }
            Part::Range(start, stop) => {
                if !matches!((start, stop), (None | Some(0), None)) {
                    slice(axis, start, stop)?;
                }
                to += 1;
            }
            Part::At(i) => {
                let size = x.shape()[axis] as i64;
                if !(-size..size).contains(&i) {
                    return Err(Error::index(format!("index {i} is out of range for axis {axis} of size {size}")));
                }
                let i = i.rem_euclid(size);
                slice(axis, Some(i), Some(i + 1))?;
                removed.push(axis as i64);
            }
        }
        axis += 1;
    }
    if !removed.is_empty() {
        out = SQUEEZE.call(&[value(&out), value(&removed)], &[])?;
    }
    added.into_iter().try_fold(out, |out, axis| UNSQUEEZE.call(&[value(&out), value(&axis)], &[]))
}
