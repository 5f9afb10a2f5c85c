//! Ops whose definitions ask for positions and random numbers.

use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops as _;

/// `x` turned by its position: a part of rotary embeddings (Su et al., 2021).
#[custom_op(where base > 0.0)]
pub fn turned<T: Float>(x: T, #[position(axis)] at: T, #[default = -1] axis: i64, #[default = 100.0] base: f64) -> T {
    x * (at / base).cos()
}

/// `x`, plus uniform noise below `width`, and the noise.
#[custom_op(name = "noise::added", dtype = (x: T) -> (noisy: T, noise: T))]
pub fn added<T: Float>(x: T, mask: T::Mask, #[uniform] u: T, #[default = 1.0] width: f64) -> (T, T) {
    let noise = if mask { u * width } else { 0.0 };
    (x + noise, noise)
}

/// Attention weights with a bias for the distance between query and key (Press et al., 2021), up to the query.
#[custom_op(shape = (scores: [.., n]) -> [.., n])]
pub fn alibi<R: Row>(scores: R, #[position(-2)] query: R, #[default = 0.5] slope: f64) -> R {
    let distance = query - scores.position();
    let z = if distance >= 0.0 { scores - slope * distance } else { -R::infinity() };
    let e = (z - z.max().detach()).exp();
    e / e.sum()
}

/// A sample from a relaxed categorical distribution (Jang et al., 2017).
#[custom_op(shape = (logits: [.., n], temperature: [..]) -> [.., n])]
pub fn gumbel_softmax<R: Row>(logits: R, temperature: R, #[uniform] u: R, #[normal] z: R, shift: f64) -> R {
    let y = (logits - (-(u.maximum(1e-20)).log()).log() + 0.0 * z + shift) / temperature;
    let e = (y - y.max().detach()).exp();
    e / e.sum()
}

/// `x` rounded beside its position, with the gradient of `x`.
#[custom_op]
pub fn straight_through<T: Float>(x: T, #[position(-1)] at: T, #[uniform] u: T) -> T {
    let y = x + at + 0.25 * u;
    y + (y.round() - y).detach()
}

mod renamed {
    pub use minitensor as library;
    use minitensor::prelude::Float;

    /// `x` plus its position.
    #[minitensor::custom_op(crate = library, alias = "noise::climbing", since = 2)]
    pub fn climbed<T: Float>(x: T, #[position(0)] at: T) -> T {
        x + at
    }
}

fn ramp(sizes: &[usize]) -> Tensor {
    let n: usize = sizes.iter().product();
    Tensor::from_vec((0..n).map(|i| (i as f64 * 0.7).sin()).collect(), sizes).expect("a tensor")
}

fn key(seed: u64) -> Tensor {
    Tensor::from_vec(vec![seed, 0], [2]).expect("a key")
}

#[test]
fn positions_are_those_along_the_axis_of_the_broadcast_result() -> Result<()> {
    let x = ramp(&[3, 1, 4]);
    for (axis, at) in [(-1, 2), (0, 0), (2, 2)] {
        let y = turned::call(&x, axis, 2.0)?;
        for (i, (y, x)) in y.to_vec::<f64>()?.iter().zip(x.to_vec::<f64>()?).enumerate() {
            let place = [i / 4, 0, i % 4][at];
            assert!((y - x * (place as f64 / 2.0).cos()).abs() < 1e-15);
        }
    }
    // The function takes the position itself.
    assert_eq!(turned(2.0, 0.0, -1, 1.0), 2.0);
    let error = turned::call(&x, 3, 1.0).expect_err("there is no such axis").to_string();
    assert!(error.contains("'turned'") && error.contains("axis 3"), "{error}");
    Ok(())
}

#[test]
fn both_ops_have_the_clauses_of_the_definition() -> Result<()> {
    let op = minitensor::op::registry::get("noise::climbing")?;
    assert_eq!((&*op.name, op.since, op.aliases.len()), ("climbed", 2, 1));
    let given = minitensor::op::registry::get("given::climbed")?;
    assert_eq!((given.since, given.aliases.len()), (2, 0));
    assert_eq!(renamed::climbed::call(&Tensor::from_vec(vec![1.0, 1.0], [2])?)?.to_vec::<f64>()?, [1.0, 2.0]);
    Ok(())
}

#[test]
fn positions_of_half_floats_are_exact() -> Result<()> {
    let x = ramp(&[5000]).cast(DType::F16)?;
    /// `at` modulo 2.
    #[custom_op]
    pub fn parity<T: Float>(x: T, #[position(0)] at: T) -> T {
        0.0 * x + at - 2.0 * (at / 2.0).floor()
    }
    let y = parity::call(&x)?;
    assert_eq!(y.dtype(), DType::F16);
    assert!(y.cast(DType::F64)?.to_vec::<f64>()?.iter().enumerate().all(|(i, y)| *y == (i % 2) as f64));
    Ok(())
}

