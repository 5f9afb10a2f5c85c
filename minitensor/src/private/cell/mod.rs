//! Gradients of cell bodies: runs a body at numbers of a tape, and sweeps over the tape in reverse order.

mod arguments;
mod program;
mod run;
mod transpose;

use std::sync::Arc;

use minitensor_kernels::Dual;
pub use minitensor_kernels::cell::{Differentiable, Traced};

use self::arguments::Arguments;
pub use self::program::Programs;
use self::program::{Key, Program};
use self::run::Run;
use crate::attr::Attr;
use crate::error::Result;
use crate::op::{CellArg, OpDef};

/// The number that a gradient of a body is computed with: `T` for the first derivative, `Dual<T>` for the second.
pub trait Level<T>: Differentiable {
    /// Whether numbers have a direction, in which the gradient is differentiated.
    const HAS_DIRECTION: bool;
    /// A number, and its derivative in the direction.
    fn of(value: T, direction: T) -> Self;
    /// The number itself, or its derivative in the direction.
    fn part(self) -> T;
}

impl<T: Differentiable> Level<T> for T {
    const HAS_DIRECTION: bool = false;
    #[inline(always)]
    fn of(value: T, _direction: T) -> T {
        value
    }
    #[inline(always)]
    fn part(self) -> T {
        self
    }
}

impl<T: Differentiable> Level<T> for Dual<T>
where
    Dual<T>: Differentiable,
{
    const HAS_DIRECTION: bool = true;
    #[inline(always)]
    fn of(value: T, direction: T) -> Dual<T> {
        Dual { value, tangent: direction }
    }
    #[inline(always)]
    fn part(self) -> T {
        self.tangent
    }
}

/// The fewest cells that the steps of a body are repeated for side by side.
const SIDE_BY_SIDE: usize = 4;

/// The gradient of a cell op.
///
/// At level `T`, the arguments are the cotangents of the results, the inputs, and the gradients of the differentiable inputs. At
/// level `Dual<T>`, this is the gradient of that op: the arguments are the cotangents of its results, its inputs, and the gradients
/// of its differentiable inputs. It is computed as follows. The gradient of `s = Σ cotangent · result` is a sweep over the tape. The
/// gradient of `Σ u · gradient of s` is the derivative of the gradient of `s` in the direction `u`, because the order of
/// derivatives does not matter. So it is the same sweep, at dual numbers.
///
/// `body` runs one cell of the op, on the cores of its inputs and outputs. `programs` are those of the op.
///
/// # Safety
/// Every argument has `cells` cores, of elements `T` if its dtype is the differentiable variable. Any other argument has the layout that
/// the body declares. Outputs overlap no other argument.
pub unsafe fn cell_gradient<T: Differentiable, N: Level<T>>(
    op: &OpDef,
    programs: &Programs,
    attrs: &[Attr],
    args: &[CellArg<'_>],
    cells: usize,
    body: impl Fn(&[CellArg<'_>]) -> Result<()>,
) -> Result<()> {
    let arguments = Arguments::<T>::of_gradient(op, attrs, args, N::HAS_DIRECTION)?;
    // SAFETY: by the contract of this function.
    unsafe {
        if cells >= SIDE_BY_SIDE
            && arguments.others_are_shared()
            && let Some(program) = recorded::<T, N>(programs, attrs, &arguments, &body)?
        {
            return program.gradients(&arguments, cells);
        }
        Run::<T, N>::new(&arguments).cells(cells, body)
    }
}

/// Computes the results of a cell op side by side, if that is faster than one cell after another. Otherwise, returns false.
///
/// # Safety
/// Every argument has `cells` cores as the body declares them: the inputs, then the outputs. Outputs overlap no other argument.
pub unsafe fn cell_results<T: Differentiable>(
    op: &OpDef,
    programs: &Programs,
    attrs: &[Attr],
    args: &[CellArg<'_>],
    cells: usize,
    body: impl Fn(&[CellArg<'_>]) -> Result<()>,
) -> Result<bool> {
    if cells < SIDE_BY_SIDE || !T::HAS_LANES {
        return Ok(false);
    }
    let arguments = Arguments::<T>::of_op(op, args);
    // A sum over cells would be added in another order.
    if !arguments.are_numbers() || arguments.outputs.iter().any(|output| !output.is_number || output.is_shared) {
        return Ok(false);
    }
    // SAFETY: by the contract of this function.
    unsafe {
        match recorded::<T, T>(programs, attrs, &arguments, body)? {
            Some(program) if program.is_dear() => program.results(&arguments, cells).map(|()| true),
            _ => Ok(false),
        }
    }
}

/// The steps of a body. `None` if they may differ between cells.
///
/// # Safety
/// As for [`cell_gradient`].
unsafe fn recorded<T: Differentiable, N: Level<T>>(
    programs: &Programs,
    attrs: &[Attr],
    arguments: &Arguments<'_, T>,
    body: impl Fn(&[CellArg<'_>]) -> Result<()>,
) -> Result<Option<Arc<Program<N>>>> {
    if !N::HAS_LANES || !programs.may_record() {
        return Ok(None);
    }
    // Inputs that are no numbers may determine the steps, too.
    let key = arguments.are_numbers().then(|| Key::of::<T, N>(attrs, arguments));
    if let Some(program) = key.as_ref().and_then(|key| programs.find(key)) {
        return Ok(Some(program));
    }
    // SAFETY: by the contract of this function.
    let Some(program) = (unsafe { Run::<T, N>::new(arguments).record(programs, body)? }) else { return Ok(None) };
    let program = Arc::new(program);
    if let Some(key) = key {
        programs.keep(key, &program);
    }
    Ok(Some(program))
}
