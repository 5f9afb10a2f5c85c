//! Bodies of elements and helpers that are plain Rust: lists, tuples, masks, optional attributes and compound assignments.

#![allow(clippy::needless_range_loop)]

use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops as _;

const M: [[f64; 3]; 3] = [[1.0, 2.0, -3.0], [0.5, 5.0, 6.0], [7.0, -8.0, 0.25]];

/// The product of a matrix and `(x, y, z)`, and its norm.
#[custom_op(name = "plain_elements::product")]
pub fn product<T: Float>(x: T, y: T, z: T) -> (T, T) {
    let v = [x, y, z];
    let mut s = [0.0; 3];
    for i in 0..3 {
        for j in 0..3 {
            s[i] += M[i][j] * v[j];
        }
    }
    let mut parts = (0.0, 0.0);
    parts.1 = s[1];
    parts.0 += s[0] * s[2];
    (parts.0 + parts.1, norm(s))
}

#[op_fn]
fn norm<T: Float>(v: [T; 3]) -> T {
    let mut sum = 0.0;
    for i in 0..3 {
        sum += v[i] * v[i];
    }
    (sum + 1.0).sqrt()
}

/// `x` if the signs of `x` and `y` differ, and `y` if they are equal.
#[custom_op(name = "plain_elements::by_sign")]
pub fn by_sign<T: Float>(x: T, y: T) -> (T, T, T) {
    let (a, b) = (x > 0.0, y > 0.0);
    let xor = if (x > 0.0) ^ (y > 0.0) { x } else { 0.0 };
    let differs = if a != b { x } else { 0.0 };
    let equals = if a == b { y } else { 0.0 };
    (xor, differs, equals)
}

#[op_fn]
fn horner<T: Float>(x: T, c: &[f64]) -> T {
    c.iter().rev().fold(0.0, |total, c| total * x + *c)
}

/// `1 + 2x + 3x²`
#[custom_op(name = "plain_elements::polynomial")]
pub fn polynomial<T: Float>(x: T) -> T {
    horner(x, &[1.0, 2.0, 3.0])
}

/// The weighted sum of a row, at most `cap`.
#[custom_op(name = "plain_elements::capped", shape = (x: [.., n], w: [.., n]) -> [..])]
pub fn capped<T: Float>(x: &[T], w: Option<&[T]>, cap: Option<f64>) -> T {
    let mut sum = 0.0;
    for i in 0..x.len() {
        sum += x[i] * w.map_or(1.0, |w| w[i]);
    }
    if let Some(c) = cap
        && sum > c
    {
        sum = c;
    }
    match cap {
        Some(c) => sum.min(c),
        None => sum,
    }
}

#[op_fn]
fn largest<T: Float>(x: Vec<T>, k: usize) -> T {
    let mut best = x[0];
    for i in 0..k {
        if x[i] > best {
            best = x[i];
        }
    }
    best
}

#[op_fn]
fn trace<T: Float>(a: &Array2<T>) -> T {
    let mut sum = 0.0;
    for i in 0..a.nrows() {
        sum += a[[i, i]];
    }
    sum
}

/// The trace of a matrix, and its largest element.
#[custom_op(name = "plain_elements::of_matrix", shape = (a: [.., n, n]) -> (trace: [..], largest: [..]) where n > 0)]
pub fn of_matrix<T: Float>(a: ArrayView2<T>) -> (T, T) {
    let m = a.to_owned();
    let all = a.iter().copied().collect::<Vec<T>>();
    let count = all.len();
    (trace(&m), largest(all, count))
}

#[op_fn]
fn mean_before<T: Float>(x: Vec<T>, k: usize) -> T {
    let mut s = 0.0;
    for (i, v) in x.iter().enumerate() {
        if i < k && k < x.len() {
            s += *v;
        }
    }
    if x.is_empty() { 0.0 } else { s / x.len() }
}
#[op_fn]
fn beside_diagonal<T: Float>(a: &Array2<T>, k: usize) -> T {
    let mut s = 0.0;
    let n = a.nrows();
    for i in 0..a.ncols() {
        if i + 1 < n && n > k {
            s += a[[i, i + 1]];
        }
    }
    let (m, _) = a.dim();
    s * m
}
#[op_fn]
fn mean_without<T: Float>(v: [T; 3], k: usize) -> T {
    let mut s = 0.0;
    for i in 0..v.len() {
        if i != k {
            s += v[i];
        }
    }
    s / (v.len() - 1)
}
/// Helpers with sizes and positions of lists.
#[custom_op(name = "plain_elements::sizes", shape = (x: [.., n, n]) -> [..] where n > 1)]
pub fn sizes<T: Float>(x: ArrayView2<T>) -> T {
    let all: Vec<T> = x.iter().copied().collect();
    mean_before(all, 2) + beside_diagonal(&x.to_owned(), 1) + mean_without([x[[0, 0]], 1.0, 2.0], 1)
}

