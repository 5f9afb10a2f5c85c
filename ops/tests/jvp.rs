//! The clause `jvp`: tangents as formulas or functions, of which the gradient is the transpose.

use minitensor::autograd::{Options, grad};
use minitensor::op::{Arg, Backward, Mode, OpRef, dispatch_one};
use minitensor::prelude::*;
use minitensor::testing;
use minitensor::{BackwardCall, CustomOpBuilder, registry};
use minitensor_ops::arithmetic::{add, multiply};

/// `√(x² + y²)`.
#[custom_op(name = "jvp::hypotenuse", jvp = |dx, dy| { out: (x * dx + y * dy) / out })]
pub fn hypotenuse<T: Float>(x: T, y: T) -> T {
    (x * x + y * y).sqrt()
}

/// Polar coordinates as Cartesian ones.
#[custom_op(name = "jvp::cartesian", dtype = (r: T, t: T) -> (x: T, y: T), jvp = |dr, dt| {
    let (sine, cosine) = (t.sin(), t.cos());
    let across = r * dt;
    x: dr * cosine - across * sine,
    y: dr * sine + across * cosine,
})]
pub fn cartesian<T: Float>(r: T, t: T) -> (T, T) {
    (r * t.cos(), r * t.sin())
}

/// A holomorphic function: no formula conjugates.
#[custom_op(name = "jvp::square_times", jvp = |dz, dw| { out: 2 * z * dz * w + z * z * dw })]
pub fn square_times<T: Field>(z: T, w: T) -> T {
    z * z * w
}

/// An optional input, an attribute, and a mask, which has no tangent.
#[custom_op(name = "jvp::scaled_where", jvp = |dx, _, dw| {
    let scale = if negative { -1.0 } else { 1.0 };
    out: if chosen { if let Some(w) = w { scale * (dx * w + x * dw) } else { scale * dx } } else { 0 * dx },
})]
pub fn scaled_where<T: Float>(x: T, chosen: T::Mask, w: Option<T>, #[default = false] negative: bool) -> T {
    let scaled = if let Some(w) = w { x * w } else { x };
    let signed = if negative { -scaled } else { scaled };
    if chosen { signed } else { 0.0 }
}

/// `log(softmax(x))` along an axis.
#[custom_op(
    name = "jvp::log_softmax",
    shape = (x: [.., n]) -> [.., n],
    axis = -1,
    jvp = |dx| { out: dx - sum(out.exp() * dx, -1, true) },
)]
pub fn log_softmax<R: Row>(x: R) -> R {
    let shifted = x - x.max();
    shifted - shifted.exp().sum().ln()
}

/// The norm along any axes.
#[custom_op(
    name = "jvp::norm",
    shape = (x: [.., n]) -> [..],
    axis = None,
    jvp = |dx| { out: sum(x * dx, -1) / out },
)]
pub fn norm<R: Row>(x: R) -> R {
    (x * x).sum().sqrt()
}

/// The product of a matrix and a vector, as cells.
#[custom_op(
    name = "jvp::apply",
    shape = (a: [.., m, n], x: [.., n]) -> [.., m],
    jvp = |da, dx| { out: matmul(da, x.unsqueeze(-1)).squeeze(-1) + matmul(a, dx.unsqueeze(-1)).squeeze(-1) },
)]
pub fn apply<T: Float>(a: ArrayView2<'_, T>, x: &[T], out: &mut [T]) {
    for i in 0..out.len() {
        out[i] = 0.0;
        for j in 0..x.len() {
            out[i] += a[[i, j]] * x[j];
        }
    }
}

/// The sum of any number of tensors: a function, since a formula cannot index a list.
#[custom_op(name = "jvp::sum_of", jvp = sum_of_jvp)]
pub fn sum_of(tensors: &[&Tensor]) -> Result<Tensor> {
    let (first, rest) = tensors.split_first().ok_or_else(|| Error::value("takes at least one tensor"))?;
    rest.iter().try_fold((*first).clone(), |total, t| add::call(&total, t))
}

fn sum_of_jvp(call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
    let first = call.tangent(0)?;
    let rest = (1..call.num_inputs()).map(|i| call.tangent(i));
    rest.into_iter().try_fold(first, |total, t| add::call(&total, &t?)).map(|t| vec![Some(t)])
}

/// Straight through in `x`; `w` has no gradient.
#[custom_op(name = "jvp::rounded", jvp = |dx, _| { out: dx })]
pub fn rounded<T: Float>(x: T, w: T) -> T {
    (x * w).round()
}

