//! Gradients of cell bodies: runs a body at numbers of a tape, and sweeps over the tape in reverse order.

mod arguments;
mod run;

pub use minitensor_kernels::cell::{Differentiable, Traced};
use minitensor_kernels::Dual;

use self::arguments::Arguments;
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

/// The gradient of a cell op.
///
/// At level `T`, the arguments are the cotangents of the results, the inputs, and the gradients of the differentiable inputs. At
/// level `Dual<T>`, this is the gradient of that op: the arguments are the cotangents of its results, its inputs, and the gradients
/// of its differentiable inputs. It is computed as follows. The gradient of `s = Σ cotangent · result` is a sweep over the tape. The
/// gradient of `Σ u · gradient of s` is the derivative of the gradient of `s` in the direction `u`, because the order of
/// derivatives does not matter. So it is the same sweep, at dual numbers.
///
/// `body` runs one cell of the op, on the cores of its inputs and outputs.
///
/// # Safety
/// Every argument has `cells` cores, of elements `T` if its dtype is the differentiable variable. Any other argument has the layout that
/// the body declares. Outputs overlap no other argument.
pub unsafe fn cell_gradient<T: Differentiable, N: Level<T>>(
    op: &OpDef,
    attrs: &[Attr],
    args: &[CellArg<'_>],
    cells: usize,
    body: impl Fn(&[CellArg<'_>]) -> Result<()>,
) -> Result<()> {
    let arguments = Arguments::<T>::of(op, attrs, args, N::HAS_DIRECTION)?;
    // SAFETY: by the contract of this function.
    unsafe { Run::<T, N>::new(arguments).cells(cells, body) }
}
