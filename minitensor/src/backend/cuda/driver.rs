//! [`Driver`]: the functions of a device that the backend calls.

use std::fmt::Debug;
use std::ptr::NonNull;

use minitensor_kernels::cuda::Source;

use super::matmul::Product;
use crate::error::Result;

/// A stream of a device, as an address. 0 is the default stream.
pub type Stream = usize;

/// A kernel that is compiled for a device, as a handle of its driver.
#[derive(Clone, Copy, Debug)]
pub struct Function(pub usize);

/// One device. Calls on one stream run in the order in which they are submitted.
///
/// # Safety
/// Blocks that are allocated at the same time do not overlap.
pub unsafe trait Driver: Send + Sync + Debug {
    /// The name of the device.
    fn name(&self) -> String;

    /// The free bytes and all bytes of its memory.
    fn memory(&self) -> Result<(usize, usize)>;

    /// A block of at least one byte, which calls on the stream may use.
    fn allocate(&self, bytes: usize, stream: Stream) -> Result<NonNull<u8>>;

    /// Frees a block after the calls that were submitted on the stream.
    ///
    /// # Safety
    /// The block is of [`Driver::allocate`], with this size, and is freed once.
    unsafe fn free(&self, block: NonNull<u8>, bytes: usize, stream: Stream);

    /// Copies from main memory, which may be changed afterwards.
    ///
    /// # Safety
    /// `to` has room for the bytes.
    unsafe fn write(&self, from: &[u8], to: *mut u8, stream: Stream) -> Result<()>;

    /// Copies to main memory, after the calls that were submitted on the stream.
    ///
    /// # Safety
    /// `from` has as many bytes.
    unsafe fn read(&self, from: *const u8, to: &mut [u8], stream: Stream) -> Result<()>;

    /// Copies bytes within the device.
    ///
    /// # Safety
    /// Both ranges have this number of bytes, and are within blocks.
    unsafe fn copy(&self, from: *const u8, to: *mut u8, bytes: usize, stream: Stream) -> Result<()>;

    /// Fills bytes with 0.
    ///
    /// # Safety
    /// The range has this number of bytes, and is within a block.
    unsafe fn zero(&self, to: *mut u8, bytes: usize, stream: Stream) -> Result<()>;

    /// Compiles a kernel, which stays loaded.
    fn load(&self, source: &Source) -> Result<Function>;

    /// Submits a kernel. `argument` is the struct that it takes, with fields of 64 bits.
    ///
    /// # Safety
    /// The function is one of this driver, and may use the memory that the argument refers to.
    unsafe fn launch(
        &self,
        function: Function,
        blocks: u32,
        threads: u32,
        argument: &[u64],
        stream: Stream,
    ) -> Result<()>;

    /// Submits products of matrices, or returns false if the driver has no library for them.
    ///
    /// # Safety
    /// The matrices are in memory that the kernel may use.
    unsafe fn multiply(&self, product: &Product, stream: Stream) -> Result<bool>;

    /// Makes later calls on one stream wait for earlier calls on another.
    fn order(&self, before: Stream, after: Stream) -> Result<()>;

    /// Waits for what was submitted on the stream.
    fn synchronize(&self, stream: Stream) -> Result<()>;
}
