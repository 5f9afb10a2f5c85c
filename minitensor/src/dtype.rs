//! Element types: [those of the schema](minitensor_schema::dtype), and the corresponding Rust types.

use half::{bf16, f16};
use minitensor_kernels::{Complex, Truth};

pub use minitensor_schema::dtype::{DType, DTypeSet, Kind};

/// A Rust type that can be an element of a tensor.
pub trait Scalar: Copy + Send + Sync + 'static {
    /// The dtype.
    const DTYPE: DType;
    /// The type in memory: the type itself, or [`Truth`] for `bool`.
    type Stored: Copy + Send + Sync + 'static;
    /// Converts a value that was read from memory.
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

macro_rules! scalars {
    ($($variant:ident $ty:ty;)*) => {
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

        // The schema defines the sizes without these Rust types.
        const _: () = {
            $(assert!(DType::$variant.size() == size_of::<$ty>());)*
            assert!([$(DType::$variant),*].len() == DType::ALL.len());
        };
    };
}

scalars! {
    Bool Truth;
    I8 i8;
    I16 i16;
    I32 i32;
    I64 i64;
    U8 u8;
    U16 u16;
    U32 u32;
    U64 u64;
    F16 f16;
    Bf16 bf16;
    F32 f32;
    F64 f64;
    C64 Complex<f32>;
    C128 Complex<f64>;
}
