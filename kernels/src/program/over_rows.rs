//! [`OverRows`]: how a program over elements is used for the elements of rows.

use crate::row::Reduction;

/// How a program over elements is used for the elements of rows. Its machine code may have a loop over rows: the uniforms of each row
/// hold the numbers of that row.
#[derive(Clone, Debug, Default)]
pub struct OverRows {
    /// Whether there is a loop over rows.
    pub has_loop: bool,
    /// The reductions, to which the last inputs and outputs belong, with the uniforms to which a loop over rows writes their results.
    pub reductions: Vec<(Reduction, usize)>,
}
