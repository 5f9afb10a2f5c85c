//! Whether the results satisfy the identities that the clauses `linear`, `symmetric` and `replaces` state.

use minitensor_schema::property::Pattern;
use minitensor_schema::suggestion::list;

use super::sample::Sample;
use super::values::{Random, close, numbers, tensor_like};
use crate::attr::Attr;
use crate::clause;
use crate::error::{Error, Result};
use crate::op::{OpRef, Property, Value, bind, dispatch_one, registry};
use crate::tensor::Tensor;

/// Each property must hold for the sample.
pub fn properties_hold(op: &OpRef, sample: &Sample) -> Result<()> {
    op.properties.iter().try_for_each(|property| match property {
        Property::Linear(group) => is_linear(op, sample, group),
        Property::Symmetric => is_symmetric(op, sample),
        Property::Replaces(text) => is_replaced(op, sample, text),
    })
}

/// The result for a combination of arguments must be the combination of the results.
fn is_linear(op: &OpRef, sample: &Sample, group: &[u8]) -> Result<()> {
    let is_in = |i: usize| group.contains(&(op.parameter_at(i) as u8));
    let other = sample.map(|i, t| match is_in(i) && t.dtype().is_differentiable() {
        true => {
            let mut random = Random::new(i as u64);
            tensor_like(t, numbers(t)?.iter().map(|_| random.between(-1.5, 1.5)).collect())
        }
        false => Ok(t.clone()),
    })?;
    let combined = sample.map(|i, t| match (is_in(i) && t.dtype().is_differentiable(), &other.inputs[i]) {
        (true, Some(other)) => combination(t, other),
        _ => Ok(t.clone()),
    })?;
    let (a, b, both) = (sample.call(op)?, other.call(op)?, combined.call(op)?);
    for ((a, b), both) in a.iter().zip(&b).zip(&both) {
        if !close(both, &combination(a, b)?, 1e-9)? {
            let names: Vec<&str> = group.iter().map(|i| op.inputs[usize::from(*i)].name.as_ref()).collect();
            return Err(Error::runtime(format!(
                "the clause `linear` does not hold for {}: the result for 2 a − 3 b is not 2 times that for a minus 3 times that \
                 for b, where a is the argument and b is random: {both} is not {}",
                list(&names),
                combination(a, b)?
            )));
        }
    }
    Ok(())
}

/// `2 a − 3 b`
fn combination(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let numbers = numbers(a)?.into_iter().zip(numbers(b)?).map(|(a, b)| 2.0 * a - 3.0 * b);
    tensor_like(a, numbers.collect())
}

/// Exchanged arguments must have the same result.
fn is_symmetric(op: &OpRef, sample: &Sample) -> Result<()> {
    let results = sample.call(op)?;
    for i in 1..sample.inputs.len() {
        let mut exchanged = sample.clone();
        exchanged.inputs.swap(i - 1, i);
        for (a, b) in results.iter().zip(exchanged.call(op)?) {
            if !close(a, &b, 0.0)? {
                let (x, y) = (&op.inputs[i - 1].name, &op.inputs[i].name);
                return Err(Error::runtime(format!(
                    "the clause `symmetric` does not hold: with `{x}` and `{y}` exchanged, the result is {b}, not {a}"
                )));
            }
        }
    }
    Ok(())
}

/// The expression must have the same result.
fn is_replaced(op: &OpRef, sample: &Sample, text: &str) -> Result<()> {
    let pattern = clause::pattern(op, text)?;
    // The expression has no name for an attribute that it does not depend on, so its default must be passed.
    let (mut sample, names) = (sample.clone(), pattern.names());
    for (k, attr) in op.attrs.iter().enumerate().filter(|(k, _)| !names.contains(&Pattern::Attr(*k))) {
        sample.attrs[k] = attr.default.clone().unwrap_or(Attr::None);
    }
    for i in (0..op.inputs.len()).filter(|i| !names.contains(&Pattern::Input(*i))) {
        sample.inputs[i] = None;
    }
    let results = sample.call(op)?;
    let replaced = evaluated(&pattern, &sample).map_err(|e| e.context("the expression of the clause `replaces`"))?;
    match (&results[..], replaced) {
        ([result], Replaced::Tensor(replaced)) if close(result, &replaced, 1e-8)? => Ok(()),
        ([result], Replaced::Tensor(replaced)) => Err(Error::runtime(format!(
            "the clause `replaces` does not hold: the result is {result}, but that of `{text}` is {replaced}"
        ))),
        _ => Err(Error::runtime("the clause `replaces` needs an op with one result")),
    }
}

/// The value of a part of an expression.
enum Replaced {
    Tensor(Tensor),
    Attr(Attr),
}

impl Replaced {
    fn as_value(&self) -> Value<'_> {
        match self {
            Replaced::Tensor(tensor) => Value::Tensor(tensor),
            Replaced::Attr(value) => Value::Attr(value.clone()),
        }
    }
}

fn evaluated(pattern: &Pattern, sample: &Sample) -> Result<Replaced> {
    Ok(match pattern {
        Pattern::Input(i) => match &sample.inputs[*i] {
            Some(t) => Replaced::Tensor(t.clone()),
            None => Replaced::Attr(Attr::None),
        },
        Pattern::Attr(k) => Replaced::Attr(sample.attrs[*k].clone()),
        Pattern::Const(value) => Replaced::Attr(value.clone()),
        Pattern::Call { op: name, args, keywords } => {
            let args = args.iter().map(|arg| evaluated(arg, sample)).collect::<Result<Vec<_>>>()?;
            let named = keywords.iter().map(|(_, arg)| evaluated(arg, sample)).collect::<Result<Vec<_>>>()?;
            let values: Vec<Value<'_>> = args.iter().map(Replaced::as_value).collect();
            let named: Vec<(&str, Value<'_>)> =
                keywords.iter().zip(&named).map(|((word, _), value)| (word.as_str(), value.as_value())).collect();
            let callee = registry::get(name)?;
            let (inputs, attrs) = bind(&callee, &values, &named)?;
            Replaced::Tensor(dispatch_one(&callee, &inputs, &attrs)?)
        }
    })
}
