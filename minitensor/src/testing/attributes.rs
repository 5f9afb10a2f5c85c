//! Checks of arguments and attributes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use super::layouts::results;
use super::opcheck::quietly;
use super::sample::Sample;
use super::values::{close, numbers};
use crate::attr::{Attr, AttrKind};
use crate::dispatch::Produced;
use crate::dispatch::capture::{Observer, observe};
use crate::dtype::DType;
use crate::error::{Error, Result, counted};
use crate::op::{Arg, Arity, OpRef, dispatch, slots};

/// Passes a wrong number of inputs, then a misspelled keyword. Both must fail before the kernel runs, with an error that
/// names the op.
pub fn wrong_arguments_are_refused(op: &OpRef, sample: &Sample) -> Result<()> {
    let args: Vec<Arg<'_>> = sample.inputs.iter().map(|t| t.as_ref().into()).collect();
    let mut wrong = vec![Vec::new()];
    if op.inputs.iter().all(|i| i.arity != Arity::Variadic) {
        wrong.push(args.iter().copied().chain(args.first().copied()).collect());
    }
    for wrong in wrong.iter().filter(|w| w.len() != args.len()) {
        let variadic = op.inputs.first().is_some_and(|i| i.arity == Arity::Variadic);
        match quietly(|| dispatch(op, wrong, &sample.attrs)) {
            Ok(_) if variadic => {}
            Ok(_) => {
                return Err(Error::runtime(format!(
                    "a call with the wrong number of inputs ({}) is accepted",
                    wrong.len()
                )));
            }
            Err(e) if e.message().contains(op.name.as_ref()) => {}
            Err(e) => {
                return Err(Error::runtime(format!(
                    "the error for {} does not name the op: {e}",
                    counted(wrong.len(), "input")
                )));
            }
        }
    }
    match slots(op, op.inputs.len(), &["no_such_argument"]) {
        Err(e) if e.message().contains("no_such_argument") => Ok(()),
        _ => Err(Error::runtime("an unknown keyword is accepted")),
    }
}

/// The largest result that is computed. A sample never produces a larger one by mistake.
const LARGE: usize = 1 << 20;

/// Attributes outside their domain must be errors, not NaN and not a panic. Large integers must keep their last digit.
pub fn domains_are_enforced(op: &OpRef, sample: &Sample) -> Result<()> {
    let clean = has_nan(&results(op, &sample.copied()?)?)?;
    for (i, attr) in op.attrs.iter().enumerate() {
        let hostile: Vec<Attr> = match attr.kind {
            AttrKind::Float => vec![Attr::Float(f64::NAN), Attr::Float(-1.0)],
            AttrKind::Int => vec![Attr::Int(1000), Attr::Int(-1000)],
            AttrKind::Ints => {
                vec![Attr::Ints(vec![1000].into()), Attr::Ints(vec![-1000, 7].into()), Attr::Ints(vec![].into())]
            }
            AttrKind::Str => vec![Attr::Str("no such word".into())],
            _ => Vec::new(),
        };
        for value in hostile {
            let text = format!("{}={value}", attr.name);
            let is_nan = matches!(value, Attr::Float(v) if v.is_nan());
            let other = with(sample, i, value)?;
            // The size is intentional. Computing so large a result adds nothing to the check.
            if quietly(|| other.infer(op)).is_ok_and(|outputs| outputs.iter().any(|t| t.numel() > LARGE)) {
                continue;
            }
            let outcome = quietly(|| results(op, &other));
            match outcome {
                Err(e) if e.message().starts_with("panicked") => return Err(Error::runtime(format!("{text} {e}"))),
                Err(_) => {}
                // A NaN result is correct if the NaN attribute enters the arithmetic.
                Ok(outputs) if is_nan && (has_nan(&outputs)? || ignored(op, sample, i, &outputs)?) => {}
                Ok(_) if is_nan => {
                    return Err(Error::runtime(format!(
                        "{text} is accepted and changes the result; add a `where` clause"
                    )));
                }
                Ok(outputs) if !clean && has_nan(&outputs)? => {
                    return Err(Error::runtime(format!(
                        "{text} is accepted and returns NaN; add a `where` clause that states the domain"
                    )));
                }
                Ok(_) => {}
            }
        }
        if attr.kind == AttrKind::Int {
            exact_integers(op, sample, i)?;
        }
    }
    Ok(())
}

