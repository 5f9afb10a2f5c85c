//! Kernels of row bodies: converts the arguments of cells to the operands of rows.

pub use minitensor_kernels::Row;
pub use minitensor_kernels::program::Variable;
pub use minitensor_kernels::row::{Body as RowBody, ComputedFloat};

use minitensor_kernels::program::Program;
use minitensor_kernels::row::{Cotangents, RowError, Rows, forward, vjp};

use crate::error::{Error, Result};
use crate::op::CellArg;

fn input<T>(arg: &CellArg<'_>) -> Rows<*const T> {
    Rows { data: arg.data.cast_const().cast(), step: arg.step, is_large: arg.is_large }
}

fn output<T>(arg: &CellArg<'_>) -> Rows<*mut T> {
    Rows { data: arg.data.cast(), step: arg.step, is_large: arg.is_large }
}

/// The length of the rows: that of any argument with a core dimension.
fn length(args: &[CellArg<'_>]) -> usize {
    args.iter().filter(|a| !a.data.is_null()).find_map(|a| a.shape.first().copied()).unwrap_or(0)
}

#[cold]
fn error(wrong: RowError, names: &[&str]) -> Error {
    match wrong {
        RowError::OutOfRange(o) => Error::index(format!(
            "'{}' contains position {}, which is out of range for a row of size {}; positions start at 0",
            names[o.argument], o.index, o.len
        )),
        other => Error::runtime(other.to_string()),
    }
}

/// Runs a body on its rows. `floats` and `indices` are the positions of its inputs among the arguments. The outputs are last.
///
/// # Safety
/// Every argument has `cells` cores. A core is contiguous, of elements `T`, if the body declares that the argument extends along
/// the row. Otherwise it is one element: `i64` for an index, `T` for all others. Outputs overlap no other argument.
pub unsafe fn rows<T: ComputedFloat, B: RowBody<I, X, O>, const I: usize, const X: usize, const O: usize>(
    body: &B,
    args: &[CellArg<'_>],
    cells: usize,
    floats: [usize; I],
    indices: [(usize, &str); X],
) -> Result<()> {
    let outputs = &args[args.len() - O..];
    let outputs = std::array::from_fn(|k| output(&outputs[k]));
    let at = indices.map(|(i, _)| input(&args[i]));
    // SAFETY: by the contract of this function.
    unsafe { forward::<T, B, I, X, O>(body, length(args), cells, &floats.map(|i| input(&args[i])), &at, &outputs) }
        .map_err(|wrong| error(wrong, &indices.map(|(_, name)| name)))
}

/// Computes the gradient of the rows of a body. The cotangents of its outputs are first, the gradients of its inputs last.
///
/// # Safety
/// As for [`rows`].
pub unsafe fn rows_vjp<T: ComputedFloat, B: RowBody<I, X, O>, const I: usize, const X: usize, const O: usize>(
    body: &B,
    args: &[CellArg<'_>],
    cells: usize,
    floats: [usize; I],
    indices: [(usize, &str); X],
    shared: [bool; I],
) -> Result<()> {
    let given = &args[args.len() - I..];
    let cotangents = Cotangents {
        outputs: std::array::from_fn(|k| input(&args[k])),
        inputs: std::array::from_fn(|i| output(&given[i])),
        shared,
    };
    let at = indices.map(|(i, _)| input(&args[i]));
    // SAFETY: by the contract of this function.
    unsafe { vjp::<T, B, I, X, O>(body, length(args), cells, &cotangents, &floats.map(|i| input(&args[i])), &at) }
        .map_err(|wrong| error(wrong, &indices.map(|(_, name)| name)))
}

/// The gradient of a program over rows, by the outputs that have a cotangent.
pub fn vjp_of_rows(program: &Program, outputs: &[usize], gives: &[bool], wrt: &[Variable]) -> Result<Program> {
    program
        .giving(outputs)
        .vjp_of_rows(gives, wrt)
        .ok_or_else(|| Error::runtime("the body has a function without a derivative"))
}
