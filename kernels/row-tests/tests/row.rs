//! Row bodies: compiled passes, programs over rows and finite differences agree.

use minitensor_kernels::program::{Program, RowPlan, Symbol, Variable};
use minitensor_kernels::row::{Body, Cotangents, RowError, Rows, forward, vjp};
use minitensor_kernels::simd::{Level, set_level};
use minitensor_kernels::{Row, lit};

/// A body as a struct: `x` is an input with one value per element, `(x)` one with one value per row.
macro_rules! body {
    ($name:ident: [$($along:literal $x:ident),*] at [$($at:ident),*] -> [$($gives:literal),*] in $levels:expr, $reductions:literal = $y:expr) => {
        struct $name;
        impl Body<{ [$($along),*].len() }, { <[&str]>::len(&[$(stringify!($at)),*]) }, { [$($gives),*].len() }> for $name {
            const ALONG: [bool; [$($along),*].len()] = [$($along),*];
            const GIVES: [bool; [$($gives),*].len()] = [$($gives),*];
            const REDUCTIONS: usize = $reductions;
            const LEVELS: (usize, usize) = $levels;
            const RUNS: bool = false;
            #[inline(always)]
            fn eval<R: Row>(&self, [$($x),*]: [R; [$($along),*].len()], [$($at),*]: [R::Index; <[&str]>::len(&[$(stringify!($at)),*])])
                -> [R; [$($gives),*].len()] { $y }
        }
    };
}

body! { Softmax: [true x] at [] -> [true] in (2, 2), 2 = { let e = (x - x.max()).exp(); [e / e.sum()] } }
body! { LayerNorm: [true x, true w, true b] at [] -> [true] in (2, 2), 2 = {
    let c = x - x.mean();
    [c * (c.square().mean() + lit(1e-5)).rsqrt() * w + b]
} }
body! { Tempered: [true x, false t] at [] -> [true, false] in (0, 3), 3 = {
    let z = x / t;
    let e = (z - z.max().detach()).exp();
    let p = e / e.sum();
    [p, -(p * (p + lit(1e-9)).log()).sum()]
} }
body! { CrossEntropy: [true x] at [target] -> [false] in (2, 2), 3 = [x.logsumexp() - x.at(target)] }
body! { Pearson: [true x, true y] at [] -> [false] in (2, 2), 5 = {
    let (a, b) = (x - x.mean(), y - y.mean());
    [a.dot(b) * (a.square().sum() * b.square().sum()).rsqrt()]
} }
body! { Product: [true x] at [] -> [false, true] in (1, 1), 5 = { let p = x.prod(); [p, p * x] } }
body! { Extremes: [true x, true y] at [] -> [false, true] in (1, 1), 3 = [x.max() * y.min(), x.max() - x] }
body! { Plain: [true x, false s] at [] -> [true] in (0, 0), 0 = [x.exp() * s + x] }
body! { Where: [true x] at [] -> [false, false] in (2, 2), 6 = [x.argmax(), R::select(R::any(x.less(lit(0))), x.argmin(), lit(-1))] }

body! { Running: [true x, true w, false t] at [] -> [true, false] in (3, 3), 4 = {
    let so_far = (x * t).cumsum();
    let p = (so_far - so_far.max()).exp() * w;
    [p.reverse_cumsum() + so_far, so_far.square().mean()]
} }

/// The same body, declared to have running sums.
struct InTurn<B>(B);
impl<B: Body<I, X, O>, const I: usize, const X: usize, const O: usize> Body<I, X, O> for InTurn<B> {
    const ALONG: [bool; I] = B::ALONG;
    const GIVES: [bool; O] = B::GIVES;
    const REDUCTIONS: usize = B::REDUCTIONS;
    const LEVELS: (usize, usize) = B::LEVELS;
    const RUNS: bool = true;
    #[inline(always)]
    fn eval<R: Row>(&self, inputs: [R; I], at: [R::Index; X]) -> [R; O] {
        self.0.eval(inputs, at)
    }
}

