//! [`Instruction`]: one step of a program.

use std::hash::{DefaultHasher, Hash, Hasher};

use smallvec::{SmallVec, smallvec};

use super::primitive::{Primitive, Scalar, ScalarValue};
use crate::number::scalar::{Const, Mask};
use crate::row::{Reduction, RowFunction};

/// The index of an instruction in its program. An instruction precedes all instructions that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(pub u32);

impl Id {
    /// The index.
    #[inline]
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// The instructions that an instruction uses.
pub type Operands = SmallVec<[Id; 3]>;

/// One step of a program. It computes a number or a truth value from those of earlier instructions. In JSON and in error
/// messages, it is a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Instruction {
    /// An element of the input at this position.
    Input(u32),
    /// A uniform: one number for all elements.
    Uniform(u32),
    /// A constant number.
    Constant(Const),
    /// The number with these bits, of which `f32` takes the low half.
    Bits(u64),
    /// The distance from 1 to the next larger number.
    Epsilon,
    /// A constant truth value.
    Truth(bool),
    /// A function of numbers.
    Apply(Primitive, Operands),
    /// An integer power.
    Powi(Id, i64),
    /// The derivative of `digamma` of this order.
    Polygamma(Id, u32),
    /// The second operand where the first is true, the third elsewhere.
    Select(Id, Id, Id),
    /// Logical and.
    And(Id, Id),
    /// Logical or.
    Or(Id, Id),
    /// Logical not.
    Not(Id),
    /// A reduction over all elements of a row.
    Reduce(Reduction, Id),
    /// A function of whole rows.
    Row(RowFunction, Operands),
    /// The index of the element in its row, from 0.
    Position,
    /// The number of elements in the row.
    Count,
    /// The same number, but gradients don't flow through it.
    Detach(Id),
}

/// The type of an instruction's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A number.
    Number,
    /// A truth value.
    Mask,
}

/// The result of rewriting an instruction.
pub(super) enum Written {
    /// An existing instruction.
    As(Id),
    /// A simpler instruction.
    Simpler(Instruction),
    /// The instruction, unchanged.
    Itself,
}

impl Instruction {
    pub(super) fn apply(primitive: Primitive, operands: &[Id]) -> Instruction {
        Instruction::Apply(primitive, SmallVec::from_slice(operands))
    }

    /// The type of its value.
    pub fn kind(&self) -> ValueType {
        match self {
            Instruction::Truth(_) | Instruction::And(..) | Instruction::Or(..) | Instruction::Not(_) => ValueType::Mask,
            Instruction::Apply(p, _) if p.is_test() => ValueType::Mask,
            _ => ValueType::Number,
        }
    }

    /// Whether it depends on the row of an element.
    pub(super) fn is_of_rows(&self) -> bool {
        matches!(self, Instruction::Reduce(..) | Instruction::Row(..) | Instruction::Position | Instruction::Count)
    }

    /// Whether it is a constant.
    pub(super) fn is_constant(&self) -> bool {
        matches!(self, Instruction::Constant(_) | Instruction::Bits(_) | Instruction::Epsilon | Instruction::Truth(_))
    }

    /// Whether it takes longer than loading its value from memory: all but arithmetic and comparisons.
    pub(super) fn is_dear(&self) -> bool {
        use Primitive::{
            Add, Bfloat16, Chain, Conj, Divide, Float16, Maximum, Minimum, MulAdd, Multiply, Negative, Recip, Square,
            Subtract,
        };
        const CHEAP: [Primitive; 14] = [
            Add, Bfloat16, Chain, Conj, Divide, Float16, Maximum, Minimum, MulAdd, Multiply, Negative, Recip, Square,
            Subtract,
        ];
        match self {
            Instruction::Apply(p, _) => !p.is_test() && !p.is_of_bits() && !CHEAP.contains(p),
            Instruction::Powi(..) | Instruction::Polygamma(..) | Instruction::Reduce(..) | Instruction::Row(..) => true,
            _ => false,
        }
    }

    /// The operands, with the kind that each must have.
    pub fn operands(&self) -> SmallVec<[(Id, ValueType); 3]> {
        use ValueType::{Mask, Number};
        match self {
            Instruction::Input(_)
            | Instruction::Uniform(_)
            | Instruction::Constant(_)
            | Instruction::Bits(_)
            | Instruction::Epsilon
            | Instruction::Truth(_) => smallvec![],
            Instruction::Position | Instruction::Count => smallvec![],
            Instruction::Apply(_, operands) | Instruction::Row(_, operands) => {
                operands.iter().map(|id| (*id, Number)).collect()
            }
            Instruction::Powi(x, _)
            | Instruction::Polygamma(x, _)
            | Instruction::Reduce(_, x)
            | Instruction::Detach(x) => smallvec![(*x, Number)],
            Instruction::Select(mask, a, b) => smallvec![(*mask, Mask), (*a, Number), (*b, Number)],
            Instruction::And(a, b) | Instruction::Or(a, b) => smallvec![(*a, Mask), (*b, Mask)],
            Instruction::Not(a) => smallvec![(*a, Mask)],
        }
    }

