//! Machine code that is assembled at run time computes the same bits as the interpreter.

#![cfg(target_arch = "x86_64")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use half::{bf16, f16};
use minitensor_kernels::program::{Plan, Primitive, Program, Scalar, ScalarValue, Storage, Symbol, Tile, ValueType};
use minitensor_kernels::simd::{Level, levels, set_level};
use minitensor_kernels::{Const, Element, Field, Float, Real, Truth};

/// The outputs of a plan, as bits.
fn outputs<T: Tile>(
    plan: &Plan,
    inputs: &[Vec<T>],
    uniforms: &[T],
    run: unsafe fn(&Plan, usize, &[*const u8], &[T], &[*mut u8]),
) -> Vec<Vec<u8>> {
    let n = inputs[0].len();
    let mut outputs: Vec<Vec<T>> = vec![vec![T::zero(); n]; plan.program().outputs().len()];
    let from: Vec<_> = inputs.iter().map(|x| x.as_ptr().cast::<u8>()).collect();
    let to: Vec<_> = outputs.iter_mut().map(|y| y.as_mut_ptr().cast::<u8>()).collect();
    // SAFETY: inputs and outputs have `n` elements.
    unsafe { run(plan, n, &from, uniforms, &to) };
    let bytes = |y: &Vec<T>| {
        let n = n * size_of::<T>();
        // SAFETY: the memory of the numbers.
        unsafe { std::slice::from_raw_parts(y.as_ptr().cast::<u8>(), n) }.to_vec()
    };
    outputs.iter().map(bytes).collect()
}

/// Compares both for a program, at each level.
fn check<T: Tile + Float>(program: &Program, inputs: &[Vec<T>], uniforms: &[T]) {
    for level in levels() {
        set_level(level);
        let plan = Plan::new(program.clone(), &[]).unwrap();
        let (expected, got) =
            (outputs(&plan, inputs, uniforms, Plan::interpret::<T>), outputs(&plan, inputs, uniforms, Plan::run::<T>));
        for (k, (name, id)) in program.outputs().iter().enumerate() {
            let is_number = program.instructions()[id.at()].kind() == ValueType::Number;
            let size = if is_number { size_of::<T>() } else { 1 };
            let pairs = expected[k].chunks_exact(size).zip(got[k].chunks_exact(size));
            for (i, (want, have)) in pairs.take(inputs[0].len()).enumerate() {
                // SAFETY: these are the bytes of a number.
                let is_nan = |bytes: &[u8]| is_number && unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }.isnan();
                let x: Vec<T> = inputs.iter().map(|x| x[i]).collect();
                assert!(
                    want == have || is_nan(want) && is_nan(have),
                    "{program}: '{name}' at {level:?}, {x:?} must be {want:02x?}, got {have:02x?}"
                );
            }
        }
    }
}

/// Numbers of all magnitudes, and special ones.
fn numbers<T: Float>(n: usize, seed: u64) -> Vec<T> {
    let mut state = seed;
    let special =
        [0.0, -0.0, 1.0, -1.0, 0.5, f64::INFINITY, -f64::INFINITY, f64::NAN, 1e-40, 3e-320, 1e30, -1e300, 2.0];
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = state >> 16;
            let fraction = (random >> 10) as f64 / (1u64 << 38) as f64 - 0.5;
            T::constant(Const::Float(match random % 8 {
                0 => special[(random >> 8) as usize % special.len()],
                1 => fraction * 2f64.powi((random >> 4) as i32 % 256 - 128),
                2 => fraction * 2f64.powi((random >> 4) as i32 % 2040 - 1020),
                3 => fraction * 200.0,
                _ => fraction * 12.0,
            }))
        })
        .collect()
}

/// Tests run one after the other, because the level is the same for all threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn primitive(p: Primitive) -> Program {
    let names = ["x", "y", "z"];
    Program::write(&names[..p.arity()], &[], |x, _| vec![("out".to_owned(), Symbol::apply(p, x).unwrap())])
}

fn each_primitive<T: Tile + Float>() {
    for p in Primitive::ALL.iter().filter(|p| T::kernel(**p).is_some()) {
        let inputs: Vec<Vec<T>> = (0..p.arity()).map(|k| numbers(20_011, 1 + k as u64)).collect();
        check(&primitive(*p), &inputs, &[]);
    }
}

