//! Copies between devices, layouts and dtypes.

use std::sync::Arc;

use super::allocator::{Allocator, backend};
use super::{Buffer, Device, Tensor, copy_elements};
use crate::error::Result;

/// Copies the elements of a tensor to another of the same shape. Memory that the CPU cannot access is copied through main memory.
pub fn copy(from: &Tensor, to: &Tensor) -> Result<()> {
    if from.device() == Device::Meta || to.device() == Device::Meta || to.numel() == 0 {
        return Ok(());
    }
    if from.device() == to.device()
        && let Some(backend) = backend(to.device().kind())
        && backend.copy(from, to)?
    {
        return Ok(());
    }
    let source = match from.storage().allocator() {
        Some(allocator) => &download(from, allocator)?,
        None => from,
    };
    let Some(allocator) = to.storage().allocator() else {
        copy_on_cpu(source, to);
        return Ok(());
    };
    // Elements between those of the window keep their values.
    let staged = if to.is_contiguous() {
        Tensor::empty(to.shape().clone(), to.dtype(), Device::Cpu)?
    } else {
        download(to, allocator)?
    };
    copy_on_cpu(source, &staged);
    let (low, _) = to.byte_range();
    let bytes = staged.storage().bytes();
    let low = low as usize;
    // SAFETY: the staged tensor has the bytes of the window, which is within the storage of the target.
    unsafe {
        let bytes = std::slice::from_raw_parts(staged.storage().data(), bytes);
        allocator.write(bytes, to.storage().data().wrapping_add(low))
    }
}

/// The part of the storage that holds the elements, in main memory, as a tensor of the same shape and strides.
fn download(t: &Tensor, allocator: &dyn Allocator) -> Result<Tensor> {
    let (low, high) = t.byte_range();
    let (low, high) = (low as usize, high as usize);
    let storage = Arc::new(Buffer::zeroed(high - low)?.into());
    let size = t.dtype().size();
    // SAFETY: the range is within the storage of the tensor. The copy has the same layout, from a lower offset.
    unsafe {
        let copy =
            Tensor::from_parts(storage, t.shape().clone(), t.strides().into(), t.offset() - low / size, t.dtype());
        let bytes = std::slice::from_raw_parts_mut(copy.storage().data(), high - low);
        allocator.read(t.storage().data().wrapping_add(low), bytes)?;
        Ok(copy)
    }
}

fn copy_on_cpu(from: &Tensor, to: &Tensor) {
    let (source, target) = ((from.dtype(), from.data_ptr().cast_const()), (to.dtype(), to.data_ptr()));
    // SAFETY: both windows have this shape, and are within their storages, in main memory.
    unsafe { copy_elements(to.shape(), source, from.strides(), target, to.strides()) }
}
