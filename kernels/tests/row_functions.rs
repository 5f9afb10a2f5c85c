//! Gradients of functions of whole rows, compared with finite differences.

use minitensor_kernels::program::{Program, Symbol, Variable};
use minitensor_kernels::{Element, Field, Num, Real, RealRow, Row, lit};

/// A row without ties, zeros and neighbours that are closer than the step of a difference.
fn row(n: usize, phase: f64) -> Vec<f64> {
    (0..n).map(|i| ((i * 7 + 3) as f64 * 1.7 + phase).sin() + 0.1).collect()
}

/// The sum over a row of an output times weights.
fn weighted(program: &Program, x: &[&[f64]], weights: &[f64]) -> f64 {
    let y = program.at_row(x, &[], weights.len()).expect("float64 has it all");
    y[0].iter().zip(weights).map(|(y, w)| y.number().expect("a number") * w).sum()
}

fn check(name: &str, body: fn(Symbol, Symbol) -> Symbol) {
    let program = Program::write(&["x", "a"], &[], |x, _| vec![("y".into(), body(x[0], x[1]).into())]);
    let gradient = program.vjp_of_rows(&[true], &[Variable::Input(0), Variable::Input(1)]).expect("it has a gradient");
    for n in [1, 2, 7] {
        let (x, a, d) = (row(n, 0.0), row(n, 2.0), row(n, 4.0));
        let got = gradient.at_row(&[&d, &x, &a], &[], n).expect("float64 has it all");
        for (k, got) in got.iter().enumerate() {
            for (i, got) in got.iter().enumerate() {
                let step = 1e-6;
                let moved = |by: f64| {
                    let mut rows = [x.clone(), a.clone()];
                    rows[k][i] += by;
                    weighted(&program, &[&rows[0], &rows[1]], &d)
                };
                let wanted = (moved(step) - moved(-step)) / (2.0 * step);
                let got = got.number().expect("a number");
                assert!((got - wanted).abs() < 1e-7, "{name}: input {k} at {i} of {n}: {got}, expected {wanted}");
            }
        }
    }
}

type Body = fn(Symbol, Symbol) -> Symbol;

const BODIES: &[(&str, Body)] = &[
    ("shift", |x, a| x.shift(2) * a + x.shift(-1)),
    ("shift over the end", |x, _| x.shift(i64::MAX) + x.shift(i64::MIN) + x),
    ("reverse", |x, a| x.reverse() * a),
    ("recurrence", |x, a| x.recurrence(a)),
    ("recurrence of one row", |x, _| x.recurrence(x)),
    ("reverse_recurrence", |x, a| x.reverse_recurrence(a.tanh()).square()),
    ("cumprod", |x, a| x.cumprod() * a),
    ("cumprod of zeros", |x, a| (x * Symbol::select(x.position().equal(lit(2)), lit(0), lit(1))).cumprod() + a),
    ("cummax", |x, a| x.cummax() * a),
    ("cummin", |x, a| x.cummin() * a),
    ("sort", |x, a| x.sort() * a),
    ("take", |x, a| x.take(a.argsort()) * a),
    ("put", |x, a| x.put(a.abs().floor()).square() + a),
    ("scan of a maximum", |x, a| Symbol::scan(x, |before, x| before.maximum(x)) * a),
    ("scan with other values", |x, a| {
        let is_small = a.less(lit(0.3));
        Symbol::scan(x.tanh(), |before, x| Symbol::select(is_small, before * a, before / lit(2)) + x.position() * x)
    }),
    ("scan of one row", |x, _| Symbol::scan(x, |before, next| before * x + next)),
    ("scan of two rows", |x, a| {
        let (sum, product) = Symbol::scan((x, a), |(sum, product), (x, a)| (sum * a + x.sin(), product * a + sum));
        sum * product.tanh()
    }),
    ("scan of which one result is used", |x, a| {
        let (_, y) = Symbol::scan((a, x), |(m, y), (a, x)| (m * a, m * y + a * x));
        y
    }),
    ("scan of a scan", |x, a| {
        Symbol::scan(Symbol::scan(x, |before, x| before * a + x), |before, x| before.cos() + x).square()
    }),
    ("scan with a step that is singular at 0", |x, a| {
        Symbol::scan(x.square() + lit(1), |before, x| before.log() + x * a.exp()).sqrt()
    }),
    ("step without the value before", |x, a| Symbol::scan(x, |_, x| x * a)),
    ("step without the element", |x, a| Symbol::scan(x, |before, _| before * a)),
    ("reductions beside functions", |x, a| (x.sort() - x.mean()).cumsum() / (x.recurrence(a).square().sum() + lit(1))),
];

