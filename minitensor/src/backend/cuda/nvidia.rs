//! A GPU, by the CUDA driver. NVRTC compiles kernels. Both are loaded at their first use.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::cublas::{result as blas, sys as blas_sys};
use cudarc::driver::{DriverError, result as cuda, sys};
use cudarc::nvrtc::{result as nvrtc, sys as nvrtc_sys};
use minitensor_kernels::cuda::{NAME, PRELUDE, Source};

use super::driver::{Driver, Function, Stream};
use super::libraries;
use super::matmul::{Matrix, Product};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// A GPU.
#[derive(Debug)]
struct Gpu {
    device: sys::CUdevice,
    context: sys::CUcontext,
    /// Such as `sm_90`.
    architecture: String,
    /// cuBLAS, if it is found. It is loaded at the first product.
    blas: OnceLock<Option<Mutex<Blas>>>,
}

/// A handle of cuBLAS.
#[derive(Debug)]
struct Blas(blas_sys::cublasHandle_t);

// SAFETY: a handle may be used by all threads, one at a time.
unsafe impl Send for Blas {}

// SAFETY: handles of the driver may be used by all threads.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

#[cold]
fn failed(what: &str, error: DriverError) -> Error {
    let text =
        |text: std::result::Result<&CStr, _>| text.map_or("unknown", |t| t.to_str().unwrap_or("unknown")).to_owned();
    let message = format!("CUDA cannot {what}: {} ({})", text(error.error_string()), text(error.error_name()));
    match error.0 {
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::memory(message),
        _ => Error::runtime(message),
    }
}

/// The GPUs of this machine.
pub fn all() -> Result<Vec<(u32, Box<dyn Driver>)>> {
    // SAFETY: it only loads the library, by the names of NVIDIA's driver.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::runtime("the library of the NVIDIA driver, libcuda, was not found"));
    }
    cuda::init().map_err(|e| failed("start", e))?;
    let count = cuda::device::get_count().map_err(|e| failed("count devices", e))?;
    if count == 0 {
        return Err(Error::runtime("the NVIDIA driver finds no device"));
    }
    (0..count).map(|index| Ok((index as u32, Box::new(Gpu::new(index)?) as Box<dyn Driver>))).collect()
}

impl Gpu {
    fn new(index: c_int) -> Result<Gpu> {
        use sys::CUdevice_attribute::*;
        let device = cuda::device::get(index).map_err(|e| failed("find a device", e))?;
        let attribute = |attribute| {
            // SAFETY: the device exists.
            unsafe { cuda::device::get_attribute(device, attribute) }.map_err(|e| failed("describe a device", e))
        };
        let major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        // SAFETY: the device exists. The context is that which other libraries use, too.
        let context = unsafe { cuda::primary_ctx::retain(device) }.map_err(|e| failed("create a context", e))?;
        let gpu = Gpu { device, context, architecture: format!("sm_{major}{minor}"), blas: OnceLock::new() };
        let entered = gpu.enter()?;
        // Memory that was freed stays with the process, so that allocating it again takes no call of the system.
        // SAFETY: the device exists, and the attribute is a `u64`.
        unsafe {
            let pool = cuda::device::get_default_mem_pool(device).map_err(|e| failed("find a memory pool", e))?;
            let mut all = u64::MAX;
            let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            cuda::mem_pool::set_attribute(pool, attribute, (&raw mut all).cast())
                .map_err(|e| failed("keep memory", e))?;
        }
        drop(entered);
        Ok(gpu)
    }

    /// The handle of cuBLAS; `None` if it is not found.
    fn blas(&self) -> Result<Option<&Mutex<Blas>>> {
        let _entered = self.enter()?;
        if let Some(known) = self.blas.get() {
            return Ok(known.as_ref());
        }
        // SAFETY: it only loads the library, by the names of NVIDIA's library.
        let is_found = libraries::find("cublas", || unsafe { blas_sys::is_culib_present() });
        let handle = if is_found { Some(blas::create_handle()) } else { None };
        let handle = handle.transpose().map_err(|e| Error::runtime(format!("cuBLAS cannot start: {e:?}")))?;
        Ok(self.blas.get_or_init(|| handle.map(|handle| Mutex::new(Blas(handle)))).as_ref())
    }

    /// Makes calls of this thread refer to the device, until the result is dropped.
    fn enter(&self) -> Result<Entered> {
        let failed = |e| failed("enter the context", e);
        let before = cuda::ctx::get_current().map_err(failed)?;
        if before != Some(self.context) {
            // SAFETY: the context is retained for the life of the process.
            unsafe { cuda::ctx::set_current(self.context) }.map_err(failed)?;
        }
        Ok(Entered(before.filter(|before| *before != self.context)))
    }
}

/// Restores the context that another library uses on this thread.
#[must_use = "dropping the guard restores the context"]
struct Entered(Option<sys::CUcontext>);

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // SAFETY: the context was the current one.
            let _ = unsafe { cuda::ctx::set_current(before) };
        }
    }
}

