//! Element ops that conjugate complex numbers.

use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor_ops as _;

/// `x̄ y`, which depends on the conjugate of `x`.
#[custom_op]
fn conjugate_product<T: Num>(x: T, y: T) -> T {
    x.conj() * y
}

#[test]
fn the_gradient_of_a_conjugate_is_that_by_the_conjugate() -> Result<()> {
    opcheck(&conjugate_product::op(), &[]).into_result()
}
