//! Every operation in machine code, at all levels, against the same function compiled by rustc.

use super::form::{Op, push, record};
use super::{Format, Number, Routine};
use crate::math::binary::{Binary, Binary32, Binary64, Word};
use crate::number::scalar::Mask;
use crate::program::{OverRows, Storage};
use crate::runtime::simd::{Level, levels};

/// Numbers that reveal mistakes: ordinary ones, the ends of the range, zeros, infinities and NaN.
fn numbers<N: Copy>(of: impl Fn(u64) -> N, n: usize, seed: u64) -> Vec<N> {
    let mut state = seed;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            of(state >> 11)
        })
        .collect()
}

fn single(random: u64) -> f32 {
    match random % 8 {
        0 => f32::from_bits((random >> 8) as u32),
        1 => {
            [0.0, -0.0, f32::INFINITY, -f32::INFINITY, f32::NAN, 1.0, f32::MIN_POSITIVE, 1e-42][random as usize / 8 % 8]
        }
        2 => ((random >> 8) % 9) as f32 - 4.0,
        _ => ((random >> 8) % 100_000) as f32 / 1_000.0 - 50.0,
    }
}

fn double(random: u64) -> f64 {
    match random % 8 {
        0 => f64::from_bits(random.rotate_left(13) ^ random << 51),
        1 => [0.0, -0.0, f64::INFINITY, -f64::INFINITY, f64::NAN, 1.0, f64::MIN_POSITIVE, 5e-324]
            [random as usize / 8 % 8],
        _ => single(random).into(),
    }
}

macro_rules! functions {
    ($test:ident $native:ident $binary:ident $make:ident $($name:ident |$x:ident, $y:ident, $z:ident| [$($out:expr),+];)*) => {
        #[test]
        fn $test() {
            $({
                #[inline(always)]
                fn $name<F: $binary>($x: F, $y: F, $z: F) -> Vec<F> { vec![$($out),+] }
                for level in levels().filter(|level| *level != Level::Baseline) {
                    for n in [1, 3, 16, 17, 100, 1000] {
                        let inputs = [1, 2, 3].map(|seed| numbers($make, n, seed));
                        let width = <$native as Format>::WIDTH;
                        let form = record(|| {
                            let [x, y, z] = [0, 1, 2].map(|k| Number::<$native>::input(k));
                            Some($name(x, y, z).into_iter().map(|y| y.0).collect())
                        });
                        let form = form.expect("a form");
                        let count = form.outputs.len();
                        let routine = Routine::new(form.clone(), 3, &vec![Storage::Own; count], &OverRows::default(), &[], width, level).expect("machine code");
                        let mut outputs: Vec<Vec<$native>> = vec![vec![9.0; n + 1]; count];
                        let from: Vec<_> = inputs.iter().map(|x| x.as_ptr().cast::<u8>()).collect();
                        let to: Vec<_> = outputs.iter_mut().map(|y| y.as_mut_ptr().cast::<u8>()).collect();
                        // SAFETY: the inputs and outputs have `n` elements.
                        unsafe { routine.run(n, &from, std::ptr::null(), &to) };
                        for i in 0..n {
                            let [x, y, z] = [0, 1, 2].map(|k| inputs[k][i]);
                            for (k, expected) in $name::<$native>(x, y, z).into_iter().enumerate() {
                                let got = outputs[k][i];
                                assert!(
                                    got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(),
                                    "{} at {level:?}: output {k} of element {i} of {n}, at {x:?}, {y:?}, {z:?}, must be \
                                     {expected:?}, got {got:?}\n{form:?}",
                                    stringify!($name),
                                );
                            }
                        }
                        assert!(outputs.iter().all(|y| y[n] == 9.0), "{} writes past the end", stringify!($name));
                    }
                }
            })*
        }
    };
}

impl<N: Format> Number<N> {
    fn input(k: u32) -> Number<N> {
        Number::of_node(push(Op::Input(k, Storage::Own), N::WIDTH, &[]))
    }
}

fn truth<F: Binary>(condition: F::Mask, one: F, zero: F) -> F {
    F::select(condition, one, zero)
}

