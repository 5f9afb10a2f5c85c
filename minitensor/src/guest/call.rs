//! Calls of ops, which run in the host.

use std::ptr::NonNull;
use std::sync::OnceLock;

use minitensor_kernels::Const;

use super::host::{host, pointer};
use crate::attr::Attr;
use crate::error::{Error, Result, counted};
use crate::op::{Arg, Arity, OpRef, Outputs, Value};
use crate::plugin::abi::{self, Str};
use crate::plugin::ffi::checked;
use crate::tensor::Tensor;

/// Empty in a plugin: the host derives gradients from programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gradients;

impl Gradients {
    /// An empty value.
    pub const fn new() -> Gradients {
        Gradients
    }
}

/// A handle of an op of the host.
pub struct Op(NonNull<abi::OpRef>);

// SAFETY: the ops of the host may be used and released on any thread.
unsafe impl Send for Op {}
// SAFETY: as above.
unsafe impl Sync for Op {}

impl Op {
    /// Looks up the op of a name.
    pub fn find(name: &str) -> Result<Op> {
        let host = host()?;
        // SAFETY: the function of the host is called as the ABI requires.
        pointer(|sink| unsafe { (host.op_find)(Str::of(name), sink) }).map(Op)
    }

    pub fn as_ptr(&self) -> *const abi::OpRef {
        self.0.as_ptr()
    }

    /// Calls the op. `most` is the maximum number of outputs.
    fn call(&self, args: &[abi::Arg], names: &[Str], keywords: &[abi::Arg], most: usize) -> Result<Vec<Tensor>> {
        let host = host()?;
        let (mut outputs, mut n) = (vec![std::ptr::null_mut(); most], most);
        // SAFETY: the function of the host is called as the ABI requires.
        checked(|sink| unsafe {
            (host.op_call)(
                self.as_ptr(),
                args.as_ptr(),
                args.len(),
                names.as_ptr(),
                keywords.as_ptr(),
                keywords.len(),
                outputs.as_mut_ptr(),
                &mut n,
                sink,
            )
        })?;
        let tensor = |handle| {
            let handle = NonNull::new(handle).ok_or_else(|| Error::runtime("the host returned a null pointer"))?;
            // SAFETY: the host transferred the handle.
            unsafe { Tensor::from_handle(handle) }
        };
        outputs.into_iter().take(n).map(tensor).collect()
    }
}

impl Drop for Op {
    fn drop(&mut self) {
        if let Ok(host) = host() {
            // SAFETY: the handle came from `op_find`, and is not used after this drop.
            unsafe { (host.op_release)(self.0.as_ptr()) }
        }
    }
}

/// The maximum number of outputs of an op.
const MOST: usize = 256;

fn lend(value: abi::Value) -> abi::Arg {
    abi::Arg { tensor: std::ptr::null_mut(), tensors: std::ptr::null(), n_tensors: 0, value }
}

fn of_tensor(tensor: &Tensor) -> abi::Arg {
    abi::Arg { tensor: tensor.handle(), ..lend(abi::Value::NONE) }
}

fn number(value: Const) -> Attr {
    match value {
        Const::Bool(v) => Attr::Bool(v),
        Const::Int(v) => Attr::Int(v as i64),
        Const::Float(v) => Attr::Float(v),
    }
}

/// Calls an op. `attrs` are all its attributes, in order.
pub fn dispatch(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr]) -> Result<Outputs> {
    let numbers: Vec<Attr> =
        args.iter().map(|arg| if let Arg::Number(n) = arg { number(*n) } else { Attr::None }).collect();
    let is_variadic = op.inputs.last().is_some_and(|input| input.arity == Arity::Variadic);
    let fixed = if is_variadic { op.inputs.len() - 1 } else { args.len() };
    let many: Vec<*mut abi::Tensor> =
        args[fixed..].iter().filter_map(|arg| if let Arg::Tensor(t) = arg { Some(t.handle()) } else { None }).collect();
    let mut given: Vec<abi::Arg> = args[..fixed]
        .iter()
        .zip(&numbers)
        .map(|(arg, number)| match arg {
            Arg::Tensor(tensor) => of_tensor(tensor),
            Arg::None | Arg::Number(_) => lend(abi::Value::of(number)),
        })
        .collect();
    if is_variadic {
        given.push(abi::Arg { tensors: many.as_ptr(), n_tensors: many.len(), ..lend(abi::Value::NONE) });
    }
    given.extend(attrs.iter().map(|attr| lend(abi::Value::of(attr))));
    let outputs = Op::find(&op.name)?.call(&given, &[], &[], MOST)?;
    Ok(Outputs(outputs.into_iter().collect()))
}

