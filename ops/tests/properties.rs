//! The clauses `linear`, `symmetric` and `replaces`: their effects, and the findings of opcheck for false statements.

// A slice of one owned tensor reads better than `from_ref`.
#![allow(clippy::cloned_ref_to_slice_refs)]

use minitensor::autograd::{Options, grad};
use minitensor::op::OpName;
use minitensor::prelude::*;
use minitensor::testing::{Sample, opcheck};
use minitensor::{BackwardCall, CustomOpBuilder, OpRef};
use minitensor_ops as _;

/// The weighted differences of neighbours, whose gradient is a function that nothing records.
#[custom_op(shape = (x: [.., n], w: [n]) -> [.., n], linear = [x, w], backward = of_differences)]
pub fn differences<T: Float>(x: &[T], w: &[T], out: &mut [T]) {
    for i in 0..x.len() {
        out[i] = w[i] * (x[i] - if i > 0 { x[i - 1] } else { 0.0 });
    }
}

fn of_differences(call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
    let read = |t: Tensor| t.detach().contiguous()?.to_vec::<f64>();
    let (d, x, w) = (read(call.cotangent(0)?)?, read(call.input(0)?)?, read(call.input(1)?)?);
    let n = call.dim("n") as usize;
    let (mut d_x, mut d_w) = (vec![0.0; d.len()], vec![0.0; n]);
    for at in 0..d.len() {
        let i = at % n;
        d_x[at] = w[i] * d[at] - if i + 1 < n { w[i + 1] * d[at + 1] } else { 0.0 };
        d_w[i] += d[at] * (x[at] - if i > 0 { x[at - 1] } else { 0.0 });
    }
    let sizes = |i: usize| call.shape(i).iter().map(|s| *s as usize).collect::<Vec<_>>();
    Ok(vec![Some(Tensor::from_vec(d_x, sizes(0))?), Some(Tensor::from_vec(d_w, sizes(1))?)])
}

/// `ln(softmax(x))`.
#[custom_op(shape = (x: [.., n]) -> [.., n], axis = -1, replaces = log(softmax(x, axis = axis)), name = "toy::log_softmax")]
pub fn toy_log_softmax<R: Row>(x: R) -> R {
    x - x.logsumexp()
}

fn row(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.to_vec(), [1, values.len()]).expect("a row")
}

fn leaf(values: &[f64]) -> Tensor {
    row(values).with_requires_grad().expect("floats")
}

const ALL: Options = Options { retain_graph: true, create_graph: true };

fn gradient(y: &Tensor, x: &Tensor) -> Tensor {
    let found = grad(&[y.clone()], &[x.clone()], &[], ALL).expect("a gradient");
    found.into_iter().next().flatten().expect("it depends on x")
}

fn sum(x: &Tensor) -> Tensor {
    static SUM: OpName = OpName::new("sum");
    SUM.call(&[x.into()], &[]).expect("a sum")
}

fn times(x: &Tensor, y: &Tensor) -> Tensor {
    static MULTIPLY: OpName = OpName::new("multiply");
    MULTIPLY.call(&[x.into(), y.into()], &[]).expect("a product")
}

/// The loss `Σ y³` as a function of plain numbers, for finite differences.
fn loss(x: &[f64; 3], w: &[f64; 3]) -> f64 {
    (0..3).map(|i| (w[i] * (x[i] - if i > 0 { x[i - 1] } else { 0.0 })).powi(3)).sum()
}

/// The derivative of `f` in each coordinate, by central differences. It is exact for polynomials of degree 2, and has an error of `h²` for others.
fn slopes(f: impl Fn(&[f64; 3]) -> f64, x: &[f64; 3], h: f64) -> [f64; 3] {
    std::array::from_fn(|i| {
        let moved = |by: f64| {
            let mut x = *x;
            x[i] += by;
            f(&x)
        };
        (moved(h) - moved(-h)) / (2.0 * h)
    })
}