/// The type of a dtype in cuBLAS.
fn number_of(dtype: DType) -> Option<blas_sys::cudaDataType_t> {
    Some(match dtype {
        DType::F16 => blas_sys::cudaDataType_t::CUDA_R_16F,
        DType::Bf16 => blas_sys::cudaDataType_t::CUDA_R_16BF,
        DType::F32 => blas_sys::cudaDataType_t::CUDA_R_32F,
        DType::F64 => blas_sys::cudaDataType_t::CUDA_R_64F,
        DType::C64 => blas_sys::cudaDataType_t::CUDA_C_32F,
        DType::C128 => blas_sys::cudaDataType_t::CUDA_C_64F,
        _ => return None,
    })
}

fn handle(stream: Stream) -> sys::CUstream {
    std::ptr::with_exposed_provenance_mut(stream)
}

fn address(pointer: *const u8) -> sys::CUdeviceptr {
    pointer.expose_provenance() as sys::CUdeviceptr
}

// SAFETY: blocks are those of the driver.
unsafe impl Driver for Gpu {
    fn name(&self) -> String {
        cuda::device::get_name(self.device).unwrap_or_default()
    }

    fn memory(&self) -> Result<(usize, usize)> {
        let _entered = self.enter()?;
        cuda::mem_get_info().map_err(|e| failed("read the free memory", e))
    }

    fn allocate(&self, bytes: usize, stream: Stream) -> Result<NonNull<u8>> {
        let _entered = self.enter()?;
        // SAFETY: the stream exists.
        let block = unsafe { cuda::malloc_async(handle(stream), bytes) };
        let block = block.map_err(|e| failed(&format!("allocate {bytes} bytes"), e))?;
        NonNull::new(std::ptr::with_exposed_provenance_mut(block as usize))
            .ok_or_else(|| Error::memory(format!("CUDA cannot allocate {bytes} bytes")))
    }

    unsafe fn free(&self, block: NonNull<u8>, _: usize, stream: Stream) {
        if let Ok(_entered) = self.enter() {
            // SAFETY: by contract. If it fails, the process is ending, and the driver frees all memory.
            let _ = unsafe { cuda::free_async(address(block.as_ptr()), handle(stream)) };
        }
    }

