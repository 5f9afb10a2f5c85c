//! Machine code for programs of integers computes what Rust's integers compute.

#![cfg(target_arch = "x86_64")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use minitensor_kernels::program::{Plan, Primitive, Program, Scalar, ScalarValue, Symbol, Tile};
use minitensor_kernels::simd::{Level, levels, set_level};
use minitensor_kernels::{Const, Element, Num, Real, Truth};

/// Tests run one after the other, because the level is the same for all threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

trait Integer: Tile + Element<Mask = bool> + Real + PartialEq + std::fmt::Debug {}
impl<T: Tile + Element<Mask = bool> + Real + PartialEq + std::fmt::Debug> Integer for T {}

/// The primitives that have no machine code.
fn lacking<T: Integer>() -> &'static [Primitive] {
    use Primitive::{FloorDivide, Pow, Remainder};
    if size_of::<T>() == 8 { &[Pow, FloorDivide, Remainder] } else { &[Pow] }
}

/// The primitives of integers that have machine code.
fn primitives<T: Integer>() -> impl Iterator<Item = Primitive> {
    Primitive::ALL.iter().copied().filter(|p| T::kernel(*p).is_some() && !lacking::<T>().contains(p))
}

fn program(p: Primitive) -> Program {
    let names = ["x", "y"];
    Program::write(&names[..p.arity()], &[], |x, _| vec![("out".to_owned(), Symbol::apply(p, x).unwrap())])
}

/// Compares the outputs of a program with its evaluation at single numbers, at each level.
fn check<T: Integer>(program: &Program, inputs: &[Vec<T>]) {
    let n = inputs[0].len();
    let at = |i: usize| program.at::<T>(&inputs.iter().map(|x| x[i]).collect::<Vec<_>>(), &[]).unwrap();
    let expected: Vec<_> = (0..n).map(at).collect();
    for level in levels().filter(|level| *level != Level::Baseline) {
        set_level(level);
        let plan = Plan::new(program.clone(), &[]).unwrap();
        assert!(plan.has_machine_code::<T>(), "{program} at {level:?}");
        let mut outputs: Vec<Vec<T>> = vec![vec![T::zero(); n]; program.outputs().len()];
        let from: Vec<_> = inputs.iter().map(|x| x.as_ptr().cast::<u8>()).collect();
        let to: Vec<_> = outputs.iter_mut().map(|y| y.as_mut_ptr().cast::<u8>()).collect();
        // SAFETY: inputs and outputs have `n` elements.
        unsafe { plan.run::<T>(n, &from, &[], &to) };
        for (k, (name, _)) in program.outputs().iter().enumerate() {
            // SAFETY: the output has `n` truth values.
            let truths = || unsafe { std::slice::from_raw_parts(outputs[k].as_ptr().cast::<Truth>(), n) };
            for i in 0..n {
                let is_same = match expected[i][k] {
                    ScalarValue::Number(x) => outputs[k][i] == x,
                    ScalarValue::Mask(m) => truths()[i].get() == m,
                };
                let x: Vec<T> = inputs.iter().map(|x| x[i]).collect();
                assert!(is_same, "{program}: '{name}' at {level:?}, {x:?} must be {:?}", expected[i][k].number());
            }
        }
    }
}

fn random(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % n
}

/// Integers of all magnitudes, among them the extremes and small ones.
fn numbers<T: Integer>(n: usize, seed: u64) -> Vec<T> {
    let mut state = seed;
    let mut number = move || {
        let bits = (random(&mut state, 1 << 31) as i128) << 40 | (random(&mut state, 1 << 31) as i128) << 20;
        let magnitude = (bits | random(&mut state, 1 << 20) as i128) >> random(&mut state, 72);
        match random(&mut state, 8) {
            0 => T::constant(Const::Int(i128::MAX)),
            1 => T::constant(Const::Int(i128::MIN)),
            2 => T::constant(Const::Int(-1)),
            3 => T::constant(Const::Int(random(&mut state, 70) as i128)),
            // Wraps, where a constant would be the nearest number.
            _ => {
                let digit = |k: u32| T::constant(Const::Int((magnitude >> (6 * k)) & 63));
                let sum = (0..11).rev().fold(T::zero(), |sum, k| sum * T::constant(Const::Int(64)) + digit(k));
                if random(&mut state, 2) == 0 { sum } else { sum.negative() }
            }
        }
    };
    (0..n).map(|_| number()).collect()
}

macro_rules! at_each_type {
    ($check:ident) => {
        at_each_type! { $check: i8 i16 i32 i64 u8 u16 u32 u64 }
    };
    ($check:ident: $($t:ty)*) => {{ $($check::<$t>();)* }};
}

#[test]
fn only_powers_and_quotients_of_64_bits_lack_machine_code() {
    fn check_type<T: Integer>() {
        for level in levels() {
            set_level(level);
            for p in Primitive::ALL.iter().filter(|p| T::kernel(**p).is_some()) {
                let has_code = level != Level::Baseline && !lacking::<T>().contains(p);
                assert_eq!(program(*p).has_form_at::<T>(), has_code, "{p:?} at {level:?}");
                assert_eq!(
                    Plan::new(program(*p), &[]).unwrap().has_machine_code::<T>(),
                    has_code,
                    "{p:?} at {level:?}"
                );
            }
        }
    }
    let _alone = alone();
    at_each_type!(check_type);
}

