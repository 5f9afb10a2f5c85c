//! [`Primitive`]: the scalar functions of programs, as one table.

#[cfg(feature = "engine")]
use crate::map::{Map, map};
use crate::number::BitFunction;
#[cfg(feature = "engine")]
use crate::number::scalar::Machine;
use crate::number::scalar::{Element, Field, Float, Int, Num, Real};
use crate::row::{Reduction, RowFunction};

/// The algebra that a primitive belongs to. It determines the dtypes that support the primitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algebra {
    /// All dtypes.
    Element,
    /// Integers, floats, complex.
    Num,
    /// Integers, floats.
    Real,
    /// Integers.
    Int,
    /// Floats, complex.
    Field,
    /// Floats.
    Float,
}

/// The result of a primitive for a type of number.
#[derive(Clone, Copy, Debug)]
pub enum ScalarValue<T: Element> {
    /// A number.
    Number(T),
    /// A truth value.
    Mask(T::Mask),
}

/// A loop that applies one primitive to `n` elements, from contiguous inputs to a contiguous output.
#[cfg(feature = "engine")]
pub type PrimitiveKernel = unsafe fn(n: usize, inputs: &[*const u8], output: *mut u8);

/// A primitive returns either `T` or a mask.
#[cfg(feature = "engine")]
macro_rules! result {
    (Number, $t:ty) => {
        $t
    };
    (Mask, $t:ty) => {
        bool
    };
}

#[cfg(feature = "engine")]
macro_rules! one {
    ($x:ident, $t:ident) => {
        $t
    };
}

