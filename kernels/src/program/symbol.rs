//! [`Symbol`]: a number that records how it is computed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Add, AddAssign, BitAnd, BitOr, Div, DivAssign, Mul, MulAssign, Neg, Not, Rem, Sub, SubAssign};

use smallvec::SmallVec;

use super::instruction::{Id, Instruction, Written};
use super::primitive::{Primitive, Scalar, ScalarValue};
use super::scan::scan;
use crate::number::BitFunction;
use crate::number::scalar::{Const, Element, Field, Float, Int, Mask, Num, Real, sigmoid_and_slope};
use crate::row::{IntRow, RealRow, Reduction, Row, RowFunction, Together};

/// A number of a program that is being recorded. A body that runs with symbols records its program.
#[derive(Clone, Copy, Debug)]
pub struct Symbol(pub(super) Id);

/// A truth value of a program that is being recorded.
#[derive(Clone, Copy, Debug)]
pub struct SymbolMask(pub(super) Id);

/// A program that is being recorded.
#[derive(Default)]
struct Recorded {
    instructions: Vec<Instruction>,
    /// The instructions by their hashes.
    known: HashMap<u64, SmallVec<[Id; 1]>>,
    /// The number of instructions after which the recording ends by unwinding.
    most: Option<usize>,
    /// Whether the [product rule](Num::times) has plain products.
    has_plain_products: bool,
    /// The number of parameters of steps.
    parameters: u32,
}

/// The payload of an unwinding recording that has too many instructions.
pub(super) struct TooLong;