/// Runs a test with a large stack: without optimization, each number of a body takes a part of it.
fn with_room(test: impl FnOnce() + Send) {
    let thread = std::thread::Builder::new().stack_size(256 << 20);
    let result = std::thread::scope(|scope| thread.spawn_scoped(scope, test).expect("memory for a stack").join());
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

fn random(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64 * 3.0 - 1.2
        })
        .collect()
}

/// The arguments of some rows. Inputs with one value per row are positive.
struct Arguments<const I: usize, const X: usize> {
    n: usize,
    rows: usize,
    inputs: [Vec<f64>; I],
    at: [Vec<i64>; X],
}

impl<const I: usize, const X: usize> Arguments<I, X> {
    fn new(along: [bool; I], n: usize, rows: usize) -> Self {
        let input = |i: usize| match along[i] {
            true => random(n * rows, i as u64 + 1),
            false => random(rows, i as u64 + 1).into_iter().map(|v| v.abs() + 0.5).collect(),
        };
        let at = std::array::from_fn(|_| (0..rows).map(|r| (r * 7 % n.max(1)) as i64).collect());
        Arguments { n, rows, inputs: std::array::from_fn(input), at }
    }

    fn outputs<B: Body<I, X, O>, const O: usize>(&self, body: &B) -> Result<[Vec<f64>; O], RowError> {
        let mut outputs: [Vec<f64>; O] =
            B::GIVES.map(|gives| vec![0.0; if gives { self.n * self.rows } else { self.rows }]);
        let places = std::array::from_fn(|k| self.operand_mut(&mut outputs[k], B::GIVES[k]));
        // SAFETY: all operands have these rows.
        unsafe { forward(body, self.n, self.rows, &self.operands::<B, O>(), &self.positions(), &places)? };
        Ok(outputs)
    }

    fn gradients<B: Body<I, X, O>, const O: usize>(&self, body: &B, cotangents: &[Vec<f64>; O]) -> [Vec<f64>; I] {
        let mut gradients: [Vec<f64>; I] = std::array::from_fn(|i| vec![0.0; self.inputs[i].len()]);
        let given = Cotangents {
            outputs: std::array::from_fn(|k| self.operand(&cotangents[k], B::GIVES[k])),
            inputs: std::array::from_fn(|i| self.operand_mut(&mut gradients[i], B::ALONG[i])),
            shared: [false; I],
        };
        // SAFETY: as above.
        unsafe { vjp(body, self.n, self.rows, &given, &self.operands::<B, O>(), &self.positions()) }
            .expect("as forward");
        gradients
    }

    fn operands<B: Body<I, X, O>, const O: usize>(&self) -> [Rows<*const f64>; I] {
        std::array::from_fn(|i| self.operand(&self.inputs[i], B::ALONG[i]))
    }

    fn operand(&self, values: &[f64], along: bool) -> Rows<*const f64> {
        Rows { data: values.as_ptr(), step: 8 * if along { self.n as isize } else { 1 }, is_large: false }
    }

    fn operand_mut(&self, values: &mut [f64], along: bool) -> Rows<*mut f64> {
        Rows { data: values.as_mut_ptr(), step: 8 * if along { self.n as isize } else { 1 }, is_large: true }
    }

    fn positions(&self) -> [Rows<*const i64>; X] {
        std::array::from_fn(|x| Rows { data: self.at[x].as_ptr(), step: 8, is_large: false })
    }
}

