//! Row ops compile and run; a cell op adds up its batch.

use minitensor::prelude::*;

/// Softmax at a temperature for every row.
#[custom_op(shape = (x: [.., n], temperature: [..]) -> (p: [.., n], entropy: [..]), axis = -1)]
pub fn tempered<R: Row>(x: R, temperature: R) -> (R, R) {
    let z = x / temperature;
    let e = (z - z.max().detach()).exp();
    let p = e / e.sum();
    (p, -(p * (p + 1e-9).log()).sum())
}

/// The Huber loss of every row against a target row.
#[custom_op(shape = (x: [.., n], y: [.., n], weight: [n]) -> [..] where delta > 0.0)]
pub fn huber_rows<R: Row>(
    x: R,
    y: R,
    weight: Option<R>,
    #[default = 1.0] delta: f64,
    #[default = true] mean: bool,
) -> R {
    let a = (x - y).abs();
    let loss = if a <= delta { 0.5 * a * a } else { delta * (a - 0.5 * delta) };
    let loss = if let Some(weight) = weight { loss * weight } else { loss };
    if mean { loss.mean() } else { loss.sum() }
}

/// The ranked probability score of a forecast for ordered classes.
#[custom_op(shape = (forecast: [.., n], observed: [.., n]) -> [..])]
pub fn ranked_probability<R: Row>(forecast: R, observed: R) -> R {
    (forecast - observed).cumsum().square().sum()
}

fn helper<R: Row>(x: R, power: f64) -> R {
    x.abs().pow(minitensor::kernels::lit(power)).sum()
}

/// The p-norm, by a helper function.
#[custom_op(shape = (x: [.., n]) -> [..])]
pub fn norm_of<R: Row>(x: R, #[default = 3] power: i64) -> R {
    helper(x, power as f64).pow(1.0 / power as f64)
}

/// The sum over all rows: an output without a batch is shared by all cells.
#[custom_op(shape = (x: [.., n]) -> [n], backward = none)]
pub fn total<T: Num>(x: &[T], out: &mut [T]) {
    for (o, v) in out.iter_mut().zip(x) {
        *o += *v;
    }
}

pub fn main() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, 2.0, 4.0, -1.0, 0.5, 0.25], [2, 3])?;
    let t = Tensor::from_vec(vec![1.0, 2.0], [2])?;
    let (p, entropy) = tempered::call(&x, &t, -1, false)?;
    assert_eq!(p.shape(), x.shape());
    assert!(entropy.to_vec::<f64>()?.iter().all(|e| *e > 0.0));
    let w = Tensor::from_vec(vec![1.0, 0.5, 2.0], [3])?;
    let loss = huber_rows::call(&x, &p, Some(&w), 0.75, true)?;
    assert_eq!(loss.shape().as_ref(), [2]);
    assert_eq!(total::call(&x)?.to_vec::<f64>()?, [0.0, 2.5, 4.25]);
    let score = ranked_probability::call(&x, &x.detach())?;
    assert_eq!(score.to_vec::<f64>()?, [0.0, 0.0]);
    let norm = norm_of::call(&x, 2)?.to_vec::<f64>()?;
    assert!((norm[0] - 21f64.sqrt()).abs() < 1e-12);
    Ok(())
}
