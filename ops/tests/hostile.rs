//! Random mutations of the texts that define ops: shape clauses, formulas and programs. None may panic or take long.
//!
//! `MINITENSOR_ROUNDS` sets the number of texts, `MINITENSOR_SEED` the seed.

#[path = "../../kernels/tests/lcg/mod.rs"]
mod lcg;

use lcg::Lcg;
use minitensor::attr::{Attr, AttrKind};
use minitensor::autograd::{Options, grad};
use minitensor::kernels::program::Program;
use minitensor::op::{Arg, Call, OpRef, ShapeRule, dispatch};
use minitensor::prelude::*;
use minitensor::{CustomOp, CustomOpBuilder, clause, registry};
use minitensor_ops as _;

/// Longer programs are only parsed, because their gradients are even longer.
const SHORT: usize = 64;

/// The outputs of an op of `x` and `y`, its shape clause and its formula.
const CLAUSES: [(&[&str], &str, &str); 8] = [
    (&["out"], "(x: [.., n], y: [.., n]) -> [.., n] where n > 1, p < 1.0", "|d| { x: d * cos(x), y: none }"),
    (
        &["out"],
        "(x: [.., n], y: [..]) -> [.., n]",
        "|d| { let h = d.unsqueeze(-1); x: h * x.conj(), y: sum(h * x.conj(), [0]) }",
    ),
    (&["out"], "", "|d| { x: if flag && x.ndim >= 0 { d } else { d * 2 / 3 }, y: if y == None { x } else { -y } }"),
    (
        &["out"],
        "where p >= 0.0, k > 1",
        "|d| { let (a, b) = sort(x); x: d.reshape(x.shape) * a, y: gather(x, argsort(a)) }",
    ),
    (
        &["out"],
        "(x: [.., n], y: [m]) -> [.., k + 2 * k - 1]",
        "|d| { x: if mode == \"mean\" { d / k } else { d.expand(x.shape) }, y: if y > 0 { x } else { d } }",
    ),
    (&["out"], "", "|d| { x: slice(d, axis = 0, start = 1), y: stack([d, x], 0) }"),
    (
        &["values", "indices"],
        "(x: [.., n], y: [.., m]) -> (values: [.., n], indices: [.., n]) where k <= n",
        "|d_values, _| { x: scatter(d_values, indices, n), y: none }",
    ),
    (
        &["values", "indices"],
        "(x: [.., n], y: [..]) -> (values: [..], [save] indices: [..]) where n > 0",
        "|d| { x: d * k, y: d.conj() }",
    ),
];

const PROGRAMS: [&str; 4] = [
    r#"{"inputs":["x"],"nodes":[["input",0],["exp",0],["multiply",0,1]],"outputs":[["out",2]],"uniforms":[]}"#,
    r#"{"inputs":["x","y"],"nodes":[["input",0],["input",1],["less",0,1],["select",2,0,1],["tanh",3]],"outputs":[["a",3],["b",4],["c",2]],"uniforms":[]}"#,
    r#"{"inputs":["x"],"nodes":[["input",0],["uniform",0],["constant",0.5],["pow",0,1],["add",3,2],["lgamma",4]],"outputs":[["out",5]],"uniforms":["u"]}"#,
    r#"{"inputs":["x"],"nodes":[["input",0],["powi",0,3],["detach",1],["truthy",0],["not",3],["or",3,4],["select",5,2,1]],"outputs":[["out",6]],"uniforms":[]}"#,
];

const WORDS: [&str; 40] = [
    "x",
    "y",
    "d",
    "n",
    "k",
    "p",
    "axis",
    "mode",
    "out",
    "none",
    "None",
    "let",
    "if",
    "else",
    "where",
    "[save]",
    "->",
    "..",
    "::",
    "==",
    "&&",
    "||",
    "*",
    "/",
    "-",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "|",
    ",",
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "99999999999999999999",
    "0.5",
    "\u{1d11e}",
];