#[test]
fn each_primitive_has_the_same_bits() {
    let _alone = alone();
    each_primitive::<f32>();
    each_primitive::<f64>();
}

#[test]
fn only_these_primitives_lack_machine_code() {
    let _alone = alone();
    for level in levels().filter(|level| *level != Level::Baseline) {
        set_level(level);
        let lacks = |p: &&Primitive| !Plan::new(primitive(**p), &[]).unwrap().has_machine_code::<f32>();
        let lacking: Vec<_> = Primitive::ALL.iter().filter(|p| f32::kernel(**p).is_some()).filter(lacks).collect();
        use Primitive::{BitsDivide, BitsRemainder, Digamma, FloorDivide, Fmod, Remainder};
        assert_eq!(lacking, [&FloorDivide, &Remainder, &Digamma, &Fmod, &BitsDivide, &BitsRemainder]);
    }
}

/// A random program of `steps` functions, with numbers and truth values as outputs.
fn random_program(steps: usize, seed: u64) -> Program {
    let mut state = seed;
    let mut random = move |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    Program::write(&["x", "y", "z"], &["u"], |inputs, uniforms| {
        let constant = |v: f64| Symbol::constant(Const::Float(v));
        let mut x = [inputs, uniforms, &[constant(0.5), constant(-3.0), constant(0.0)]].concat();
        x.push(Symbol::of_bits(0x3f9d_70a4));
        let mut tests = vec![x[0].less(x[1])];
        // Slow functions are rare.
        let cheap = [Primitive::Add, Primitive::Subtract, Primitive::Multiply, Primitive::MulAdd, Primitive::Negative];
        for _ in 0..steps {
            let p = match random(4) {
                0 => Primitive::ALL[random(Primitive::ALL.len())],
                _ => cheap[random(cheap.len())],
            };
            // The sign of NaN is not defined.
            if f32::kernel(p).is_none() || matches!(p, Primitive::Signbit | Primitive::Copysign) {
                continue;
            }
            let operands: Vec<Symbol> = (0..p.arity()).map(|_| x[x.len() - 1 - random(x.len().min(40))]).collect();
            // Nor are its other bits.
            let of_nan = |x: Symbol| Symbol::select(x.isnan(), Symbol::nan(), x);
            let operands = if p.is_of_bits() { operands.into_iter().map(of_nan).collect() } else { operands };
            match Symbol::apply(p, &operands).unwrap() {
                ScalarValue::Number(y) => x.push(y),
                ScalarValue::Mask(m) => tests.push(m),
            }
            if random(6) == 0 {
                let (a, b) = (tests[random(tests.len())], tests[random(tests.len())]);
                tests.push([a & b, a | b, !a][random(3)]);
            }
            if random(4) == 0 {
                let (a, b) = (x[random(x.len())], x[x.len() - 1]);
                x.push(Symbol::select(tests[tests.len() - 1 - random(tests.len().min(12))], a, b));
            }
        }
        vec![
            ("a".into(), x[x.len() - 1].into()),
            ("b".into(), x[x.len() / 2].into()),
            ("c".into(), tests[tests.len() - 1].into()),
        ]
    })
}

#[test]
fn random_programs_have_the_same_bits() {
    let _alone = alone();
    for seed in 0..150 {
        let program = random_program(5 + 2 * seed as usize, seed);
        let n = 1 + 7 * seed as usize;
        check::<f32>(&program, &[1, 2, 3].map(|k| numbers(n, seed + k)), &[0.75]);
        check::<f64>(&program, &[1, 2, 3].map(|k| numbers(n, seed + k)), &[-1.25]);
    }
}

#[test]
fn derivatives_have_the_same_bits() {
    let _alone = alone();
    for p in Primitive::ALL.iter().filter(|p| f32::kernel(**p).is_some() && !p.is_test()) {
        let all: Vec<usize> = (0..p.arity()).collect();
        let vjp = primitive(*p).vjp(&all).unwrap();
        let inputs = |k| numbers(1003, k);
        check::<f32>(&vjp, &(0..vjp.inputs().len() as u64).map(inputs).collect::<Vec<_>>(), &[]);
    }
}