/// The body as a program: numbers for the row become uniforms; positions are the last uniforms.
fn program<B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(body: &B) -> Program {
    let name = |i: usize| format!("x{i}");
    let of = |along: bool| (0..I).filter(move |i| B::ALONG[*i] == along).map(name).collect::<Vec<_>>();
    let (inputs, mut uniforms) = (of(true), of(false));
    uniforms.extend((0..X).map(|x| format!("at{x}")));
    let (inputs, uniforms): (Vec<&str>, Vec<&str>) =
        (inputs.iter().map(String::as_str).collect(), uniforms.iter().map(String::as_str).collect());
    Program::write(&inputs, &uniforms, |x, u| {
        let (mut x, mut u) = (x.iter().copied(), u.iter().copied());
        let inputs: [Symbol; I] =
            std::array::from_fn(|i| if B::ALONG[i] { x.next() } else { u.next() }.expect("one each"));
        let at = std::array::from_fn(|_| u.next().expect("one each"));
        body.eval(inputs, at).into_iter().enumerate().map(|(k, y)| (format!("y{k}"), y.into())).collect()
    })
}

fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance * (1.0 + a.abs()) || a.is_nan() && b.is_nan())
}

/// Asserts that compiled and symbolic values and gradients agree, and that gradients agree with finite differences.
fn agree<B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(body: &B, least: usize) {
    let program = program(body);
    program.verify().expect("a program");
    assert_eq!(Program::from_json(&program.to_json()), Ok(program.clone()));
    let wrt: Vec<Variable> = {
        let (mut x, mut u) = (0.., 0..);
        let next = |i: usize| match B::ALONG[i] {
            true => Variable::Input(x.next().unwrap_or_default()),
            false => Variable::Uniform(u.next().unwrap_or_default()),
        };
        (0..I).map(next).collect()
    };
    let symbolic = program.vjp_of_rows(&B::GIVES, &wrt).expect("differentiable");
    symbolic.verify().expect("a program");
    // Blocks have 64 elements, and sections 16,384.
    for (n, count) in [(1, 1), (2, 3), (5, 4), (63, 2), (64, 2), (65, 1), (577, 2), (40_000, 1)] {
        if n < least {
            continue;
        }
        let rows = Arguments::<I, X>::new(B::ALONG, n, count);
        let outputs = rows.outputs(body).expect("right");
        let at: Vec<Vec<f64>> = rows.at.iter().map(|at| at.iter().map(|v| *v as f64).collect()).collect();
        let at: Vec<Rows<*const f64>> = at.iter().map(|v| rows.operand(v, false)).collect();
        let of = |along: bool| {
            let some = (0..I).filter(move |i| B::ALONG[*i] == along);
            some.map(|i| rows.operand(&rows.inputs[i], along)).collect::<Vec<_>>()
        };
        let run = |program: &Program, gives: &[bool], extra: (Vec<Rows<*const f64>>, Vec<Rows<*const f64>>)| {
            let mut memory: Vec<Vec<f64>> =
                gives.iter().map(|g| vec![0.0; if *g { n * count } else { count }]).collect();
            let places: Vec<_> = memory.iter_mut().zip(gives).map(|(y, gives)| rows.operand_mut(y, *gives)).collect();
            let inputs = [extra.0, of(true)].concat();
            let uniforms = [extra.1, of(false), at.clone()].concat();
            let plan = RowPlan::new(program.clone(), gives, uniforms.len(), &[]).expect("it is of rows");
            // SAFETY: all operands have these rows.
            unsafe { plan.run(n, count, &inputs, &uniforms, &places) };
            memory
        };
        // At numbers, the program returns a number for the row once per element.
        let thinned = |values: &[f64], along: bool| {
            if along { values.to_vec() } else { values.iter().copied().step_by(n).collect() }
        };
        for (k, y) in run(&program, &B::GIVES, (vec![], vec![])).iter().enumerate() {
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(y), bits(&outputs[k]), "output {k} of rows of {n}: {program}");
        }
        let numbers: Vec<Vec<f64>> = (0..program.inputs().len())
            .map(|i| {
                let i = (0..I).filter(|i| B::ALONG[*i]).nth(i).expect("one each");
                rows.inputs[i][..n].to_vec()
            })
            .collect();
        let numbers: Vec<&[f64]> = numbers.iter().map(Vec::as_slice).collect();
        let uniforms: Vec<f64> = (0..I)
            .filter(|i| !B::ALONG[*i])
            .map(|i| rows.inputs[i][0])
            .chain(rows.at.iter().map(|v| v[0] as f64))
            .collect();
        for (k, y) in program.at_row(&numbers, &uniforms, n).expect("float64 has it all").iter().enumerate() {
            let y: Vec<f64> = y.iter().filter_map(|v| v.number()).collect();
            let first = if B::GIVES[k] { &outputs[k][..n] } else { &outputs[k][..1] };
            assert!(close(&thinned(&y, B::GIVES[k]), first, 1e-12), "output {k} at numbers: {program}");
        }
        let cotangents: [Vec<f64>; O] = std::array::from_fn(|k| random(outputs[k].len(), 77 + k as u64));
        let gradients = rows.gradients(body, &cotangents);
        let given = |along: bool| {
            let some = (0..O).filter(move |k| B::GIVES[*k] == along);
            some.map(|k| rows.operand(&cotangents[k], along)).collect::<Vec<_>>()
        };
        for (i, x) in run(&symbolic, &B::ALONG, (given(true), given(false))).iter().enumerate() {
            assert!(
                close(x, &gradients[i], 1e-9),
                "gradient {i} of rows of {n}:\n{x:?}\n{:?}\n{symbolic}",
                gradients[i]
            );
        }
        if n <= 63 {
            finite_differences(body, &rows, &cotangents, &gradients);
        }
    }
}

