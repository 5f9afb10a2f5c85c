//! The handler of XLA's foreign function interface: one function that computes the calls of all ops and their gradients of all
//! orders, on buffers of XLA.
//!
//! A call site has three attributes, all strings:
//!
//! | attribute | contents |
//! |---|---|
//! | `call` | the op and its attributes, as [`EncodedCall`] |
//! | `present` | `1` for each tensor of the call, `2` for one that is converted to 64 bits, `0` for each absent one |
//! | `wrt` | the tensors whose gradients are computed, one word of `0` and `1` for each order, separated by commas |
//!
//! XLA calls the handler on its own threads, or on one that has released the GIL. Only ops written in Python acquire the GIL.

use std::ffi::{CString, c_int};
use std::mem::{offset_of, size_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

use minitensor::op::{Arg, Body, dispatch_at, functional_gradient};
use minitensor::{DType, Device, Error, ErrorKind, Result, Shape, Tensor};
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::encoded::{EncodedCall, same_each_time};
use super::widen::{narrow, wide, widened};
use super::xla_api::*;
use crate::error::{self, panicked};
use crate::runtime::gil;
use crate::tensor::interchange::foreign::foreign;

/// The tensors of a call.
type Tensors = SmallVec<[Option<Tensor>; 4]>;

unsafe extern "C" fn handle(frame: *mut CallFrame) -> *mut XlaError {
    // SAFETY: XLA passes a frame that is valid for the call.
    let frame = unsafe { &*frame };
    // SAFETY: as above.
    if unsafe { answer_metadata(frame) } || frame.stage != EXECUTE {
        return std::ptr::null_mut();
    }
    // SAFETY: as above; at this stage the buffers are valid.
    let failed = catch_unwind(AssertUnwindSafe(|| gil::outside(|| unsafe { run(frame) })));
    let (error, is_panic) = match failed {
        Ok(Ok(())) => return std::ptr::null_mut(),
        Ok(Err(error)) => (error, false),
        Err(payload) => (panicked("the call", payload), true),
    };
    // SAFETY: the frame is valid.
    unsafe { create_error(frame, &error, is_panic) }
}

/// Answers the question for the handler's properties, if the frame asks it: the version of the interface that it uses.
///
/// # Safety
/// XLA made the frame.
unsafe fn answer_metadata(frame: &CallFrame) -> bool {
    let mut extension = frame.extension;
    while !extension.is_null() {
        // SAFETY: the extensions of a frame are a list of valid structs.
        unsafe {
            if (*extension).kind == METADATA {
                let metadata = &mut *(*extension.cast::<MetadataExtension>()).metadata;
                let theirs = if frame.api.is_null() { MINOR_OF_XLA.load(Relaxed) } else { (*frame.api).version.minor };
                (metadata.version.major, metadata.version.minor) = (MAJOR, theirs.min(MINOR));
                metadata.traits = 0;
                return true;
            }
            extension = (*extension).next;
        }
    }
    false
}

/// Creates an error of XLA, which its caller raises as an exception.
#[cold]
unsafe fn create_error(frame: &CallFrame, error: &Error, is_panic: bool) -> *mut XlaError {
    let code = match error.kind() {
        _ if is_panic => Code::Internal,
        ErrorKind::Runtime if error.as_foreign::<PyErr>().is_some() => Code::Internal,
        ErrorKind::Type | ErrorKind::Value => Code::InvalidArgument,
        ErrorKind::Index => Code::OutOfRange,
        ErrorKind::Memory => Code::ResourceExhausted,
        ErrorKind::NotImplemented => Code::Unimplemented,
        ErrorKind::Runtime => Code::FailedPrecondition,
    };
    let message = CString::new(error.message().replace('\0', "\\0")).unwrap_or_default();
    let mut args =
        ErrorArgs { size: size_of::<ErrorArgs>(), extension: std::ptr::null_mut(), message: message.as_ptr(), code };
    // SAFETY: the table of functions is valid, and the function copies the message.
    unsafe { ((*frame.api).create_error)(&mut args) }
}

/// Computes a call and writes its results.
///
/// # Safety
/// The frame and its buffers are valid.
unsafe fn run(frame: &CallFrame) -> Result<()> {
    // SAFETY: the frame is valid.
    let [call, present, wrt] = unsafe { strings(&frame.attrs, ["call", "present", "wrt"])? };
    let call = EncodedCall::of(call)?;
    // SAFETY: the frame is valid; the tensors are dropped at the end of this function.
    let mut tensors = unsafe { inputs(frame, &call, present)? };
    let wrt: SmallVec<[SmallVec<[bool; 4]>; 2]> =
        wrt.split(',').filter(|_| !wrt.is_empty()).map(|word| word.bytes().map(|b| b == b'1').collect()).collect();
    // The tensors of the op are the last ones.
    let own = wrt.first().map_or(tensors.len(), |word| word.len());
    let Some(first) = tensors.len().checked_sub(own) else { return Err(malformed(&call, "too few tensors")) };
    widened(&call.op, &mut tensors[first..])?;
    let mut results: SmallVec<[Tensor; 4]> = SmallVec::new();
    for k in 0..frame.rets.count as usize {
        // SAFETY: the frame has this result. XLA passes its memory for this call only, and no other code uses it meanwhile.
        results.push(unsafe { tensor(buffer(&frame.rets, k)?, true)? });
    }
    let outputs = compute(&call, &wrt, &tensors, &results)?;
    if outputs.len() != results.len() {
        let (got, expected) = (outputs.len(), results.len());
        return Err(malformed(&call, &format!("compiled for {expected} results, but the op returns {got}")));
    }
    for (output, result) in outputs.iter().zip(&results) {
        let is_same = output.dtype() == result.dtype() || narrow(output.dtype()) == Some(result.dtype());
        if output.shape() != result.shape() || !is_same {
            let (dtype, shape) = (result.dtype(), result.shape());
            let what = format!(
                "compiled for a result {dtype} {shape}, but the op returns {} {}",
                output.dtype(),
                output.shape()
            );
            return Err(malformed(&call, &what));
        }
        let is_there = output.data_ptr() == result.data_ptr() && output.dtype() == result.dtype();
        if !is_there || !output.is_contiguous() {
            result.copy_from(output)?;
        }
    }
    Ok(())
}

/// Computes the results of a call, or of its gradient. An op may write them to the memory of `results` directly.
fn compute(
    call: &EncodedCall,
    wrt: &[SmallVec<[bool; 4]>],
    tensors: &[Option<Tensor>],
    results: &[Tensor],
) -> Result<Vec<Tensor>> {
    let op = &call.op;
    error::catch_panics(&format!("op '{}'", op.name), || {
        let _same = same_each_time();
        if wrt.is_empty() {
            let args: SmallVec<[Arg<'_>; 4]> = tensors.iter().map(|t| t.as_ref().into()).collect();
            return Ok(dispatch_at(op, &args, &call.attrs, results)?.into_vec());
        }
        let wrt: SmallVec<[&[bool]; 2]> = wrt.iter().map(|word| &word[..]).collect();
        functional_gradient(op, &call.attrs, &wrt, tensors, &[])
    })
}

#[cold]
fn malformed(call: &EncodedCall, what: &str) -> Error {
    Error::runtime(format!(
        "op '{}': the compiled call does not fit the op: {what}; if the op was registered again, compile again",
        call.op.name
    ))
}

/// The strings among the attributes with these names.
///
/// # Safety
/// The attributes are valid for `'a`.
unsafe fn strings<'a, const N: usize>(attrs: &'a Attrs, names: [&str; N]) -> Result<[&'a str; N]> {
    let mut found = [None; N];
    for i in 0..attrs.count as usize {
        // SAFETY: the arrays have `count` elements. An attribute of the kind `STRING` is a span of bytes, as is each name.
        unsafe {
            let Some(k) = names.iter().position(|name| span(&**attrs.names.add(i)) == name.as_bytes()) else {
                continue;
            };
            if *attrs.kinds.add(i) == STRING {
                found[k] = std::str::from_utf8(span(&*(*attrs.values.add(i)).cast::<Span>())).ok();
            }
        }
    }
    if let Some(k) = found.iter().position(Option::is_none) {
        return Err(Error::value(format!("a call of minitensor has no attribute '{}' that is a string", names[k])));
    }
    Ok(found.map(Option::unwrap_or_default))
}

/// # Safety
/// The span is valid for `'a`.
unsafe fn span<'a>(span: &Span) -> &'a [u8] {
    if span.len == 0 {
        return &[];
    }
    // SAFETY: by contract.
    unsafe { std::slice::from_raw_parts(span.data, span.len) }
}

/// The arguments, with the absent ones. Code that may keep them gets copies: XLA reuses the memory after the call.
///
/// # Safety
/// The buffers of the frame are valid while the tensors live.
unsafe fn inputs(frame: &CallFrame, call: &EncodedCall, present: &str) -> Result<Tensors> {
    let may_keep = matches!(call.op.body, Body::Dynamic(_));
    let (mut tensors, mut next) = (Tensors::new(), 0);
    for flag in present.bytes() {
        if flag == b'0' {
            tensors.push(None);
            continue;
        }
        if next as i64 >= frame.args.count {
            return Err(malformed(call, "too few arguments"));
        }
        // SAFETY: the frame has this argument, and its memory is valid by contract.
        let given = unsafe { tensor(buffer(&frame.args, next)?, false) };
        let given = given.map_err(|e| e.context(format!("op '{}', argument {next}", call.op.name)))?;
        let wide = if flag == b'2' { wide(given.dtype()) } else { None };
        tensors.push(Some(match wide {
            Some(dtype) => given.cast(dtype)?,
            None if may_keep => given.copied()?,
            None => given,
        }));
        next += 1;
    }
    if next as i64 != frame.args.count {
        return Err(malformed(call, "too many arguments"));
    }
    Ok(tensors)
}

/// # Safety
/// The frame has these buffers, and more than `k`.
unsafe fn buffer(buffers: &Buffers, k: usize) -> Result<&Buffer> {
    // SAFETY: by contract.
    unsafe {
        if *buffers.kinds.add(k) != BUFFER {
            return Err(Error::value("a call of minitensor takes and returns arrays only"));
        }
        Ok(&*(*buffers.values.add(k)).cast::<Buffer>())
    }
}

/// A tensor over the memory of a buffer, which is contiguous.
///
/// # Safety
/// The memory is valid for reads while the tensor lives, and for writes if `writable` is true.
unsafe fn tensor(buffer: &Buffer, writable: bool) -> Result<Tensor> {
    let dtype = dtype(buffer.dtype)?;
    // SAFETY: the buffer has `rank` sizes.
    let dims = (0..buffer.rank as usize).map(|d| unsafe { *buffer.dims.add(d) } as usize);
    let shape: Shape = dims.collect();
    let strides = shape.contiguous_strides();
    // SAFETY: arrays of XLA:CPU are contiguous in row-major order, which the lowering requests. The rest is the contract.
    unsafe { foreign(Device::Cpu, buffer.data.cast(), shape, &strides, dtype, writable, Box::new(())) }
        .map_err(Error::from)
}

fn dtype(number: c_int) -> Result<DType> {
    let known = DTYPES.iter().find(|(n, _)| *n == number).map(|(_, dtype)| *dtype);
    known.ok_or_else(|| Error::type_(format!("XLA's dtype number {number} is not supported by minitensor")))
}

/// The minor version of XLA's interface. Older versions do not tell it.
static MINOR_OF_XLA: AtomicI32 = AtomicI32::new(MINOR);

/// The handler as a capsule, which `jax.ffi.register_ffi_target` takes. `minor` is the minor version of XLA's interface.
#[pyfunction]
fn _xla_handler(py: Python<'_>, minor: i32) -> error::Result<Bound<'_, PyAny>> {
    MINOR_OF_XLA.store(minor, Relaxed);
    let handler: unsafe extern "C" fn(*mut CallFrame) -> *mut XlaError = handle;
    // SAFETY: a pointer to a function is never null. The capsule has no name, as jax.ffi.pycapsule makes it.
    Ok(unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(handler as *mut _, std::ptr::null(), None))? })
}

pub fn install(m: &Bound<'_, PyModule>) -> error::Result<()> {
    m.add_function(wrap_pyfunction!(_xla_handler, m)?)?;
    Ok(())
}

/// The layouts that the header states for 64-bit machines.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(offset_of!(CallFrame, stage) == 32 && offset_of!(CallFrame, args) == 40);
    assert!(offset_of!(CallFrame, rets) == 80 && offset_of!(CallFrame, attrs) == 120 && size_of::<CallFrame>() == 168);
    assert!(offset_of!(Buffer, data) == 24 && size_of::<Buffer>() == 48);
    assert!(offset_of!(Api, create_error) == 48 && size_of::<ErrorArgs>() == 32);
};
