//! [`Tensor`]: elements of one dtype in shared memory, with a shape and strides.

pub(crate) mod allocator;
mod bitcast;
mod buffer;
mod cache;
mod compare;
mod computed;
mod convert;
mod create;
mod device;
mod format;
mod layout;
mod region;
mod shape;
mod storage;
mod transfer;
mod usage;
mod view;

use std::sync::{Arc, OnceLock, Weak};

pub use buffer::Buffer;
pub(crate) use buffer::with_filled_memory;
pub use cache::{empty as empty_cache, kept_bytes};
pub use convert::cast_is_lossless;
pub(crate) use convert::copy_elements;
pub use create::try_vec;
pub use device::{Device, DeviceKind};
pub use layout::Layout;
pub use region::Region;
pub use shape::{Shape, Strides, normalize_axis};
pub use storage::Storage;
pub(crate) use usage::bytes_kept;
pub use usage::{allocated_bytes, peak_bytes, reset_peak_bytes};

use crate::autograd::GradMeta;
use crate::dispatch::capture;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::graph::record;
use crate::lazy;

/// An n-dimensional array. It is a reference: a clone is the same tensor, with the same memory, gradient and history.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

/// A reference that does not keep its tensor.
pub(crate) struct WeakTensor(Weak<Inner>);

impl WeakTensor {
    /// The tensor, if something else holds it.
    pub fn upgrade(&self) -> Option<Tensor> {
        self.0.upgrade().map(Tensor)
    }
}

struct Inner {
    storage: Arc<Storage>,
    layout: Layout,
    dtype: DType,
    /// The version of the storage at the creation of the tensor.
    born: u64,
    grad: OnceLock<Arc<GradMeta>>,
    /// The origin, if the tensor is a view.
    origin: Option<Box<Origin>>,
}

/// The origin of a view.
pub(crate) struct Origin {
    /// The tensor whose memory the view covers. It is not a view itself.
    pub whole: Tensor,
    /// Whether the view was created while recording was off.
    pub is_quiet: bool,
}

impl Tensor {
    /// A tensor over existing memory.
    ///
    /// # Safety
    /// Every element that shape, strides and offset address is within the storage, and aligned for the dtype. Unless the storage
    /// is `Meta`, each element holds a valid value of the dtype, or is written before it is read.
    pub unsafe fn from_parts(
        storage: Arc<Storage>,
        shape: Shape,
        strides: Strides,
        offset: usize,
        dtype: DType,
    ) -> Tensor {
        Tensor::over(storage, Layout { shape, strides, offset }, dtype)
    }

    /// A tensor without history.
    pub(crate) fn over(storage: Arc<Storage>, layout: Layout, dtype: DType) -> Tensor {
        let born = storage.version();
        Tensor(Arc::new(Inner { storage, layout, dtype, born, grad: OnceLock::new(), origin: None }))
    }

    /// The same memory in another layout, without history.
    pub(crate) fn with_layout(&self, layout: Layout) -> Tensor {
        Tensor::over(self.0.storage.clone(), layout, self.0.dtype)
    }

