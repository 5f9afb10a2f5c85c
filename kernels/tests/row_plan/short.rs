//! Short rows, which machine code computes as a whole.

use minitensor_kernels::program::{Program, RowPlan, Tile};
use minitensor_kernels::row::{ComputedFloat, Rows};
use minitensor_kernels::simd::{Level, levels};
use minitensor_kernels::{Float, Num, Real, RealRow, Row, lit};

use crate::rows::{ENOUGH, LEVEL, OF_WHOLE_ROWS, Operand, Random, outputs, random_program, run};

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
    fn check<T: Tile + ComputedFloat>(program: &Program, n: usize) {
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
