//! Row and cell ops in place: the clause `inplace`, and cell parameters that are changed.

use minitensor::autograd::{NoGrad, Options, grad};
use minitensor::kernels::threads::set_num_threads;
use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops as _;
use minitensor_ops::arithmetic::multiply;
use minitensor_ops::indexing::slice;
use minitensor_ops::shape::{expand, flip, permute_dims};

/// Softmax.
#[custom_op(shape = (x: [.., n]) -> [.., n], axis = -1, inplace)]
pub fn soft<R: Row>(x: R) -> R {
    let e = (x - x.max().detach()).exp();
    e / e.sum()
}

/// As [`soft()`], with compiled loops and a weight.
#[custom_op(shape = (x: [.., n], weight: [n]) -> (y: [.., n]), precompiled, inplace)]
pub fn compiled_soft<R: Row>(x: R, weight: Option<R>) -> R {
    let e = (x - x.max().detach()).exp();
    let y = e / e.sum();
    if let Some(weight) = weight { y * weight } else { y }
}

/// Adds the sum of a row to a number for each row.
#[custom_op(shape = (total: [..], x: [.., n]) -> [..], axis = -1, inplace)]
pub fn add_sum<R: Row>(total: R, x: R) -> R {
    total + x.sum()
}

/// Reverses every row. It writes to elements that it reads later.
#[custom_op(shape = (x: [.., n]) -> [.., n], axis = -1, backward = |d| { x: d.flip(-1) }, inplace)]
pub fn reversed<T: Element>(x: &[T], out: &mut [T]) {
    x.iter().rev().zip(out).for_each(|(x, out)| *out = *x);
}

/// Cumulative products, with a derived gradient.
#[custom_op(shape = (x: [.., n]) -> [.., n], inplace)]
pub fn running_product<T: Float>(x: &[T], out: &mut [T]) {
    let mut total: T = 1.0;
    for (x, out) in x.iter().zip(out) {
        total *= *x;
        *out = total;
    }
}

/// The product of a square matrix with another one.
#[custom_op(shape = (a: [.., n, n], b: [.., n, n]) -> [.., n, n], inplace)]
pub fn square_product<T: Float>(a: ArrayView2<T>, b: ArrayView2<T>, mut out: ArrayViewMut2<T>) {
    for ((i, j), out) in out.indexed_iter_mut() {
        let mut total: T = 0.0;
        for k in 0..a.nrows() {
            total += a[[i, k]] * b[[k, j]];
        }
        *out = total;
    }
}

/// The sum of `x` and all rows of `y`: one result for all cells.
#[custom_op(shape = (x: [n], y: [.., n]) -> [n], backward = none, inplace)]
pub fn add_rows<T: Num>(x: &[T], y: &[T], out: &mut [T]) {
    // Not `x` itself, since it would be added once for each row.
    let _ = x;
    out.iter_mut().zip(y).for_each(|(out, y)| *out += *y);
}

/// Sorts every row, and counts the calls of a row.
#[custom_op(shape = (x: [.., n], calls: [..]) -> (), axis = -1)]
pub fn sort_rows<T: Real>(x: &mut [T], calls: &mut i64) {
    x.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    *calls += 1;
}

/// A step of gradient descent with momentum and a gradient clipped to norm 1. Returns the norm.
#[custom_op(shape = (p: [.., n], v: [.., n], g: [.., n]) -> (norm: [..]) where lr >= 0.0)]
pub fn clipped_step<T: Float>(p: &mut [T], v: &mut [T], g: &[T], lr: f64, norm: &mut T) {
    let mut total: T = 0.0;
    for g in g {
        total += *g * *g;
    }
    *norm = total.sqrt();
    let scale = 1.0 / norm.maximum(1.0);
    for i in 0..p.len() {
        v[i] = 0.5 * v[i] + scale * g[i];
        p[i] -= lr * v[i];
    }
}

