//! Random numbers as functions of a key (Philox 4×32-10; Salmon et al., «Parallel random numbers: as easy as 1, 2, 3», 2011).
//!
//! A key and the index of a block determine the numbers, so they do not depend on the number of threads or on the device.

use half::{bf16, f16};

use crate::Cast;
use crate::runtime::simd::clones;

/// The start of a sequence of random blocks. Sequences whose counters are at least their lengths apart don't overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The seed of the generator.
    pub seed: u64,
    /// The number of the first block.
    pub counter: u64,
}

impl Key {
    /// The two random words of a block.
    #[inline]
    pub fn block(self, index: usize) -> [u64; 2] {
        let at = self.counter.wrapping_add(index as u64);
        let [[a], [b], [c], [d]] = philox([[at], [at >> 32], [0], [0]], self.seed);
        [a << 32 | u64::from(b as u32), c << 32 | u64::from(d as u32)]
    }

    /// Uniform numbers in `[0, 1)`, two for each of [`BLOCKS`] blocks: multiples of 2⁻ᵇ, where `b` is the number of bits of the
    /// type's significand, because rounding more bits could result in 1.
    #[inline]
    pub fn uniform<T: Uniform>(self, group: usize) -> [T; 2 * BLOCKS] {
        let mut numbers = [T::of(0, 0); 2 * BLOCKS];
        uniform(self.counter.wrapping_add((group * BLOCKS) as u64), self.seed, &mut numbers);
        numbers
    }

    /// Two numbers of the standard normal distribution (Box and Muller, 1958).
    #[inline]
    pub fn normal(self, block: usize) -> [f64; 2] {
        let [a, b] = self.block(block).map(unit);
        let radius = (-2.0 * (1.0 - a).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * b).sin_cos();
        [radius * cos, radius * sin]
    }

    /// A uniform integer from `low` to `high`, excluding `high`, which must be greater than `low`.
    #[inline]
    pub fn integer(self, block: usize, low: i64, high: i64) -> i64 {
        let span = (i128::from(high) - i128::from(low)) as u128;
        // The high part of a 128-bit random number times the span. The bias is below 2⁻⁶⁴.
        let [a, b] = self.block(block);
        let high_part = u128::from(a) * span + ((u128::from(b) * span) >> 64);
        (i128::from(low) + (high_part >> 64) as i128) as i64
    }
}

/// The number of blocks that are computed at once, in vector registers.
pub const BLOCKS: usize = 16;

/// A number type with uniform random numbers.
pub trait Uniform: Copy {
    /// The number for a random word, by its high and its low half.
    fn of(high: u32, low: u32) -> Self;
}

macro_rules! uniform {
    ($($T:ty: $bits:literal),*) => {$(
        impl Uniform for $T {
            #[inline(always)]
            fn of(high: u32, _low: u32) -> Self {
                ((high >> (32 - $bits)) as i32 as f32 * (1.0 / (1u32 << $bits) as f32)).cast()
            }
        }
    )*};
}
uniform!(f32: 24, f16: 11, bf16: 8);

impl Uniform for f64 {
    #[inline(always)]
    fn of(high: u32, low: u32) -> Self {
        f64::from(high) * (1.0 / (1u64 << 32) as f64) + f64::from(low >> 11) * (1.0 / (1u64 << 53) as f64)
    }
}

clones! {
    <[T]> fn uniform(first: u64, seed: u64, to: &mut [T; 2 * BLOCKS]) where [T: Uniform] {
        let (mut low, mut high) = ([0; BLOCKS], [0; BLOCKS]);
        for lane in 0..BLOCKS {
            let at = first.wrapping_add(lane as u64);
            (low[lane], high[lane]) = (at, at >> 32);
        }
        let [a, b, c, d] = philox([low, high, [0; BLOCKS], [0; BLOCKS]], seed);
        for lane in 0..BLOCKS {
            to[2 * lane] = T::of(a[lane] as u32, b[lane] as u32);
            to[2 * lane + 1] = T::of(c[lane] as u32, d[lane] as u32);
        }
    }
}

/// The generator, for several counters. Of each number, the low 32 bits count: vectors have products of these, as 64 bits.
#[inline(always)]
fn philox<const N: usize>([mut a, mut b, mut c, mut d]: [[u64; N]; 4], seed: u64) -> [[u64; N]; 4] {
    const LOW: u64 = u32::MAX as u64;
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        for lane in 0..N {
            let (p, q) = ((a[lane] & LOW) * 0xD251_1F53, (c[lane] & LOW) * 0xCD9E_8D57);
            a[lane] = (q >> 32) ^ b[lane] ^ u64::from(key[0]);
            c[lane] = (p >> 32) ^ d[lane] ^ u64::from(key[1]);
            (b[lane], d[lane]) = (q, p);
        }
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    [a, b, c, d]
}

/// A number in `[0, 1)` with 53 random bits.
#[inline]
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_agrees_with_the_test_vectors_of_its_authors() {
        let words = |counter, seed| philox([[counter]; 4], seed).map(|[word]| word as u32);
        assert_eq!(words(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(words(u64::MAX, u64::MAX), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }

    #[test]
    fn uniform_numbers_are_the_high_bits_of_the_words() {
        let key = Key { seed: 0x1234_5678_9abc_def0, counter: u64::MAX - 20 };
        for group in 0..4 {
            let (doubles, floats) = (key.uniform::<f64>(group), key.uniform::<f32>(group));
            let (halves, brains) = (key.uniform::<f16>(group), key.uniform::<bf16>(group));
            for lane in 0..2 * BLOCKS {
                let word = key.block(group * BLOCKS + lane / 2)[lane % 2];
                assert_eq!(doubles[lane], unit(word));
                assert_eq!(f64::from(floats[lane]), (unit(word) * 16_777_216.0).floor() / 16_777_216.0);
                assert_eq!(halves[lane].to_f64(), (unit(word) * 2048.0).floor() / 2048.0);
                assert_eq!(brains[lane].to_f64(), (unit(word) * 256.0).floor() / 256.0);
            }
        }
    }

    #[test]
    fn a_later_counter_continues_the_sequence() {
        let key = Key { seed: 3, counter: u64::MAX - 1 };
        assert_eq!(key.block(5), Key { seed: 3, counter: 3 }.block(0));
        assert_ne!(key.block(0), Key { seed: 4, ..key }.block(0));
    }

    #[test]
    fn integers_cover_the_largest_range() {
        let key = Key { seed: 1, counter: 0 };
        let drawn: Vec<i64> = (0..1000).map(|i| key.integer(i, i64::MIN, i64::MAX)).collect();
        assert!(drawn.iter().any(|v| *v < i64::MIN / 2) && drawn.iter().any(|v| *v > i64::MAX / 2));
        assert!((0..1000).all(|i| key.integer(i, -3, -2) == -3));
    }
}