#[test]
fn a_linear_op_has_derivatives_of_any_order_if_its_gradient_is_not_recorded() {
    let (x, w) = ([1.0, 3.0, -2.0], [2.0, 0.5, -1.5]);
    let (a, b) = (leaf(&x), Tensor::from_vec(w.to_vec(), [3]).and_then(Tensor::with_requires_grad).expect("floats"));
    let y = differences::call(&a, &b).expect("a result");
    let first = gradient(&sum(&times(&y, &times(&y, &y))), &a);
    let second = gradient(&sum(&first), &a);
    let third = gradient(&sum(&second), &a);
    let mixed = gradient(&sum(&first), &b);
    let near = |found: &Tensor, expected: [f64; 3]| {
        let found = found.to_vec::<f64>().expect("floats");
        assert!(
            found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4 * b.abs().max(1.0)),
            "{found:?} {expected:?}"
        );
    };
    let total = |x: &[f64; 3], w: &[f64; 3]| slopes(|x| loss(x, w), x, 1e-4).iter().sum::<f64>();
    near(&first, slopes(|x| loss(x, &w), &x, 1e-5));
    near(&second, slopes(|x| total(x, &w), &x, 1e-4));
    near(&mixed, slopes(|w| total(&x, w), &w, 1e-4));
    let of_second = |x: &[f64; 3]| slopes(|x| total(x, &w), x, 1e-2).iter().sum::<f64>();
    near(&third, slopes(of_second, &x, 1e-2));
}

#[test]
fn opcheck_accepts_properties_that_hold() {
    opcheck(&toy_log_softmax::op(), &[]).into_result().expect("it is correct");
    // Its gradient function reads elements, so it cannot be part of a graph.
    let report = opcheck(&differences::op(), &[]);
    assert!(report.samples > 0 && report.findings.iter().all(|f| f.check == "graph"), "{report}");
}

fn pair() -> Sample {
    Sample { inputs: vec![Some(row(&[0.5, -1.25, 2.0])), Some(row(&[1.5, 0.25, -0.75]))], attrs: vec![] }
}

fn stating(properties: &str, forward: impl Fn(&[&Tensor]) -> Result<Tensor> + Send + Sync + 'static) -> OpRef {
    let op = CustomOpBuilder::new("stating", 2).forward(forward).properties(properties).build();
    op.expect("a complete op").definition()
}

#[test]
fn opcheck_finds_properties_that_do_not_hold() {
    static SUBTRACT: OpName = OpName::new("subtract");
    static MULTIPLY: OpName = OpName::new("multiply");
    let subtract = |x: &[&Tensor]| SUBTRACT.call(&[x[0].into(), x[1].into()], &[]);
    let multiply = |x: &[&Tensor]| MULTIPLY.call(&[x[0].into(), x[1].into()], &[]);
    let wrong = [
        (stating("linear = (x, y)", multiply), "the clause `linear` does not hold for `x` and `y`"),
        (stating("linear = x", subtract), "the clause `linear` does not hold for `x`"),
        (stating("symmetric", subtract), "the clause `symmetric` does not hold: with `x` and `y` exchanged"),
        (stating("replaces = x + y", subtract), "the clause `replaces` does not hold"),
        (stating("replaces = no_such_op(x, y)", subtract), "no_such_op"),
    ];
    for (op, words) in wrong {
        let report = opcheck(&op, &[pair()]);
        let is_found = report.findings.iter().any(|f| f.check == "properties" && f.message.contains(words));
        assert!(is_found, "expected «{words}»: {report}");
    }
    let right =
        [stating("linear = (x, y)", subtract), stating("linear = [x, y], symmetric, replaces = y * x", multiply)];
    for op in right {
        let report = opcheck(&op, &[pair()]);
        assert!(report.findings.iter().all(|f| f.check != "properties"), "{report}");
    }
}

#[test]
fn a_property_that_an_op_cannot_have_is_an_error() {
    let cases = [
        ("linear = z", "there is no input 'z'"),
        ("linear = ()", "expected the name of an input"),
        ("linear x", "expected '='"),
        ("linear = x symmetric", "expected ','"),
        ("symmetric, symmetric", "expected each clause only once, found 'symmetric'"),
        ("linear = x, symmetric, linear = y", "expected each clause only once, found 'linear'"),
        ("commutative", "expected 'linear', 'symmetric' or 'replaces'"),
        ("replaces = x", "does not fit here"),
        ("replaces = exp(x)", "does not mention 'y'"),
        ("replaces = x + y.shape", "is not supported in the clause"),
        ("replaces = f(x, z)", "unknown name 'z'"),
    ];
    for (text, words) in cases {
        let op = CustomOpBuilder::new("stating", 2).forward(|x| Ok(x[0].clone())).properties(text).build();
        let error = op.err().expect("it is wrong").to_string();
        assert!(error.contains(words) && error.contains("op 'stating'"), "{text}: {error}");
    }
}