functions! {
    singles f32 Binary32 single
    arithmetic |x, y, z| [x + y, x - z, x * y, x / z, -x, x.sqrt(), x.abs(), x.copysign(y)];
    fused |x, y, z| [x.mul_add(y, z), (-x).mul_add(y, z), x.mul_add(y, -z), (-x).mul_add(y, -z), x.mul_add(x, x)];
    fused_constants |x, y, z| [
        x.mul_add(F::of(3.0), z), F::of(3.0).mul_add(x, z), x.mul_add(y, F::of(0.3)), x.mul_add(F::of(2.0), F::of(0.5)),
        F::of(2.5).mul_add(F::of(1.5), x), F::of(2.5).mul_add(F::of(1.5), F::of(3.5))
    ];
    quotients |x, y, z| [
        x / F::of(4.0), y / F::of(-0.5), z / F::of(1.7e38), x / F::of(1.2e-38), y / F::of(3.0), z / F::of(0.0), x / F::of(1.0),
        y / F::of(f32::MIN_POSITIVE), z / F::of(2.0 * f32::MIN_POSITIVE), x / F::of(f32::INFINITY), y / F::of(1e-45),
        z / F::of(f32::from_bits(0x7F00_0000)), F::of(4.0) / x
    ];
    fused_once |x, y, z| [(x + 1.0).mul_add(y + 1.0, z + 1.0)];
    rounding |x, y, z| [x.floor(), y.ceil(), z.trunc(), x.round()];
    comparisons |x, y, z| [
        truth(x.less(y), x, z), truth(x.less_equal(y), y, z), truth(x.equal(y), x, z), truth(F::of(1.0).less(y), x, z),
        truth(F::of(1.0).less_equal(y), x, z), truth(y.less(F::of(1.0)), F::of(3.0), z), truth(x.less(y), z, F::of(4.0))
    ];
    bounds |x, y, z| [truth(x.less(y), x, y), truth(x.less(y), y, x), truth(x.less(F::of(1.0)), F::of(1.0), x), z];
    logic |x, y, z| [
        truth(x.less(y) & y.less(z), x, z), truth(x.less(y) | y.less(z), x, z), truth(!x.less(y), x, z),
        truth(F::Mask::constant(true) & x.less(z), x, y), truth(F::Mask::constant(false) | x.less(z), x, y)
    ];
    words |x, y, z| [
        F::from_bits(x.to_bits().wrapping_add(y.to_bits())), F::from_bits(x.to_bits().wrapping_sub(z.to_bits())),
        F::from_bits((x.to_bits() >> 3) ^ (y.to_bits() << 5) | z.to_bits() & F::Bits::of(0xFF0)),
        F::from_bits(x.to_bits().shifted_left(y.to_bits() & F::Bits::of(31))),
        F::from_bits(x.to_bits().shifted_right(y.to_bits() & F::Bits::of(31))),
        F::from_bits((x.to_bits() >> 20) * (y.to_bits() >> 20))
    ];
    tests_of_words |x, y, z| [
        truth(x.to_bits().less(y.to_bits()), x, z), truth(x.to_bits().less(F::Bits::of(0x8000_0001)), x, z),
        truth(x.to_bits().equal(y.to_bits()), x, z), truth(x.to_bits().is_negative(), y, z),
        F::from_bits(F::Bits::select(x.less(y), x.to_bits(), z.to_bits()))
    ];
    conversions |x, y, z| [
        F::of_signed(x.to_bits()), F::narrow(x.wide() * y.wide() + z.wide()),
        truth(x.wide().less(y.wide() * 2.0), x, z), F::narrow(F::Wide::select(x.less(y), x.wide(), z.wide() * 0.1)),
        truth(x.wide().less(y.wide()) & y.less(z) & !z.wide().equal(x.wide()), x, z)
    ];
    many_values |x, y, z| [{
        let (mut values, mut sum) = (vec![x, y, z], z);
        for k in 0..60 {
            values.push(values[k] * values[k + 2] + values[k + 1]);
        }
        for v in values.iter().rev() {
            sum = sum * 0.5 - F::select(v.less(x), y, *v);
        }
        sum
    }];
    many_conditions |x, y, z| [{
        let all: Vec<F::Mask> = (0..20).map(|k| (x * (k as f32)).less(y + (k as f32))).collect();
        all.iter().fold(z, |sum, c| F::select(*c, sum * 1.5, sum + 1.0)) + all.iter().fold(z, |sum, c| F::select(*c, sum - 1.0, y))
    }];
}