#[test]
fn any_number_of_elements_is_computed_and_no_more() {
    let _alone = alone();
    let program = Program::write(&["x"], &[], |x, _| {
        vec![("y".into(), x[0].exp().into()), ("positive".into(), Symbol::constant(Const::Int(0)).less(x[0]).into())]
    });
    for level in levels() {
        set_level(level);
        let plan = Plan::new(program.clone(), &[]).unwrap();
        for n in 0..200 {
            let x: Vec<f32> = numbers(n, 5);
            let (mut y, mut positive) = (vec![7.0f32; n + 1], vec![Truth::from(true); n + 1]);
            // SAFETY: the outputs have more than `n` elements.
            unsafe {
                plan.run::<f32>(n, &[x.as_ptr().cast()], &[], &[y.as_mut_ptr().cast(), positive.as_mut_ptr().cast()]);
            }
            for i in 0..n {
                let expected = x[i].exp();
                assert!(y[i].to_bits() == Field::exp(x[i]).to_bits() || y[i].is_nan(), "{expected} {}", y[i]);
                assert_eq!(positive[i].get(), x[i] > 0.0, "{level:?} {i} of {n}");
            }
            assert!(y[n] == 7.0 && positive[n].get());
        }
    }
}

#[test]
fn an_input_that_is_not_read_may_be_missing() {
    let _alone = alone();
    let program = Program::write(&["x", "y"], &[], |x, _| vec![("out".into(), (x[0] + x[0]).into())]);
    for level in levels() {
        set_level(level);
        let plan = Plan::new(program.clone(), &[]).unwrap();
        let x: Vec<f32> = (0..77).map(|i| i as f32).collect();
        let mut out = vec![0.0f32; 77];
        // SAFETY: no instruction reads `y`.
        unsafe { plan.run::<f32>(77, &[x.as_ptr().cast(), std::ptr::null()], &[], &[out.as_mut_ptr().cast()]) };
        assert!((0..77).all(|i| out[i] == 2.0 * x[i]), "{level:?}");
    }
}

#[test]
fn outputs_may_replace_inputs() {
    let _alone = alone();
    // Exchanges the inputs.
    let program = Program::write(&["x", "y"], &[], |x, _| vec![("a".into(), x[1].into()), ("b".into(), x[0].into())]);
    for level in levels().filter(|level| *level != Level::Baseline) {
        set_level(level);
        let plan = Plan::new(program.clone(), &[]).unwrap();
        let (mut x, mut y): (Vec<f64>, Vec<f64>) =
            ((0..133).map(f64::from).collect(), (0..133).map(|i| -f64::from(i)).collect());
        let places = [x.as_mut_ptr().cast::<u8>(), y.as_mut_ptr().cast()];
        // SAFETY: each output is the memory of an input with elements of the same size.
        unsafe { plan.run::<f64>(133, &places.map(|p| p.cast_const()), &[], &places) };
        assert!((0..133).all(|i| x[i] == -(i as f64) && y[i] == i as f64), "{level:?}: {x:?} {y:?}");
    }
}

#[test]
fn truth_values_are_inputs_and_outputs() {
    let _alone = alone();
    let program = Program::write(&["c", "x", "d"], &[], |x, _| {
        let (c, d) = (x[0].truthy(), x[2].truthy());
        vec![
            ("y".into(), Symbol::select(c & !d, x[1], Symbol::constant(Const::Float(0.5))).into()),
            ("e".into(), (c | d).into()),
        ]
    });
    fn at<T: Tile + Float>(program: &Program) {
        for level in levels() {
            set_level(level);
            let plan = Plan::new(program.clone(), &[0, 2]).unwrap();
            assert_eq!(plan.has_machine_code::<T>(), level != Level::Baseline);
            let n = 77;
            let c: Vec<Truth> = (0..n).map(|i| Truth::from(i % 3 == 0)).collect();
            let d: Vec<Truth> = (0..n).map(|i| Truth::from(i % 5 < 2)).collect();
            let x: Vec<T> = numbers(n, 3);
            let (mut y, mut e) = (vec![T::zero(); n], vec![Truth::from(false); n]);
            let inputs = [c.as_ptr().cast(), x.as_ptr().cast(), d.as_ptr().cast()];
            // SAFETY: all have `n` elements.
            unsafe { plan.run::<T>(n, &inputs, &[], &[y.as_mut_ptr().cast(), e.as_mut_ptr().cast()]) };
            for i in 0..n {
                let expected = if c[i].get() && !d[i].get() { x[i] } else { T::constant(Const::Float(0.5)) };
                assert!(
                    y[i] == expected || expected.isnan() && y[i].isnan(),
                    "{level:?} {i}: {expected:?}, got {:?}",
                    y[i]
                );
                assert_eq!(e[i].get(), c[i].get() || d[i].get(), "{level:?} {i}");
            }
        }
    }
    at::<f32>(&program);
    at::<f64>(&program);
}

