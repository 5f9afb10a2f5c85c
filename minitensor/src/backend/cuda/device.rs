//! [`CudaDevice`]: the memory and the kernels of one device.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::Hash;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use minitensor_kernels::cuda::{ElementKernel, RowKernel, Source};
use minitensor_kernels::program::Program;

use super::driver::{Driver, Function, Stream};
use crate::backend::Allocator;
use crate::backend::programs::ProgramCall;
use crate::error::{Error, Result};

thread_local! {
    /// The streams that this thread has chosen, by device.
    static STREAMS: RefCell<Vec<Stream>> = const { RefCell::new(Vec::new()) };
}

/// More devices than a machine has.
const MOST_DEVICES: u32 = 1 << 10;

/// Whether no thread has chosen another stream than the default one.
static IS_DEFAULT: AtomicBool = AtomicBool::new(true);

/// The stream of this thread on a device.
pub fn stream(index: u32) -> Stream {
    // Tensors are also freed while a thread ends.
    STREAMS.try_with(|streams| streams.borrow().get(index as usize).copied()).ok().flatten().unwrap_or(0)
}

/// Chooses the stream of this thread on a device. Returns the one before.
pub fn set_stream(index: u32, stream: Stream) -> Stream {
    if index >= MOST_DEVICES {
        return 0;
    }
    IS_DEFAULT.fetch_and(stream == 0, Ordering::Relaxed);
    let set = STREAMS.try_with(|streams| {
        let (mut streams, at) = (streams.borrow_mut(), index as usize);
        let length = streams.len().max(at + 1);
        streams.resize(length, 0);
        std::mem::replace(&mut streams[at], stream)
    });
    set.unwrap_or(0)
}

/// What a kernel is compiled from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// A program over elements.
    Elements(ElementKernel),
    /// A program over rows.
    Rows(RowKernel),
}

impl Kernel {
    fn sources(&self, program: &Program, masks: &[usize]) -> Option<Vec<Source>> {
        match self {
            Kernel::Elements(kernel) => kernel.source(program, masks).map(|source| vec![source]),
            Kernel::Rows(kernel) => kernel.sources(program, masks),
        }
    }
}

/// Kernels that are launched one after the other, with the threads of their blocks, and whether rows are split among blocks. `None` if there
/// are none.
type Compiled = Option<Arc<[(Function, u32, bool)]>>;

/// The kernels of a program, which is kept, so that no other has its address.
#[derive(Debug)]
struct Kept {
    _owner: Arc<dyn Any + Send + Sync>,
    compiled: Compiled,
}

/// The most kernels that are found by their programs. Further ones are found by their sources.
const MOST: usize = 1 << 14;

