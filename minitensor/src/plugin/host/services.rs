//! The services of the host: the table of functions that a plugin may call.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::OnceLock;

use minitensor_kernels::threads;

use super::tensor::{Held, NO_ARRAY, hand_out, look, take_back};
use super::{devices, read};
use crate::autograd::{GradMode, is_grad_enabled};
use crate::error::{Error, Result, counted};
use crate::op::{Backward, OpRef, Value, bind, dispatch, registry, vjp};
use crate::plugin::abi::{self, ErrorSink, Host, Str, most};
use crate::plugin::ffi::{catch, checked};
use crate::stop;
use crate::tensor::{Device, DeviceKind, Tensor};

pub static HOST: Host = Host {
    struct_size: size_of::<Host>(),
    abi_major: abi::MAJOR,
    abi_minor: abi::MINOR,
    version: Str::of(env!("CARGO_PKG_VERSION")),
    register_op,
    register_device,
    register_kernel,
    device_type,
    device_name,
    allocate,
    release,
    num_threads,
    parallel_for,
    check_interrupt,
    log,
    tensor_zeros,
    tensor_retain,
    tensor_release,
    tensor_array,
    op_find,
    op_release,
    op_call,
    op_vjp,
    tensor_layout,
};

// SAFETY: it is a constant, and its functions may be called on any thread.
unsafe impl Sync for Host {}

/// The ops, devices and kernels that a plugin registers in its `init`.
#[derive(Default)]
struct Registered {
    ops: read::Ops,
    devices: Vec<devices::LoadedDevice>,
    kernels: Vec<devices::LoadedKernel>,
}

thread_local! {
    /// The registrations of the `init` that is running on this thread.
    static REGISTERED: RefCell<Option<Registered>> = const { RefCell::new(None) };
}

/// Runs the `init` of a plugin. Adds its devices and kernels, and returns its ops. After an error, nothing is added.
pub fn collect(init: impl FnOnce() -> Result<()>) -> Result<Vec<OpRef>> {
    let before = REGISTERED.replace(Some(Registered::default()));
    let done = init();
    let registered = REGISTERED.replace(before).unwrap_or_default();
    done?;
    let ops = registered.ops.into_list();
    let kernels: Vec<_> = registered.kernels.iter().map(|kernel| kernel.target(&ops)).collect::<Result<_>>()?;
    for device in registered.devices {
        device.register()?;
    }
    for (kernel, op) in registered.kernels.into_iter().zip(kernels) {
        kernel.add_to(&op)?;
    }
    Ok(ops)
}

/// Adds a registration of the `init` that is running on this thread.
///
/// # Safety
/// The sink is null or valid for the call.
unsafe fn register(error: *mut ErrorSink, add: impl FnOnce(&mut Registered) -> Result<()>) -> i32 {
    let register = || {
        REGISTERED.with(|registered| {
            let busy = |_| Error::runtime("another op is being registered; register ops one after another");
            let mut registered = registered.try_borrow_mut().map_err(busy)?;
            let registered = registered.as_mut().ok_or_else(|| {
                Error::runtime("ops can only be registered while the init of the plugin runs, on the same thread")
            })?;
            add(registered)
        })
    };
    // SAFETY: by the contract of this function.
    unsafe { catch(error, register) }
}

unsafe extern "C" fn register_op(_: *const Host, op: *const abi::Op, error: *mut ErrorSink) -> i32 {
    // SAFETY: the ABI requires a valid table that lives for ever, and a sink that is null or valid for the call.
    unsafe { register(error, |registered| registered.ops.add(op)) }
}

unsafe extern "C" fn register_device(_: *const Host, device: *const abi::Device, error: *mut ErrorSink) -> i32 {
    // SAFETY: as for an op.
    unsafe {
        register(error, |registered| {
            registered.devices.push(devices::LoadedDevice::read(device)?);
            Ok(())
        })
    }
}

unsafe extern "C" fn register_kernel(_: *const Host, kernel: *const abi::DeviceKernel, error: *mut ErrorSink) -> i32 {
    // SAFETY: as for an op.
    unsafe {
        register(error, |registered| {
            registered.kernels.push(devices::LoadedKernel::read(kernel)?);
            Ok(())
        })
    }
}

unsafe extern "C" fn device_type(name: Str, error: *mut ErrorSink) -> i32 {
    let mut number = -1;
    // SAFETY: the ABI requires the text to be valid, and the sink to be null or valid, for the call.
    unsafe {
        catch(error, || {
            number = abi::device_type(DeviceKind::named(name.line(most::NAME)?)?);
            Ok(())
        });
    }
    number
}

unsafe extern "C" fn device_name(number: i32) -> Str {
    abi::device_kind(number).map_or(Str::EMPTY, |kind| Str::of(kind.name()))
}

/// The alignment of memory allocated for plugins.
const ALIGN: usize = 64;

