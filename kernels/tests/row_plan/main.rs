//! Plans of programs over rows compute what the programs compute at numbers.

mod rows;
mod short;

use half::{bf16, f16};
use minitensor_kernels::program::{Program, RowPlan, Storage, Symbol, Tile};
use minitensor_kernels::row::{ComputedFloat, Rows};
use minitensor_kernels::simd::{Level, levels, set_level};
use minitensor_kernels::{Element, Field, Real, RealRow, Row, lit};

use crate::rows::{
    ENOUGH, LEVEL, NAMES, OF_WHOLE_ROWS, Operand, PER_ROW, Random, is_close, outputs, random_program, run,
};

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
        let (program, gives) = random_program(seed, n, 24);
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
    fn check<T: Tile + ComputedFloat>(program: &Program) {
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
                let inputs = [input(x_beside.as_ptr(), 8 * rows), input(kept_beside.as_ptr().cast(), rows)];
                let outputs = [output(above_beside.as_mut_ptr().cast(), rows), output(y_beside.as_mut_ptr(), 8 * rows)];
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
        "invalid program: output 'y' is a number for each row, but differs along a row; reduce it, for example by a sum, or \
         declare it as a row: [.., n]"
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
