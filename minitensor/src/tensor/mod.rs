//! [`Tensor`]: elements of one dtype in shared memory, seen through a shape and strides.

mod compare;
mod convert;
mod create;
mod format;
mod shape;
mod storage;
mod view;

use std::sync::{Arc, OnceLock};

pub use convert::cast_is_lossless;
pub use shape::{Shape, Strides, normalize_axis};
pub use storage::{Device, Storage, allocated_bytes};

use crate::autograd::GradMeta;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};

/// An n-dimensional array. Cloning it is cheap: a clone shares memory, gradient and history.
#[derive(Clone)]
pub struct Tensor {
    storage: Arc<Storage>,
    shape: Shape,
    strides: Strides,
    /// In elements, from the start of the storage.
    offset: usize,
    dtype: DType,
    grad: OnceLock<Arc<GradMeta>>,
}

impl Tensor {
    /// A tensor over memory that is already there.
    ///
    /// # Safety
    /// Every element that shape, strides and offset reach lies within the storage, and holds a valid value of the dtype
    /// unless the storage is `Meta`, or is written before it is read.
    pub unsafe fn from_parts(
        storage: Arc<Storage>,
        shape: Shape,
        strides: Strides,
        offset: usize,
        dtype: DType,
    ) -> Tensor {
        Tensor { storage, shape, strides, offset, dtype, grad: OnceLock::new() }
    }

    /// The same memory through another window, without history.
    pub(crate) fn window(&self, shape: Shape, strides: Strides, offset: usize) -> Tensor {
        Tensor { storage: self.storage.clone(), shape, strides, offset, dtype: self.dtype, grad: OnceLock::new() }
    }

    /// The sizes of its dimensions.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How far the next element of each dimension lies, in elements.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// How many dimensions it has.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// How many elements it has.
    #[inline]
    pub fn numel(&self) -> usize {
        self.shape.numel()
    }

    /// The type of its elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Where its memory lies.
    #[inline]
    pub fn device(&self) -> Device {
        self.storage.device()
    }

    /// Its memory.
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// Where its first element lies in the storage, in elements.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Its first element. On [`Device::Meta`] there is nothing behind it.
    #[inline]
    pub fn data_ptr(&self) -> *mut u8 {
        // The offset of an empty tensor may lie at the end of the storage; wrapping keeps that defined.
        self.storage.data().wrapping_add(self.offset * self.dtype.size())
    }

    /// Whether its elements lie one after the other in row-major order.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (size, stride) in self.shape.iter().zip(&self.strides).rev() {
            if *size != 1 {
                if *stride != expected {
                    return self.numel() == 0;
                }
                expected *= *size as isize;
            }
        }
        true
    }

    pub(crate) fn grad_meta(&self) -> Option<&Arc<GradMeta>> {
        self.grad.get()
    }

    pub(crate) fn grad_meta_or_init(&self) -> &Arc<GradMeta> {
        self.grad.get_or_init(Default::default)
    }

    pub(crate) fn with_grad_meta(mut self, meta: Option<Arc<GradMeta>>) -> Tensor {
        self.grad = meta.map_or_else(OnceLock::new, OnceLock::from);
        self
    }

    /// The same memory, apart from any history: no gradient flows through it.
    pub fn detach(&self) -> Tensor {
        self.window(self.shape.clone(), self.strides.clone(), self.offset)
    }

    /// Whether both see one memory.
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    /// The one element, as a `T`.
    pub fn item<T: Scalar>(&self) -> Result<T> {
        if self.numel() != 1 {
            return Err(Error::value(format!("item() needs a tensor of one element, got shape {}", self.shape)));
        }
        Ok(self.to_vec::<T>()?[0])
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