/// A sweep of Gauss and Seidel for `4u − Σ neighbours = f`.
#[custom_op(shape = (u: [.., m, n], f: [.., m, n]) -> ())]
pub fn sweep<T: Float>(mut u: ArrayViewMut2<T>, f: ArrayView2<T>) {
    let (m, n) = u.dim();
    for i in 1..m.saturating_sub(1) {
        for j in 1..n.saturating_sub(1) {
            u[[i, j]] = 0.25 * (f[[i, j]] + u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]]);
        }
    }
}

/// Scales every row, with a gradient by a formula.
#[custom_op(shape = (x: [.., n], s: [..]) -> (), backward = |d| { x: d * s.unsqueeze(-1), s: none })]
pub fn scale_rows<T: Float>(x: &mut [T], s: &T) {
    x.iter_mut().for_each(|x| *x *= *s);
}

/// Squares every row. The gradient reads the values before the call.
#[custom_op(shape = (x: [.., n]) -> (), backward = |d| { x: 2 * d * x })]
pub fn square_rows<T: Float>(x: &mut [T]) {
    x.iter_mut().for_each(|x| *x = *x * *x);
}

/// Scales every row to length 1.
#[custom_op(
    shape = (x: [.., n]) -> (y: [.., n], [save] norm: [..]),
    backward = |d| { x: (d - y * (d * y).sum(-1, true)) / norm.unsqueeze(-1) },
    inplace,
)]
pub fn unit<T: Float>(x: &[T], y: &mut [T], norm: &mut T) {
    *norm = x.iter().fold(T::zero(), |total, x| total + *x * *x).sqrt();
    x.iter().zip(y).for_each(|(x, y)| *y = *x / *norm);
}

/// Inverts every condition of a row.
#[custom_op(shape = (mask: [.., n], x: [n]) -> ())]
pub fn invert<T: Num>(mask: &mut [bool], x: &[T]) {
    mask.iter_mut().zip(x).for_each(|(mask, x)| *mask = *mask != (*x != T::zero()));
}

fn ramp(shape: &[usize], dtype: DType) -> Tensor {
    let values = (0..shape.iter().product::<usize>()).map(|i| ((i * 7 + 3) % 11) as f64 * 0.25 - 1.0).collect();
    Tensor::from_vec(values, shape.to_vec()).and_then(|t| t.cast(dtype)).expect("a ramp")
}

fn bits(t: &Tensor) -> Vec<f64> {
    t.cast(DType::F64).and_then(|t| t.to_vec::<f64>()).expect("numbers")
}

/// Compares an op and its in-place form, for contiguous and other layouts.
fn agrees(shape: &[usize], dtype: DType, call: impl Fn(&Tensor) -> Tensor, change: impl Fn(&Tensor) -> Result<()>) {
    let wide: Vec<usize> = shape.iter().map(|n| n * 2).collect();
    let reversed_axes: Vec<i64> = (0..shape.len() as i64).rev().collect();
    let turned: Vec<usize> = shape.iter().rev().copied().collect();
    let layouts = [
        ramp(shape, dtype),
        permute_dims::call(&ramp(&turned, dtype), &reversed_axes).expect("a view"),
        flip::call(&ramp(shape, dtype), None).expect("a view"),
        (0..shape.len())
            .fold(ramp(&wide, dtype), |t, axis| slice::call(&t, axis as i64, None, None, 2).expect("a view")),
    ];
    for (k, x) in layouts.iter().enumerate() {
        let expected = call(x);
        change(x).expect("the op in place");
        assert_eq!(bits(x), bits(&expected), "layout {k}, {dtype}, {shape:?}");
    }
}

const FLOATS: [DType; 4] = [DType::F16, DType::Bf16, DType::F32, DType::F64];

#[test]
fn a_row_op_in_place_is_the_op() {
    for dtype in FLOATS {
        for shape in
            [&[3, 4][..], &[40, 33], &[1, 7], &[2, 3, 5], &[300, 64], &[2, 20_000], &[1, 140_000], &[3, 0], &[0, 3]]
        {
            for axis in [-1, 0] {
                agrees(shape, dtype, |x| soft::call(x, axis).unwrap(), |x| soft::call_(x, axis));
            }
            agrees(shape, dtype, |x| compiled_soft::call(x, None).unwrap(), |x| compiled_soft::call_(x, None));
        }
    }
}