fn finite_differences<B: Body<I, X, O>, const I: usize, const X: usize, const O: usize>(
    body: &B,
    rows: &Arguments<I, X>,
    cotangents: &[Vec<f64>; O],
    gradients: &[Vec<f64>; I],
) {
    let dot = |outputs: [Vec<f64>; O]| -> f64 {
        outputs.iter().zip(cotangents).map(|(y, d)| y.iter().zip(d).map(|(y, d)| y * d).sum::<f64>()).sum()
    };
    for i in 0..I {
        for p in 0..rows.inputs[i].len() {
            let moved = |by: f64| {
                let mut inputs = rows.inputs.clone();
                inputs[i][p] += by;
                dot(Arguments { n: rows.n, rows: rows.rows, inputs, at: rows.at.clone() }.outputs(body).expect("right"))
            };
            let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            let given = gradients[i][p];
            assert!(
                (slope - given).abs() <= 1e-5 * (1.0 + slope.abs()),
                "input {i}, element {p}: {given}, not {slope}"
            );
        }
    }
}

#[test]
fn values_and_gradients_agree_in_every_form() {
    with_room(|| {
        agree(&Softmax, 1);
        agree(&LayerNorm, 1);
        agree(&Tempered, 1);
        agree(&CrossEntropy, 1);
        // The correlation of one element is undefined.
        agree(&Pearson, 2);
        agree(&Product, 1);
        agree(&Extremes, 1);
        agree(&Plain, 1);
    });
}

#[test]
fn running_sums_and_the_adjoints_in_turn_agree_in_every_form() {
    with_room(|| {
        agree(&InTurn(Running), 1);
        agree(&InTurn(Tempered), 1);
        agree(&InTurn(CrossEntropy), 1);
        agree(&InTurn(Pearson), 2);
        agree(&InTurn(Product), 1);
        agree(&InTurn(Extremes), 1);
        agree(&InTurn(Plain), 1);
    });
}

#[test]
fn every_level_gives_the_same_bits() {
    with_room(|| {
        let rows = Arguments::<3, 0>::new(LayerNorm::ALONG, 777, 3);
        let tempered = Arguments::<2, 0>::new(Tempered::ALONG, 777, 3);
        let running = Arguments::<3, 0>::new(Running::ALONG, 777, 3);
        let all = Level::ALL.map(|level| {
            set_level(level);
            (
                rows.outputs(&LayerNorm),
                tempered.outputs(&Tempered),
                rows.gradients(&LayerNorm, &[random(777 * 3, 5)]),
                running.outputs(&InTurn(Running)),
                running.gradients(&InTurn(Running), &[random(777 * 3, 5), random(3, 6)]),
            )
        });
        set_level(Level::Avx512);
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
    });
}

