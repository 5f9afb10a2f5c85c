//! How many elements a second, on one thread, in the cache.

use std::time::Instant;

use crate::function::{Loop, run};

const N: usize = 4096;

/// Millions of elements a second, at best, for arguments that are spread over what a network sees.
pub fn measure<T: Copy + From<f32>>(function: Loop<T>) -> f64 {
    let x: Vec<T> = (0..N).map(|i| T::from((i * 7919 % N) as f32 / N as f32 * 16.0 - 8.0)).collect();
    let mut y = x.clone();
    let rounds = (0..30).map(|_| {
        let start = Instant::now();
        for _ in 0..10 {
            run(function, &x, &mut y);
            std::hint::black_box(&mut y);
        }
        10.0 * N as f64 / start.elapsed().as_secs_f64() / 1e6
    });
    rounds.fold(0.0, f64::max)
}
