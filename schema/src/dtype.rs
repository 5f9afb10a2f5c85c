//! Element types, sets of them, the traits for the sets, and promotion.

mod conversion;
mod promotion;
mod set;

use std::fmt;

pub use set::{BOUNDS, Bound, DTypeSet};

use crate::message::{self, Sentence};

macro_rules! dtypes {
    ($($variant:ident $rust:literal, $name:literal, $kind:ident, $size:literal;)*) => {
        /// The type of a tensor's elements.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum DType { $(#[doc = $name] $variant,)* }

        impl DType {
            /// All of them, in the order of the table.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// The name in the Array API, such as `float32`.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// The name in Rust, such as `f32`. That of `Complex<f32>` is `c64`.
            pub const fn rust_name(self) -> &'static str {
                match self { $(DType::$variant => $rust,)* }
            }

            /// The name of the variant, such as `F32`.
            pub const fn variant(self) -> &'static str {
                match self { $(DType::$variant => stringify!($variant),)* }
            }

            /// The size of one element in bytes.
            pub const fn size(self) -> usize {
                match self { $(DType::$variant => $size,)* }
            }

            /// Boolean, signed, unsigned, float or complex.
            pub const fn kind(self) -> Kind {
                match self { $(DType::$variant => Kind::$kind,)* }
            }
        }
    };
}

dtypes! {
    Bool "bool", "bool", Bool, 1;
    I8 "i8", "int8", Signed, 1;
    I16 "i16", "int16", Signed, 2;
    I32 "i32", "int32", Signed, 4;
    I64 "i64", "int64", Signed, 8;
    U8 "u8", "uint8", Unsigned, 1;
    U16 "u16", "uint16", Unsigned, 2;
    U32 "u32", "uint32", Unsigned, 4;
    U64 "u64", "uint64", Unsigned, 8;
    F16 "f16", "float16", Float, 2;
    Bf16 "bf16", "bfloat16", Float, 2;
    F32 "f32", "float32", Float, 4;
    F64 "f64", "float64", Float, 8;
    C64 "c64", "complex64", Complex, 8;
    C128 "c128", "complex128", Complex, 16;
}

/// Alternative names of some dtypes in NumPy.
const ALIASES: &[(&str, DType)] = &[
    ("half", DType::F16),
    ("float", DType::F64),
    ("double", DType::F64),
    ("int", DType::I64),
    ("long", DType::I64),
    ("short", DType::I16),
];

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
    /// The dtype with that name. The names in NumPy and PyTorch are also accepted.
    ///
    /// # Errors
    /// No dtype has that name.
    pub fn parse(name: &str) -> Result<DType, Sentence> {
        let found = DType::ALL.iter().map(|d| (d.name(), *d)).chain(ALIASES.iter().copied());
        found.clone().find(|(n, _)| *n == name).map(|(_, d)| d).ok_or_else(|| {
            let names: Vec<_> = DType::ALL.iter().map(|d| d.name()).collect();
            message::UNKNOWN_DTYPE.filled(&[&name, &names.join(", ")])
        })
    }

    /// The dtype with that name in Rust: `f32`, `c64`, `Complex<f32>`.
    pub fn of_rust(name: &str) -> Option<DType> {
        let name = match name {
            "Complex<f32>" => "c64",
            "Complex<f64>" => "c128",
            other => other,
        };
        DType::ALL.iter().find(|d| d.rust_name() == name).copied()
    }

    /// Whether it is real or complex floating point, so that a tensor of it can have a gradient.
    pub const fn is_differentiable(self) -> bool {
        matches!(self.kind(), Kind::Float | Kind::Complex)
    }

    /// The dtype of computations: `f32` for `f16` and `bf16`, the dtype itself for all others.
    pub const fn compute(self) -> DType {
        match self {
            DType::F16 | DType::Bf16 => DType::F32,
            other => other,
        }
    }

    /// The dtype of computations with rows: that of [`compute`](DType::compute), but 64 bits for integers, so that positions, counts and
    /// sums are exact.
    pub const fn of_rows(self) -> DType {
        match self {
            DType::I8 | DType::I16 | DType::I32 | DType::U8 | DType::U16 | DType::U32 => DType::I64,
            other => other.compute(),
        }
    }

    /// The dtype in which functions of floats compute: the dtype itself if it is floating or complex, else the default dtype.
    pub const fn floating(self) -> DType {
        if self.is_differentiable() { self } else { DType::F32 }
    }

    /// The range of an integer dtype.
    pub const fn integer_range(self) -> std::ops::RangeInclusive<i128> {
        let bits = 8 * self.size() as u32;
        match self.kind() {
            Kind::Signed => -(1 << (bits - 1))..=(1 << (bits - 1)) - 1,
            _ => 0..=(1 << bits) - 1,
        }
    }

    /// Whether an integer dtype can represent the number exactly. Other dtypes accept any number, rounded.
    pub fn holds(self, value: f64) -> bool {
        match self.kind() {
            Kind::Signed | Kind::Unsigned => {
                value.is_finite() && value.fract() == 0.0 && self.integer_range().contains(&(value as i128))
            }
            _ => true,
        }
    }

    /// Whether it is signed or unsigned.
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Whether it is complex.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::Complex)
    }

    /// The dtype of the parts of a complex number. A real dtype is returned unchanged.
    pub const fn real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
