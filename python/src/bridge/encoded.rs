//! [`EncodedCall`]: an op and its attributes as text. The text means the same in every process, so that frameworks can keep it
//! with compiled programs.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use minitensor::fork::try_write;
use minitensor::kernels::Const;
use minitensor::op::{Arg, infer, number_dtypes};
use minitensor::random::Forbid;
use minitensor::{Attr, AttrKind, DType, Device, Error, OpRef, Tensor, registry};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serde_json::{Map, Value, json};

use super::infer::attributes;
use super::widen::widened;

use crate::dtype;
use crate::error::{Result, catch_panics};
use crate::ops::{attr, lookup};
use crate::runtime::{fork, gil};
use crate::tensor::interchange::number::{self, Number};

/// A call without its tensors.
pub struct EncodedCall {
    pub op: OpRef,
    /// All attributes.
    pub attrs: Vec<Attr>,
    /// The generation of the registry in which the op was looked up.
    generation: u64,
}

/// The texts decoded so far. Compiled programs call with the same few texts.
static DECODED: RwLock<Option<HashMap<Box<str>, Arc<EncodedCall>>>> = RwLock::new(None);
/// The cache is emptied when it has this many texts.
const MOST: usize = 4096;

impl EncodedCall {
    /// Decodes a text. The op may have been registered again since the last time.
    ///
    /// # Errors
    /// If the op is not registered, or does not take these attributes.
    pub fn of(text: &str) -> minitensor::Result<Arc<EncodedCall>> {
        let generation = registry::generation();
        let found =
            DECODED.read().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(|all| all.get(text).cloned());
        if let Some(call) = found.filter(|call| call.generation == generation) {
            return Ok(call);
        }
        let call = Arc::new(EncodedCall::decode(text, generation)?);
        let mut all = DECODED.write().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_default();
        let dropped = if all.len() < MOST { HashMap::new() } else { std::mem::take(all) };
        let before = all.insert(text.into(), call.clone());
        drop((dropped, before));
        Ok(call)
    }

    fn decode(text: &str, generation: u64) -> minitensor::Result<EncodedCall> {
        let unreadable = || Error::value(format!("'{text}' is not an encoded call"));
        let value: Value = serde_json::from_str(text).map_err(|_| unreadable())?;
        let name = value["op"].as_str().ok_or_else(unreadable)?;
        let given = value["attrs"].as_object().ok_or_else(unreadable)?;
        let op = match registry::get(name) {
            Ok(op) => op,
            Err(_) if registry::reason(name).is_none() => {
                // A plugin that is installed but not loaded yet may have it.
                gil::attach(lookup::discover).map_err(Error::from)?;
                registry::get(name)?
            }
            Err(error) => return Err(error),
        };
        if let Some(unknown) = given.keys().find(|key| op.attrs.iter().all(|a| a.name != ***key)) {
            let message =
                format!("op '{name}' has no attribute '{unknown}'; it was replaced by another op of this name");
            return Err(Error::type_(message));
        }
        let attr = |index: usize| -> minitensor::Result<Attr> {
            let attr = &op.attrs[index];
            let Some(value) = given.get(attr.name.as_ref()) else { return op.default_attr(index) };
            let read = from_json(attr.kind, value).ok_or_else(|| {
                Error::type_(format!("op '{name}': attribute '{}' takes {}, got {value}", attr.name, attr.kind))
            })?;
            op.check_attr(index, read)
        };
        let attrs = (0..op.attrs.len()).map(attr).collect::<minitensor::Result<_>>()?;
        Ok(EncodedCall { op, attrs, generation })
    }
}

/// Forbids random numbers from the global generator: a compiled program may omit, repeat or reorder calls.
pub fn same_each_time() -> Forbid {
    Forbid::new(|| {
        Error::value(
            "a compiled program may omit, repeat or reorder this call, so it cannot draw from the global generator of random \
             numbers; use an op that takes a key, such as random.uniform or random.dropout",
        )
    })
}

/// The text of a call. All attributes are included, so that a changed default does not change the meaning.
fn encode(op: &OpRef, attrs: &[Attr]) -> String {
    let attrs: Map<String, Value> = op.attrs.iter().zip(attrs).map(|(a, v)| (a.name.to_string(), to_json(v))).collect();
    json!({"op": op.name, "attrs": attrs}).to_string()
}

/// Floats are strings, because JSON has no infinities.
fn to_json(attr: &Attr) -> Value {
    let float = |v: &f64| Value::from(format!("{v:?}"));
    match attr {
        Attr::None => Value::Null,
        Attr::Bool(v) => (*v).into(),
        Attr::Int(v) => (*v).into(),
        Attr::Float(v) => float(v),
        Attr::Str(v) => v.as_ref().into(),
        Attr::Ints(v) => v.to_vec().into(),
        Attr::Floats(v) => v.iter().map(float).collect(),
        Attr::DType(v) => v.name().into(),
    }
}

