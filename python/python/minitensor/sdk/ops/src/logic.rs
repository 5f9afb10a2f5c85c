//! Logic on truth values, and on the bits of integers.

use minitensor::prelude::*;

/// Whether both are true; a number is true unless it is 0.
#[custom_op]
pub fn logical_and<T: Element>(x: T, y: T) -> T::Mask {
    x.truthy() && y.truthy()
}

/// Whether either is true.
#[custom_op]
pub fn logical_or<T: Element>(x: T, y: T) -> T::Mask {
    x.truthy() || y.truthy()
}

/// Whether exactly one is true.
#[custom_op]
pub fn logical_xor<T: Element>(x: T, y: T) -> T::Mask {
    (x.truthy() || y.truthy()) && !(x.truthy() && y.truthy())
}

/// Whether it is false.
#[custom_op]
pub fn logical_not<T: Element>(x: T) -> T::Mask {
    !x.truthy()
}

/// Bits that are set in both.
#[custom_op(inplace)]
pub fn bitwise_and<T: Int>(x: T, y: T) -> T {
    x & y
}

/// Bits that are set in either.
#[custom_op(inplace)]
pub fn bitwise_or<T: Int>(x: T, y: T) -> T {
    x | y
}

/// Bits that are set in exactly one.
#[custom_op(inplace)]
pub fn bitwise_xor<T: Int>(x: T, y: T) -> T {
    x.bitwise_xor(y)
}

/// All bits turned round.
#[custom_op(alias = "bitwise_not")]
pub fn bitwise_invert<T: Int>(x: T) -> T {
    !x
}

/// `x · 2ʸ`, the bits that leave lost.
#[custom_op(alias = "left_shift")]
pub fn bitwise_left_shift<T: Int>(x: T, y: T) -> T {
    x.left_shift(y)
}

/// `⌊x / 2ʸ⌋`.
#[custom_op(alias = "right_shift")]
pub fn bitwise_right_shift<T: Int>(x: T, y: T) -> T {
    x.right_shift(y)
}
