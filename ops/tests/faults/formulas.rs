//! Gradients that are written as formulas, and differ from the derivative of the body.

use minitensor::prelude::*;
use minitensor::testing::{Sample, opcheck};

use super::t;

/// The logistic function, with a formula in which a digit is wrong.
#[custom_op(name = "faulty::logistic", backward = |d| { x: 1.0000001 * d * out * (1 - out) })]
pub fn logistic<T: Float>(x: T) -> T {
    x.sigmoid()
}

/// A weighted softmax, with a formula in which a digit is wrong.
#[custom_op(
    name = "faulty::weighted_softmax",
    shape = (x: [.., n], weight: [..]) -> [.., n],
    backward = |d| {
        let weight = weight.unsqueeze(-1);
        let y = softmax(x, -1);
        x: weight * y * (d - (d * y).sum(-1, true)),
        weight: (d * y).sum(-1) * 0.9999999,
    },
)]
pub fn weighted_softmax<R: Row>(x: R, weight: R) -> R {
    let e = (x - x.max().detach()).exp();
    weight * e / e.sum()
}

fn span_of_row<R: Row>(x: R) -> R {
    (x.max() - x.min()).square()
}

/// The square of the range of a row, with a formula in which a digit is wrong.
#[custom_op(
    name = "faulty::square_range",
    shape = (x: [.., n]) -> [..] where n > 0,
    program = span_of_row,
    backward = |d| {
        let largest = max(x, -1, true);
        let least = min(x, -1, true);
        let slope = 2.0000001 * d.unsqueeze(-1) * (largest - least);
        x: if x == largest { slope } else if x == least { -slope } else { 0 * slope },
    },
)]
pub fn square_range<T: Float>(x: &[T], out: &mut T) {
    use minitensor::kernels::rows;
    let range = rows::max(x).unwrap_or_default() - rows::min(x).unwrap_or_default();
    *out = range * range;
}

#[test]
fn fault_26_a_formula_with_a_wrong_digit() {
    for (op, input) in [(logistic::op(), "x"), (weighted_softmax::op(), "weight"), (square_range::op(), "x")] {
        let report = opcheck(&op, &[]);
        let [finding] = &report.findings[..] else { panic!("expected one finding: {report}") };
        let words = format!("the gradient of '{input}' is ");
        assert!(finding.check == "formula" && finding.message.contains(&words), "{report}");
    }
}

#[test]
fn a_formula_may_choose_another_gradient_where_several_are_correct() {
    // The first of two equal maxima, and 1 at the kink.
    let x = t(&[0.0, 1.0, 1.0, 0.5, 0.5, 0.0], &[2, 3]);
    for op in [first_of_maxima::op(), kinked::op()] {
        let report = opcheck(&op, &[Sample { inputs: vec![Some(x.clone())], attrs: vec![] }]);
        assert!(report.findings.iter().all(|finding| finding.check != "formula"), "{report}");
    }
}

/// The maximum, whose gradient goes to the first of equal elements.
#[custom_op(
    name = "faulty::first_of_maxima",
    shape = (x: [.., n]) -> [..] where n > 0,
    backward = |d| { x: scatter(d.unsqueeze(-1), argmax(x, -1, true), n) },
)]
pub fn first_of_maxima<R: Row>(x: R) -> R {
    x.max()
}

/// `|x|`, whose gradient at 0 is 1.
#[custom_op(name = "faulty::kinked", backward = |d| { x: if x < 0 { -d } else { d } })]
pub fn kinked<T: Float>(x: T) -> T {
    x.abs()
}
