//! Runs a [`RowPlan`] over short rows, each as a whole in registers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::row_plan::{RowPlan, uniforms_of};
use super::{OverRows, Tile};
use crate::code::Routine;
use crate::number::scalar::Const;
use crate::row::{Computed, Rows};
use crate::runtime::kept::Kept;
use crate::runtime::simd::{Level, level};

/// The most elements of a row.
const MOST_ELEMENTS: usize = 1024;
/// The fewest bytes of a row with a function that takes long.
const FEWEST_BYTES: usize = 32;
/// The fewest elements for which loops are as fast.
const LONG: usize = 256;
/// The number of elements whose computation takes about as long as assembling the code.
const ENOUGH: usize = 1 << 17;

/// The number of elements of a row, the size of a number, the SIMD level, and which outputs are sums over rows.
type Key = (usize, usize, Level, SmallVec<[bool; 4]>);

/// The machine code for whole rows.
#[derive(Debug, Default)]
pub struct WholeRows(Kept<Key, Code>);

/// The machine code for a key.
#[derive(Debug, Default)]
struct Code {
    /// The number of elements for which it has been asked.
    elements: AtomicUsize,
    /// It is assembled once there were enough. `None` if there is none.
    routine: OnceLock<Option<Routine>>,
}

impl RowPlan {
    /// The machine code that computes rows of `n` elements as a whole, if it is the fastest way. The outputs marked by `sums` are sums over
    /// rows. Few elements fill only a part of a vector: then a function that takes long is computed for several rows at once. Loops over
    /// many elements are as fast, unless a row is only reduced, or has such a function. The code is assembled once it has been asked for
    /// with enough rows, because that takes as long as computing them.
    pub(super) fn code_of_whole_rows<T: Tile>(&self, n: usize, rows: usize, sums: &[bool]) -> Option<&Routine> {
        let assemble = T::CODE?.assemble_whole.filter(|_| (1..=MOST_ELEMENTS).contains(&n))?;
        let is_dear = self.is_dear();
        if is_dear && n * size_of::<T>() < FEWEST_BYTES || !is_dear && n >= LONG && self.gives().contains(&true) {
            return None;
        }
        let key = (n, size_of::<T>(), level(), SmallVec::from_slice(sums));
        let find = || self.whole.0.find(|known| *known == key);
        let code = match find() {
            Some(code) => code,
            None => {
                self.whole.0.keep(key.clone(), Arc::default());
                find()?
            }
        };
        if let Some(routine) = code.routine.get() {
            return routine.as_ref();
        }
        let elements = n.saturating_mul(rows);
        if code.elements.fetch_add(elements, Ordering::Relaxed).saturating_add(elements) < ENOUGH {
            return None;
        }
        code.routine.get_or_init(|| assemble(self, n, sums, key.2)).as_ref()
    }

    /// [`run_whole_rows`](RowPlan::run_whole_rows), whose arguments are checked.
    ///
    /// # Safety
    /// As for [`RowPlan::run`].
    pub(super) unsafe fn compute_whole_rows<T: Tile + Computed>(
        &self,
        n: usize,
        rows: usize,
        inputs: &[Rows<*const T>],
        uniforms: &[Rows<*const T>],
        outputs: &[Rows<*mut T>],
        sums: &[bool],
    ) -> bool {
        let Some(routine) = self.code_of_whole_rows::<T>(n, rows, sums).filter(|_| rows > 0) else { return false };
        let (per_row, attributes) = uniforms.split_at(self.per_row());
        // SAFETY: the caller's contract.
        let numbers = unsafe { uniforms_of(attributes, n) };
        let count = if self.uniform().positions { n } else { 0 };
        let positions: SmallVec<[T; 16]> = (0..count).map(|at| T::constant(Const::Float(at as f64))).collect();
        let mut strides = SmallVec::<[isize; 24]>::from_elem(0, OverRows::OPERANDS);
        strides[OverRows::NUMBER] = rows as isize;
        let mut from = SmallVec::<[*mut u8; 8]>::new();
        for operand in inputs.iter().chain(per_row) {
            from.push(operand.data.cast_mut().cast());
            strides.push(operand.step);
        }
        from.push(positions.as_ptr().cast_mut().cast());
        strides.push(0);
        let mut to = SmallVec::<[*mut u8; 4]>::new();
        for operand in outputs {
            to.push(operand.data.cast());
            strides.push(operand.step);
        }
        // SAFETY: the caller's contract; the code is for rows of this length.
        unsafe { routine.run_whole_rows(&mut from, numbers.as_ptr().cast(), &mut to, &mut strides) };
        true
    }
}