#[test]
fn a_number_for_each_row_is_changed() -> Result<()> {
    for n in [3, 5000] {
        let (x, total) = (ramp(&[4, n], DType::F32), ramp(&[4], DType::F32));
        let expected = add_sum::call(&total, &x, -1, false)?;
        add_sum::call_(&total, &x, -1, false)?;
        assert_eq!(bits(&total), bits(&expected));
    }
    let error = add_sum::call_(&ramp(&[4], DType::F32), &ramp(&[4, 2], DType::F32), -1, true).unwrap_err();
    assert!(error.message().contains("its shape (4,) differs from the shape (4, 1) of the result"), "{error}");
    Ok(())
}

#[test]
fn a_cell_op_in_place_is_the_op() {
    for dtype in [FLOATS.as_slice(), &[DType::I32, DType::Bool, DType::C64]].concat() {
        for shape in [&[3, 4][..], &[200, 33], &[1, 300_000], &[2, 3, 5], &[0, 3], &[3, 0]] {
            for axis in [-1, 0] {
                agrees(shape, dtype, |x| reversed::call(x, axis).unwrap(), |x| reversed::call_(x, axis));
            }
        }
    }
    for dtype in FLOATS {
        agrees(&[70, 9], dtype, |x| running_product::call(x).unwrap(), running_product::call_);
        let b = ramp(&[3, 3], dtype);
        agrees(&[5, 3, 3], dtype, |a| square_product::call(a, &b).unwrap(), |a| square_product::call_(a, &b));
        agrees(&[5, 3, 3], dtype, |a| square_product::call(a, a).unwrap(), |a| square_product::call_(a, a));
    }
}

#[test]
fn a_result_without_batch_dimensions_is_the_sum_over_all_cells() -> Result<()> {
    let (x, y) = (ramp(&[3], DType::F64), ramp(&[40, 3], DType::F64));
    let expected = add_rows::call(&x, &y)?;
    add_rows::call_(&x, &y)?;
    assert_eq!(bits(&x), bits(&expected));
    Ok(())
}

#[test]
fn the_history_of_a_change_is_recorded() -> Result<()> {
    type Form = (fn(&Tensor) -> Result<Tensor>, fn(&Tensor) -> Result<()>);
    let forms: [Form; 5] = [
        (|x| soft::call(x, -1), |x| soft::call_(x, -1)),
        (|x| compiled_soft::call(x, None), |x| compiled_soft::call_(x, None)),
        (|x| reversed::call(x, -1), |x| reversed::call_(x, -1)),
        (running_product::call, running_product::call_),
        (unit::call, unit::call_),
    ];
    for (k, (call, change)) in forms.into_iter().enumerate() {
        let gradient = |in_place: bool| -> Result<Vec<f64>> {
            let x = ramp(&[3, 4], DType::F64).with_requires_grad()?;
            let h = multiply::call(&x, &x)?;
            let y = if in_place { change(&h).map(|()| h)? } else { call(&h)? };
            let y = multiply::call(&y, &ramp(&[3, 4], DType::F64))?;
            let y = multiply::call(&y, &y)?;
            Ok(bits(grad(&[y], &[x], &[Some(ramp(&[3, 4], DType::F64))], Options::default())?[0].as_ref().unwrap()))
        };
        assert_eq!(gradient(true)?, gradient(false)?, "form {k}");
    }
    let x = ramp(&[3, 4], DType::F64).with_requires_grad()?;
    let error = soft::call_(&x, -1).unwrap_err();
    assert!(error.message().contains("op 'soft_' cannot change 'x' in place, because it is a leaf"), "{error}");
    Ok(())
}

