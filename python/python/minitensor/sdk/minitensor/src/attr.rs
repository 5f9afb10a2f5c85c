//! Attributes: what an op is told besides its tensors.

use std::borrow::Cow;
use std::fmt;

use minitensor_kernels::{Const, Machine};

use crate::dtype::DType;
use crate::error::{Error, Result};

/// The value of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attr {
    /// An optional attribute that isn't given.
    None,
    /// `true` or `false`
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A word.
    Str(Cow<'static, str>),
    /// Whole numbers, such as a shape.
    Ints(Cow<'static, [i64]>),
    /// Numbers.
    Floats(Cow<'static, [f64]>),
    /// A dtype.
    DType(DType),
}

/// What kind of value an attribute takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttrKind {
    /// `bool`
    Bool,
    /// `i64`
    Int,
    /// `usize`: a whole number of at least 0
    Size,
    /// `f64`
    Float,
    /// `&str`
    Str,
    /// One of these words: a Rust enum with `#[derive(AttrEnum)]`.
    Enum(&'static [&'static str]),
    /// `&[i64]`; one whole number is a list of one
    Ints,
    /// `&[f64]`
    Floats,
    /// `DType`
    DType,
}

impl fmt::Display for AttrKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrKind::Bool => f.write_str("bool"),
            AttrKind::Int => f.write_str("int"),
            AttrKind::Size => f.write_str("int of at least 0"),
            AttrKind::Float => f.write_str("float"),
            AttrKind::Str => f.write_str("str"),
            AttrKind::Enum(words) => write!(f, "one of '{}'", words.join("', '")),
            AttrKind::Ints => f.write_str("int or list of int"),
            AttrKind::Floats => f.write_str("list of float"),
            AttrKind::DType => f.write_str("dtype"),
        }
    }
}

impl fmt::Display for Attr {
    /// As Python writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attr::None => f.write_str("None"),
            Attr::Bool(true) => f.write_str("True"),
            Attr::Bool(false) => f.write_str("False"),
            Attr::Int(v) => write!(f, "{v}"),
            Attr::Float(v) if v.is_infinite() || v.is_nan() => write!(f, "float('{v}')"),
            Attr::Float(v) => write!(f, "{v:?}"),
            Attr::Str(v) => write!(f, "'{v}'"),
            Attr::Ints(v) => write!(f, "{v:?}"),
            Attr::Floats(v) => write!(f, "{v:?}"),
            Attr::DType(v) => write!(f, "{v}"),
        }
    }
}

impl AttrKind {
    /// Whether a value is of this kind; a whole number counts as a float.
    pub fn admits(self, value: &Attr) -> bool {
        match (self, value) {
            (AttrKind::Size, Attr::Int(v)) => *v >= 0,
            (AttrKind::Enum(words), Attr::Str(v)) => words.contains(&v.as_ref()),
            (AttrKind::Bool, Attr::Bool(_))
            | (AttrKind::Int, Attr::Int(_))
            | (AttrKind::Float, Attr::Float(_) | Attr::Int(_))
            | (AttrKind::Str, Attr::Str(_))
            | (AttrKind::Ints, Attr::Ints(_) | Attr::Int(_))
            | (AttrKind::Floats, Attr::Floats(_))
            | (AttrKind::DType, Attr::DType(_)) => true,
            _ => false,
        }
    }
}

/// A Rust type that an attribute can be given as.
pub trait FromAttr<'a>: Sized {
    /// Reads the value; an error only where the schema was bypassed.
    fn from_attr(attr: &'a Attr) -> Result<Self>;
}

fn mismatch<T>(expected: &str, got: &Attr) -> Result<T> {
    Err(Error::type_(format!("expected an attribute of type {expected}, got {got}")))
}

macro_rules! from_attr {
    ($($t:ty, $name:literal: $pattern:pat => $value:expr;)*) => {$(
        impl<'a> FromAttr<'a> for $t {
            #[inline]
            fn from_attr(attr: &'a Attr) -> Result<Self> {
                match attr { $pattern => Ok($value), other => mismatch($name, other) }
            }
        }
    )*};
}
from_attr! {
    bool, "bool": Attr::Bool(v) => *v;
    i64, "int": Attr::Int(v) => *v;
    &'a str, "str": Attr::Str(v) => v.as_ref();
    &'a [f64], "list of float": Attr::Floats(v) => v.as_ref();
    DType, "dtype": Attr::DType(v) => *v;
}

