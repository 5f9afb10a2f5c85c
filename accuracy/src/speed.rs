//! Measures the throughput on one thread, with data in the cache.

use std::time::Instant;

use crate::function::{Loop, Loop2, run, run2};

const N: usize = 4096;

/// Returns the best throughput in millions of elements per second, for arguments in the typical range of a network.
pub fn measure<T: Copy + From<f32>>(function: Loop<T>) -> f64 {
    let x = spread(7919, -8.0);
    let mut y = x.clone();
    at_best(|| {
        run(function, &x, &mut y);
        std::hint::black_box(&mut y);
    })
}

/// Returns the same for a function of two arguments, the first of which is not negative.
pub fn measure_of_two(function: Loop2<f64>) -> f64 {
    let (x, y) = (spread(7919, 0.0), spread(5003, -8.0));
    let mut z = x.clone();
    at_best(|| {
        run2(function, &x, &y, &mut z);
        std::hint::black_box(&mut z);
    })
}

/// Returns unordered numbers between `low` and `low + 16`.
fn spread<T: From<f32>>(step: usize, low: f32) -> Vec<T> {
    (0..N).map(|i| T::from((i * step % N) as f32 / N as f32 * 16.0 + low)).collect()
}

fn at_best(mut loop_over_all: impl FnMut()) -> f64 {
    let rounds = (0..30).map(|_| {
        let start = Instant::now();
        for _ in 0..10 {
            loop_over_all();
        }
        10.0 * N as f64 / start.elapsed().as_secs_f64() / 1e6
    });
    rounds.fold(0.0, f64::max)
}
