//! Logical ops on booleans, and bitwise ops on integers.

use minitensor::prelude::*;

/// True if both are true; a number is true unless it is 0.
#[custom_op(symmetric)]
pub fn logical_and<T: Element>(x: T, y: T) -> T::Mask {
    x.truthy() && y.truthy()
}

/// True if at least one is true.
#[custom_op(symmetric)]
pub fn logical_or<T: Element>(x: T, y: T) -> T::Mask {
    x.truthy() || y.truthy()
}

/// True if exactly one is true.
#[custom_op(symmetric)]
pub fn logical_xor<T: Element>(x: T, y: T) -> T::Mask {
    (x.truthy() || y.truthy()) && !(x.truthy() && y.truthy())
}

/// True if the argument is false.
#[custom_op]
pub fn logical_not<T: Element>(x: T) -> T::Mask {
    !x.truthy()
}

/// The bits that are set in both.
#[custom_op(symmetric, inplace)]
pub fn bitwise_and<T: Int>(x: T, y: T) -> T {
    x & y
}

/// The bits that are set in at least one.
#[custom_op(symmetric, inplace)]
pub fn bitwise_or<T: Int>(x: T, y: T) -> T {
    x | y
}

/// The bits that are set in exactly one.
#[custom_op(symmetric, inplace)]
pub fn bitwise_xor<T: Int>(x: T, y: T) -> T {
    x.bitwise_xor(y)
}

/// Flips all bits.
#[custom_op(alias = "bitwise_not")]
pub fn bitwise_invert<T: Int>(x: T) -> T {
    !x
}

/// `x · 2ʸ`; bits that are shifted out are lost.
#[custom_op(alias = "left_shift", inplace)]
pub fn bitwise_left_shift<T: Int>(x: T, y: T) -> T {
    x.left_shift(y)
}

/// `⌊x / 2ʸ⌋`.
#[custom_op(alias = "right_shift", inplace)]
pub fn bitwise_right_shift<T: Int>(x: T, y: T) -> T {
    x.right_shift(y)
}
