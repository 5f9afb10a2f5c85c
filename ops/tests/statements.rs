//! Statements under a condition on data have the effect of the same Rust code on each element.

use minitensor::op::Arg;
use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor::{OpRef, dispatch};
use minitensor_ops as _;

/// Defines an op and the same function of plain numbers.
macro_rules! both {
    ($($(#[$doc:meta])* fn $name:ident($($x:ident),*; $($attr:ident: $kind:ty),*) -> ($plain:ty, $generic:ty) { $($body:tt)* })*) => {
        mod plain {
            $(#[allow(clippy::all, unused)]
            pub fn $name($($x: f64,)* $($attr: $kind),*) -> $plain { $($body)* })*
        }
        $(
            $(#[$doc])*
            #[custom_op]
            pub fn $name<T: Float>($($x: T,)* $($attr: $kind),*) -> $generic { $($body)* }
        )*
    };
}

both! {
    /// An assignment without `else`.
    fn limited(x;) -> (f64, T) {
        let mut y = x;
        if x > 1.0 {
            y = 1.0;
        }
        y
    }

    /// Assignments of several variables, one of which is a mask.
    fn ordered(x, z;) -> ((f64, f64), (T, T)) {
        let mut least = x;
        let mut most = z;
        let mut swapped = false;
        if x > z {
            least = z;
            most = x;
            swapped = true;
        } else if x == z {
            most += 1.0;
        }
        (least - most, if swapped { 1.0 } else { -1.0 })
    }

    /// A variable without a first value.
    fn assigned_later(x, z;) -> (f64, T) {
        let mut y;
        let mut w;
        if x > z {
            y = x;
            w = 1.0;
        } else {
            if z > 1.0 {
                y = z;
            } else {
                y = x * z;
            }
            w = 2.0;
        }
        if y > 2.0 {
            w += y;
            y -= 1.0;
        }
        y * w
    }

    /// Conditions within conditions.
    fn nested(x, z;) -> (f64, T) {
        let mut y = 0.0 * x * z;
        if x > 0.0 {
            y += x;
            if z > 0.0 {
                y *= z;
            } else {
                let twice = 2.0 * z;
                y -= twice;
            }
            y += 0.5;
        }
        y
    }

    /// Early results.
    fn early(x;) -> (f64, T) {
        if x < 0.0 {
            return -x;
        }
        let mut y = x.sqrt();
        if y > 1.5 {
            let z = y * 2.0;
            return z;
        } else if y > 1.0 {
            y -= 0.25;
        }
        let y = y + 1.0;
        if y > 1.75 { y } else { y * y }
    }

    /// Early results of nested branches.
    fn early_nested(x, z;) -> (f64, T) {
        let mut y = x;
        if x > 0.5 {
            if z > 0.5 {
                return x * z;
            }
            y += 1.0;
        } else if x < -1.0 {
            let w = y * z;
            if w > 1.0 {
                y = w;
            }
            y *= 3.0
        } else if z < -0.5 {
            return z;
        }
        if y > 2.0 {
            return 2.0;
        }
        y + z
    }

    /// An early pair.
    fn early_pair(x, z;) -> ((f64, f64), (T, T)) {
        if x > z {
            return (x, 0.0);
        } else {
            if z > 2.0 {
                return (0.0, z);
            }
        }
        (x, z)
    }

    /// Newton's method for the square root, and the number of steps.
    fn newton(x;) -> ((f64, f64), (T, T)) {
        let mut y = x.abs() + 1.0;
        let mut steps = 0.0;
        for _ in 0..40 {
            let next = 0.5 * (y + x.abs() / y);
            if (next - y).abs() < 1e-9 {
                break;
            }
            y = next;
            steps += 1.0;
        }
        (y, steps)
    }

    /// `break` and `continue` at several depths, with loops inside.
    fn exits(x, z; turns: usize) -> ((f64, f64), (T, T)) {
        let mut total = 0.0;
        let mut last = x;
        for i in 0..turns {
            if i == 7 {
                break;
            }
            let y = x + z * (i as f64);
            if y > 3.0 {
                if z > 1.0 {
                    continue;
                }
                last = y;
                if y > 5.0 {
                    break;
                }
                total += 0.125;
            }
            for k in 0..3 {
                if total > 10.0 {
                    break;
                }
                total += y * (k as f64);
            }
            last += 1.0;
        }
        (total, last)
    }

    /// An early result after a loop that ends on data.
    fn after_a_loop(x;) -> (f64, T) {
        let mut y = x;
        for _ in 0..6 {
            if y.abs() < 0.5 {
                break;
            }
            y *= 0.5;
        }
        if y == x {
            return 7.0;
        }
        y
    }
}

/// The square root by Newton's method, without the number of steps.
#[custom_op]
pub fn newton_root<T: Float>(x: T) -> T {
    newton(x).0
}

/// The length of the sequence of Collatz that begins with `x`.
#[custom_op]
pub fn collatz<T: Int>(x: T, #[default = 200] limit: usize) -> T {
    let mut x = x;
    let mut steps = 0;
    for _ in 0..limit {
        if x <= 1 {
            break;
        }
        if x & 1 == 0 {
            x = x >> 1;
        } else {
            x = 3 * x + 1;
        }
        steps += 1;
    }
    steps
}

/// The number under which elements add up to `target`, by bisection.
#[custom_op(shape = (x: [.., n]) -> [..] where n > 0, target > 0.0)]
pub fn water_level<R: Row>(x: R, #[default = 1.0] target: f64) -> R {
    let mut low = x.min();
    let mut high = x.max() + target;
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if (middle - x).maximum(0.0).sum() < target {
            low = middle;
        } else {
            high = middle;
        }
    }
    // A step of Newton's method, which has the gradient of the solution.
    let level = (0.5 * (low + high)).detach();
    let covered = if x < level { 1.0 } else { 0.0 };
    level - ((level - x).maximum(0.0).sum() - target) / covered.sum()
}

/// The elements of a row up to the first limit on its sum.
#[custom_op(shape = (x: [.., n]) -> [.., n])]
pub fn normalized_once<R: Row>(x: R) -> R {
    let size = x.abs().sum();
    if size < 1.0 {
        return x;
    }
    x / size
}

const X: [f64; 12] = [-30.0, -2.5, -1.0, -0.3, 0.0, 0.2, 0.9, 1.3, 1.3, 2.7, 4.0, 50.0];
const Z: [f64; 12] = [0.5, -2.5, 3.0, 0.1, 0.4, -1.0, 2.5, 0.3, 1.3, 0.7, -0.1, 1.0];

fn results(op: &OpRef, inputs: &[&[f64]], attrs: &[minitensor::Attr]) -> Vec<Vec<f64>> {
    let tensors: Vec<Tensor> = inputs.iter().map(|x| Tensor::from_vec(x.to_vec(), [x.len()]).unwrap()).collect();
    let args: Vec<Arg<'_>> = tensors.iter().map(Arg::Tensor).collect();
    dispatch(op, &args, attrs).unwrap().into_vec().iter().map(|t| t.to_vec::<f64>().unwrap()).collect()
}

fn pairs(f: impl Fn(f64, f64) -> (f64, f64)) -> Vec<Vec<f64>> {
    let (a, b) = X.iter().zip(Z).map(|(x, z)| f(*x, z)).unzip();
    vec![a, b]
}

#[test]
fn every_element_takes_its_own_branch() {
    assert_eq!(results(&limited::op(), &[&X], &[]), [X.map(plain::limited)]);
    assert_eq!(results(&ordered::op(), &[&X, &Z], &[]), pairs(plain::ordered));
    let later: Vec<f64> = X.iter().zip(Z).map(|(x, z)| plain::assigned_later(*x, z)).collect();
    assert_eq!(results(&assigned_later::op(), &[&X, &Z], &[]), [later]);
    let nested: Vec<f64> = X.iter().zip(Z).map(|(x, z)| plain::nested(*x, z)).collect();
    assert_eq!(results(&nested::op(), &[&X, &Z], &[]), [nested]);
}

#[test]
fn every_element_returns_at_its_own_place() {
    assert_eq!(results(&early::op(), &[&X], &[]), [X.map(plain::early)]);
    assert_eq!(results(&early_pair::op(), &[&X, &Z], &[]), pairs(plain::early_pair));
    let nested: Vec<f64> = X.iter().zip(Z).map(|(x, z)| plain::early_nested(*x, z)).collect();
    assert_eq!(results(&early_nested::op(), &[&X, &Z], &[]), [nested]);
    assert_eq!(results(&after_a_loop::op(), &[&X], &[]), [X.map(plain::after_a_loop)]);
}

#[test]
fn every_element_leaves_a_loop_at_its_own_turn() {
    let expected = pairs(|x, _| plain::newton(x));
    assert_eq!(results(&newton::op(), &[&X], &[]), expected);
    assert!(expected[1].iter().any(|n| *n != expected[1][0]), "all elements take as many steps");
    for turns in [0, 1, 5, 20] {
        let expected = pairs(|x, z| plain::exits(x, z, turns));
        assert_eq!(results(&exits::op(), &[&X, &Z], &[(turns as i64).into()]), expected, "{turns} turns");
    }
}

/// Bits, and a mask that changes.
#[custom_op]
pub fn mixed_bits<T: Int>(x: T, y: T) -> (T, T::Mask) {
    let mut z = x;
    z ^= y;
    z |= 8;
    z <<= 1;
    z &= 63;
    if x > y {
        z >>= 2;
    }
    let mut odd = z & 1 == 1;
    odd |= x == y;
    (z, odd)
}

#[test]
fn compound_assignments_of_bits_are_those_of_rust() {
    let (x, y) = ([1_i32, 5, 12, 7], [3_i32, 5, 2, 70]);
    let tensor = |v: &[i32]| Tensor::from_vec(v.to_vec(), [4]).unwrap();
    let (z, odd) = mixed_bits::call(&tensor(&x), &tensor(&y)).unwrap();
    let expected = x.iter().zip(y).map(|(x, y)| {
        let mut z = x ^ y;
        z |= 8;
        z <<= 1;
        z &= 63;
        if *x > y { z >> 2 } else { z }
    });
    let expected: Vec<i32> = expected.collect();
    assert_eq!(z.to_vec::<i32>().unwrap(), expected);
    let odds: Vec<bool> = expected.iter().zip(x.iter().zip(y)).map(|(z, (x, y))| z & 1 == 1 || *x == y).collect();
    assert_eq!(odd.to_vec::<bool>().unwrap(), odds);
}

#[test]
fn a_loop_of_integers_ends_at_its_own_turn() {
    let x = Tensor::from_vec(vec![1_i32, 2, 3, 27, 97], [5]).unwrap();
    assert_eq!(collatz::call(&x, 200).unwrap().to_vec::<i32>().unwrap(), [0, 1, 7, 111, 118]);
}

#[test]
fn rows_take_their_own_branches() {
    let x = Tensor::from_vec(vec![0.0, 1.0, 5.0, 2.0, 2.0, 2.0], [2, 3]).unwrap();
    let levels = water_level::call(&x, 2.0).unwrap().to_vec::<f64>().unwrap();
    for (level, expected) in levels.iter().zip([1.5, 2.0 + 2.0 / 3.0]) {
        assert!((level - expected).abs() < 1e-12, "{levels:?}");
    }
    let y = normalized_once::call(&(Tensor::from_vec(vec![0.25, -0.5, 3.0, 1.0], [2, 2]).unwrap())).unwrap();
    assert_eq!(y.to_vec::<f64>().unwrap(), [0.25, -0.5, 0.75, 0.25]);
}

#[test]
fn gradients_are_those_of_the_branches_taken() {
    let ops = [
        limited::op(),
        ordered::op(),
        nested::op(),
        early::op(),
        early_pair::op(),
        newton_root::op(),
        after_a_loop::op(),
        collatz::op(),
        water_level::op(),
        normalized_once::op(),
    ];
    for op in ops {
        opcheck(&op, &[]).into_result().unwrap_or_else(|e| panic!("{}: {e}", op.name));
    }
}

/// The entry of a table.
#[custom_op]
pub fn entry<T: Real>(at: T, table: &[f64]) -> T {
    table[at]
}

#[test]
fn a_table_is_indexed_by_elements() {
    let at = Tensor::from_vec(vec![-1.0, 0.0, 0.99, 1.0, 3.5, 4.0, 99.0, f64::NAN, f64::INFINITY], [9]).unwrap();
    for length in 1..6 {
        let table: Vec<f64> = (0..length).map(|k| (k * k) as f64 + 0.5).collect();
        let expected = at.to_vec::<f64>().unwrap();
        let expected = expected.iter().map(|at| match at.is_nan() {
            true => f64::NAN,
            false => table[(at.max(0.0) as usize).min(table.len() - 1)],
        });
        let found = entry::call(&at, &table).unwrap().to_vec::<f64>().unwrap();
        for (found, expected) in found.into_iter().zip(expected) {
            assert!(found == expected || found.is_nan() && expected.is_nan(), "{found}, {expected}, {length} entries");
        }
    }
    let integers = Tensor::from_vec(vec![-5_i64, 0, 1, 9], [4]).unwrap();
    assert_eq!(entry::call(&integers, &[10.0, 20.0, 30.0]).unwrap().to_vec::<i64>().unwrap(), [10, 10, 20, 30]);
}

/// The value of a call option (Black and Scholes, 1973).
#[custom_op]
pub fn call_value<T: Float>(spot: T, strike: T, time: T, rate: T, volatility: T) -> T {
    let spread = volatility.abs() * time.abs().sqrt() + 0.1;
    let d = ((spot.abs() + 1.0) / (strike.abs() + 1.0)).log() / spread + rate * time + 0.5 * spread;
    spot * d.normal_cdf() - strike * (-rate * time).exp() * (d - spread).normal_cdf()
}

/// The number with that value of `x + x³`, by Newton's method.
#[custom_op]
pub fn cubic_root<T: Float>(value: T, weight: T) -> T {
    let mut x = value;
    for _ in 0..30 {
        let step = (x + weight.square() * x * x * x - value) / (1.0 + 3.0 * weight.square() * x * x);
        x -= step;
        if step.abs() < 1e-12 {
            break;
        }
    }
    x
}

#[test]
fn long_programs_have_higher_derivatives() {
    for op in [call_value::op(), cubic_root::op()] {
        opcheck(&op, &[]).into_result().unwrap_or_else(|e| panic!("{}: {e}", op.name));
    }
}

/// A rounded number with the gradient of the number.
#[custom_op]
pub fn rounded<T: Float>(x: T) -> T {
    x + (x.round() - x).detach()
}

/// A recurrence of which only the last step has a gradient.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn last_step<T: Float>(x: &[T], out: &mut T) {
    let mut sum: T = 0.0;
    for x in x {
        sum = sum.detach() * *x + *x * *x;
    }
    *out = sum;
}

#[test]
fn a_detached_number_has_no_gradient() {
    use minitensor::autograd::grad;
    let gradient = |op: &OpRef, x: &Tensor| {
        let y = dispatch(op, &[Arg::Tensor(x)], &[]).unwrap().into_vec();
        let cotangent = Tensor::full(y[0].shape().clone(), 1.0.into(), y[0].dtype(), y[0].device()).unwrap();
        let found = grad(&y, std::slice::from_ref(x), &[Some(cotangent)], Default::default()).unwrap();
        (y[0].to_vec::<f64>().unwrap(), found[0].as_ref().unwrap().to_vec::<f64>().unwrap())
    };
    let x = Tensor::from_vec(vec![0.25, 1.75, -2.5], [3]).unwrap().with_requires_grad().unwrap();
    assert_eq!(gradient(&rounded::op(), &x), (vec![0.0, 2.0, -2.0], vec![1.0; 3]));
    // More cells than are computed side by side, with different numbers.
    let values: Vec<f64> = (0..400).map(|k| f64::from(k % 7) - 2.0).collect();
    let x = Tensor::from_vec(values.clone(), [200, 2]).unwrap().with_requires_grad().unwrap();
    let expected = values.chunks(2).flat_map(|cell| [0.0, cell[0] * cell[0] + 2.0 * cell[1]]);
    assert_eq!(gradient(&last_step::op(), &x).1, expected.collect::<Vec<f64>>());
}

/// A sine of sines.
#[custom_op]
pub fn repeated<T: Float>(x: T, turns: usize) -> T {
    let mut y = x;
    for turn in 0..turns {
        y = (y + turn).sin();
    }
    y
}

#[test]
fn a_loop_with_too_many_turns_is_an_error_and_not_out_of_memory() {
    let x = Tensor::from_vec(vec![1.0], [1]).unwrap();
    assert!(repeated::call(&x, 1000).is_ok());
    for (turns, words) in [(10_000, "has 29999 nodes"), (1 << 40, "takes more than 262144 steps")] {
        let error = repeated::call(&x, turns).unwrap_err();
        assert!(error.message().starts_with("op 'repeated'"), "{error}");
        assert!(error.message().contains(words), "{error}");
        assert!(error.message().contains("reduce the number of turns"), "{error}");
    }
    // The next recording is not affected.
    assert!(repeated::call(&x, 3).is_ok());
}
