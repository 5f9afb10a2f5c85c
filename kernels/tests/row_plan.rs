//! Plans of programs over rows compute what the programs compute at numbers.

use std::sync::Mutex;

use half::{bf16, f16};
use minitensor_kernels::program::{Program, RowPlan, Storage, Symbol, Tile};
use minitensor_kernels::row::{Computed, Reduction, Rows};
use minitensor_kernels::simd::{Level, levels, set_level};
use minitensor_kernels::{Element, Field, Float, Num, Real, Row, lit};

/// The SIMD level is that of the process, so tests that change it run one after the other.
static LEVEL: Mutex<()> = Mutex::new(());

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    fn number(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 31) as f64 * 2.0 - 1.0
    }
}

/// The inputs, the uniforms with one value per row, and the attributes of all programs.
const NAMES: (&[&str], &[&str]) = (&["a", "b", "c"], &["s", "t", "eps"]);
const PER_ROW: usize = 2;

/// The number of rows from which on machine code computes rows as a whole, whatever their length.
const ENOUGH: usize = 1 << 17;

/// The longest rows for which programs use positions as numbers: the reference compares each with each.
const MOST_COMPARED: usize = 600;

/// The number of kinds of random values that machine code for whole rows has. The others are functions of whole rows.
const OF_WHOLE_ROWS: usize = 12;

/// A random program for rows of a length, of some kinds of values, and which of its outputs have one value per element.
fn random_program(seed: u64, n: usize, kinds: usize) -> (Program, Vec<bool>) {
    let mut random = Random(seed);
    let mut gives = Vec::new();
    let program = Program::write(NAMES.0, NAMES.1, |x, u| {
        // With whether they differ along a row.
        let mut all: Vec<(Symbol, bool)> = x.iter().map(|x| (*x, true)).collect();
        all.extend(u.iter().map(|u| (*u, false)));
        all.push((lit(0.75), false));
        all.push((x[0].count() * lit(0.01), false));
        all.push((x[0].position().tanh(), true));
        for _ in 0..random.below(24) + 3 {
            let ((a, along), (b, other)) = (all[random.below(all.len())], all[random.below(all.len())]);
            let (c, third) = all[random.below(all.len())];
            all.push(match random.below(if n <= MOST_COMPARED { kinds } else { kinds.min(19) }) {
                0 => (a + b, along || other),
                1 => (a - b, along || other),
                2 => (a * b.tanh(), along || other),
                3 => (a.tanh().exp(), along),
                4 => (a.sigmoid(), along),
                5 => (a.maximum(b).tanh(), along || other),
                6 => (Symbol::select(a.less(b), c, a), along || other || third),
                7 => (a / (b.square() + lit(1)), along || other),
                8 => (a.tanh().mean(), false),
                9 => (a.reduce(Reduction::Max), false),
                10 => (a.reduce(Reduction::Min).detach(), false),
                11 => ((a.tanh() * lit(0.1) + lit(1)).reduce(Reduction::Prod).tanh(), false),
                12 => (a.tanh().cumsum().tanh(), true),
                13 => (a.tanh().reverse_cumsum().tanh(), true),
                14 => (a.shift([1, -1, 3, -700, 0][random.below(5)]), true),
                15 => (a.reverse(), true),
                16 => (a.cummax(), true),
                17 => (a.tanh().recurrence(b.tanh()), true),
                18 => (a.tanh().reverse_recurrence(b.sigmoid()), true),
                19 => (a.sort(), true),
                20 => (a.take(b.argsort()), true),
                _ => (a.put((b.sigmoid() * lit(5)).floor()), true),
            });
        }
        let count = random.below(3) + 1;
        let chosen: Vec<(Symbol, bool)> = (0..count).map(|_| all[all.len() - 1 - random.below(4)]).collect();
        // A number of the row may be wanted for each element.
        gives = chosen.iter().map(|(_, along)| *along || random.below(3) == 0).collect();
        chosen.into_iter().enumerate().map(|(k, (y, _))| (format!("y{k}"), y.into())).collect()
    });
    (program, gives)
}