    /// The positions of the elements in the storage.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// The sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.0.layout.shape
    }

    /// The distance between neighbours along each dimension, in elements.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.0.layout.strides
    }

    /// The number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.0.layout.shape.len()
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.0.layout.shape.numel()
    }

    /// The type of the elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The device of the memory.
    #[inline]
    pub fn device(&self) -> Device {
        self.0.storage.device()
    }

    /// The memory.
    pub fn storage(&self) -> &Arc<Storage> {
        &self.0.storage
    }

    /// The offset of the first element in the storage, in elements.
    pub fn offset(&self) -> usize {
        self.0.layout.offset
    }

    /// A pointer to the first element. Only on [`Device::Cpu`] may it be dereferenced.
    #[inline]
    pub fn data_ptr(&self) -> *mut u8 {
        if capture::is_active() {
            record::note_access(self);
        }
        if self.0.storage.is_postponed() {
            lazy::access(self);
        }
        self.address()
    }

    /// The address of the first element, for comparisons of addresses.
    #[inline]
    pub(crate) fn address(&self) -> *mut u8 {
        // The offset of an empty tensor may be past the end of the storage, so the pointer arithmetic must wrap.
        self.0.storage.data().wrapping_add(self.0.layout.offset * self.0.dtype.size())
    }

    /// Whether the elements are adjacent in memory, in row-major order.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.0.layout.is_contiguous()
    }

    /// A reference that does not keep the tensor.
    pub(crate) fn downgrade(&self) -> WeakTensor {
        WeakTensor(Arc::downgrade(&self.0))
    }

    /// The number of references to the tensor.
    pub(crate) fn references(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Whether this is the only reference to the tensor and to its memory.
    pub(crate) fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && Arc::strong_count(&self.0.storage) == 1
    }

    /// Whether it is the only reference to its memory, which has no other elements and belongs to this library. The tensor of which it
    /// is a view does not count, if nothing else refers to that one.
    pub(crate) fn is_sole(&self) -> bool {
        let storage = self.storage();
        let holders = match self.origin() {
            Some(origin) if Arc::strong_count(&origin.whole.0) == 1 => 2,
            Some(_) => return false,
            None => 1,
        };
        Arc::strong_count(&self.0) == 1
            && Arc::strong_count(storage) == holders
            && !storage.is_foreign()
            && storage.bytes() == self.numel() * self.dtype().size()
    }

    /// The memory, if nothing else refers to it.
    pub(crate) fn into_buffer(self) -> Option<Buffer> {
        let inner = Arc::try_unwrap(self.0).ok()?;
        drop(inner.origin);
        Arc::try_unwrap(inner.storage).ok().map(Storage::into_buffer)
    }

    /// Whether a recorded change was made to the memory, through another tensor, after the creation of this one.
    pub(crate) fn is_outdated(&self) -> bool {
        self.0.born < self.0.storage.recorded()
    }

    pub(crate) fn grad_meta(&self) -> Option<&Arc<GradMeta>> {
        self.0.grad.get()
    }

    pub(crate) fn grad_meta_or_init(&self) -> &Arc<GradMeta> {
        self.0.grad.get_or_init(Default::default)
    }

    /// The same window with a history: the tensor itself if it is not shared, else a new tensor.
    pub(crate) fn with_grad_meta(mut self, meta: Arc<GradMeta>) -> Tensor {
        match Arc::get_mut(&mut self.0) {
            Some(inner) => inner.grad = OnceLock::from(meta),
            None => {
                self = self.detach();
                let _ = self.0.grad.set(meta);
            }
        }
        self
    }

    /// The origin of a view. Tensors that only share memory, such as detached ones, are not views.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.0.origin.as_deref()
    }

    /// The same window, with its history, as a view of a tensor with the same memory. With `None`, it is not a view.
    pub(crate) fn into_view_of(mut self, whole: Option<&Tensor>, is_quiet: bool) -> Tensor {
        let origin = whole.map(|whole| {
            let is_quiet = is_quiet || whole.origin().is_some_and(|origin| origin.is_quiet);
            let whole = whole.origin().map_or(whole, |origin| &origin.whole).clone();
            Box::new(Origin { whole, is_quiet })
        });
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.origin = origin;
            return self;
        }
        let mut view = self.detach();
        if let Some(inner) = Arc::get_mut(&mut view.0) {
            (inner.origin, inner.grad) = (origin, self.0.grad.clone());
        }
        view
    }

    /// The same memory without history: no gradient flows through it.
    pub fn detach(&self) -> Tensor {
        let Layout { shape, strides, offset } = self.layout();
        self.with_layout(Layout { shape: shape.clone(), strides: shape::duplicate(strides), offset: *offset })
    }

    /// Whether both are the same tensor.
    pub(crate) fn is(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether both have the same storage.
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0.storage, &other.0.storage)
    }

    /// The element of a tensor of one element.
    pub fn item<T: Scalar>(&self) -> Result<T> {
        if self.numel() != 1 {
            return Err(Error::value(format!(
                "item() needs a tensor with one element, got shape {}",
                self.0.layout.shape
            )));
        }
        Ok(self.to_vec::<T>()?[0])
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
