//! Guarantees of differentiation.

// A slice of one owned tensor reads better than `from_ref`.
#![allow(clippy::cloned_ref_to_slice_refs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minitensor::autograd::{NoGrad, Options, backward, grad};
use minitensor::kernels::Const;
use minitensor::{DType, Device, Result, Tensor};
use minitensor_ops::arithmetic::{add, multiply, negative, power, square};
use minitensor_ops::reduction::sum;
use minitensor_ops::sorting::topk;

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_vec(values.to_vec(), [values.len()]).and_then(Tensor::with_requires_grad).expect("a leaf")
}

fn values(t: &Tensor) -> Vec<f64> {
    t.detach().to_vec::<f64>().expect("float64 values")
}

fn total(t: &Tensor) -> Result<Tensor> {
    sum::call(t, None, false, None)
}

fn gradient(t: &Tensor) -> Vec<f64> {
    values(&t.grad().expect("a gradient"))
}

const RETAIN: Options = Options { retain_graph: true, create_graph: false };
const CREATE: Options = Options { retain_graph: true, create_graph: true };

#[test]
fn a_chain_of_a_million_ops_runs_forward_backward_and_drop_on_a_small_stack() {
    let run = || -> Result<Vec<f64>> {
        let x = leaf(&[1.0]);
        let mut y = x.clone();
        for _ in 0..1_000_000 {
            y = negative::call(&y)?;
        }
        backward(&[y.clone()], &[], RETAIN)?;
        drop(y);
        Ok(gradient(&x))
    };
    let thread = std::thread::Builder::new().stack_size(128 * 1024).spawn(run).expect("a thread");
    assert_eq!(thread.join().expect("no overflow").expect("no error"), [1.0]);
}

#[test]
fn dropped_results_leave_memory_where_it_was() -> Result<()> {
    let x = leaf(&[1.0; 64]);
    for _ in 0..200_000 {
        multiply::call(&x, &x)?;
    }
    // Other tests run at the same time. 200 000 results would need 100 MB.
    assert!(minitensor::tensor::allocated_bytes() < 50_000_000);
    Ok(())
}

#[test]
fn gradients_gather_until_they_are_cleared() -> Result<()> {
    let x = leaf(&[3.0]);
    backward(&[square::call(&x)?], &[], Options::default())?;
    backward(&[square::call(&x)?], &[], Options::default())?;
    assert_eq!(gradient(&x), [12.0]);
    x.set_grad(None)?;
    assert!(x.grad().is_none());
    Ok(())
}

#[test]
fn a_graph_can_be_gone_through_twice_only_if_it_is_retained() -> Result<()> {
    let x = leaf(&[3.0]);
    let y = square::call(&x)?;
    backward(&[y.clone()], &[], RETAIN)?;
    backward(&[y.clone()], &[], Options::default())?;
    let error = backward(&[y], &[], Options::default()).unwrap_err();
    assert!(error.message().contains("retain_graph=True"), "{error}");
    assert_eq!(gradient(&x), [12.0]);
    Ok(())
}

#[test]
fn gradients_of_gradients_are_recorded() -> Result<()> {
    let x = leaf(&[2.0]);
    let y = multiply::call(&square::call(&x)?, &x)?; // x³
    let first = grad(&[y], &[x.clone()], &[], CREATE)?.remove(0).expect("a gradient");
    assert_eq!(values(&first), [12.0]);
    let second = grad(&[first], &[x.clone()], &[], CREATE)?.remove(0).expect("a gradient");
    assert_eq!(values(&second), [12.0]);
    assert!(x.grad().is_none(), "grad() gathers nothing in leaves");
    Ok(())
}

#[test]
fn a_tensor_used_many_times_gets_the_sum() -> Result<()> {
    let x = leaf(&[2.0, 3.0]);
    backward(&[total(&power::call(&x, &x)?)?], &[], Options::default())?;
    for (x, g) in [2.0f64, 3.0].iter().zip(gradient(&x)) {
        assert!((g - x.powf(*x) * (x.ln() + 1.0)).abs() < 1e-9);
    }
    Ok(())
}

#[test]
fn nothing_is_recorded_under_no_grad_or_after_detach() -> Result<()> {
    let x = leaf(&[1.0]);
    {
        let _quiet = NoGrad::new();
        assert!(!square::call(&x)?.requires_grad());
    }
    assert!(square::call(&x)?.requires_grad());
    assert!(!square::call(&x.detach())?.requires_grad());
    let error = backward(&[square::call(&x.detach())?], &[], Options::default()).unwrap_err();
    assert!(error.message().contains("requires_grad=True"), "{error}");
    Ok(())
}

#[test]
fn an_in_place_change_moves_the_history_on() -> Result<()> {
    let x = leaf(&[2.0]);
    let y = multiply::call(&x, &x)?;
    multiply::call_(&y, &x)?; // x³, in the memory of x²
    backward(&[y], &[], Options::default())?;
    assert_eq!(gradient(&x), [12.0]);
    Ok(())
}

#[test]
fn a_stale_saved_tensor_raises_and_names_the_op() -> Result<()> {
    let x = leaf(&[2.0]);
    let y = multiply::call(&x, &x)?;
    let z = square::call(&y)?;
    negative::call_(&y)?;
    let error = backward(&[z], &[], Options::default()).unwrap_err();
    assert!(error.message().contains("op 'square'") && error.message().contains("'x'"), "{error}");
    assert!(x.grad().is_none(), "a pass that fails changes nothing");
    Ok(())
}