/// Rows in memory: some are apart, some are all the same row.
struct Operand<T> {
    values: Vec<T>,
    step: usize,
}

impl<T: Float> Operand<T> {
    fn new(random: &mut Random, n: usize, rows: usize) -> Operand<T> {
        let step = [n, n, n + 3, 0][random.below(4)];
        Operand { values: (0..n + step * (rows - 1)).map(|_| lit(random.number())).collect(), step }
    }

    fn rows(&self) -> Rows<*const T> {
        Rows { data: self.values.as_ptr(), step: (size_of::<T>() * self.step) as isize, is_large: false }
    }
}

/// The outputs at a level. Places around the rows keep their value.
fn run<T: Tile + Computed>(
    (plan, gives): (&RowPlan, &[bool]),
    (n, rows): (usize, usize),
    inputs: &[Operand<T>],
    uniforms: &[Operand<T>],
    level: Level,
) -> Vec<Vec<T>> {
    set_level(level);
    plan.has_whole_rows::<T>(n, ENOUGH);
    let width = |gives: bool| if gives { n } else { 1 };
    let (size, unchanged) = (size_of::<T>(), lit::<T>(7.5));
    let mut outputs: Vec<Vec<T>> = gives.iter().map(|gives| vec![unchanged; (width(*gives) + 1) * rows]).collect();
    let places: Vec<Rows<*mut T>> = outputs
        .iter_mut()
        .zip(gives)
        .map(|(y, gives)| Rows { data: y.as_mut_ptr(), step: (size * (width(*gives) + 1)) as isize, is_large: false })
        .collect();
    let of = |all: &[Operand<T>]| all.iter().map(Operand::rows).collect::<Vec<_>>();
    // SAFETY: all operands have these rows.
    unsafe { plan.run::<T>(n, rows, &of(inputs), &of(uniforms), &places) };
    for (y, gives) in outputs.iter_mut().zip(gives) {
        let width = width(*gives);
        assert!(y.chunks(width + 1).all(|row| row[width] == unchanged), "an element after a row has changed");
        *y = y.chunks(width + 1).flat_map(|row| row[..width].to_vec()).collect();
    }
    outputs
}

/// The outputs for the same rows side by side.
fn run_side_by_side<T: Tile + Computed>(
    (plan, gives): (&RowPlan, &[bool]),
    (n, rows): (usize, usize),
    inputs: &[Operand<T>],
    uniforms: &[Operand<T>],
) -> Vec<Vec<T>> {
    let beside =
        |x: &Operand<T>| -> Vec<T> { (0..n * rows).map(|at| x.values[at % rows * x.step + at / rows]).collect() };
    let inputs: Vec<Vec<T>> = inputs.iter().map(beside).collect();
    let mut outputs: Vec<Vec<T>> =
        gives.iter().map(|gives| vec![lit(7.5); if *gives { n } else { 1 } * rows]).collect();
    let size = size_of::<T>() as isize;
    let places: Vec<_> =
        outputs.iter_mut().map(|y| Rows { data: y.as_mut_ptr(), step: size, is_large: false }).collect();
    let inputs: Vec<_> = inputs.iter().map(|x| Rows { data: x.as_ptr(), step: size, is_large: false }).collect();
    let uniforms: Vec<_> = uniforms.iter().map(Operand::rows).collect();
    // SAFETY: all operands have these rows.
    unsafe { plan.run_side_by_side::<T>(n, rows, &inputs, &uniforms, &places) };
    let in_rows = |y: &Vec<T>| (0..y.len()).map(|at| y[at % (y.len() / rows) * rows + at / (y.len() / rows)]).collect();
    outputs.iter().map(in_rows).collect()
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-8 * (1.0 + b.abs()) || a == b || a.is_nan() && b.is_nan()
}

