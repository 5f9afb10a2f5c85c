//! Fills in tuned attributes that the caller did not pass.

use std::fmt::Write;
use std::time::Instant;

use smallvec::SmallVec;

use super::backend::compute;
use super::capture::Hiding;
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

/// The attributes of a call with a value for each tuned one.
pub struct Completed {
    pub attrs: SmallVec<[Attr; 4]>,
    /// A call that may be measured cannot draw from the global generator, whether or not it is measured.
    _keys: Forbid,
}

/// Fills in the values that are missing. `None` if none is.
pub fn complete(
    op: &OpRef,
    inputs: &[Option<&Tensor>],
    attrs: &[Attr],
    checked: &Checked<'_>,
) -> Result<Option<Completed>> {
    let missing: SmallVec<[usize; 2]> =
        (0..attrs.len().min(op.attrs.len())).filter(|i| is_missing(op, attrs, *i)).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let _keys = Forbid::new(|| {
        Error::runtime(
            "a call that leaves a tuned attribute open may run several times, so it cannot take numbers from the global \
             generator; pass the attribute, or give the op a key as an input",
        )
    });
    let (attrs, missing) = without_choice(op, attrs, &missing);
    let candidates = Candidates(missing.iter().map(|i| candidates(op, *i)).collect());
    let filled = |values: &Values| {
        let mut attrs = attrs.clone();
        missing.iter().zip(values).for_each(|(i, value)| attrs[*i] = Attr::Int(*value));
        attrs
    };
    let completed = |values: &Values| Ok(Some(Completed { attrs: filled(values), _keys }));
    let is_empty = inputs.iter().flatten().any(|t| t.numel() == 0);
    if missing.is_empty() || checked.device != Device::Cpu || is_empty || !tuning::is_enabled() {
        return completed(&candidates.first());
    }
    let class = class(op, inputs, &attrs);
    if let Some(values) = tuning::find(&class).filter(|values| candidates.admit(values)) {
        return completed(&values);
    }
    if !tuning::has_room(&class) {
        return completed(&candidates.first());
    }
    match measure(op, inputs, checked, &candidates.combinations(), filled)? {
        Some(values) => {
            tuning::keep(class, values.clone());
            completed(&values)
        }
        None => completed(&candidates.first()),
    }
}

fn is_missing(op: &OpDef, attrs: &[Attr], i: usize) -> bool {
    attrs[i] == Attr::None && op.attrs[i].kind.is_tuned()
}

fn candidates(op: &OpDef, i: usize) -> &'static [i64] {
    if let AttrKind::Tuned(candidates) = op.attrs[i].kind { candidates } else { &[] }
}

/// Fills in the missing attributes that have one candidate. Returns the attributes, and those that are still missing.
fn without_choice(op: &OpDef, attrs: &[Attr], missing: &[usize]) -> (SmallVec<[Attr; 4]>, SmallVec<[usize; 2]>) {
    let mut attrs: SmallVec<[Attr; 4]> = attrs.into();
    let (one, several) = missing.iter().partition::<Vec<usize>, _>(|i| candidates(op, **i).len() == 1);
    one.into_iter().for_each(|i| attrs[i] = Attr::Int(candidates(op, i)[0]));
    (attrs, several.into())
}

/// Runs the call with each combination of candidates. Observers do not see these runs, and they do not change the inputs: an input
/// that the op changes in place is copied. A composite op may change any input, so all are copied.
fn measure(
    op: &OpRef,
    inputs: &[Option<&Tensor>],
    checked: &Checked<'_>,
    combinations: &[Values],
    filled: impl Fn(&Values) -> SmallVec<[Attr; 4]>,
) -> Result<Option<Values>> {
    let _hidden = Hiding::new();
    let is_loop = op.body.is_loop();
    let _mode = is_loop.then(NoGrad::new);
    let own = |(i, t): (usize, &Option<&Tensor>)| {
        t.map(|t| match t.detach() {
            own if is_loop && !op.parameter(i).mutated => Ok(own),
            own => own.copied().and_then(|own| if t.requires_grad() { own.with_requires_grad() } else { Ok(own) }),
        })
        .transpose()
    };
    let own: Vec<Option<Tensor>> = inputs.iter().enumerate().map(own).collect::<Result<_>>()?;
    let inputs: Flat<'_> = own.iter().map(Option::as_ref).collect();
    let run = |values: &Values| compute(op, &inputs, &filled(values), checked, Wanted::ALL).map(drop);
    let begin = Instant::now();
    tuning::fastest(combinations, run, || begin.elapsed())
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
    let described = op.attrs.iter().zip(attrs).filter_map(|(attr, value)| match attr.kind {
        AttrKind::Tuned(candidates) if *value == Attr::None => {
            let candidates: Vec<String> = candidates.iter().map(i64::to_string).collect();
            Some(format!("{}={}", attr.name, candidates.join("|")))
        }
        // The value of a float changes the results, not the speed.
        AttrKind::Float | AttrKind::Floats => None,
        _ => Some(format!("{}={value}", attr.name)),
    });
    let described: Vec<String> = described.collect();
    let _ = write!(text, "; {}", described.join(", "));
    let _ = write!(text, "; {} threads, {})", threads::num_threads(), simd::level().name());
    text.replace(char::is_control, " ")
}