/// A straight-through estimator: the body does not use `slope`.
#[custom_op(name = "plain_elements::straight", backward = |d| { x: d * slope })]
pub fn straight<T: Float>(x: T, slope: f64) -> T {
    x.round()
}

/// The larger and the smaller; `symmetric` follows a condition.
#[custom_op(name = "plain_elements::mean", where p >= 0.0, symmetric)]
pub fn mean<T: Float>(x: T, y: T, p: f64) -> T {
    (x + y) * p
}

fn tensor(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.to_vec(), [values.len()]).expect("a tensor")
}

#[test]
fn lists_and_tuples_of_numbers_hold_elements() -> Result<()> {
    let (sum, length) = product::call(&tensor(&[1.0]), &tensor(&[2.0]), &tensor(&[-1.0]))?;
    // M · (1, 2, −1) = (8, 4.5, −9.25)
    assert_eq!(sum.to_vec::<f64>()?, [8.0 * -9.25 + 4.5]);
    assert_eq!(length.to_vec::<f64>()?, [(64.0 + 20.25 + 85.5625 + 1.0_f64).sqrt()]);
    opcheck(&product::op(), &[]).into_result()
}

#[test]
fn masks_are_compared() -> Result<()> {
    let (x, y) = (tensor(&[1.0, 2.0, -3.0, -4.0]), tensor(&[5.0, -6.0, 7.0, -8.0]));
    let (xor, differs, equals) = by_sign::call(&x, &y)?;
    assert_eq!(xor.to_vec::<f64>()?, [0.0, 2.0, -3.0, 0.0]);
    assert_eq!(differs.to_vec::<f64>()?, [0.0, 2.0, -3.0, 0.0]);
    assert_eq!(equals.to_vec::<f64>()?, [5.0, 0.0, 0.0, -8.0]);
    Ok(())
}

#[test]
fn a_helper_takes_lists() -> Result<()> {
    assert_eq!(polynomial::call(&tensor(&[2.0, -1.0]))?.to_vec::<f64>()?, [17.0, 2.0]);
    let a = Tensor::from_vec(vec![1.0, 7.0, 3.0, 4.0], [2, 2])?;
    let (trace, largest) = of_matrix::call(&a)?;
    assert_eq!((trace.to_vec::<f64>()?, largest.to_vec::<f64>()?), (vec![5.0], vec![7.0]));
    // (1 + 2) / 4, 2 · 2 and (1 + 2) / 2
    let a = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], [2, 2])?;
    assert_eq!(sizes::call(&a)?.to_vec::<f64>()?, [0.75 + 4.0 + 1.5]);
    opcheck(&sizes::op(), &[]).into_result()?;
    opcheck(&polynomial::op(), &[]).into_result()
}

#[test]
fn an_optional_attribute_of_a_cell_becomes_an_element() -> Result<()> {
    let (x, w) = (tensor(&[1.0, 2.0]), tensor(&[3.0, 4.0]));
    assert_eq!(capped::call(&x, None, None)?.to_vec::<f64>()?, [3.0]);
    assert_eq!(capped::call(&x, Some(&w), None)?.to_vec::<f64>()?, [11.0]);
    assert_eq!(capped::call(&x, Some(&w), Some(5.0))?.to_vec::<f64>()?, [5.0]);
    opcheck(&capped::op(), &[]).into_result()
}

#[test]
fn a_parameter_of_the_gradient_is_used() -> Result<()> {
    let x = tensor(&[1.4]).with_requires_grad()?;
    let out = straight::call(&x, 0.5)?;
    let found = minitensor::autograd::grad(&[out], &[x], &[], minitensor::autograd::Options::default())?;
    assert_eq!(found[0].as_ref().expect("a gradient").to_vec::<f64>()?, [0.5]);
    assert_eq!(mean::op().properties.len(), 1);
    Ok(())
}

