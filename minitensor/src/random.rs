//! Random numbers. They are functions of a key: a tensor of two `uint64`, the seed and the number of the first block.
//!
//! [`next_key`] takes keys from the global generator, in the order of the calls. Everything else here is pure.

use std::any::Any;
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use minitensor_kernels::Cast;
use minitensor_kernels::random::{BLOCKS, Key};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::fork::lock::try_lock;
use crate::graph::record;
use crate::lazy;
use crate::scoped::Scoped;
use crate::tensor::{Device, Shape, Tensor};

/// The key of the next draw from the global generator.
static NEXT: Mutex<Key> = Mutex::new(Key { seed: 0x853c_49e6_748f_ea9b, counter: 0 });

/// Acquires the generator's lock for a fork. `None` if another thread holds it.
pub(crate) fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&NEXT)
}

thread_local! {
    /// The generator of this thread, within [`Own`].
    static OWN: Cell<Option<Key>> = const { Cell::new(None) };
}

/// A guard: until it is dropped, this thread has a generator of its own in place of the global one.
#[must_use = "dropping the guard ends the generator"]
pub(crate) struct Own(#[allow(dead_code)] Scoped<Option<Key>>);

impl Own {
    /// Begins with a seed.
    pub fn new(seed: u64) -> Own {
        Own(Scoped::new(&OWN, Some(Key { seed, counter: 0 })))
    }

    /// Begins where the generator of this thread is, which stays there.
    pub fn copied() -> Own {
        Own(Scoped::new(&OWN, Some(with_next(|next| *next))))
    }
}

/// Calls `f` with the key of the next draw on this thread.
fn with_next<R>(f: impl FnOnce(&mut Key) -> R) -> R {
    match OWN.get() {
        Some(mut next) => {
            let result = f(&mut next);
            OWN.set(Some(next));
            result
        }
        None => f(&mut NEXT.lock().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// Resets the global generator with a seed.
pub fn manual_seed(seed: u64) {
    record::refuse("sets the seed of the random numbers");
    with_next(|next| *next = Key { seed, counter: 0 });
}

/// The state of the global generator: its seed, and the number of the next block.
pub fn state() -> (u64, u64) {
    with_next(|next| (next.seed, next.counter))
}

/// Sets the state of the global generator to one that [`state`] returned.
pub fn set_state((seed, counter): (u64, u64)) {
    record::refuse("sets the state of the random numbers");
    lazy::note_effect();
    with_next(|next| *next = Key { seed, counter });
}

/// The numbers in a block of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Two floating-point numbers.
    Floats,
    /// One integer.
    Integer,
}

impl Block {
    /// The number of blocks for `n` numbers.
    fn count(self, n: usize) -> usize {
        match self {
            Block::Floats => n.div_ceil(2),
            Block::Integer => n,
        }
    }
}

thread_local! {
    /// The number of keys that this thread has taken.
    static TAKEN: Cell<u64> = const { Cell::new(0) };

    /// The error of taking a key, within [`Forbid`].
    static FORBIDDEN: Cell<Option<fn() -> Error>> = const { Cell::new(None) };
}

/// A guard for calls that must mean the same each time, because they may run again, or in another order: until it is dropped, this
/// thread cannot take keys from the global generator, not even on [`Device::Meta`].
#[must_use = "dropping the guard allows keys again"]
pub struct Forbid(#[allow(dead_code)] Scoped<Option<fn() -> Error>>);

impl Forbid {
    /// Forbids keys. An attempt to take one returns this error.
    pub fn new(error: fn() -> Error) -> Forbid {
        Forbid(Scoped::new(&FORBIDDEN, Some(error)))
    }

    /// Allows keys within another guard, for a call on [`Device::Meta`], which has no values.
    pub(crate) fn lifted() -> Forbid {
        Forbid(Scoped::new(&FORBIDDEN, None))
    }
}

/// The number of keys that this thread has taken. A call that changes it draws random numbers.
pub fn keys_taken() -> u64 {
    TAKEN.get()
}

/// The next key of the global generator, for `n` numbers. Keys on [`Device::Meta`] take nothing from the generator.
///
/// # Errors
/// Within [`Forbid`].
pub fn next_key(n: usize, block: Block, device: Device) -> Result<Tensor> {
    if let Some(error) = FORBIDDEN.get() {
        return Err(error());
    }
    lazy::note_effect();
    if device == Device::Meta {
        return Tensor::empty([2], DType::U64, device);
    }
    TAKEN.set(TAKEN.get() + 1);
    let key = with_next(|next| {
        let key = *next;
        next.counter = key.counter.wrapping_add(block.count(n) as u64);
        key
    });
    let key = Tensor::from_fn([2], |_| [key.seed, key.counter])?.to_device(device)?;
    record::note_key(&key, n, block);
    Ok(key)
}

/// Reads a key.
fn read(key: &Tensor) -> Result<Key> {
    if key.shape()[..] != [2] {
        return Err(Error::value(format!("a key has two elements, the seed and a counter; got shape {}", key.shape())));
    }
    let key = key.to_device(Device::Cpu)?;
    let words = key.view::<u64>()?;
    Ok(Key { seed: words[[0]], counter: words[[1]] })
}

/// Uniform numbers in `[0, 1)`.
pub fn uniform(key: &Tensor, shape: impl Into<Shape>, dtype: DType) -> Result<Tensor> {
    let shape = shape.into();
    floats(key, shape, dtype, |key, shape| {
        with_dtype!(@ dtype, T, {
            Tensor::from_fn::<T, { 2 * BLOCKS }>(shape, |group| key.uniform(group))
        }; F16 Bf16 F32 F64; else { unreachable!("floats have these dtypes") })
    })
}

/// Numbers of the standard normal distribution.
pub fn normal(key: &Tensor, shape: impl Into<Shape>, dtype: DType) -> Result<Tensor> {
    floats(key, shape.into(), dtype, |key, shape| {
        with_dtype!(@ dtype, T, {
            Tensor::from_fn::<T, 2>(shape, |block| key.normal(block).map(Cast::<T>::cast))
        }; F16 Bf16 F32 F64; else { unreachable!("floats have these dtypes") })
    })
}

fn floats(key: &Tensor, shape: Shape, dtype: DType, draw: impl Fn(Key, Shape) -> Result<Tensor>) -> Result<Tensor> {
    if !dtype.is_differentiable() || dtype.is_complex() {
        return Err(Error::type_(format!("random floats need a floating dtype, got {dtype}")));
    }
    if key.device() == Device::Meta {
        return Tensor::empty(shape, dtype, key.device());
    }
    draw(read(key)?, shape)?.to_device(key.device())
}

/// Uniform integers from `low` to `high`, excluding `high`.
pub fn integers(key: &Tensor, low: i64, high: i64, shape: impl Into<Shape>) -> Result<Tensor> {
    if low >= high {
        return Err(Error::value(format!("random integers need low < high, got low = {low}, high = {high}")));
    }
    if key.device() == Device::Meta {
        return Tensor::empty(shape, DType::I64, key.device());
    }
    let words = read(key)?;
    Tensor::from_fn(shape, |block| [words.integer(block, low, high)])?.to_device(key.device())
}