fn with(sample: &Sample, index: usize, value: Attr) -> Result<Sample> {
    let mut other = sample.copied()?;
    other.attrs[index] = value;
    Ok(other)
}

fn has_nan(outputs: &[crate::Tensor]) -> Result<bool> {
    Ok(outputs.iter().map(numbers).collect::<Result<Vec<_>>>()?.iter().flatten().any(|v| v.is_nan()))
}

/// Whether the attribute has no effect on this sample: for example, a threshold for a mode that is disabled.
fn ignored(op: &OpRef, sample: &Sample, index: usize, outputs: &[crate::Tensor]) -> Result<bool> {
    let finite = match &sample.attrs[index] {
        Attr::Float(v) => Attr::Float(if v.is_finite() { v * 0.5 + 0.125 } else { 0.5 }),
        _ => Attr::Float(0.5),
    };
    let Ok(other) = results(op, &with(sample, index, finite)?) else { return Ok(false) };
    let base = results(op, &sample.copied()?)?;
    let same = |a: &[crate::Tensor], b: &[crate::Tensor]| -> Result<bool> {
        Ok(a.len() == b.len()
            && a.iter().zip(b).map(|(a, b)| close(a, b, 0.0)).collect::<Result<Vec<_>>>()?.into_iter().all(|s| s))
    };
    Ok(same(&base, &other)? && same(&base, outputs)?)
}

/// Ends a body that counts to a large integer: after many calls of a thread, each is an error.
struct Limit {
    thread: ThreadId,
    calls: AtomicUsize,
}

impl Observer for Limit {
    fn call(&self, _: &OpRef, _: &[Arg<'_>], proceed: &mut dyn FnMut() -> Result<Produced>) -> Result<Produced> {
        const MOST: usize = 10_000;
        if thread::current().id() == self.thread && self.calls.fetch_add(1, Ordering::Relaxed) >= MOST {
            return Err(Error::runtime("the body makes too many calls"));
        }
        proceed()
    }
}

/// 2⁵³ and 2⁵³ + 1 must give different results, unless the attribute already has no effect at smaller values.
fn exact_integers(op: &OpRef, sample: &Sample, index: usize) -> Result<()> {
    const LIMIT: i64 = 1 << 53;
    let integers = sample.map(|_, t| if t.dtype().is_differentiable() { t.cast(DType::I64) } else { t.copied() })?;
    let run = |value: i64| {
        let _limit = observe(Arc::new(Limit { thread: thread::current().id(), calls: AtomicUsize::new(0) }));
        quietly(|| results(op, &with(&integers, index, Attr::Int(value))?))
    };
    // A power with a large exponent, or a long loop, could use all memory. It fails at smaller numbers, too.
    if [10, 20].iter().any(|bits| run(1 << bits).is_err()) {
        return Ok(());
    }
    let (Ok(a), Ok(b), Ok(c)) = (run(LIMIT - 1), run(LIMIT), run(LIMIT + 1)) else { return Ok(()) };
    let same = |x: &[crate::Tensor], y: &[crate::Tensor]| {
        x.iter().zip(y).all(|(x, y)| matches!((x.to_vec::<i64>(), y.to_vec::<i64>()), (Ok(x), Ok(y)) if x == y))
    };
    if a.iter().all(|t| t.dtype() == DType::I64) && !same(&a, &b) && same(&b, &c) {
        return Err(Error::runtime(format!(
            "'{}' loses digits above 2⁵³, because it is converted to a float",
            op.attrs[index].name
        )));
    }
    Ok(())
}

/// Every candidate of a tuned attribute must give the same bits.
pub fn candidates_agree(op: &OpRef, sample: &Sample) -> Result<()> {
    for (i, attr) in op.attrs.iter().enumerate() {
        let AttrKind::Tuned(candidates) = attr.kind else { continue };
        let run = |value: i64| results(op, &with(sample, i, Attr::Int(value))?);
        let first = run(candidates[0])?;
        for value in &candidates[1..] {
            let other = run(*value)?;
            let same = |(a, b): (&crate::Tensor, &crate::Tensor)| Ok(a.shape() == b.shape() && close(a, b, 0.0)?);
            let all: Result<Vec<bool>> = first.iter().zip(&other).map(same).collect();
            if first.len() != other.len() || all?.contains(&false) {
                return Err(Error::runtime(format!(
                    "{name}={value} does not give the result of {name}={}; a tuned attribute must only change the speed",
                    candidates[0],
                    name = attr.name
                )));
            }
        }
    }
    Ok(())
}
