//! A formula with resolved names: calls of ops, and values that are known without tensors.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::attr::Attr;
use crate::problem::Extent;

/// A resolved formula of a gradient, or of tangents.
#[derive(Clone, Debug, Default)]
pub struct Gradient {
    /// The `let`s, in order.
    pub lets: Vec<Let>,
    /// The gradients of inputs, or the tangents of outputs.
    pub entries: Vec<Entry>,
    /// Positions of the inputs without a gradient: `x: none`, or `_` as the tangent.
    pub without: Vec<usize>,
    /// The number of names that the `let`s bind.
    pub slots: usize,
    /// The inputs that it mentions.
    pub saved_inputs: BTreeSet<usize>,
    /// The outputs that it mentions.
    pub saved_outputs: BTreeSet<usize>,
}

/// The gradient of one input, or the tangent of one output.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The position of the input or output.
    pub of: usize,
    /// Its value, a tensor.
    pub value: ResolvedExpr,
    /// The names that it mentions.
    pub mentions: BTreeSet<String>,
}

/// `let a = x;`, `let (a, b) = f(x);`, `let (a, b) = (x, y);`
#[derive(Clone, Debug)]
pub struct Let {
    /// The names that it binds.
    pub names: Vec<String>,
    /// The extent of the pattern.
    pub pattern: Extent,
    /// The slots of the names.
    pub slots: Range<usize>,
    /// The value.
    pub value: Bound,
    /// The names that the value mentions.
    pub mentions: BTreeSet<String>,
    /// The positions of the entries that use it, as in [`Entry::of`].
    pub users: Vec<usize>,
}

/// The value of a `let`.
#[derive(Clone, Debug)]
pub enum Bound {
    /// One value.
    One(ResolvedExpr),
    /// The outputs of a call.
    Outputs(ResolvedExpr),
    /// A value for each name.
    Each(Vec<ResolvedExpr>),
}

/// An expression whose names are resolved.
#[derive(Clone, Debug)]
pub struct ResolvedExpr {
    /// Its kind.
    pub kind: ResolvedKind,
    /// Its extent, without enclosing parentheses.
    pub at: Extent,
    /// Whether it is a tensor.
    pub is_tensor: bool,
}

/// The kind of a resolved expression.
#[derive(Clone, Debug)]
pub enum ResolvedKind {
    /// A name.
    Name(Name),
    /// A constant.
    Const(Attr),
    /// A property of a tensor.
    Property(Box<ResolvedExpr>, Property),
    /// Whether an input is absent (true) or present (false): `weight == None`.
    IsNone(Box<ResolvedExpr>, bool),
    /// `[a, b]`
    List(Vec<ResolvedExpr>),
    /// The call of an op.
    Call {
        /// The op.
        op: String,
        /// The extent of its name or sign.
        op_at: Extent,
        /// The positional arguments.
        args: Vec<ResolvedExpr>,
        /// The keywords.
        keywords: Vec<(String, ResolvedExpr)>,
    },
    /// An operator on values that are not tensors.
    Operator(&'static str, Vec<ResolvedExpr>),
    /// An element of a list that is not a tensor.
    Index(Box<[ResolvedExpr; 2]>),
    /// A choice by a condition that is not a tensor.
    If(Box<[ResolvedExpr; 3]>),
    /// `if let Some(b) = bias { … } else { … }`, only in Rust.
    IfLet(Extent, Box<[ResolvedExpr; 3]>),
    /// `match`, only in Rust.
    Match(Box<ResolvedExpr>, Vec<(Extent, ResolvedExpr)>),
    /// `{ let a = x; a * a }`
    Block(Vec<Let>, Box<ResolvedExpr>),
    /// Any other Rust code that is not a tensor, with the values in it.
    Rust(Vec<ResolvedExpr>),
}

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Name {
    /// The cotangent of the output at that position.
    Cotangent(usize),
    /// The tangent of the input at that position.
    Tangent(usize),
    /// The input at that position.
    Input(usize),
    /// The output at that position.
    Output(usize),
    /// The attribute at that position.
    Attr(usize),
    /// The dimension at that position among the names of dimensions.
    Dim(usize),
    /// A `let`, and whether it is a tensor.
    Slot(usize, bool),
    /// A name bound by a Rust pattern, and whether it is a tensor.
    Pattern(bool),
}

/// A property of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Property {
    /// Its shape.
    Shape,
    /// Its dtype.
    DType,
    /// The number of its dimensions.
    Ndim,
}

/// The properties by their names.
pub const PROPERTIES: &[(&str, Property)] =
    &[("shape", Property::Shape), ("dtype", Property::DType), ("ndim", Property::Ndim)];

/// The ops of the binary operators.
pub const BINARY: &[(&str, &str)] = &[
    ("+", "add"),
    ("-", "subtract"),
    ("*", "multiply"),
    ("/", "divide"),
    ("%", "remainder"),
    ("&&", "logical_and"),
    ("||", "logical_or"),
    ("&", "bitwise_and"),
    ("|", "bitwise_or"),
    ("^", "bitwise_xor"),
    ("<<", "bitwise_left_shift"),
    (">>", "bitwise_right_shift"),
    ("<", "less"),
    ("<=", "less_equal"),
    (">", "greater"),
    (">=", "greater_equal"),
    ("==", "equal"),
    ("!=", "not_equal"),
];

/// The ops of the unary operators.
pub const UNARY: &[(&str, &str)] = &[("-", "negative"), ("!", "logical_not")];

impl Name {
    /// Whether it is a tensor.
    pub fn is_tensor(self) -> bool {
        match self {
            Name::Cotangent(_) | Name::Tangent(_) | Name::Input(_) | Name::Output(_) => true,
            Name::Attr(_) | Name::Dim(_) => false,
            Name::Slot(_, is_tensor) | Name::Pattern(is_tensor) => is_tensor,
        }
    }
}

impl ResolvedExpr {
    /// The values that it is computed from directly, and those of its `let`s.
    pub fn parts(&self) -> Vec<&ResolvedExpr> {
        match &self.kind {
            ResolvedKind::Name(_) | ResolvedKind::Const(_) => vec![],
            ResolvedKind::Property(of, _) | ResolvedKind::IsNone(of, _) => vec![of],
            ResolvedKind::List(items) | ResolvedKind::Operator(_, items) | ResolvedKind::Rust(items) => {
                items.iter().collect()
            }
            ResolvedKind::Call { args, keywords, .. } => args.iter().chain(keywords.iter().map(|(_, n)| n)).collect(),
            ResolvedKind::Index(parts) => parts.iter().collect(),
            ResolvedKind::If(parts) | ResolvedKind::IfLet(_, parts) => parts.iter().collect(),
            ResolvedKind::Match(of, arms) => std::iter::once(&**of).chain(arms.iter().map(|(_, n)| n)).collect(),
            ResolvedKind::Block(lets, value) => {
                lets.iter().flat_map(|l| l.value.nodes()).chain(std::iter::once(&**value)).collect()
            }
        }
    }
}

impl Bound {
    /// The values.
    pub fn nodes(&self) -> &[ResolvedExpr] {
        match self {
            Bound::One(node) | Bound::Outputs(node) => std::slice::from_ref(node),
            Bound::Each(nodes) => nodes,
        }
    }
}
