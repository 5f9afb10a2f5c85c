//! A region of a tensor, as a view selects it. The histories of views that are modified in place consist of these ops.
//! `region` is a [`Region`] as a list of integers.

use minitensor::prelude::*;
use minitensor::tensor::Region;

use crate::reduction::sum;

/// The region of `x`.
#[custom_op(name = "region::part", backward = |d| { x: region::spread(d, region) })]
pub fn part(x: &Tensor, region: &[i64]) -> Result<Tensor> {
    Region::read(region)?.part_of(x)
}

/// A tensor that contains `part` in the region, and 0 elsewhere. Elements of the region that share memory, as after
/// expanding, are summed.
#[custom_op(name = "region::spread", backward = |d| { part: region::part(d, region) })]
pub fn spread(part: &Tensor, region: &[i64]) -> Result<Tensor> {
    let region = Region::read(region)?;
    let repeated = region.repeated_axes();
    let summed = if repeated.is_empty() { part.clone() } else { sum::call(part, Some(&repeated), true, None)? };
    region.spread(&summed, part.dtype())
}

/// `x` with 0 in the region.
#[custom_op(name = "region::cleared", backward = |d| { x: region::cleared(d, region) })]
pub fn cleared(x: &Tensor, region: &[i64]) -> Result<Tensor> {
    Region::read(region)?.cleared(x)
}

/// `x` with the region replaced.
#[custom_op(
    name = "region::replaced",
    backward = |d| { x: region::cleared(d, region), part: region::part(d, region) },
)]
pub fn replaced(x: &Tensor, part: &Tensor, region: &[i64]) -> Result<Tensor> {
    Region::read(region)?.replaced(x, part)
}
