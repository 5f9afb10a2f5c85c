//! Element types, sets of them, and how they promote.

use std::fmt;

use half::{bf16, f16};
use minitensor_kernels::{Complex, Truth};

use crate::error::{Error, Result};

macro_rules! dtypes {
    ($($variant:ident $ty:ty, $name:literal, $kind:ident;)*) => {
        /// The type of a tensor's elements.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum DType { $(#[doc = $name] $variant,)* }

        impl DType {
            /// All of them, in the order of the table.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// The Array API's name, such as `float32`.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// Bytes of one element.
            pub const fn size(self) -> usize {
                match self { $(DType::$variant => size_of::<$ty>(),)* }
            }

            /// Boolean, signed, unsigned, float or complex.
            pub const fn kind(self) -> Kind {
                match self { $(DType::$variant => Kind::$kind,)* }
            }
        }

        $(impl Scalar for $ty {
            const DTYPE: DType = DType::$variant;
            type Stored = $ty;
            #[inline(always)]
            fn load(stored: $ty) -> $ty { stored }
        })*

        #[doc(hidden)]
        #[allow(missing_docs)]
        pub mod scalars {
            use super::*;
            $(pub type $variant = $ty;)*
        }
    };
}

dtypes! {
    Bool Truth, "bool", Bool;
    I8 i8, "int8", Signed;
    I16 i16, "int16", Signed;
    I32 i32, "int32", Signed;
    I64 i64, "int64", Signed;
    U8 u8, "uint8", Unsigned;
    U16 u16, "uint16", Unsigned;
    U32 u32, "uint32", Unsigned;
    U64 u64, "uint64", Unsigned;
    F16 f16, "float16", Float;
    Bf16 bf16, "bfloat16", Float;
    F32 f32, "float32", Float;
    F64 f64, "float64", Float;
    C64 Complex<f32>, "complex64", Complex;
    C128 Complex<f64>, "complex128", Complex;
}

/// A Rust type that a tensor can hold.
pub trait Scalar: Copy + Send + Sync + 'static {
    /// Its dtype.
    const DTYPE: DType;
    /// What memory holds for it: the type itself, except that it is [`Truth`] for `bool`.
    type Stored: Copy + Send + Sync + 'static;
    /// The value that was read from memory.
    fn load(stored: Self::Stored) -> Self;
}

impl Scalar for bool {
    const DTYPE: DType = DType::Bool;
    type Stored = Truth;
    #[inline(always)]
    fn load(stored: Truth) -> bool {
        stored.get()
    }
}

/// The kinds of dtype, in the order of promotion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// `bool`
    Bool,
    /// `uint8` to `uint64`
    Unsigned,
    /// `int8` to `int64`
    Signed,
    /// `float16`, `bfloat16`, `float32`, `float64`
    Float,
    /// `complex64`, `complex128`
    Complex,
}

impl DType {
    /// The dtype of that name; NumPy's and PyTorch's spellings are known too.
    pub fn parse(name: &str) -> Result<DType> {
        const ALIASES: &[(&str, DType)] = &[
            ("half", DType::F16),
            ("float", DType::F32),
            ("double", DType::F64),
            ("int", DType::I32),
            ("long", DType::I64),
            ("short", DType::I16),
        ];
        let found = DType::ALL.iter().map(|d| (d.name(), *d)).chain(ALIASES.iter().copied());
        found.clone().find(|(n, _)| *n == name).map(|(_, d)| d).ok_or_else(|| {
            let names: Vec<_> = DType::ALL.iter().map(|d| d.name()).collect();
            Error::value(format!("unknown dtype '{name}'; the dtypes are {}", names.join(", ")))
        })
    }

    /// Real or complex floating point: what a gradient can have.
    pub const fn is_differentiable(self) -> bool {
        matches!(self.kind(), Kind::Float | Kind::Complex)
    }

    /// What it is computed in: `f16` and `bf16` in `f32`, all others in themselves.
    pub const fn compute(self) -> DType {
        match self {
            DType::F16 | DType::Bf16 => DType::F32,
            other => other,
        }
    }

    /// The integers that an integer dtype holds.
    pub const fn integer_range(self) -> std::ops::RangeInclusive<i128> {
        let bits = 8 * self.size() as u32;
        match self.kind() {
            Kind::Signed => -(1 << (bits - 1))..=(1 << (bits - 1)) - 1,
            _ => 0..=(1 << bits) - 1,
        }
    }

    /// Whether its numbers are complex.
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C64 | DType::C128)
    }

    /// The dtype of a complex number's parts; the dtype itself where it isn't complex.
    pub const fn real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The smallest dtype that holds both: the Array API's table, and where that is silent, NumPy's.
    ///
    /// ```
    /// use minitensor::DType;
    /// assert_eq!(DType::I32.promote(DType::U32), DType::I64);
    /// assert_eq!(DType::F16.promote(DType::Bf16), DType::F32);
    /// ```
    pub const fn promote(self, other: DType) -> DType {
        PROMOTION[self as usize][other as usize]
    }
}