functions! {
    doubles f64 Binary64 double
    arithmetic |x, y, z| [x + y, x - z, x * y, x / z, -x, x.sqrt(), x.abs(), x.copysign(y)];
    quotients |x, y, z| [
        x / F::of(4.0), y / F::of(-0.5), z / F::of(f64::MIN_POSITIVE), x / F::of(4.0 * f64::MIN_POSITIVE), y / F::of(3.0),
        z / F::of(f64::from_bits(0x7FE0_0000_0000_0000)), x / F::of(5e-324)
    ];
    fused |x, y, z| [x.mul_add(y, z), (-x).mul_add(y, z), x.mul_add(y, -z), (-x).mul_add(y, F::of(-0.5))];
    rounding |x, y, z| [x.floor(), y.ceil(), z.trunc(), x.round()];
    comparisons |x, y, z| [truth(x.less(y), x, z), truth(x.less_equal(y), y, z), truth(!x.equal(y) & y.less(z), x, z)];
    bounds |x, y, z| [truth(x.less(y), x, y), truth(x.less(y), y, x), truth(x.less(F::of(1.0)), F::of(1.0), x), z];
    words |x, y, z| [
        F::from_bits(x.to_bits().wrapping_add(y.to_bits())), F::from_bits(x.to_bits().wrapping_sub(z.to_bits())),
        F::from_bits((x.to_bits() >> 3) ^ (y.to_bits() << 5) | z.to_bits() & F::Bits::of(0xFF0)),
        F::from_bits(x.to_bits().shifted_left(y.to_bits() & F::Bits::of(63))),
        F::from_bits(x.to_bits().shifted_right(y.to_bits() & F::Bits::of(63))),
        F::from_bits((x.to_bits() >> 32) * (y.to_bits() & F::Bits::of(0xFFFF_FFFF)))
    ];
    tests_of_words |x, y, z| [
        truth(x.to_bits().less(y.to_bits()), x, z), truth(x.to_bits().less(F::Bits::of(1 << 63 | 5)), x, z),
        truth(x.to_bits().equal(y.to_bits()), x, z), truth(x.to_bits().is_negative(), y, z),
        truth(!(x.to_bits().is_negative() | F::Mask::constant(false)), y, z)
    ];
}

/// Expressions of many inputs, most of which are read once. Only two or three of them have a register for their start.
fn of_many<F: Binary>(k: usize, x: [F; 6]) -> F {
    match k {
        0 => x[0] + x[3].mul_add(x[4], x[5]),
        1 => x[2].mul_add(x[3], x[4]) - x[5],
        2 => x[5].mul_add(x[4], x[3]) * x[2].mul_add(x[1], x[0]),
        3 => x[3] * x[4].mul_add(x[3], x[5]) + x[3],
        4 => x[4].mul_add(x[5], x[4]) + x[2] / x[3],
        5 => truth(x[2].less(x[3]), x[4], x[5]) + x[0].mul_add(x[2], x[1]),
        6 => (x[2] + x[3]).mul_add(x[4], x[5]) - x[1],
        _ => (x[0] - x[1]) * (x[2] - x[3]) / (x[4] - x[5]),
    }
}

#[test]
fn inputs_that_are_read_once() {
    for level in levels().filter(|level| *level != Level::Baseline) {
        for (k, n) in (0..8).flat_map(|k| [1, 16, 100, 1000].map(|n| (k, n))) {
            let inputs = [1, 2, 3, 4, 5, 6].map(|seed| numbers(single, n, seed));
            let leaves = || [0, 1, 2, 3, 4, 5].map(Number::<f32>::input);
            let form = record(|| Some(vec![of_many(k, leaves()).0])).expect("a form");
            let routine =
                Routine::new(form, 6, &[Storage::Own], &OverRows::default(), &[], super::Width::Single, level);
            let mut output = vec![9.0f32; n];
            let from: Vec<_> = inputs.iter().map(|x| x.as_ptr().cast::<u8>()).collect();
            // SAFETY: the inputs and the output have `n` elements.
            unsafe {
                let to = [output.as_mut_ptr().cast()];
                routine.expect("machine code").run(n, &from, std::ptr::null(), &to);
            }
            for (i, got) in output.iter().enumerate() {
                let x = [0, 1, 2, 3, 4, 5].map(|k| inputs[k][i]);
                let expected = of_many(k, x);
                let is_same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
                assert!(is_same, "expression {k} at {level:?}: {x:?} gives {got:?}, not {expected:?}");
            }
        }
    }
}