macro_rules! primitives {
    ($($algebra:ident $apply:ident $kernel:ident {
        $($(#[$doc:meta])* $name:ident $word:literal ($($x:ident),+) -> $result:ident = $y:expr;)*
    })*) => {
        /// A function of numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Primitive { $($(#[doc = $word] $name,)*)* }

        impl Primitive {
            /// All primitives.
            pub const ALL: &'static [Primitive] = &[$($(Primitive::$name,)*)*];

            /// Its name in the text of a program.
            pub fn name(self) -> &'static str {
                match self { $($(Primitive::$name => $word,)*)* }
            }

            /// The number of arguments.
            pub fn arity(self) -> usize {
                match self { $($(Primitive::$name => [$(stringify!($x)),+].len(),)*)* }
            }

            /// The algebra that it belongs to.
            pub fn algebra(self) -> Algebra {
                match self { $($(Primitive::$name => Algebra::$algebra,)*)* }
            }

            /// Whether it is a function of the bits of numbers.
            pub fn is_of_bits(self) -> bool {
                self.name().starts_with("bits_") || self == Primitive::NumberOfBits
            }

            /// True if it returns a truth value rather than a number.
            pub fn is_test(self) -> bool {
                match self { $($(Primitive::$name => matches!(stringify!($result).as_bytes(), b"Mask"),)*)* }
            }
        }

        $(
            /// Applies a primitive of this algebra, for a type that implements it.
            #[cfg_attr(not(feature = "engine"), allow(dead_code))]
            #[inline]
            fn $apply<T: $algebra>(primitive: Primitive, x: &[T]) -> Option<ScalarValue<T>> {
                match (primitive, x) {
                    $((Primitive::$name, [$($x),+]) => { $(let $x = *$x;)+ Some(ScalarValue::$result($y)) })*
                    _ => None,
                }
            }

            /// The loop of the primitive.
            #[cfg(feature = "engine")]
            fn $kernel<T: $algebra + Machine>(primitive: Primitive) -> Option<PrimitiveKernel> {
                match primitive {
                    $(Primitive::$name => {
                        struct Body<T>(std::marker::PhantomData<T>);
                        impl<T: $algebra + Machine> Map for Body<T> {
                            type In = ($(one!($x, T),)+);
                            type Out = (result!($result, T),);
                            #[inline(always)]
                            fn eval(&self, ($($x,)+): Self::In) -> Self::Out { ($y,) }
                        }
                        unsafe fn run<T: $algebra + Machine>(n: usize, inputs: &[*const u8], output: *mut u8) {
                            // SAFETY: the caller's contract.
                            unsafe { map(&Body::<T>(std::marker::PhantomData), n, inputs, &[output]) }
                        }
                        Some(run::<T>)
                    })*
                    _ => None,
                }
            }
        )*
    };
}

primitives! {
    Element apply_element element_kernel {
        Equal "equal" (x, y) -> Mask = x.equal(y);
        Truthy "truthy" (x) -> Mask = x.truthy();
    }
    Num apply_num num_kernel {
        Add "add" (x, y) -> Number = x + y;
        Subtract "subtract" (x, y) -> Number = x - y;
        Multiply "multiply" (x, y) -> Number = x * y;
        Negative "negative" (x) -> Number = x.negative();
        Square "square" (x) -> Number = x.square();
        Conj "conj" (x) -> Number = x.conj();
        Chain "chain" (x, y) -> Number = x.chain(y);
        Pow "pow" (x, y) -> Number = x.pow(y);
    }
    Real apply_real real_kernel {
        Less "less" (x, y) -> Mask = x.less(y);
        LessEqual "less_equal" (x, y) -> Mask = x.less_equal(y);
        Isnan "isnan" (x) -> Mask = x.isnan();
        Isinf "isinf" (x) -> Mask = x.isinf();
        Signbit "signbit" (x) -> Mask = x.signbit();
        Maximum "maximum" (x, y) -> Number = x.maximum(y);
        Minimum "minimum" (x, y) -> Number = x.minimum(y);
        Abs "abs" (x) -> Number = x.abs();
        Sign "sign" (x) -> Number = x.sign();
        Floor "floor" (x) -> Number = x.floor();
        Ceil "ceil" (x) -> Number = x.ceil();
        Round "round" (x) -> Number = x.round();
        Trunc "trunc" (x) -> Number = x.trunc();
        FloorDivide "floor_divide" (x, y) -> Number = x.floor_divide(y);
        Remainder "remainder" (x, y) -> Number = x.remainder(y);
    }
    Int apply_int int_kernel {
        BitwiseAnd "bitwise_and" (x, y) -> Number = x & y;
        BitwiseOr "bitwise_or" (x, y) -> Number = x | y;
        BitwiseXor "bitwise_xor" (x, y) -> Number = x.bitwise_xor(y);
        BitwiseInvert "bitwise_invert" (x) -> Number = !x;
        LeftShift "left_shift" (x, y) -> Number = x.left_shift(y);
        RightShift "right_shift" (x, y) -> Number = x.right_shift(y);
    }
    Field apply_field field_kernel {
        Divide "divide" (x, y) -> Number = x.divide(y);
        Recip "recip" (x) -> Number = x.recip();
        Sqrt "sqrt" (x) -> Number = x.sqrt();
        Exp "exp" (x) -> Number = x.exp();
        Expm1 "expm1" (x) -> Number = x.expm1();
        Log "log" (x) -> Number = x.log();
        Log1p "log1p" (x) -> Number = x.log1p();
        Log2 "log2" (x) -> Number = x.log2();
        Log10 "log10" (x) -> Number = x.log10();
        Sin "sin" (x) -> Number = x.sin();
        Cos "cos" (x) -> Number = x.cos();
        Tan "tan" (x) -> Number = x.tan();
        Asin "asin" (x) -> Number = x.asin();
        Acos "acos" (x) -> Number = x.acos();
        Atan "atan" (x) -> Number = x.atan();
        Sinh "sinh" (x) -> Number = x.sinh();
        Cosh "cosh" (x) -> Number = x.cosh();
        Tanh "tanh" (x) -> Number = x.tanh();
        Asinh "asinh" (x) -> Number = x.asinh();
        Acosh "acosh" (x) -> Number = x.acosh();
        Atanh "atanh" (x) -> Number = x.atanh();
        Sigmoid "sigmoid" (x) -> Number = x.sigmoid();
    }
    Float apply_float float_kernel {
        Isfinite "isfinite" (x) -> Mask = x.isfinite();
        Rsqrt "rsqrt" (x) -> Number = x.rsqrt();
        Cbrt "cbrt" (x) -> Number = x.cbrt();
        Exp2 "exp2" (x) -> Number = x.exp2();
        Silu "silu" (x) -> Number = x.silu();
        Softplus "softplus" (x) -> Number = x.softplus();
        LogSigmoid "log_sigmoid" (x) -> Number = x.log_sigmoid();
        Erf "erf" (x) -> Number = x.erf();
        Erfc "erfc" (x) -> Number = x.erfc();
        NormalCdf "normal_cdf" (x) -> Number = x.normal_cdf();
        NormalPdf "normal_pdf" (x) -> Number = x.normal_pdf();
        Lgamma "lgamma" (x) -> Number = x.lgamma();
        Digamma "digamma" (x) -> Number = x.digamma();
        Atan2 "atan2" (x, y) -> Number = x.atan2(y);
        Hypot "hypot" (x, y) -> Number = x.hypot(y);
        Logaddexp "logaddexp" (x, y) -> Number = x.logaddexp(y);
        Copysign "copysign" (x, y) -> Number = x.copysign(y);
        Fmod "fmod" (x, y) -> Number = x.fmod(y);
        MulAdd "mul_add" (x, y, z) -> Number = x.mul_add(y, z);
        Float16 "float16" (x) -> Number = x.as_float16();
        Bfloat16 "bfloat16" (x) -> Number = x.as_bfloat16();
        BitsAnd "bits_and" (x, y) -> Number = T::bits(BitFunction::And, x, y);
        BitsOr "bits_or" (x, y) -> Number = T::bits(BitFunction::Or, x, y);
        BitsXor "bits_xor" (x, y) -> Number = T::bits(BitFunction::Xor, x, y);
        BitsAdd "bits_add" (x, y) -> Number = T::bits(BitFunction::Add, x, y);
        BitsSubtract "bits_subtract" (x, y) -> Number = T::bits(BitFunction::Subtract, x, y);
        BitsMultiply "bits_multiply" (x, y) -> Number = T::bits(BitFunction::Multiply, x, y);
        BitsDivide "bits_divide" (x, y) -> Number = T::bits(BitFunction::Divide, x, y);
        BitsRemainder "bits_remainder" (x, y) -> Number = T::bits(BitFunction::Remainder, x, y);
        BitsShiftLeft "bits_shift_left" (x, y) -> Number = T::bits(BitFunction::ShiftLeft, x, y);
        BitsShiftRight "bits_shift_right" (x, y) -> Number = T::bits(BitFunction::ShiftRight, x, y);
        BitsOfNumber "bits_of_number" (x) -> Number = T::bits(BitFunction::OfNumber, x, x);
        NumberOfBits "number_of_bits" (x) -> Number = T::bits(BitFunction::ToNumber, x, x);
        BitsEqual "bits_equal" (x, y) -> Mask = x.bits_equal(y);
        BitsLess "bits_less" (x, y) -> Mask = x.bits_less(y);
    }
}

/// A type of number that programs can be evaluated with: it has the primitives of some algebras.
pub trait Scalar: Element {
    /// Applies a primitive; `None` if the type doesn't support it.
    fn apply(primitive: Primitive, x: &[Self]) -> Option<ScalarValue<Self>>;
    /// An integer power.
    fn apply_powi(self, exponent: i64) -> Option<Self>;
    /// The derivative of `digamma` of this order.
    fn apply_polygamma(self, order: u32) -> Option<Self>;
    /// The number with these bits; `None` if the type is no float.
    fn apply_bits(_: u64) -> Option<Self> {
        None
    }
    /// The distance from 1 to the next larger number.
    fn apply_epsilon() -> Option<Self>;
    /// A reduction over the row; `None` if the type has no rows.
    fn apply_reduction(self, _: Reduction) -> Option<Self> {
        None
    }
    /// A function of whole rows; `None` if the type has no rows.
    fn apply_row_function(_: &RowFunction, _: &[Self]) -> Option<Self> {
        None
    }
    /// The position in the row; `None` if the type has no rows.
    fn apply_position() -> Option<Self> {
        None
    }
    /// The length of the row; `None` if the type has no rows.
    fn apply_count() -> Option<Self> {
        None
    }
    /// The same number without its derivative.
    fn apply_detach(self) -> Self {
        self
    }
}

/// A type of number that is stored in memory and has a loop for each of its primitives.
#[cfg(feature = "engine")]
pub trait Tile: Scalar + Machine {
    /// The loop of a primitive.
    fn kernel(primitive: Primitive) -> Option<PrimitiveKernel>;
    /// How its machine code is made, if there is any.
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    const CODE: Option<super::routines::Code> = None;
    /// Whether rows of the type can be reduced.
    const HAS_ROWS: bool = false;
}

macro_rules! floats {
    ($(impl[$($generic:tt)*] $t:ty;)*) => {$(
        impl<$($generic)*> Scalar for $t {
            fn apply(primitive: Primitive, x: &[Self]) -> Option<ScalarValue<Self>> {
                apply_element(primitive, x)
                    .or_else(|| apply_num(primitive, x))
                    .or_else(|| apply_real(primitive, x))
                    .or_else(|| apply_field(primitive, x))
                    .or_else(|| apply_float(primitive, x))
            }
            fn apply_powi(self, exponent: i64) -> Option<Self> { Some(Num::powi(self, exponent)) }
            fn apply_polygamma(self, order: u32) -> Option<Self> { Some(Float::polygamma(self, order)) }
            fn apply_epsilon() -> Option<Self> { Some(Self::epsilon()) }
            fn apply_bits(bits: u64) -> Option<Self> { Some(Self::of_bits(bits)) }
            fn apply_detach(self) -> Self { self.detach() }
        }
    )*};
}
floats! { impl[S: Float] crate::Dual<S>; }
#[cfg(feature = "engine")]
floats! { impl[] f32; impl[] f64; }
#[cfg(feature = "engine")]
floats! { impl[] crate::code::Number<f32>; impl[] crate::code::Number<f64>; }

#[cfg(feature = "engine")]
macro_rules! others {
    ($(impl[$($generic:tt)*] $t:ty: $($apply:ident)*;)*) => {$(
        impl<$($generic)*> Scalar for $t {
            fn apply(primitive: Primitive, x: &[Self]) -> Option<ScalarValue<Self>> {
                None$(.or_else(|| $apply(primitive, x)))*
            }
            fn apply_powi(self, exponent: i64) -> Option<Self> { Some(Num::powi(self, exponent)) }
            fn apply_polygamma(self, _: u32) -> Option<Self> { None }
            fn apply_epsilon() -> Option<Self> { None }
        }
    )*};
}
#[cfg(feature = "engine")]
impl Scalar for bool {
    fn apply(primitive: Primitive, x: &[Self]) -> Option<ScalarValue<Self>> {
        apply_element(primitive, x)
    }
    fn apply_powi(self, _: i64) -> Option<Self> {
        None
    }
    fn apply_polygamma(self, _: u32) -> Option<Self> {
        None
    }
    fn apply_epsilon() -> Option<Self> {
        None
    }
}
#[cfg(feature = "engine")]
others! {
    impl[] i8: apply_element apply_num apply_real apply_int;
    impl[] i16: apply_element apply_num apply_real apply_int;
    impl[] i32: apply_element apply_num apply_real apply_int;
    impl[] i64: apply_element apply_num apply_real apply_int;
    impl[] u8: apply_element apply_num apply_real apply_int;
    impl[] u16: apply_element apply_num apply_real apply_int;
    impl[] u32: apply_element apply_num apply_real apply_int;
    impl[] u64: apply_element apply_num apply_real apply_int;
    impl[] crate::Complex<f32>: apply_element apply_num apply_field;
    impl[] crate::Complex<f64>: apply_element apply_num apply_field;
}
#[cfg(all(feature = "engine", target_arch = "x86_64"))]
others! {
    impl[I: crate::code::Whole] crate::code::Integer<I>: apply_element apply_num apply_real apply_int;
}

#[cfg(feature = "engine")]
macro_rules! tiles {
    ($($t:ty: $($kernel:ident)* $(, rows: $has_rows:literal)? $(, code $at:ident: $number:ident $assemble:ident $($whole:ident)?)?;)*) => {$(
        impl Tile for $t {
            fn kernel(primitive: Primitive) -> Option<PrimitiveKernel> {
                None$(.or_else(|| $kernel::<$t>(primitive)))*
            }
            $(const HAS_ROWS: bool = $has_rows;)?
            $(
                #[cfg(target_arch = "x86_64")]
                const CODE: Option<super::routines::Code> = Some(super::routines::Code {
                    number: super::routines::Coded::$at,
                    has_form: super::routines::has_form::<crate::code::$number<$t>>,
                    assemble: super::routines::$assemble::<$t>,
                    assemble_whole: [$(super::routines::$whole::<$t> as super::routines::AssembleWhole)?].first().copied(),
                });
            )?
        }
    )*};
}
#[cfg(feature = "engine")]
tiles! {
    f32: element_kernel num_kernel real_kernel field_kernel float_kernel, rows: true, code F32: Number assemble assemble_whole;
    f64: element_kernel num_kernel real_kernel field_kernel float_kernel, rows: true, code F64: Number assemble assemble_whole;
    i8: element_kernel num_kernel real_kernel int_kernel, code I8: Integer assemble_integers;
    i16: element_kernel num_kernel real_kernel int_kernel, code I16: Integer assemble_integers;
    i32: element_kernel num_kernel real_kernel int_kernel, code I32: Integer assemble_integers;
    i64: element_kernel num_kernel real_kernel int_kernel, rows: true, code I64: Integer assemble_integers;
    u8: element_kernel num_kernel real_kernel int_kernel, code U8: Integer assemble_integers;
    u16: element_kernel num_kernel real_kernel int_kernel, code U16: Integer assemble_integers;
    u32: element_kernel num_kernel real_kernel int_kernel, code U32: Integer assemble_integers;
    u64: element_kernel num_kernel real_kernel int_kernel, rows: true, code U64: Integer assemble_integers;
    bool: element_kernel;
    crate::Complex<f32>: element_kernel num_kernel field_kernel;
    crate::Complex<f64>: element_kernel num_kernel field_kernel;
}