#[test]
fn one_number_may_stand_for_all_elements() {
    let _alone = alone();
    let program = Program::write(&["x", "y"], &[], |x, _| vec![("out".into(), (x[0] - x[1].asin()).into())]);
    fn at<T: Tile + Float>(program: &Program) {
        for level in levels().filter(|level| *level != Level::Baseline) {
            set_level(level);
            let plan = Plan::new(program.clone(), &[])
                .unwrap()
                .stored([Storage::Own, Storage::One].into(), [Storage::Own].into());
            for n in 0..150 {
                let x: Vec<T> = numbers(n, 9);
                let y = T::constant(Const::Float(0.25));
                let mut out = vec![T::zero(); n + 1];
                // SAFETY: `x` and the output have `n` elements, and `y` has one.
                unsafe {
                    plan.run::<T>(n, &[x.as_ptr().cast(), (&raw const y).cast()], &[], &[out.as_mut_ptr().cast()]);
                }
                for i in 0..n {
                    let expected = x[i] - y.asin();
                    assert!(out[i] == expected || expected.isnan() && out[i].isnan(), "{level:?} {i} of {n}");
                }
                assert!(out[n] == T::zero(), "{level:?} {n}");
            }
        }
    }
    at::<f32>(&program);
    at::<f64>(&program);
}

#[test]
fn every_other_number_is_read() {
    let _alone = alone();
    // The second program computes in `f64`, so its vectors have half as many numbers.
    let plain = Program::write(&["x", "y"], &[], |x, _| vec![("out".into(), (x[0] * x[1] - x[0]).into())]);
    let wide = Program::write(&["x", "y"], &[], |x, _| vec![("out".into(), (x[0].asin() + x[1]).into())]);
    let functions: [fn(f32, f32) -> f32; 2] = [|x, y| x * y - x, |x, y| Field::asin(x) + y];
    for (program, f) in [plain, wide].iter().zip(functions) {
        for level in levels().filter(|level| *level != Level::Baseline) {
            set_level(level);
            let stored = [Storage::EveryOther, Storage::Own];
            let plan = Plan::new(program.clone(), &[]).unwrap().stored(stored.into(), [Storage::Own].into());
            for n in 1..200 {
                let (x, y): (Vec<f32>, Vec<f32>) = (numbers(2 * n - 1, 9), numbers(n, 5));
                let mut out = vec![-7.0_f32; n + 1];
                // SAFETY: `x` has every other of `n` numbers, `y` and the output have `n`.
                unsafe {
                    plan.run::<f32>(n, &[x.as_ptr().cast(), y.as_ptr().cast()], &[], &[out.as_mut_ptr().cast()]);
                }
                for i in 0..n {
                    let expected = f(x[2 * i], y[i]);
                    let is_same = out[i].to_bits() == expected.to_bits() || out[i].is_nan() && expected.is_nan();
                    assert!(is_same, "{program} {level:?}: {} instead of {expected}, {i} of {n}", out[i]);
                }
                assert_eq!(out[n], -7.0, "{level:?} {n}");
            }
        }
    }
}

/// Memory that begins `offset` numbers after a cache line.
fn at_line<T: Copy>(memory: &mut [T], offset: usize) -> &mut [T] {
    let lines = memory.as_ptr().align_offset(64);
    &mut memory[lines + offset..]
}