/// The outputs of a random program over random rows, which have the same bits at all levels and for rows that are side by side.
#[allow(clippy::type_complexity)]
fn outputs<T: Tile + Computed>(
    (program, gives): (&Program, &[bool]),
    (n, rows): (usize, usize),
    random: &mut Random,
) -> (Vec<Operand<T>>, Vec<Operand<T>>, Vec<Vec<T>>) {
    let plan = RowPlan::new(program.clone(), gives, PER_ROW, &[]).unwrap_or_else(|e| panic!("{e}: {program}"));
    let inputs: Vec<Operand<T>> = NAMES.0.iter().map(|_| Operand::new(random, n, rows)).collect();
    let mut uniforms: Vec<Operand<T>> = NAMES.1.iter().map(|_| Operand::new(random, 1, rows)).collect();
    uniforms[PER_ROW].step = 0;
    let mut all: Vec<Vec<Vec<T>>> = vec![];
    for level in levels() {
        all.push(run((&plan, gives), (n, rows), &inputs, &uniforms, level));
        all.push(run_side_by_side((&plan, gives), (n, rows), &inputs, &uniforms));
    }
    for outputs in &all[1..] {
        for (a, b) in all[0].iter().flatten().zip(outputs.iter().flatten()) {
            let is_same = a == b && a.sign() == b.sign() && a.recip() == b.recip() || a.isnan() && b.isnan();
            assert!(is_same, "{a:?} {b:?} at different levels or layouts, {rows} rows of {n}: {program}");
        }
    }
    (inputs, uniforms, all.swap_remove(0))
}

#[test]
fn a_plan_computes_its_program() {
    let _alone = LEVEL.lock();
    const SIZES: [(usize, usize); 19] = [
        (1, 1),
        (1, 300),
        (3, 70),
        (8, 9),
        (17, 5),
        (64, 2),
        (100, 90),
        (256, 21),
        (512, 2),
        (640, 11),
        (577, 4),
        (1000, 9),
        (2047, 3),
        (2048, 3),
        (5000, 2),
        (16_384, 1),
        (16_449, 2),
        (40_000, 1),
        (140_000, 1),
    ];
    for seed in 0..400 {
        let mut random = Random(seed + 1000);
        let (n, rows) = SIZES[random.below(SIZES.len())];
        let (program, gives) = random_program(seed, n, 22);
        outputs::<f32>((&program, &gives), (n, rows), &mut random);
        let (inputs, uniforms, outputs) = outputs::<f64>((&program, &gives), (n, rows), &mut random);
        for row in 0..rows {
            let x: Vec<&[f64]> = inputs.iter().map(|x| &x.values[row * x.step..][..n]).collect();
            let u: Vec<f64> = uniforms.iter().map(|u| u.values[row * u.step]).collect();
            let wanted = program.at_row(&x, &u, n).expect("float64 has it all");
            for (k, wanted) in wanted.iter().enumerate() {
                let width = if gives[k] { n } else { 1 };
                for (at, got) in outputs[k][row * width..][..width].iter().enumerate() {
                    let wanted = wanted[at].number().expect("a number");
                    assert!(
                        is_close(*got, wanted),
                        "seed {seed}, output {k} of row {row} of {rows} at {at} of {n}: {got}, expected {wanted}: {program}"
                    );
                }
            }
        }
    }
}

/// Machine code computes short rows as a whole. All lengths have the bits of the interpreter.
#[test]
fn short_rows_have_the_same_bits_as_others() {
    let _alone = LEVEL.lock();
    for seed in 0..600 {
        let mut random = Random(seed + 9000);
        let n = if seed % 3 == 0 { random.below(64) + 1 } else { random.below(1030) + 1 };
        let (program, gives) = random_program(seed + 20_000, n, OF_WHOLE_ROWS);
        let rows = 2048 / n + 1 + random.below(3);
        outputs::<f32>((&program, &gives), (n, rows), &mut random);
        outputs::<f64>((&program, &gives), (n, rows), &mut random);
    }
}