#[test]
fn a_leaf_that_requires_a_gradient_is_not_changed_in_place() -> Result<()> {
    let x = leaf(&[1.0]);
    let error = negative::call_(&x).unwrap_err();
    assert!(error.message().contains("no_grad"), "{error}");
    assert_eq!(values(&x), [1.0]);
    let _quiet = NoGrad::new();
    negative::call_(&x)?;
    assert_eq!(values(&x), [-1.0]);
    Ok(())
}

#[test]
fn hooks_see_and_replace_gradients_and_can_be_removed() -> Result<()> {
    let x = leaf(&[1.0]);
    let calls = Arc::new(AtomicUsize::new(0));
    let y = square::call(&x)?;
    let count = calls.clone();
    let handle = y.register_hook(Arc::new(move |g| {
        count.fetch_add(1, Ordering::Relaxed);
        add::call(g, g).map(Some)
    }))?;
    let z = negative::call(&y)?;
    drop(y);
    backward(&[z.clone()], &[], RETAIN)?;
    assert_eq!((gradient(&x), calls.load(Ordering::Relaxed)), (vec![-4.0], 1));
    handle.remove();
    x.set_grad(None)?;
    backward(&[z], &[], Options::default())?;
    assert_eq!((gradient(&x), calls.load(Ordering::Relaxed)), (vec![-2.0], 1));
    Ok(())
}

#[test]
fn a_hook_that_fails_leaves_all_gradients_as_they_were() -> Result<()> {
    let (x, y) = (leaf(&[1.0]), leaf(&[2.0]));
    x.register_hook(Arc::new(|_| Err(minitensor::Error::value("no"))))?;
    let z = multiply::call(&y, &x)?;
    assert!(backward(&[z], &[], RETAIN).is_err());
    assert!(y.grad().is_none() && x.grad().is_none());
    Ok(())
}

#[test]
fn the_gradient_of_a_tensor_between_is_kept_on_request() -> Result<()> {
    let x = leaf(&[3.0]);
    let y = square::call(&x)?;
    y.retain_grad()?;
    backward(&[negative::call(&y)?], &[], Options::default())?;
    assert_eq!(gradient(&y), [-1.0]);
    Ok(())
}

#[test]
fn one_output_of_several_may_go_unused() -> Result<()> {
    let x = leaf(&[1.0, 5.0, 3.0]);
    let (top, _) = topk::call(&x, 2, -1)?;
    backward(&[top], &[Some(Tensor::from_vec(vec![1.0, 10.0], [2])?)], Options::default())?;
    assert_eq!(gradient(&x), [0.0, 1.0, 10.0]);
    Ok(())
}

#[test]
fn a_gradient_that_is_missing_raises_and_names_the_op() -> Result<()> {
    let x = leaf(&[1.0, 2.0]);
    let op = minitensor::CustomOpBuilder::new("copied", 1).forward(|x| x[0].copied()).formula("none").build()?;
    let y = minitensor::dispatch(&op.definition(), &[(&x).into()], &[])?.single();
    let error = backward(&[total(&y)?], &[], Options::default()).unwrap_err();
    assert!(error.message().contains("op 'copied' has no gradient"), "{error}");
    Ok(())
}

#[test]
fn integers_cannot_require_a_gradient() -> Result<()> {
    let x = Tensor::full([2], Const::Int(1), DType::I64, Device::Cpu)?;
    assert!(x.set_requires_grad(true).unwrap_err().message().contains("int64"));
    Ok(())
}

#[test]
fn half_precision_inputs_get_gradients_of_their_dtype() -> Result<()> {
    let x = Tensor::ones([3], DType::Bf16, Device::Cpu)?.with_requires_grad()?;
    let y = Tensor::ones([3], DType::F32, Device::Cpu)?.with_requires_grad()?;
    backward(&[total(&multiply::call(&x, &y)?)?], &[], Options::default())?;
    assert_eq!(x.grad().map(|g| g.dtype()), Some(DType::Bf16));
    assert_eq!(y.grad().map(|g| g.dtype()), Some(DType::F32));
    Ok(())
}

#[test]
fn a_gradient_nobody_wants_leaves_that_of_another_half_alone() -> Result<()> {
    let x = Tensor::full([4096], Const::Float(3.0), DType::F16, Device::Cpu)?;
    let y = Tensor::ones([4096], DType::F16, Device::Cpu)?.with_requires_grad()?;
    let z = multiply::call(&x, &y)?;
    backward(&[z], &[Some(Tensor::ones([4096], DType::F16, Device::Cpu)?)], Options::default())?;
    assert_eq!(y.grad().expect("a gradient").cast(DType::F32)?.to_vec::<f32>()?, [3.0; 4096]);
    Ok(())
}

#[test]
fn what_a_leaf_gathers_is_its_own_memory() -> Result<()> {
    let (x, y) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    let cotangent = Tensor::ones([2], DType::F64, Device::Cpu)?;
    backward(&[add::call(&x, &y)?], &[Some(cotangent.clone())], Options::default())?;
    let (gx, gy) = (x.grad().expect("a gradient"), y.grad().expect("a gradient"));
    assert!(!gx.shares_storage(&gy) && !gx.shares_storage(&cotangent) && !gy.shares_storage(&cotangent));
    Ok(())
}
