use minitensor::prelude::*;

fn reset<T: Float>(x: &mut T) {
    *x = T::zero();
}

/// Limits.
#[custom_op]
pub fn limit<T: Float>(x: T) -> T {
    let (mut a, mut t, mut y, mut z) = ([x, x], (x, x), x, x);
    let low = if x > 1.0 { a[0] = 1.0; 1.0 } else { t.0 += 1.0; x };
    let high = if x > 1.0 { (y, z) = (z, y); 1.0 } else { reset(&mut a[1]); x };
    let each = if x > 1.0 { [1, 2].iter().for_each(|_| y += 1.0); 1.0 } else { x };
    // What is a branch's own may change in it.
    let own = if x > 1.0 { let mut y = [x, x]; y[0] = 2.0; reset(&mut y[1]); y[0] } else { x };
    let _ = (low, high, each, own);
    a[0] + t.0 + y + z
}

fn main() {}
