//! Matrix products, by cuBLAS if it is found.

use std::sync::Arc;

use smallvec::SmallVec;

use super::layout::{OperandStrides, merge};
use super::natives::{Elements, Field, Shared, run};
use super::{CUDA, type_of};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{KernelCall, KernelEntry, Kernels};
use crate::tensor::Tensor;

/// A matrix in memory, row by row or, transposed, column by column.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    /// The first element.
    pub address: usize,
    /// Whether the elements of a column are neighbours.
    pub is_transposed: bool,
    /// The distance of rows or, transposed, of columns, in elements.
    pub distance: usize,
    /// The distance to the matrix of the next product, in elements.
    pub step: usize,
}

/// Products of matrices of one dtype: `out = x y`, where `x` has `m` rows and `k` columns, and `y` has `n` columns.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// The dtype of the elements of the factors, a floating or complex one.
    pub dtype: DType,
    /// The dtype of those of the results: the same, or `float32` if the factors are half floats.
    pub gives: DType,
    /// The number of products.
    pub count: usize,
    /// The sizes.
    pub sizes: [usize; 3],
    /// The factors.
    pub factors: [Matrix; 2],
    /// The first result. It is stored row by row, and the next ones follow.
    pub out: usize,
}

/// The distance of the rows or columns of a matrix, if the elements of one of them are neighbours.
fn form(t: &Tensor) -> Option<(bool, usize)> {
    let (shape, strides) = (t.shape(), t.strides());
    let [rows, columns] = [2, 1].map(|back| shape[t.ndim() - back]);
    let [down, across] = [2, 1].map(|back| strides[t.ndim() - back]);
    let fits = |inner: isize, count: usize, outer: isize, others: usize| {
        (inner == 1 || count == 1) && (others == 1 || outer >= count.max(1) as isize)
    };
    let distance = |outer: isize, count: usize, others: usize| if others == 1 { count.max(1) } else { outer as usize };
    if fits(across, columns, down, rows) {
        return Some((false, distance(down, columns, rows)));
    }
    fits(down, rows, across, columns).then(|| (true, distance(across, rows, columns)))
}

/// The products of two tensors, whose batch dimensions are those of the output. `None` if their matrices have no such form.
fn product(x: &Tensor, y: &Tensor, out: &Tensor) -> Option<Product> {
    let batch = out.ndim() - 2;
    let mut sizes: SmallVec<[usize; 6]> = out.shape()[..batch].iter().copied().collect();
    let of = |t: &Tensor| t.strides()[..batch].iter().copied().collect::<OperandStrides>();
    let mut strides = [of(x), of(y), of(out)];
    merge(&mut sizes, &mut strides);
    let matrix = |t: &Tensor, strides: &OperandStrides| {
        let (is_transposed, distance) = form(t)?;
        let step = usize::try_from(strides[0]).ok()?;
        Some(Matrix { address: t.data_ptr().expose_provenance(), is_transposed, distance, step })
    };
    let factors = [matrix(x, &strides[0])?, matrix(y, &strides[1])?];
    let sizes_of = [out.shape()[batch], out.shape()[batch + 1], x.shape()[batch + 1]];
    let out_address = out.data_ptr().expose_provenance();
    (sizes.len() == 1).then_some(Product {
        dtype: x.dtype(),
        gives: out.dtype(),
        count: sizes[0],
        sizes: sizes_of,
        factors,
        out: out_address,
    })
}

/// The kernel of `linalg::matrix_product`.
pub fn multiply(call: &KernelCall<'_>) -> Result<()> {
    let (Some(x), Some(y), Some(out)) = (call.inputs[0], call.inputs[1], call.outputs[0]) else { return Ok(()) };
    let k = x.shape()[x.ndim() - 1];
    if out.numel() == 0 || k == 0 {
        return Ok(());
    }
    let device = CUDA.device(out.device().index())?;
    if out.dtype().is_differentiable() {
        // The copies live until the product has been submitted.
        let (mut x, mut y) = (x.clone(), y.clone());
        let mut all = product(&x, &y, out);
        if all.is_none() {
            (x, y) = (x.contiguous()?, y.contiguous()?);
            all = product(&x, &y, out);
        }
        if let Some(product) = all
            // SAFETY: the matrices are those of the tensors.
            && unsafe { device.driver().multiply(&product, device.stream())? }
        {
            return Ok(());
        }
    }
    // Half floats are added in float32.
    if x.dtype() != x.dtype().compute() {
        let compute = x.dtype().compute();
        let sum = match out.dtype() == compute {
            true => out.clone(),
            false => Tensor::zeros(out.shape().clone(), compute, out.device())?,
        };
        let (x, y) = (x.cast(compute)?, y.cast(compute)?);
        multiply(&KernelCall { inputs: &[Some(&x), Some(&y)], outputs: &[Some(&sum)], ..*call })?;
        return if out.dtype() == compute { Ok(()) } else { out.copy_from(&sum) };
    }
    let Some(t) = type_of(out.dtype()).map(|t| t.name()) else {
        return Err(Error::not_implemented(format!(
            "op '{}' has no kernel for {} on device 'cuda'; copy its inputs with to('cpu')",
            call.op.name,
            out.dtype()
        )));
    };
    let number = |n: usize| Field::Number(n as i64);
    let [m, n] = [2, 1].map(|back| number(out.shape()[out.ndim() - back]));
    let fields = [("m", m), ("n", n), ("k", number(k)), ("x", Field::Elements(x)), ("y", Field::Elements(y))];
    let body = format!(
        "const T *x = a.x + i / a.n * a.k, *y = a.y + i / a.n / a.m * a.k * a.n + i % a.n; T sum = 0; \
         for (i64 j = 0; j < a.k; j++) sum = {t}_add(sum, {t}_multiply(x[j], y[j * a.n])); a.out[i] = sum;"
    );
    run(call, (Shared::Elements, out.numel()), Elements::Numbers, &fields, out, &body)
}

inventory::submit! {
    KernelEntry {
        op: "linalg::matrix_product",
        device: "cuda",
        kernels: || Kernels::HalfArrays([DType::F16, DType::Bf16].map(|d| (vec![d], Arc::new(multiply) as _)).into()),
    }
}