    /// Its value, computed from the values of the earlier instructions; `None` if the number type lacks the primitive.
    pub(super) fn value<T: Scalar>(
        &self,
        inputs: &[T],
        uniforms: &[T],
        before: &[ScalarValue<T>],
    ) -> Option<ScalarValue<T>> {
        let number = |id: &Id| before[id.at()].number();
        let mask = |id: &Id| before[id.at()].mask();
        Some(match self {
            Instruction::Input(k) => ScalarValue::Number(inputs[*k as usize]),
            Instruction::Uniform(k) => ScalarValue::Number(uniforms[*k as usize]),
            Instruction::Constant(c) => ScalarValue::Number(T::constant(*c)),
            Instruction::Bits(bits) => ScalarValue::Number(T::apply_bits(*bits)?),
            Instruction::Epsilon => ScalarValue::Number(T::apply_epsilon()?),
            Instruction::Truth(t) => ScalarValue::Mask(T::Mask::constant(*t)),
            Instruction::Apply(p, x) => T::apply(*p, &x.iter().map(number).collect::<Option<SmallVec<[T; 3]>>>()?)?,
            Instruction::Powi(x, n) => ScalarValue::Number(number(x)?.apply_powi(*n)?),
            Instruction::Polygamma(x, n) => ScalarValue::Number(number(x)?.apply_polygamma(*n)?),
            Instruction::Select(m, a, b) => ScalarValue::Number(T::select(mask(m)?, number(a)?, number(b)?)),
            Instruction::And(a, b) => ScalarValue::Mask(mask(a)? & mask(b)?),
            Instruction::Or(a, b) => ScalarValue::Mask(mask(a)? | mask(b)?),
            Instruction::Not(a) => ScalarValue::Mask(!mask(a)?),
            Instruction::Reduce(reduction, x) => ScalarValue::Number(number(x)?.apply_reduction(*reduction)?),
            Instruction::Row(f, x) => {
                let x = x.iter().map(number).collect::<Option<SmallVec<[T; 2]>>>()?;
                ScalarValue::Number(T::apply_row_function(f, &x)?)
            }
            Instruction::Position => ScalarValue::Number(T::apply_position()?),
            Instruction::Count => ScalarValue::Number(T::apply_count()?),
            Instruction::Detach(x) => ScalarValue::Number(number(x)?.apply_detach()),
        })
    }

    /// The same step with its operands renumbered.
    pub(super) fn moved(self, to: impl Fn(Id) -> Id) -> Instruction {
        match self {
            Instruction::Apply(p, operands) => Instruction::Apply(p, operands.into_iter().map(to).collect()),
            Instruction::Powi(x, n) => Instruction::Powi(to(x), n),
            Instruction::Polygamma(x, n) => Instruction::Polygamma(to(x), n),
            Instruction::Select(mask, a, b) => Instruction::Select(to(mask), to(a), to(b)),
            Instruction::And(a, b) => Instruction::And(to(a), to(b)),
            Instruction::Or(a, b) => Instruction::Or(to(a), to(b)),
            Instruction::Not(a) => Instruction::Not(to(a)),
            Instruction::Reduce(reduction, x) => Instruction::Reduce(reduction, to(x)),
            Instruction::Row(f, operands) => Instruction::Row(f, operands.into_iter().map(to).collect()),
            Instruction::Detach(x) => Instruction::Detach(to(x)),
            leaf => leaf,
        }
    }