#[test]
fn stores_may_bypass_the_cache() {
    let _alone = alone();
    // The first and last output have numbers, of which the program computes the last in `f64`.
    let program = Program::write(&["x"], &[], |x, _| {
        vec![
            ("a".into(), (x[0] * x[0]).into()),
            ("b".into(), x[0].less(Symbol::constant(Const::Float(0.0))).into()),
            ("c".into(), x[0].asin().into()),
        ]
    });
    fn at<T: Tile + Float>(program: &Program) {
        let untouched = T::constant(Const::Float(-7.0));
        for level in levels().filter(|level| *level != Level::Baseline) {
            set_level(level);
            let stored = [Storage::NonTemporal, Storage::Own, Storage::NonTemporal];
            let plan = Plan::new(program.clone(), &[]).unwrap().stored([Storage::Own].into(), stored.into());
            for n in (1..140).chain([1000, 1024]) {
                let x: Vec<T> = numbers(n, 9);
                for offset in [0, 1, 4, 8] {
                    let (mut a, mut b, mut c) =
                        (vec![untouched; n + 40], vec![Truth::from(false); n], vec![untouched; n + 40]);
                    let (a, c) = (at_line(&mut a, 0), at_line(&mut c, offset));
                    let outputs = [a.as_mut_ptr().cast(), b.as_mut_ptr().cast(), c.as_mut_ptr().cast()];
                    // SAFETY: the operands have `n` elements.
                    unsafe { plan.run::<T>(n, &[x.as_ptr().cast()], &[], &outputs) };
                    for i in 0..n {
                        let is_same = |got: T, expected: T| got == expected || got.isnan() && expected.isnan();
                        assert!(is_same(a[i], x[i] * x[i]) && is_same(c[i], x[i].asin()), "{level:?} {i} of {n}");
                        assert_eq!(b[i].get(), x[i].less(T::zero()), "{level:?} {i} of {n}");
                    }
                    assert!(a[n] == untouched && c[n] == untouched, "{level:?} {n}");
                }
            }
        }
    }
    at::<f32>(&program);
    at::<f64>(&program);
}

#[test]
fn rows_are_computed_in_one_call() {
    let _alone = alone();
    let program =
        Program::write(&["x", "y", "z"], &["a"], |x, a| vec![("out".into(), (x[0] * x[1] - x[2] + a[0]).into())]);
    fn at<T: Tile + Float>(program: &Program) {
        const ROWS: usize = 5;
        for level in levels().filter(|level| *level != Level::Baseline) {
            set_level(level);
            let stored = [Storage::Own, Storage::One, Storage::Own];
            let plan = |output| Plan::new(program.clone(), &[]).unwrap().stored(stored.into(), [output].into());
            let plans = [plan(Storage::Own), plan(Storage::NonTemporal)];
            // With 2 more elements than `n`, some rows of an output begin at whole cache lines, and others do not.
            for (n, plan) in (0..200).chain([256, 1000]).flat_map(|n| plans.iter().map(move |plan| (n, plan))) {
                // The rows of `x` and of the output are further apart than their elements; `z` is one row for all.
                let (x, y, z): (Vec<T>, Vec<T>, Vec<T>) = (numbers(ROWS * (n + 3), 9), numbers(ROWS, 5), numbers(n, 3));
                let untouched = T::constant(Const::Float(-7.0));
                let mut memory = vec![untouched; ROWS * (n + 2) + 16];
                let out = &mut at_line(&mut memory, 0)[..ROWS * (n + 2)];
                let a = T::constant(Const::Float(0.5));
                let size = size_of::<T>() as isize;
                let steps = [(n as isize + 3) * size, size, 0, (n as isize + 2) * size];
                // SAFETY: the operands have these rows.
                unsafe {
                    let inputs = [x.as_ptr().cast(), y.as_ptr().cast(), z.as_ptr().cast()];
                    plan.run_rows::<T>(ROWS, n, &inputs, &[a], &[out.as_mut_ptr().cast()], &steps);
                }
                for (at, got) in out.iter().enumerate() {
                    let (row, i) = (at / (n + 2), at % (n + 2));
                    let expected = if i < n { x[row * (n + 3) + i] * y[row] - z[i] + a } else { untouched };
                    assert!(*got == expected || expected.isnan() && got.isnan(), "{level:?} {row}, {i} of {n}");
                }
            }
        }
    }
    at::<f32>(&program);
    at::<f64>(&program);
}

