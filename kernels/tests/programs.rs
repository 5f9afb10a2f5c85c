//! Programs: recorded from bodies, run with numbers and over memory, differentiated, rewritten, parsed and rejected.

mod hostile;

use minitensor_kernels::program::{
    Algebra, Id, Instruction, Plan, Primitive, Program, Scalar, Symbol, TILE, Tile, Variable,
};
use minitensor_kernels::{Complex, Dual, Element, Field, Float, Num, Real, lit};

fn one(name: &str, body: impl Fn(Symbol) -> Symbol) -> Program {
    Program::write(&["x"], &[], |x, _| vec![(name.to_owned(), body(x[0]).into())])
}

fn gelu<T: Float>(x: T) -> T {
    lit::<T>(0.5) * x * (T::one() + (x * lit(std::f64::consts::FRAC_1_SQRT_2)).erf())
}

fn clipped<T: Real>(x: T, lo: T, hi: T) -> T {
    T::select(x.less(lo), lo, T::select(x.greater(hi), hi, x))
}

fn samples() -> Vec<f64> {
    let mut x: Vec<f64> = (-400..400).map(|i| f64::from(i) * 0.0173).collect();
    x.extend([0.0, -0.0, 1.0, -1.0, 30.0, -30.0, 800.0, -800.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    x
}

fn bits(x: f64) -> u64 {
    if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }
}

#[test]
fn a_program_computes_what_its_body_does() {
    let program = one("y", gelu);
    for x in samples() {
        assert_eq!(bits(program.at(&[x], &[]).unwrap()[0].number().unwrap()), bits(gelu(x)), "at {x}");
    }
    let clipped_program =
        Program::write(&["x"], &["lo", "hi"], |x, u| vec![("y".into(), clipped(x[0], u[0], u[1]).into())]);
    assert_eq!(clipped_program.to_string(), "y = select(less(x, lo), lo, select(less(hi, x), hi, x))");
    for x in samples() {
        let y = clipped_program.at(&[x], &[-1.0, 2.0]).unwrap()[0].number().unwrap();
        assert_eq!(bits(y), bits(clipped(x, -1.0, 2.0)));
    }
    assert_eq!(clipped_program.at(&[7_i32], &[-1, 2]).unwrap()[0].number(), Some(2));
    assert!(program.at(&[7_i32], &[]).is_none(), "integers have no erf");
    assert!(program.at(&[1.0, 2.0], &[]).is_none(), "one input");
}

#[test]
fn a_gradient_is_the_compiled_one_to_the_bit() {
    let program = one("y", gelu);
    let vjp = program.vjp(&[0]).unwrap();
    assert_eq!((vjp.inputs().join(" "), vjp.outputs()[0].0.as_str()), ("d_y x".into(), "d_x"));
    for x in samples() {
        let compiled = gelu(Dual::variable(x)).tangent.chain(1.5);
        assert_eq!(bits(vjp.at(&[1.5, x], &[]).unwrap()[0].number().unwrap()), bits(compiled), "at {x}");
    }
    // The gradient of the gradient.
    let second = vjp.vjp(&[0, 1]).unwrap();
    assert_eq!(second.inputs().join(" "), "d_d_x d_y x");
    let x = 0.7;
    let numeric = {
        let slope = |x: f64| vjp.at(&[1.0, x], &[]).unwrap()[0].number().unwrap();
        (slope(x + 1e-5) - slope(x - 1e-5)) / 2e-5
    };
    let symbolic = second.at(&[1.0, 1.0, x], &[]).unwrap()[1].number().unwrap();
    assert!((numeric - symbolic).abs() < 1e-8, "{numeric} {symbolic}");
}

#[test]
fn second_derivatives_are_those_of_dual_numbers_of_dual_numbers() {
    fn bodies<T: Float>() -> [fn(T) -> T; 5] {
        [|x| gelu(x), |x| (x * x).exp(), |x| x.hypot(lit(2)).log(), |x| x.tanh() / (x * x + lit(1)), |x| x.abs().sqrt()]
    }
    for (symbolic, numeric) in bodies::<Symbol>().into_iter().zip(bodies::<Dual<Dual<f64>>>()) {
        let program = one("y", symbolic);
        let second = program.vjp(&[0]).unwrap().vjp(&[1]).unwrap();
        for x in [-2.5, -0.3, 0.0, 0.7, 4.0, 30.0] {
            let expected = numeric(Dual::variable(Dual::variable(x))).tangent.tangent;
            let got = second.at(&[1.0, 1.0, x], &[]).unwrap()[0].number().unwrap();
            let is_close = got == expected || (got - expected).abs() <= 1e-12 * expected.abs().max(1e-3);
            assert!(is_close || got.is_nan() && expected.is_nan(), "{got}, not {expected}, at {x}: {second}");
        }
    }
}

#[test]
fn a_gradient_of_complex_numbers_counts_the_derivative_by_the_conjugate() {
    type C = Complex<f64>;
    let program = Program::write(&["z"], &[], |z, _| vec![("y".into(), (z[0].conj() * z[0].square()).into())]);
    let vjp = program.vjp_of_complex(&[0]).unwrap();
    let (z, d) = (C::new(0.5, -1.25), C::new(0.3, 0.8));
    // f = z̄ z²: d times the conjugate of 2 z z̄, and the conjugate of d times z².
    let expected = d * (2.0 * z * z.conj()).conj() + d.conj() * z * z;
    assert!((vjp.at(&[d, z], &[]).unwrap()[0].number().unwrap() - expected).norm() < 1e-14);
    let real = program.vjp(&[0]).unwrap();
    assert_eq!(real.at(&[1.0, 2.0], &[]).unwrap()[0].number(), Some(12.0), "a real number is its own conjugate");
}

#[test]
fn truth_values_are_read_as_they_lie() {
    let program = Program::write(&["keep", "x"], &[], |v, _| {
        let kept = v[0].truthy();
        vec![("y".into(), Symbol::select(kept, v[1], -v[1]).into()), ("kept".into(), kept.into())]
    });
    let plan = Plan::new(program, &[0]).unwrap();
    let n = 2 * TILE + 3;
    let keep: Vec<bool> = (0..n).map(|i| i % 3 == 0).collect();
    let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
    let (mut y, mut kept) = (vec![0.0; n], vec![false; n]);
    let (inputs, outputs) =
        ([keep.as_ptr().cast(), x.as_ptr().cast()], [y.as_mut_ptr().cast(), kept.as_mut_ptr().cast()]);
    // SAFETY: two inputs and outputs of n elements each; the first and the last are truth values.
    unsafe { plan.run::<f64>(n, &inputs, &[], &outputs) };
    assert_eq!(kept, keep);
    assert!(y.iter().zip(&x).zip(&keep).all(|((y, x), keep)| *y == if *keep { *x } else { -x }));
    let number = one("y", |x| x + Symbol::select(x.truthy(), x, x));
    assert!(Plan::new(number, &[0]).unwrap_err().to_string().contains("truth values is used as a number"));
}

#[test]
fn the_branch_not_taken_adds_nothing_to_a_gradient() {
    let program = one("y", |x| Symbol::select(Real::greater(x, lit(0)), x.sqrt(), lit(0)));
    let vjp = program.vjp(&[0]).unwrap();
    for x in [-1.0, 0.0, -0.0] {
        assert_eq!(vjp.at(&[1.0, x], &[]).unwrap()[0].number(), Some(0.0), "at {x}");
    }
}

/// Every rule: a naive expression, its replacement, and the arguments at which both must agree.
#[test]
fn naive_spellings_become_stable_ones() {
    let one_ = || lit::<Symbol>(1);
    let table: [(Program, &str); 12] = [
        (one("y", |x| x / (one_() + (-x).exp())), "y = x * sigmoid(x)"),
        (one("y", |x| one_() / (one_() + (-x).exp())), "y = sigmoid(x)"),
        (one("y", |x| ((-x).exp() + one_()).recip()), "y = sigmoid(x)"),
        (one("y", |x| x.exp() / (x.exp() + one_())), "y = sigmoid(x)"),
        (one("y", |x| x.exp() - one_()), "y = expm1(x)"),
        (one("y", |x| (one_() + x.exp()).log()), "y = softplus(x)"),
        (one("y", |x| (one_() / (one_() + (-x).exp())).log()), "y = log_sigmoid(x)"),
        (one("y", |x| (x * x + one_() * x.square()).sqrt()), "y = hypot(x, x)"),
        (one("y", |x| (x.exp() + (x * lit(3)).exp()).log()), "y = logaddexp(x, x * 3)"),
        (one("y", |x| one_() / x.sqrt()), "y = rsqrt(x)"),
        (one("y", |x| one_() - x.erf()), "y = erfc(x)"),
        (one("y", |x| (x.exp() - (-x).exp()) / (x.exp() + (-x).exp())), "y = tanh(x)"),
    ];
    for (naive, stable) in table {
        let simplified = naive.simplified();
        assert_eq!(simplified.to_string(), stable, "from {naive}");
        simplified.verify().unwrap();
        for x in [0.3, 1.0, 2.5] {
            let value = |p: &Program| p.at(&[x], &[]).unwrap()[0].number().unwrap();
            assert!((value(&naive) - value(&simplified)).abs() < 1e-14, "{naive} at {x}");
        }
    }
}

#[test]
fn a_naive_swish_has_a_gradient_far_out() {
    let naive = one("y", |x| x / (lit::<Symbol>(1) + (-x).exp()));
    let slope = |p: &Program, x: f64| p.vjp(&[0]).unwrap().at(&[1.0, x], &[]).unwrap()[0].number().unwrap();
    assert!(slope(&naive, -1000.0).is_nan(), "the reason for the rewrite");
    assert_eq!(slope(&naive.simplified(), -1000.0), 0.0);
}

#[test]
fn what_is_computed_twice_is_written_once() {
    let program = one("y", |x| x.exp() * x.exp() + x.exp());
    assert_eq!(program.to_string(), "%0 = exp(x)\ny = square(%0) + %0");
    assert_eq!(program.instructions().len(), 4);
    assert_eq!(one("y", |x| -(x + lit(1.5)) * x - (x - x)).to_string(), "y = -(x + 1.5) * x - (x - x)");
}

/// Runs a program over unaligned memory and compares it with the same program evaluated with numbers.
fn tiles_agree<T: Tile>(program: &Program, inputs: &[Vec<T>], uniforms: &[T]) {
    let n = inputs[0].len();
    let pointers: Vec<*const T> = inputs.iter().map(|x| x.as_ptr()).collect();
    let mut outputs: Vec<Vec<u128>> = program.outputs().iter().map(|_| vec![0; n + 1]).collect();
    let places: Vec<*mut u8> = outputs.iter_mut().map(|y| y.as_mut_ptr().cast()).collect();
    // SAFETY: inputs have n elements, and outputs have room for more.
    unsafe { program.run(n, &pointers, uniforms, &places).unwrap() };
    for i in 0..n {
        let x: Vec<T> = inputs.iter().map(|x| x[i]).collect();
        for (value, place) in program.at(&x, uniforms).unwrap().iter().zip(&places) {
            // SAFETY: the run initialized n elements.
            unsafe {
                match (value.number(), value.mask()) {
                    (Some(y), _) => {
                        let got = place.cast::<T>().add(i).read();
                        assert!(format!("{got:?}") == format!("{y:?}"), "{program} at {i}: {got:?}, not {y:?}");
                    }
                    (_, mask) => assert_eq!(Some(place.cast::<bool>().add(i).read()), mask),
                }
            }
        }
    }
}

#[test]
fn tiles_compute_what_numbers_do() {
    let body = |x: &[Symbol], u: &[Symbol]| {
        let (a, b) = (x[0], x[1]);
        let mask = a.less(b) | !a.isnan() & a.signbit();
        let y = (a * b + u[0]).tanh() * b.sigmoid() - lit::<Symbol>(0.5) * a;
        vec![
            ("y".into(), Symbol::select(mask, y, a.powi(-3)).into()),
            ("mask".into(), mask.into()),
            ("same".into(), y.into()),
            ("a".into(), a.into()),
            ("two".into(), lit::<Symbol>(2).into()),
            ("again".into(), y.into()),
            ("eps".into(), Symbol::epsilon().into()),
        ]
    };
    let program = Program::write(&["a", "b"], &["u"], body);
    program.verify().unwrap();
    for n in [0, 1, 7, TILE - 1, TILE, TILE + 1, 3 * TILE + 5, 300_001] {
        let a: Vec<f64> = (0..n).map(|i| samples()[i % samples().len()]).collect();
        let b: Vec<f64> = (0..n).map(|i| samples()[(i * 7 + 3) % samples().len()]).collect();
        tiles_agree(&program, &[a.clone(), b.clone()], &[0.25]);
        let narrow = |x: &[f64]| x.iter().map(|x| *x as f32).collect::<Vec<f32>>();
        tiles_agree(&program, &[narrow(&a), narrow(&b)], &[0.25]);
    }
    let whole = Program::write(&["a", "b"], &[], |x, _| {
        vec![("y".into(), Symbol::select(x[0].truthy(), x[0].floor_divide(x[1]), x[1] - x[0].square()).into())]
    });
    tiles_agree::<i32>(&whole, &[(-500..500).collect(), (-500..500).map(|i| i % 7).collect()], &[]);
}

#[test]
fn every_primitive_runs_wherever_its_algebra_does() {
    for p in Primitive::ALL.iter().copied() {
        let program = Program::write(&["x", "y", "z"], &[], |x, _| {
            let value = Symbol::apply(p, &x[..p.arity()]).unwrap();
            vec![("out".into(), value)]
        });
        assert_eq!(Program::from_json(&program.to_json()).unwrap(), program);
        let has = |algebras: &[Algebra]| algebras.contains(&p.algebra());
        use Algebra::*;
        let x = vec![0.3, 0.5, 0.7];
        assert_eq!(program.at(&[0.3, 0.5, 0.7], &[]).is_some(), has(&[Element, Num, Real, Field, Float]), "{p:?}");
        assert_eq!(program.at(&[3, 5, 7], &[]).is_some(), has(&[Element, Num, Real, Int]), "{p:?}");
        assert_eq!(f64::kernel(p).is_some(), program.at(&[0.3, 0.5, 0.7], &[]).is_some());
        assert_eq!(i64::kernel(p).is_some(), program.at(&[3_i64, 5, 7], &[]).is_some());
        if f64::kernel(p).is_some() {
            tiles_agree::<f64>(&program, &[x.clone(), x.clone(), x], &[]);
        } else {
            tiles_agree::<i64>(&program, &[vec![3], vec![5], vec![7]], &[]);
        }
    }
}

#[test]
fn json_reads_back() {
    let program = Program::write(&["x"], &["u"], |x, u| {
        let big = lit::<Symbol>(u64::MAX);
        let y = x[0] * big + lit(0.1) + Symbol::nan() + Symbol::infinity() - lit(-0.0) + u[0].polygamma(2).powi(5);
        vec![("y".into(), Symbol::select(x[0].isnan() & !x[0].isinf(), y, x[0]).into())]
    });
    let json = program.to_json();
    let read = Program::from_json(&json).unwrap();
    assert_eq!(read.to_json(), json);
    assert_eq!(read.to_string(), program.to_string());
    assert_eq!(read.instructions().len(), program.instructions().len());
}

#[test]
fn what_is_no_program_is_refused_with_the_place() {
    let nodes =
        |nodes: &str| format!(r#"{{"inputs": ["x"], "uniforms": [], "nodes": [{nodes}], "outputs": [["y", 0]]}}"#);
    let table = [
        ("".to_owned(), "EOF"),
        ("[".repeat(100_000), "recursion limit"),
        ("[]".to_owned(), "the JSON is not an object"),
        ("{}".to_owned(), "'nodes' is missing"),
        (r#"{"nodes": 3, "outputs": []}"#.to_owned(), "'nodes' is not a list"),
        (r#"{"nodes": [], "outputs": [], "extra": 1}"#.to_owned(), "field 'extra'"),
        (r#"{"nodes": [], "outputs": [["y"]]}"#.to_owned(), "output 0"),
        (r#"{"nodes": [], "outputs": [["y", -1]]}"#.to_owned(), "output 0"),
        (r#"{"inputs": [1], "uniforms": [], "nodes": [], "outputs": []}"#.to_owned(), "'inputs' has an entry"),
        (
            r#"{"inputs": ["x", "x"], "uniforms": [], "nodes": [], "outputs": []}"#.to_owned(),
            "two inputs have the name 'x'",
        ),
        (
            r#"{"inputs": [], "uniforms": [], "nodes": [["constant", 1]], "outputs": [["y", 0], ["y", 0]]}"#.to_owned(),
            "two outputs have the name 'y'",
        ),
        (
            r#"{"inputs": [], "uniforms": [], "nodes": [], "outputs": [["y", 0]]}"#.to_owned(),
            "output 'y' refers to node 0, but the number of nodes is 0",
        ),
        (nodes(r#"["input", 1]"#), "node 0 refers to input 1, but the number of inputs is 1"),
        (nodes(r#"["input", 99999999999]"#), "node 0"),
        (nodes(r#"["uniform", 0]"#), "node 0 refers to uniform 0, but the number of uniforms is 0"),
        (nodes(r#"["exp", 0]"#), "node 0 uses node 0, which doesn't precede it"),
        (nodes(r#"["input", 0], ["exp", 2], ["exp", 1]"#), "node 1 uses node 2"),
        (nodes(r#"["input", 0], ["exp", 0, 0]"#), "node 1 has a wrong number of operands: 'exp' takes 1, got 2"),
        (nodes(r#"["input", 0], ["and", 0, 0]"#), "node 1 uses node 0, which is a number, as a truth value"),
        (nodes(r#"["truth", true], ["exp", 0]"#), "node 1 uses node 0, which is a truth value, as a number"),
        (nodes(r#"["input", 0], ["frobnicate", 0]"#), "node 1 calls 'frobnicate' of arity 1, which does not exist"),
        (nodes(r#"["constant", "seven"]"#), "node 0 has a constant that is not a number"),
        (nodes(r#"["polygamma", 0, -1]"#), "node 0 has an order"),
        (nodes("7"), "node 0 is not an array that begins with the name of a function"),
    ];
    for (text, words) in table {
        let error = Program::from_json(&text).unwrap_err().to_string();
        assert!(error.contains(words), "{text:.60} gives '{error}', not '{words}'");
    }
    // No proper prefix of a program is a program.
    let whole = one("y", gelu).to_json();
    for end in 0..whole.len() {
        assert!(Program::from_json(&whole[..end]).is_err());
    }
}

/// Vigna's splitmix64.
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) as usize
}

#[test]
fn damaged_text_is_refused_or_is_another_program() {
    let body = |x: &[Symbol], u: &[Symbol]| {
        let y = Symbol::select(x[0].less(u[0]) & !x[1].isnan(), gelu(x[0]), x[1].powi(3).polygamma(1));
        vec![("y".into(), y.into()), ("m".into(), x[0].equal(x[1]).into())]
    };
    let whole = Program::write(&["a", "b"], &["u"], body).to_json().into_bytes();
    let pieces = ["0", "-1", "7", "\"\"", "[]", "{}", "null", "1e999", "\"exp\"", "\"input\"", ",", "]", "\u{1F600}"];
    let (mut state, mut accepted) = (1, 0);
    for _ in 0..30_000 {
        let mut text = whole.clone();
        for _ in 0..1 + random(&mut state) % 3 {
            let at = random(&mut state) % text.len();
            match random(&mut state) % 3 {
                0 => text[at] = (random(&mut state) % 128) as u8,
                1 => drop(text.drain(at..(at + 1 + random(&mut state) % 5).min(text.len()))),
                _ => drop(text.splice(at..at, pieces[random(&mut state) % pieces.len()].bytes())),
            }
        }
        let Ok(text) = String::from_utf8(text) else { continue };
        accepted += hostile::treat(&text) as usize;
    }
    assert!(accepted > 100, "{accepted} were accepted: the damage is too great to try anything");
}

#[test]
fn the_names_of_cotangents_are_their_own() {
    let program = Program::write(&["d_y", "x"], &["d_z"], |x, u| {
        [("y", x[0] * x[1]), ("z", x[1] * u[0]), ("z_", x[1])].map(|(name, y)| (name.to_owned(), y.into())).into()
    });
    for gradient in [program.vjp(&[0, 1]), program.vjp_of_rows(&[true; 3], &[Variable::Input(0)])] {
        let gradient = gradient.expect("products have derivatives");
        gradient.verify().unwrap();
        assert_eq!(gradient.inputs()[..3], ["d_y_", "d_z_", "d_z__"]);
    }
}

#[test]
fn large_programs_are_shown_line_by_line_or_refused() {
    let long = one("y", |x| (0..5000).fold(x, |y, _| y.sin()));
    assert!(long.to_string().len() < 100_000);
    let huge = one("y", |x| (0..17_000).fold(x, |y, _| y.sin()));
    assert!(Program::from_json(&huge.to_json()).unwrap_err().to_string().contains("at most 16384 are allowed"));
}

#[test]
fn latex_is_what_a_reader_expects() {
    assert_eq!(one("y", |x| (x + lit(1)) / x.sqrt()).to_latex(), r"y = \frac{x + 1}{\sqrt{x}}");
    assert_eq!(one("y", |x| -(x - lit(1)) * x.log()).to_latex(), r"y = -\left(x - 1\right) \cdot \ln\left(x\right)");
    assert_eq!(
        one("y", |x| (x.square() + lit(1)).square() + x.square()).to_latex(),
        "t_{0} = x^2 \\\\\ny = \\left(t_{0} + 1\\right)^2 + t_{0}"
    );
    assert_eq!(
        one("relu", |x| Symbol::select(x.less(lit(0)), lit(0), x)).to_latex(),
        r"\mathrm{relu} = \begin{cases}0 & x < 0\\x & \text{otherwise}\end{cases}"
    );
}

#[test]
fn instructions_list_their_operands() {
    let program = one("y", |x| x.exp());
    assert_eq!(
        program.instructions(),
        [Instruction::Input(0), Instruction::Apply(Primitive::Exp, [Id(0)].as_slice().into())]
    );
}

#[test]
fn a_gradient_takes_an_output_for_what_it_would_compute_again() {
    let table: [(Program, &str); 5] = [
        (one("y", |x| x.exp()), "d_x = chain(y, d_y)"),
        (one("y", |x| x.sqrt()), "d_x = chain(0.5 / y, d_y)"),
        (one("y", |x| x.cos()), "d_x = chain(-sin(x), d_y)"),
        (one("y", |x| x), "d_x = d_y"),
        (one("y", |x| x * x.exp()), "%0 = exp(x)\nd_x = chain(%0 + chain(x, %0), d_y)"),
    ];
    for (forward, expected) in table {
        let through = forward.vjp(&[0]).unwrap().through_outputs(1, &forward, &[0]).unwrap();
        through.verify().unwrap();
        assert_eq!(through.to_string(), expected, "from {forward}");
    }
}

#[test]
fn a_gradient_may_be_unable_to_tell_the_input_from_the_output() {
    let zero = || lit::<Symbol>(0);
    let table: [(Program, bool); 7] = [
        (one("y", |x| Symbol::select(x.less_equal(zero()), zero(), x)), true),
        (one("y", |x| Symbol::select(Real::greater(x, lit(0.0)), x, lit(0.0))), true),
        // The output is 6 both where the input is more and where it is 6.
        (one("y", |x| Symbol::select(x.less(lit(6)), x, lit(6))), true),
        (one("y", |x| Symbol::select(x.less_equal(lit(6)), x, lit(6))), false),
        // A constant that a narrower format can't represent.
        (one("y", |x| Symbol::select(x.less_equal(lit(0.1)), lit(0.1), x)), false),
        (one("y", |x| Symbol::select(Real::greater(x, lit(0)), x, x * lit(2))), false),
        (one("y", |x| x.exp()), false),
    ];
    for (forward, expected) in table {
        let vjp = forward.vjp(&[0]).unwrap();
        assert_eq!(vjp.is_same_at_output(1, &forward, 0, 0), expected, "{forward}");
        if expected {
            for x in [-1.0, -0.0, 0.0, 0.3, 5.9, 6.0, 7.0, f64::INFINITY, f64::NEG_INFINITY] {
                let y = forward.at(&[x], &[]).unwrap()[0].number().unwrap();
                let slope = |x: f64| vjp.at(&[1.0, x], &[]).unwrap()[0].number().unwrap();
                assert_eq!(slope(x), slope(y), "{forward} at {x}");
            }
        }
    }
}
