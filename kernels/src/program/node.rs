//! [`Node`]: one step of a program.

use smallvec::{SmallVec, smallvec};

use super::primitive::{Primitive, Scalar, Value};
use crate::number::scalar::{Const, Mask};
use crate::row::Reduction;

/// The index of a node in its program. A node precedes all nodes that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(pub u32);

impl Id {
    /// The index.
    #[inline]
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// The nodes that a node uses.
pub type Operands = SmallVec<[Id; 3]>;

/// One step of a program. It computes a number or a truth value.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// An element of the input at this position.
    Input(u32),
    /// A uniform: one number for all elements.
    Uniform(u32),
    /// A constant number.
    Constant(Const),
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
    /// The index of the element in its row, from 0.
    Position,
    /// The number of elements in the row.
    Count,
    /// The same number, but gradients don't flow through it.
    Detach(Id),
}

/// The type of a node's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// A truth value.
    Mask,
}

/// The result of rewriting a node.
pub(super) enum Written {
    /// An existing node.
    As(Id),
    /// A simpler node.
    Simpler(Node),
    /// The node, unchanged.
    Itself,
}

impl Node {
    pub(super) fn apply(primitive: Primitive, operands: &[Id]) -> Node {
        Node::Apply(primitive, SmallVec::from_slice(operands))
    }

    /// The type of its value.
    pub fn kind(&self) -> Kind {
        match self {
            Node::Truth(_) | Node::And(..) | Node::Or(..) | Node::Not(_) => Kind::Mask,
            Node::Apply(p, _) if p.is_test() => Kind::Mask,
            _ => Kind::Number,
        }
    }

    /// The operands, with the kind that each must have.
    pub fn operands(&self) -> SmallVec<[(Id, Kind); 3]> {
        use Kind::{Mask, Number};
        match self {
            Node::Input(_) | Node::Uniform(_) | Node::Constant(_) | Node::Epsilon | Node::Truth(_) => smallvec![],
            Node::Position | Node::Count => smallvec![],
            Node::Apply(_, operands) => operands.iter().map(|id| (*id, Number)).collect(),
            Node::Powi(x, _) | Node::Polygamma(x, _) | Node::Reduce(_, x) | Node::Detach(x) => smallvec![(*x, Number)],
            Node::Select(mask, a, b) => smallvec![(*mask, Mask), (*a, Number), (*b, Number)],
            Node::And(a, b) | Node::Or(a, b) => smallvec![(*a, Mask), (*b, Mask)],
            Node::Not(a) => smallvec![(*a, Mask)],
        }
    }

    /// Its value, computed from the values of the earlier nodes; `None` if the number type lacks the primitive.
    pub(super) fn value<T: Scalar>(&self, inputs: &[T], uniforms: &[T], before: &[Value<T>]) -> Option<Value<T>> {
        let number = |id: &Id| before[id.at()].number();
        let mask = |id: &Id| before[id.at()].mask();
        Some(match self {
            Node::Input(k) => Value::Number(inputs[*k as usize]),
            Node::Uniform(k) => Value::Number(uniforms[*k as usize]),
            Node::Constant(c) => Value::Number(T::constant(*c)),
            Node::Epsilon => Value::Number(T::apply_epsilon()?),
            Node::Truth(t) => Value::Mask(T::Mask::constant(*t)),
            Node::Apply(p, x) => T::apply(*p, &x.iter().map(number).collect::<Option<SmallVec<[T; 3]>>>()?)?,
            Node::Powi(x, n) => Value::Number(number(x)?.apply_powi(*n)?),
            Node::Polygamma(x, n) => Value::Number(number(x)?.apply_polygamma(*n)?),
            Node::Select(m, a, b) => Value::Number(T::select(mask(m)?, number(a)?, number(b)?)),
            Node::And(a, b) => Value::Mask(mask(a)? & mask(b)?),
            Node::Or(a, b) => Value::Mask(mask(a)? | mask(b)?),
            Node::Not(a) => Value::Mask(!mask(a)?),
            Node::Reduce(reduction, x) => Value::Number(number(x)?.apply_reduction(*reduction)?),
            Node::Position => Value::Number(T::apply_position()?),
            Node::Count => Value::Number(T::apply_count()?),
            Node::Detach(x) => Value::Number(number(x)?.apply_detach()),
        })
    }

