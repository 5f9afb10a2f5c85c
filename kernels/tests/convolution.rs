//! Convolutions compared with nested loops.

use minitensor_kernels::convolution::{Channels, forward, forward_in_parts, input, weight};
use minitensor_kernels::simd::{Level, set_level};
use minitensor_kernels::window::{Axis, Windows};
use std::sync::{Mutex, MutexGuard, PoisonError};

mod lcg;
use lcg::Lcg;

/// A lock: the level is one setting of the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Integers, so that sums are exact in any order.
fn numbers<T: From<i8>>(random: &mut Lcg, n: usize) -> Vec<T> {
    (0..n).map(|_| T::from((random.next() >> 40) as i8 % 4)).collect()
}

fn axis(random: &mut Lcg, most: usize) -> Axis {
    let (size, taps) = (1 + random.below(most), 1 + random.below(4.min(most)));
    let (stride, dilation) = (1 + random.below(3), 1 + random.below(3));
    let reach = (taps - 1) * dilation + 1;
    let padding = random.below(reach + 2) as i64;
    let room = size + 2 * padding as usize;
    let count = if room < reach { 0 } else { (room - reach) / stride + 1 };
    Axis { size, count, taps, stride, dilation, padding }
}

/// Calls `f` with the indices of `x`, `weight` and `y` of every product.
fn products(axes: &[Axis; 3], c: Channels, mut f: impl FnMut(usize, usize, usize)) {
    let volume: usize = axes.iter().map(|a| a.size).product();
    let taps: usize = axes.iter().map(|a| a.taps).product();
    let count: usize = axes.iter().map(|a| a.count).product();
    let split = |i: usize, n: [usize; 3]| [i / n[2] / n[1], i / n[2] % n[1], i % n[2]];
    let [counts, kernel] = [axes.each_ref().map(|a| a.count), axes.each_ref().map(|a| a.taps)];
    for (n, o) in (0..c.samples).flat_map(|n| (0..c.groups * c.outputs).map(move |o| (n, o))) {
        let group = o / c.outputs;
        for (i, k, t) in (0..count).flat_map(|i| (0..c.inputs).flat_map(move |k| (0..taps).map(move |t| (i, k, t)))) {
            let (window, tap) = (split(i, counts), split(t, kernel));
            let places = [0, 1, 2].map(|a| axes[a].place(window[a], tap[a]));
            if let [Some(d), Some(h), Some(w)] = places {
                let at = (d * axes[1].size + h) * axes[2].size + w;
                let x = ((n * c.groups + group) * c.inputs + k) * volume + at;
                f(x, (o * c.inputs + k) * taps + t, (n * c.groups * c.outputs + o) * count + i);
            }
        }
    }
}

fn check(random: &mut Lcg, axes: [Axis; 3], c: Channels) {
    let windows = Windows::new(axes).expect("small numbers");
    let (volume, taps, count) = (windows.volume(), windows.taps(), windows.count());
    let x: Vec<f32> = numbers(random, c.samples * c.groups * c.inputs * volume);
    let w: Vec<f32> = numbers(random, c.groups * c.outputs * c.inputs * taps);
    let bias: Vec<f32> = numbers(random, c.groups * c.outputs);
    let y: Vec<f32> = numbers(random, c.samples * c.groups * c.outputs * count);
    let mut want_y: Vec<f32> = (0..y.len()).map(|i| bias[i / count % bias.len()]).collect();
    let (mut want_x, mut want_w) = (vec![0.0; x.len()], vec![0.0; w.len()]);
    products(&axes, c, |at_x, at_w, at_y| {
        want_y[at_y] += x[at_x] * w[at_w];
        want_x[at_x] += y[at_y] * w[at_w];
        want_w[at_w] += x[at_x] * y[at_y];
    });
    let (mut got_y, mut got_x, mut got_w) = (vec![9.0; y.len()], vec![9.0; x.len()], vec![9.0; w.len()]);
    forward(&windows, c, &x, &w, Some(&bias), &mut got_y).expect("memory");
    assert_eq!(got_y, want_y, "forward, {c:?}, {axes:?}");
    input(&windows, c, &y, &w, &mut got_x).expect("memory");
    assert_eq!(got_x, want_x, "input, {c:?}, {axes:?}");
    weight(&windows, c, &x, &y, &mut got_w).expect("memory");
    assert_eq!(got_w, want_w, "weight, {c:?}, {axes:?}");
    // Sums of fractions depend on their order.
    let x: Vec<f32> = (0..x.len()).map(|_| random.unit() as f32).collect();
    for bias in [Some(&*bias), None] {
        forward(&windows, c, &x, &w, bias, &mut got_y).expect("memory");
        let parts = from_parts(&windows, c, &x, &w, bias);
        let has_parts = c.inputs > 0 && !got_y.is_empty();
        assert_eq!(parts, has_parts.then(|| got_y.clone()), "in parts, {c:?}, {axes:?}");
    }
}

