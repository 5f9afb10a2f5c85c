//! Expressions as trees.

mod parse;

use crate::attr::Attr;
use crate::problem::Extent;

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its kind.
    pub kind: ExprKind,
    /// Its extent, without enclosing parentheses.
    pub at: Extent,
    /// The depth of nesting of its parts.
    depth: usize,
}

/// The kind of an expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// `x`
    Name(String),
    /// `2`
    Int(i64),
    /// `0.5`
    Float(f64),
    /// `true`, `None`, `"mean"`
    Const(Attr),
    /// `-x`, `!x`
    Unary {
        /// The operator.
        sign: &'static str,
        /// Its extent.
        sign_at: Extent,
        /// The operand.
        inner: Box<Expr>,
    },
    /// `x * y`
    Binary {
        /// The operator.
        sign: &'static str,
        /// Its extent.
        sign_at: Extent,
        /// The operands.
        sides: Box<[Expr; 2]>,
    },
    /// `f(a, b, name = c)`; the receiver of a method is the first argument.
    Call {
        /// The function, with its namespace.
        name: String,
        /// The extent of its name.
        name_at: Extent,
        /// Whether it is a method.
        is_method: bool,
        /// The arguments.
        args: Vec<Argument>,
    },
    /// `x.shape`
    Property {
        /// The tensor.
        of: Box<Expr>,
        /// The property.
        name: String,
        /// The extent of its name.
        name_at: Extent,
    },
    /// `x.shape[0]`
    Index(Box<[Expr; 2]>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `(a, b)`
    Tuple(Vec<Expr>),
    /// `if c { a } else { b }`
    If(Box<[Expr; 3]>),
    /// `if let Some(b) = bias { a } else { b }`: the pattern, the matched value, the branches. Only in Rust.
    IfLet(Extent, Box<[Expr; 3]>),
    /// `match mode { Mode::A => a, _ => b }`: the matched value, the patterns and values. Only in Rust.
    Match(Box<Expr>, Vec<(Extent, Expr)>),
    /// `{ let a = x; a * a }`
    Block(Vec<Let>, Box<Expr>),
    /// Any other Rust code, with the expressions in it: a cast, a constant, a closure, a macro. Only in Rust.
    Rust(Vec<Expr>),
}

/// `x`, `axis = -1`
#[derive(Clone, Debug)]
pub struct Argument {
    /// The keyword.
    pub keyword: Option<String>,
    /// The value.
    pub value: Expr,
}

/// `let a = x;`, `let (a, b) = f(x);`
#[derive(Clone, Debug)]
pub struct Let {
    /// The names that it binds, in order.
    pub names: Vec<String>,
    /// Whether the names are in parentheses.
    pub is_tuple: bool,
    /// The extent of the pattern.
    pub pattern: Extent,
    /// The value.
    pub value: Expr,
}

impl ExprKind {
    fn depth(&self) -> usize {
        let deepest = |all: &[Expr]| all.iter().map(|e| e.depth).max().unwrap_or(0);
        match self {
            ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Const(_) => 0,
            ExprKind::Unary { inner, .. } => inner.depth,
            ExprKind::Property { of, .. } => of.depth,
            ExprKind::Binary { sides, .. } | ExprKind::Index(sides) => deepest(&sides[..]),
            ExprKind::Call { args, .. } => args.iter().map(|a| a.value.depth).max().unwrap_or(0),
            ExprKind::List(items) | ExprKind::Tuple(items) | ExprKind::Rust(items) => deepest(items),
            ExprKind::If(parts) | ExprKind::IfLet(_, parts) => deepest(&parts[..]),
            ExprKind::Match(of, arms) => arms.iter().map(|(_, e)| e.depth).max().unwrap_or(0).max(of.depth),
            ExprKind::Block(lets, value) => lets.iter().map(|l| l.value.depth).max().unwrap_or(0).max(value.depth),
        }
    }
}
