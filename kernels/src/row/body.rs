//! [`Body`]: what a row op computes, and the memory of its arguments.

use std::fmt;

use super::Row;
use crate::scalar::{Float, Machine};

/// The most reductions that a body may have.
pub const MOST_REDUCTIONS: usize = 8;
/// The most passes that its reductions may take: each depends on those of the passes before.
pub const MOST_LEVELS: usize = 4;
/// So many functions that are dear to compute are kept for the passes that follow.
pub(super) const KEPT: usize = 4;

/// A row body with its attributes: `I` inputs, `X` positions, `O` outputs.
pub trait Body<const I: usize, const X: usize, const O: usize> {
    /// Which inputs have an element for each of the row, rather than one for the whole row.
    const ALONG: [bool; I];
    /// The same of outputs.
    const GIVES: [bool; O];
    /// An upper bound of its reductions, at most [`MOST_REDUCTIONS`].
    const REDUCTIONS: usize;
    /// The least and the most passes that these may take, at most [`MOST_LEVELS`]: loops are compiled for all of them.
    const LEVELS: (usize, usize);

    /// Whether any of them is [running](super::Reduction::is_running).
    const RUNS: bool;

    /// Computes one element.
    fn eval<R: Row>(&self, inputs: [R; I], at: [R::Index; X]) -> [R; O];
}

/// The rows of one argument: those of the first row, and how many bytes the next one's are away.
#[derive(Clone, Copy, Debug)]
pub struct Operand<P> {
    /// The first element of the first row.
    pub data: P,
    /// In bytes.
    pub step: isize,
    /// Whether it is [too large](crate::LARGE) for the cache, which results are then written past.
    pub is_large: bool,
}

impl<T> Operand<*const T> {
    #[inline(always)]
    /// Its elements of a row.
    pub fn row(self, row: usize) -> *const T {
        self.data.wrapping_byte_offset(row as isize * self.step)
    }
}

impl<T> Operand<*mut T> {
    #[inline(always)]
    /// Its elements of a row.
    pub fn row(self, row: usize) -> *mut T {
        self.data.wrapping_byte_offset(row as isize * self.step)
    }
}

/// A position that no element of the row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Which of the positions.
    pub argument: usize,
    /// Its value.
    pub index: i64,
    /// The length of the row.
    pub len: usize,
}

/// Why rows can't be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A position is outside of its row.
    Outside(Outside),
    /// There are more reductions than the body was declared to have, or deeper ones.
    Reductions {
        /// How many there are.
        count: usize,
        /// How many depend on one another.
        levels: usize,
    },
    /// There is a running sum, where the body was declared to have none.
    Runs,
    /// An output that has one number for each row differs from element to element.
    Varies(usize),
    /// A number that depends on no input is reduced, or asked for its row.
    Constant,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Outside(o) => write!(f, "index {} is outside of a row of {}", o.index, o.len),
            Wrong::Reductions { count, levels } => write!(
                f,
                "the body has {count} reductions, {levels} of which depend on one another: at most {MOST_REDUCTIONS} and \
                 {MOST_LEVELS} can be compiled, and fewer where they stand in helpers, loops or branches on attributes; \
                 write them in the body itself, or split the op"
            ),
            Wrong::Runs => f.write_str("the body has a running sum, but was declared to have none"),
            Wrong::Varies(k) => {
                write!(f, "output {k} has one number for each row by the shape clause, but the body gives a row")
            }
            Wrong::Constant => f.write_str(
                "the body reduces a constant, or asks for its count or position, and a constant belongs to no row; add an \
                 input times 0 to it, or use the count() of an input",
            ),
        }
    }
}

/// A float that rows are computed in.
pub trait Computed: Float + Machine {
    /// 0, for initial values.
    const ZERO: Self;
}
impl Computed for f32 {
    const ZERO: f32 = 0.0;
}
impl Computed for f64 {
    const ZERO: f64 = 0.0;
}
