//! Cells with matrices of different sizes, and with memory of their own. Their gradients are derived.

use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops as _;

/// The Kronecker product.
#[custom_op(name = "cell_matrices::kron", shape = (a: [.., m, n], b: [.., p, q]) -> [.., m * p, n * q])]
fn kron<T: Float>(a: ArrayView2<T>, b: ArrayView2<T>, mut out: ArrayViewMut2<T>) {
    let (p, q) = b.dim();
    for ((i, j), a) in a.indexed_iter() {
        for ((k, l), b) in b.indexed_iter() {
            out[[i * p + k, j * q + l]] = *a * *b;
        }
    }
}

/// The solution of `(A + 5 I) x = b` by Cholesky's method. Only the lower triangle of `A` is read.
#[custom_op(name = "cell_matrices::solve", shape = (a: [.., n, n], b: [.., n]) -> [.., n])]
fn solve<T: Float>(a: ArrayView2<T>, b: &[T], out: &mut [T]) {
    let n = b.len();
    let mut l = vec![T::zero(); n * n];
    for i in 0..n {
        for j in 0..=i {
            let mut sum = a[[i, j]];
            if i == j {
                sum += 5.0;
            }
            for k in 0..j {
                sum -= l[i * n + k] * l[j * n + k];
            }
            l[i * n + j] = if i == j { sum.sqrt() } else { sum / l[j * n + j] };
        }
    }
    let mut y = vec![T::zero(); n];
    for i in 0..n {
        let mut sum = b[i];
        for k in 0..i {
            sum -= l[i * n + k] * y[k];
        }
        y[i] = sum / l[i * n + i];
    }
    for i in (0..n).rev() {
        let mut sum = y[i];
        for k in i + 1..n {
            sum -= l[k * n + i] * out[k];
        }
        out[i] = sum / l[i * n + i];
    }
}

/// A network of two layers, whose weights have no batch.
#[custom_op(name = "cell_matrices::network", shape = (x: [.., n], w: [h, n], v: [m, h]) -> [.., m])]
fn network<T: Float>(x: &[T], w: ArrayView2<T>, v: ArrayView2<T>, out: &mut [T]) {
    let mut hidden = Vec::new();
    for row in w.outer_iter() {
        let mut sum = T::zero();
        for (w, x) in row.iter().zip(x) {
            sum += *w * *x;
        }
        hidden.push(sum.tanh());
    }
    for (i, row) in v.outer_iter().enumerate() {
        out[i] = T::zero();
        for (v, h) in row.iter().zip(&hidden) {
            out[i] += *v * *h;
        }
    }
}

/// Dynamic time warping (Sakoe and Chiba, 1978), and the number of steps to each cell that is not on the border.
#[custom_op(name = "cell_matrices::warping", shape = (x: [.., m], y: [.., n]) -> [..] where m > 0, n > 0)]
fn warping<T: Float>(x: &[T], y: &[T], out: &mut T) {
    let (m, n) = (x.len(), y.len());
    let mut cost: Array2<T> = Array2::zeros((m, n));
    let mut steps: Array2<usize> = Array2::zeros((m, n));
    let scale: Array1<T> = Array1::ones(n);
    for i in 0..m {
        for j in 0..n {
            let from = match (i, j) {
                (0, 0) => T::zero(),
                (0, _) => cost[[0, j - 1]],
                (_, 0) => cost[[i - 1, 0]],
                _ => cost[[i - 1, j]].minimum(cost[[i, j - 1]]).minimum(cost[[i - 1, j - 1]]),
            };
            cost[[i, j]] = from + (x[i] - y[j]).square() * (2.0 * scale[j] - 1.0);
            steps[[i, j]] = i.max(j) + 1;
        }
    }
    *out = cost[[m - 1, n - 1]] / steps[[m - 1, n - 1]] as f64;
}

