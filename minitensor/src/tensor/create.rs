//! Creation of tensors.

use std::sync::Arc;

use minitensor_kernels::{Cast, Const};
use ndarray::{ArrayBase, ArrayViewD, Data, Dimension, ShapeBuilder};

use super::allocator::backend;
use super::{Buffer, Device, Shape, Strides, Tensor};
use crate::dtype::{DType, Kind, Scalar};
use crate::error::{Error, Result, counted};
use crate::lazy;
use crate::stop::stoppable;

/// An empty vector with capacity for `n` elements, for buffers whose size the user chooses. If memory is insufficient, it
/// returns an error instead of aborting the process.
pub fn try_vec<T>(n: usize) -> Result<Vec<T>> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(n).map_err(|_| {
        Error::memory(format!("cannot allocate {} of {}", counted(n, "element"), counted(size_of::<T>(), "byte")))
    })?;
    Ok(vec)
}

impl Tensor {
    /// A contiguous tensor with unspecified content.
    pub fn empty(shape: impl Into<Shape>, dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::allocate(shape.into(), dtype, |bytes| Buffer::uninit(bytes, device))
    }

    /// A tensor of zeros.
    pub fn zeros(shape: impl Into<Shape>, dtype: DType, device: Device) -> Result<Tensor> {
        match device {
            Device::Cpu => Tensor::allocate(shape.into(), dtype, Buffer::zeroed),
            _ => Tensor::full(shape, Const::Int(0), dtype, device),
        }
    }

    /// A tensor of ones.
    pub fn ones(shape: impl Into<Shape>, dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::full(shape, Const::Int(1), dtype, device)
    }

    /// A tensor on [`Device::Meta`] of the same shape and dtype.
    pub(crate) fn meta(&self) -> Result<Tensor> {
        Tensor::empty(self.shape().clone(), self.dtype(), Device::Meta)
    }

    /// A tensor filled with one value.
    pub fn full(shape: impl Into<Shape>, value: Const, dtype: DType, device: Device) -> Result<Tensor> {
        let out = Tensor::empty(shape, dtype, device)?;
        stoppable(|| out.fill(value))?;
        Ok(out)
    }

    /// Fills the tensor with one value. It does not increment the version; the caller does.
    pub(crate) fn fill(&self, value: Const) -> Result<()> {
        if let Some(backend) = backend(self.device().kind())
            && backend.fill(self, value)?
        {
            return Ok(());
        }
        with_dtype!(self.dtype(), T => {
            let value = constant::<T>(value);
            if self.device() != Device::Cpu {
                return self.copy_from(&Tensor::scalar(value).broadcast_view(self.shape()));
            }
            let zeros = Strides::from_elem(0, self.ndim());
            // SAFETY: the tensor's window is within its storage. The source is one element, read with stride 0.
            unsafe { minitensor_kernels::copy::<T, T>(self.shape(), &value, &zeros, self.data_ptr().cast(), self.strides()) }
        });
        Ok(())
    }

    /// A tensor with the layout of `like`, which must be contiguous and on the CPU, and unspecified content.
    pub(crate) fn empty_like(like: &Tensor, dtype: DType) -> Result<Tensor> {
        let shape = like.shape().clone();
        let storage = Buffer::uninit_cpu(shape.numel() * dtype.size())?;
        let strides = super::shape::duplicate(&like.0.layout.strides);
        // SAFETY: the storage has room for all elements of a contiguous tensor. Callers write the elements before they are read.
        Ok(unsafe { Tensor::from_parts(Arc::new(storage.into()), shape, strides, 0, dtype) })
    }

    fn allocate(shape: Shape, dtype: DType, take: impl FnOnce(usize) -> Result<Buffer>) -> Result<Tensor> {
        let bytes = shape.checked_numel()? * dtype.size();
        let buffer = take(bytes).map_err(|e| e.context(format!("a tensor of shape {shape} and dtype {dtype}")))?;
        let strides = shape.contiguous_strides();
        // SAFETY: the buffer has room for all elements. Callers write uninitialized elements before they are read.
        Ok(unsafe { Tensor::from_parts(Arc::new(buffer.into()), shape, strides, 0, dtype) })
    }

    /// A tensor that takes ownership of these elements, without a copy.
    pub fn from_vec<T: Scalar>(data: Vec<T>, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        if shape.checked_numel()? != data.len() {
            return Err(Error::value(format!(
                "cannot create a tensor of shape {shape} from {}",
                counted(data.len(), "element")
            )));
        }
        let strides = shape.contiguous_strides();
        Ok(adopt(data, shape, strides, 0))
    }

    /// A tensor with no dimensions.
    pub fn scalar<T: Scalar>(value: T) -> Tensor {
        adopt(vec![value], Shape::default(), Strides::new(), 0)
    }

    /// A number as a tensor with no dimensions.
    pub fn from_const(value: Const, dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::full(Shape::default(), value, dtype, device)
    }

