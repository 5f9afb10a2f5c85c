//! A [toy] device, with memory and kernels of its own: tensors are created, moved, computed, differentiated and freed there.

mod toy;

use std::ptr::NonNull;
use std::sync::Arc;

use minitensor::autograd::{Options, backward};
use minitensor::kernels::{Float, Row};
use minitensor::tensor::Buffer;
use minitensor::testing::{GradCheck, Sample, gradcheck, opcheck};
use minitensor::{DType, Device, ErrorKind, Result, Tensor, registry};
use minitensor_ops as ops;

/// The tests count the bytes on the devices, so they run one after the other.
static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn on_toy(values: &[f64], shape: &[usize]) -> Result<Tensor> {
    Tensor::from_vec(values.to_vec(), shape)?.to_device(toy::device(0))
}

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn tensors_are_created_moved_and_freed() -> Result<()> {
    let _alone = alone();
    let before = [toy::bytes(0), toy::bytes(1)];
    {
        let x = Tensor::full([2, 3], 1.5.into(), DType::F32, toy::device(0))?;
        assert_eq!(x.device().to_string(), "toy");
        assert_eq!(toy::bytes(0) - before[0], 24);
        assert_eq!(x.to_vec::<f32>()?, [1.5; 6]);
        let y = x.to_device(toy::device(1))?;
        assert_eq!((y.device().to_string().as_str(), toy::bytes(1) - before[1]), ("toy:1", 24));
        assert_eq!(y.to_device(Device::Cpu)?.to_vec::<f32>()?, [1.5; 6]);
        assert_eq!(y.cast(DType::I64)?.to_vec::<i64>()?, [1; 6]);
        assert_eq!(Device::parse("toy:1")?, y.device());
        assert_eq!(
            Device::parse("toy:2").unwrap_err().message(),
            "unknown device 'toy:2'; the devices are 'cpu', 'meta', 'toy' and 'toy:1'"
        );
        assert_eq!(
            format!("{x}"),
            "tensor([[1.5000, 1.5000, 1.5000],\n        [1.5000, 1.5000, 1.5000]], device='toy')"
        );
    }
    assert_eq!([toy::bytes(0), toy::bytes(1)], before);
    Ok(())
}

#[test]
fn memory_of_an_external_owner_is_on_its_device() -> Result<()> {
    let _alone = alone();
    let owner = Arc::new(on_toy(&[1.0, 2.0, 3.0, 4.0], &[4])?);
    let before = toy::bytes(0);
    let lent = |device, writable| -> Result<Tensor> {
        let data = NonNull::new(owner.data_ptr()).expect("it has elements");
        // SAFETY: the owner is kept, and its memory has these bytes on the device.
        let buffer = unsafe { Buffer::foreign_on(device, data, 32, writable, Box::new(owner.clone()))? };
        // SAFETY: the elements are within the buffer.
        Ok(unsafe { Tensor::from_parts(Arc::new(buffer.into()), [2, 2].into(), [2, 1][..].into(), 0, DType::F64) })
    };
    {
        let x = lent(toy::device(0), true)?;
        assert_eq!((x.device(), x.data_ptr()), (toy::device(0), owner.data_ptr()));
        assert_eq!(Arc::strong_count(&owner), 2);
        // Copies and kernels use the memory in its place.
        assert_eq!(x.permute_view(&[1, 0])?.to_vec::<f64>()?, [1.0, 3.0, 2.0, 4.0]);
        assert_eq!(ops::arithmetic::add::call(&x, &x)?.to_vec::<f64>()?, [2.0, 4.0, 6.0, 8.0]);
        x.copy_from(&Tensor::from_vec(vec![5.0, 6.0, 7.0, 8.0], [2, 2])?)?;
        assert_eq!(owner.to_vec::<f64>()?, [5.0, 6.0, 7.0, 8.0]);
        assert!(!lent(toy::device(0), false)?.storage().is_writable());
    }
    assert_eq!((Arc::strong_count(&owner), toy::bytes(0)), (1, before));
    assert!(lent(toy::device(2), true).is_err() && lent(Device::Meta, true).is_err());
    Ok(())
}