/// One device.
#[derive(Debug)]
pub struct CudaDevice {
    index: u32,
    driver: Box<dyn Driver>,
    /// The kernels of programs, by address; the programs are kept.
    of_programs: Mutex<HashMap<(usize, Kernel), Kept>>,
    of_sources: Mutex<HashMap<Source, Function>>,
    /// The streams of blocks that were not allocated on the default stream, by address.
    streams: Mutex<HashMap<usize, Stream>>,
    /// A `u64` of the device that kernels set to 1 if a position is out of range.
    status: OnceLock<usize>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CudaDevice {
    /// The device of a driver.
    pub fn new((index, driver): (u32, Box<dyn Driver>)) -> CudaDevice {
        let (of_programs, of_sources, streams) = Default::default();
        CudaDevice { index, driver, of_programs, of_sources, streams, status: OnceLock::new() }
    }

    /// Its driver.
    pub fn driver(&self) -> &dyn Driver {
        &*self.driver
    }

    /// The stream of this thread.
    pub fn stream(&self) -> Stream {
        stream(self.index)
    }

    /// Submits the kernels of a program. The number of blocks is `blocks`, times `sections` for a kernel that splits rows. Returns false if
    /// there is no kernel.
    ///
    /// # Safety
    /// The argument is that of the kernel, and refers to memory that it may use.
    pub unsafe fn run(
        &self,
        call: &ProgramCall<'_>,
        kernel: Kernel,
        (blocks, sections): (usize, usize),
        argument: &[u64],
    ) -> Result<bool> {
        let Some(compiled) = self.compiled(call, kernel)? else { return Ok(false) };
        for (function, threads, is_split) in compiled.iter() {
            let blocks = if *is_split { blocks * sections } else { blocks };
            let blocks = u32::try_from(blocks).unwrap_or(u32::MAX >> 1);
            // SAFETY: by contract.
            unsafe { self.driver.launch(*function, blocks, *threads, argument, self.stream())? };
        }
        Ok(true)
    }

    fn compiled(&self, call: &ProgramCall<'_>, kernel: Kernel) -> Result<Compiled> {
        let key = (std::ptr::from_ref(call.program).addr(), kernel);
        if let Some(kept) = lock(&self.of_programs).get(&key) {
            return Ok(kept.compiled.clone());
        }
        let load = |source: Source| {
            let (threads, is_split) = (source.threads, source.is_split);
            Ok((self.load(source)?, threads, is_split))
        };
        let sources = key.1.sources(call.program, call.masks);
        let compiled = sources.map(|all| all.into_iter().map(load).collect::<Result<Arc<[_]>>>()).transpose();
        let compiled = compiled.map_err(|e: Error| e.context(format!("op '{}'", call.op)))?;
        let mut all = lock(&self.of_programs);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(key, Kept { _owner: call.owner.clone(), compiled: compiled.clone() });
        Ok(compiled)
    }

    /// The kernel of a source, which is compiled once.
    pub fn load(&self, source: Source) -> Result<Function> {
        if let Some(function) = lock(&self.of_sources).get(&source) {
            return Ok(*function);
        }
        // Other threads may compile meanwhile; one of two equal kernels is kept.
        let function = self.driver.load(&source)?;
        Ok(*lock(&self.of_sources).entry(source).or_insert(function))
    }

    /// The address of the status.
    pub fn status(&self) -> Result<usize> {
        if let Some(status) = self.status.get() {
            return Ok(*status);
        }
        let block = self.driver.allocate(size_of::<u64>(), 0)?;
        // SAFETY: the block has these bytes.
        unsafe { self.driver.zero(block.as_ptr(), size_of::<u64>(), 0)? };
        // Kernels of any stream may use it from now on.
        self.driver.synchronize(0)?;
        Ok(*self.status.get_or_init(|| block.as_ptr().expose_provenance()))
    }

    /// The error of a kernel that found a position out of range, after those on this thread's stream have run.
    fn check(&self) -> Result<()> {
        let Some(status) = self.status.get() else { return Ok(()) };
        let status = std::ptr::with_exposed_provenance_mut::<u8>(*status);
        let mut bytes = [0; size_of::<u64>()];
        // SAFETY: the status has these bytes.
        unsafe { self.driver.read(status, &mut bytes, self.stream())? };
        if u64::from_ne_bytes(bytes) == 0 {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.driver.zero(status, bytes.len(), self.stream())? };
        Err(Error::index(format!(
            "an index or position of an earlier call on device 'cuda:{}' is out of range, so its results are wrong; the device computes \
             after calls return, so call mt.cuda.synchronize() after each to find it",
            self.index
        )))
    }
}

// SAFETY: blocks are those of the driver.
unsafe impl Allocator for CudaDevice {
    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>> {
        let stream = CudaDevice::stream(self);
        let block = self.driver.allocate(bytes, stream)?;
        if stream != 0 {
            lock(&self.streams).insert(block.as_ptr().addr(), stream);
        }
        Ok(block)
    }

    unsafe fn free(&self, block: NonNull<u8>, bytes: usize) {
        let now = CudaDevice::stream(self);
        if !IS_DEFAULT.load(Ordering::Relaxed) {
            let before = lock(&self.streams).remove(&block.as_ptr().addr()).unwrap_or(0);
            // The block is used on the stream of its allocation, and may be freed on another.
            if before != now && self.driver.order(before, now).is_err() {
                return;
            }
        }
        // SAFETY: by contract.
        unsafe { self.driver.free(block, bytes, now) }
    }

    unsafe fn write(&self, from: &[u8], to: *mut u8) -> Result<()> {
        // SAFETY: by contract.
        unsafe { self.driver.write(from, to, self.stream()) }
    }

    unsafe fn read(&self, from: *const u8, to: &mut [u8]) -> Result<()> {
        // SAFETY: by contract.
        unsafe { self.driver.read(from, to, self.stream())? };
        self.check()
    }

    fn stream(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(CudaDevice::stream(self))
    }

    fn wait(&self) -> Result<()> {
        self.driver.synchronize(CudaDevice::stream(self))
    }

    fn synchronize(&self) -> Result<()> {
        self.wait()?;
        self.check()
    }
}