#[test]
fn an_output_may_replace_an_input() {
    fn check_type<T: Integer>() {
        // Exchanges the inputs, and adds to one of them.
        let program = Program::write(&["x", "y"], &[], |x, _| {
            vec![("a".into(), x[1].into()), ("b".into(), (x[0] + x[1]).into())]
        });
        for level in levels().filter(|level| *level != Level::Baseline) {
            set_level(level);
            let plan = Plan::new(program.clone(), &[]).unwrap();
            for n in [1, 15, 64, 133, 1000] {
                let (x, y) = (numbers::<T>(n, 3), numbers::<T>(n, 4));
                let (mut a, mut b) = (x.clone(), y.clone());
                let places = [a.as_mut_ptr().cast::<u8>(), b.as_mut_ptr().cast()];
                // SAFETY: each output is the memory of an input with elements of the same size.
                unsafe { plan.run::<T>(n, &places.map(|p| p.cast_const()), &[], &places) };
                assert!((0..n).all(|i| a[i] == y[i] && b[i] == x[i] + y[i]), "{level:?} {n}");
            }
        }
    }
    let _alone = alone();
    at_each_type!(check_type);
}

#[test]
fn each_primitive_computes_the_same() {
    fn check_type<T: Integer>() {
        for p in primitives::<T>() {
            check(&program(p), &(0..p.arity()).map(|k| numbers::<T>(20_011, 1 + k as u64)).collect::<Vec<_>>());
        }
    }
    let _alone = alone();
    at_each_type!(check_type);
}

#[test]
fn each_primitive_computes_the_same_for_all_bytes() {
    fn check_type<T: Integer>() {
        let least = if T::zero().minimum(T::one().negative()) == T::zero() { 0 } else { -128 };
        let number = |i: usize| T::constant(Const::Int(least + i as i128));
        let pairs = [(0..1 << 16).map(|i| number(i >> 8)).collect(), (0..1 << 16).map(|i| number(i & 255)).collect()];
        for p in primitives::<T>() {
            check::<T>(&program(p), &pairs[..p.arity()]);
        }
    }
    let _alone = alone();
    at_each_type!(check_type: i8 u8);
}

#[test]
fn powers_compute_the_same() {
    fn check_type<T: Integer>() {
        for exponent in [-4, -3, -1, 0, 1, 2, 3, 7, 64] {
            let power = Program::write(&["x"], &[], |x, _| vec![("out".into(), x[0].powi(exponent).into())]);
            check(&power, &[numbers::<T>(1003, 5)]);
        }
    }
    let _alone = alone();
    at_each_type!(check_type);
}

/// A random program of `steps` functions, with numbers and truth values as outputs.
fn random_program<T: Integer>(steps: usize, seed: u64) -> Program {
    let mut state = seed;
    let all: Vec<Primitive> = primitives::<T>().collect();
    Program::write(&["x", "y", "z"], &[], |inputs, _| {
        let constants = [0, 1, 3, 100].map(|v| Symbol::constant(Const::Int(v)));
        let mut x = [inputs, &constants].concat();
        let mut tests = vec![x[0].less(x[1])];
        for _ in 0..steps {
            let p = all[random(&mut state, all.len())];
            let operands: Vec<Symbol> = (0..p.arity()).map(|_| x[random(&mut state, x.len())]).collect();
            match Symbol::apply(p, &operands).unwrap() {
                ScalarValue::Number(y) => x.push(y),
                ScalarValue::Mask(m) => tests.push(m),
            }
            let chosen = tests[random(&mut state, tests.len())];
            match random(&mut state, 6) {
                0 => x.push(Symbol::select(chosen, x[random(&mut state, x.len())], x[x.len() - 1])),
                1 => tests.push([chosen & tests[0], chosen | tests[0], !chosen][random(&mut state, 3)]),
                _ => {}
            }
        }
        let last = |k: usize| x[x.len() - 1 - k];
        vec![
            ("a".into(), last(0).into()),
            ("b".into(), last(1).into()),
            ("c".into(), last(x.len() / 2).into()),
            ("d".into(), tests[tests.len() - 1].into()),
        ]
    })
}

#[test]
fn random_programs_compute_the_same() {
    fn check_type<T: Integer>() {
        for seed in 0..80 {
            let n = 1 + 5 * seed as usize;
            let inputs = [1, 2, 3].map(|k| numbers::<T>(n, seed + k));
            check(&random_program::<T>(3 + seed as usize, seed), &inputs);
        }
    }
    let _alone = alone();
    at_each_type!(check_type);
}

#[test]
fn no_more_elements_are_written() {
    fn check_type<T: Integer>() {
        let program = Program::write(&["c", "x"], &[], |x, _| {
            vec![
                ("y".into(), Symbol::select(x[0].truthy(), x[1] * x[1], x[1]).into()),
                ("e".into(), x[1].less(Symbol::constant(Const::Int(3))).into()),
            ]
        });
        for level in levels() {
            set_level(level);
            let plan = Plan::new(program.clone(), &[0]).unwrap();
            for n in 0..150 {
                let x = numbers::<T>(n, 5);
                let c: Vec<Truth> = (0..n).map(|i| Truth::from(i % 3 == 0)).collect();
                let seven = T::constant(Const::Int(7));
                let (mut y, mut e) = (vec![seven; n + 1], vec![Truth::from(true); n + 1]);
                // SAFETY: the inputs have `n` elements, and the outputs have more.
                unsafe {
                    let inputs = [c.as_ptr().cast(), x.as_ptr().cast()];
                    plan.run::<T>(n, &inputs, &[], &[y.as_mut_ptr().cast(), e.as_mut_ptr().cast()]);
                }
                for i in 0..n {
                    let expected = if c[i].get() { x[i] * x[i] } else { x[i] };
                    assert!(y[i] == expected, "{level:?} {i} of {n}: {:?} must be {expected:?}", y[i]);
                }
                assert!(y[n] == seven && e[n].get(), "{level:?} {n}");
            }
        }
    }
    let _alone = alone();
    at_each_type!(check_type);
}
