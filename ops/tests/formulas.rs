//! Names in formulas have the same scope as in Rust.

use minitensor::autograd::{Options, backward};
use minitensor::prelude::*;
use minitensor_ops::reduction::sum;

/// `x · y · z`, with a formula that rebinds a name.
#[custom_op(
    shape = (x: [.., n], y: [.., n], z: [.., n]) -> [.., n],
    backward = |d| {
        let h = d * y * z;
        let d = d * x;
        x: h,
        y: d * z,
        z: d * y,
    },
)]
pub fn product<T: Float>(x: &[T], y: &[T], z: &[T], out: &mut [T]) {
    for i in 0..x.len() {
        out[i] = x[i] * y[i] * z[i];
    }
}

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.to_vec(), [values.len()]).and_then(Tensor::with_requires_grad).expect("a leaf")
}

/// The gradients of an output with respect to `inputs`.
fn gradients(out: &Tensor, inputs: &[&Tensor]) -> Result<Vec<Vec<f64>>> {
    backward(std::slice::from_ref(out), &[None], Options::default())?;
    inputs.iter().map(|x| x.grad().expect("a gradient").to_vec::<f64>()).collect()
}

#[test]
fn a_let_means_what_it_meant_where_it_stood() -> Result<()> {
    let (x, y, z) = (leaf(&[2.0]), leaf(&[3.0]), leaf(&[5.0]));
    let out = sum::call(&product::call(&x, &y, &z)?, None, false, None)?;
    assert_eq!(gradients(&out, &[&x, &y, &z])?, [[15.0], [10.0], [6.0]]);
    Ok(())
}
