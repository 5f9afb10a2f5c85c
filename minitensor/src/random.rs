//! Random numbers. Each one is a function of a counter and a key (Philox 4×32-10; Salmon et al., «Parallel random numbers: as
//! easy as 1, 2, 3», 2011), so results do not depend on the number of threads.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use minitensor_kernels::Cast;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::fork::try_lock;
use crate::tensor::{Device, Shape, Tensor};

/// The state of the global generator: a seed, and the number of drawn blocks.
struct State {
    seed: u64,
    drawn: u64,
}

static STATE: Mutex<State> = Mutex::new(State { seed: 0x853c_49e6_748f_ea9b, drawn: 0 });

/// Acquires the generator's lock for a fork. `None` if another thread holds it.
pub(crate) fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&STATE)
}

/// Resets the global generator with a seed.
pub fn manual_seed(seed: u64) {
    *STATE.lock().unwrap_or_else(PoisonError::into_inner) = State { seed, drawn: 0 };
}

/// The numbers of one draw. Block `i` is a function of the seed, the draw and `i`.
struct Stream {
    seed: u64,
    first: u64,
}

impl Stream {
    fn draw(blocks: usize) -> Stream {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        let first = state.drawn;
        state.drawn = state.drawn.wrapping_add(blocks as u64);
        Stream { seed: state.seed, first }
    }

    /// The two 64-bit words of a block.
    fn block(&self, index: usize) -> [u64; 2] {
        let at = self.first.wrapping_add(index as u64);
        let out = philox([at as u32, (at >> 32) as u32, 0, 0], [self.seed as u32, (self.seed >> 32) as u32]);
        [u64::from(out[0]) << 32 | u64::from(out[1]), u64::from(out[2]) << 32 | u64::from(out[3])]
    }
}

fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    let product = |a: u32, b: u32| {
        let p = u64::from(a) * u64::from(b);
        ((p >> 32) as u32, p as u32)
    };
    for _ in 0..10 {
        let (h0, l0) = product(0xD251_1F53, counter[0]);
        let (h1, l1) = product(0xCD9E_8D57, counter[2]);
        counter = [h1 ^ counter[1] ^ key[0], l1, h0 ^ counter[3] ^ key[1], l0];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// A number in `[0, 1)` with 53 random bits.
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Uniform numbers in `[0, 1)`.
pub fn uniform(shape: impl Into<Shape>, dtype: DType, device: Device) -> Result<Tensor> {
    // The number of bits is that of the dtype's significand: rounding more bits could result in 1.
    let bits = match dtype {
        DType::F64 => 53,
        DType::F32 => 24,
        DType::F16 => 11,
        _ => 8,
    };
    let keep = (1u64 << bits) as f64;
    floats(shape.into(), dtype, device, |[a, b]| [(unit(a) * keep).floor() / keep, (unit(b) * keep).floor() / keep])
}

/// Numbers of the standard normal distribution (Box and Muller, 1958).
pub fn normal(shape: impl Into<Shape>, dtype: DType, device: Device) -> Result<Tensor> {
    floats(shape.into(), dtype, device, |[a, b]| {
        let radius = (-2.0 * (1.0 - unit(a)).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * unit(b)).sin_cos();
        [radius * cos, radius * sin]
    })
}

fn floats(shape: Shape, dtype: DType, device: Device, two: impl Fn([u64; 2]) -> [f64; 2] + Sync) -> Result<Tensor> {
    if !dtype.is_differentiable() || dtype.is_complex() {
        return Err(Error::type_(format!("random floats take floating dtypes, got {dtype}")));
    }
    if device == Device::Meta {
        return Tensor::empty(shape, dtype, device);
    }
    let stream = Stream::draw(shape.checked_numel()?.div_ceil(2));
    with_dtype!(@ dtype, T, {
        Tensor::from_fn::<T, 2>(shape, |i| two(stream.block(i)).map(Cast::<T>::cast))?.to_device(device)
    }; F16 Bf16 F32 F64; else { unreachable!("floats have these dtypes") })
}

/// Uniform integers from `low` to `high`, excluding `high`.
pub fn integers(low: i64, high: i64, shape: impl Into<Shape>, device: Device) -> Result<Tensor> {
    if low >= high {
        return Err(Error::value(format!("random integers need low < high, got low = {low}, high = {high}")));
    }
    let shape = shape.into();
    if device == Device::Meta {
        return Tensor::empty(shape, DType::I64, device);
    }
    let n = shape.checked_numel()?;
    let span = (i128::from(high) - i128::from(low)) as u128;
    let stream = Stream::draw(n);
    let draw = |i: usize| {
        // The high part of a 128-bit random number times the span. The bias is below 2⁻⁶⁴.
        let [a, b] = stream.block(i);
        let high_part = u128::from(a) * span + ((u128::from(b) * span) >> 64);
        (i128::from(low) + (high_part >> 64) as i128) as i64
    };
    Tensor::from_fn(shape, |i| [draw(i)])?.to_device(device)
}
