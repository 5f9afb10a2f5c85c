//! Derivatives of any order.

// A slice of one owned tensor reads better than `from_ref`.
#![allow(clippy::cloned_ref_to_slice_refs)]

use std::f64::consts::PI;

use minitensor::autograd::{Options, grad};
use minitensor::kernels::program::{Program, Symbol};
use minitensor::kernels::{Complex, Const, Element, Field, Num};
use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor::{CustomOpBuilder, DType, Device, OpRef, registry};
use minitensor_ops::activation::{Approximate, elu, gelu, relu, sigmoid, swish};
use minitensor_ops::arithmetic::{abs, clamp, multiply, power};
use minitensor_ops::exponential::{exp, sqrt};
use minitensor_ops::trigonometry::{sin, tanh};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.to_vec(), [values.len()]).and_then(Tensor::with_requires_grad).expect("a leaf")
}

fn values(t: &Tensor) -> Vec<f64> {
    t.detach().to_vec::<f64>().expect("float64 values")
}

const CREATE: Options = Options { retain_graph: true, create_graph: true };

/// The gradient of the sum of `y`, recorded.
fn gradient(y: &Tensor, x: &Tensor) -> Result<Tensor> {
    let ones = Tensor::ones(y.shape().clone(), y.dtype(), Device::Cpu)?;
    Ok(grad(&[y.clone()], &[x.clone()], &[Some(ones)], CREATE)?.remove(0).expect("a gradient"))
}

/// The derivatives of orders 1 to `orders` of an elementwise function.
fn derivatives(f: impl Fn(&Tensor) -> Result<Tensor>, at: &[f64], orders: usize) -> Result<Vec<Vec<f64>>> {
    let x = leaf(at);
    let mut y = f(&x)?;
    let mut all = Vec::new();
    for _ in 0..orders {
        // A value that does not depend on `x` has no history.
        y = if y.requires_grad() { gradient(&y, &x)? } else { Tensor::zeros([at.len()], DType::F64, Device::Cpu)? };
        all.push(values(&y));
    }
    Ok(all)
}