/// Calls an op that has one output.
pub fn dispatch_one(op: &OpRef, args: &[Arg<'_>], attrs: &[Attr]) -> Result<Tensor> {
    let outputs = dispatch(op, args, attrs)?.into_vec();
    let n = outputs.len();
    let one = outputs.into_iter().next().filter(|_| n == 1);
    one.ok_or_else(|| Error::type_(format!("op '{}' returns {n} tensors, expected one", op.name)))
}

/// The gradients with respect to the inputs of a call that has only tensor arguments. The host runs the op once more, recorded.
pub fn vjp(op: &OpRef, inputs: &[&Tensor], cotangent: &Tensor) -> Result<Vec<Option<Tensor>>> {
    let (host, op) = (host()?, Op::find(&op.name)?);
    let inputs: Vec<_> = inputs.iter().map(|t| t.handle()).collect();
    let mut gradients = vec![std::ptr::null_mut(); inputs.len()];
    // SAFETY: the function of the host is called as the ABI requires.
    checked(|sink| unsafe {
        let (given, out) = (inputs.as_ptr(), gradients.as_mut_ptr());
        (host.op_vjp)(op.as_ptr(), given, inputs.len(), cotangent.handle(), out, sink)
    })?;
    // SAFETY: the host transferred the handles. Absent gradients are null.
    let tensor = |handle| NonNull::new(handle).map(|h| unsafe { Tensor::from_handle(h) }).transpose();
    gradients.into_iter().map(tensor).collect()
}

/// An op known by its name. The first call from this place looks it up.
pub struct OpName {
    name: &'static str,
    op: OnceLock<Op>,
}

impl OpName {
    /// Refers to the op of a name. An unknown name is reported at the first call.
    pub const fn new(name: &'static str) -> OpName {
        OpName { name, op: OnceLock::new() }
    }

    fn get(&self) -> Result<&Op> {
        if let Some(op) = self.op.get() {
            return Ok(op);
        }
        let found = Op::find(self.name)?;
        Ok(self.op.get_or_init(|| found))
    }

    /// Calls the op with positional arguments, then keywords: tensors first, then attributes, as in Python.
    pub fn call(&self, args: &[Value<'_>], keywords: &[(&str, Value<'_>)]) -> Result<Tensor> {
        self.call_many::<1>(args, keywords).map(|[output]| output)
    }

    /// As `call`, for an op with `N` outputs.
    pub fn call_many<const N: usize>(&self, args: &[Value<'_>], keywords: &[(&str, Value<'_>)]) -> Result<[Tensor; N]> {
        self.call_all(args, keywords)?.try_into().map_err(|v: Vec<Tensor>| {
            Error::type_(format!("op '{}' returns {}, expected {N}", self.name, counted(v.len(), "tensor")))
        })
    }

    /// As `call`, for an op with any number of outputs.
    pub fn call_all(&self, args: &[Value<'_>], keywords: &[(&str, Value<'_>)]) -> Result<Vec<Tensor>> {
        let lists: Vec<Vec<*mut abi::Tensor>> =
            args.iter()
                .chain(keywords.iter().map(|(_, value)| value))
                .map(|value| {
                    if let Value::Tensors(all) = value { all.iter().map(|t| t.handle()).collect() } else { Vec::new() }
                })
                .collect();
        let lend = |(value, list): (&Value<'_>, &Vec<*mut abi::Tensor>)| match value {
            Value::Tensor(tensor) => of_tensor(tensor),
            Value::Tensors(_) => abi::Arg { tensors: list.as_ptr(), n_tensors: list.len(), ..lend(abi::Value::NONE) },
            Value::Attr(attr) => lend(abi::Value::of(attr)),
        };
        let positional: Vec<abi::Arg> = args.iter().zip(&lists).map(lend).collect();
        let named: Vec<abi::Arg> = keywords.iter().map(|(_, v)| v).zip(&lists[args.len()..]).map(lend).collect();
        let names: Vec<Str> = keywords.iter().map(|(name, _)| Str::of(name)).collect();
        self.get()?.call(&positional, &names, &named, MOST)
    }
}