/// A half float, by its bits.
trait Half: Copy {
    const STORAGE: Storage;
    fn widened(bits: u16) -> f32;
    fn rounded(x: f32) -> u16;
}

impl Half for f16 {
    const STORAGE: Storage = Storage::Float16;
    fn widened(bits: u16) -> f32 {
        f16::from_bits(bits).to_f32()
    }
    fn rounded(x: f32) -> u16 {
        f16::from_f32(x).to_bits()
    }
}

impl Half for bf16 {
    const STORAGE: Storage = Storage::BFloat16;
    fn widened(bits: u16) -> f32 {
        bf16::from_bits(bits).to_f32()
    }
    fn rounded(x: f32) -> u16 {
        bf16::from_f32(x).to_bits()
    }
}

#[test]
fn half_floats_are_widened_and_rounded() {
    fn at<H: Half>(program: &Program, f: fn(f32) -> f32) {
        let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        let plan = |storage: [Storage; 2]| {
            Plan::new(program.clone(), &[]).unwrap().stored([storage[0]].into(), [storage[1]].into())
        };
        let all: Vec<u16> = (0..=u16::MAX).collect();
        // The values between two halves, and some of all others.
        let ties = all.iter().flat_map(|bits| {
            let low = H::widened(*bits).to_bits();
            let step = H::widened(bits.wrapping_add(1)).to_bits().wrapping_sub(low) / 2;
            [low.wrapping_add(step), low.wrapping_add(step).wrapping_add(1), low.wrapping_add(step).wrapping_sub(1)]
        });
        let x: Vec<f32> = ties.chain((0..=u32::MAX).step_by(10_007)).map(f32::from_bits).collect();
        for level in levels().filter(|level| *level != Level::Baseline) {
            set_level(level);
            let (widen, round, both) =
                (plan([H::STORAGE, Storage::Own]), plan([Storage::Own, H::STORAGE]), plan([H::STORAGE; 2]));
            let mut y = vec![0.0f32; all.len()];
            let mut rounded = vec![0u16; x.len()];
            // SAFETY: inputs and outputs have as many elements of these sizes.
            unsafe {
                widen.run::<f32>(y.len(), &[all.as_ptr().cast()], &[], &[y.as_mut_ptr().cast()]);
                round.run::<f32>(x.len(), &[x.as_ptr().cast()], &[], &[rounded.as_mut_ptr().cast()]);
            }
            for (bits, y) in all.iter().zip(&y) {
                assert!(same(*y, f(H::widened(*bits))), "{program} {level:?}: {bits:04x}, got {y}");
            }
            for (x, y) in x.iter().zip(&rounded) {
                let expected = H::widened(H::rounded(f(*x)));
                assert!(same(H::widened(*y), expected), "{program} {level:?}: {x:e}, got {y:04x}");
            }
            for n in 0..150 {
                let mut z = all[..n + 1].to_vec();
                let place = z.as_mut_ptr();
                // SAFETY: the output is the memory of the input.
                unsafe { both.run::<f32>(n, &[place.cast()], &[], &[place.cast()]) };
                for i in 0..n {
                    assert!(
                        same(H::widened(z[i]), H::widened(H::rounded(f(H::widened(all[i]))))),
                        "{level:?} {i} of {n}"
                    );
                }
                assert_eq!(z[n], all[n], "{level:?}: no more than {n}");
            }
        }
    }
    let _alone = alone();
    let copy = Program::write(&["x"], &[], |x, _| vec![("y".into(), x[0].into())]);
    // The arc sine of `f32` computes in `f64`, so a vector has half as many elements.
    let asin = Program::write(&["x"], &[], |x, _| vec![("y".into(), x[0].asin().into())]);
    at::<f16>(&copy, |x| x);
    at::<bf16>(&copy, |x| x);
    at::<f16>(&asin, Field::asin);
    at::<bf16>(&asin, Field::asin);
}
