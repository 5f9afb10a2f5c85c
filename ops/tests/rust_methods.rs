//! Bodies may use the methods of Rust's floats. They compute what those compute.

use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops as _;

/// Defines an element op and a row op for each expression of `x` and `y`, and compares both with Rust.
macro_rules! like_rust {
    ($($name:ident $row:ident: |$x:ident, $y:ident| $body:expr;)*) => {
        mod ops {
            use super::*;
            $(
                /// The expression, of elements.
                #[custom_op(crate = minitensor)]
                pub fn $name<T: Float>($x: T, $y: T) -> T { $body }

                /// The expression, of rows.
                #[custom_op(crate = minitensor, shape = (x: [.., n], y: [.., n]) -> [.., n])]
                pub fn $row<R: Row>($x: R, $y: R) -> R { $body }
            )*
        }
        $(
            #[test]
            fn $name() -> Result<()> {
                let (xs, ys) = arguments();
                let n = xs.len();
                let (x, y) = (Tensor::from_vec(xs.clone(), [n])?, Tensor::from_vec(ys.clone(), [n])?);
                let expected: Vec<f64> = xs.iter().zip(&ys).map(|(&$x, &$y)| $body).collect();
                for found in [ops::$name::call(&x, &y)?, ops::$row::call(&x, &y)?] {
                    for (i, (found, expected)) in found.to_vec::<f64>()?.into_iter().zip(&expected).enumerate() {
                        let error = (found - expected).abs();
                        let is_equal = error <= 4e-15 * expected.abs() || found == *expected;
                        assert!(is_equal || found.is_nan() && expected.is_nan(), "{}, {}: {found} != {expected}", xs[i], ys[i]);
                    }
                }
                opcheck(&ops::$name::op(), &[]).into_result()?;
                opcheck(&ops::$row::op(), &[]).into_result()
            }
        )*
    };
}

like_rust! {
    clamp row_clamp: |x, y| x.clamp(-0.5, 1.5) + y;
    fract row_fract: |x, y| x.fract() * y;
    to_radians row_to_radians: |x, y| x.to_radians() + y;
    to_degrees row_to_degrees: |x, y| x.to_degrees() - y;
    sin_cos row_sin_cos: |x, y| { let (s, c) = x.sin_cos(); s * y + c };
    round_ties_even row_round_ties_even: |x, y| x.round_ties_even() + y;
    log row_log: |x, y| x.abs().log(2.5) + y;
    div_euclid row_div_euclid: |x, y| x.div_euclid(y);
    rem_euclid row_rem_euclid: |x, y| x.rem_euclid(y);
    exp_m1 row_exp_m1: |x, y| x.exp_m1() * y;
    ln_1p row_ln_1p: |x, y| x.abs().ln_1p() * y;
    powf row_powf: |x, y| x.abs().powf(1.5) - y;
}

/// All pairs of some numbers, in which each is exact.
fn arguments() -> (Vec<f64>, Vec<f64>) {
    let all = [-7.5, -2.5, -1.0, -0.25, 0.5, 1.0, 1.75, 2.0, 3.5, 8.0];
    all.iter().flat_map(|x| all.iter().map(move |y| (*x, *y))).unzip()
}

/// A power by an attribute.
#[custom_op]
fn power<T: Num>(x: T, n: usize) -> T {
    x.powi(n) + x.powi(2)
}

#[test]
fn an_exponent_may_be_an_attribute() -> Result<()> {
    let x = Tensor::from_vec(vec![2, 3], [2])?;
    assert_eq!(power::call(&x, 3)?.to_vec::<i32>()?, [12, 36]);
    opcheck(&power::op(), &[]).into_result()
}

/// `x.div_euclid(y)` of integers.
#[custom_op]
fn quotient<T: Real>(x: T, y: T) -> T {
    x.div_euclid(y)
}

/// `x.rem_euclid(y)` of integers.
#[custom_op]
fn rest<T: Real>(x: T, y: T) -> T {
    x.rem_euclid(y)
}

#[test]
fn euclidean_division_of_integers_is_that_of_rust() -> Result<()> {
    let all: Vec<i32> = (-7..=7).chain([i32::MIN, i32::MIN + 1, i32::MAX]).collect();
    let pairs = all.iter().flat_map(|x| all.iter().map(move |y| (*x, *y)));
    let pairs: Vec<(i32, i32)> = pairs.filter(|(_, y)| *y != 0).collect();
    let (xs, ys): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    let (x, y) = (Tensor::from_vec(xs, [pairs.len()])?, Tensor::from_vec(ys, [pairs.len()])?);
    let expected: Vec<i32> = pairs.iter().map(|(x, y)| x.wrapping_div_euclid(*y)).collect();
    assert_eq!(quotient::call(&x, &y)?.to_vec::<i32>()?, expected);
    let expected: Vec<i32> = pairs.iter().map(|(x, y)| x.wrapping_rem_euclid(*y)).collect();
    assert_eq!(rest::call(&x, &y)?.to_vec::<i32>()?, expected);
    Ok(())
}