#[test]
fn views_are_copied_with_their_layout() -> Result<()> {
    let _alone = alone();
    let x = on_toy(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3])?;
    let turned = x.permute_view(&[1, 0])?.slice_view(0, 2, 2, -1)?;
    assert_eq!(turned.to_vec::<f64>()?, [2.0, 5.0, 1.0, 4.0]);
    // A write to a view leaves the elements between those of the view.
    turned.copy_from(&Tensor::from_vec(vec![20.0, 50.0, 10.0, 40.0], [2, 2])?)?;
    assert_eq!(x.to_vec::<f64>()?, [0.0, 10.0, 20.0, 3.0, 40.0, 50.0]);
    Ok(())
}

#[test]
fn an_op_uses_its_kernel_its_program_or_its_parts() -> Result<()> {
    let _alone = alone();
    let values = [-1.0, 0.5, 2.0, 3.0];
    let (x, on_cpu) = (on_toy(&values, &[2, 2])?, Tensor::from_vec(values.to_vec(), [2, 2])?);
    let same = |a: &Tensor, b: &Tensor| -> Result<()> {
        assert_eq!(a.device(), toy::device(0));
        for (a, b) in a.to_vec::<f64>()?.iter().zip(b.to_vec::<f64>()?) {
            assert!((a - b).abs() <= 1e-14 * b.abs().max(1.0), "{a} is not {b}");
        }
        assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
        Ok(())
    };
    same(&ops::arithmetic::add::call(&x, &x)?, &ops::arithmetic::add::call(&on_cpu, &on_cpu)?)?;
    same(
        &ops::exponential::exp::call(&x.permute_view(&[1, 0])?)?,
        &ops::exponential::exp::call(&on_cpu.permute_view(&[1, 0])?)?,
    )?;
    // `square` has no kernel: its program is a product.
    same(&ops::arithmetic::square::call(&x)?, &ops::arithmetic::square::call(&on_cpu)?)?;
    for axis in [None, Some(&[0][..]), Some(&[1][..])] {
        same(
            &ops::reduction::sum::call(&x, axis, false, None)?,
            &ops::reduction::sum::call(&on_cpu, axis, false, None)?,
        )?;
    }
    // A row op: its program is `sum`, a quotient and products.
    same(
        &ops::reduction::var::call(&x, Some(&[0]), 0.0, true)?,
        &ops::reduction::var::call(&on_cpu, Some(&[0]), 0.0, true)?,
    )?;
    Ok(())
}

/// Each row, divided by its sum.
#[minitensor::custom_op(shape = (x: [.., n]) -> [.., n], axis = -1, inplace)]
pub fn share<R: Row>(x: R) -> R {
    x / x.sum()
}

/// Each row in reverse order. The toy has a kernel for the form in place.
#[minitensor::custom_op(shape = (x: [.., n]) -> [.., n], axis = -1, backward = none, inplace)]
pub fn turned<T: Float>(x: &[T], out: &mut [T]) {
    x.iter().rev().zip(out).for_each(|(x, out)| *out = *x);
}

