//! The largest elements of windows are those that a loop over all taps finds.

mod lcg;

use lcg::Lcg;
use minitensor_kernels::window::{Axis, Windows, pooling};

/// The windows along an axis, which all begin in the padded volume.
fn axis(random: &mut Lcg) -> Axis {
    let (taps, dilation, stride) = (1 + random.below(4), 1 + random.below(2), 1 + random.below(4));
    let (padding, reach) = (random.below(taps / 2 + 1), dilation * (taps - 1) + 1);
    let size = reach + random.below(40);
    let count = (size + 2 * padding - reach) / stride + 1;
    Axis { size, count, taps, stride, dilation, padding: padding as i64 }
}

fn expected(windows: &Windows, x: &[f32]) -> (Vec<f32>, Vec<i64>) {
    let [a, b, c] = *windows.axes();
    let mut results = (vec![], vec![]);
    for at in 0..windows.count() {
        let (i, j, k) = (at / (b.count * c.count), at / c.count % b.count, at % c.count);
        let (mut best, mut place) = (f32::NEG_INFINITY, None);
        for tap in 0..windows.taps() {
            let (s, t, u) = (tap / (b.taps * c.taps), tap / c.taps % b.taps, tap % c.taps);
            let (Some(i), Some(j), Some(k)) = (a.place(i, s), b.place(j, t), c.place(k, u)) else { continue };
            let index = (i * b.size + j) * c.size + k;
            if x[index] > best || x[index].is_nan() || place.is_none() {
                (best, place) = (x[index], Some(index as i64));
            }
        }
        results.0.push(best);
        results.1.push(place.unwrap_or(0));
    }
    results
}

#[test]
fn the_largest_elements_of_windows() {
    let mut random = Lcg(1);
    let one = Axis { size: 1, count: 1, taps: 1, stride: 1, dilation: 1, padding: 0 };
    for case in 0..1500 {
        let outer = if case % 8 == 0 { axis(&mut random) } else { one };
        let windows = Windows::new([outer, axis(&mut random), axis(&mut random)]).expect("small windows");
        let element = |random: &mut Lcg| match random.below(20) {
            0 => f32::NAN,
            1 => f32::NEG_INFINITY,
            2 => f32::INFINITY,
            n => n as f32 - 9.0,
        };
        let x: Vec<f32> = (0..windows.volume()).map(|_| element(&mut random)).collect();
        let (mut out, mut place) = (vec![0.0; windows.count()], vec![0; windows.count()]);
        pooling::max(&windows, &x, f32::NEG_INFINITY, &mut out, &mut place);
        let (best, places) = expected(&windows, &x);
        assert!(out.iter().zip(&best).all(|(a, b)| a == b || a.is_nan() && b.is_nan()), "{windows:?}");
        assert_eq!(place, places, "{windows:?}");
    }
}