fn from_json(kind: AttrKind, value: &Value) -> Option<Attr> {
    if value.is_null() {
        return Some(Attr::None);
    }
    let float = |v: &Value| v.as_str()?.parse::<f64>().ok();
    Some(match kind {
        AttrKind::Bool => Attr::Bool(value.as_bool()?),
        AttrKind::Int | AttrKind::Size | AttrKind::Tuned(_) => Attr::Int(value.as_i64()?),
        AttrKind::Float => Attr::Float(float(value)?),
        AttrKind::Str | AttrKind::Enum(_) => value.as_str()?.into(),
        AttrKind::Ints => value.as_array()?.iter().map(Value::as_i64).collect::<Option<Vec<_>>>()?.into(),
        AttrKind::Floats => value.as_array()?.iter().map(float).collect::<Option<Vec<_>>>()?.into(),
        AttrKind::DType => Attr::DType(DType::parse(value.as_str()?).ok()?),
    })
}

/// The text of a call with these attributes; absent ones have their defaults.
#[pyfunction]
fn _encode_call(py: Python<'_>, name: &str, attrs: &Bound<'_, PyDict>) -> Result<String> {
    let op = lookup::find(py, name)?;
    Ok(encode(&op, &attributes(&op, attrs)?))
}

/// The name and the attributes of an encoded call.
#[pyfunction]
fn _decode_call<'py>(py: Python<'py>, text: &str) -> Result<(String, Bound<'py, PyDict>)> {
    let call = EncodedCall::of(text)?;
    let attrs = PyDict::new(py);
    for (attr, value) in call.op.attrs.iter().zip(&call.attrs) {
        attrs.set_item(attr.name.as_ref(), attr::object(py, value)?)?;
    }
    Ok((call.op.name.to_string(), attrs))
}

/// A tensor without values; `None` for an absent one.
type Meta<'py> = Option<(Vec<usize>, Bound<'py, PyAny>)>;

fn metas(inputs: Vec<Meta<'_>>) -> Result<Vec<Option<Tensor>>> {
    let meta = |(shape, dtype): (Vec<usize>, Bound<'_, PyAny>)| -> Result<Tensor> {
        Ok(Tensor::empty(shape, dtype::parse(&dtype)?, Device::Meta)?)
    };
    inputs.into_iter().map(|input| input.map(meta).transpose()).collect()
}

/// The shapes and dtypes of the results of an encoded call. Drawing from the global generator of random numbers is an error: a
/// compiled program must mean the same in each run.
#[pyfunction]
fn _infer_call<'py>(
    py: Python<'py>,
    text: &str,
    inputs: Vec<Meta<'py>>,
) -> Result<Vec<(Bound<'py, PyTuple>, &'static str)>> {
    let call = EncodedCall::of(text)?;
    let mut inputs = metas(inputs)?;
    widened(&call.op, &mut inputs)?;
    let args: Vec<Arg<'_>> = inputs.iter().map(|t| t.as_ref().into()).collect();
    let outputs = catch_panics(&call.op.name, || {
        let _same = same_each_time();
        infer(&call.op, &args, &call.attrs)
    })?;
    outputs.iter().map(|t| Ok((PyTuple::new(py, t.shape().iter())?, t.dtype().name()))).collect()
}

/// The dtypes that the numbers among the inputs of a call get; `None` for the other inputs. An input is a number of the same kind,
/// a dtype, or `None` if it is absent.
#[pyfunction]
fn _number_dtypes(
    py: Python<'_>,
    name: &str,
    inputs: Vec<Option<Bound<'_, PyAny>>>,
) -> Result<Vec<Option<&'static str>>> {
    enum Input {
        Absent,
        Number(Const),
        Tensor(Tensor),
    }
    let op = lookup::find(py, name)?;
    let read = |input: Option<Bound<'_, PyAny>>| -> Result<Input> {
        let Some(input) = input else { return Ok(Input::Absent) };
        Ok(match number::read(&input)? {
            Some(Number::Real(number)) => Input::Number(number),
            Some(Number::Complex(..)) => Input::Tensor(Tensor::empty([], DType::C64, Device::Meta)?),
            None => Input::Tensor(Tensor::empty([], dtype::parse(&input)?, Device::Meta)?),
        })
    };
    let inputs = inputs.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    let args = inputs.iter().map(|input| match input {
        Input::Absent => Arg::None,
        Input::Number(number) => Arg::Number(*number),
        Input::Tensor(t) => Arg::Tensor(t),
    });
    let args: Vec<Arg<'_>> = args.collect();
    Ok(number_dtypes(&op, &args)?.into_iter().map(|d| d.map(DType::name)).collect())
}

/// Holds the lock of the texts for a fork, unless another thread holds it.
fn try_hold() -> Option<Box<dyn Any>> {
    try_write(&DECODED)
}

pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    fork::add_lock(try_hold);
    m.add_function(wrap_pyfunction!(_encode_call, m)?)?;
    m.add_function(wrap_pyfunction!(_decode_call, m)?)?;
    m.add_function(wrap_pyfunction!(_infer_call, m)?)?;
    m.add_function(wrap_pyfunction!(_number_dtypes, m)?)?;
    Ok(())
}
