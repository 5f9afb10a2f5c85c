//! Reductions of tensors that are not contiguous: correct, and without a copy of the whole tensor.

use minitensor::autograd::{Options, backward};
use minitensor::tensor::{peak_bytes, reset_peak_bytes};
use minitensor::{DType, Device, Result, Tensor};
use minitensor_ops::reduction::{all, any, argmax, count_nonzero, max, mean, min, prod, sum};
use minitensor_ops::shape::permute_dims;

fn ramp(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    let numbers = (0..n).map(|i| ((i * 7919) % 1009) as f64 / 1009.0 - 0.25).collect();
    Tensor::from_vec(numbers, shape).expect("as many numbers")
}

/// The number of bytes that `f` allocates at its peak.
fn needed(f: impl FnOnce() -> Result<Tensor>) -> Result<usize> {
    reset_peak_bytes();
    let before = minitensor::tensor::allocated_bytes();
    f()?;
    Ok(peak_bytes() - before)
}

type Reduction = fn(&Tensor, Option<&[i64]>, bool) -> Result<Tensor>;

fn reductions() -> [(&'static str, Reduction); 9] {
    [
        ("sum", |x, axis, keep| sum::call(x, axis, keep, None)),
        ("prod", |x, axis, keep| prod::call(x, axis, keep, None)),
        ("mean", mean::call),
        ("max", max::call),
        ("min", min::call),
        ("argmax", argmax::call),
        ("any", any::call),
        ("all", all::call),
        ("count_nonzero", count_nonzero::call),
    ]
}

/// There is one test, because others would allocate at the same time.
#[test]
fn strided_reductions_are_those_of_a_copy_and_need_no_copy() -> Result<()> {
    let base = ramp(&[3, 70_001, 2]);
    let layouts = [
        ("turned", base.permute_view(&[2, 1, 0])?),
        ("every second", base.slice_view(1, 0, 35_000, 2)?),
        ("backwards", base.slice_view(1, 70_000, 70_001, -1)?),
        ("expanded", base.slice_view(1, 5, 1, 1)?.expand_view(&[3, 400, 2])?),
    ];
    for (layout, x) in &layouts {
        let copy = x.copied()?;
        for (name, reduce) in reductions() {
            for axis in [None, Some(&[1i64][..]), Some(&[0, 1]), Some(&[-1, 0])] {
                for keepdims in [false, true] {
                    let (got, expected) = (reduce(x, axis, keepdims)?, reduce(&copy, axis, keepdims)?);
                    assert_eq!(got.shape(), expected.shape(), "{name} of {layout} over {axis:?}");
                    let numbers = |t: &Tensor| t.cast(DType::F64)?.to_vec::<f64>();
                    for (a, b) in numbers(&got)?.into_iter().zip(numbers(&expected)?) {
                        assert!(
                            (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                            "{name} of {layout} over {axis:?}: {a}, not {b}"
                        );
                    }
                }
            }
        }
    }
    let large = Tensor::ones([2000, 1000], DType::F32, Device::Cpu)?;
    let holes = large.slice_view(1, 0, 499, 2)?;
    for (name, reduce) in reductions().into_iter().filter(|(name, _)| *name != "argmax") {
        for x in [&permute_dims::call(&large, &[1, 0])?, &holes] {
            let bytes = needed(|| reduce(x, None, false))?;
            assert!(bytes < 1 << 20, "{name} needs {bytes} bytes for {}", x.shape());
        }
    }
    let endless = Tensor::ones([1], DType::F32, Device::Cpu)?.expand_view(&[1 << 34])?;
    assert_eq!(sum::call(&endless, None, false, None)?.to_vec::<f32>()?, [(1u64 << 34) as f32]);
    assert_eq!(mean::call(&endless, None, false)?.to_vec::<f32>()?, [1.0]);
    assert_eq!(count_nonzero::call(&endless, None, false)?.to_vec::<i64>()?, [1 << 34]);
    // Every element has its own gradient, even if several share one address.
    let x = Tensor::ones([1], DType::F64, Device::Cpu)?.expand_view(&[5])?.with_requires_grad()?;
    backward(&[sum::call(&x, None, false, None)?], &[], Options::default())?;
    assert_eq!(x.grad().expect("a gradient").to_vec::<f64>()?, [1.0; 5]);
    let x = ramp(&[300_000, 2]).slice_view(1, 0, 1, 1)?.with_requires_grad()?;
    backward(&[sum::call(&x, None, false, None)?], &[], Options::default())?;
    assert!(x.grad().expect("a gradient").to_vec::<f64>()?.iter().all(|g| *g == 1.0));
    Ok(())
}