#[test]
fn a_sum_of_negative_zeros_is_zero() {
    let _alone = LEVEL.lock();
    let program = Program::write(&["x"], &[], |x, _| vec![("y".into(), x[0].sum().into())]);
    let plan = RowPlan::new(program, &[false], 0, &[]).expect("it is of rows");
    for (n, level) in (1..130).flat_map(|n| levels().map(move |level| (n, level))) {
        let rows = 2048 / n + 1;
        let x = Operand::<f32> { values: vec![-0.0; n * rows], step: n };
        let outputs = run((&plan, &[false]), (n, rows), &[x], &[], level);
        assert!(outputs[0].iter().all(|y| y.to_bits() == 0), "{n} at {level:?}");
    }
}

/// Outputs that are sums over rows are added row after row.
#[test]
#[cfg(target_arch = "x86_64")]
fn sums_over_short_rows_are_added_in_order() {
    let _alone = LEVEL.lock();
    let program = Program::write(&["x"], &["w"], |x, w| {
        let centered = x[0] - x[0].mean();
        let scaled = centered * (centered.square().mean() + lit(1e-3)).rsqrt() * w[0];
        vec![
            ("y".into(), scaled.into()),
            ("s".into(), (x[0] * scaled).into()),
            ("t".into(), scaled.maximum(x[0]).sum().into()),
        ]
    });
    fn check<T: Tile + Computed>(program: &Program, n: usize) {
        let (gives, sums) = ([true, true, false], [false, true, true]);
        let plan = RowPlan::new(program.clone(), &gives, 0, &[]).expect("it is of rows");
        let mut random = Random(n as u64);
        let rows = 2048 / n + 2;
        let x = Operand::<T> { values: (0..n * rows).map(|_| lit(random.number())).collect(), step: n };
        let w = Operand::<T> { values: vec![lit(0.75)], step: 0 };
        for level in levels() {
            let alone = run(
                (&plan, &gives),
                (n, rows),
                &[Operand { values: x.values.clone(), step: n }],
                &[Operand { values: w.values.clone(), step: 0 }],
                level,
            );
            let start: T = lit(0.125);
            let mut got = [vec![lit(0); n * rows], vec![start; n], vec![start; 1]];
            let step = (n * size_of::<T>()) as isize;
            plan.has_whole_rows::<T>(n, ENOUGH);
            let places = [0, 1, 2].map(|k| Rows {
                data: got[k].as_mut_ptr(),
                step: if k == 0 { step } else { 0 },
                is_large: false,
            });
            // SAFETY: all operands have these rows.
            let run = || unsafe { plan.run_whole_rows::<T>(n, rows, &[x.rows()], &[w.rows()], &places, &sums) };
            // It is assembled once it has been asked for often enough.
            if !(0..ENOUGH / rows + 1).any(|_| run()) {
                let is_few = n * size_of::<T>() < 32;
                assert!(level == Level::Baseline || n >= 256 || is_few, "{n} at {level:?}");
                continue;
            }
            for (k, width) in [(1, n), (2, 1)] {
                let mut wanted = vec![start; width];
                for row in alone[k].chunks(width) {
                    wanted.iter_mut().zip(row).for_each(|(sum, x)| *sum += *x);
                }
                assert!(got[k] == wanted, "{n} at {level:?}");
            }
            assert!(got[0] == alone[0], "{n} at {level:?}");
        }
    }
    for n in (1..70).chain([100, 128, 200, 509, 512, 513, 575, 576, 640, 1000, 1024, 1025]) {
        check::<f32>(&program, n);
        check::<f64>(&program, n);
    }
}

/// The bits of a half float that is stored so.
fn half(x: f32, storage: Storage) -> u16 {
    if storage == Storage::Float16 { f16::from_f32(x).to_bits() } else { bf16::from_f32(x).to_bits() }
}

/// The number that half floats with these bits store.
fn number(bits: u16, storage: Storage) -> f32 {
    if storage == Storage::Float16 { f16::from_bits(bits).to_f32() } else { bf16::from_bits(bits).to_f32() }
}