/// The exponential moving average, in place.
#[custom_op(name = "jvp::ema", jvp = |d_average, dx| { average: decay * d_average + (1 - decay) * dx })]
pub fn ema<T: Float>(average: &mut T, x: T, #[default = 0.9] decay: f64) {
    *average = decay * *average + (1.0 - decay) * x;
}

fn opcheck(op: &OpRef) -> Result<()> {
    testing::opcheck(op, &[]).into_result()
}

fn leaf(values: &[f64], shape: &[usize]) -> Tensor {
    Tensor::from_vec(values.to_vec(), shape).and_then(Tensor::with_requires_grad).expect("a leaf")
}

#[test]
fn opcheck_verifies_the_transposes() -> Result<()> {
    let names =
        ["hypotenuse", "cartesian", "square_times", "scaled_where", "log_softmax", "norm", "apply", "sum_of", "ema"];
    for name in names {
        opcheck(&registry::get(&format!("jvp::{name}"))?).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    Ok(())
}

#[test]
fn opcheck_finds_a_wrong_tangent() -> Result<()> {
    let wrong = CustomOpBuilder::new("jvp::wrong", 2)
        .forward(|x| multiply::call(x[0], x[1]))
        .jvp_formula("|dx, dy| { out: dx * y + 1.01 * x * dy }")
        .build()?;
    let error = opcheck(&wrong.definition()).expect_err("a wrong gradient");
    assert!(error.to_string().contains("gradient"), "{error}");
    let square = CustomOpBuilder::new("jvp::not_linear", 1)
        .forward(|x| multiply::call(x[0], x[0]))
        .jvp_formula("|dx| { out: 2 * x * dx * dx }")
        .build()?;
    opcheck(&square.definition()).expect_err("it is not linear in the tangent");
    Ok(())
}

#[test]
fn an_ignored_tangent_means_no_gradient() -> Result<()> {
    let (x, w) = (leaf(&[1.4], &[1]), leaf(&[2.0], &[1]));
    let out = rounded::call(&x, &w.detach())?;
    let found = grad(&[out], std::slice::from_ref(&x), &[], Options::default())?;
    assert_eq!(found[0].as_ref().expect("a gradient").to_vec::<f64>()?, [1.0]);
    let out = rounded::call(&x, &w)?;
    let error = grad(&[out], &[x, w], &[], Options::default()).expect_err("w has no gradient");
    assert!(error.to_string().contains("no gradient for its input 'w'"), "{error}");
    Ok(())
}

#[test]
fn gradients_have_the_shapes_of_broadcast_inputs_and_any_order() -> Result<()> {
    let (x, y) = (leaf(&[3.0, 1.0], &[2, 1]), leaf(&[4.0, 2.0, 5.0], &[3]));
    let out = hypotenuse::call(&x, &y)?;
    let options = Options { create_graph: true, ..Options::default() };
    let ones = Tensor::ones(out.shape().clone(), out.dtype(), out.device())?;
    let first = grad(&[out], &[x.clone(), y.clone()], &[Some(ones)], options)?;
    let dx = first[0].clone().expect("a gradient");
    assert_eq!(
        (dx.shape()[..].to_vec(), first[1].as_ref().expect("a gradient").shape()[..].to_vec()),
        (vec![2, 1], vec![3])
    );
    // ∂/∂x Σ x/√(x² + y²) = Σ y²/√(x² + y²)³
    let at = |x: f64, y: f64| y * y / (x * x + y * y).powf(1.5);
    let ones = Tensor::ones(dx.shape().clone(), dx.dtype(), dx.device())?;
    let second =
        grad(&[dx], &[x], &[Some(ones)], Options::default())?[0].clone().expect("a gradient").to_vec::<f64>()?;
    for (got, x) in second.iter().zip([3.0, 1.0]) {
        let expected: f64 = [4.0, 2.0, 5.0].iter().map(|y| at(x, *y)).sum();
        assert!((got - expected).abs() < 1e-14, "{got} {expected}");
    }
    Ok(())
}

#[test]
fn a_closure_states_the_tangents_of_an_op_made_at_run_time() -> Result<()> {
    let built = CustomOpBuilder::new("jvp::cube", 1)
        .forward(|x| multiply::call(&multiply::call(x[0], x[0])?, x[0]))
        .jvp(|call| {
            let x = call.input(0)?;
            let slope = multiply::call(&multiply::call(&x, &x)?, &Tensor::from_vec(vec![3.0], [])?)?;
            Ok(vec![Some(multiply::call(&slope, &call.tangent(0)?)?)])
        })
        .build()?;
    let op = built.definition();
    assert!(matches!(&op.backward, Backward::Formula(f) if f.mode == Mode::Forward));
    opcheck(&op)
}

#[test]
fn wrong_tangents_are_errors() -> Result<()> {
    let x = leaf(&[1.0, 2.0], &[2]);
    let of = |jvp: fn(&BackwardCall<'_>) -> Result<Vec<Option<Tensor>>>| -> Result<String> {
        let built = CustomOpBuilder::new("jvp::bad", 1).forward(|x| Ok(x[0].clone())).jvp(jvp).build()?;
        let out = dispatch_one(&built.definition(), &[Arg::Tensor(&x)], &[])?;
        let cotangent = Tensor::ones(out.shape().clone(), out.dtype(), out.device())?;
        Ok(grad(&[out], std::slice::from_ref(&x), &[Some(cotangent)], Options::default())
            .expect_err("an error")
            .to_string())
    };
    let none = of(|_| Ok(vec![]))?;
    assert!(none.contains("its jvp returned 0 tangents for 1 output"), "{none}");
    let large = of(|_| Ok(vec![Some(Tensor::from_vec(vec![1.0; 3], [3])?)]))?;
    assert!(large.contains("tangent of shape (3,) for the output 'out' of shape (2,)"), "{large}");
    let constant = of(|call| Ok(vec![Some(call.tangent(0)?.detach())]))?;
    assert!(constant.contains("do not compute from the tangents"), "{constant}");
    let cotangent = of(|call| Ok(vec![Some(call.tangent(1)?)]))?;
    assert!(cotangent.contains("has no tangent"), "{cotangent}");
    Ok(())
}

#[test]
fn a_tangent_that_does_not_depend_on_an_input_has_zeros_as_its_gradient() -> Result<()> {
    let built = CustomOpBuilder::new("jvp::flat", 1)
        .forward(|x| multiply::call(x[0], &Tensor::from_vec(vec![0.0], [])?))
        .jvp(|_| Ok(vec![None]))
        .build()?;
    let x = leaf(&[1.0, 2.0], &[2]);
    let out = dispatch_one(&built.definition(), &[Arg::Tensor(&x)], &[])?;
    let cotangent = Tensor::ones(out.shape().clone(), out.dtype(), out.device())?;
    let found = grad(&[out], &[x], &[Some(cotangent)], Options::default())?;
    assert_eq!(found[0].as_ref().expect("a gradient").to_vec::<f64>()?, [0.0, 0.0]);
    Ok(())
}

/// `eˣ`, whose tangent calls the op itself.
#[custom_op(name = "jvp::exp", jvp = |dx| { out: jvp::exp(x) * dx })]
pub fn exp<T: Float>(x: T) -> T {
    x.exp()
}

#[test]
fn a_jvp_may_call_its_own_op() -> Result<()> {
    let x = leaf(&[0.5], &[1]);
    let options = Options { create_graph: true, ..Options::default() };
    let mut y = exp::call(&x)?;
    for _ in 0..3 {
        y = grad(&[y], std::slice::from_ref(&x), &[], options)?[0].clone().expect("a gradient");
    }
    assert!((y.item::<f64>()? - 0.5_f64.exp()).abs() < 1e-14);
    Ok(())
}

/// Complex numbers: the tangent is not conjugated.
#[custom_op(name = "jvp::rotated", jvp = |dz, da| { out: dz * a + z * da })]
pub fn rotated<T: Float>(z: Complex<T>, a: T) -> Complex<T> {
    z * a
}

/// A position has no tangent, although it is computed.
#[custom_op(name = "jvp::ramp", jvp = |dx, _| { out: dx * at })]
pub fn ramp<T: Float>(x: T, #[position(-1)] at: T) -> T {
    x * at
}

/// The squares of any number of tensors.
#[custom_op(name = "jvp::squares_of", jvp = squares_of_jvp)]
pub fn squares_of(tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
    tensors.iter().map(|x: &&Tensor| Ok(x.square())).collect()
}

fn squares_of_jvp(call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
    let two = Tensor::from_vec(vec![2.0], [])?;
    let tangent = |i| multiply::call(&multiply::call(&two, &call.input(i)?)?, &call.tangent(i)?).map(Some);
    (0..call.num_inputs()).map(tangent).collect()
}

#[test]
fn complex_numbers_positions_and_lists_have_tangents() -> Result<()> {
    for name in ["rotated", "ramp", "squares_of"] {
        opcheck(&registry::get(&format!("jvp::{name}"))?).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    Ok(())
}
