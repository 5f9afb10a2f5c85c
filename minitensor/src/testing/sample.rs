//! Sample arguments for an op, made from its definition.

use super::computed;
use super::opcheck::{quietly, with};
use super::values::Random;
use crate::attr::{Attr, AttrKind};
use crate::dtype::{DType, DTypeSet};
use crate::error::Result;
use crate::op::{
    Arg, Arithmetic, Arity, CoreShapes, DTypeRule, Dim, Dims, OpDef, OpRef, Outputs, ShapeRule, dispatch, infer,
};
use crate::tensor::{Device, Tensor};

/// One call: flat inputs and attributes.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The tensors. `None` for an optional input that is omitted.
    pub inputs: Vec<Option<Tensor>>,
    /// All attributes.
    pub attrs: Vec<Attr>,
}

impl Sample {
    /// The device of the tensors.
    pub fn device(&self) -> Device {
        self.inputs.iter().flatten().next().map_or(Device::Cpu, Tensor::device)
    }

    /// Calls the op.
    pub fn call(&self, op: &OpRef) -> Result<Vec<Tensor>> {
        dispatch(op, &self.args(), &self.attrs).map(Outputs::into_vec)
    }

    pub(super) fn infer(&self, op: &OpRef) -> Result<Vec<Tensor>> {
        infer(op, &self.args(), &self.attrs)
    }

    fn args(&self) -> Vec<Arg<'_>> {
        self.inputs.iter().map(|t| t.as_ref().into()).collect()
    }

    /// The sample with every tensor replaced by the result of `f`.
    pub(super) fn map(&self, f: impl Fn(usize, &Tensor) -> Result<Tensor>) -> Result<Sample> {
        let inputs = self.inputs.iter().enumerate().map(|(i, t)| t.as_ref().map(|t| f(i, t)).transpose());
        Ok(Sample { inputs: inputs.collect::<Result<_>>()?, attrs: self.attrs.clone() })
    }

    /// A sample with copies of all tensors, so that an op that works in place does not change the original.
    pub(super) fn copied(&self) -> Result<Sample> {
        self.map(|_, t| t.copied())
    }

    /// The sample with the inputs of the dtype variables that admit another dtype converted to it.
    pub(super) fn with_dtype(&self, op: &OpDef, dtype: DType) -> Result<Sample> {
        self.map(|i, t| match op.parameter(i).dtype {
            DTypeRule::Generic(g) if op.generics[usize::from(g)].dtypes.contains(dtype) => t.cast(dtype),
            DTypeRule::Any if t.dtype().is_differentiable() => t.cast(dtype),
            _ => Ok(t.clone()),
        })
    }
}

/// Ranges of random values, chosen to reach every domain: all values, between 0 and 1, above 1.
const RANGES: [(f64, f64); 3] = [(-2.0, 2.0), (0.1, 0.9), (1.1, 3.0)];

/// Samples that an op accepts, made from its shape rule and attributes. They are float64 where floats are accepted. The list is
/// empty if only the body knows its requirements.
pub fn samples(op: &OpRef) -> Vec<Sample> {
    made(op).0
}

/// As [`samples`]. If there are none, also the error of the op for the first arguments tried.
pub(super) fn made(op: &OpRef) -> (Vec<Sample>, Option<String>) {
    if let Some(called) = computed::samples(op) {
        return called;
    }
    let mut refusal = None;
    let mut random = Random::new(op.name.bytes().map(u64::from).sum());
    let mut found = Vec::new();
    // A variadic input has two tensors.
    let is_variadic = op.inputs.last().is_some_and(|i| i.arity == Arity::Variadic);
    let is_optional = |i: usize| i < op.inputs.len() && op.inputs[i].arity == Arity::Optional;
    let has_optional = (0..op.inputs.len()).any(is_optional);
    // The optional inputs are also left out together.
    let alone = attributes(op).into_iter().take(1).filter(|_| has_optional).map(|attrs| (attrs, false));
    for (attrs, has_all) in attributes(op).into_iter().map(|attrs| (attrs, true)).chain(alone) {
        for (low, high) in RANGES {
            for sizes in [[3, 4, 2, 5], [2, 2, 2, 2]] {
                let sample = (0..op.inputs.len() + usize::from(is_variadic))
                    .map(|i| match has_all || !is_optional(i) {
                        true => input(op, i, &sizes, &attrs, &mut random, low, high).map(Some),
                        false => Ok(None),
                    })
                    .collect::<Result<Vec<_>>>();
                let inputs = match sample {
                    Ok(inputs) => inputs,
                    Err(error) => {
                        refusal.get_or_insert_with(|| error.to_string());
                        continue;
                    }
                };
                let sample = Sample { inputs, attrs: attrs.clone() };
                match sample.copied().and_then(|s| quietly(|| s.call(op))) {
                    Ok(_) => {
                        found.push(sample);
                        break;
                    }
                    Err(error) => {
                        refusal.get_or_insert_with(|| error.to_string() + &with(op, &sample));
                    }
                }
            }
        }
    }
    let refusal = refusal.filter(|_| found.is_empty());
    (found, refusal)
}

