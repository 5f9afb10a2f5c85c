//! PyTorch's threads, on which calls on its tensors run their loops.

use std::ffi::c_void;
use std::sync::OnceLock;

use minitensor::kernels::team::{self, Entered};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::tensor::interchange::exchange::ExchangeApi;

/// `torch_parallel_for` of PyTorch's stable C interface, since 2.10: calls a function with consecutive ranges that together cover
/// `begin..end`, and returns when all calls have returned. The result is 0 if nothing failed.
type ParallelFor = unsafe extern "C" fn(begin: i64, end: i64, grain: i64, f: Range, context: *mut c_void) -> i32;
type Range = unsafe extern "C" fn(begin: i64, end: i64, context: *mut c_void);
type Closure<'a> = &'a (dyn Fn(usize) + Sync);
/// `torch_get_num_threads`: fills in the number of threads. The result is 0 if nothing failed.
type NumThreads = unsafe extern "C" fn(count: *mut u32) -> i32;

struct PyTorch {
    tensors: &'static ExchangeApi,
    parallel_for: ParallelFor,
    num_threads: NumThreads,
    /// The process that has the threads, if any has. In a child that was forked, PyTorch would wait for them forever.
    process: Option<u32>,
}

static PYTORCH: OnceLock<PyTorch> = OnceLock::new();

/// Runs the loops of this thread on PyTorch's threads until the result is dropped, if the arrays are PyTorch's tensors.
pub fn enter(arrays: &ExchangeApi) -> Option<Entered> {
    let is_pytorch = PYTORCH.get().is_some_and(|pytorch| std::ptr::eq(pytorch.tensors, arrays));
    is_pytorch.then(|| team::enter(run))
}

fn run(n: usize, f: Closure<'_>) -> bool {
    unsafe extern "C" fn range(begin: i64, end: i64, context: *mut c_void) {
        // SAFETY: the pointer is that below, and its target lives until `parallel_for` returns.
        let f = unsafe { &*context.cast::<Closure<'_>>() };
        (begin..end).for_each(|k| f(k as usize));
    }
    let Some(pytorch) = PYTORCH.get() else { return false };
    let mut count = 0;
    // SAFETY: the function fills in the number.
    if unsafe { (pytorch.num_threads)(&raw mut count) } == 0 && count == 1 {
        // As in the workers of PyTorch's `DataLoader`.
        f(0);
        return true;
    }
    if pytorch.process != Some(std::process::id()) {
        return false;
    }
    let context = (&raw const f).cast_mut().cast::<c_void>();
    // SAFETY: `range` takes this context, and does not unwind. If the call fails, the caller of `run` does the work.
    let _status = unsafe { (pytorch.parallel_for)(0, n as i64, 1, range, context) };
    true
}

/// Makes PyTorch's threads known, by its class of tensors and the addresses of `torch_parallel_for` and `torch_get_num_threads`. `are_here`
/// is whether this process may have such threads.
#[pyfunction]
fn _set_threads_of_pytorch(class: &Bound<'_, PyType>, parallel_for: usize, num_threads: usize, are_here: bool) {
    // SAFETY: the addresses are those of the functions, which are never unloaded, or 0.
    let functions = unsafe {
        (
            std::mem::transmute::<*const c_void, Option<ParallelFor>>(parallel_for as *const c_void),
            std::mem::transmute::<*const c_void, Option<NumThreads>>(num_threads as *const c_void),
        )
    };
    let (Some(tensors), (Some(parallel_for), Some(num_threads))) = (ExchangeApi::of(class), functions) else { return };
    let process = are_here.then(std::process::id);
    let _ = PYTORCH.set(PyTorch { tensors, parallel_for, num_threads, process });
}

pub fn install(m: &Bound<'_, PyModule>) -> crate::error::Result<()> {
    m.add_function(wrap_pyfunction!(_set_threads_of_pytorch, m)?)?;
    Ok(())
}