thread_local! {
    /// The programs that are being recorded on this thread, the innermost last.
    static WRITTEN: RefCell<Vec<Recorded>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f`, and returns the recorded instructions and the result. Unwinds with [`TooLong`] if there are more than `most` instructions.
pub(super) fn record<R>(most: Option<usize>, f: impl FnOnce() -> R) -> (Vec<Instruction>, R) {
    /// Ends the recording even if `f` panics.
    struct Open;
    impl Drop for Open {
        fn drop(&mut self) {
            WRITTEN.with_borrow_mut(|all| all.pop());
        }
    }
    WRITTEN.with_borrow_mut(|all| all.push(Recorded { most, ..Recorded::default() }));
    let open = Open;
    let result = f();
    let recorded = WRITTEN.with_borrow_mut(|all| all.last_mut().map(std::mem::take)).unwrap_or_default();
    drop(open);
    (recorded.instructions, result)
}

/// From now on, the [product rule](Num::times) of the innermost recording has plain products, as that of compiled rows.
pub(super) fn use_plain_products() {
    WRITTEN.with_borrow_mut(|all| all.last_mut().into_iter().for_each(|recorded| recorded.has_plain_products = true));
}

/// Adds an instruction, or returns an existing instruction that computes the same.
///
/// # Panics
/// Outside of [`Program::write`](super::Program::write), where symbols have no meaning.
pub(super) fn push(instruction: Instruction) -> Id {
    let (id, is_too_long) = WRITTEN.with_borrow_mut(|all| {
        let recorded = all.last_mut().expect("symbols are used within Program::write");
        let id = recorded.add(instruction);
        (id, recorded.most.is_some_and(|most| recorded.instructions.len() > most))
    });
    if is_too_long {
        std::panic::resume_unwind(Box::new(TooLong));
    }
    id
}

/// New parameters of a step of a scan: inputs that no program has.
pub(super) fn parameters(count: usize) -> Vec<Symbol> {
    let next = || {
        WRITTEN.with_borrow_mut(|all| {
            let recorded = all.last_mut().expect("symbols are used within Program::write");
            recorded.parameters += 1;
            Instruction::Input(u32::MAX - recorded.parameters)
        })
    };
    (0..count).map(|_| Symbol(push(next()))).collect()
}

/// The instructions that have been recorded.
pub(super) fn recorded() -> Vec<Instruction> {
    WRITTEN.with_borrow(|all| all.last().map(|recorded| recorded.instructions.clone())).unwrap_or_default()
}

impl Recorded {
    fn add(&mut self, instruction: Instruction) -> Id {
        match instruction.written(&self.instructions) {
            Written::As(id) => id,
            Written::Simpler(instruction) => self.add(instruction),
            Written::Itself => {
                let known = self.known.entry(instruction.hash()).or_default();
                if let Some(id) = known.iter().find(|id| self.instructions[id.at()].is_same(&instruction)) {
                    return *id;
                }
                let id = Id(self.instructions.len() as u32);
                known.push(id);
                self.instructions.push(instruction);
                id
            }
        }
    }
}

fn constant(value: Const) -> Symbol {
    Symbol(push(Instruction::Constant(value)))
}

fn number<const N: usize>(primitive: Primitive, x: [Symbol; N]) -> Symbol {
    Symbol(push(Instruction::apply(primitive, &x.map(|s| s.0))))
}

fn test<const N: usize>(primitive: Primitive, x: [Symbol; N]) -> SymbolMask {
    SymbolMask(push(Instruction::apply(primitive, &x.map(|s| s.0))))
}

impl Mask for SymbolMask {
    fn constant(value: bool) -> Self {
        SymbolMask(push(Instruction::Truth(value)))
    }
    fn is_known_false(self) -> bool {
        let is_false =
            |recorded: &Recorded| matches!(recorded.instructions.get(self.0.at()), Some(Instruction::Truth(false)));
        WRITTEN.with_borrow(|all| all.last().is_some_and(is_false))
    }
}

impl BitAnd for SymbolMask {
    type Output = SymbolMask;
    fn bitand(self, other: SymbolMask) -> SymbolMask {
        SymbolMask(push(Instruction::And(self.0, other.0)))
    }
}

impl BitOr for SymbolMask {
    type Output = SymbolMask;
    fn bitor(self, other: SymbolMask) -> SymbolMask {
        SymbolMask(push(Instruction::Or(self.0, other.0)))
    }
}

impl Not for SymbolMask {
    type Output = SymbolMask;
    fn not(self) -> SymbolMask {
        SymbolMask(push(Instruction::Not(self.0)))
    }
}

impl Element for Symbol {
    type Mask = SymbolMask;
    fn constant(value: Const) -> Self {
        constant(value)
    }
    fn equal(self, other: Self) -> SymbolMask {
        test(Primitive::Equal, [self, other])
    }
    fn truthy(self) -> SymbolMask {
        test(Primitive::Truthy, [self])
    }
    fn select(mask: SymbolMask, a: Self, b: Self) -> Self {
        Symbol(push(Instruction::Select(mask.0, a.0, b.0)))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $primitive:ident;)*) => {$(
        impl $trait for Symbol {
            type Output = Symbol;
            fn $method(self, other: Symbol) -> Symbol { number(Primitive::$primitive, [self, other]) }
        }
    )*};
}
operators! {
    Add add Add; Sub sub Subtract; Mul mul Multiply; Div div Divide; Rem rem Fmod;
    BitAnd bitand BitwiseAnd; BitOr bitor BitwiseOr;
}

macro_rules! assignments {
    ($($trait:ident $method:ident $op:tt;)*) => {$(
        impl $trait for Symbol {
            fn $method(&mut self, other: Symbol) { *self = *self $op other; }
        }
    )*};
}
assignments! { AddAssign add_assign +; SubAssign sub_assign -; MulAssign mul_assign *; DivAssign div_assign /; }

impl Neg for Symbol {
    type Output = Symbol;
    fn neg(self) -> Symbol {
        number(Primitive::Negative, [self])
    }
}

impl Not for Symbol {
    type Output = Symbol;
    fn not(self) -> Symbol {
        number(Primitive::BitwiseInvert, [self])
    }
}

macro_rules! numbers {
    ($($method:ident($self:ident $(, $x:ident)*) = $primitive:ident;)*) => {$(
        fn $method($self $(, $x: Self)*) -> Self { number(Primitive::$primitive, [$self $(, $x)*]) }
    )*};
}
macro_rules! tests {
    ($($method:ident($self:ident $(, $x:ident)*) = $primitive:ident;)*) => {$(
        fn $method($self $(, $x: Self)*) -> SymbolMask { test(Primitive::$primitive, [$self $(, $x)*]) }
    )*};
}

impl Num for Symbol {
    fn detach(self) -> Self {
        Symbol(push(Instruction::Detach(self.0)))
    }
    numbers! { negative(self) = Negative; square(self) = Square; conj(self) = Conj; chain(self, tangent) = Chain; pow(self, y) = Pow; exponent_slope(self) = Log; }
    fn times(self, tangent: Self) -> Self {
        let is_zero = |recorded: &Recorded| {
            let zero = |c: &Const| matches!(c, Const::Int(0)) || matches!(c, Const::Float(x) if *x == 0.0);
            matches!(recorded.instructions.get(tangent.0.at()), Some(Instruction::Constant(c)) if zero(c))
        };
        let is_plain = |recorded: &Recorded| recorded.has_plain_products && !is_zero(recorded);
        match WRITTEN.with_borrow(|all| all.last().is_some_and(is_plain)) {
            true => self * tangent,
            false => self.chain(tangent),
        }
    }
    fn powi(self, exponent: i64) -> Self {
        Symbol(push(Instruction::Powi(self.0, exponent)))
    }
}

impl Real for Symbol {
    tests! {
        less(self, y) = Less; less_equal(self, y) = LessEqual; isnan(self) = Isnan; isinf(self) = Isinf;
        signbit(self) = Signbit;
    }
    numbers! {
        maximum(self, y) = Maximum; minimum(self, y) = Minimum; abs(self) = Abs; sign(self) = Sign;
        floor(self) = Floor; ceil(self) = Ceil; round(self) = Round; trunc(self) = Trunc;
        floor_divide(self, y) = FloorDivide; remainder(self, y) = Remainder;
    }
}

impl Int for Symbol {
    numbers! { bitwise_xor(self, y) = BitwiseXor; left_shift(self, y) = LeftShift; right_shift(self, y) = RightShift; }
}

impl Field for Symbol {
    numbers! {
        recip(self) = Recip; sqrt(self) = Sqrt; exp(self) = Exp; expm1(self) = Expm1; log(self) = Log;
        log1p(self) = Log1p; log2(self) = Log2; log10(self) = Log10; sin(self) = Sin; cos(self) = Cos; tan(self) = Tan;
        asin(self) = Asin; acos(self) = Acos; atan(self) = Atan; sinh(self) = Sinh; cosh(self) = Cosh;
        tanh(self) = Tanh; asinh(self) = Asinh; acosh(self) = Acosh; atanh(self) = Atanh;
        sigmoid(self) = Sigmoid;
    }
    fn sigmoid_and_slope(self) -> (Self, Self) {
        sigmoid_and_slope(self)
    }
}

impl Float for Symbol {
    tests! { isfinite(self) = Isfinite; bits_equal(self, y) = BitsEqual; bits_less(self, y) = BitsLess; }
    fn of_bits(bits: u64) -> Self {
        Symbol(push(Instruction::Bits(bits)))
    }
    fn bits(function: BitFunction, a: Self, b: Self) -> Self {
        use Primitive::{
            BitsAdd, BitsAnd, BitsDivide, BitsMultiply, BitsOfNumber, BitsOr, BitsRemainder, BitsShiftLeft,
            BitsShiftRight, BitsSubtract, BitsXor, NumberOfBits,
        };
        let primitive = match function {
            BitFunction::And => BitsAnd,
            BitFunction::Or => BitsOr,
            BitFunction::Xor => BitsXor,
            BitFunction::Add => BitsAdd,
            BitFunction::Subtract => BitsSubtract,
            BitFunction::Multiply => BitsMultiply,
            BitFunction::Divide => BitsDivide,
            BitFunction::Remainder => BitsRemainder,
            BitFunction::ShiftLeft => BitsShiftLeft,
            BitFunction::ShiftRight => BitsShiftRight,
            BitFunction::OfNumber => return number(BitsOfNumber, [a]),
            BitFunction::ToNumber => return number(NumberOfBits, [a]),
        };
        number(primitive, [a, b])
    }
    numbers! {
        rsqrt(self) = Rsqrt; cbrt(self) = Cbrt; exp2(self) = Exp2; silu(self) = Silu; softplus(self) = Softplus;
        log_sigmoid(self) = LogSigmoid; erf(self) = Erf; erfc(self) = Erfc; normal_cdf(self) = NormalCdf;
        normal_pdf(self) = NormalPdf; lgamma(self) = Lgamma; digamma(self) = Digamma; atan2(self, y) = Atan2; hypot(self, y) = Hypot; logaddexp(self, y) = Logaddexp;
        copysign(self, y) = Copysign; fmod(self, y) = Fmod; mul_add(self, y, z) = MulAdd;
        as_float16(self) = Float16; as_bfloat16(self) = Bfloat16;
    }
    fn nan() -> Self {
        constant(Const::Float(f64::NAN))
    }
    fn infinity() -> Self {
        constant(Const::Float(f64::INFINITY))
    }
    fn epsilon() -> Self {
        Symbol(push(Instruction::Epsilon))
    }
    fn polygamma(self, order: u32) -> Self {
        Symbol(push(Instruction::Polygamma(self.0, order)))
    }
}

impl Scalar for Symbol {
    fn apply(primitive: Primitive, x: &[Self]) -> Option<ScalarValue<Self>> {
        let operands: Vec<Id> = x.iter().map(|s| s.0).collect();
        let id = push(Instruction::apply(primitive, &operands));
        Some(if primitive.is_test() { ScalarValue::Mask(SymbolMask(id)) } else { ScalarValue::Number(Symbol(id)) })
    }
    fn apply_powi(self, exponent: i64) -> Option<Self> {
        Some(self.powi(exponent))
    }
    fn apply_polygamma(self, order: u32) -> Option<Self> {
        Some(self.polygamma(order))
    }
    fn apply_epsilon() -> Option<Self> {
        Some(Self::epsilon())
    }
    fn apply_bits(bits: u64) -> Option<Self> {
        Some(Self::of_bits(bits))
    }
    fn apply_reduction(self, reduction: Reduction) -> Option<Self> {
        Some(self.reduce(reduction))
    }
    fn apply_row_function(function: &RowFunction, x: &[Self]) -> Option<Self> {
        Some(Symbol(push(Instruction::Row(function.clone(), x.iter().map(|s| s.0).collect()))))
    }
    fn apply_position() -> Option<Self> {
        Some(Symbol(push(Instruction::Position)))
    }
    fn apply_count() -> Option<Self> {
        Some(Symbol(push(Instruction::Count)))
    }
    fn apply_detach(self) -> Self {
        self.detach()
    }
}

impl Row for Symbol {}
impl IntRow for Symbol {}

impl RealRow for Symbol {
    type Index = Symbol;
    fn reduce(self, reduction: Reduction) -> Self {
        Symbol(push(Instruction::Reduce(reduction, self.0)))
    }
    fn of_row<const N: usize>(function: RowFunction, rows: [Self; N]) -> Self {
        Symbol(push(Instruction::Row(function, rows.iter().map(|s| s.0).collect())))
    }
    fn scan<X: Together<Self>>(rows: X, step: impl Fn(X, X) -> X) -> X {
        let step = |before: &[Symbol], next: &[Symbol]| step(X::from_rows(before), X::from_rows(next)).into_rows();
        X::from_rows(&scan(&rows.into_rows(), step))
    }
    fn count(self) -> Self {
        Symbol(push(Instruction::Count))
    }
    fn position(self) -> Self {
        Symbol(push(Instruction::Position))
    }
    fn stands_at(self, index: Symbol) -> SymbolMask {
        self.position().equal(index)
    }
    fn to_index(self) -> Symbol {
        self.detach()
    }
}
