//! Tests functions of `f32` at every `f32`.

use crate::function::{Single, run};
use crate::ulp;

/// The largest error and its argument.
#[derive(Clone, Copy)]
pub struct Worst {
    pub ulp: f64,
    pub at: f32,
}

const BLOCK: usize = 1 << 12;

/// Returns the largest error over every `step`-th `f32`. Uses all threads.
pub fn worst(function: &Single, step: usize) -> Worst {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|k| scope.spawn(move || part(function, step, k, threads))).collect();
        parts.into_iter().filter_map(|p| p.join().ok()).fold(Worst { ulp: 0.0, at: 0.0 }, larger)
    })
}

fn larger(a: Worst, b: Worst) -> Worst {
    if b.ulp > a.ulp { b } else { a }
}

fn part(function: &Single, step: usize, first: usize, threads: usize) -> Worst {
    let mut worst = Worst { ulp: 0.0, at: 0.0 };
    let (mut x, mut y) = (vec![0.0; BLOCK], vec![0.0; BLOCK]);
    let all = (1u64 << 32).div_ceil(step as u64);
    for start in (0..all).step_by(BLOCK).skip(first).step_by(threads) {
        for (i, x) in x.iter_mut().enumerate() {
            *x = f32::from_bits(((start + i as u64) * step as u64) as u32);
        }
        run(function.ours, &x, &mut y);
        for (&x, &y) in x.iter().zip(&y) {
            worst = larger(worst, Worst { ulp: ulp::error(y, (function.reference)(x as f64)), at: x });
        }
    }
    worst
}
