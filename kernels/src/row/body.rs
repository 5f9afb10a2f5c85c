//! [`Body`]: the computation of a row op, and the memory of its arguments.

use std::fmt;

use super::Row;
use crate::number::scalar::{Float, Machine, Real};

/// The maximum number of reductions in a body.
pub const MOST_REDUCTIONS: usize = 8;
/// The maximum number of passes for the reductions: each reduction depends on those of earlier passes.
pub const MOST_LEVELS: usize = 4;
/// The number of expensive functions whose results are kept for later passes.
pub(super) const KEPT: usize = 4;

/// A row body with its attributes: `I` inputs, `X` positions, `O` outputs.
pub trait Body<const I: usize, const X: usize, const O: usize> {
    /// True for each input with one value per element; the others have one per row.
    const ALONG: [bool; I];
    /// The same for outputs.
    const GIVES: [bool; O];
    /// An upper bound of the number of reductions, at most [`MOST_REDUCTIONS`].
    const REDUCTIONS: usize;
    /// The minimum and maximum number of passes for the reductions, at most [`MOST_LEVELS`]. Loops are compiled for
    /// each of these numbers.
    const LEVELS: (usize, usize);

    /// True if at least one reduction is [running](super::Reduction::is_running).
    const RUNS: bool;

    /// Computes one element.
    fn eval<R: Row>(&self, inputs: [R; I], at: [R::Index; X]) -> [R; O];
}

/// The rows of one argument: the first row, and the distance in bytes from one row to the next.
#[derive(Clone, Copy, Debug)]
pub struct Rows<P> {
    /// The first element of the first row.
    pub data: P,
    /// In bytes.
    pub step: isize,
    /// True if it is [too large](crate::LARGE) for the cache. Such results bypass the cache.
    pub is_large: bool,
}

impl<T> Rows<*const T> {
    #[inline(always)]
    /// A pointer to the row.
    pub fn row(self, row: usize) -> *const T {
        self.data.wrapping_byte_offset(row as isize * self.step)
    }
}

impl<T> Rows<*mut T> {
    #[inline(always)]
    /// A pointer to the row.
    pub fn row(self, row: usize) -> *mut T {
        self.data.wrapping_byte_offset(row as isize * self.step)
    }
}

/// A position that is out of range for the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The index of the argument among the positions.
    pub argument: usize,
    /// Its value.
    pub index: i64,
    /// The length of the row.
    pub len: usize,
}

/// The reason why rows can't be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowError {
    /// A position is out of range.
    OutOfRange(OutOfRange),
    /// The reductions are more, or deeper nested, than the body declares.
    Reductions {
        /// The number of reductions.
        count: usize,
        /// The depth of reductions that depend on one another.
        levels: usize,
    },
    /// A running reduction in a body that declares none.
    Runs,
    /// An output that is declared to have one value per row differs from element to element.
    Varies(usize),
    /// A number that depends on no input is reduced, or its row is used.
    Constant,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowError::OutOfRange(o) => write!(f, "index {} is out of range for a row of {}", o.index, o.len),
            RowError::Reductions { count, levels } => write!(
                f,
                "the body has {count} reductions, {levels} of which depend on one another; the limits are {MOST_REDUCTIONS} and \
                 {MOST_LEVELS}, and lower in helpers, loops and branches on attributes; write the reductions in the body \
                 itself, or split the op"
            ),
            RowError::Runs => f.write_str("the body has a running sum, but is declared without one"),
            RowError::Varies(k) => {
                write!(f, "the shape clause declares one number per row for output {k}, but the body computes a row")
            }
            RowError::Constant => f.write_str(
                "the body reduces a constant, or uses its count() or position(), but a constant has no row; add an input times 0 \
                 to it, or use the count() of an input",
            ),
        }
    }
}

/// A type that rows are computed in: floats, and integers of 64 bits.
pub trait Computed: Real + Machine {
    /// 0, for initial values.
    const ZERO: Self;
    /// True if loops are compiled for every SIMD level. Debug builds do not vectorize, so one level suffices for them: row
    /// loops take most of their compile time.
    const FOR_EACH_LEVEL: bool = Self::VECTORIZE && !cfg!(debug_assertions);

    /// The position in a row of `n` elements that this number is.
    fn as_position(self, n: usize) -> Option<usize>;
}

/// A float type that rows are computed in.
pub trait ComputedFloat: Computed + Float {}
impl<T: Computed + Float> ComputedFloat for T {}

macro_rules! computed {
    ($($t:ty: $zero:literal;)*) => {$(
        impl Computed for $t {
            const ZERO: $t = $zero;

            #[inline(always)]
            fn as_position(self, n: usize) -> Option<usize> {
                // The conversion of a float saturates, and converts NaN to 0.
                let at = self as usize;
                (at < n && at as $t == self).then_some(at)
            }
        }
    )*};
}
computed! { f32: 0.0; f64: 0.0; i64: 0; u64: 0; }