/// Rows of half floats have the bits of rows that are converted before and after.
#[test]
fn rows_of_half_floats_are_computed_in_single_precision() {
    let _alone = LEVEL.lock();
    const SIZES: [(usize, usize); 9] =
        [(1, 1), (1, 300), (3, 70), (17, 5), (100, 90), (128, 50), (512, 11), (577, 4), (140_000, 1)];
    let mut count = 0;
    for seed in 0..200 {
        let mut random = Random(seed + 5000);
        let (n, rows) = SIZES[random.below(SIZES.len())];
        let (program, gives) = random_program(seed, n, if seed < 100 { 22 } else { OF_WHOLE_ROWS });
        let mut storage = |can_be_half: bool| match random.below(3) {
            1 if can_be_half => Storage::Float16,
            2 if can_be_half => Storage::BFloat16,
            _ => Storage::Own,
        };
        let of_inputs: Vec<Storage> = NAMES.0.iter().map(|_| storage(true)).collect();
        let of_outputs: Vec<Storage> = gives.iter().map(|gives| storage(*gives)).collect();
        let mut inputs: Vec<Operand<f32>> = NAMES.0.iter().map(|_| Operand::new(&mut random, n, rows)).collect();
        let mut uniforms: Vec<Operand<f32>> = NAMES.1.iter().map(|_| Operand::new(&mut random, 1, rows)).collect();
        uniforms[PER_ROW].step = 0;
        let mut halves: Vec<Vec<u16>> = vec![];
        for (x, storage) in inputs.iter_mut().zip(&of_inputs).filter(|(_, storage)| storage.is_half()) {
            halves.push(x.values.iter().map(|x| half(*x, *storage)).collect());
            x.values = halves[halves.len() - 1].iter().map(|bits| number(*bits, *storage)).collect();
        }
        let own = RowPlan::new(program.clone(), &gives, PER_ROW, &[]).expect("it is of rows");
        let both = [of_inputs.clone(), of_outputs.clone()];
        for level in levels() {
            let expected = run((&own, &gives), (n, rows), &inputs, &uniforms, level);
            let plan = RowPlan::stored(program.clone(), &gives, PER_ROW, &[], both.clone()).expect("it is of rows");
            if !plan.is_machine_code::<f32>() {
                assert!(level == Level::Baseline || !cfg!(target_arch = "x86_64"), "{program}");
                continue;
            }
            let mut left = halves.iter();
            let from: Vec<Rows<*const f32>> = inputs
                .iter()
                .zip(&of_inputs)
                .map(|(x, storage)| match storage.is_half() {
                    true => {
                        let bits = left.next().expect("one for each");
                        Rows { data: bits.as_ptr().cast(), step: (2 * x.step) as isize, is_large: false }
                    }
                    false => x.rows(),
                })
                .collect();
            let width = |gives: bool| if gives { n } else { 1 };
            let mut got: Vec<Vec<f32>> = gives.iter().map(|gives| vec![7.5; width(*gives) * rows]).collect();
            let to: Vec<Rows<*mut f32>> = got
                .iter_mut()
                .zip(gives.iter().zip(&of_outputs))
                .map(|(y, (gives, storage))| Rows {
                    data: y.as_mut_ptr(),
                    step: (storage.step(4) * width(*gives)) as isize,
                    is_large: false,
                })
                .collect();
            let uniforms: Vec<_> = uniforms.iter().map(Operand::rows).collect();
            plan.has_whole_rows::<f32>(n, ENOUGH);
            // SAFETY: all operands have these rows, which are stored so.
            unsafe { plan.run::<f32>(n, rows, &from, &uniforms, &to) };
            for ((got, expected), storage) in got.iter().zip(&expected).zip(&of_outputs) {
                let words = got.iter().flat_map(|x| [x.to_bits() as u16, (x.to_bits() >> 16) as u16]);
                let found: Vec<f32> = match storage.is_half() {
                    true => words.map(|bits| number(bits, *storage)).take(expected.len()).collect(),
                    false => got.clone(),
                };
                for (x, y) in found.iter().zip(expected) {
                    let y = if storage.is_half() { number(half(*y, *storage), *storage) } else { *y };
                    assert!(x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan(), "{x} {y}, seed {seed}: {program}");
                }
            }
            count += 1;
        }
    }
    assert!(count > 0 || !cfg!(target_arch = "x86_64") || levels().count() == 1);
}

