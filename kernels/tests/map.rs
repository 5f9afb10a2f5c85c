//! Elementwise loops: the same results at every level and length, in place or not.

mod lcg;

use lcg::Lcg;
use minitensor_kernels::simd::{Level, detected, level, set_level};
use minitensor_kernels::{Dual, Field, Float, Machine, Map, lit, map};

/// A branch, library calls and a fused product.
#[inline(always)]
fn body<T: Float>(x: T, y: T, scale: f64) -> T {
    let scaled = x.mul_add(lit(scale), y).maximum(lit(-1));
    T::select(scaled.less(lit(0.5)), scaled.sigmoid(), scaled / (y.square() + T::one()))
}

/// The body with its attribute.
struct Body(f64);

impl Map for Body {
    type In = (f32, f32);
    type Out = (f32,);
    #[inline(always)]
    fn eval(&self, (x, y): (f32, f32)) -> (f32,) {
        (body(x, y, self.0),)
    }
}

/// A vector-Jacobian product, as the macro would generate it.
struct Gradient;

impl Map for Gradient {
    type In = (f64, f64);
    type Out = (f64,);
    #[inline(always)]
    fn eval(&self, (g, x): (f64, f64)) -> (f64,) {
        (g * (Dual::variable(x) * Dual::variable(x).tanh()).tangent,)
    }
}

/// Inputs and outputs of different widths.
struct Mixed;

impl Map for Mixed {
    type In = (i8, f64, bool);
    type Out = (f64, i32, bool);
    #[inline(always)]
    fn eval(&self, (a, b, c): (i8, f64, bool)) -> (f64, i32, bool) {
        (b + a as f64, if c { a as i32 } else { -1 }, b > 0.0)
    }
}

struct Three;

impl Map for Three {
    type In = ();
    type Out = (i16,);
    #[inline(always)]
    fn eval(&self, _: ()) -> (i16,) {
        (3,)
    }
}

const LENGTHS: [usize; 10] = [0, 1, 3, 8, 17, 100, 1023, 1024, 1025, 5000];

fn random<T>(n: usize, seed: u64, f: impl Fn(f64) -> T) -> Vec<T> {
    let mut random = Lcg(seed);
    (0..n).map(|_| f(random.unit() * 4.0)).collect()
}

fn bytes<T>(values: &[T]) -> *const u8 {
    values.as_ptr().cast()
}

/// Runs a map of two inputs and one output of one type.
fn binary<T: Machine, M: Map<In = (T, T), Out = (T,)>>(m: &M, x: &[T], y: &[T]) -> Vec<T> {
    let mut out = vec![T::default(); x.len()];
    // SAFETY: three arrays of the same length.
    unsafe { map(m, x.len(), &[bytes(x), bytes(y)], &[out.as_mut_ptr().cast()]) };
    out
}

#[test]
fn every_level_computes_the_same_bits() {
    for n in LENGTHS {
        let (x, y) = (random(n, 1, |v| v as f32), random(n, 2, |v| v as f32));
        let (g, z) = (random(n, 3, |v| v), random(n, 4, |v| v));
        let want: Vec<u32> = x.iter().zip(&y).map(|(&x, &y)| Body(1.5).eval((x, y)).0.to_bits()).collect();
        let slope: Vec<u64> = g.iter().zip(&z).map(|(&g, &z)| Gradient.eval((g, z)).0.to_bits()).collect();
        for wanted in Level::ALL {
            // Other tests run at the same time, at any level. According to this test, the level doesn't change their
            // results.
            assert_eq!(set_level(wanted), wanted.min(detected()));
            let got: Vec<u32> = binary(&Body(1.5), &x, &y).into_iter().map(f32::to_bits).collect();
            assert_eq!(got, want, "{n} elements at {wanted:?}");
            let got: Vec<u64> = binary(&Gradient, &g, &z).into_iter().map(f64::to_bits).collect();
            assert_eq!(got, slope, "{n} elements at {wanted:?}");
        }
        assert_eq!(level(), set_level(Level::Avx512));
    }
}

#[test]
fn in_place_is_the_same_as_out_of_place() {
    for n in LENGTHS {
        let (x, y) = (random(n, 1, |v| v as f32), random(n, 2, |v| v as f32));
        let want = binary(&Body(0.5), &x, &y);
        for which in 0..2 {
            let mut both = [x.clone(), y.clone()];
            let out = both[which].as_mut_ptr().cast::<u8>();
            let ins = [0, 1].map(|k| if k == which { out.cast_const() } else { bytes(&both[k]) });
            // SAFETY: the output is exactly one of the inputs.
            unsafe { map(&Body(0.5), n, &ins, &[out]) };
            assert_eq!(both[which], want, "{n} elements into input {which}");
        }
        let want = binary(&Body(0.5), &x, &x);
        let mut all = x;
        let out = all.as_mut_ptr().cast::<u8>();
        // SAFETY: as above, with both.
        unsafe { map(&Body(0.5), n, &[out, out], &[out]) };
        assert_eq!(all, want, "{n} elements, all in one");
    }
}

#[test]
fn types_of_different_widths_go_together_in_place_too() {
    let n = 3000;
    let (a, b) = (random(n, 5, |v| (v * 20.0) as i8), random(n, 6, |v| v));
    let c = random(n, 7, |v| v > 0.0);
    let want: Vec<_> = (0..n).map(|i| Mixed.eval((a[i], b[i], c[i]))).collect();
    let (mut sum, mut chosen, mut truth) = (b, vec![0i32; n], c);
    let ins = [bytes(&a), bytes(&sum), bytes(&truth)];
    let outs = [sum.as_mut_ptr().cast(), chosen.as_mut_ptr().cast::<u8>(), truth.as_mut_ptr().cast()];
    // SAFETY: the f64 and the bool are in place, the others don't overlap.
    unsafe { map(&Mixed, n, &ins, &outs) };
    let got: Vec<_> = (0..n).map(|i| (sum[i], chosen[i], truth[i])).collect();
    assert_eq!(got, want);
}

#[test]
fn a_map_may_have_no_input() {
    let mut out = vec![0i16; 100];
    // SAFETY: one array of the type.
    unsafe { map(&Three, 100, &[], &[out.as_mut_ptr().cast()]) };
    assert_eq!(out, [3; 100]);
}
