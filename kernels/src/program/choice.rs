//! Which ways of computing rows a [`RowPlan`] has, and which is the fastest.

use super::stages::{Part, Stage};
use super::{RowPlan, Tile};
use crate::reduce::rows::SECTION;
use crate::row::{Computed, LANES, Rows};

impl RowPlan {
    /// Whether machine code computes each row as a whole. It is assembled only after many rows of this length.
    pub fn has_whole_rows<T: Tile>(&self, n: usize, rows: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.code_of_whole_rows::<T>(n, rows, &[]).is_some();
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (n, rows);
            false
        }
    }

    /// Runs the plan as [`RowPlan::run`] does, if machine code computes each row as a whole. For an output marked in `sums`, which may be
    /// shorter than the outputs, each row is added to the same memory. Returns whether it has run.
    ///
    /// # Panics
    /// As for [`RowPlan::run`].
    ///
    /// # Safety
    /// As for [`RowPlan::run`].
    pub unsafe fn run_whole_rows<T: Tile + Computed>(
        &self,
        n: usize,
        rows: usize,
        inputs: &[Rows<*const T>],
        uniforms: &[Rows<*const T>],
        outputs: &[Rows<*mut T>],
        sums: &[bool],
    ) -> bool {
        self.check_arguments(inputs.len(), uniforms.len(), outputs.len());
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's contract.
        return unsafe { self.compute_whole_rows(n, rows, inputs, uniforms, outputs, sums) };
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (n, rows, sums);
            false
        }
    }

    /// Whether one call of machine code reduces several rows of `n` elements to numbers.
    pub fn reduces_at_once<T: Tile>(&self, n: usize) -> bool {
        let stages = self.uniform();
        let has_loop = |part: &Part| part.plan.has_loop_over_rows::<T>(n);
        let is_at_once = |stage: &Stage| {
            stage.elements.is_none() && stage.sums.as_ref().map_or(stage.reductions.is_empty(), |s| has_loop(&s.part))
        };
        (LANES..=SECTION).contains(&n) && stages.are_one_pass() && stages.all.iter().all(is_at_once)
    }

    /// Whether machine code is faster than the loops that rustc compiles from the same body, for rows of `n` elements. It is, unless these
    /// loops compute whole blocks, and little more than sums and products: they go through all stages of a row without a call.
    pub fn is_faster_than_compiled<T: Tile>(&self, n: usize) -> bool {
        let is_whole = n >= 2 * LANES && n.is_multiple_of(LANES);
        let is_fast = n < LANES || self.is_at_once::<T>(n);
        self.is_machine_code::<T>() && is_fast && (!is_whole || self.is_dear())
    }

    /// Whether one call of machine code computes a stage of several rows of `n` elements.
    pub fn is_at_once<T: Tile>(&self, n: usize) -> bool {
        let has_loop = |part: &Part| part.plan.has_loop_over_rows::<T>(n);
        let is_one_call = |stage: &Stage| !stage.takes_whole_rows() && stage.pass().is_none_or(has_loop);
        (LANES..=SECTION).contains(&n) && self.uniform().all.iter().all(is_one_call)
    }
}
