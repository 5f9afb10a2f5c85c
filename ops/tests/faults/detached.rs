//! Gradients of bodies with detached values.

use minitensor::prelude::*;
use minitensor::testing::opcheck;

/// The nearest integer, with the gradient of `x`.
#[custom_op(name = "correct::straight_through")]
pub fn straight_through<T: Float>(x: T) -> T {
    x + (x.round() - x).detach()
}

/// Multiples of a step for each row, with the gradient of `x`, divided by the root of their number.
#[custom_op(name = "correct::quantized_rows", shape = (x: [.., n], step: [..]) -> [.., n] where n > 0)]
pub fn quantized_rows<R: Row>(x: R, step: R) -> R {
    let multiple = ((x / step).round() * step - x).detach();
    (x + multiple) / x.count().sqrt()
}

/// 1 where `x` is positive, with the derivative of a sigmoid.
#[custom_op(name = "correct::spike")]
pub fn spike<T: Float>(x: T) -> T {
    let smooth = (4.0 * x).sigmoid();
    let fired = if x > 0.0 { 1.0 } else { 0.0 };
    fired + (smooth - smooth.detach())
}

/// `x`, with a gradient that is reversed.
#[custom_op(name = "correct::reversed")]
pub fn reversed<T: Float>(x: T) -> T {
    x.detach() - (x - x.detach())
}

/// A product in which the gradient takes one factor as constant. As one tensor, both inputs have the gradient of the other factor.
#[custom_op(name = "correct::half_detached")]
pub fn half_detached<T: Float>(x: T, y: T) -> T {
    x * y.detach() + (y.round() - y).detach()
}

/// The softmax, whose gradient does not depend on the number that is subtracted.
#[custom_op(name = "correct::detached_softmax", shape = (x: [.., n]) -> [.., n])]
pub fn detached_softmax<R: Row>(x: R) -> R {
    let e = (x - x.max().detach()).exp();
    e / e.sum()
}

/// The formula is the derivative of the whole body, which does not hold the maximum constant.
#[custom_op(
    name = "correct::whole_formula",
    shape = (x: [.., n]) -> [.., n] where n > 0,
    backward = |d| { x: d - scatter(d.sum(-1, true), argmax(x, -1, true), n) },
)]
pub fn whole_formula<R: Row>(x: R) -> R {
    x - x.max().detach()
}

/// The formula has the wrong factor.
#[custom_op(name = "faulty::straight_through", backward = |d| { x: 2 * d })]
pub fn doubled_straight_through<T: Float>(x: T) -> T {
    x + (x.round() - x).detach()
}

#[test]
fn detached_values_are_constants_of_the_gradient() {
    let ops = [straight_through::op(), spike::op(), reversed::op(), half_detached::op(), quantized_rows::op()];
    for op in ops.into_iter().chain([detached_softmax::op()]) {
        let report = opcheck(&op, &[]);
        assert!(report.findings.is_empty(), "{report}");
    }
    let report = opcheck(&whole_formula::op(), &[]);
    assert!(report.findings.iter().all(|finding| finding.check != "gradient"), "{report}");
    let report = opcheck(&doubled_straight_through::op(), &[]);
    let words = "with the detached values held constant";
    let is_found = report.findings.iter().any(|f| f.check == "gradient" && f.message.contains(words));
    assert!(is_found, "{report}");
}