#[test]
fn an_extremum_is_nan_if_any_element_is() {
    let _alone = LEVEL.lock();
    let program = Program::write(&["x"], &[], |x, _| {
        let (largest, smallest) = ((x[0] + lit(0.5)).max(), (x[0] * lit(2)).min());
        vec![("largest".into(), largest.into()), ("smallest".into(), smallest.into())]
    });
    fn check<T: Tile + Computed>(program: &Program) {
        let gives = [false, false];
        let plan = RowPlan::new(program.clone(), &gives, 0, &[]).expect("it is of rows");
        for level in levels() {
            // Row `k` has a NaN at `k`, and the last row has none.
            let (n, rows) = (320, 321);
            let at = |at: usize| {
                if at.is_multiple_of(n + 1) && at < n * n { lit::<T>(f64::NAN) } else { lit((at % n) as f64) }
            };
            let inputs = [Operand { values: (0..n * rows).map(at).collect(), step: n }];
            let outputs = run((&plan, &gives), (n, rows), &inputs, &[], level);
            assert!(outputs.iter().all(|y| y[..n].iter().all(|x| x.isnan())), "at {level:?}");
            assert!(outputs[0][n] == lit(319.5) && outputs[1][n] == lit(0), "at {level:?}");
        }
    }
    check::<f32>(&program);
    check::<f64>(&program);
}

#[test]
fn rows_without_elements_have_the_results_of_no_elements() {
    let program = Program::write(&["x"], &[], |x, _| {
        vec![("sum".into(), x[0].exp().sum().into()), ("max".into(), x[0].max().into()), ("y".into(), x[0].into())]
    });
    let plan = RowPlan::new(program, &[false, false, true], 0, &[]).expect("it is of rows");
    let (mut sum, mut max) = ([1.0f32; 3], [1.0f32; 3]);
    let input = Rows { data: std::ptr::dangling::<f32>(), step: 0, is_large: false };
    let number = |data: &mut [f32; 3]| Rows { data: data.as_mut_ptr(), step: 4, is_large: false };
    let none = Rows { data: std::ptr::dangling_mut::<f32>(), step: 0, is_large: false };
    // SAFETY: rows of no elements.
    unsafe { plan.run(0, 3, &[input], &[], &[number(&mut sum), number(&mut max), none]) };
    assert_eq!((sum, max), ([0.0; 3], [f32::NEG_INFINITY; 3]));
    (sum, max) = ([1.0; 3], [1.0; 3]);
    // SAFETY: as above.
    unsafe { plan.run_side_by_side(0, 3, &[input], &[], &[number(&mut sum), number(&mut max), none]) };
    assert_eq!((sum, max), ([0.0; 3], [f32::NEG_INFINITY; 3]));
}

