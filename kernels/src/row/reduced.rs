//! The reduction of a row in memory, in the order in which the passes of a body reduce.

use super::Reduction;
use super::body::{Computed, KEPT};
use super::sweep::{Lanes, Sections, Sweep, sweep};
use crate::reduce::rows::{FEW, few};
use crate::runtime::simd::clones;

/// Calls `$function` with a constant reduction, so that each arm is a loop of its own.
macro_rules! by_kind {
    ($kind:expr, $function:ident($($arg:expr),*)) => {
        match $kind {
            Reduction::Prod => $function($($arg,)* Reduction::Prod),
            Reduction::Max => $function($($arg,)* Reduction::Max),
            Reduction::Min => $function($($arg,)* Reduction::Min),
            _ => $function($($arg,)* Reduction::Sum),
        }
    };
}
pub(crate) use by_kind;

/// The sweep over the elements of a row.
struct Elements<'a, T> {
    row: &'a [T],
    reduction: Reduction,
}

impl<T: Computed> Sweep<T, 1> for Elements<'_, T> {
    const ACCUMULATED: usize = 1;

    #[inline(always)]
    unsafe fn element(&self, position: usize, lane: usize, values: &mut [Lanes<T>; 1], _: &mut [Lanes<T>; KEPT]) {
        // SAFETY: by contract.
        let (x, value) = unsafe { (*self.row.get_unchecked(position), values[0].get_unchecked_mut(lane)) };
        *value = self.reduction.combine(*value, x);
    }
}

#[inline(always)]
fn by<T: Computed>(row: &[T], reduction: Reduction) -> T {
    if row.len() <= FEW {
        return few(row.len(), reduction.identity(), |i| row[i], |a, b| reduction.combine(a, b));
    }
    let mut sections = Sections::new();
    // SAFETY: the row has that length.
    unsafe { sweep(&Elements { row, reduction }, row.len(), &[Some(reduction)], &mut sections)[0] }
}

clones! {
    /// The result of a reduction that is not running. It has the same bits as the passes of a body.
    pub <[T]> fn reduced(row: &[T], reduction: Reduction) -> T where [T: Computed] if [T::FOR_EACH_LEVEL] {
        by_kind!(reduction, by(row))
    }
}
