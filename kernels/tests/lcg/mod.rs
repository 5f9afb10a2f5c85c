//! A linear congruential generator: the same numbers in every run.

/// The state; any seed is valid.
pub struct Lcg(pub u64);

#[allow(dead_code)]
impl Lcg {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33 ^ self.0 << 31
    }

    /// A number in `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 16) % n as u64) as usize
    }

    /// A number between −1 and 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
