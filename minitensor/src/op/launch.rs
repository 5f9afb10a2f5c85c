//! Runs an element kernel over tensors of any layout: directly where memory lies straight, else in tiles that are
//! packed into a small buffer, computed there and unpacked again.

use std::ops::Range;
use std::sync::Mutex;

use half::{bf16, f16};
use minitensor_kernels::copy_row;
use minitensor_kernels::threads::parallel_for;
use num_complex::Complex;
use smallvec::SmallVec;

use super::def::ElementKernel;
use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor};

/// Elements of one tile; tiles of a few operands stay in the first-level cache.
const TILE: usize = 512;
/// From this many elements on, more than one thread pays off.
pub const GRAIN: usize = 32 * 1024;
/// Rows of so many elements are worth tiles of their own.
const ROW: usize = 64;

/// From the dtype of memory to the one that is computed in: [`DType::compute`] or [`DType::wide`].
pub type Precision = fn(DType) -> DType;

/// One operand: an input, an output, or an output nobody wants.
struct Operand {
    data: *mut u8,
    dtype: DType,
    compute: DType,
    /// Of the merged iteration space; empty where the elements lie straight.
    strides: SmallVec<[isize; 6]>,
    straight: bool,
    wanted: bool,
}

// SAFETY: threads write to disjoint ranges of the elements.
unsafe impl Sync for Operand {}

/// Computes `outputs` from `inputs`, which all broadcast to `shape`. An output that is `None` is computed and thrown away;
/// `output_dtypes` are those of the outputs.
pub fn launch(
    kernel: ElementKernel,
    precision: Precision,
    attrs: &[Attr],
    shape: &Shape,
    inputs: &[Option<&Tensor>],
    outputs: &[Option<&Tensor>],
    output_dtypes: &[DType],
) -> Result<()> {
    let n = shape.numel();
    if n == 0 {
        return Ok(());
    }
    let simple = |t: &Option<&Tensor>| {
        t.is_some_and(|t| t.shape() == shape && t.is_contiguous() && precision(t.dtype()) == t.dtype())
    };
    if n <= GRAIN && inputs.iter().all(simple) && outputs.iter().all(simple) {
        let ins: SmallVec<[*const u8; 4]> = inputs.iter().flatten().map(|t| t.data_ptr().cast_const()).collect();
        let outs: SmallVec<[*mut u8; 4]> = outputs.iter().flatten().map(|t| t.data_ptr()).collect();
        // SAFETY: every tensor is contiguous, has n elements and the kernel's compute dtype.
        return unsafe { kernel(attrs, n, &ins, &outs) };
    }
    let mut operands: Vec<Operand> = Vec::with_capacity(inputs.len() + outputs.len());
    for input in inputs {
        operands.push(input.map_or_else(|| Operand::nothing(DType::F64), |t| Operand::of(t, shape, precision)));
    }
    for (output, dtype) in outputs.iter().zip(output_dtypes) {
        operands.push(output.map_or_else(|| Operand::nothing(*dtype), |t| Operand::of(t, shape, precision)));
    }
    let sizes = merge(shape, &mut operands);
    let space = Space { sizes, operands, inputs: inputs.len(), kernel, attrs };
    let failure = Mutex::new(None);
    parallel_for(n, GRAIN, |range| {
        if failure.lock().is_ok_and(|f| f.is_some()) {
            return;
        }
        if let Err(error) = space.run(range) {
            *failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
        }
    });
    failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_or(Ok(()), Err::<(), Error>)
}

impl Operand {
    fn of(tensor: &Tensor, shape: &Shape, precision: Precision) -> Operand {
        let view = if tensor.shape() == shape { tensor.detach() } else { tensor.broadcast_view(shape) };
        Operand {
            data: tensor.data_ptr(),
            dtype: tensor.dtype(),
            compute: precision(tensor.dtype()),
            strides: view.strides().into(),
            straight: false,
            wanted: true,
        }
    }

    fn nothing(dtype: DType) -> Operand {
        Operand {
            data: std::ptr::null_mut(),
            dtype,
            compute: dtype,
            strides: SmallVec::new(),
            straight: false,
            wanted: false,
        }
    }

    /// Whether a tile can be used where it lies: any, or one that ends where a row of the innermost axis does.
    fn is_direct(&self, by_rows: bool) -> bool {
        let in_order = self.straight || (by_rows && self.strides.last() == Some(&1));
        self.wanted && in_order && self.compute == self.dtype
    }
}

/// Drops axes of size 1 and joins neighbours that every operand steps through evenly.
fn merge(shape: &Shape, operands: &mut [Operand]) -> SmallVec<[usize; 6]> {
    let mut sizes: SmallVec<[usize; 6]> = SmallVec::new();
    let mut strides: Vec<SmallVec<[isize; 6]>> = vec![SmallVec::new(); operands.len()];
    for d in 0..shape.len() {
        if shape[d] == 1 {
            continue;
        }
        let joins = !sizes.is_empty()
            && operands
                .iter()
                .zip(&strides)
                .all(|(o, s)| !o.wanted || s.last() == Some(&(o.strides[d] * shape[d] as isize)));
        if joins {
            *sizes.last_mut().expect("there is one to join") *= shape[d];
        } else {
            sizes.push(shape[d]);
        }
        for (operand, s) in operands.iter().zip(&mut strides).filter(|(o, _)| o.wanted) {
            if joins {
                s.pop();
            }
            s.push(operand.strides[d]);
        }
    }
    let in_order = Shape::from(sizes.as_slice()).contiguous_strides();
    for (operand, s) in operands.iter_mut().zip(strides) {
        operand.straight = operand.wanted && s.as_slice() == in_order.as_slice();
        operand.strides = s;
    }
    sizes
}