impl<'a> FromAttr<'a> for &'a [i64] {
    fn from_attr(attr: &'a Attr) -> Result<Self> {
        match attr {
            Attr::Ints(v) => Ok(v.as_ref()),
            Attr::Int(v) => Ok(std::slice::from_ref(v)),
            other => mismatch("list of int", other),
        }
    }
}

impl FromAttr<'_> for f64 {
    #[inline]
    fn from_attr(attr: &Attr) -> Result<Self> {
        match attr {
            Attr::Float(v) => Ok(*v),
            Attr::Int(v) => Ok(*v as f64),
            other => mismatch("float", other),
        }
    }
}

impl FromAttr<'_> for usize {
    #[inline]
    fn from_attr(attr: &Attr) -> Result<Self> {
        match attr {
            Attr::Int(v) if *v >= 0 => Ok(*v as usize),
            other => mismatch("int of at least 0", other),
        }
    }
}

impl<'a, T: FromAttr<'a>> FromAttr<'a> for Option<T> {
    fn from_attr(attr: &'a Attr) -> Result<Self> {
        match attr {
            Attr::None => Ok(None),
            other => T::from_attr(other).map(Some),
        }
    }
}

/// An enum whose variants are an attribute's words: `#[derive(AttrEnum)]` writes it, `SnakeCase` variants
/// becoming `"snake_case"`.
pub trait AttrEnum: Sized + Copy + 'static {
    /// The words, in the order of the variants.
    const WORDS: &'static [&'static str];
    /// The variants, in the same order.
    const VARIANTS: &'static [Self];
    /// This variant's word.
    fn word(self) -> &'static str;
    /// The variant of that word.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().position(|w| *w == word).map(|i| Self::VARIANTS[i])
    }
}

macro_rules! into_attr {
    ($($t:ty, $v:ident => $value:expr;)*) => {$(
        impl From<$t> for Attr { fn from($v: $t) -> Attr { $value } }
    )*};
}
into_attr! {
    bool, v => Attr::Bool(v);
    i64, v => Attr::Int(v);
    i32, v => Attr::Int(v.into());
    usize, v => Attr::Int(i64::try_from(v).unwrap_or(i64::MAX));
    f64, v => Attr::Float(v);
    f32, v => Attr::Float(v.into());
    &str, v => Attr::Str(Cow::Owned(v.to_owned()));
    String, v => Attr::Str(Cow::Owned(v));
    &[i64], v => Attr::Ints(Cow::Owned(v.to_vec()));
    Vec<i64>, v => Attr::Ints(Cow::Owned(v));
    &[f64], v => Attr::Floats(Cow::Owned(v.to_vec()));
    Vec<f64>, v => Attr::Floats(Cow::Owned(v));
    DType, v => Attr::DType(v);
}

impl From<&[usize]> for Attr {
    fn from(v: &[usize]) -> Attr {
        Attr::Ints(v.iter().map(|d| *d as i64).collect())
    }
}

impl<T: Into<Attr>> From<Option<T>> for Attr {
    fn from(v: Option<T>) -> Attr {
        v.map_or(Attr::None, Into::into)
    }
}

impl<const N: usize> From<[i64; N]> for Attr {
    fn from(v: [i64; N]) -> Attr {
        Attr::Ints(Cow::Owned(v.to_vec()))
    }
}

/// An `f64` attribute as an element; an integer type must be able to hold it (infinities mean its limits).
#[inline(always)]
pub fn uniform<T: Machine>(attrs: &[Attr], index: usize, name: &str) -> Result<T> {
    let value = f64::from_attr(&attrs[index])?;
    let element = T::constant(Const::Float(value));
    let is_float = T::constant(Const::Float(0.5)) != T::zero() && T::constant(Const::Float(0.5)) != T::one();
    if !is_float
        && (value.is_nan()
            || (value.is_finite() && T::constant(Const::Int(value as i128)) != element)
            || value.fract() != 0.0 && value.is_finite())
    {
        return Err(lossy(value, name));
    }
    Ok(element)
}

#[cold]
fn lossy(value: f64, name: &str) -> Error {
    Error::value(format!(
        "attribute '{name}' = {value} is no value of the integer dtype of the inputs; give a whole number, or floats"
    ))
}
