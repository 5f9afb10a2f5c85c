//! [`Form`]: a program in instructions that a CPU has, for one element.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::program::Storage;
use crate::row::Reduction;

/// The index of a node in its form. A node precedes all nodes that use it.
pub type Id = u32;

/// The size of a number, in bytes. A truth value has the width of the numbers that were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// `f32` and `u32`.
    Single = 4,
    /// `f64` and `u64`.
    Double = 8,
}

impl Width {
    /// The number of bits.
    pub fn bits(self) -> u32 {
        8 * self as u32
    }

    /// The number whose only bit is the highest.
    pub fn sign(self) -> u64 {
        1 << (self.bits() - 1)
    }

    /// The bits of `1 / c`, if `c` is a power of 2 such that `x / c` has the bits of `x * (1 / c)`.
    fn inverse_of_power(self, c: u64) -> Option<u64> {
        macro_rules! inverse {
            ($float:ty, $bits:ty) => {{
                let (c, significand) = (<$float>::from_bits(c as $bits), (1 << (<$float>::MANTISSA_DIGITS - 1)) - 1);
                let is_power = c.to_bits() & significand == 0 && c.is_normal() && c.recip().is_normal();
                is_power.then(|| c.recip().to_bits().into())
            }};
        }
        match self {
            Width::Single => inverse!(f32, u32),
            Width::Double => inverse!(f64, u64),
        }
    }
}

/// The operation of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "some are in machine code only"))]
pub enum Op {
    /// An element of the input at this position, and how it is stored.
    Input(u32, Storage),
    /// Whether the byte of the input at this position is not 0.
    Test(u32),
    /// The uniform at this position.
    Uniform(u32),
    /// A constant, by its bits.
    Constant(u64),
    /// A constant truth value.
    Truth(bool),
    /// Sum, difference, product and quotient of floats.
    Add,
    Subtract,
    Multiply,
    Divide,
    /// C's `fmod` of floats. No CPU has an instruction for it.
    Fmod,
    /// The square root of a float.
    Sqrt,
    /// `±(a · b) ± c`, rounded once.
    MulAdd {
        /// Whether the product is negated.
        minus: bool,
        /// Whether the third operand is subtracted.
        less: bool,
    },
    /// `a < b ? a : b`
    Min,
    /// `a > b ? a : b`
    Max,
    /// A float, rounded to an integer.
    Round(Rounding),
    /// Bits of two operands.
    And,
    Or,
    Xor,
    /// `!a & b`
    AndNot,
    /// Sum and difference of integers, and the product of the lower 32 bits of integers.
    AddInt,
    SubtractInt,
    MultiplyInt,
    /// Shifts of an unsigned integer by a constant.
    ShiftLeft(u32),
    ShiftRight(u32),
    /// The lower half of the product of integers.
    MultiplyWrapping,
    /// Shifts of an unsigned integer by another; 0 if that is the width or more.
    ShiftLeftBy,
    ShiftRightBy,
    /// A shift of a signed integer by an unsigned one; the sign if that is the width or more.
    ShiftRightSignedBy,
    /// A float of twice the width.
    Widen,
    /// A float of half the width.
    Narrow,
    /// The integer of 64 bits whose lower half is an integer, and whose upper half is 0.
    WidenBits,
    /// The lower half of an integer of 64 bits.
    NarrowBits,
    /// The float nearest to a signed integer.
    OfSigned,
    /// The float16 nearest to an `f32`.
    NearestFloat16,
    /// Comparisons of floats.
    Less,
    LessEqual,
    Equal,
    /// Comparisons of integers: unsigned, signed, and for equality.
    LessInt,
    GreaterSigned,
    EqualInt,
    /// Whether the highest bit is set.
    IsNegative,
    /// Logic of truth values.
    Both,
    Either,
    Not,
    /// The truth value in twice and in half the width.
    WidenTruth,
    NarrowTruth,
    /// The second operand where the first is true, the third elsewhere.
    Select,
    /// A comparison of floats, and the product of the last two operands where the first is true, 0 elsewhere. AVX-512 has them.
    Unequal,
    MultiplyIf,
    /// A number of a row: the reduction of its elements. These operations are in the forms of whole rows only.
    Reduce(Reduction),
    /// A number of a row, for each of its elements.
    Repeat,
}

