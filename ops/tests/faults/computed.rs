//! Ops with positions and random numbers. The op in the namespace `given`, which takes these as inputs, has faults only for numbers
//! that the definition computes.

use minitensor::prelude::*;
use minitensor::registry;
use minitensor::testing::{opcheck, samples};

/// Adds sinusoids of the positions (Vaswani et al., 2017).
#[custom_op(name = "correct::add_sinusoids", where d > 0)]
pub fn add_sinusoids<T: Float>(x: T, #[position(-2)] t: T, #[position(-1)] c: T, d: usize) -> T {
    let pair = (c / 2).floor();
    let angle = t * (-(10000f64.ln()) * 2.0 * pair / d).exp();
    if c - 2 * pair == 0 { x + angle.sin() } else { x + angle.cos() }
}

/// Replaces some numbers.
#[custom_op(name = "correct::replaced", where p >= 0.0, p < 1.0)]
pub fn replaced<T: Float>(x: T, #[uniform] u: T, #[default = 0.1] p: f64) -> T {
    2.0 * if u < 1.0 - p { x } else { -1.75 }
}

/// The softmax of a window before each row.
#[custom_op(name = "correct::local_softmax", shape = (scores: [.., n]) -> [.., n] where window > 0)]
pub fn local_softmax<R: Row>(scores: R, #[position(-2)] q: R, window: i64) -> R {
    let k = scores.position();
    let visible = k <= q && q - k < window;
    let z = if visible { scores.tanh() } else { -R::infinity() };
    let e = (z - z.max().detach()).exp();
    e / e.sum()
}

/// The positive part, with noise. NaN is lost.
#[custom_op(name = "faulty::noisy_relu")]
pub fn noisy_relu<T: Float>(x: T, #[normal] z: T) -> T {
    if x > 0.0 { x + z } else { 0.0 }
}

#[test]
fn computed_inputs_have_the_numbers_that_are_computed() {
    for name in ["correct_add_sinusoids", "correct_replaced", "correct_local_softmax"] {
        let report = opcheck(&registry::get(&format!("given::{name}")).expect("the op"), &[]);
        assert!(report.samples > 0 && report.findings.is_empty(), "{report}");
    }
    let given = registry::get("given::correct_add_sinusoids").expect("the op");
    let positions = samples(&given)[0].inputs[2].clone().expect("the positions");
    assert_eq!(positions.to_vec::<f64>().expect("numbers"), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
}

#[test]
fn faults_of_other_inputs_are_found() {
    let report = opcheck(&registry::get("given::faulty_noisy_relu").expect("the op"), &[]);
    let found = |f: &minitensor::testing::Finding| f.check == "special values" && f.message.contains("NaN in 'x'");
    assert!(report.findings.iter().any(found), "{report}");
}
