//! Promotion: the dtype of a result whose operands differ in dtype.

use super::DType;

impl DType {
    /// The smallest dtype that can represent both. The table is that of the Array API, completed by that of NumPy.
    ///
    /// ```
    /// use minitensor_schema::DType;
    /// assert_eq!(DType::I32.promote(DType::U32), DType::I64);
    /// assert_eq!(DType::F16.promote(DType::Bf16), DType::F32);
    /// ```
    pub const fn promote(self, other: DType) -> DType {
        PROMOTION[self as usize][other as usize]
    }
}

/// The promoted dtype of each pair. Rows and columns are in the order of [`DType::ALL`].
///
/// An integer with a float returns the float (Array API leaves it undefined; PyTorch does so), `uint64` with a
/// signed integer returns `float64` (NumPy), `float16` with `bfloat16` returns `float32` (PyTorch, JAX).
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