/// The result of a convolution, put together from its parts.
fn from_parts(windows: &Windows, c: Channels, x: &[f32], w: &[f32], bias: Option<&[f32]>) -> Option<Vec<f32>> {
    let count = windows.count();
    let elements = Mutex::new(vec![None; c.samples * c.groups * c.outputs * count]);
    let is_visited = forward_in_parts(windows, c, x, w, bias, &|[row, column], part| {
        let mut elements = elements.lock().unwrap_or_else(PoisonError::into_inner);
        for ((i, j), value) in part.indexed_iter() {
            let before = elements[(row + i) * count + column + j].replace(*value);
            assert!(before.is_none(), "element ({}, {}) is in two parts", row + i, column + j);
        }
    });
    let elements = elements.into_inner().unwrap_or_else(PoisonError::into_inner);
    is_visited.expect("memory").then(|| elements.into_iter().map(|x| x.expect("each is in a part")).collect())
}

#[test]
fn convolutions_and_their_gradients_agree_with_nested_loops_at_every_level() {
    let (_setting, mut random) = (alone(), Lcg(5));
    for round in 0..160 {
        set_level(Level::ALL[round % Level::ALL.len()]);
        let c = Channels {
            samples: random.below(4),
            groups: 1 + random.below(3),
            inputs: random.below(6),
            outputs: 1 + random.below(14),
        };
        let axes = match round % 3 {
            0 => [axis(&mut random, 1), axis(&mut random, 1), axis(&mut random, 60)],
            1 => [axis(&mut random, 1), axis(&mut random, 12), axis(&mut random, 12)],
            _ => [axis(&mut random, 4), axis(&mut random, 5), axis(&mut random, 6)],
        };
        check(&mut random, axes, c);
    }
}

#[test]
fn convolutions_are_right_where_they_are_cut_into_parts() {
    let (_setting, mut random) = (alone(), Lcg(6));
    let line = |size: usize, stride: usize| Axis {
        size,
        count: (size - 1) / stride + 1,
        taps: 3,
        stride,
        dilation: 1,
        padding: 1,
    };
    let one = Axis { size: 1, count: 1, taps: 1, stride: 1, dilation: 1, padding: 0 };
    let pointwise = |size: usize| Axis { size, count: size, ..one };
    let channels = |samples, groups, inputs, outputs| Channels { samples, groups, inputs, outputs };
    for level in Level::ALL {
        set_level(level);
        check(&mut random, [one, line(40, 1), line(37, 1)], channels(2, 1, 70, 40));
        check(&mut random, [one, line(41, 2), line(36, 2)], channels(1, 2, 33, 17));
        check(&mut random, [one, one, line(3000, 1)], channels(1, 1, 20, 5));
        check(&mut random, [one, one, line(3001, 3)], channels(2, 1, 5, 30));
        check(&mut random, [line(12, 2), line(11, 1), line(10, 2)], channels(2, 1, 8, 13));
        check(&mut random, [one, pointwise(50), pointwise(30)], channels(2, 1, 24, 36));
        // More windows than elements: those of the first band are as many.
        check(&mut random, [one, one, Axis { count: 384, ..pointwise(192) }], channels(1, 1, 2, 3));
        check(&mut random, [one, Axis { count: 32, ..pointwise(16) }, pointwise(16)], channels(1, 1, 1, 2));
        check(&mut random, [one, one, Axis { count: 192, ..pointwise(384) }], channels(1, 1, 2, 3));
        check(&mut random, [one, line(7, 1), line(7, 1)], channels(9, 1, 10, 100));
        check(&mut random, [one, line(5, 2), line(5, 2)], channels(3, 2, 10, 60));
        check(&mut random, [one, line(20, 1), line(20, 1)], channels(3, 30, 1, 1));
        check(&mut random, [one, line(20, 2), line(20, 2)], channels(3, 30, 1, 2));
    }
}

#[test]
fn a_sum_over_millions_of_windows_keeps_its_digits() {
    let windows = |n: usize, taps: usize| {
        let inner = Axis { size: n, count: n + 1 - taps, taps, stride: 1, dilation: 1, padding: 0 };
        let one = Axis { size: 1, count: 1, taps: 1, stride: 1, dilation: 1, padding: 0 };
        Windows::new([one, one, inner]).expect("small numbers")
    };
    for (channels, taps) in [(1, 1), (1, 2), (4, 2)] {
        let n = (1 << 22) / channels;
        let c = Channels { samples: 1, groups: 1, inputs: channels, outputs: channels };
        let windows = windows(n, taps);
        // A third is rounded, and so are the sums of thirds.
        let (x, y) = (vec![1.0_f32 / 3.0; channels * n], vec![1.0_f32; channels * windows.count()]);
        let mut out = vec![0.0; channels * channels * taps];
        weight(&windows, c, &x, &y, &mut out).expect("memory");
        let want = f64::from(x[0]) * windows.count() as f64;
        for got in out {
            assert!((f64::from(got) / want - 1.0).abs() < 1e-5, "{got} instead of {want}, {channels} channels");
        }
    }
}