/// A text with random changes: parts removed, repeated or moved, and words inserted.
fn mutated(random: &mut Lcg, text: &str, words: &[&str]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for _ in 0..[0, 1, 1, 2, 3, 6][random.below(6)] {
        let (a, b) = (random.below(letters.len() + 1), random.below(letters.len() + 1));
        let (start, end) = (a.min(b), a.max(b).min(a.min(b) + 12));
        let part: Vec<char> = letters[start..end].to_vec();
        let times = if random.below(20) == 0 { 200 } else { 1 };
        match random.below(4) {
            0 => letters.drain(start..end).for_each(drop),
            1 => drop(letters.splice(end..end, part.repeat(times))),
            2 => {
                let at = random.below(letters.len() + 1);
                drop(letters.splice(at..at, part));
            }
            _ => {
                let word = words[random.below(words.len())].repeat(times);
                drop(letters.splice(start..start, word.chars().collect::<Vec<_>>()));
            }
        }
    }
    letters.into_iter().collect()
}

/// Builds the op with these clauses, calls it and differentiates it, without values because sizes in a formula may be huge.
fn run_clauses(shape: &str, formula: &str, outputs: &'static [&'static str]) -> Option<()> {
    let body = move |call: &Call<'_>| (0..outputs.len()).map(|_| call.tensor(0).copied()).collect();
    let mut op = CustomOpBuilder::new("hostile::op", 0)
        .inputs(["x", "y"])
        .optional(1)
        .outputs(outputs.iter().copied())
        .attr("k", AttrKind::Size, Some(Attr::Int(2)))
        .attr("p", AttrKind::Float, Some(Attr::Float(0.5)))
        .attr("axis", AttrKind::Ints, Some(Attr::Ints(vec![-1].into())))
        .attr("mode", AttrKind::Enum(&["mean", "sum"]), Some(Attr::from("mean")))
        .attr("flag", AttrKind::Bool, Some(Attr::Bool(true)))
        .body(body);
    if !shape.is_empty() {
        op = op.shape(shape);
    }
    if !formula.is_empty() {
        op = op.formula(formula);
    }
    let op = op.build().ok()?.definition();
    let attrs: Vec<Attr> = op.attrs.iter().map(|a| a.default.clone().expect("all have defaults")).collect();
    for (x, y) in [(&[2, 3][..], &[2, 3][..]), (&[4], &[4]), (&[3, 2, 2], &[2]), (&[0], &[1])] {
        for dtype in [DType::F32, DType::C64] {
            let leaf = |shape: &[usize]| Tensor::empty(shape, dtype, Device::Meta)?.with_requires_grad();
            let (x, y) = (leaf(x).expect("a leaf"), leaf(y).expect("a leaf"));
            differentiate(&op, &[Arg::Tensor(&x), Arg::Tensor(&y)], &attrs, &[x.clone(), y.clone()]);
        }
    }
    Some(())
}

/// Builds the op of the program, calls it at a few dtypes and differentiates it.
fn run_program(text: &str) -> Option<()> {
    let program = Program::from_json(text).ok()?;
    if program.instructions().len() > SHORT || program.inputs().len() + program.uniforms().len() > SHORT {
        return None;
    }
    let op = CustomOpBuilder::from_program("hostile::op", program).ok()?.build().ok()?.definition();
    let attrs = vec![Attr::Float(0.25); op.attrs.len()];
    for dtype in [DType::F32, DType::F16, DType::I64, DType::C128, DType::Bool] {
        let leaf = || {
            let x = Tensor::from_vec(vec![0.5_f64, -2.0, 0.0, f64::INFINITY, f64::NAN], [5])?.cast(dtype)?;
            if dtype.is_differentiable() { x.with_requires_grad() } else { Ok(x) }
        };
        let leaves: Vec<Tensor> = op.inputs.iter().map(|_| leaf().expect("a leaf")).collect();
        let args: Vec<Arg<'_>> = leaves.iter().map(Arg::Tensor).collect();
        differentiate(&op, &args, &attrs, &leaves);
    }
    Some(())
}