#[test]
fn rows_that_share_a_cotangent_add_to_it() {
    with_room(|| {
        for n in [1, 63, 64, 130] {
            let rows = Arguments::<3, 0>::new(LayerNorm::ALONG, n, 3);
            let cotangents = [random(n * 3, 5)];
            let weight = rows.inputs[1][..n].to_vec();
            let all = Arguments { inputs: [rows.inputs[0].clone(), weight.repeat(3), weight.repeat(3)], ..rows };
            let [x, w, b] = all.gradients(&LayerNorm, &cotangents);
            let mut gradients = [vec![0.0; n * 3], vec![0.0; n], vec![0.0; n]];
            let at = |k: usize, data: *mut f64| Rows {
                data,
                step: if k == 0 { 8 * n as isize } else { 0 },
                is_large: k == 0,
            };
            let given = Cotangents {
                outputs: [all.operand(&cotangents[0], true)],
                inputs: std::array::from_fn(|k| at(k, gradients[k].as_mut_ptr())),
                shared: [false, true, true],
            };
            // SAFETY: all operands have these rows; those that are shared have one.
            unsafe { vjp(&LayerNorm, n, 3, &given, &all.operands::<LayerNorm, 1>(), &[]) }.expect("as forward");
            let sum = |of: &[f64]| (0..n).map(|j| of[j] + of[n + j] + of[2 * n + j]).collect::<Vec<_>>();
            assert_eq!(gradients[0], x, "rows of {n}");
            assert!(close(&gradients[1], &sum(&w), 1e-14) && close(&gradients[2], &sum(&b), 1e-14), "rows of {n}");
        }
    });
}

/// Sums of `f32` are about as accurate as pairwise sums, for rows of any length.
#[test]
fn sums_of_long_rows_are_accurate() {
    with_room(|| {
        body! { Mean: [true x] at [] -> [false] in (1, 1), 1 = [x.mean()] }
        for n in [100, 1000, 10_000, 100_000] {
            let x: Vec<f32> = random(n, 3).into_iter().map(|v| v as f32 + 10.0).collect();
            let exact = x.iter().map(|v| f64::from(*v)).sum::<f64>() / n as f64;
            let mut mean = 0f32;
            let (input, output) = (
                Rows { data: x.as_ptr(), step: 0, is_large: false },
                Rows { data: &raw mut mean, step: 0, is_large: false },
            );
            // SAFETY: one row of n elements.
            unsafe { forward(&Mean, n, 1, &[input], &[], &[output]) }.expect("right");
            let error = (f64::from(mean) - exact).abs() / exact;
            assert!(error <= 4.0 * f64::from(f32::EPSILON), "{n}: {error:e}");
        }
    });
}

#[test]
fn a_product_has_a_gradient_at_zeros() {
    with_room(|| {
        for (x, want) in
            [([2.0, 0.0, 5.0], [0.0, 10.0, 0.0]), ([0.0, 0.0, 5.0], [0.0; 3]), ([2.0, 3.0, 5.0], [15.0, 10.0, 6.0])]
        {
            let rows = Arguments::<1, 0> { n: 3, rows: 1, inputs: [x.to_vec()], at: [] };
            let [gradient] = rows.gradients(&Product, &[vec![1.0], vec![0.0; 3]]);
            assert_eq!(gradient, want);
        }
    });
}

#[test]
fn ties_share_the_gradient_evenly() {
    with_room(|| {
        let rows = Arguments::<2, 0> { n: 4, rows: 1, inputs: [vec![1.0, 3.0, 3.0, 2.0], vec![1.0; 4]], at: [] };
        let [x, y] = rows.gradients(&Extremes, &[vec![1.0], vec![0.0; 4]]);
        assert_eq!((x, y), (vec![0.0, 0.5, 0.5, 0.0], vec![0.75; 4]));
    });
}

