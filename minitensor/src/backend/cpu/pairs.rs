//! Products of bfloat16 matrices, by the instructions that CPUs have for them.

use half::bf16;
use minitensor_kernels::{copy, matmul, matmul_of_pairs, takes_pairs};
use ndarray::{ArrayView2, ShapeError};

use crate::__private::{view2, view2_mut};
use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{CellArg, HalfCells, KernelEntry, Kernels};
use crate::tensor::try_vec;

inventory::submit! {
    KernelEntry {
        op: "linalg::matrix_product",
        device: "cpu",
        kernels: || Kernels::HalfCells(HalfCells { dtype: DType::Bf16, is_fit, run: multiply }),
    }
}

fn is_fit(cores: &[&[usize]]) -> bool {
    let [x, y] = cores else { return false };
    takes_pairs(x[0], y[1], x[1])
}

/// Multiplies `cells` matrices of bfloat16. Products are `float32`.
///
/// # Safety
/// As for [`CellKernel`](crate::op::CellKernel).
unsafe fn multiply(_attrs: &[Attr], args: &[CellArg<'_>], cells: usize) -> Result<()> {
    let [x, y, out] = args else { return Err(Error::runtime("a matrix product has two factors")) };
    for cell in 0..cells {
        // SAFETY: by contract.
        let (x, y, mut out) = unsafe { (view2::<bf16>(x, cell), view2::<bf16>(y, cell), view2_mut::<f32>(out, cell)) };
        if !matmul_of_pairs(x, y, out.view_mut()) {
            let (a, b) = (widened(x)?, widened(y)?);
            let (a, b) = (ArrayView2::from_shape(x.dim(), &a), ArrayView2::from_shape(y.dim(), &b));
            let invalid = |e: ShapeError| Error::runtime(e.to_string());
            matmul(a.map_err(invalid)?, b.map_err(invalid)?, out);
        }
    }
    Ok(())
}

/// The elements in row-major order.
fn widened(x: ArrayView2<'_, bf16>) -> Result<Vec<f32>> {
    let mut all = try_vec(x.len())?;
    all.resize(x.len(), 0.0);
    // SAFETY: the view has these elements, and the vector has as many.
    unsafe { copy(x.shape(), x.as_ptr(), x.strides(), all.as_mut_ptr(), &[x.ncols() as isize, 1]) };
    Ok(all)
}
