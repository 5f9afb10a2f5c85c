//! Attributes: the arguments of an op that are not tensors.

use std::borrow::Cow;
use std::fmt;

use crate::dtype::DType;

/// The value of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attr {
    /// An absent optional attribute.
    None,
    /// `true` or `false`
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A word.
    Str(Cow<'static, str>),
    /// Integers, such as a shape.
    Ints(Cow<'static, [i64]>),
    /// Floats.
    Floats(Cow<'static, [f64]>),
    /// A dtype.
    DType(DType),
}

/// The kind of value that an attribute takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttrKind {
    /// `bool`
    Bool,
    /// `i64`
    Int,
    /// `usize`: an integer of at least 0
    Size,
    /// `f64`
    Float,
    /// `&str`
    Str,
    /// One of these words: a Rust enum with `#[derive(AttrEnum)]`.
    Enum(&'static [&'static str]),
    /// `&[i64]`; one integer is a list of length one
    Ints,
    /// `&[f64]`
    Floats,
    /// `DType`
    DType,
    /// One of these integers, which only differ in speed. If the value is absent, the fastest is measured.
    Tuned(&'static [i64]),
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
            AttrKind::Tuned(candidates) => {
                f.write_str("one of ")?;
                f.write_str(&candidates.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl fmt::Display for Attr {
    /// The value in Python syntax.
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
    /// Whether a value is of this kind. An integer is also accepted as a float.
    pub fn admits(self, value: &Attr) -> bool {
        match (self, value) {
            (AttrKind::Size, Attr::Int(v)) => *v >= 0,
            (AttrKind::Enum(words), Attr::Str(v)) => words.contains(&v.as_ref()),
            (AttrKind::Tuned(candidates), Attr::Int(v)) => candidates.contains(v),
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

    /// Whether it only changes the speed.
    pub const fn is_tuned(self) -> bool {
        matches!(self, AttrKind::Tuned(_))
    }

    /// Whether its value is an integer, which can be the size of a dimension.
    pub const fn is_whole(self) -> bool {
        matches!(self, AttrKind::Int | AttrKind::Size)
    }

    /// Whether its value is a number, which a condition can compare.
    pub const fn is_number(self) -> bool {
        matches!(self, AttrKind::Int | AttrKind::Size | AttrKind::Float)
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
