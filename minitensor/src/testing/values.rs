//! Pseudorandom and special values for samples.

use crate::dtype::{DType, Kind};
use crate::error::Result;
use crate::tensor::Tensor;

/// A small pseudorandom number generator (Vigna's splitmix64), independent of the one that users seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `[low, high)`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (self.next() >> 11) as f64 / (1u64 << 53) as f64 * (high - low)
    }

    /// A tensor of such numbers. An integer tensor has values from 0 to 2.
    pub fn tensor(&mut self, shape: &[usize], dtype: DType, low: f64, high: f64) -> Result<Tensor> {
        let n = shape.iter().product();
        let values: Vec<f64> = (0..n)
            .map(|_| match dtype.kind() {
                Kind::Bool => (self.next() % 2) as f64,
                Kind::Signed | Kind::Unsigned => (self.next() % 3) as f64,
                _ => self.between(low, high),
            })
            .collect();
        Tensor::from_vec(values, shape)?.cast(dtype)
    }
}

/// The elements of a float tensor. For a complex tensor, the real and imaginary parts in turn.
pub fn numbers(t: &Tensor) -> Result<Vec<f64>> {
    if t.dtype().kind() == Kind::Complex {
        let (re, im) = (numbers(&t.detach().part_view(0)?)?, numbers(&t.detach().part_view(1)?)?);
        return Ok(re.into_iter().zip(im).flat_map(|(a, b)| [a, b]).collect());
    }
    t.detach().cast(DType::F64)?.to_vec::<f64>()
}

/// A tensor of these values with the shape and dtype of another. As in [`numbers`], a complex element has two values.
pub fn tensor_like(t: &Tensor, values: Vec<f64>) -> Result<Tensor> {
    if t.dtype().kind() == Kind::Complex {
        let part = |k: usize| Tensor::from_vec(values.iter().copied().skip(k).step_by(2).collect(), t.shape().clone());
        let both = Tensor::empty(t.shape().clone(), DType::C128, t.device())?;
        both.part_view(0)?.copy_from(&part(0)?)?;
        both.part_view(1)?.copy_from(&part(1)?)?;
        return both.cast(t.dtype());
    }
    Tensor::from_vec(values, t.shape().clone())?.cast(t.dtype())?.to_device(t.device())
}

/// Whether two tensors have equal values within a relative tolerance. NaN equals NaN.
pub fn close(a: &Tensor, b: &Tensor, tolerance: f64) -> Result<bool> {
    if a.shape() != b.shape() || a.dtype() != b.dtype() {
        return Ok(false);
    }
    let near = |x: f64, y: f64| {
        x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * x.abs().max(y.abs()).max(1e-3)
    };
    Ok(numbers(a)?.into_iter().zip(numbers(b)?).all(|(x, y)| near(x, y)))
}
