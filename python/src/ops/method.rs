//! A table of the tensor methods that are ops: `x.sum()` is `mt.ops.sum(x)`.

use std::sync::{Arc, OnceLock};

use minitensor::registry;
use pyo3::PyTypeInfo;
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::function::Function;
use super::method_def::{FastCall, MethodDef, enter};
use super::{docstring, module};
use crate::error::Result;
use crate::tensor::class::PyTensor;

type Slot = OnceLock<Arc<Function>>;

struct Method {
    name: &'static str,
    slot: &'static Slot,
    call: FastCall,
}

/// # Safety
/// As CPython's vector calls of methods.
unsafe fn call(
    slot: &Slot,
    this: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    n: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let Some(function) = slot.get() else { return std::ptr::null_mut() };
    // SAFETY: the caller's contract; the values of keywords follow the positional arguments.
    unsafe {
        let named = if keywords.is_null() { 0 } else { ffi::PyTuple_Size(keywords) };
        let mut all: SmallVec<[*mut ffi::PyObject; 8]> = SmallVec::new();
        all.push(this);
        all.extend((0..(n + named) as usize).map(|i| *args.add(i)));
        enter(&function.op, |py| function.call(py, all.as_ptr(), n as usize + 1, keywords))
    }
}

macro_rules! methods {
    ($($name:ident)*) => {
        &[$({
            static SLOT: Slot = OnceLock::new();
            unsafe extern "C" fn call_method(
                this: *mut ffi::PyObject,
                args: *const *mut ffi::PyObject,
                n: ffi::Py_ssize_t,
                keywords: *mut ffi::PyObject,
            ) -> *mut ffi::PyObject {
                // SAFETY: Python calls it according to this contract.
                unsafe { call(&SLOT, this, args, n, keywords) }
            }
            Method { name: stringify!($name), slot: &SLOT, call: call_method }
        },)*]
    };
}

/// Every name is an op's name or alias.
static METHODS: &[Method] = methods! {
    abs add subtract sub multiply mul divide div floor_divide remainder pow negative neg square reciprocal sign maximum minimum
    add_ subtract_ multiply_ divide_ negative_ power_ clamp_ copy_ square_ relu_ sigmoid_ tanh_ exp_
    clamp clip equal eq not_equal ne less lt less_equal le greater gt greater_equal ge isnan isinf isfinite
    logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor
    exp exp2 expm1 log log1p log2 log10 sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc
    floor ceil round trunc relu sigmoid softmax log_softmax softplus swish silu gelu
    matmul sum mean prod max min amax amin argmax argmin any all var std logsumexp cumsum sort argsort topk
    count_nonzero nonzero
    reshape view permute permute_dims transpose swapaxes matrix_transpose moveaxis expand broadcast_to flatten squeeze unsqueeze
    expand_dims flip roll gather scatter take take_along_axis index_select tril triu real imag conj
    clone copy contiguous
};

/// Adds the methods to the class.
pub fn install(m: &Bound<'_, PyModule>) -> Result<()> {
    let py = m.py();
    let class = PyTensor::type_object(py);
    for method in METHODS {
        let op = registry::get(method.name)?;
        let _ = method.slot.set(module::function(py, &op)?);
        let signature = docstring::text_signature(&op, method.name, "$self");
        // It lives as long as the class: forever.
        let definition = Box::leak(MethodDef::new(method.name, &signature, &op, method.call)?);
        // SAFETY: the definition is leaked, the class is a type.
        let descriptor = unsafe {
            Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition.as_ptr()))?
        };
        class.setattr(method.name, descriptor)?;
    }
    Ok(())
}