#[track_caller]
fn assert_close(got: &[f64], expected: impl IntoIterator<Item = f64>, what: &str) {
    for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((got - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{what} at {at}: {got}, not {expected}");
    }
}

const POINTS: [f64; 7] = [-3.0, -1.5, -0.2, 0.0, 0.4, 1.0, 2.5];

type Closed = [fn(f64) -> f64; 4];

#[test]
fn four_derivatives_of_common_functions_are_the_closed_forms() -> Result<()> {
    type Function = fn(&Tensor) -> Result<Tensor>;
    fn phi(x: f64) -> f64 {
        (-x * x / 2.0).exp() / (2.0 * PI).sqrt()
    }
    fn cdf(x: f64) -> f64 {
        use minitensor::kernels::Float;
        Float::normal_cdf(x)
    }
    /// σ and its derivatives.
    fn s(x: f64) -> [f64; 5] {
        let a = 1.0 / (1.0 + (-x).exp());
        let b = a * (1.0 - a);
        let c = b * (1.0 - 2.0 * a);
        let d = c * (1.0 - 2.0 * a) - 2.0 * b * b;
        [a, b, c, d, d * (1.0 - 2.0 * a) - 6.0 * b * c]
    }
    /// The derivative of tanh, expressed by tanh.
    fn t(x: f64) -> (f64, f64) {
        (x.tanh(), 1.0 - x.tanh().powi(2))
    }
    let table: [(&str, Function, Closed); 5] = [
        ("exp", exp::call, [f64::exp, f64::exp, f64::exp, f64::exp]),
        ("sin", sin::call, [f64::cos, |x| -x.sin(), |x| -x.cos(), f64::sin]),
        (
            "tanh",
            tanh::call,
            [
                |x| t(x).1,
                |x| -2.0 * t(x).0 * t(x).1,
                |x| t(x).1 * (4.0 * t(x).0.powi(2) - 2.0 * t(x).1),
                |x| t(x).0 * t(x).1 * (16.0 * t(x).1 - 8.0 * t(x).0.powi(2)),
            ],
        ),
        (
            "swish",
            swish::call,
            [
                |x| s(x)[0] + x * s(x)[1],
                |x| 2.0 * s(x)[1] + x * s(x)[2],
                |x| 3.0 * s(x)[2] + x * s(x)[3],
                |x| 4.0 * s(x)[3] + x * s(x)[4],
            ],
        ),
        (
            "gelu",
            |x| gelu::call(x, Approximate::None),
            [
                |x| cdf(x) + x * phi(x),
                |x| phi(x) * (2.0 - x * x),
                |x| phi(x) * (x.powi(3) - 4.0 * x),
                |x| phi(x) * (7.0 * x * x - x.powi(4) - 4.0),
            ],
        ),
    ];
    for (name, function, closed) in table {
        for (order, (got, closed)) in derivatives(function, &POINTS, 4)?.iter().zip(closed).enumerate() {
            assert_close(got, POINTS.map(closed), &format!("derivative {} of {name}", order + 1));
        }
    }
    Ok(())
}

#[test]
fn partial_derivatives_commute() -> Result<()> {
    let (x, y) = (leaf(&[2.0, 0.5]), leaf(&[3.0, -1.5]));
    let z = power::call(&x, &y)?;
    let (by_x, by_y) = (gradient(&z, &x)?, gradient(&z, &y)?);
    let mixed = |x: f64, y: f64| x.powf(y - 1.0) * (1.0 + y * x.ln());
    let expected = [mixed(2.0, 3.0), mixed(0.5, -1.5)];
    assert_close(&values(&gradient(&by_x, &y)?), expected, "by x, then by y");
    assert_close(&values(&gradient(&by_y, &x)?), expected, "by y, then by x");
    let third = gradient(&gradient(&by_x, &x)?, &x)?;
    assert_close(&values(&third), [6.0, -1.5 * -2.5 * -3.5 * 0.5_f64.powf(-4.5)], "by x three times");
    Ok(())
}

/// The square root where the mask is true.
#[custom_op(name = "orders::root_where")]
fn root_where<T: Float>(wanted: T::Mask, x: T) -> T {
    if wanted { x.sqrt() } else { x }
}

#[test]
fn a_branch_not_taken_adds_nothing_to_any_derivative() -> Result<()> {
    let root = |x: &Tensor| root_where::call(&Tensor::from_vec(vec![false, true], [2])?, x);
    // The slope of the root is infinite in the branch that is not taken.
    assert_eq!(derivatives(root, &[0.0, 4.0], 3)?, [[1.0, 0.25], [0.0, -1.0 / 32.0], [0.0, 3.0 / 256.0]]);
    for (f, slopes) in [
        (&(|x: &Tensor| abs::call(x)) as &dyn Fn(&Tensor) -> Result<Tensor>, [-1.0, 0.0, 1.0]),
        (&|x: &Tensor| relu::call(x), [0.0, 0.0, 1.0]),
        (&|x: &Tensor| clamp::call(x, -1.0, 1.0), [0.0, 1.0, 0.0]),
    ] {
        assert_eq!(derivatives(f, &[-2.0, 0.0, 2.0], 3)?, [slopes, [0.0; 3], [0.0; 3]]);
    }
    let far = derivatives(swish::call, &[-800.0, 800.0], 3)?;
    assert_eq!(far, [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]);
    Ok(())
}

/// `exp(x²)`: at 0 its tangent is 0, but the derivative of the tangent is not.
#[custom_op(name = "orders::bell")]
fn bell<T: Float>(x: T) -> T {
    (x * x).exp()
}

#[test]
fn a_tangent_of_zero_has_a_derivative_of_its_own() -> Result<()> {
    assert_eq!(derivatives(bell::call, &[0.0], 4)?, [[0.0], [2.0], [0.0], [12.0]]);
    // The gradient is linear in the cotangent, even if that is 0.
    let (x, d) = (leaf(&[0.3]), leaf(&[0.0]));
    let g = grad(&[bell::call(&x)?], &[x.clone()], &[Some(d.clone())], CREATE)?.remove(0).expect("a gradient");
    assert_close(&values(&gradient(&g, &d)?), [0.6 * 0.09_f64.exp()], "by the cotangent");
    Ok(())
}

/// Two outputs, a branch, a number, and optional inputs.
#[custom_op(name = "orders::wave", dtype = (x: T) -> (sine: T, cosine: T))]
fn wave<T: Float>(
    x: T,
    shift: Option<T>,
    #[default = 2.0] pitch: f64,
    limit: Option<f64>,
    #[default = false] squared: bool,
) -> (T, T) {
    let angle = pitch * if let Some(shift) = shift { x + shift } else { x };
    let sine = if squared { angle.sin().square() } else { angle.sin() };
    (sine, if let Some(limit) = limit { angle.cos() * limit } else { angle.cos() })
}

#[test]
fn outputs_attributes_and_absent_inputs_are_what_they_were() -> Result<()> {
    let at = [0.3, -1.1];
    for shifted in [false, true] {
        let shift = shifted.then(|| leaf(&[0.5]));
        let total = |x: &Tensor| {
            let (sine, cosine) = wave::call(x, shift.as_ref(), 3.0, Some(0.5), true)?;
            minitensor_ops::arithmetic::add::call(&sine, &cosine)
        };
        let [_, second, third] = &derivatives(total, &at, 3)?[..] else { unreachable!("three orders") };
        let angle = |x: f64| 3.0 * (x + if shifted { 0.5 } else { 0.0 });
        assert_close(second, at.map(|x| 18.0 * (2.0 * angle(x)).cos() - 4.5 * angle(x).cos()), "second");
        assert_close(third, at.map(|x| -108.0 * (2.0 * angle(x)).sin() + 13.5 * angle(x).sin()), "third");
    }
    let of_elu = derivatives(|x| elu::call(x, 1.5), &[-1.0, 2.0], 3)?;
    let left = 1.5 * (-1.0_f64).exp();
    assert_close(&of_elu.concat(), [left, 1.0, left, 0.0, left, 0.0], "elu");
    Ok(())
}

#[test]
fn half_precision_stays_what_it_is() -> Result<()> {
    for dtype in [DType::F16, DType::Bf16, DType::F32] {
        let x = Tensor::full([3], Const::Float(0.5), dtype, Device::Cpu)?.with_requires_grad()?;
        let third = gradient(&gradient(&gradient(&swish::call(&x)?, &x)?, &x)?, &x)?;
        assert_eq!(third.dtype(), dtype);
        let tolerance = if dtype == DType::F32 { 1e-6 } else { 4e-3 };
        let got = third.detach().cast(DType::F64)?.to_vec::<f64>()?[0];
        assert!((got + 0.220_848_8).abs() < tolerance, "{dtype}: {got}");
    }
    Ok(())
}

type C = Complex<f64>;

fn complex_leaf(re: f64, im: f64) -> Result<Tensor> {
    Tensor::from_vec(vec![C::new(re, im)], [1])?.with_requires_grad()
}

/// The recorded gradient of `y` with respect to `x` for the cotangent `d`.
fn pulled(y: &Tensor, x: &Tensor, d: C) -> Result<Tensor> {
    let d = Tensor::from_vec(vec![d], [1])?;
    Ok(grad(&[y.clone()], &[x.clone()], &[Some(d)], CREATE)?.remove(0).expect("a gradient"))
}

#[track_caller]
fn assert_is(t: &Tensor, expected: C) {
    let got = t.detach().to_vec::<C>().expect("complex128 values")[0];
    assert!((got - expected).norm() <= 1e-12 * expected.norm().max(1.0), "{got}, not {expected}");
}

#[test]
fn a_gradient_of_complex_numbers_has_a_derivative_by_the_conjugate() -> Result<()> {
    let (x, y) = (complex_leaf(0.5, -1.25)?, complex_leaf(-0.75, 2.0)?);
    let (c, d) = (C::new(0.3, 0.8), C::new(-1.2, 0.4));
    // The derivative of d ȳ with respect to y involves the conjugate.
    let first = pulled(&multiply::call(&x, &y)?, &x, d)?;
    assert_is(&first, d * C::new(-0.75, -2.0));
    assert_is(&pulled(&first, &y, c)?, c.conj() * d);
    let z = C::new(0.5, -1.25);
    let first = pulled(&exp::call(&x)?, &x, d)?;
    let second = pulled(&first, &x, c)?;
    assert_is(&second, c.conj() * d * z.exp().conj());
    assert_is(&pulled(&second, &x, c)?, c.conj() * c.conj() * d * z.exp().conj());
    Ok(())
}

#[test]
fn second_derivatives_of_complex_numbers_agree_with_differences() -> Result<()> {
    let (c, d) = (C::new(0.3, 0.8), C::new(-1.2, 0.4));
    for function in [sigmoid::call, tanh::call, sqrt::call, |x: &Tensor| power::call(x, x)] {
        let first = |re, im| -> Result<(Tensor, Tensor)> {
            let x = complex_leaf(re, im)?;
            Ok((pulled(&function(&x)?, &x, d)?, x))
        };
        // Re(c̄ g), whose gradient is the second derivative.
        let real = |re, im| -> Result<f64> { Ok((c.conj() * first(re, im)?.0.detach().to_vec::<C>()?[0]).re) };
        let (re, im, h) = (0.4, 0.7, 1e-6);
        let by =
            |dx: f64, dy: f64| -> Result<f64> { Ok((real(re + dx, im + dy)? - real(re - dx, im - dy)?) / (2.0 * h)) };
        let (first, x) = first(re, im)?;
        let second = pulled(&first, &x, c)?.detach().to_vec::<C>()?[0];
        let expected = C::new(by(h, 0.0)?, by(0.0, h)?);
        assert!((second - expected).norm() < 1e-7, "{second}, not {expected}");
    }
    Ok(())
}

/// Twelve inputs, which exceed the limit of a compiled gradient.
#[custom_op(name = "orders::many")]
#[allow(clippy::too_many_arguments)]
fn many<T: Float>(a: T, b: T, c: T, d: T, e: T, f: T, g: T, h: T, i: T, j: T, k: T, l: T) -> T {
    a * b * c * d + e * f * g * h + i * j * (k * l).sin()
}

#[test]
fn ops_of_many_inputs_have_gradients() -> Result<()> {
    let x: Vec<Tensor> = (1..=12).map(|i| leaf(&[f64::from(i) / 4.0])).collect();
    let y = many::call(&x[0], &x[1], &x[2], &x[3], &x[4], &x[5], &x[6], &x[7], &x[8], &x[9], &x[10], &x[11])?;
    let by_k = gradient(&y, &x[10])?;
    assert_close(&values(&by_k), [2.25 * 2.5 * 3.0 * (2.75_f64 * 3.0).cos()], "by k");
    assert_close(&values(&gradient(&by_k, &x[9])?), [2.25 * 3.0 * (2.75_f64 * 3.0).cos()], "by k and j");
    Ok(())
}

/// `x` doubled where `e` is positive. The two dtypes are independent.
#[custom_op(name = "orders::ldexp")]
fn ldexp<T: Float, U: Int>(x: T, e: U) -> T {
    if e > 0 { (x * 2.0).exp() } else { x * x * x }
}

/// The conditions on two integers choose among three functions of `x`. The three dtypes are independent.
#[custom_op(name = "orders::by_both", dtype = (x: T, e: U, f: V) -> T where U: i32 | i64, V: u8 | i64)]
fn by_both<T: Float, U: Int, V: Int>(x: T, e: U, f: V) -> T {
    if e > 0 {
        (x * 2.0).exp()
    } else if f * 2 > 4 {
        x * x * x
    } else {
        x.sin()
    }
}

#[test]
fn three_dtypes_are_independent() -> Result<()> {
    let e = Tensor::from_vec(vec![1_i32, -1, -1], [3])?;
    let f = Tensor::from_vec(vec![0_u8, 3, 2], [3])?;
    let [_, second, ..] = &derivatives(|x| by_both::call(x, &e, &f), &[0.5; 3], 2)?[..] else {
        unreachable!("two orders")
    };
    assert_close(second, [4.0 * 1.0_f64.exp(), 3.0, -0.5_f64.sin()], "second");
    minitensor::testing::opcheck(&by_both::op(), &[]).into_result()
}

#[test]
fn dtypes_of_their_own_are_one_in_a_program() -> Result<()> {
    let e = Tensor::from_vec(vec![1_i64, -1], [2])?;
    let [.., third] = &derivatives(|x| ldexp::call(x, &e), &[0.5, 0.5], 3)?[..] else { unreachable!("three orders") };
    assert_close(third, [8.0 * 1.0_f64.exp(), 6.0], "third");
    Ok(())
}

fn op_of(program: Program, change: impl Fn(CustomOpBuilder) -> CustomOpBuilder) -> Result<OpRef> {
    change(CustomOpBuilder::from_program("orders::made", program)?).build().map(|op| op.definition())
}

fn one(x: Symbol) -> Vec<(String, minitensor::kernels::program::Output)> {
    vec![("out".into(), x.into())]
}

#[test]
fn an_op_made_from_a_program_passes_the_checks_of_any_op() -> Result<()> {
    let op = op_of(
        Program::write(&["keep", "x", "y"], &["scale"], |v, u| {
            one(Symbol::select(v[0].truthy(), v[1] * v[2].sigmoid() * u[0], v[1].square() * v[1]))
        }),
        |builder| builder.mask(0),
    )?;
    assert_eq!(op.signature(), "orders::made(keep, x, y, scale)");
    let mask = Tensor::from_vec(vec![true, false, true, false, true, true], [2, 3])?;
    let x = Tensor::from_vec(vec![0.5, -1.5, 2.0, 0.25, 0.1, -0.3], [2, 3])?;
    let y = Tensor::from_vec(vec![1.5, -0.5], [2, 1])?;
    let sample = minitensor::testing::Sample {
        inputs: vec![Some(mask), Some(x), Some(y)],
        attrs: vec![minitensor::Attr::Float(1.5)],
    };
    opcheck(&op, &[sample]).into_result()
}

#[test]
fn an_op_made_from_a_program_runs_on_threads_over_any_layout() -> Result<()> {
    let op = op_of(Program::write(&["x", "y"], &[], |v, _| one(v[0] * v[1] + v[0])), |b| b)?;
    let n = 300_000;
    let x = Tensor::from_vec((0..n).map(|i| i as f32).collect(), [2, n / 2])?;
    let y = Tensor::from_vec((0..n).map(|i| (i % 7) as i32).collect(), [n / 2, 2])?.permute_view(&[1, 0])?;
    let got = minitensor::dispatch(&op, &[(&x).into(), (&y).into()], &[])?.single();
    let y: Vec<f32> = y.contiguous()?.cast(DType::F32)?.to_vec()?;
    let expected: Vec<f32> = x.to_vec::<f32>()?.iter().zip(y).map(|(x, y)| x * y + x).collect();
    assert_eq!((got.dtype(), got.to_vec::<f32>()?), (DType::F32, expected));
    let whole = Tensor::from_vec(vec![3_i32, 4], [2])?;
    let got = minitensor::dispatch(&op, &[(&whole).into(), (&whole).into()], &[])?.single();
    assert_eq!(got.to_vec::<i32>()?, [12, 20]);
    let small = Tensor::from_vec(vec![100_i8, -128], [2])?;
    let got = minitensor::dispatch(&op, &[(&small).into(), (&small).into()], &[])?.single();
    let expected = [100_i8, -128].map(|x| x.wrapping_mul(x).wrapping_add(x));
    assert_eq!((got.dtype(), got.to_vec::<i8>()?), (DType::I8, expected.to_vec()));
    let truth = Tensor::from_vec(vec![true, false], [2])?;
    let error = minitensor::dispatch(&op, &[(&truth).into(), (&truth).into()], &[]);
    assert!(error.unwrap_err().message().contains("op 'orders::made': 'x' takes"));
    Ok(())
}

#[test]
fn what_no_op_can_be_made_of_is_refused() {
    let error = |program: Program, mask: bool| {
        op_of(program, |builder| if mask { builder.mask(0) } else { builder }).unwrap_err().message().to_string()
    };
    let bits = Program::write(&["x"], &[], |v, _| one((v[0] & v[0]).sin()));
    assert!(error(bits, false).contains("op 'orders::made': no dtype supports all functions of its program"));
    let number = Program::write(&["x"], &[], |v, _| one(v[0].sin()));
    assert!(error(number, true).contains("an input of truth values is used as a number"));
}

#[test]
fn gradients_can_be_called_and_differentiated_like_other_ops() -> Result<()> {
    let (d, x) = (leaf(&[1.5]), leaf(&[0.7]));
    let op = registry::get("orders::bell.vjp")?;
    let y = minitensor::dispatch(&op, &[(&d).into(), (&x).into()], &[])?.single();
    let e = 0.49_f64.exp();
    assert_close(&values(&gradient(&y, &d)?), [1.4 * e], "by the cotangent");
    assert_close(&values(&gradient(&y, &x)?), [1.5 * e * (2.0 + 4.0 * 0.49)], "by x");
    Ok(())
}
