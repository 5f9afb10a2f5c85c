//! Products of matrices, in parts that are not stored.

use std::sync::atomic::{AtomicBool, Ordering};

use minitensor_kernels::threads::parallel_for;
use minitensor_kernels::{Machine, Num, matmul_in_parts};
use ndarray::ArrayView2;

use crate::__private::view2;
use crate::attr::Attr;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::op::{CellArg, KernelEntry, Kernels, OutputPart, VisitPart};
use crate::tensor::{Shape, Tensor};

/// The fewest multiplications for a thread.
const GRAIN: usize = 1 << 18;

inventory::submit! {
    KernelEntry { op: "linalg::matrix_product", device: "cpu", kernels: || Kernels::Parts(multiply) }
}

/// Multiplies matrices of shape `[.., m, k]` and `[.., k, n]`, whose batches broadcast.
fn multiply(inputs: &[Option<&Tensor>], _attrs: &[Attr], visit: VisitPart<'_>) -> Result<bool> {
    let [Some(x), Some(y)] = inputs else { return Err(Error::runtime("a matrix product has two factors")) };
    match (x.dtype(), y.dtype()) {
        (DType::F32, DType::F32) => multiply_as::<f32>(x, y, visit),
        (DType::F64, DType::F64) => multiply_as::<f64>(x, y, visit),
        _ => Ok(false),
    }
}

fn multiply_as<T: Scalar<Stored = T> + Machine + Num>(x: &Tensor, y: &Tensor, visit: VisitPart<'_>) -> Result<bool> {
    let ([.., m, k], [.., n]) = (x.shape().dims(), y.shape().dims()) else { return Ok(false) };
    let batch_of = |t: &Tensor| -> Shape { t.shape()[..t.ndim() - 2].iter().copied().collect() };
    let Some(batch) = batch_of(x).broadcast(&batch_of(y)) else { return Ok(false) };
    let wide = |t: &Tensor, core: [usize; 2]| t.broadcast_view(&batch.iter().copied().chain(core).collect());
    let (x, y) = (wide(x, [*m, *k]), wide(y, [*k, *n]));
    let is_fit = AtomicBool::new(true);
    parallel_for(batch.numel(), (GRAIN / (m * n * k).max(1)).max(1), |cells| {
        for cell in cells {
            // SAFETY: the tensors have elements of this type, and live during the call.
            let (a, b) = unsafe { (matrix::<T>(&x, cell), matrix::<T>(&y, cell)) };
            let visit = |[row, column]: [usize; 2], part: ArrayView2<'_, T>| {
                visit(OutputPart::of([cell * m + row, column], part));
            };
            // The same for all cells, since it depends on sizes and strides only.
            if !matmul_in_parts(a, b, &visit) {
                return is_fit.store(false, Ordering::Relaxed);
            }
        }
    });
    Ok(is_fit.into_inner())
}

/// A matrix of a batch.
///
/// # Safety
/// The tensor has elements of type `T`, and outlives the view.
unsafe fn matrix<'a, T>(t: &'a Tensor, mut cell: usize) -> ArrayView2<'a, T> {
    let batch = t.ndim() - 2;
    let mut offset = 0;
    for (size, step) in t.shape()[..batch].iter().zip(t.strides()).rev() {
        offset += (cell % size) as isize * step * size_of::<T>() as isize;
        cell /= size;
    }
    let data = t.data_ptr().wrapping_offset(offset);
    let (shape, strides) = (&t.shape()[batch..], &t.strides()[batch..]);
    // SAFETY: by contract.
    unsafe { view2(&CellArg { data, step: 0, is_large: false, shape, strides }, 0) }
}
