//! [`Number`]: a Python number.

use std::fmt;

use minitensor::dtype::Kind;
use minitensor::kernels::{Cast, Complex, Const};
use minitensor::{DType, Error, Tensor, with_dtype};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};

use crate::error::Result;

/// One number.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Real(Const),
    Complex(f64, f64),
}

/// The number, if the object is an instance of Python's number types.
#[inline]
pub fn read(object: &Bound<'_, PyAny>) -> Result<Option<Number>> {
    if let Ok(v) = object.cast::<PyFloat>() {
        return Ok(Some(Number::Real(Const::Float(v.value()))));
    }
    if let Ok(v) = object.cast::<PyBool>() {
        return Ok(Some(Number::Real(Const::Bool(v.is_true()))));
    }
    if let Ok(v) = object.cast::<PyInt>() {
        let v = match v.extract::<i64>() {
            Ok(v) => v.into(),
            Err(_) => v
                .extract::<i128>()
                .map_err(|_| Error::value("an integer of more than 128 bits does not fit into any dtype"))?,
        };
        return Ok(Some(Number::Real(Const::Int(v))));
    }
    if let Ok(v) = object.cast::<PyComplex>() {
        return Ok(Some(Number::Complex(v.real(), v.imag())));
    }
    Ok(None)
}

/// The number as Python writes it.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Real(Const::Bool(v)) => f.write_str(if *v { "True" } else { "False" }),
            Number::Real(Const::Int(v)) => write!(f, "{v}"),
            Number::Real(Const::Float(v)) if v.is_nan() => f.write_str("nan"),
            Number::Real(Const::Float(v)) => write!(f, "{v}"),
            Number::Complex(re, im) => write!(f, "({re}{im:+}j)"),
        }
    }
}

impl Number {
    /// The default dtype of the number.
    pub fn dtype(self) -> DType {
        match self {
            Number::Real(Const::Bool(_)) => DType::Bool,
            Number::Real(Const::Int(v)) if v > i64::MAX.into() => DType::U64,
            Number::Real(Const::Int(_)) => DType::I64,
            Number::Real(Const::Float(_)) => DType::F32,
            Number::Complex(..) => DType::C64,
        }
    }

    /// Checks that a dtype can represent it; floats may round.
    pub fn check(self, dtype: DType) -> Result<()> {
        let lossy = |what: String| {
            Err(Error::value(format!(
                "{what} does not fit into {dtype}; use another dtype, or convert with astype() afterwards"
            ))
            .into())
        };
        match (self, dtype.kind()) {
            (Number::Real(Const::Int(v)), Kind::Signed | Kind::Unsigned) if !dtype.integer_range().contains(&v) => {
                lossy(v.to_string())
            }
            (Number::Real(Const::Float(v)), Kind::Signed | Kind::Unsigned)
                if v.fract() != 0.0 || !v.is_finite() || !dtype.integer_range().contains(&(v as i128)) =>
            {
                lossy(format!("{v:?}"))
            }
            (Number::Complex(..), kind) if kind != Kind::Complex && kind != Kind::Bool => {
                Err(Error::value(format!("{self} does not fit into {dtype}; use a complex dtype")).into())
            }
            _ => Ok(()),
        }
    }

    /// Converts to an element of a dtype that can represent it.
    pub fn cast<T>(self) -> T
    where
        bool: Cast<T>,
        i64: Cast<T>,
        u64: Cast<T>,
        f64: Cast<T>,
        Complex<f64>: Cast<T>,
    {
        match self {
            Number::Real(Const::Bool(v)) => v.cast(),
            Number::Real(Const::Float(v)) => v.cast(),
            Number::Real(Const::Int(v)) => match (i64::try_from(v), u64::try_from(v)) {
                (Ok(v), _) => v.cast(),
                (_, Ok(v)) => v.cast(),
                _ => (v as f64).cast(),
            },
            Number::Complex(re, im) => Complex::new(re, im).cast(),
        }
    }

    /// A tensor without dimensions.
    pub fn tensor(self, dtype: DType) -> Result<Tensor> {
        self.check(dtype)?;
        Ok(with_dtype!(dtype, T => Tensor::scalar::<T>(self.cast())))
    }
}
