//! Whether long reductions keep their digits.

use super::layouts::results;
use super::opcheck::with;
use super::sample::Sample;
use super::values::{Random, numbers};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Body, OpRef};

/// Enough that adding one by one in single precision shows.
const LONG: usize = 100_003;

/// A float input grows along its last axis; where the output does not, it is a reduction. Single precision must then agree with
/// double precision.
pub fn long_rows_keep_their_digits(op: &OpRef, sample: &Sample) -> Result<()> {
    let [Some(t)] = &sample.inputs[..] else { return Ok(()) };
    if t.dtype() != DType::F64 || t.ndim() == 0 || matches!(op.body, Body::Element(_)) {
        return Ok(());
    }
    let mut random = Random::new(7);
    for (dtype, n, tolerance) in [(DType::F32, LONG, 3e-6), (DType::F16, 4096, 4e-3), (DType::Bf16, 4096, 3e-2)] {
        let row = random.tensor(&[n], DType::F64, 0.0, 2.0 / (n as f64).sqrt())?.cast(dtype)?;
        let long = Sample { inputs: vec![Some(row.clone())], attrs: sample.attrs.clone() };
        let wide = Sample { inputs: vec![Some(row.cast(DType::F64)?)], attrs: sample.attrs.clone() };
        let (Ok(narrow), Ok(wide)) = (results(op, &long), results(op, &wide)) else { continue };
        for (a, b) in narrow.iter().zip(&wide) {
            if b.numel() != 1 || a.dtype() != dtype || b.dtype() != DType::F64 {
                continue;
            }
            let (x, y) = (numbers(a)?[0], numbers(b)?[0]);
            if y.is_finite() && y.abs() > 1e-3 && (x - y).abs() > tolerance * y.abs() {
                return Err(Error::runtime(format!(
                    "the result is {x}, in double precision {y}; add up pairwise, and f16 in f32{}",
                    with(op, &long)
                )));
            }
        }
    }
    Ok(())
}