fn sample(shape: &[usize]) -> Result<(Vec<f64>, Tensor)> {
    let n: usize = shape.iter().product();
    let values: Vec<f64> = (0..n).map(|k| ((k * k * 7 + k * 3) % 11) as f64 / 4.0 - 1.0).collect();
    Ok((values.clone(), Tensor::from_vec(values, shape.to_vec())?))
}

#[test]
fn a_result_may_have_products_of_sizes() -> Result<()> {
    let ((a, at), (b, bt)) = (sample(&[2, 3])?, sample(&[4, 2])?);
    let out = kron::call(&at, &bt)?;
    assert_eq!(out.shape()[..], [8, 6]);
    let at = |i: usize, j: usize| a[i / 4 * 3 + j / 2] * b[i % 4 * 2 + j % 2];
    let expected: Vec<f64> = (0..48).map(|k| at(k / 6, k % 6)).collect();
    assert_eq!(out.to_vec::<f64>()?, expected);
    Ok(())
}

#[test]
fn a_cell_may_have_memory_of_its_own() -> Result<()> {
    let ((a, at), (b, bt)) = (sample(&[3, 3])?, sample(&[3])?);
    let x = solve::call(&at, &bt)?.to_vec::<f64>()?;
    for i in 0..3 {
        let of = |j: usize| a[i.max(j) * 3 + i.min(j)] + if i == j { 5.0 } else { 0.0 };
        let product: f64 = (0..3).map(|j| of(j) * x[j]).sum();
        assert!((product - b[i]).abs() < 1e-12, "{product} {}", b[i]);
    }
    Ok(())
}

#[test]
fn weights_may_have_other_sizes_than_the_cell() -> Result<()> {
    let ((x, xt), (w, wt), (v, vt)) = (sample(&[2, 3])?, sample(&[4, 3])?, sample(&[2, 4])?);
    let out = network::call(&xt, &wt, &vt)?.to_vec::<f64>()?;
    for row in 0..2 {
        let hidden = |h: usize| (0..3).map(|j| w[h * 3 + j] * x[row * 3 + j]).sum::<f64>().tanh();
        for i in 0..2 {
            let expected: f64 = (0..4).map(|h| v[i * 4 + h] * hidden(h)).sum();
            assert!((out[row * 2 + i] - expected).abs() < 1e-12);
        }
    }
    Ok(())
}

#[test]
fn arrays_of_elements_and_of_integers_begin_with_zeros() -> Result<()> {
    let ((x, xt), (y, yt)) = (sample(&[4])?, sample(&[3])?);
    // The cheapest of all paths, by enumeration.
    fn least(x: &[f64], y: &[f64]) -> f64 {
        let own = (x[x.len() - 1] - y[y.len() - 1]).powi(2);
        let (x1, y1) = (&x[..x.len() - 1], &y[..y.len() - 1]);
        match (x1.is_empty(), y1.is_empty()) {
            (true, true) => own,
            (true, false) => own + least(x, y1),
            (false, true) => own + least(x1, y),
            (false, false) => own + least(x1, y).min(least(x, y1)).min(least(x1, y1)),
        }
    }
    assert_eq!(warping::call(&xt, &yt)?.to_vec::<f64>()?, [least(&x, &y) / 4.0]);
    Ok(())
}

#[test]
fn their_gradients_are_those_of_finite_differences() -> Result<()> {
    for op in [kron::op(), solve::op(), network::op(), warping::op()] {
        minitensor::testing::opcheck(&op, &[]).into_result()?;
    }
    Ok(())
}

/// A copy of a view, reversed.
#[custom_op(name = "cell_matrices::copied", shape = (x: [.., m, n]) -> [.., m, n])]
fn copied<T: Float>(x: ArrayView2<T>, mut out: ArrayViewMut2<T>) {
    let own = x.to_owned();
    let doubled = own.mapv(|v| v + v);
    for (out, row) in out.rows_mut().into_iter().zip(doubled.rows()) {
        for (out, v) in out.into_iter().zip(row) {
            *out = *v;
        }
    }
}