    /// A number that is equal for equal instructions.
    pub(super) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        std::mem::discriminant(self).hash(&mut hasher);
        self.operands().iter().for_each(|(id, _)| id.hash(&mut hasher));
        match self {
            Instruction::Apply(primitive, _) => std::mem::discriminant(primitive).hash(&mut hasher),
            Instruction::Constant(Const::Float(v)) => v.to_bits().hash(&mut hasher),
            Instruction::Constant(Const::Int(v)) => v.hash(&mut hasher),
            Instruction::Bits(v) => v.hash(&mut hasher),
            Instruction::Input(k) | Instruction::Uniform(k) => k.hash(&mut hasher),
            _ => {}
        }
        hasher.finish()
    }

    /// True if both instructions compute the same. NaN equals NaN; the two zeros differ.
    pub(super) fn is_same(&self, other: &Instruction) -> bool {
        match (self, other) {
            (Instruction::Constant(Const::Float(a)), Instruction::Constant(Const::Float(b))) => {
                a.to_bits() == b.to_bits()
            }
            _ => self == other,
        }
    }

    /// Rewrites that change no bit of any result. The exception is the sign of a zero, if an integer 0 is added or if
    /// an integer 1 is a derivative.
    pub(super) fn written(&self, instructions: &[Instruction]) -> Written {
        use Primitive::{
            Add, Bfloat16, Chain, Divide, Equal, Float16, Less, LessEqual, Multiply, Negative, Subtract, Truthy,
        };
        let constant = |id: &Id| if let Instruction::Constant(c) = &instructions[id.at()] { Some(*c) } else { None };
        let truth = |id: &Id| if let Instruction::Truth(t) = &instructions[id.at()] { Some(*t) } else { None };
        let is = |id: &Id, n: i128| matches!(constant(id), Some(Const::Int(i)) if i == n);
        let whole = |id: &Id| match constant(id)? {
            Const::Int(i) => Some(i),
            other => other.small_integer(),
        };
        let is_one = |id: &Id| is(id, 1) || matches!(constant(id), Some(Const::Float(v)) if v == 1.0);
        match self {
            Instruction::Select(mask, a, b) => match truth(mask) {
                Some(chosen) => Written::As(if chosen { *a } else { *b }),
                None if a == b => Written::As(*a),
                None => Written::Itself,
            },
            Instruction::And(a, b) | Instruction::Or(a, b) => {
                let neutral = matches!(self, Instruction::And(..));
                match (truth(a), truth(b)) {
                    (Some(t), _) => Written::As(if t == neutral { *b } else { *a }),
                    (_, Some(t)) => Written::As(if t == neutral { *a } else { *b }),
                    _ if a == b => Written::As(*a),
                    _ => Written::Itself,
                }
            }
            Instruction::Not(a) => match &instructions[a.at()] {
                Instruction::Truth(t) => Written::Simpler(Instruction::Truth(!t)),
                Instruction::Not(b) => Written::As(*b),
                _ => Written::Itself,
            },
            Instruction::Reduce(Reduction::Sum | Reduction::Cumsum | Reduction::ReverseCumsum, x) if is(x, 0) => {
                Written::As(*x)
            }
            Instruction::Row(RowFunction::Shift(0), x) => Written::As(x[0]),
            // The others are linear, and a tangent of 0 contributes 0.
            Instruction::Row(RowFunction::Argsort | RowFunction::Scan(_), _) => Written::Itself,
            Instruction::Row(_, x) if is(&x[0], 0) => Written::As(x[0]),
            Instruction::Row(RowFunction::Reverse, x) => match &instructions[x[0].at()] {
                Instruction::Row(RowFunction::Reverse, inner) => Written::As(inner[0]),
                _ => Written::Itself,
            },
            Instruction::Detach(x)
                if matches!(instructions[x.at()], Instruction::Constant(_) | Instruction::Detach(_)) =>
            {
                Written::As(*x)
            }
            Instruction::Powi(x, 1) => Written::As(*x),
            Instruction::Powi(x, 2) => Written::Simpler(Instruction::apply(Primitive::Square, &[*x])),
            Instruction::Apply(p, x) => match (p, x.as_slice()) {
                (Multiply | Divide | Chain, [a, b]) if is_one(b) => Written::As(*a),
                (Chain, [_, b]) if is(b, 0) => Written::As(*b),
                (Multiply | Chain, [a, b]) if is_one(a) => Written::As(*b),
                (Multiply, [a, b]) if a == b => Written::Simpler(Instruction::apply(Primitive::Square, &[*a])),
                (Add | Subtract, [a, b]) if is(b, 0) => Written::As(*a),
                (Add, [a, b]) if is(a, 0) => Written::As(*b),
                (Subtract, [a, b]) if is(a, 0) && !is(b, 0) => Written::Simpler(Instruction::apply(Negative, &[*b])),
                (Float16 | Bfloat16, [a]) if matches!(&instructions[a.at()], Instruction::Apply(q, _) if q == p) => {
                    Written::As(*a)
                }
                (Negative, [a]) => match (&instructions[a.at()], constant(a)) {
                    (Instruction::Apply(Negative, inner), _) => Written::As(inner[0]),
                    (_, Some(Const::Int(i))) => Written::Simpler(Instruction::Constant(Const::Int(-i))),
                    (_, Some(Const::Float(v))) => Written::Simpler(Instruction::Constant(Const::Float(-v))),
                    _ => Written::Itself,
                },
                (Truthy, [a]) => match &instructions[a.at()] {
                    Instruction::Constant(Const::Int(i)) => Written::Simpler(Instruction::Truth(*i != 0)),
                    Instruction::Select(mask, a, b) => match (whole(a), whole(b)) {
                        (Some(1..), Some(0)) => Written::As(*mask),
                        (Some(0), Some(1..)) => Written::Simpler(Instruction::Not(*mask)),
                        _ => Written::Itself,
                    },
                    _ => Written::Itself,
                },
                (Equal | Less | LessEqual, [a, b]) => match (whole(a), whole(b)) {
                    (Some(a), Some(b)) => Written::Simpler(Instruction::Truth(match p {
                        Equal => a == b,
                        Less => a < b,
                        _ => a <= b,
                    })),
                    _ => Written::Itself,
                },
                _ => Written::Itself,
            },
            _ => Written::Itself,
        }
    }
}
