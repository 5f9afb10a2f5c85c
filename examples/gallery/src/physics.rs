//! Potentials, laws and integrators of physics.

use minitensor_plugin_sdk::prelude::*;

/// The potential `4·depth·((s/r)¹² − (s/r)⁶)` of two neutral atoms (Lennard-Jones, 1931).
#[custom_op]
pub fn lennard_jones<T: Float>(r: T, #[default = 1.0] depth: f64, #[default = 1.0] size: f64) -> T {
    let sixth = (size / r).powi(6);
    4.0 * depth * sixth * (sixth - 1.0)
}

/// The potential `depth·(1 − e^(−width·(r − rest)))²` of a molecule of two atoms (Morse, 1929).
#[custom_op]
pub fn morse<T: Float>(
    r: T,
    #[default = 1.0] depth: f64,
    #[default = 1.0] width: f64,
    #[default = 1.0] rest: f64,
) -> T {
    depth * (-width * (r - rest)).exp_m1().square()
}

/// The spectral radiance of a black body by frequency, in units where h = c = k = 1 (Planck, 1900).
#[custom_op]
pub fn planck<T: Float>(frequency: T, temperature: T) -> T {
    // Above 800, the exponential is 0 already.
    let x = (frequency / temperature).minimum(800.0);
    2.0 * frequency.powi(3) * (-x).exp() / -(-x).exp_m1()
}

/// The pressure of a real gas in reduced units, `8t / (3v − 1) − 3 / v²` (van der Waals, 1873).
#[custom_op]
pub fn van_der_waals<T: Float>(temperature: T, volume: T) -> T {
    8.0 * temperature / (3.0 * volume - 1.0) - 3.0 / volume.square()
}

/// The occupation of a state by fermions, `1 / (e^((energy − potential) / temperature) + 1)` (Fermi, 1926; Dirac, 1926).
#[custom_op]
pub fn fermi_dirac<T: Float>(energy: T, potential: T, temperature: T) -> T {
    ((potential - energy) / temperature).clip(-800.0, 800.0).sigmoid()
}

/// One leapfrog step of a pendulum, which keeps its area in phase space (Verlet, 1967).
#[custom_op(dtype = (angle: T, momentum: T) -> (next_angle: T, next_momentum: T))]
pub fn leapfrog<T: Float>(angle: T, momentum: T, #[default = 0.1] step: f64) -> (T, T) {
    let half = momentum - 0.5 * step * angle.sin();
    let angle = angle + step * half;
    (angle, half - 0.5 * step * angle.sin())
}