/// Closures whose parameters have no type, or `f64`.
#[custom_op(name = "plain_elements::closures")]
pub fn closures<T: Float>(x: T, y: T) -> T {
    let line = |t| 2.0 * t + 1.0;
    let scaled = |p: f64| p * x;
    let bent = |t: T| if t > 0.0 { t * 0.5 } else { 1.0 };
    line(x) * bent(y) + scaled(3.0)
}

/// A function within the body, a function as an argument, and a list by a closure.
#[custom_op(name = "plain_elements::functions")]
pub fn functions<T: Float>(x: T) -> T {
    #[op_fn]
    fn doubled_square<T: Float>(t: T) -> T {
        2.0 * t * t
    }
    let powers: [T; 3] = std::array::from_fn(|i| x * i);
    secant(|t| t * t - 2.0, x) + doubled_square(x) + powers[0] + powers[1] + powers[2]
}

#[op_fn]
fn secant<T: Float>(f: impl Fn(T) -> T, x: T) -> T {
    x - f(x) / (f(x + 0.5) - f(0.0))
}

/// Closures of rows.
#[custom_op(name = "plain_elements::of_rows", shape = (x: [.., n]) -> [.., n])]
pub fn of_rows<R: Row>(x: R) -> R {
    let centered = |t| t - x.mean();
    let halved = |t| 0.5 * t;
    halved(centered(x))
}

#[test]
fn closures_and_functions_take_elements() -> Result<()> {
    let (x, y) = (tensor(&[2.0, 2.0]), tensor(&[4.0, -4.0]));
    assert_eq!(closures::call(&x, &y)?.to_vec::<f64>()?, [5.0 * 2.0 + 6.0, 5.0 + 6.0]);
    // f(2) = 2, f(2.5) = 4.25, f(0) = −2
    assert_eq!(functions::call(&tensor(&[2.0]))?.to_vec::<f64>()?, [2.0 - 2.0 / 6.25 + 8.0 + 6.0]);
    assert_eq!(of_rows::call(&tensor(&[1.0, 5.0]))?.to_vec::<f64>()?, [-1.0, 1.0]);
    opcheck(&functions::op(), &[]).into_result()?;
    opcheck(&of_rows::op(), &[]).into_result()
}

/// Compound assignments of operators that elements only have without assignment.
macro_rules! assigned {
    ($name:ident, $bound:ident, $plain:ty, ($x:ident, $y:ident) $body:block) => {
        mod $name {
            use super::*;

            /// Compound assignments.
            #[custom_op]
            pub fn op<T: $bound>($x: T, $y: T) -> T $body

            pub fn plain($x: $plain, $y: $plain) -> $plain $body
        }
    };
}
assigned!(assigned_bits, Int, i64, (x, y) {
    let mut r = 0;
    r |= x & 5;
    r ^= y;
    r &= x | 3;
    r <<= 2;
    r
});
assigned!(assigned_remainders, Float, f64, (x, y) {
    let mut turn = x * 2.0 + y;
    turn %= 1.5;
    turn
});

#[test]
fn every_operator_has_a_compound_assignment() -> Result<()> {
    let (a, b) = ([5i64, -3, 12, 7], [9i64, 4, -6, 0]);
    let of = |x: [i64; 4]| Tensor::from_vec(x.to_vec(), [4]);
    let expected: Vec<i64> = a.iter().zip(b).map(|(x, y)| assigned_bits::plain(*x, y)).collect();
    assert_eq!(assigned_bits::op::call(&of(a)?, &of(b)?)?.to_vec::<i64>()?, expected);
    let (a, b) = (a.map(|x| x as f64 / 4.0), b.map(|x| x as f64 / 8.0));
    let of = |x: [f64; 4]| Tensor::from_vec(x.to_vec(), [4]);
    let expected: Vec<f64> = a.iter().zip(b).map(|(x, y)| assigned_remainders::plain(*x, y)).collect();
    assert_eq!(assigned_remainders::op::call(&of(a)?, &of(b)?)?.to_vec::<f64>()?, expected);
    [assigned_bits::op::op(), assigned_remainders::op::op()].iter().try_for_each(|op| opcheck(op, &[]).into_result())
}
