//! [`Wanted`]: the outputs that a call computes, and the memory for them.

use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::{Device, Shape, Tensor};

/// The outputs that a call computes. A caller can provide memory for them, which loops then write to directly.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    bits: u64,
    places: &'a [Tensor],
}

impl<'a> Wanted<'a> {
    /// All outputs.
    pub const ALL: Wanted<'static> = Wanted { bits: u64::MAX, places: &[] };

    /// The outputs whose bit is set.
    pub fn of(bits: u64) -> Wanted<'static> {
        Wanted { bits, places: &[] }
    }

    /// The outputs for which there is a `true`. All of them, if there are more than 64.
    pub fn these(is_wanted: impl ExactSizeIterator<Item = bool>) -> Wanted<'static> {
        if is_wanted.len() > 64 {
            return Wanted::ALL;
        }
        let unwanted = is_wanted.enumerate().filter(|(_, is_wanted)| !is_wanted);
        Wanted::of(!unwanted.map(|(k, _)| 1_u64 << k).sum::<u64>())
    }

    /// All outputs, in the memory of these tensors where that is possible.
    pub fn at(places: &'a [Tensor]) -> Wanted<'a> {
        Wanted { bits: u64::MAX, places }
    }

    /// Whether memory for outputs is provided.
    pub fn has_places(&self) -> bool {
        !self.places.is_empty()
    }

    /// Whether the output with this number is computed.
    pub fn has(&self, k: usize) -> bool {
        self.bits & (1 << k) != 0
    }

    /// Whether all of the first `count` outputs are computed.
    pub fn has_all(&self, count: usize) -> bool {
        self.bits.trailing_ones() as usize >= count
    }

    /// The tensor for an output, with unspecified values; `None` if it is not computed.
    pub fn output(&self, k: usize, shape: &Shape, dtype: DType, device: Device) -> Result<Option<Tensor>> {
        if !self.has(k) {
            return Ok(None);
        }
        match self.place(k, shape, dtype, device) {
            Some(place) => Ok(Some(place)),
            None => Tensor::empty(shape.clone(), dtype, device).map(Some),
        }
    }

    /// The memory for an output, if it was provided and suits.
    pub fn place(&self, k: usize, shape: &Shape, dtype: DType, device: Device) -> Option<Tensor> {
        let fits = |t: &&Tensor| t.shape() == shape && t.dtype() == dtype && t.device() == device && t.is_contiguous();
        self.places.get(k).filter(fits).cloned()
    }
}