/// A direction of rounding, by its number in the instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    Nearest = 0,
    Down = 1,
    Up = 2,
    Truncate = 3,
}

impl Op {
    /// The number of operands.
    pub fn arity(self) -> usize {
        match self {
            Op::Input(..) | Op::Test(_) | Op::Uniform(_) | Op::Constant(_) | Op::Truth(_) => 0,
            Op::Sqrt | Op::Round(_) | Op::ShiftLeft(_) | Op::ShiftRight(_) => 1,
            Op::Widen | Op::Narrow | Op::OfSigned | Op::NearestFloat16 | Op::WidenBits | Op::NarrowBits => 1,
            Op::IsNegative | Op::Not | Op::WidenTruth | Op::NarrowTruth | Op::Reduce(_) | Op::Repeat => 1,
            Op::MulAdd { .. } | Op::Select | Op::MultiplyIf => 3,
            _ => 2,
        }
    }

    /// True if the result is a truth value.
    pub fn is_truth(self) -> bool {
        use Op::*;
        matches!(self, Test(_) | Truth(_) | Less | LessEqual | Equal | LessInt | GreaterSigned | EqualInt | IsNegative)
            || matches!(self, Both | Either | Not | WidenTruth | NarrowTruth | Unequal)
    }

    /// True if the first two operands may be exchanged.
    fn is_commutative(self) -> bool {
        use Op::*;
        matches!(
            self,
            Add | Multiply
                | And
                | Or
                | Xor
                | AddInt
                | MultiplyInt
                | MultiplyWrapping
                | Equal
                | EqualInt
                | MulAdd { .. }
        )
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub op: Op,
    /// The width of the result.
    pub width: Width,
    operands: [Id; 3],
}

impl Node {
    /// A node. The operands of a commutative operation have an order: a constant is the second.
    pub fn new(op: Op, width: Width, operands: &[Id]) -> Node {
        debug_assert_eq!(op.arity(), operands.len());
        let mut all = [0; 3];
        all[..operands.len()].copy_from_slice(operands);
        Node { op, width, operands: all }
    }

    /// Its operands.
    pub fn operands(&self) -> &[Id] {
        &self.operands[..self.op.arity()]
    }

    /// Whether it is no input that is stored in another way than as numbers of the program.
    #[cfg(target_arch = "x86_64")]
    pub fn has_own_storage(&self) -> bool {
        match self.op {
            Op::Input(_, storage) => matches!(storage, Storage::Own | Storage::One),
            op => !matches!(op, Op::Test(_)),
        }
    }
}

/// A list of nodes, and the nodes that are the outputs.
#[derive(Clone, Debug, Default)]
pub struct Form {
    pub nodes: Vec<Node>,
    pub outputs: Vec<Id>,
    seen: HashMap<Node, Id>,
    /// Whether it has a function without a form.
    is_refused: bool,
}

/// The maximum number of nodes. Larger programs are interpreted.
const MOST_NODES: usize = 1 << 14;

impl Form {
    /// Adds a node, or returns an existing node that computes the same.
    pub fn add(&mut self, op: Op, width: Width, operands: &[Id]) -> Id {
        if let (Op::Divide, [a, b]) = (op, operands)
            && let Op::Constant(c) = self.nodes[*b as usize].op
            && let Some(inverse) = width.inverse_of_power(c)
        {
            let inverse = self.add(Op::Constant(inverse), width, &[]);
            return self.add(Op::Multiply, width, &[*a, inverse]);
        }
        let mut node = Node::new(op, width, operands);
        let constant = |id: Id| matches!(self.nodes[id as usize].op, Op::Constant(_));
        if op.is_commutative() && constant(node.operands[0]) {
            node.operands.swap(0, 1);
        }
        let node = self.simpler(node);
        if let Some(id) = self.seen.get(&node) {
            return *id;
        }
        let id = self.nodes.len() as Id;
        self.nodes.push(node);
        self.seen.insert(node, id);
        id
    }

