//! A toy device: memory that the CPU cannot read by its addresses, and kernels of a few ops. It proves that the engine makes
//! no assumption about devices.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use minitensor::backend::{self, Allocator, Backend};
use minitensor::dtype::Scalar;
use minitensor::kernels::Field;
use minitensor::op::{ArrayKernel, KernelCall, KernelEntry, Kernels};
use minitensor::tensor::DeviceKind;
use minitensor::{DType, Device, Error, Result, Tensor};
use minitensor_ops as _;

/// An address of the toy has this bit, so reading from it crashes.
const TAG: usize = 1 << 62;

/// The toy has two devices.
static MEMORY: [ToyMemory; 2] = [const { ToyMemory { bytes: AtomicIsize::new(0) } }; 2];

pub struct ToyMemory {
    bytes: AtomicIsize,
}

// SAFETY: the blocks are those of the system's allocator.
unsafe impl Allocator for ToyMemory {
    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>> {
        let layout = Layout::from_size_align(bytes, 64).map_err(|_| Error::memory("too large"))?;
        // SAFETY: the engine asks for at least one byte.
        let block = NonNull::new(unsafe { alloc(layout) }).ok_or_else(|| Error::memory("no memory"))?;
        self.bytes.fetch_add(bytes as isize, Ordering::SeqCst);
        Ok(block.map_addr(|address| address | TAG))
    }

    unsafe fn free(&self, block: NonNull<u8>, bytes: usize) {
        self.bytes.fetch_sub(bytes as isize, Ordering::SeqCst);
        // SAFETY: `allocate` made the block with this layout.
        unsafe { dealloc(on_cpu(block.as_ptr()), Layout::from_size_align_unchecked(bytes, 64)) }
    }

    unsafe fn write(&self, from: &[u8], to: *mut u8) -> Result<()> {
        // SAFETY: the range is within a block.
        unsafe { on_cpu(to).copy_from_nonoverlapping(from.as_ptr(), from.len()) }
        Ok(())
    }

    unsafe fn read(&self, from: *const u8, to: &mut [u8]) -> Result<()> {
        // SAFETY: the range is within a block.
        unsafe { on_cpu(from.cast_mut()).copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) }
        Ok(())
    }
}

fn on_cpu<T>(address: *mut T) -> *mut T {
    assert_ne!(address.addr() & TAG, 0, "this address is not one of the toy");
    address.map_addr(|address| address & !TAG)
}

struct Toy(DeviceKind);

impl Backend for Toy {
    fn kind(&self) -> DeviceKind {
        self.0
    }

    fn devices(&self) -> &[&'static dyn Allocator] {
        static DEVICES: [&dyn Allocator; 2] = [&MEMORY[0], &MEMORY[1]];
        &DEVICES
    }
}

/// The toy, which is registered once.
pub fn device(index: u32) -> Device {
    static KIND: std::sync::OnceLock<DeviceKind> = std::sync::OnceLock::new();
    let kind = *KIND.get_or_init(|| {
        let kind = DeviceKind::named("toy").expect("it is a name");
        backend::register(Box::leak(Box::new(Toy(kind)))).expect("it is registered once");
        kind
    });
    Device::new(kind, index)
}

/// The bytes that tensors hold on a device.
pub fn bytes(index: usize) -> isize {
    MEMORY[index].bytes.load(Ordering::SeqCst)
}

/// The addresses of all elements, in row-major order.
fn elements<T>(t: &Tensor) -> Vec<*mut T> {
    let mut all = vec![on_cpu(t.data_ptr()).cast::<T>()];
    for (size, stride) in t.shape().iter().zip(t.strides()) {
        all = all.into_iter().flat_map(|p| (0..*size).map(move |i| p.wrapping_offset(i as isize * stride))).collect();
    }
    all
}

/// All elements of an input.
fn read<T: Copy>(call: &KernelCall<'_>, input: usize) -> Vec<T> {
    // SAFETY: the addresses are those of the elements.
    elements::<T>(call.inputs[input].expect("it is given")).into_iter().map(|p| unsafe { *p }).collect()
}

fn write<T>(t: &Tensor, values: impl Iterator<Item = T>) {
    // SAFETY: the addresses are those of the elements.
    elements::<T>(t).into_iter().zip(values).for_each(|(p, v)| unsafe { *p = v });
}

/// A kernel of one dtype.
fn kernel(dtype: DType, run: impl Fn(&KernelCall<'_>, &Tensor) + Send + Sync + 'static) -> (Vec<DType>, ArrayKernel) {
    let whole = move |call: &KernelCall<'_>| {
        let out = call.outputs[0].expect("the only output is wanted");
        run(call, out);
        Ok(())
    };
    (vec![dtype], Arc::new(whole))
}

fn unary<T: Scalar<Stored = T>>(f: fn(T) -> T) -> (Vec<DType>, ArrayKernel) {
    kernel(T::DTYPE, move |call, out| write(out, read::<T>(call, 0).into_iter().map(f)))
}

fn binary<T: Scalar<Stored = T>, R: Copy + 'static>(f: fn(T, T) -> R) -> (Vec<DType>, ArrayKernel) {
    kernel(T::DTYPE, move |call, out| {
        let (a, b) = (read::<T>(call, 0), read::<T>(call, 1));
        write(out, a.into_iter().zip(b).map(|(a, b)| f(a, b)));
    })
}

/// The sum of each row, which is the last axis.
fn row_sum(call: &KernelCall<'_>, out: &Tensor) {
    let all = read::<f64>(call, 0);
    write(out, all.chunks((all.len() / out.numel().max(1)).max(1)).map(|row| row.iter().sum::<f64>()));
}

/// Each row in reverse order, read and written one element after the other.
fn reversed_rows(call: &KernelCall<'_>, out: &Tensor) {
    let (from, to) = (elements::<f64>(call.inputs[0].expect("it is given")), elements::<f64>(out));
    let n = out.shape().last().copied().unwrap_or(1);
    for (i, to) in to.into_iter().enumerate() {
        // SAFETY: the addresses are those of the elements.
        unsafe { *to = *from[i / n * n + n - 1 - i % n] }
    }
}

/// `where(mask, a, b)`.
fn choose(call: &KernelCall<'_>, out: &Tensor) {
    let (mask, a, b) = (read::<u8>(call, 0), read::<f64>(call, 1), read::<f64>(call, 2));
    write(out, mask.into_iter().zip(a.into_iter().zip(b)).map(|(mask, (a, b))| if mask != 0 { a } else { b }));
}

macro_rules! kernels {
    ($($op:literal: $($kernel:expr),*;)*) => {
        $(minitensor::__private::inventory::submit! {
            KernelEntry { op: $op, device: "toy", kernels: || Kernels::Arrays(vec![$($kernel),*]) }
        })*
    };
}
kernels! {
    "add": binary(|a: f64, b| a + b), binary(|a: f32, b| a + b);
    "subtract": binary(|a: f64, b| a - b), binary(|a: f32, b| a - b);
    "multiply": binary(|a: f64, b| a * b), binary(|a: f32, b| a * b);
    "divide": binary(|a: f64, b| a / b);
    "negative": unary(|a: f64| -a);
    "exp": unary(<f64 as Field>::exp), unary(<f32 as Field>::exp);
    "tanh": unary(<f64 as Field>::tanh);
    "sigmoid": unary(<f64 as Field>::sigmoid);
    "equal": binary(|a: f64, b| a == b);
    "less": binary(|a: f64, b| a < b);
    "where": kernel(DType::F64, choose);
    "sum": kernel(DType::F64, row_sum);
    "turned_": kernel(DType::F64, reversed_rows);
}
