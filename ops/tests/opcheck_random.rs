//! opcheck and random numbers. No other test of this process draws any.

use minitensor::prelude::*;
use minitensor::testing::opcheck;
use minitensor::{random, registry};
use minitensor_ops as _;

/// `x` with noise.
#[custom_op(name = "opcheck_random::noisy")]
pub fn noisy<T: Float>(x: T, #[uniform] u: T) -> T {
    x + 0.1 * u
}

#[test]
fn opcheck_does_not_change_the_global_generator() -> Result<()> {
    random::manual_seed(7);
    let before = random::state();
    opcheck(&noisy::op(), &[]).into_result()?;
    opcheck(&registry::get("given::opcheck_random_noisy")?, &[]).into_result()?;
    assert_eq!(random::state(), before);
    let x = Tensor::from_vec(vec![0.0; 4], [4])?;
    let first = noisy::call(&x, None)?.to_vec::<f64>()?;
    random::manual_seed(7);
    assert_eq!(noisy::call(&x, None)?.to_vec::<f64>()?, first);
    Ok(())
}