#[test]
fn a_cell_parameter_is_changed() -> Result<()> {
    for threads in [1, 2] {
        set_num_threads(threads);
        for dtype in [FLOATS.as_slice(), &[DType::I32]].concat() {
            for (shape, axis) in [([300, 7], -1), ([7, 300], 0), ([7, 300], -1)] {
                let x = ramp(&shape, dtype);
                let calls =
                    Tensor::from_vec(vec![5_i64; shape[usize::from(axis == 0)]], [shape[usize::from(axis == 0)]])?;
                let expected = minitensor_ops::sorting::sort::call(&x, axis, false)?.0;
                sort_rows::call(&x, &calls, axis)?;
                assert_eq!(bits(&x), bits(&expected));
                assert!(calls.to_vec::<i64>()?.iter().all(|n| *n == 6));
            }
        }
    }
    let (p, v) = (ramp(&[2, 3], DType::F64), ramp(&[2, 3], DType::F64));
    let norm = clipped_step::call(&p, &v, &Tensor::from_vec(vec![0.0, 3.0, 4.0], [3])?, 2.0)?;
    assert_eq!(norm.to_vec::<f64>()?, [5.0, 5.0]);
    assert_eq!(v.to_vec::<f64>()?[..3], [-0.125, 0.5 * 1.5 + 0.6, 0.5 * 0.5 + 0.8]);
    let u = Tensor::from_vec(vec![0.0; 9], [3, 3])?;
    sweep::call(&u, &ramp(&[3, 3], DType::F64))?;
    assert_eq!(u.to_vec::<f64>()?[4], 0.25 * ramp(&[3, 3], DType::F64).to_vec::<f64>()?[4]);
    Ok(())
}

#[test]
fn any_byte_of_a_mask_is_a_condition() -> Result<()> {
    let bytes = Tensor::from_vec(vec![0_u8, 1, 2, 255], [4])?;
    let mask = bytes.bitcast(DType::Bool)?;
    invert::call(&mask, &Tensor::from_vec(vec![0.0, 1.0, 1.0, 0.0], [4])?)?;
    assert_eq!(bytes.to_vec::<u8>()?, [0, 0, 0, 1]);
    Ok(())
}

#[test]
fn a_formula_is_the_gradient_of_a_change() -> Result<()> {
    let x = ramp(&[2, 3], DType::F64).with_requires_grad()?;
    let h = multiply::call(&x, &x)?;
    scale_rows::call(&h, &Tensor::from_vec(vec![2.0, 3.0], [2])?)?;
    let found = grad(
        &[h],
        std::slice::from_ref(&x),
        &[Some(Tensor::ones([2, 3], DType::F64, Device::Cpu)?)],
        Options::default(),
    )?;
    let expected: Vec<f64> =
        bits(&x).iter().enumerate().map(|(i, x)| 2.0 * x * if i < 3 { 2.0 } else { 3.0 }).collect();
    assert_eq!(bits(found[0].as_ref().unwrap()), expected);
    let h = multiply::call(&x, &x)?;
    square_rows::call(&h)?;
    let found = grad(
        &[h],
        std::slice::from_ref(&x),
        &[Some(Tensor::ones([2, 3], DType::F64, Device::Cpu)?)],
        Options::default(),
    )?;
    let expected: Vec<f64> = bits(&x).iter().map(|x| 4.0 * x.powi(3)).collect();
    assert_eq!(bits(found[0].as_ref().unwrap()), expected);
    Ok(())
}

#[test]
fn an_op_without_a_gradient_changes_no_recorded_tensor() -> Result<()> {
    let x = ramp(&[2, 3], DType::F64).with_requires_grad()?;
    let h = multiply::call(&x, &x)?;
    let calls = Tensor::from_vec(vec![0_i64; 2], [2])?;
    let error = sort_rows::call(&h, &calls, -1).unwrap_err();
    assert!(
        error.message().contains("op 'sort_rows' cannot change 'x' in place, because it requires a gradient"),
        "{error}"
    );
    let _quiet = NoGrad::new();
    sort_rows::call(&h, &calls, -1)
}

