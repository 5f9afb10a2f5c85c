//! Checks whether tensors share memory.

use super::{Device, Tensor};

impl Tensor {
    /// The bytes of the storage from the lowest element to the end of the highest, relative to its first byte.
    pub(crate) fn byte_range(&self) -> (isize, isize) {
        let (mut low, mut high) = (0isize, 0isize);
        for (size, stride) in self.shape().iter().zip(self.strides()) {
            let reach = stride * (*size as isize - 1).max(0);
            if reach < 0 { low += reach } else { high += reach }
        }
        let bytes = self.dtype().size() as isize;
        let start = self.offset() as isize * bytes;
        (start + low * bytes, start + (high + 1) * bytes)
    }

    /// The distance from the first byte of the storage of `other` to that of this tensor. `None` if one of them has no
    /// address yet: no other storage has its memory.
    fn distance(&self, other: &Tensor) -> Option<isize> {
        let (a, b) = (self.storage().data() as isize, other.storage().data() as isize);
        match self.shares_storage(other) {
            true => Some(0),
            false => (a != 0 && b != 0).then(|| a.wrapping_sub(b)),
        }
    }

    /// Whether the tensors may share elements. The check compares address ranges, so it is also true for interleaved windows
    /// without a common element.
    pub fn may_overlap(&self, other: &Tensor) -> bool {
        let is_elsewhere = self.device() == Device::Meta || self.device() != other.device();
        if is_elsewhere || self.numel() == 0 || other.numel() == 0 {
            return false;
        }
        let ((a, b), (c, d)) = (self.byte_range(), other.byte_range());
        self.distance(other).is_some_and(|distance| a + distance < d && c < b + distance)
    }

    /// Whether all elements are in the memory that another tensor covers.
    pub(crate) fn lies_within(&self, whole: &Tensor) -> bool {
        if !self.shares_storage(whole) || self.dtype().real() != whole.dtype().real() && self.dtype() != whole.dtype() {
            return false;
        }
        let is_component = self.dtype() == whole.dtype().real();
        let ((a, b), (c, d)) = (self.byte_range(), whole.byte_range());
        (self.dtype() == whole.dtype() || is_component) && (self.numel() == 0 || c <= a && b <= d)
    }

    /// Whether both are the same window: the same first element, shape, dtype and, for axes of more than one element, strides.
    pub fn is_same_window(&self, other: &Tensor) -> bool {
        let start = |t: &Tensor| (t.offset() * t.dtype().size()) as isize;
        self.distance(other).is_some_and(|distance| start(self) + distance == start(other))
            && self.dtype() == other.dtype()
            && self.shape() == other.shape()
            && self.shape().iter().zip(self.strides().iter().zip(other.strides())).all(|(n, (a, b))| *n == 1 || a == b)
    }

    /// Whether two elements of the tensor may share memory, as after expanding.
    pub fn overlaps_itself(&self) -> bool {
        self.layout().overlaps_itself()
    }
}