#[test]
fn rows_and_cells_are_changed_in_place_by_a_program_or_a_kernel() -> Result<()> {
    let _alone = alone();
    for axis in [0, 1] {
        let x = on_toy(&[1.0, 3.0, 4.0, 12.0], &[2, 2])?;
        share::call_(&x, axis)?;
        let expected = if axis == 0 { [0.2, 0.2, 0.8, 0.8] } else { [0.25, 0.75, 0.25, 0.75] };
        assert_eq!(x.to_vec::<f64>()?, expected);
        let x = on_toy(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
        turned::call_(&x, axis)?;
        let expected = if axis == 0 { [4.0, 5.0, 6.0, 1.0, 2.0, 3.0] } else { [3.0, 2.0, 1.0, 6.0, 5.0, 4.0] };
        assert_eq!(x.to_vec::<f64>()?, expected);
    }
    Ok(())
}

#[test]
fn composite_ops_round_halves_once() -> Result<()> {
    /// The sum less the second input, which is the first one if the sum is not rounded.
    #[minitensor::custom_op(shape = (x: [..], y: [..]) -> [..])]
    fn cancelled(x: &Tensor, y: &Tensor) -> Result<Tensor> {
        ops::arithmetic::subtract::call(&ops::arithmetic::add::call(x, y)?, y)
    }
    let _alone = alone();
    // 2049 is not a number of f16.
    let half = |v: f64| Tensor::from_vec(vec![v], [1])?.cast(DType::F16);
    let (x, y) = (half(1.0)?, half(2048.0)?);
    for device in [Device::Cpu, toy::device(0)] {
        let z = cancelled::call(&x.to_device(device)?, &y.to_device(device)?)?;
        assert_eq!((z.dtype(), z.device()), (DType::F16, device));
        assert_eq!(z.cast(DType::F32)?.to_vec::<f32>()?, [1.0], "on {device}");
    }
    Ok(())
}

#[test]
fn gradients_are_computed_on_the_device() -> Result<()> {
    let _alone = alone();
    let before = toy::bytes(0);
    {
        let x = on_toy(&[-1.0, 0.5, 2.0], &[3])?;
        let f = |t: &[Tensor]| Ok(vec![ops::arithmetic::square::call(&ops::trigonometry::tanh::call(&t[0])?)?]);
        gradcheck(&f, std::slice::from_ref(&x), GradCheck::default())?;
        x.set_requires_grad(true)?;
        let y = ops::reduction::sum::call(&ops::arithmetic::multiply::call(&x, &x)?, None, false, None)?;
        backward(&[y], &[None], Options::default())?;
        let grad = x.grad().expect("a leaf has a gradient");
        assert_eq!((grad.device(), grad.to_vec::<f64>()?), (toy::device(0), vec![-2.0, 1.0, 4.0]));
        // A gradient flows between devices.
        let host = Tensor::from_vec(vec![1.0, 2.0, 3.0], [3])?;
        host.set_requires_grad(true)?;
        let moved = ops::conversion::copy_to_device::call(&host, "toy", "cpu")?;
        let y = ops::reduction::sum::call(&ops::arithmetic::multiply::call(&moved, &moved)?, None, false, None)?;
        backward(&[y], &[None], Options::default())?;
        assert_eq!(host.grad().expect("a leaf has a gradient").device(), Device::Cpu);
    }
    assert_eq!(toy::bytes(0), before);
    Ok(())
}

#[test]
fn a_missing_kernel_is_an_error_that_names_op_and_device() -> Result<()> {
    let _alone = alone();
    let x = on_toy(&[1.0, 2.0], &[2])?;
    let error = ops::trigonometry::sin::call(&x).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotImplemented);
    assert_eq!(
        error.message(),
        "op 'sin' has no kernel for float64 on device 'toy'; copy its inputs with to('cpu'), or add a kernel"
    );
    let error = ops::sorting::sort::call(&x, -1, false).unwrap_err();
    assert!(error.message().contains("on device 'toy'"), "{}", error.message());
    // Two devices.
    let error = ops::arithmetic::add::call(&x, &x.to_device(Device::Cpu)?).unwrap_err();
    assert!(
        error.message().contains("'y' is on device 'cpu', but the inputs before it are on device 'toy'"),
        "{}",
        error.message()
    );
    assert!(x.view::<f64>().unwrap_err().message().contains("device 'toy', whose memory the CPU does not read"));
    Ok(())
}

#[test]
fn opcheck_needs_nothing_new() -> Result<()> {
    let _alone = alone();
    for (op, inputs) in [("add", 2), ("multiply", 2), ("exp", 1), ("tanh", 1), ("square", 1)] {
        let sample = (0..inputs).map(|i| on_toy(&[0.3 + i as f64, -1.1, 0.7, 2.0, -0.2, 1.4], &[2, 3]).map(Some));
        let sample = Sample { inputs: sample.collect::<Result<_>>()?, attrs: Vec::new() };
        let report = opcheck(&registry::get(op)?, &[sample]);
        assert!(report.findings.is_empty(), "{report}");
    }
    Ok(())
}

/// Two crates may define ops of one name. Only one of them is registered, but each keeps its own kernels.
#[test]
fn an_op_has_the_kernels_of_its_own_definition() -> Result<()> {
    mod one {
        use minitensor::prelude::*;
        /// Plus 1.
        #[custom_op]
        pub fn twin_of_two_crates<T: Float>(x: T) -> T {
            x + 1.0
        }
    }
    mod two {
        use minitensor::prelude::*;
        /// Plus 2.
        #[custom_op]
        pub fn twin_of_two_crates<T: Float>(x: T) -> T {
            x + 2.0
        }
    }
    let x = Tensor::scalar(0.0);
    let results = [one::twin_of_two_crates::call(&x)?, two::twin_of_two_crates::call(&x)?];
    assert_eq!((results[0].item::<f64>()?, results[1].item::<f64>()?), (1.0, 2.0));
    assert!(registry::check().is_err());
    Ok(())
}
