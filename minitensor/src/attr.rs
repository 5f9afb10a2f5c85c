//! Attributes: the arguments of an op besides its tensors.

#[cfg(feature = "engine")]
use std::any::Any;
#[cfg(feature = "engine")]
use std::sync::{Mutex, PoisonError};

use minitensor_kernels::{Const, Machine};

pub use minitensor_schema::attr::{Attr, AttrKind};

use crate::dtype::DType;
use crate::error::{Error, Result};

/// A Rust type to which an attribute can be converted.
pub trait FromAttr<'a>: Sized {
    /// Converts the value. It fails only if the checks of the schema were bypassed.
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

/// An enum whose variants are the words of an attribute. `#[derive(AttrEnum)]` implements it: the word of a variant
/// `SnakeCase` is `"snake_case"`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of attributes",
    label = "not a type of attributes",
    note = "for an enum, write `#[derive(Clone, Copy, Debug, AttrEnum)]`; the other types are f64, i64, usize, bool, &str, &[i64], &[f64] and DType"
)]
pub trait AttrEnum: Sized + Copy + 'static {
    /// The words, in the order of the variants.
    const WORDS: &'static [&'static str];
    /// The variants, in the same order.
    const VARIANTS: &'static [Self];
    /// The word of this variant.
    fn word(self) -> &'static str;
    /// The variant of a word.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().position(|w| *w == word).map(|i| Self::VARIANTS[i])
    }
}

/// The words of enums that were made at run time.
#[cfg(feature = "engine")]
static WORDS: Mutex<Vec<&'static [&'static str]>> = Mutex::new(Vec::new());

/// Words of an attribute that live for ever.
#[cfg(feature = "engine")]
pub fn words(list: &[&str]) -> &'static [&'static str] {
    let mut known = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = known.iter().find(|words| **words == list) {
        return same;
    }
    let words: Vec<&'static str> = list.iter().map(|word| &*word.to_string().leak()).collect();
    let words: &'static [&'static str] = words.leak();
    known.push(words);
    words
}

/// Acquires the lock for a fork. `None` if another thread holds it.
#[cfg(feature = "engine")]
pub(crate) fn try_hold() -> Option<Box<dyn Any>> {
    crate::fork::try_lock(&WORDS)
}

/// An `f64` attribute as an element; 0 if it is not given, since the body does not read it then. An error if the element is an integer that cannot represent it; infinities become the
/// limits of the integer type. Saturation is detected by both neighbours of the number converting to the same element.
#[inline(always)]
pub fn uniform<T: Machine>(attrs: &[Attr], index: usize, name: &str) -> Result<T> {
    if attrs[index] == Attr::None {
        return Ok(T::zero());
    }
    let value = f64::from_attr(&attrs[index])?;
    let element = T::constant(Const::Float(value));
    let is_float = T::constant(Const::Float(0.5)) != T::zero() && T::constant(Const::Float(0.5)) != T::one();
    let at = |v: i128| T::constant(Const::Int(v));
    let is_beyond = |v: i128| at(v.saturating_sub(1)) == at(v) && at(v) == at(v.saturating_add(1));
    if !is_float && (value.is_nan() || value.is_finite() && (value.fract() != 0.0 || is_beyond(value as i128))) {
        return Err(lossy(value, name));
    }
    Ok(element)
}

#[cold]
fn lossy(value: f64, name: &str) -> Error {
    Error::value(format!(
        "attribute '{name}' must be an integer that the dtype of the inputs can represent, got {value}; pass such an \
         integer, or convert the inputs to a floating dtype"
    ))
}
