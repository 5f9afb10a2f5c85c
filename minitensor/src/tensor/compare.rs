//! Checks whether tensors share memory.

use super::{Device, Tensor};

impl Tensor {
    /// The address of the first byte of the lowest element, and the address after the last byte of the highest.
    fn extent(&self) -> (usize, usize) {
        let (mut low, mut high) = (0isize, 0isize);
        for (size, stride) in self.shape().iter().zip(self.strides()) {
            let reach = stride * (*size as isize - 1).max(0);
            if reach < 0 { low += reach } else { high += reach }
        }
        let bytes = self.dtype().size() as isize;
        let start = self.address() as isize;
        ((start + low * bytes) as usize, (start + (high + 1) * bytes) as usize)
    }

    /// The bytes of the storage from the lowest element to the end of the highest.
    pub(crate) fn byte_range(&self) -> (usize, usize) {
        let (low, high) = self.extent();
        let start = self.storage().data() as usize;
        (low.wrapping_sub(start), high.wrapping_sub(start))
    }

    /// Whether the tensors may share elements. The check compares address ranges, so it is also true for interleaved windows
    /// without a common element.
    pub fn may_overlap(&self, other: &Tensor) -> bool {
        let is_elsewhere = self.device() == Device::Meta || self.device() != other.device();
        if is_elsewhere || self.numel() == 0 || other.numel() == 0 {
            return false;
        }
        let ((a, b), (c, d)) = (self.extent(), other.extent());
        a < d && c < b
    }

    /// Whether all elements are in the memory that another tensor covers.
    pub(crate) fn lies_within(&self, whole: &Tensor) -> bool {
        if !self.shares_storage(whole) || self.dtype().real() != whole.dtype().real() && self.dtype() != whole.dtype() {
            return false;
        }
        let is_component = self.dtype() == whole.dtype().real();
        let ((a, b), (c, d)) = (self.extent(), whole.extent());
        (self.dtype() == whole.dtype() || is_component) && (self.numel() == 0 || c <= a && b <= d)
    }

    /// Whether both are the same window: the same first element, shape, dtype and, for axes of more than one element, strides.
    pub fn is_same_window(&self, other: &Tensor) -> bool {
        self.address() == other.address()
            && self.dtype() == other.dtype()
            && self.shape() == other.shape()
            && self.shape().iter().zip(self.strides().iter().zip(other.strides())).all(|(n, (a, b))| *n == 1 || a == b)
    }

    /// Whether two elements of the tensor may share memory, as after expanding.
    pub fn overlaps_itself(&self) -> bool {
        self.layout().overlaps_itself()
    }
}
