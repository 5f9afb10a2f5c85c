//! Fills in tuned attributes that the caller did not pass.

use std::fmt::Write;
use std::time::Instant;

use smallvec::SmallVec;

use super::backend::compute;
use super::check::{Checked, Flat};
use crate::attr::{Attr, AttrKind};
use crate::autograd::NoGrad;
use crate::backend::Wanted;
use crate::error::{Error, Result};
use crate::kernels::{simd, threads};
use crate::op::{OpDef, OpRef};
use crate::random::Forbid;
use crate::tensor::{Device, Tensor};
use crate::tuning::{self, Candidates, Values};

/// The attributes of a call with a value for each tuned one. `None` if no value is missing.
pub fn complete(
    op: &OpRef,
    inputs: &[Option<&Tensor>],
    attrs: &[Attr],
    checked: &Checked,
) -> Result<Option<SmallVec<[Attr; 4]>>> {
    let missing: SmallVec<[usize; 2]> =
        (0..attrs.len().min(op.attrs.len())).filter(|i| is_missing(op, attrs, *i)).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let candidates = |i: &usize| if let AttrKind::Tuned(candidates) = op.attrs[*i].kind { candidates } else { &[] };
    let candidates = Candidates(missing.iter().map(candidates).collect());
    let filled = |values: &Values| {
        let mut attrs: SmallVec<[Attr; 4]> = attrs.into();
        missing.iter().zip(values).for_each(|(i, value)| attrs[*i] = Attr::Int(*value));
        attrs
    };
    let is_empty = inputs.iter().flatten().any(|t| t.numel() == 0);
    if checked.device != Device::Cpu || is_empty || !tuning::is_enabled() {
        return Ok(Some(filled(&candidates.first())));
    }
    let class = class(op, inputs, attrs);
    if let Some(values) = tuning::find(&class).filter(|values| candidates.admit(values)) {
        return Ok(Some(filled(&values)));
    }
    let measured = measure(op, inputs, checked, &candidates, filled)?;
    let values = measured.clone().unwrap_or_else(|| candidates.first());
    if let Some(values) = measured {
        tuning::keep(class, values);
    }
    Ok(Some(filled(&values)))
}

fn is_missing(op: &OpDef, attrs: &[Attr], i: usize) -> bool {
    attrs[i] == Attr::None && op.attrs[i].kind.is_tuned()
}

/// Runs the call with all candidates, without effects: nothing is recorded, and copies of changed inputs are changed.
fn measure(
    op: &OpRef,
    inputs: &[Option<&Tensor>],
    checked: &Checked,
    candidates: &Candidates,
    filled: impl Fn(&Values) -> SmallVec<[Attr; 4]>,
) -> Result<Option<Values>> {
    let _mode = NoGrad::new();
    let _keys = Forbid::new(|| {
        Error::runtime("an op that is tuned cannot take numbers from the global generator; give it a key as an input")
    });
    let own = |(i, t): (usize, &Option<&Tensor>)| {
        t.map(|t| if op.parameter(i).mutated { t.detach().copied() } else { Ok(t.detach()) }).transpose()
    };
    let own: Vec<Option<Tensor>> = inputs.iter().enumerate().map(own).collect::<Result<_>>()?;
    let inputs: Flat<'_> = own.iter().map(Option::as_ref).collect();
    let run = |values: &Values| compute(op, &inputs, &filled(values), checked, Wanted::ALL).map(drop);
    let begin = Instant::now();
    tuning::fastest(candidates.combinations(), run, || begin.elapsed())
}

/// The class of a call, such as `blur(float32[1024, 64]; radius=2, tile=16|32|64; 2 threads, avx512)`. Sizes are rounded up to powers of
/// two. `'` after a shape means that the tensor is not contiguous.
fn class(op: &OpDef, inputs: &[Option<&Tensor>], attrs: &[Attr]) -> String {
    let mut text = format!("{}(", op.name);
    for (i, input) in inputs.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        let _ = match input {
            None => write!(text, "{comma}None"),
            Some(t) => {
                let sizes: Vec<usize> = t.shape().iter().map(|n| n.next_power_of_two()).collect();
                let mark = if t.is_contiguous() { "" } else { "'" };
                write!(text, "{comma}{}{sizes:?}{mark}", t.dtype())
            }
        };
    }
    for (i, (attr, value)) in op.attrs.iter().zip(attrs).enumerate() {
        let comma = if i == 0 { "; " } else { ", " };
        let _ = match attr.kind {
            AttrKind::Tuned(candidates) if *value == Attr::None => {
                let candidates: Vec<String> = candidates.iter().map(i64::to_string).collect();
                write!(text, "{comma}{}={}", attr.name, candidates.join("|"))
            }
            _ => write!(text, "{comma}{}={value}", attr.name),
        };
    }
    let _ = write!(text, "; {} threads, {})", threads::num_threads(), simd::level().name());
    text.replace(char::is_control, " ")
}