/// All defaults, then each word, boolean and candidate in turn. An attribute without a default has a small value.
fn attributes(op: &OpDef) -> Vec<Vec<Attr>> {
    let base = op.example();
    let mut all = vec![base.clone()];
    for (i, attr) in op.attrs.iter().enumerate() {
        let others: Vec<Attr> = match attr.kind {
            AttrKind::Bool => vec![Attr::Bool(true), Attr::Bool(false)],
            AttrKind::Enum(words) => words.iter().map(|w| Attr::Str((*w).into())).collect(),
            AttrKind::Tuned(candidates) => candidates.iter().map(|v| Attr::Int(*v)).collect(),
            _ => Vec::new(),
        };
        for value in others.into_iter().filter(|v| *v != base[i]) {
            let mut attrs = base.clone();
            attrs[i] = value;
            all.push(attrs);
        }
    }
    all
}

fn input(
    op: &OpDef,
    i: usize,
    sizes: &[usize; 4],
    attrs: &[Attr],
    random: &mut Random,
    low: f64,
    high: f64,
) -> Result<Tensor> {
    let input = op.parameter(i);
    let dtype = match input.dtype {
        DTypeRule::Generic(g) => preferred(op.generics[g as usize].dtypes),
        DTypeRule::Fixed(d) => d,
        _ => DType::F64,
    };
    let shape = match &op.shape {
        ShapeRule::Core(rule) => core(op, rule.input(i), sizes, attrs),
        _ => vec![2, 3],
    };
    random.tensor(&shape, dtype, low, high)
}

/// float64 if the set contains it, else another dtype of the set.
fn preferred(set: DTypeSet) -> DType {
    [DType::F64, DType::F32, DType::C128, DType::I64]
        .into_iter()
        .chain(set.iter())
        .find(|d| set.contains(*d))
        .unwrap_or(DType::F64)
}

/// A batch of two, then one size for each named dimension, chosen by the position of the name among all names.
fn core(op: &OpDef, dims: &Dims, sizes: &[usize; 4], attrs: &[Attr]) -> Vec<usize> {
    let ShapeRule::Core(rule) = &op.shape else { return Vec::new() };
    let names = dim_names(rule);
    let named = |name: &str| names.iter().position(|n| *n == name).map(|at| sizes[at % 4]);
    let size = |dim: &Dim| dim_size(dim, attrs, &named).unwrap_or(2);
    (if dims.batch { vec![2] } else { Vec::new() }).into_iter().chain(dims.core.iter().map(size)).collect()
}

/// The names of the core dimensions of the inputs, in order.
pub(super) fn dim_names(rule: &CoreShapes) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for dim in rule.inputs.iter().flat_map(|d| d.core.iter()) {
        if let Dim::Name(name) = dim
            && !names.contains(&name.as_ref())
        {
            names.push(name);
        }
    }
    names
}

/// The size of a dimension of an input, if it has one.
pub(super) fn dim_size(dim: &Dim, attrs: &[Attr], named: &dyn Fn(&str) -> Option<usize>) -> Option<usize> {
    match dim {
        Dim::Name(name) => named(name),
        Dim::Int(v) => usize::try_from(*v).ok(),
        Dim::Attr(a) => match attrs[*a as usize] {
            Attr::Int(v) => usize::try_from(v).ok(),
            _ => None,
        },
        Dim::Op(operation, both) => {
            let [a, b] = &both[..] else { return None };
            let (a, b) = (dim_size(a, attrs, named)?, dim_size(b, attrs, named)?);
            match operation {
                Arithmetic::Add => a.checked_add(b),
                Arithmetic::Sub => a.checked_sub(b),
                Arithmetic::Mul => a.checked_mul(b),
                Arithmetic::Div => (b != 0 && a % b == 0).then(|| a / b),
            }
        }
        Dim::Float(_) => None,
    }
}
