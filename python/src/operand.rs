//! Converts Python objects to tensor inputs of ops.

use minitensor::kernels::Const;
use minitensor::op::Arg;
use minitensor::{DType, Error, OpDef, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use smallvec::SmallVec;

use crate::data;
use crate::error::Result;
use crate::scalar::{self, Number};
use crate::tensor::PyTensor;

/// A tensor operand. References point to tensors of Python objects that the caller of a function holds.
pub enum Operand<'a> {
    None,
    Tensor(&'a Tensor),
    Number(Const),
    Complex(f64, f64),
    Owned(Box<Tensor>),
}

/// The operands of one call.
pub type Operands<'a> = SmallVec<[Operand<'a>; 4]>;

impl<'a> Operand<'a> {
    /// A tensor, a number, or a NumPy array; other objects are not accepted as tensors.
    #[inline]
    pub fn read(object: Borrowed<'a, '_, PyAny>) -> Result<Option<Operand<'a>>> {
        if let Ok(t) = object.cast_exact::<PyTensor>() {
            return Ok(Some(Operand::Tensor(t.get().core()?)));
        }
        Operand::read_other(object)
    }

    fn read_other(object: Borrowed<'a, '_, PyAny>) -> Result<Option<Operand<'a>>> {
        if let Ok(t) = object.cast::<PyTensor>() {
            return Ok(Some(Operand::Tensor(t.get().core()?)));
        }
        match scalar::read(&object)? {
            Some(Number::Real(number)) => return Ok(Some(Operand::Number(number))),
            Some(Number::Complex(re, im)) => return Ok(Some(Operand::Complex(re, im))),
            None => {}
        }
        if data::is_numpy(&object)? {
            return Ok(Some(Operand::Owned(Box::new(data::from_numpy(&object, data::Copy::IfNeeded)?))));
        }
        Ok(None)
    }

    /// The argument without conversion, if it needs none.
    #[inline]
    pub fn plain(&self) -> Option<Arg<'a>> {
        match self {
            Operand::Tensor(t) => Some(Arg::Tensor(t)),
            Operand::Number(n) => Some(Arg::Number(*n)),
            _ => None,
        }
    }

    fn arg(&'a self) -> Arg<'a> {
        match self {
            Operand::None | Operand::Complex(..) => Arg::None,
            Operand::Tensor(t) => Arg::Tensor(t),
            Operand::Number(n) => Arg::Number(*n),
            Operand::Owned(t) => Arg::Tensor(t),
        }
    }
}

/// The tensors in a list or tuple, for a variadic input. They are cloned, because the list may change during the call.
pub fn read_list<'a>(op: &OpDef, name: &str, object: &Bound<'_, PyAny>, into: &mut Operands<'a>) -> Result<()> {
    let items: Vec<Bound<'_, PyAny>> = match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => return Err(not_a_tensor(op, name, "a list or tuple of tensors", object)),
    };
    for (i, item) in items.iter().enumerate() {
        into.push(match Operand::read(item.as_borrowed())? {
            Some(Operand::Tensor(t)) => Operand::Owned(Box::new(t.clone())),
            Some(Operand::Owned(t)) => Operand::Owned(t),
            _ => return Err(not_a_tensor(op, &format!("{name}[{i}]"), "a tensor", item)),
        });
    }
    Ok(())
}

#[cold]
pub fn not_a_tensor(op: &OpDef, name: &str, expected: &str, got: &Bound<'_, PyAny>) -> crate::error::Raised {
    let class = got.get_type().fully_qualified_name().map_or_else(|_| "?".to_owned(), |n| n.to_string());
    Error::type_(format!(
        "op '{}': input '{name}' takes {expected}, got {class}; if it holds the values, make a tensor of them with mt.asarray(); the op is {}",
        op.name,
        op.signature()
    ))
    .into()
}

/// The arguments of a call. A complex number takes the precision of the tensors in the same call.
pub fn arguments<'b>(operands: &'b mut Operands<'_>) -> Result<SmallVec<[Arg<'b>; 4]>> {
    if operands.iter().any(|o| matches!(o, Operand::Complex(..))) {
        let double = operands.iter().any(|o| match o {
            Operand::Tensor(t) => matches!(t.dtype(), DType::F64 | DType::C128),
            Operand::Owned(t) => matches!(t.dtype(), DType::F64 | DType::C128),
            _ => false,
        });
        for operand in operands.iter_mut() {
            if let Operand::Complex(re, im) = *operand {
                let number = Number::Complex(re, im).tensor(if double { DType::C128 } else { DType::C64 })?;
                *operand = Operand::Owned(Box::new(number));
            }
        }
    }
    Ok(operands.iter().map(Operand::arg).collect())
}
