//! A device whose memory is main memory and whose kernels are compiled by a C compiler. It computes what a GPU does, slowly.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{c_int, c_longlong, c_uint, c_void};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use libloading::Library;
use minitensor_kernels::cuda::{EMULATOR, PRELUDE, Source};

use super::driver::{Driver, Function, Stream};
use super::matmul::Product;
use crate::error::{Error, Result};

/// The function of the emulator that runs a kernel.
type Emulate = unsafe extern "C" fn(*const c_void, c_longlong, c_uint) -> c_int;

/// Runs the kernel in one thread of a block.
const RUN_THREAD: &str = "
static void run_thread(void) {
  kernel(*(const Arguments *)emulated.arguments);
  emulated.is_done[emulated.thread] = 1;
}
";

/// An emulated device.
#[derive(Debug, Default)]
struct Emulated {
    /// The kernels. One runs at a time.
    loaded: Mutex<Vec<Library>>,
}

/// Two emulated devices.
pub fn all() -> Result<Vec<(u32, Box<dyn Driver>)>> {
    Ok((0..2).map(|index| (index, Box::<Emulated>::default() as Box<dyn Driver>)).collect())
}

fn layout(bytes: usize) -> Result<Layout> {
    Layout::from_size_align(bytes.max(1), 256).map_err(|_| Error::memory(format!("cannot allocate {bytes} bytes")))
}

// SAFETY: blocks are those of the system's allocator.
unsafe impl Driver for Emulated {
    fn name(&self) -> String {
        "emulated by the CPU".into()
    }

    fn memory(&self) -> Result<(usize, usize)> {
        Ok((usize::MAX, usize::MAX))
    }

    fn allocate(&self, bytes: usize, _: Stream) -> Result<NonNull<u8>> {
        // SAFETY: the size is not 0.
        let block = NonNull::new(unsafe { alloc(layout(bytes)?) });
        block.ok_or_else(|| Error::memory(format!("cannot allocate {bytes} bytes on an emulated device")))
    }

    unsafe fn free(&self, block: NonNull<u8>, bytes: usize, _: Stream) {
        if let Ok(layout) = layout(bytes) {
            // SAFETY: by contract.
            unsafe { dealloc(block.as_ptr(), layout) }
        }
    }

    unsafe fn write(&self, from: &[u8], to: *mut u8, _: Stream) -> Result<()> {
        // SAFETY: by contract.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    unsafe fn read(&self, from: *const u8, to: &mut [u8], _: Stream) -> Result<()> {
        // SAFETY: by contract.
        unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    unsafe fn copy(&self, from: *const u8, to: *mut u8, bytes: usize, _: Stream) -> Result<()> {
        // SAFETY: by contract.
        unsafe { from.copy_to(to, bytes) };
        Ok(())
    }

    unsafe fn zero(&self, to: *mut u8, bytes: usize, _: Stream) -> Result<()> {
        // SAFETY: by contract.
        unsafe { to.write_bytes(0, bytes) };
        Ok(())
    }

    fn load(&self, source: &Source) -> Result<Function> {
        let files = Files::new()?;
        let text = [EMULATOR, PRELUDE, &source.text, RUN_THREAD].concat();
        let failed = |what: &str| Error::runtime(format!("the emulated device 'cuda' cannot {what}"));
        std::fs::write(&files.source, text).map_err(|e| failed(&format!("write its kernel: {e}")))?;
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let compiled = Command::new(&compiler)
            .args([
                "-std=gnu11",
                "-O1",
                "-w",
                "-Werror=implicit-function-declaration",
                "-ffp-contract=off",
                "-shared",
                "-fPIC",
                "-o",
            ])
            .args([&files.library, &files.source])
            .arg("-lm")
            .stdin(Stdio::null())
            .output()
            .map_err(|e| failed(&format!("start the C compiler '{compiler}': {e}")))?;
        if !compiled.status.success() {
            let why = String::from_utf8_lossy(&compiled.stderr);
            return Err(failed(&format!("compile its kernel:\n{why}\n{}", source.text)));
        }
        // SAFETY: the library is a kernel, whose initialization does nothing.
        let library = unsafe { Library::new(&files.library) }.map_err(|e| failed(&format!("load its kernel: {e}")))?;
        // SAFETY: the emulator defines the function so.
        let function = unsafe { library.get::<Emulate>(b"emulate") };
        let address = function.map_err(|e| failed(&format!("find its kernel: {e}"))).map(|f| *f as usize)?;
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).push(library);
        Ok(Function(address))
    }

    unsafe fn launch(&self, function: Function, blocks: u32, threads: u32, argument: &[u64], _: Stream) -> Result<()> {
        let _running = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the function is one of `load`, whose library stays loaded.
        let emulate = unsafe { std::mem::transmute::<usize, Emulate>(function.0) };
        // SAFETY: by contract.
        match unsafe { emulate(argument.as_ptr().cast(), blocks.into(), threads) } {
            0 => Ok(()),
            _ => Err(Error::memory("cannot allocate the stacks of emulated threads")),
        }
    }

    unsafe fn multiply(&self, _: &Product, _: Stream) -> Result<bool> {
        Ok(false)
    }

    fn order(&self, _: Stream, _: Stream) -> Result<()> {
        Ok(())
    }

    fn synchronize(&self, _: Stream) -> Result<()> {
        Ok(())
    }
}

/// The files of a kernel, in a folder of their own, which is removed when the kernel is loaded.
struct Files {
    folder: PathBuf,
    source: PathBuf,
    library: PathBuf,
}

impl Files {
    fn new() -> Result<Files> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("minitensor-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        // A folder of someone else is not used.
        std::fs::create_dir(&folder).map_err(|e| {
            Error::runtime(format!("the emulated device 'cuda' cannot create the folder {}: {e}", folder.display()))
        })?;
        Ok(Files { source: folder.join("kernel.c"), library: folder.join("kernel.so"), folder })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