    /// Takes ownership of an ndarray's memory, with its layout, without a copy.
    pub fn from_ndarray<T: Scalar, D: Dimension>(array: ndarray::Array<T, D>) -> Tensor {
        let shape: Shape = array.shape().into();
        let strides: Strides = array.strides().iter().copied().collect();
        let (data, offset) = array.into_raw_vec_and_offset();
        adopt(data, shape, strides, offset.unwrap_or(0))
    }

    /// Copies an ndarray or a view of one.
    pub fn copy_ndarray<T: Scalar, S: Data<Elem = T>, D: Dimension>(array: &ArrayBase<S, D>) -> Tensor {
        Tensor::from_ndarray(array.to_owned())
    }

    /// As [`Tensor::from_const`], for a number from the user: an error if the dtype can't represent it.
    pub(crate) fn from_number(value: Const, dtype: DType, device: Device) -> Result<Tensor> {
        let is_integer = matches!(dtype.kind(), Kind::Signed | Kind::Unsigned);
        if let (Const::Int(v), true) = (value, is_integer)
            && !dtype.integer_range().contains(&v)
        {
            return Err(Error::value(format!("{v} does not fit into {dtype}")));
        }
        Tensor::from_const(value, dtype, device)
    }

    /// The elements as an ndarray view, without a copy. Don't change the tensor in place while the view exists.
    /// The elements of a `bool` tensor are [`Truth`](minitensor_kernels::Truth)s.
    pub fn view<T: Scalar<Stored = T>>(&self) -> Result<ArrayViewD<'_, T>> {
        self.stored::<T>()
    }

    /// The elements in their representation in memory.
    fn stored<T: Scalar>(&self) -> Result<ArrayViewD<'_, T::Stored>> {
        self.expect_data::<T>()?;
        let mut strides = Vec::with_capacity(self.ndim());
        let mut negative = Vec::new();
        let mut start = 0isize;
        for (axis, (size, stride)) in self.shape().iter().zip(self.strides()).enumerate() {
            strides.push(stride.unsigned_abs());
            if *stride < 0 {
                start += stride * (size.saturating_sub(1)) as isize;
                negative.push(axis);
            }
        }
        let first = self.data_ptr().cast::<T::Stored>().wrapping_offset(start);
        // SAFETY: the window is within the storage, which lives as long as `self`. ndarray requires non-negative strides from the
        // lowest address; negative axes are inverted below.
        let mut view = unsafe { ArrayViewD::from_shape_ptr(self.shape().to_vec().strides(strides), first) };
        for axis in negative {
            view.invert_axis(ndarray::Axis(axis));
        }
        Ok(view)
    }

    /// The elements in row-major order, from any device.
    pub fn to_vec<T: Scalar>(&self) -> Result<Vec<T>> {
        let on_cpu = if self.device() == Device::Cpu { None } else { Some(self.to_device(Device::Cpu)?) };
        on_cpu.as_ref().unwrap_or(self).to_vec_on_cpu()
    }

    fn to_vec_on_cpu<T: Scalar>(&self) -> Result<Vec<T>> {
        let view = self.stored::<T>()?;
        let mut elements = try_vec(view.len())?;
        elements.extend(view.iter().copied().map(T::load));
        Ok(elements)
    }

    pub(crate) fn expect_data<T: Scalar>(&self) -> Result<()> {
        if self.dtype() != T::DTYPE {
            return Err(Error::type_(format!("expected a tensor of dtype {}, got {}", T::DTYPE, self.dtype())));
        }
        self.expect_cpu()
    }

    /// An error if the tensor has no values, as on the meta device.
    pub fn expect_values(&self) -> Result<()> {
        if self.device() == Device::Meta { self.expect_cpu() } else { lazy::ready(self) }
    }

    /// An error if the tensor is not in main memory. Computes the elements if a lazy call [postponed](crate::lazy) that.
    pub fn expect_cpu(&self) -> Result<()> {
        self.device().expect_cpu()?;
        lazy::ready(self)
    }
}

fn constant<T>(value: Const) -> T
where
    f64: Cast<T>,
    i64: Cast<T>,
    u64: Cast<T>,
    bool: Cast<T>,
{
    match value {
        Const::Bool(v) => v.cast(),
        Const::Float(v) => v.cast(),
        Const::Int(v) => match (i64::try_from(v), u64::try_from(v)) {
            (Ok(v), _) => v.cast(),
            (_, Ok(v)) => v.cast(),
            _ => (v as f64).cast(),
        },
    }
}

fn adopt<T: Scalar>(data: Vec<T>, shape: Shape, strides: Strides, offset: usize) -> Tensor {
    let bytes = size_of_val(data.as_slice());
    // The pointer of a Vec is never null. Moving the Vec into the box does not move its elements.
    let mut data = Box::new(data);
    let first = std::ptr::NonNull::new(data.as_mut_ptr().cast()).unwrap_or(std::ptr::NonNull::dangling());
    // SAFETY: the boxed Vec owns the elements, and nothing else refers to it.
    let buffer = unsafe { Buffer::adopted(first, bytes, data) };
    // SAFETY: the callers have checked shape, strides and offset against the Vec.
    unsafe { Tensor::from_parts(Arc::new(buffer.into()), shape, strides, offset, T::DTYPE) }
}
