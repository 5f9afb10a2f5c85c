//! Tensors over memory that another library owns.

use std::ptr::NonNull;
use std::sync::Arc;

use minitensor::tensor::Buffer;
use minitensor::{DType, Device, Error, Shape, Tensor};

use crate::error::Result;

/// A tensor over foreign memory of a device.
///
/// # Safety
/// Every element that shape and strides (in elements) reach from `first` is readable, and writable if `writable` is
/// true, for the lifetime of `keep`.
pub unsafe fn foreign(
    device: Device,
    first: *mut u8,
    shape: Shape,
    strides: &[isize],
    dtype: DType,
    writable: bool,
    keep: Box<dyn std::any::Any + Send + Sync>,
) -> Result<Tensor> {
    let size = dtype.size();
    shape.checked_numel()?;
    if shape.numel() == 0 {
        return Ok(Tensor::empty(shape, dtype, device)?);
    }
    if !(first as usize).is_multiple_of(size.min(8)) {
        return Err(Error::value("the memory is not aligned for its elements; copy the array first").into());
    }
    if first.is_null() {
        return Err(Error::value("the array has elements, but its data pointer is null").into());
    }
    let (low, bytes) = extent(&shape, strides, size)
        .filter(|(low, bytes)| {
            first.addr().checked_sub(low * size).is_some_and(|start| start.checked_add(*bytes).is_some())
        })
        .ok_or_else(|| Error::value(format!("the strides {strides:?} with shape {shape} exceed the address space")))?;
    // SAFETY: the pointer isn't null, and the lowest element has an address above 0.
    let start = unsafe { NonNull::new_unchecked(first.wrapping_sub(low * size)) };
    // SAFETY: the range from the lowest to the highest element of the window is valid by the caller's contract.
    let buffer = unsafe { Buffer::foreign_on(device, start, bytes, writable, keep)? };
    // A dimension with one element may have any stride. A stride whose product with the element size overflows is
    // replaced.
    let is_sane = |stride: isize| stride.unsigned_abs() <= isize::MAX as usize / 2 / size;
    let strides = strides.iter().map(|stride| if is_sane(*stride) { *stride } else { 1 }).collect();
    // SAFETY: the buffer spans all elements that the window reaches.
    Ok(unsafe { Tensor::from_parts(Arc::new(buffer.into()), shape, strides, low, dtype) })
}

/// The number of elements below the first one, and the bytes from the lowest to the highest element. `None` if that
/// exceeds the address space. No dimension is empty.
fn extent(shape: &Shape, strides: &[isize], size: usize) -> Option<(usize, usize)> {
    let (mut low, mut high) = (0usize, 0usize);
    for (n, stride) in shape.iter().zip(strides) {
        let reach = stride.unsigned_abs().checked_mul(n - 1)?;
        let end = if *stride < 0 { &mut low } else { &mut high };
        *end = end.checked_add(reach)?;
    }
    let bytes = low.checked_add(high)?.checked_add(1)?.checked_mul(size)?;
    isize::try_from(bytes).ok().map(|_| (low, bytes))
}