/// What two dtypes promote to, rows and columns in the order of [`DType::ALL`].
///
/// An integer with a float gives the float (Array API leaves it open; PyTorch does so), `uint64` with a
/// signed integer gives `float64` (NumPy), `float16` with `bfloat16` gives `float32` (PyTorch, JAX).
const PROMOTION: [[DType; 15]; 15] = {
    use DType::{Bf16 as BF, Bool as B, *};
    [
        [B, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF, F32, F64, C64, C128],
        [I8, I8, I16, I32, I64, I16, I32, I64, F64, F16, BF, F32, F64, C64, C128],
        [I16, I16, I16, I32, I64, I16, I32, I64, F64, F16, BF, F32, F64, C64, C128],
        [I32, I32, I32, I32, I64, I32, I32, I64, F64, F16, BF, F32, F64, C64, C128],
        [I64, I64, I64, I64, I64, I64, I64, I64, F64, F16, BF, F32, F64, C64, C128],
        [U8, I16, I16, I32, I64, U8, U16, U32, U64, F16, BF, F32, F64, C64, C128],
        [U16, I32, I32, I32, I64, U16, U16, U32, U64, F16, BF, F32, F64, C64, C128],
        [U32, I64, I64, I64, I64, U32, U32, U32, U64, F16, BF, F32, F64, C64, C128],
        [U64, F64, F64, F64, F64, U64, U64, U64, U64, F16, BF, F32, F64, C64, C128],
        [F16, F16, F16, F16, F16, F16, F16, F16, F16, F16, F32, F32, F64, C64, C128],
        [BF, BF, BF, BF, BF, BF, BF, BF, BF, F32, BF, F32, F64, C64, C128],
        [F32, F32, F32, F32, F32, F32, F32, F32, F32, F32, F32, F32, F64, C64, C128],
        [F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, C128, C128],
        [C64, C64, C64, C64, C64, C64, C64, C64, C64, C64, C64, C64, C128, C64, C128],
        [C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128],
    ]
};

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of dtypes: what an op takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DTypeSet(u32);

impl DTypeSet {
    /// Every dtype: the trait `Element`.
    pub const ELEMENT: DTypeSet = DTypeSet((1 << DType::ALL.len()) - 1);
    /// The trait `Int`.
    pub const INT: DTypeSet =
        DTypeSet::of(&[DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64]);
    /// The trait `Float`.
    pub const FLOAT: DTypeSet = DTypeSet::of(&[DType::F16, DType::Bf16, DType::F32, DType::F64]);
    /// The trait `Real`: integers and floats.
    pub const REAL: DTypeSet = DTypeSet::INT.union(DTypeSet::FLOAT);
    /// The trait `Field`: floats and complex numbers.
    pub const FIELD: DTypeSet = DTypeSet::FLOAT.union(DTypeSet::of(&[DType::C64, DType::C128]));
    /// The trait `Num`: all but `bool`.
    pub const NUM: DTypeSet = DTypeSet::INT.union(DTypeSet::FIELD);

    /// The set of these.
    pub const fn of(dtypes: &[DType]) -> DTypeSet {
        let mut bits = 0;
        let mut i = 0;
        while i < dtypes.len() {
            bits |= 1 << dtypes[i] as u32;
            i += 1;
        }
        DTypeSet(bits)
    }

    /// Whether the dtype is in the set.
    pub const fn contains(self, dtype: DType) -> bool {
        self.0 & (1 << dtype as u32) != 0
    }

    /// Those in either set.
    pub const fn union(self, other: DTypeSet) -> DTypeSet {
        DTypeSet(self.0 | other.0)
    }

    /// Those in both sets.
    pub const fn intersection(self, other: DTypeSet) -> DTypeSet {
        DTypeSet(self.0 & other.0)
    }

    /// Those for which it holds.
    pub fn filter(self, holds: impl Fn(DType) -> bool) -> DTypeSet {
        self.iter().filter(|d| holds(*d)).fold(DTypeSet::of(&[]), |set, d| set.union(DTypeSet::of(&[d])))
    }

    /// The dtypes, in the order of [`DType::ALL`].
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::ALL.iter().copied().filter(move |d| self.contains(*d))
    }
}

impl fmt::Display for DTypeSet {
    /// A word where there is one (`floating`, `integer`, …), else the list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WORDS: &[(DTypeSet, &str)] = &[
            (DTypeSet::ELEMENT, "any dtype"),
            (DTypeSet::NUM, "integer, floating or complex dtypes"),
            (DTypeSet::REAL, "integer or floating dtypes"),
            (DTypeSet::FIELD, "floating or complex dtypes"),
            (DTypeSet::INT, "integer dtypes"),
            (DTypeSet::FLOAT, "floating dtypes"),
        ];
        match WORDS.iter().find(|(set, _)| set == self) {
            Some((_, word)) => f.write_str(word),
            None => {
                let names: Vec<_> = self.iter().map(DType::name).collect();
                f.write_str(&names.join(", "))
            }
        }
    }
}