#[test]
fn empty_views_can_be_copied() -> Result<()> {
    for shape in [[0, 3], [3, 0], [0, 0], [1, 0], [2, 3]] {
        let x = Tensor::from_vec(vec![1.0; shape[0] * shape[1]], shape)?;
        assert_eq!(copied::call(&x)?.to_vec::<f64>()?, vec![2.0; shape[0] * shape[1]]);
    }
    minitensor::testing::opcheck(&copied::op(), &[]).into_result()
}

/// `(A/2)²`, of which the rows are divided by their sums.
#[custom_op(name = "cell_matrices::normalized_square", shape = (a: [.., n, n]) -> [.., n, n])]
pub fn normalized_square<T: Float>(a: ArrayView2<T>, mut out: ArrayViewMut2<T>) {
    let n = a.nrows();
    let half = a.mapv(|v| v / 2.0);
    let mut square = Array2::from_shape_fn((n, n), |(i, j)| (0..n).map(|k| half[[i, k]] * half[[k, j]]).sum());
    for mut row in square.outer_iter_mut() {
        let total = row.sum();
        row.mapv_inplace(|v| v / total);
    }
    out.assign(&square);
}

/// The sum of the first column below the first row, and of the second column.
#[custom_op(name = "cell_matrices::parts", shape = (a: [.., m, n]) -> [..] where m > 1, n > 1)]
pub fn parts<T: Float>(a: ArrayView2<T>) -> T {
    let mut twice = Array2::from_elem((2, 2), 0.0);
    twice.diag_mut().fill(1.0);
    let below = a.slice(s![1.., ..]);
    (below.column(0).sum() + a.t().row(1).sum()) * twice.diag().sum() / 2.0
}

#[test]
fn functions_of_ndarray_take_elements() -> Result<()> {
    let a = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], [2, 2])?;
    let square = normalized_square::call(&a)?.to_vec::<f64>()?;
    for (got, expected) in square.iter().zip([7.0 / 17.0, 10.0 / 17.0, 15.0 / 37.0, 22.0 / 37.0]) {
        assert!((got - expected).abs() < 1e-15, "{got} {expected}");
    }
    assert_eq!(parts::call(&a)?.to_vec::<f64>()?, [9.0]);
    opcheck(&normalized_square::op(), &[]).into_result()
}

/// The transport plan between uniform distributions (Sinkhorn and Knopp, 1967; Cuturi, 2013).
#[custom_op(name = "cell_matrices::transport", shape = (cost: [.., m, n]) -> [.., m, n] where m > 0, n > 0)]
pub fn transport<T: Float>(
    cost: ArrayView2<T>,
    mut plan: ArrayViewMut2<T>,
    #[default = 0.5] eps: f64,
    #[default = 20] steps: usize,
) {
    let (m, n) = cost.dim();
    let kernel = cost.mapv(|c| (-c / eps).exp());
    let (mut u, mut v) = (vec![1.0; m], vec![1.0; n]);
    for _ in 0..steps {
        for i in 0..m {
            u[i] = 1.0 / (m * (0..n).map(|j| kernel[[i, j]] * v[j]).sum());
        }
        for j in 0..n {
            v[j] = 1.0 / (n * (0..m).map(|i| kernel[[i, j]] * u[i]).sum());
        }
    }
    for ((i, j), p) in plan.indexed_iter_mut() {
        *p = u[i] * kernel[[i, j]] * v[j];
    }
}

#[test]
fn the_plan_of_sinkhorn_has_the_sums_of_its_distributions() -> Result<()> {
    let cost = Tensor::from_vec(vec![0.1, 0.9, 0.4, 0.7, 0.2, 0.5], [2, 3])?;
    let plan = transport::call(&cost, 0.5, 200)?.to_vec::<f64>()?;
    for row in plan.chunks(3) {
        assert!((row.iter().sum::<f64>() - 0.5).abs() < 1e-12, "{plan:?}");
    }
    for j in 0..3 {
        assert!((plan[j] + plan[j + 3] - 1.0 / 3.0).abs() < 1e-12, "{plan:?}");
    }
    opcheck(&transport::op(), &[]).into_result()
}