/// Differentiates twice.
fn differentiate(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr], leaves: &[Tensor]) {
    let Ok(outputs) = dispatch(op, args, attrs) else { return };
    let mut outputs = outputs.into_vec();
    let wrt: Vec<Tensor> = leaves.iter().filter(|x| x.requires_grad()).cloned().collect();
    for _ in 0..2 {
        outputs.retain(Tensor::requires_grad);
        let seeds: Vec<Option<Tensor>> =
            outputs.iter().map(|t| Tensor::ones(t.shape().clone(), t.dtype(), t.device()).ok()).collect();
        let options = Options { retain_graph: true, create_graph: true };
        let Ok(found) = grad(&outputs, &wrt, &seeds, options) else { return };
        outputs = found.into_iter().flatten().collect();
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn no_text_that_claims_to_define_an_op_does_harm() {
    let (rounds, seed) = (setting("MINITENSOR_ROUNDS", 2000), setting("MINITENSOR_SEED", 1));
    let ops = registry::list_all();
    let names: Vec<String> = ops.iter().map(|op| format!("{}(", op.name)).collect();
    let words: Vec<&str> = WORDS.into_iter().chain(names.iter().map(String::as_str)).collect();
    let (mut by_clauses, mut by_program, mut of_registered) = (0, 0, 0);
    for round in 0..rounds {
        let random = &mut Lcg(seed ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Similar seeds produce similar first numbers.
        for _ in 0..4 {
            random.next();
        }
        let (outputs, shape, formula) = CLAUSES[random.below(CLAUSES.len())];
        let (shape, formula) = (mutated(random, shape, &words), mutated(random, formula, &words));
        let program = PROGRAMS[random.below(PROGRAMS.len())];
        let program = mutated(random, program, &WORDS);
        let op = &ops[random.below(ops.len())];
        let registered = mutated(random, &shape_of(op).unwrap_or_default(), &words);
        if std::env::var_os("MINITENSOR_ROUNDS").is_some() {
            eprintln!("{round}: {shape}\n{formula}\n{program}\n{} {registered}", op.name);
        }
        by_clauses += u64::from(run_clauses(&shape, &formula, outputs).is_some());
        by_program += u64::from(run_program(&program).is_some());
        of_registered += u64::from(clause::shape(op, &registered).is_ok());
    }
    let least = [by_clauses, by_program, of_registered].into_iter().min();
    assert!(least >= Some(rounds / 100), "{by_clauses}, {by_program}, {of_registered} of {rounds}: that tries little");
}

#[test]
fn the_definitions_that_are_changed_are_right() {
    for (outputs, shape, formula) in CLAUSES {
        assert!(run_clauses(shape, formula, outputs).is_some(), "{shape} {formula}");
    }
    for program in PROGRAMS {
        assert!(run_program(program).is_some(), "{program}");
    }
}

/// The sum of the products of neighbours, where the last element is a neighbour of the first.
fn circle(n: usize) -> Result<OpRef> {
    let names: Vec<String> = (0..n).map(|i| format!("x{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let program = Program::write(&names, &[], |x, _| {
        let products = (0..n).map(|i| x[i] * x[(i + 1) % n]);
        vec![("out".into(), products.reduce(|a, b| a + b).expect("inputs").into())]
    });
    CustomOpBuilder::from_program("hostile::circle", program)?.build().map(CustomOp::definition)
}

#[test]
fn an_op_of_as_many_inputs_as_there_may_be_has_gradients_of_all() -> Result<()> {
    let n = 64;
    let op = circle(n)?;
    let x: Vec<Tensor> =
        (0..n).map(|i| Tensor::from_vec(vec![i as f64], [1])?.with_requires_grad()).collect::<Result<_>>()?;
    let args: Vec<Arg<'_>> = x.iter().map(Arg::Tensor).collect();
    let out = dispatch(&op, &args, &[])?.single();
    let seeds = |n: usize| (0..n).map(|_| Tensor::from_vec(vec![1.0], [1]).map(Some)).collect::<Result<Vec<_>>>();
    let options = Options { retain_graph: true, create_graph: true };
    let first: Vec<Tensor> = grad(&[out], &x, &seeds(1)?, options)?.into_iter().flatten().collect();
    for (i, g) in first.iter().enumerate() {
        assert_eq!(g.to_vec::<f64>()?, [((i + n - 1) % n + (i + 1) % n) as f64]);
    }
    for g in grad(&first, &x, &seeds(n)?, options)? {
        assert_eq!(g.expect("a gradient").to_vec::<f64>()?, [2.0]);
    }
    let error = circle(n + 1).map(drop).expect_err("too many").to_string();
    assert_eq!(error, "op 'hostile::circle' has 65 inputs, expected at most 64; use a list");
    Ok(())
}

fn shape_of(op: &OpRef) -> Option<String> {
    match &op.shape {
        ShapeRule::Core(rule) => Some(rule.text.to_string()),
        _ => None,
    }
}