#[test]
fn random_numbers_are_those_of_the_key() -> Result<()> {
    let (x, mask) = (ramp(&[2, 5]), Tensor::from_vec(vec![true, false, true, true, true], [5])?);
    let drawn = minitensor_ops::random::uniform::call(&key(7), &[2, 5], DType::F64)?.to_vec::<f64>()?;
    let (noisy, noise) = added::call(&x, &mask, Some(&key(7)), 0.5)?;
    for (i, u) in drawn.iter().enumerate() {
        let wanted = if i % 5 == 1 { 0.0 } else { 0.5 * u };
        assert_eq!(noise.to_vec::<f64>()?[i], wanted);
        assert_eq!(noisy.to_vec::<f64>()?[i], x.to_vec::<f64>()?[i] + wanted);
    }
    // Without a key, each call draws other numbers, which the seed determines.
    let draw = || added::call(&x, &mask, None, 1.0)?.1.to_vec::<f64>();
    minitensor::random::manual_seed(3);
    let (first, second) = (draw()?, draw()?);
    minitensor::random::manual_seed(3);
    assert!(first != second && draw()? == first && draw()? == second);
    Ok(())
}

#[test]
fn the_rows_of_a_batch_have_positions() -> Result<()> {
    let weights = alibi::call(&ramp(&[2, 3, 3]), 1.0)?.to_vec::<f64>()?;
    let scores = ramp(&[2, 3, 3]).to_vec::<f64>()?;
    for (row, (w, s)) in weights.chunks(3).zip(scores.chunks(3)).enumerate() {
        let query = row % 3;
        let e: Vec<f64> = (0..3).map(|k| if k <= query { (s[k] - (query - k) as f64).exp() } else { 0.0 }).collect();
        let total: f64 = e.iter().sum();
        assert!(w.iter().zip(&e).all(|(w, e)| (w - e / total).abs() < 1e-14), "{w:?} {e:?}");
    }
    let error = alibi::call(&ramp(&[3]), 1.0).expect_err("a row without a batch").to_string();
    assert!(error.contains("alibi"), "{error}");
    Ok(())
}

#[test]
fn they_pass_opcheck_and_have_gradients() -> Result<()> {
    for op in [turned::op(), added::op(), alibi::op(), straight_through::op()] {
        opcheck(&op, &[]).into_result()?;
    }
    let x = ramp(&[3, 4]).with_requires_grad()?;
    let y = gumbel_softmax::call(&x, &Tensor::from_vec(vec![0.5], [1])?, Some(&key(1)), 0.0)?;
    let square = minitensor_ops::arithmetic::multiply::call(&y, &y)?;
    let grads =
        minitensor::autograd::grad(&[square], std::slice::from_ref(&x), &[Some(ramp(&[3, 4]))], Default::default())?;
    assert!(grads[0].as_ref().expect("a gradient").to_vec::<f64>()?.iter().any(|g| *g != 0.0));
    let registered = |name: &str| minitensor::op::registry::get(name).is_ok();
    assert!(registered("noise::added") && registered("given::noise_added") && registered("given::alibi"));
    Ok(())
}

#[test]
fn a_key_has_two_elements() -> Result<()> {
    use minitensor_ops::random::skip;

    assert_eq!(skip::call(&key(7), 5)?.to_vec::<u64>()?, [7, 3]);
    let error = skip::call(&Tensor::from_vec(vec![7_u64], [1])?, 5).expect_err("it has one element").to_string();
    assert!(error.contains("'random::skip'") && error.contains("[2]"), "{error}");
    Ok(())
}

/// `x`, where its position is even. The gradient is written, and the position has none.
#[custom_op(name = "drawn::even", backward = |d| { x: where(remainder(at, 2) == 0, d, 0), at: none })]
pub fn even<T: Float>(x: T, #[position(-1)] at: T) -> T {
    if at.remainder(2.0) == 0.0 { x } else { 0.0 }
}

#[test]
fn a_written_gradient_may_omit_that_of_a_position() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, 2.0, 3.0], [3])?.with_requires_grad()?;
    let y = even::call(&x)?;
    let grads = minitensor::autograd::grad(
        &[minitensor_ops::reduction::sum::call(&y, None, false, None)?],
        &[x],
        &[None],
        Default::default(),
    )?;
    assert_eq!(grads[0].as_ref().map(|d| d.to_vec::<f64>()).transpose()?, Some(vec![1.0, 0.0, 1.0]));
    opcheck(&even::op(), &[]).into_result()
}