struct Space<'a> {
    sizes: SmallVec<[usize; 6]>,
    operands: Vec<Operand>,
    inputs: usize,
    kernel: ElementKernel,
    attrs: &'a [Attr],
}

// SAFETY: threads run over disjoint ranges; attributes are only read.
unsafe impl Sync for Space<'_> {}

impl Space<'_> {
    fn run(&self, range: Range<usize>) -> Result<()> {
        let all_direct = self.operands.iter().all(|o| o.is_direct(false));
        let tile = if all_direct { range.len() } else { TILE };
        let inner = self.sizes.last().copied().unwrap_or(1);
        let by_rows = !all_direct && inner >= ROW;
        // u128 is the alignment of the largest element.
        let mut buffer = vec![0u128; if all_direct { 0 } else { TILE * self.operands.len() }];
        let mut start = range.start;
        while start < range.end {
            crate::interrupt::check()?;
            let mut n = tile.min(range.end - start);
            if by_rows {
                n = n.min(inner - start % inner);
            }
            let mut pointers: SmallVec<[*mut u8; 8]> = SmallVec::new();
            for (k, operand) in self.operands.iter().enumerate() {
                if operand.is_direct(by_rows) {
                    let offset = self.offset(operand, start) * operand.dtype.size() as isize;
                    pointers.push(operand.data.wrapping_offset(offset));
                    continue;
                }
                let slot = buffer[k * TILE..].as_mut_ptr().cast::<u8>();
                if k < self.inputs && operand.wanted {
                    // SAFETY: the range lies within the iteration space, the slot holds TILE elements of any dtype.
                    unsafe { self.transfer(operand, start, n, slot, true) }
                }
                pointers.push(slot);
            }
            let ins: SmallVec<[*const u8; 8]> = pointers[..self.inputs].iter().map(|p| p.cast_const()).collect();
            // SAFETY: every pointer is to n elements of the compute dtype.
            unsafe { (self.kernel)(self.attrs, n, &ins, &pointers[self.inputs..])? };
            for (operand, slot) in self.operands.iter().zip(&pointers).skip(self.inputs) {
                if operand.wanted && !operand.is_direct(by_rows) {
                    // SAFETY: as for packing.
                    unsafe { self.transfer(operand, start, n, *slot, false) }
                }
            }
            start += n;
        }
        Ok(())
    }

    /// Where an element of the iteration space lies in an operand, in elements.
    fn offset(&self, operand: &Operand, at: usize) -> isize {
        if operand.straight {
            return at as isize;
        }
        let (mut rest, mut offset) = (at, 0);
        for (size, stride) in self.sizes.iter().zip(&operand.strides).rev() {
            offset += (rest % size) as isize * stride;
            rest /= size;
        }
        offset
    }

    /// Moves elements `start .. start + n` of the iteration space between an operand and a slot, converting.
    ///
    /// # Safety
    /// The range lies in the space; the slot holds `n` elements of the compute dtype.
    unsafe fn transfer(&self, operand: &Operand, start: usize, n: usize, slot: *mut u8, pack: bool) {
        let rank = self.sizes.len();
        let (inner, step) = match rank {
            0 => (1, 0),
            _ => (self.sizes[rank - 1], operand.strides[rank - 1]),
        };
        let (from, to) = if pack { (operand.dtype, operand.compute) } else { (operand.compute, operand.dtype) };
        let run = run(from, to);
        let (size, slot_size) = (operand.dtype.size(), operand.compute.size());
        let mut done = 0;
        while done < n {
            let at = start + done;
            let offset = self.offset(operand, at);
            let count = (inner - at % inner).min(n - done);
            let memory = operand.data.wrapping_offset(offset * size as isize);
            // SAFETY: offset addresses an element of the operand's window, and so do the next `count` steps.
            unsafe {
                let slot = slot.add(done * slot_size);
                if pack { run(memory, step, slot, 1, count) } else { run(slot, 1, memory, step, count) }
            }
            done += count;
        }
    }
}

/// Copies elements from one place, so many steps apart, to another.
type Run = unsafe fn(*const u8, isize, *mut u8, isize, usize);

/// From one dtype to another, of which one is that of memory and one is computed in.
fn run(from: DType, to: DType) -> Run {
    macro_rules! pick {
        ($($pattern:pat => $from:ty, $to:ty;)*) => {
            match (from, to, from.size()) {
                // SAFETY: as for `copy_row`, for elements of these dtypes or of their size.
                $($pattern => |from, from_step, to, to_step, n| unsafe {
                    copy_row::<$from, $to>(from.cast(), from_step, to.cast(), to_step, n)
                },)*
            }
        };
    }
    use DType::*;
    pick! {
        (F16, F32, _) => f16, f32;
        (F32, F16, _) => f32, f16;
        (F16, F64, _) => f16, f64;
        (F64, F16, _) => f64, f16;
        (Bf16, F32, _) => bf16, f32;
        (F32, Bf16, _) => f32, bf16;
        (Bf16, F64, _) => bf16, f64;
        (F64, Bf16, _) => f64, bf16;
        (F32, F64, _) => f32, f64;
        (F64, F32, _) => f64, f32;
        (C64, C128, _) => Complex<f32>, Complex<f64>;
        (C128, C64, _) => Complex<f64>, Complex<f32>;
        // Of one dtype: whatever the bytes mean.
        (_, _, 1) => u8, u8;
        (_, _, 2) => u16, u16;
        (_, _, 4) => u32, u32;
        (_, _, 8) => u64, u64;
        _ => Complex<f64>, Complex<f64>;
    }
}