#[test]
fn truth_values_are_bytes() {
    let _alone = LEVEL.lock();
    let program = Program::write(&["x", "kept"], &[], |x, _| {
        let y = Symbol::select(x[1].truthy(), x[0], lit(0));
        vec![("above".into(), x[0].mean().less(x[0]).into()), ("y".into(), (y - y.mean()).into())]
    });
    let plan = RowPlan::new(program, &[true, true], 0, &[1]).expect("it is of rows");
    for (n, rows) in [(1, 1), (5, 7), (8, 300), (13, 300), (64, 9), (64, 40), (700, 3), (3000, 2)] {
        let mut random = Random(n as u64);
        let x: Vec<f64> = (0..n * rows).map(|_| random.number()).collect();
        for shared in [false, true] {
            let kept: Vec<u8> = (0..n * rows).map(|_| [0, 1, 1, 255][random.below(4)]).collect();
            let step = if shared { 0 } else { n };
            for level in levels() {
                set_level(level);
                plan.has_whole_rows::<f64>(n, ENOUGH);
                let (mut above, mut y) = (vec![7u8; n * rows], vec![0.0; n * rows]);
                let input = |data: *const f64, step: usize| Rows { data, step: step as isize, is_large: false };
                let output = |data: *mut f64, step: usize| Rows { data, step: step as isize, is_large: false };
                let inputs = [input(x.as_ptr(), 8 * n), input(kept.as_ptr().cast(), step)];
                let outputs = [output(above.as_mut_ptr().cast(), n), output(y.as_mut_ptr(), 8 * n)];
                // SAFETY: all operands have these rows.
                unsafe { plan.run(n, rows, &inputs, &[], &outputs) };
                let beside = |at: usize| at % rows * n + at / rows;
                let kept_row = |at: usize| at % rows * step + at / rows;
                let x_beside: Vec<f64> = (0..n * rows).map(|at| x[beside(at)]).collect();
                let kept_beside: Vec<u8> = (0..n * rows).map(|at| kept[kept_row(at)]).collect();
                let (mut above_beside, mut y_beside) = (vec![7u8; n * rows], vec![0.0; n * rows]);
                let inputs = [input(x_beside.as_ptr(), 8), input(kept_beside.as_ptr().cast(), 1)];
                let outputs = [output(above_beside.as_mut_ptr().cast(), 1), output(y_beside.as_mut_ptr(), 8)];
                // SAFETY: as above.
                unsafe { plan.run_side_by_side(n, rows, &inputs, &[], &outputs) };
                for at in 0..n * rows {
                    assert_eq!((above_beside[at], y_beside[at]), (above[beside(at)], y[beside(at)]), "{n} {rows}");
                }
                for row in 0..rows {
                    let x = &x[row * n..][..n];
                    let kept: Vec<f64> =
                        x.iter().zip(&kept[row * step..]).map(|(x, kept)| if *kept != 0 { *x } else { 0.0 }).collect();
                    let mean = |x: &[f64]| x.iter().sum::<f64>() / n as f64;
                    for at in 0..n {
                        assert_eq!(above[row * n + at], u8::from(mean(x) < x[at]), "{n} {rows} {level:?}");
                        assert!(is_close(y[row * n + at], kept[at] - mean(&kept)), "{n} {rows} {level:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_no_row_is_an_error() {
    let error = |body: fn(Symbol) -> minitensor_kernels::program::Output, gives| {
        let program = Program::write(&["x"], &[], |x, _| vec![("y".into(), body(x[0]))]);
        RowPlan::new(program, &[gives], 0, &[]).expect_err("it is wrong").to_string()
    };
    assert_eq!(
        error(|x| (x - x.mean()).into(), false),
        "invalid program: output 'y' is a number for each row, but differs along a row"
    );
    let mask = Program::write(&["m"], &[], |m, _| vec![("y".into(), m[0].sum().into())]);
    let error = RowPlan::new(mask, &[false], 0, &[0]).expect_err("it is wrong").to_string();
    assert_eq!(error, "invalid program: a mask is used like a row of numbers");
}

#[test]
fn numbers_become_inputs_again_in_any_order() {
    let program = Program::write(&["a", "x", "b", "y"], &["eps"], |x, u| {
        vec![("out".into(), ((x[1] * x[0] + x[3] / x[2]) * u[0]).into()), ("sum".into(), (x[1].sum() + x[2]).into())]
    });
    let choices: [(&[usize], &[usize]); 4] =
        [(&[1, 3], &[0, 2]), (&[1, 3], &[2, 0]), (&[0, 1, 2, 3], &[]), (&[3, 0], &[1, 2])];
    for (rows, numbers) in choices {
        assert_eq!(program.with_numbers(rows, numbers).with_numbers_as_inputs(rows, numbers), program);
    }
    let numbers = program.with_numbers(&[1, 3], &[2, 0]);
    assert_eq!(
        (numbers.inputs(), numbers.uniforms()),
        (&["x", "y"].map(String::from)[..], &["b", "a", "eps"].map(String::from)[..])
    );
}