#[test]
fn extremes_say_where_they_stand_and_nan_wins() {
    with_room(|| {
        let rows = Arguments::<1, 0> {
            n: 4,
            rows: 3,
            inputs: [vec![1.0, 7.0, -3.0, 7.0, 0.0, f64::NAN, 9.0, f64::NAN, 1.0, 2.0, 3.0, 4.0]],
            at: [],
        };
        assert_eq!(rows.outputs(&Where), Ok([vec![1.0, 1.0, 3.0], vec![2.0, -1.0, -1.0]]));
    });
}

#[test]
fn infinities_and_empty_rows() {
    with_room(|| {
        let inf = f64::INFINITY;
        let rows = Arguments::<1, 1> {
            n: 2,
            rows: 4,
            inputs: [vec![-inf, -inf, inf, 1.0, -inf, 1.0, f64::NAN, 1.0]],
            at: [vec![1, 1, 1, 1]],
        };
        let [loss] = rows.outputs(&CrossEntropy).expect("right");
        // −∞ − (−∞), ∞ − 1, 1 − 1 and NaN, as in NumPy.
        assert!(loss[0].is_nan() && loss[1] == inf && loss[2] == 0.0 && loss[3].is_nan(), "{loss:?}");
        let empty = Arguments::<1, 0> { n: 0, rows: 2, inputs: [vec![]], at: [] };
        assert_eq!(empty.outputs(&Softmax), Ok([vec![]]));
        assert_eq!(empty.outputs(&Product), Ok([vec![1.0, 1.0], vec![]]));
        assert_eq!(empty.gradients(&Product, &[vec![1.0; 2], vec![]]), [Vec::<f64>::new()]);
        let empty = Arguments::<3, 0> { n: 0, rows: 1, inputs: [vec![], vec![], vec![2.0]], at: [] };
        let [sums, mean] = empty.outputs(&InTurn(Running)).expect("right");
        assert!(sums.is_empty() && mean[0].is_nan());
        assert_eq!(empty.gradients(&InTurn(Running), &[vec![], vec![0.0]])[0], Vec::<f64>::new());
    });
}

#[test]
fn what_a_row_lacks_is_an_error() {
    with_room(|| {
        let rows = Arguments::<1, 1> { n: 3, rows: 2, inputs: [vec![0.0; 6]], at: [vec![0, 3]] };
        let error = rows.outputs(&CrossEntropy).unwrap_err();
        assert_eq!(error.to_string(), "index 3 is out of range for a row of 3");
        body! { Varying: [true x] at [] -> [false] in (1, 1), 1 = [x - x.mean()] }
        let rows = Arguments::<1, 0>::new([true], 3, 1);
        let error = rows.outputs(&Varying).unwrap_err();
        assert_eq!(error, RowError::Varies(0));
        body! { Deep: [true x] at [] -> [false] in (1, 1), 2 = [(x - x.mean()).sum()] }
        assert_eq!(rows.outputs(&Deep).unwrap_err(), RowError::Reductions { count: 2, levels: 2 });
        body! { Hidden: [true x] at [] -> [true] in (1, 1), 1 = [x.cumsum()] }
        assert_eq!(rows.outputs(&Hidden).unwrap_err(), RowError::Runs);
        body! { Reduced: [true x] at [] -> [true] in (0, 2), 2 = [x / R::one().sum()] }
        assert_eq!(rows.outputs(&Reduced).unwrap_err(), RowError::Constant);
    });
}

#[test]
fn a_row_program_reads_as_it_is_written() {
    with_room(|| {
        let program = program(&Softmax);
        assert_eq!(program.to_string(), "%0 = exp(x0 - max(x0))\ny0 = %0 / sum(%0)");
        assert!(program.is_of_rows());
        assert_eq!(
            program.to_latex(),
            "t_{0} = e^{\\mathrm{x0} - \\max_i\\left(\\mathrm{x0}\\right)} \\\\\n\\mathrm{y0} = \\frac{t_{0}}{\\sum_i\\left(t_{0}\\right)}"
        );
    });
}