    /// The same step with its operands renumbered.
    pub(super) fn moved(self, to: impl Fn(Id) -> Id) -> Node {
        match self {
            Node::Apply(p, operands) => Node::Apply(p, operands.into_iter().map(to).collect()),
            Node::Powi(x, n) => Node::Powi(to(x), n),
            Node::Polygamma(x, n) => Node::Polygamma(to(x), n),
            Node::Select(mask, a, b) => Node::Select(to(mask), to(a), to(b)),
            Node::And(a, b) => Node::And(to(a), to(b)),
            Node::Or(a, b) => Node::Or(to(a), to(b)),
            Node::Not(a) => Node::Not(to(a)),
            Node::Reduce(reduction, x) => Node::Reduce(reduction, to(x)),
            Node::Detach(x) => Node::Detach(to(x)),
            leaf => leaf,
        }
    }

    /// True if both nodes compute the same. NaN equals NaN; the two zeros differ.
    pub(super) fn is_same(&self, other: &Node) -> bool {
        match (self, other) {
            (Node::Constant(Const::Float(a)), Node::Constant(Const::Float(b))) => a.to_bits() == b.to_bits(),
            _ => self == other,
        }
    }

    /// Rewrites that change no bit of any result. The exception is the sign of a zero, if an integer 0 is added or if
    /// an integer 1 is a derivative.
    pub(super) fn written(&self, nodes: &[Node]) -> Written {
        use Primitive::{Add, Chain, Divide, Equal, Less, LessEqual, Multiply, Negative, Subtract, Truthy};
        let constant = |id: &Id| if let Node::Constant(c) = &nodes[id.at()] { Some(*c) } else { None };
        let truth = |id: &Id| if let Node::Truth(t) = &nodes[id.at()] { Some(*t) } else { None };
        let is = |id: &Id, n: i128| matches!(constant(id), Some(Const::Int(i)) if i == n);
        let whole = |id: &Id| match constant(id)? {
            Const::Int(i) => Some(i),
            other => other.small_integer(),
        };
        let is_one = |id: &Id| is(id, 1) || matches!(constant(id), Some(Const::Float(v)) if v == 1.0);
        match self {
            Node::Select(mask, a, b) => match truth(mask) {
                Some(chosen) => Written::As(if chosen { *a } else { *b }),
                None if a == b => Written::As(*a),
                None => Written::Itself,
            },
            Node::And(a, b) | Node::Or(a, b) => {
                let neutral = matches!(self, Node::And(..));
                match (truth(a), truth(b)) {
                    (Some(t), _) => Written::As(if t == neutral { *b } else { *a }),
                    (_, Some(t)) => Written::As(if t == neutral { *a } else { *b }),
                    _ if a == b => Written::As(*a),
                    _ => Written::Itself,
                }
            }
            Node::Not(a) => match &nodes[a.at()] {
                Node::Truth(t) => Written::Simpler(Node::Truth(!t)),
                Node::Not(b) => Written::As(*b),
                _ => Written::Itself,
            },
            Node::Reduce(Reduction::Sum | Reduction::Cumsum | Reduction::ReverseCumsum, x) if is(x, 0) => {
                Written::As(*x)
            }
            Node::Detach(x) if matches!(nodes[x.at()], Node::Constant(_) | Node::Detach(_)) => Written::As(*x),
            Node::Powi(x, 1) => Written::As(*x),
            Node::Powi(x, 2) => Written::Simpler(Node::apply(Primitive::Square, &[*x])),
            Node::Apply(p, x) => match (p, x.as_slice()) {
                (Multiply | Divide | Chain, [a, b]) if is_one(b) => Written::As(*a),
                (Chain, [_, b]) if is(b, 0) => Written::As(*b),
                (Multiply | Chain, [a, b]) if is_one(a) => Written::As(*b),
                (Multiply, [a, b]) if a == b => Written::Simpler(Node::apply(Primitive::Square, &[*a])),
                (Add | Subtract, [a, b]) if is(b, 0) => Written::As(*a),
                (Add, [a, b]) if is(a, 0) => Written::As(*b),
                (Subtract, [a, b]) if is(a, 0) && !is(b, 0) => Written::Simpler(Node::apply(Negative, &[*b])),
                (Negative, [a]) => match (&nodes[a.at()], constant(a)) {
                    (Node::Apply(Negative, inner), _) => Written::As(inner[0]),
                    (_, Some(Const::Int(i))) => Written::Simpler(Node::Constant(Const::Int(-i))),
                    (_, Some(Const::Float(v))) => Written::Simpler(Node::Constant(Const::Float(-v))),
                    _ => Written::Itself,
                },
                (Truthy, [a]) if matches!(constant(a), Some(Const::Int(_))) => Written::Simpler(Node::Truth(!is(a, 0))),
                (Equal | Less | LessEqual, [a, b]) => match (whole(a), whole(b)) {
                    (Some(a), Some(b)) => Written::Simpler(Node::Truth(match p {
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
