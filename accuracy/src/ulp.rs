//! The unit in the last place.

/// Returns the error of a result in units in the last place of `f32`.
pub fn error(got: f32, want: f64) -> f64 {
    let nearest = want as f32;
    if got.is_nan() && nearest.is_nan() {
        return 0.0;
    }
    if got == nearest && (got != 0.0 || got.is_sign_negative() == want.is_sign_negative()) && nearest.is_infinite() {
        return 0.0;
    }
    if got.is_nan() || nearest.is_nan() || got.is_infinite() {
        return f64::INFINITY;
    }
    // The sign of zero must be correct too.
    if want == 0.0 && got == 0.0 && got.is_sign_negative() != want.is_sign_negative() {
        return f64::INFINITY;
    }
    let exponent = ((want.abs().to_bits() >> 52) as i32 - 1023).clamp(-126, 127);
    (got as f64 - want).abs() / 2f64.powi(exponent - 23)
}