    /// A node that computes the same in fewer instructions.
    fn simpler(&self, node: Node) -> Node {
        let [a, b, c] = node.operands;
        let at = |id: Id| self.nodes[id as usize];
        let negated = |id: Id| match at(id) {
            Node { op: Op::Xor, operands: [x, sign, _], .. } => {
                (at(sign).op == Op::Constant(node.width.sign())).then_some(x)
            }
            _ => None,
        };
        match node.op {
            Op::MulAdd { minus, less } => match (negated(a), negated(b), negated(c)) {
                (Some(a), ..) => self.simpler(Node::new(Op::MulAdd { minus: !minus, less }, node.width, &[a, b, c])),
                (_, Some(b), _) => self.simpler(Node::new(Op::MulAdd { minus: !minus, less }, node.width, &[a, b, c])),
                (.., Some(c)) => self.simpler(Node::new(Op::MulAdd { minus, less: !less }, node.width, &[a, b, c])),
                _ => node,
            },
            Op::Select => match at(a) {
                Node { op: Op::Less, operands, width, .. } if width == node.width => match operands {
                    [x, y, _] if (x, y) == (b, c) => Node::new(Op::Min, width, &[b, c]),
                    [x, y, _] if (x, y) == (c, b) => Node::new(Op::Max, width, &[b, c]),
                    _ => node,
                },
                _ => node,
            },
            _ => node,
        }
    }

    /// The form without the nodes that no output needs.
    pub fn without_dead(&self) -> Form {
        let mut is_alive = vec![false; self.nodes.len()];
        self.outputs.iter().for_each(|id| is_alive[*id as usize] = true);
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if is_alive[at] {
                node.operands().iter().for_each(|id| is_alive[*id as usize] = true);
            }
        }
        self.in_order(&(0..self.nodes.len()).filter(|at| is_alive[*at]).collect::<Vec<_>>())
    }

    /// The form of these nodes in this order. They are all that the outputs need.
    pub fn in_order(&self, order: &[usize]) -> Form {
        let mut form = Form::default();
        let mut moved: Vec<Id> = vec![0; self.nodes.len()];
        for at in order {
            moved[*at] = form.nodes.len() as Id;
            let mut node = self.nodes[*at];
            node.operands[..node.op.arity()].iter_mut().for_each(|id| *id = moved[*id as usize]);
            form.nodes.push(node);
        }
        form.outputs = self.outputs.iter().map(|id| moved[*id as usize]).collect();
        form
    }
}

thread_local! {
    /// The form that is being recorded on this thread.
    static RECORDED: RefCell<Option<Form>> = const { RefCell::new(None) };
}

/// Records the form of a body, which returns the outputs. `None` if the body returns none, if the form is too large, or if
/// a function has no form.
pub fn record(body: impl FnOnce() -> Option<Vec<Id>>) -> Option<Form> {
    /// Ends the recording even if the body panics.
    struct Open;
    impl Drop for Open {
        fn drop(&mut self) {
            RECORDED.with_borrow_mut(Option::take);
        }
    }
    RECORDED.with_borrow_mut(|form| *form = Some(Form::default()));
    let _open = Open;
    let outputs = body()?;
    let mut form = RECORDED.with_borrow_mut(Option::take)?;
    form.outputs = outputs;
    (!form.is_refused).then(|| form.without_dead())
}

/// Refuses the form that is being recorded: [`record`] returns `None`.
pub fn refuse() {
    RECORDED.with_borrow_mut(|form| form.iter_mut().for_each(|form| form.is_refused = true));
}

/// Adds a node to the form that is being recorded.
///
/// # Panics
/// Outside of [`record`].
pub fn push(op: Op, width: Width, operands: &[Id]) -> Id {
    RECORDED.with_borrow_mut(|form| {
        let form = form.as_mut().expect("a form is being recorded");
        form.is_refused |= form.nodes.len() == MOST_NODES;
        if form.is_refused { 0 } else { form.add(op, width, operands) }
    })
}