#[test]
fn a_changed_input_is_not_broadcast() -> Result<()> {
    let refused = |outcome: Result<()>, words: &str| {
        let error = outcome.unwrap_err();
        assert!(error.message().contains(words), "{error}");
    };
    let (a, b) = (ramp(&[3, 3], DType::F64), ramp(&[2, 3, 3], DType::F64));
    let differs = "op 'square_product_' changes 'a' in place, but its shape (3, 3) differs from the shape (2, 3, 3) of the result";
    refused(square_product::call_(&a, &b), differs);
    refused(
        sweep::call(&a, &b),
        "op 'sweep' changes 'u' in place, but its shape (3, 3) differs from the shape (2, 3, 3)",
    );
    refused(soft::call_(&expand::call(&a, &[2, 3, 3])?, -1), "several of its elements share memory");
    refused(soft::call_(&ramp(&[3], DType::I32), -1), "its dtype int32 cannot hold the result of dtype float32");
    Ok(())
}

#[test]
fn what_overlaps_a_changed_input_is_read_before_the_change() -> Result<()> {
    let (a, b) = (ramp(&[3, 3], DType::F64), ramp(&[2, 3, 3], DType::F64));
    let part = slice::call(&b, 0, None, Some(1), 1)?;
    let expected = square_product::call(&b, &part)?;
    square_product::call_(&b, &part)?;
    assert_eq!(bits(&b), bits(&expected));
    // Equal tensors of other dimensions: a cell would read what another cell writes.
    let x = ramp(&[3, 3], DType::F64);
    let expected = scale_by_all::call(&x, &x)?;
    scale_by_all::call_(&x, &x)?;
    assert_eq!(bits(&x), bits(&expected));
    // The same cells are read before they are written.
    let expected = square_product::call(&a, &a)?;
    square_product::call_(&a, &a)?;
    assert_eq!(bits(&a), bits(&expected));
    Ok(())
}

/// Scales by the sum of a matrix that all rows share.
#[custom_op(shape = (x: [.., n], w: [m, n]) -> [.., n], inplace)]
pub fn scale_by_all<T: Float>(x: &[T], w: ArrayView2<T>, out: &mut [T]) {
    let mut total: T = 0.0;
    w.iter().for_each(|w| total += *w);
    x.iter().zip(out).for_each(|(x, out)| *out = *x * total);
}

#[test]
fn all_pass_opcheck() -> Result<()> {
    for op in [
        soft::op(),
        compiled_soft::op(),
        add_sum::op(),
        reversed::op(),
        running_product::op(),
        square_product::op(),
        scale_by_all::op(),
        sort_rows::op(),
        clipped_step::op(),
        sweep::op(),
        scale_rows::op(),
        square_rows::op(),
        add_rows::op(),
        invert::op(),
    ] {
        opcheck(&op, &[]).into_result()?;
    }
    for name in [
        "soft",
        "compiled_soft",
        "add_sum",
        "reversed",
        "running_product",
        "square_product",
        "scale_by_all",
        "add_rows",
    ] {
        opcheck(&minitensor::registry::get(&format!("{name}_"))?, &[]).into_result()?;
    }
    Ok(())
}

/// Scales `x`, with a gradient of which a factor is wrong.
#[custom_op(name = "faulty::scale", backward = |dx| { x: dx * k * 3, k: dx * x })]
pub fn scale_wrongly<T: Float>(x: &mut T, k: T) {
    *x *= k;
}

/// The same for cells, with the right gradient.
#[custom_op(
    name = "correct::scale", shape = (x: [.., n], k: [.., n]) -> (), backward = |dx| { x: dx * k, k: dx * x },
)]
pub fn scale_rightly<T: Float>(x: &mut [T], k: &[T]) {
    x.iter_mut().zip(k).for_each(|(x, k)| *x *= *k);
}

#[test]
fn opcheck_checks_the_gradient_of_an_op_that_modifies_its_input() {
    let report = opcheck(&scale_wrongly::op(), &[]);
    assert!(report.findings.iter().any(|f| f.check == "gradient"), "{report}");
    opcheck(&scale_rightly::op(), &[]).into_result().expect("it is correct");
}