#[test]
fn gradients_are_those_of_finite_differences() {
    BODIES.iter().for_each(|(name, body)| check(name, *body));
}

#[test]
fn second_derivatives_are_those_of_finite_differences() {
    for (name, body) in BODIES {
        let program = Program::write(&["x", "a"], &[], |x, _| vec![("y".into(), body(x[0], x[1]).sin().into())]);
        let gradient = program.vjp_of_rows(&[true], &[Variable::Input(0)]).expect("it has a gradient");
        let second = gradient.vjp_of_rows(&[true], &[Variable::Input(1)]).expect("it has a second derivative");
        let n = 5;
        let (x, a, d, e) = (row(n, 0.0), row(n, 2.0), row(n, 4.0), row(n, 6.0));
        let got = second.at_row(&[&e, &d, &x, &a], &[], n).expect("float64 has it all").swap_remove(0);
        for (i, got) in got.iter().enumerate() {
            let moved = |by: f64| {
                let mut x = x.clone();
                x[i] += by;
                weighted(&gradient, &[&d, &x, &a], &e)
            };
            let (got, wanted) = (got.number().expect("a number"), (moved(1e-6) - moved(-1e-6)) / 2e-6);
            assert!((got - wanted).abs() < 1e-6, "{name} at {i}: {got}, expected {wanted}");
        }
    }
}

#[test]
fn a_recurrence_without_coefficients_is_a_running_sum() {
    let program =
        Program::write(&["x"], &[], |x, _| vec![("y".into(), (x[0].recurrence(lit(1)) - x[0].cumsum()).into())]);
    let x = row(9, 0.0);
    let y = program.at_row(&[&x], &[], 9).expect("float64 has it all");
    assert!(y[0].iter().all(|y| y.number() == Some(0.0)));
}

#[test]
fn programs_with_functions_of_rows_are_the_same_after_json() {
    for (name, body) in BODIES {
        let program = Program::write(&["x", "a"], &[], |x, _| vec![("y".into(), body(x[0], x[1]).into())]);
        let text = program.to_json();
        assert_eq!(Program::from_json(&text).expect("it is valid").to_json(), text, "{name}");
    }
    for (node, message) in [
        (r#"["shift", 0, 1e10]"#, "node 1 has an operand of 'shift' that is not an integer"),
        (r#"["shift", 0]"#, "node 1 calls 'shift' of arity 1, which does not exist"),
        (r#"["take", 0]"#, "node 1 calls 'take' of arity 1, which does not exist"),
        (r#"["scan", 0]"#, "node 1 calls 'scan' of arity 1, which does not exist"),
        (r#"["scan", {}, 0, 0]"#, "node 1 has an invalid step of a scan: 'nodes' is missing"),
        (
            r#"["scan", {"inputs": ["h", "x"], "uniforms": [], "nodes": [["input", 0]], "outputs": [["h", 3]]}, 0, 0]"#,
            "node 1 has an invalid step of a scan: output 'h' refers to node 3, but the number of nodes is 1",
        ),
        (
            r#"["scan", {"inputs": ["h", "x"], "uniforms": [], "nodes": [["input", 0]], "outputs": [["h", 0]]}, 1, 0]"#,
            "node 1 has an invalid step of a scan: it must take the result before and the element of each row, and return one number for each",
        ),
        (
            r#"["scan", {"inputs": ["h", "x"], "uniforms": [], "nodes": [["input", 0], ["sum", 0]], "outputs": [["h", 1]]}, 0, 0]"#,
            "node 1 has an invalid step of a scan: it uses a function of rows, but computes single elements",
        ),
        (
            r#"["scan", {"inputs": ["h", "x"], "uniforms": [], "nodes": [["input", 0], ["truthy", 0]], "outputs": [["h", 1]]}, 0, 0]"#,
            "node 1 has an invalid step of a scan: it returns a truth value, expected a number",
        ),
    ] {
        let text =
            format!(r#"{{"inputs": ["x"], "uniforms": [], "nodes": [["input", 0], {node}], "outputs": [["y", 1]]}}"#);
        let error = Program::from_json(&text).expect_err("it is invalid").to_string();
        assert_eq!(error, format!("invalid program: {message}"));
    }
}