unsafe extern "C" fn allocate(bytes: usize) -> *mut c_void {
    match Layout::from_size_align(bytes.max(1), ALIGN) {
        // SAFETY: the size of the layout is not zero.
        Ok(layout) => unsafe { alloc(layout).cast() },
        Err(_) => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn release(memory: *mut c_void, bytes: usize) {
    if let (false, Ok(layout)) = (memory.is_null(), Layout::from_size_align(bytes.max(1), ALIGN)) {
        // SAFETY: the ABI requires that the memory came from `allocate` with this size, and is freed once.
        unsafe { dealloc(memory.cast(), layout) }
    }
}

unsafe extern "C" fn num_threads() -> i32 {
    threads::num_threads() as i32
}

unsafe extern "C" fn parallel_for(
    n: i64,
    grain: i64,
    body: abi::RangeFn,
    context: *mut c_void,
    error: *mut ErrorSink,
) -> i32 {
    let context = context as usize;
    let recorded = is_grad_enabled();
    let run = || {
        stop::parallel_for(usize::try_from(n).unwrap_or(0), usize::try_from(grain).unwrap_or(1), |range| {
            let _mode = GradMode::new(recorded);
            // SAFETY: the ABI requires that the body may run on several threads, with this context.
            checked(|sink| unsafe { body(context as *mut c_void, range.start as i64, range.end as i64, sink) })
        })
    };
    // SAFETY: the ABI requires the sink to be null or valid for the call.
    unsafe { catch(error, run) }
}

unsafe extern "C" fn check_interrupt(error: *mut ErrorSink) -> i32 {
    // SAFETY: the ABI requires the sink to be null or valid for the call.
    unsafe { catch(error, crate::interrupt::check) }
}

static LOG: OnceLock<fn(u32, &str)> = OnceLock::new();

/// Sets the function that receives log messages of plugins. Only the first call has an effect.
pub fn set_log(log: fn(level: u32, message: &str)) {
    let _ = LOG.set(log);
}

unsafe extern "C" fn log(level: u32, message: Str) {
    if let Some(log) = LOG.get() {
        // SAFETY: the ABI requires the text to be valid for the call.
        log(level, &unsafe { message.lossy() });
    }
}

/// The pointer that `f` returns, or null after passing its error to the sink.
unsafe fn pointer<T>(error: *mut ErrorSink, f: impl FnOnce() -> Result<*mut T>) -> *mut T {
    let mut given = std::ptr::null_mut();
    // SAFETY: the ABI requires the sink to be null or valid for the call.
    unsafe {
        catch(error, || {
            given = f()?;
            Ok(())
        });
    }
    given
}

unsafe extern "C" fn tensor_zeros(
    dtype: u32,
    ndim: i32,
    shape: *const i64,
    device_type: i32,
    device_id: i32,
    error: *mut ErrorSink,
) -> *mut abi::Tensor {
    // SAFETY: the ABI requires `shape` to be valid for reads of `ndim` sizes.
    let make = || unsafe {
        let ndim = usize::try_from(ndim)
            .map_err(|_| Error::value(format!("the number of dimensions must not be negative, got {ndim}")))?;
        let sizes = abi::slice(shape, ndim, most::DIMS, "shape")?;
        let kind = abi::device_kind(device_type).zip(u32::try_from(device_id).ok());
        let device = kind.map(|(kind, index)| Device::new(kind, index));
        let unknown = || Error::value(format!("unknown device: type {device_type}, index {device_id}"));
        let device = device.filter(|device| device.exists()).ok_or_else(unknown)?;
        Ok(hand_out(Tensor::zeros(read::sizes(sizes)?, abi::dtype(dtype)?, device)?))
    };
    // SAFETY: the ABI requires the sink to be null or valid for the call.
    unsafe { pointer(error, make) }
}

unsafe extern "C" fn tensor_retain(tensor: *const abi::Tensor) -> *mut abi::Tensor {
    // SAFETY: the ABI requires the handle to be null, or held by the plugin.
    unsafe { look(tensor) }.map_or(std::ptr::null_mut(), |held| hand_out(held.tensor.clone()))
}

unsafe extern "C" fn tensor_release(tensor: *mut abi::Tensor) {
    // SAFETY: the ABI requires the handle to be null, or held by the plugin, which does not use it afterwards.
    drop(unsafe { take_back(tensor) });
}

unsafe extern "C" fn tensor_array(tensor: *const abi::Tensor) -> abi::Array {
    // SAFETY: the ABI requires the handle to be null, or held by the plugin.
    unsafe { look(tensor) }.map_or(NO_ARRAY, Held::array)
}

unsafe extern "C" fn tensor_layout(tensor: *const abi::Tensor) -> abi::Array {
    // SAFETY: as for `tensor_array`.
    unsafe { look(tensor) }.map_or(NO_ARRAY, Held::layout)
}

unsafe extern "C" fn op_find(name: Str, error: *mut ErrorSink) -> *mut abi::OpRef {
    // SAFETY: the ABI requires the text to be valid, and the sink to be null or valid, for the call.
    unsafe { pointer(error, || Ok(Box::into_raw(Box::new(registry::get_or_gone(name.line(most::NAME)?)?)).cast())) }
}

unsafe extern "C" fn op_release(op: *mut abi::OpRef) {
    if !op.is_null() {
        // SAFETY: the pointer came from `op_find`, and the ABI requires that it is released only once.
        drop(unsafe { Box::from_raw(op.cast::<OpRef>()) });
    }
}

/// # Safety
/// The pointer is null, or came from `op_find` and is not released for `'a`.
unsafe fn op<'a>(op: *const abi::OpRef) -> Result<&'a OpRef> {
    // SAFETY: by the contract of this function.
    unsafe { op.cast::<OpRef>().as_ref() }.ok_or_else(|| Error::value("the op is a null pointer"))
}

unsafe extern "C" fn op_call(
    callee: *const abi::OpRef,
    args: *const abi::Arg,
    n_args: usize,
    names: *const Str,
    keywords: *const abi::Arg,
    n_keywords: usize,
    outputs: *mut *mut abi::Tensor,
    n_outputs: *mut usize,
    error: *mut ErrorSink,
) -> i32 {
    // SAFETY: the ABI requires all pointers to be valid for the given numbers of items for the call.
    let call = || unsafe {
        let callee = op(callee)?;
        if outputs.is_null() || n_outputs.is_null() {
            return Err(Error::value("'outputs' or 'n_outputs' is a null pointer"));
        }
        let positional = abi::slice(args, n_args, most::LIST, "args")?.iter();
        let positional = positional.map(|arg| value(arg)).collect::<Result<Vec<Value<'_>>>>()?;
        let names = abi::slice(names, n_keywords, most::PARTS, "names")?.iter();
        let names = names.map(|name| name.line(most::NAME)).collect::<Result<Vec<_>>>()?;
        let given = abi::slice(keywords, n_keywords, most::PARTS, "keywords")?.iter().map(|arg| value(arg));
        let named: Vec<(&str, Value<'_>)> =
            names.into_iter().zip(given).map(|(n, v)| Ok((n, v?))).collect::<Result<_>>()?;
        let (inputs, attrs) = bind(callee, &positional, &named)?;
        let results = dispatch(callee, &inputs, &attrs)?.into_vec();
        if results.len() > *n_outputs {
            return Err(Error::value(format!(
                "op '{}' returns {}, but 'outputs' has room for {}",
                callee.name,
                counted(results.len(), "tensor"),
                *n_outputs
            )));
        }
        *n_outputs = results.len();
        results.into_iter().enumerate().for_each(|(k, tensor)| *outputs.add(k) = hand_out(tensor));
        Ok(())
    };
    // SAFETY: the ABI requires the sink to be null or valid for the call.
    unsafe { catch(error, call) }
}

/// # Safety
/// All pointers in the argument are valid for `'a`.
unsafe fn value<'a>(arg: &abi::Arg) -> Result<Value<'a>> {
    // SAFETY: by the contract of this function.
    unsafe {
        if let Some(held) = look(arg.tensor) {
            return Ok(Value::Tensor(&held.tensor));
        }
        if !arg.tensors.is_null() {
            let all = abi::slice(arg.tensors, arg.n_tensors, most::LIST, "tensors")?.iter();
            let tensor = |handle: &*mut abi::Tensor| {
                look(*handle).map(|held| &held.tensor).ok_or_else(|| Error::value("a tensor is a null pointer"))
            };
            return all.map(tensor).collect::<Result<Vec<_>>>().map(Value::Tensors);
        }
        arg.value.get().map(Value::Attr)
    }
}

unsafe extern "C" fn op_vjp(
    callee: *const abi::OpRef,
    inputs: *const *mut abi::Tensor,
    n_inputs: usize,
    cotangent: *mut abi::Tensor,
    gradients: *mut *mut abi::Tensor,
    error: *mut ErrorSink,
) -> i32 {
    // SAFETY: the ABI requires all pointers to be valid for the given numbers of items for the call.
    let call = || unsafe {
        let missing = || Error::value("a tensor is a null pointer");
        let inputs = abi::slice(inputs, n_inputs, most::LIST, "inputs")?.iter();
        let inputs =
            inputs.map(|t| look(*t).map(|held| &held.tensor).ok_or_else(missing)).collect::<Result<Vec<_>>>()?;
        let (callee, cotangent) = (op(callee)?, &look(cotangent).ok_or_else(missing)?.tensor);
        if matches!(callee.backward, Backward::None(_) | Backward::NotNeeded) {
            return Err(Error::runtime(format!("op '{}' has no gradient", callee.name)));
        }
        if gradients.is_null() {
            return Err(Error::value("'gradients' is a null pointer"));
        }
        for (k, gradient) in vjp(callee, &inputs, cotangent)?.into_iter().enumerate() {
            *gradients.add(k) = gradient.map_or(std::ptr::null_mut(), hand_out);
        }
        Ok(())
    };
    // SAFETY: the ABI requires the sink to be null or valid for the call.
    unsafe { catch(error, call) }
}