    unsafe fn write(&self, from: &[u8], to: *mut u8, stream: Stream) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: by contract. Pageable memory has been copied when the call returns.
        unsafe { cuda::memcpy_htod_async(address(to), from, handle(stream)) }
            .map_err(|e| failed("copy to the device", e))?;
        self.synchronize(stream)
    }

    unsafe fn read(&self, from: *const u8, to: &mut [u8], stream: Stream) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: by contract; the copy has ended when the call returns.
        unsafe { cuda::memcpy_dtoh_async(to, address(from), handle(stream)) }
            .map_err(|e| failed("copy from the device", e))?;
        self.synchronize(stream)
    }

    unsafe fn copy(&self, from: *const u8, to: *mut u8, bytes: usize, stream: Stream) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: by contract.
        unsafe { cuda::memcpy_dtod_async(address(to), address(from), bytes, handle(stream)) }
            .map_err(|e| failed("copy within the device", e))
    }

    unsafe fn zero(&self, to: *mut u8, bytes: usize, stream: Stream) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: by contract.
        unsafe { cuda::memset_d8_async(address(to), 0, bytes, handle(stream)) }.map_err(|e| failed("fill memory", e))
    }

    fn load(&self, source: &Source) -> Result<Function> {
        let code = compile(source, &self.architecture)?;
        let _entered = self.enter()?;
        let name = CString::new(NAME).map_err(|_| Error::runtime("the name of a kernel has no zero byte"))?;
        // SAFETY: the code is a module for this device, which stays loaded.
        unsafe {
            let module = cuda::module::load_data(code.as_ptr().cast()).map_err(|e| failed("load a kernel", e))?;
            let function = cuda::module::get_function(module, name).map_err(|e| failed("find a kernel", e))?;
            Ok(Function(function.expose_provenance()))
        }
    }

    unsafe fn launch(
        &self,
        function: Function,
        blocks: u32,
        threads: u32,
        argument: &[u64],
        stream: Stream,
    ) -> Result<()> {
        let _entered = self.enter()?;
        let function: sys::CUfunction = std::ptr::with_exposed_provenance_mut(function.0);
        let mut parameters = [argument.as_ptr().cast_mut().cast::<c_void>()];
        // SAFETY: by contract. The driver copies the argument before the call returns.
        unsafe { cuda::launch_kernel(function, (blocks, 1, 1), (threads, 1, 1), 0, handle(stream), &mut parameters) }
            .map_err(|e| failed("launch a kernel", e))
    }

    unsafe fn multiply(&self, product: &Product, stream: Stream) -> Result<bool> {
        let Some(handle_of_blas) = self.blas()? else { return Ok(false) };
        let [Some(number), Some(result)] = [product.dtype, product.gives].map(number_of) else { return Ok(false) };
        let compute = match product.dtype {
            DType::F64 | DType::C128 => blas_sys::cublasComputeType_t::CUBLAS_COMPUTE_64F,
            _ => blas_sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        let size = |n: usize| c_int::try_from(n).ok();
        let [x, y] = product.factors;
        let sizes =
            [product.sizes[0], product.sizes[1], product.sizes[2], x.distance, y.distance, product.count].map(size);
        // Larger sizes have 64-bit functions, which older libraries lack.
        let [Some(m), Some(n), Some(k), Some(x_distance), Some(y_distance), Some(count)] = sizes else {
            return Ok(false);
        };
        let form = |matrix: &Matrix| match matrix.is_transposed {
            true => blas_sys::cublasOperation_t::CUBLAS_OP_T,
            false => blas_sys::cublasOperation_t::CUBLAS_OP_N,
        };
        // Numbers of the type that is computed in: 1 and 0, with an imaginary part of 0.
        let (single, double) = ([[1.0_f32, 0.0], [0.0; 2]], [[1.0_f64, 0.0], [0.0; 2]]);
        let [one, zero] = match compute {
            blas_sys::cublasComputeType_t::CUBLAS_COMPUTE_64F => double.each_ref().map(|x| x.as_ptr().cast::<c_void>()),
            _ => single.each_ref().map(|x| x.as_ptr().cast::<c_void>()),
        };
        let _entered = self.enter()?;
        let handle_of_blas = handle_of_blas.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |e: blas::CublasError| Error::runtime(format!("cuBLAS cannot multiply matrices: {e:?}"));
        // cuBLAS stores matrices column by column, so it computes the transposed product, yᵀ xᵀ.
        // SAFETY: by contract; the sizes are those of the matrices.
        unsafe {
            blas::set_stream(handle_of_blas.0, handle(stream).cast()).map_err(failed)?;
            blas::gemm_strided_batched_ex(
                handle_of_blas.0,
                form(&y),
                form(&x),
                n,
                m,
                k,
                one,
                std::ptr::with_exposed_provenance(y.address),
                number,
                y_distance,
                y.step as i64,
                std::ptr::with_exposed_provenance(x.address),
                number,
                x_distance,
                x.step as i64,
                zero,
                std::ptr::with_exposed_provenance_mut(product.out),
                result,
                n,
                i64::from(m) * i64::from(n),
                count,
                compute,
                blas_sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
            .map_err(failed)?;
        }
        Ok(true)
    }

    fn order(&self, before: Stream, after: Stream) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: the streams exist. The event is freed when it has happened.
        unsafe {
            let event = cuda::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
                .map_err(|e| failed("create an event", e))?;
            let ordered = cuda::event::record(event, handle(before)).and_then(|()| {
                let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                cuda::stream::wait_event(handle(after), event, flags)
            });
            let _ = cuda::event::destroy(event);
            ordered.map_err(|e| failed("order two streams", e))
        }
    }

    fn synchronize(&self, stream: Stream) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: the stream exists.
        unsafe { cuda::stream::synchronize(handle(stream)) }.map_err(|e| failed("finish a computation", e))
    }
}

/// The machine code of a kernel for an architecture, such as `sm_90`. No device is needed.
pub fn compile(source: &Source, architecture: &str) -> Result<Vec<u8>> {
    // SAFETY: it only loads the library, by the names of NVIDIA's compiler.
    if !libraries::find("nvrtc", || unsafe { nvrtc_sys::is_culib_present() }) {
        return Err(Error::runtime(
            "NVIDIA's compiler, libnvrtc, was not found; install it, for example by 'pip install nvidia-cuda-nvrtc'",
        ));
    }
    let text = [PRELUDE, &source.text].concat();
    let text = CString::new(text).map_err(|_| Error::runtime("the source of a kernel has no zero byte"))?;
    let error = |what: &str| Error::runtime(format!("NVRTC cannot {what}"));
    let program = nvrtc::create_program(&text, None).map_err(|_| error("read a kernel"))?;
    // Products and sums are rounded separately, as the machine form of a program has them.
    let options = [format!("--gpu-architecture={architecture}"), "--fmad=false".into(), "--device-int128".into()];
    // SAFETY: the program was created above, and is destroyed below.
    unsafe {
        let compiled = nvrtc::compile_program(program, &options);
        let code = match compiled {
            Ok(()) => {
                let mut size = 0;
                let sized = nvrtc_sys::nvrtcGetCUBINSize(program, &raw mut size).result();
                let mut code = vec![0_u8; size];
                let read = sized.and_then(|()| nvrtc_sys::nvrtcGetCUBIN(program, code.as_mut_ptr().cast()).result());
                read.map(|()| code).map_err(|_| error("give the code of a kernel"))
            }
            Err(_) => {
                let log = nvrtc::get_program_log(program).unwrap_or_default();
                let log: Vec<u8> = log.into_iter().map(|c| c as u8).take_while(|c| *c != 0).collect();
                Err(error(&format!(
                    "compile a kernel for {architecture}:\n{}\n{}",
                    String::from_utf8_lossy(&log),
                    source.text
                )))
            }
        };
        let _ = nvrtc::destroy_program(program);
        code
    }
}
