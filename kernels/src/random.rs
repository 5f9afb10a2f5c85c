//! Random numbers as functions of a key (Philox 4×32-10; Salmon et al., «Parallel random numbers: as easy as 1, 2, 3», 2011).
//!
//! A key and the index of a block determine the numbers, so they do not depend on the number of threads or on the device.

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
        let out = philox([at as u32, (at >> 32) as u32, 0, 0], [self.seed as u32, (self.seed >> 32) as u32]);
        [u64::from(out[0]) << 32 | u64::from(out[1]), u64::from(out[2]) << 32 | u64::from(out[3])]
    }

    /// Two uniform numbers in `[0, 1)`: multiples of `1 / steps`, with a power of two of at most 2⁵³.
    #[inline]
    pub fn uniform(self, block: usize, steps: f64) -> [f64; 2] {
        self.block(block).map(|word| (unit(word) * steps).floor() / steps)
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

#[inline]
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
#[inline]
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_agrees_with_the_test_vectors_of_its_authors() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
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
