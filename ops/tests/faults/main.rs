//! Faults of real op libraries, each reproduced in an op. opcheck, dispatch or the registry must find it.

// A slice of one owned tensor reads better than `from_ref`.
#![allow(clippy::cloned_ref_to_slice_refs)]

mod computed;
mod detached;
mod formulas;
mod nan;
mod refusals;
mod sizes;
mod unwritten;

use minitensor::attr::{Attr, AttrKind, FromAttr};
use minitensor::op::{Arg, dispatch};
use minitensor::prelude::*;
use minitensor::testing::{GradCheck, Sample, gradcheck, opcheck};
use minitensor::{BackwardCall, CustomOpBuilder, OpRef, registry};
use minitensor_ops as ops;
use ops::arithmetic::{add, divide, multiply};

fn t(values: &[f64], shape: &[usize]) -> Tensor {
    Tensor::from_vec(values.to_vec(), shape).expect("as many values as the shape says")
}

fn sample() -> Sample {
    pair(1)
}

/// A sample with this number of inputs of shape (2, 3).
fn pair(inputs: usize) -> Sample {
    let values = |k: usize| (0..6).map(|i| ((i * 5 + k * 3 + 1) % 7) as f64 * 0.4 - 1.1).collect::<Vec<_>>();
    Sample { inputs: (0..inputs).map(|k| Some(t(&values(k), &[2, 3]))).collect(), attrs: vec![] }
}

fn build(builder: CustomOpBuilder) -> OpRef {
    builder.build().expect("a complete op").definition()
}

/// Asserts that the op fails this check, with a message that contains `words`.
#[track_caller]
fn found(op: &OpRef, sample: Sample, check: &str, words: &str) {
    let report = opcheck(op, &[sample]);
    let hit = report.findings.iter().any(|f| f.check == check && f.message.contains(words));
    assert!(hit, "expected '{check}' to say «{words}»: {report}");
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.detach().to_vec::<f64>().expect("float64 values")
}

fn mapped(x: &Tensor, f: impl Fn(f64) -> f64) -> Result<Tensor> {
    if x.expect_cpu().is_err() {
        return Tensor::empty(x.shape().clone(), x.dtype(), x.device());
    }
    Tensor::from_vec(numbers(x).into_iter().map(f).collect(), x.shape().clone())
}

fn triple() -> CustomOpBuilder {
    CustomOpBuilder::new("faulty", 1).forward(|x| mapped(x[0], |v| 3.0 * v))
}

#[test]
fn fault_1_a_gradient_that_ignores_the_cotangent() {
    let op = build(triple().backward(|call| {
        let x = call.input(0)?;
        Ok(vec![Some(Tensor::full(x.shape().clone(), 3.0.into(), x.dtype(), x.device())?)])
    }));
    found(&op, sample(), "gradient", "finite differences give");
}

#[test]
fn fault_2_a_tensor_given_twice_keeps_both_terms() {
    let op = build(CustomOpBuilder::new("faulty", 2).forward(|x| multiply::call(x[0], x[1])).backward(|call| {
        let d = call.cotangent(0)?;
        let (x, y) = (call.input(0)?, call.input(1)?);
        // Like a map from tensor ids: the second entry replaces the first.
        let same = x.data_ptr() == y.data_ptr();
        let first =
            if same { Tensor::zeros(x.shape().clone(), x.dtype(), x.device())? } else { multiply::call(&d, &y)? };
        Ok(vec![Some(first), Some(multiply::call(&d, &x)?)])
    }));
    found(&op, pair(2), "gradient of aliases", "one tensor for both 'x' and 'y'");
    let report = opcheck(&multiply::op(), &[pair(2)]);
    assert!(report.findings.is_empty(), "{report}");
}

#[test]
fn fault_3_and_5_an_output_without_history_raises_instead_of_freezing() -> Result<()> {
    let op = build(triple());
    found(&op, sample(), "requires_grad", "outside of recorded ops");
    let x = t(&[1.0], &[1]).with_requires_grad()?;
    let y = dispatch(&op, &[Arg::Tensor(&x)], &[])?.single();
    assert!(y.requires_grad());
    let error = minitensor::autograd::backward(&[y], &[], Default::default()).unwrap_err();
    assert!(error.message().contains("op 'faulty' has no gradient"), "{error}");
    Ok(())
}

#[test]
fn fault_4_an_output_that_is_its_input_keeps_its_gradient() -> Result<()> {
    let op = build(
        CustomOpBuilder::new("faulty", 1)
            .forward(|x| Ok(x[0].clone()))
            .backward(|call| Ok(vec![Some(multiply::call(&call.cotangent(0)?, &t(&[2.0], &[]))?)])),
    );
    let x = t(&[5.0], &[1]).with_requires_grad()?;
    let y = dispatch(&op, &[Arg::Tensor(&x)], &[])?.single();
    minitensor::autograd::backward(&[y], &[], Default::default())?;
    assert_eq!(x.grad().map(|g| numbers(&g)), Some(vec![2.0]));
    let changes = build(CustomOpBuilder::new("faulty", 1).forward(|x| {
        if x[0].expect_cpu().is_ok() {
            x[0].copy_from(&mapped(x[0], |v| v + 1.0)?)?;
        }
        Ok(x[0].clone())
    }));
    found(&changes, sample(), "purity", "the input 'x' is changed");
    Ok(())
}

#[test]
fn fault_6_a_gradient_that_is_absent_for_the_second_output() {
    let forward = |call: &minitensor::op::Call<'_>| {
        let x = call.tensor(0);
        Ok(vec![mapped(x, |v| 2.0 * v)?, mapped(x, |v| v * v)?])
    };
    let op = build(
        CustomOpBuilder::new("faulty", 1)
            .outputs(["a", "b"])
            .body(forward)
            .backward(|call| Ok(vec![Some(multiply::call(&call.cotangent(0)?, &t(&[2.0], &[]))?)])),
    );
    found(&op, sample(), "gradient", "finite differences give");
}

#[test]
fn a_wrong_derivative_of_a_small_output_beside_a_huge_one() {
    // The first input times a factor for each output.
    let factor = |k: usize| if k == 0 { 1e8 } else { 3.0 };
    let op = |factor_of_gradient: fn(usize) -> f64| {
        let forward = move |x: &[&Tensor]| {
            let first = if x[0].expect_cpu().is_ok() { numbers(x[0]).first().copied() } else { None };
            let values = (0..x[0].numel()).map(|k| factor(k) * first.unwrap_or_default()).collect();
            Tensor::from_vec(values, x[0].shape().clone())?.to_device(x[0].device())
        };
        build(CustomOpBuilder::new("faulty", 1).forward(forward).backward(move |call| {
            let (x, d) = (call.input(0)?, numbers(&call.cotangent(0)?));
            let mut gradient = vec![0.0; d.len()];
            gradient[0] = d.iter().enumerate().map(|(k, d)| factor_of_gradient(k) * d).sum();
            Ok(vec![Some(Tensor::from_vec(gradient, x.shape().clone())?)])
        }))
    };
    let inputs = [t(&[1.5, 0.5, -0.5], &[3])];
    let check = |factor_of_gradient| {
        let call = |x: &[Tensor]| Ok(vec![dispatch(&op(factor_of_gradient), &[Arg::Tensor(&x[0])], &[])?.single()]);
        gradcheck(&call, &inputs, GradCheck { orders: 1, ..GradCheck::default() })
    };
    check(|k| if k == 0 { 1e8 } else { 3.0 }).expect("the correct gradient");
    let error = check(|k| [1e8, 3.0, 2.0][k]).expect_err("the wrong gradient of the last output");
    assert!(error.message().contains("with cotangents inverse to the derivatives"), "{error}");
    found(&op(|k| [1e8, 3.0, 2.0, 3.0, 3.0, 3.0][k % 6]), sample(), "gradient", "inverse to the derivatives");
}

#[test]
fn rounding_errors_are_no_derivative() {
    // A jump as small as rounding errors, whose difference quotient depends on the step.
    let op = build(
        CustomOpBuilder::new("correct", 1)
            .forward(|x| mapped(x[0], |v| if v > 0.5 { 4e-15 } else { 0.0 }))
            .backward(|call| Ok(vec![Some(mapped(&call.input(0)?, |_| 0.0)?)])),
    );
    let call = |x: &[Tensor]| Ok(vec![dispatch(&op, &[Arg::Tensor(&x[0])], &[])?.single()]);
    gradcheck(&call, &[t(&[0.5], &[1])], GradCheck { orders: 1, ..GradCheck::default() }).expect("the gradient is 0");
}

#[test]
fn fault_7_backward_on_another_thread_finds_the_graph() -> Result<()> {
    let x = t(&[2.0], &[1]).with_requires_grad()?;
    let y = multiply::call(&x, &x)?;
    std::thread::scope(|s| s.spawn(|| minitensor::autograd::backward(&[y], &[], Default::default())).join())
        .expect("no panic")?;
    assert_eq!(x.grad().map(|g| numbers(&g)), Some(vec![4.0]));
    // A gradient that only works on the thread that built the op.
    let here = std::thread::current().id();
    let op = build(triple().backward(move |call| {
        if std::thread::current().id() == here {
            return Ok(vec![Some(multiply::call(&call.cotangent(0)?, &t(&[3.0], &[]))?)]);
        }
        Ok(vec![Some(Tensor::zeros(call.input(0)?.shape().clone(), call.dtype(0), Device::Cpu)?)])
    }));
    found(&op, sample(), "threads", "another gradient");
    Ok(())
}

#[test]
fn fault_8_results_that_are_kept() {
    let kept = std::sync::Mutex::new(Vec::new());
    let op = build(CustomOpBuilder::new("faulty", 1).forward(move |x| {
        let y = add::call(x[0], x[0])?;
        kept.lock().expect("one at a time").push(y.clone());
        Ok(y)
    }));
    found(&op, sample(), "memory", "remain allocated");
}

#[test]
fn fault_9_a_saved_intermediate_taken_as_a_constant() {
    let op = build(CustomOpBuilder::new("faulty", 1).forward(|x| multiply::call(x[0], x[0])).backward(|call| {
        let twice = mapped(&call.input(0)?, |v| 2.0 * v)?;
        Ok(vec![Some(multiply::call(&call.cotangent(0)?, &twice)?)])
    }));
    found(&op, sample(), "gradient", "second derivative");
}

#[test]
fn fault_10_a_shape_that_is_wrong_only_when_inferred() {
    let op = build(CustomOpBuilder::new("faulty", 1).forward(|x| match x[0].device() {
        Device::Meta => Tensor::empty(Shape::default(), x[0].dtype(), Device::Meta),
        _ => x[0].copied(),
    }));
    found(&op, sample(), "inference", "is inferred as ()");
}

#[test]
fn fault_11_a_dtype_that_is_wrong_only_when_inferred() {
    let op = build(CustomOpBuilder::new("faulty", 1).forward(|x| {
        let dtype = if x[0].device() == Device::Meta { DType::F32 } else { x[0].dtype() };
        x[0].cast(dtype)
    }));
    found(&op, sample(), "inference", "float32");
}

#[test]
fn fault_12_wrong_for_strided_input() {
    let op = build(CustomOpBuilder::new("faulty", 1).forward(|x| {
        if x[0].expect_cpu().is_err() {
            return x[0].copied();
        }
        // Reads memory as if it were contiguous.
        let first = x[0].data_ptr().cast::<f64>();
        // SAFETY: the layouts that opcheck makes keep this many elements within the allocation, from the lowest address on.
        let values = (0..x[0].numel()).map(|i| unsafe { *first.wrapping_add(i % 2) });
        Tensor::from_vec(if x[0].is_contiguous() { numbers(x[0]) } else { values.collect() }, x[0].shape().clone())
    }));
    found(&op, sample(), "layout", "in memory");
}

/// The naive swish.
#[custom_op(name = "faulty::naive_swish")]
pub fn naive_swish<T: Float>(x: T) -> T {
    x / (1.0 + (-x).exp())
}

/// A clamp that loses NaN.
#[custom_op(name = "faulty::lossy_relu")]
pub fn lossy_relu<T: Float>(x: T) -> T {
    if x > 0.0 { x } else { 0.0 }
}

/// The mean, with a naive sum.
#[custom_op(name = "faulty::long_chain", shape = (x: [.., n]) -> [..], backward = none)]
pub fn long_chain<T: Float>(x: &[T], out: &mut T) {
    let mut sum = T::zero();
    x.iter().for_each(|v| sum += *v);
    *out = sum;
}

/// Scales by √eps without a condition on `eps`, so that a negative one returns NaN.
#[custom_op(name = "faulty::scale_rows", shape = (x: [.., n]) -> [.., n] where n > 1, backward = none)]
pub fn scale_rows<T: Float>(x: &[T], #[default = 1e-5] eps: f64, out: &mut [T]) {
    for (o, v) in out.iter_mut().zip(x) {
        *o = *v * minitensor::kernels::lit::<T>(eps).sqrt();
    }
}

#[test]
fn fault_13_a_nan_gradient_where_the_value_is_finite() {
    found(&naive_swish::op(), sample(), "gradient at extremes", "is NaN where the value is finite");
    // A branch that is not taken contributes nothing, and the gradient of a root at 0 is not NaN.
    for op in ["where", "sqrt", "swish"] {
        let report = opcheck(&registry::get(op).expect("a built-in"), &[]);
        assert!(report.findings.is_empty(), "{report}");
    }
}

#[test]
fn fault_14_a_nan_that_is_swallowed() {
    found(&lossy_relu::op(), sample(), "special values", "does not propagate");
}

#[test]
fn fault_15_a_panic_is_an_error() {
    let op = build(CustomOpBuilder::new("faulty", 1).forward(|x| mapped(x[0], |v| [1.0][(v > -9.0) as usize])));
    found(&op, sample(), "purity", "panicked");
}

/// Depends on the number of dimensions, although the clause has a batch.
#[custom_op(
    name = "faulty::by_rank", shape = (x: [.., n]) -> [.., n], dtype = (x: T) -> T where T: Num,
    backward = |d| { x: d },
)]
pub fn by_rank(x: &Tensor) -> Result<Tensor> {
    if x.ndim() > 2 { add::call(x, x) } else { x.copied() }
}

#[test]
fn fault_25_a_batch_that_is_not_the_loop() {
    found(&by_rank::op(), sample(), "batch", "computes another tensor 0");
}

#[test]
fn fault_16_overlapping_writes_are_refused() -> Result<()> {
    let p = t(&[1.0, 2.0], &[2]);
    let error = ops::optimizer::sgd_step::call(&p, &p, &p, 0.1, 0.9, false, 0.0).unwrap_err();
    assert!(error.message().contains("'v' shares memory"), "{error}");
    let v = t(&[0.0, 0.0], &[2]);
    ops::optimizer::sgd_step::call(&p, &v, &p, 0.5, 0.0, false, 0.0)?;
    assert_eq!(numbers(&p), [0.5, 1.0]);
    assert!(add::call_(&p.expand_view(&[3, 2])?, &v).is_err());
    Ok(())
}

#[test]
fn fault_17_an_attribute_outside_its_domain() {
    let mut sample = sample();
    sample.attrs = vec![Attr::Float(1e-5)];
    found(&scale_rows::op(), sample, "attributes", "is accepted and returns NaN");
    let x = t(&[1.0, 2.0], &[2]);
    assert!(ops::sorting::topk::call(&x, 3, -1).unwrap_err().message().contains("k <= n"));
    assert!(ops::normalization::softmax::call(&x, 2).is_err());
}

#[test]
fn fault_18_digits_lost_in_a_long_sum() {
    let sample = Sample { inputs: vec![Some(t(&[0.1, 0.2, 0.3], &[3]))], attrs: vec![] };
    found(&long_chain::op(), sample, "precision", "use pairwise summation");
}

#[test]
fn fault_19_results_that_change_from_run_to_run() {
    let calls = std::sync::atomic::AtomicU64::new(0);
    let op = build(CustomOpBuilder::new("faulty", 1).forward(move |x| {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) as f64;
        mapped(x[0], |v| v + 1e-9 * call)
    }));
    found(&op, sample(), "determinism", "a second call");
}

#[test]
fn fault_20_a_saved_tensor_changed_in_place() {
    // Keeps an alias of its input that the engine does not know.
    let kept: std::sync::Arc<std::sync::Mutex<Option<Tensor>>> = Default::default();
    let (writer, reader) = (kept.clone(), kept);
    let forward = move |x: &[&Tensor]| {
        if x[0].device() == Device::Cpu {
            *writer.lock().expect("one at a time") = Some(x[0].detach());
        }
        mapped(x[0], |v| v * v)
    };
    let backward = move |call: &BackwardCall<'_>| {
        let x = reader.lock().expect("one at a time").clone().expect("forward ran");
        Ok(vec![Some(multiply::call(&call.cotangent(0)?, &multiply::call(&x, &t(&[2.0], &[]))?)?)])
    };
    let op = build(CustomOpBuilder::new("faulty", 1).forward(forward).backward(backward));
    found(&op, sample(), "saved tensors", "changes without an error");
}

#[test]
fn fault_21_a_gradient_of_the_outputs_shape_is_fitted_or_refused() -> Result<()> {
    // The engine sums over broadcast dimensions, so a formula need not.
    let x = t(&[1.0, 2.0, 3.0], &[3]).with_requires_grad()?;
    let y = multiply::call(&x, &t(&[1.0; 6], &[2, 3]))?;
    minitensor::autograd::backward(&[ops::reduction::sum::call(&y, None, false, None)?], &[], Default::default())?;
    assert_eq!(x.grad().map(|g| numbers(&g)), Some(vec![2.0; 3]));
    let op = build(triple().backward(|call| Ok(vec![Some(Tensor::zeros([7], call.dtype(0), Device::Cpu)?)])));
    found(&op, sample(), "requires_grad", "its backward returned a gradient of shape");
    Ok(())
}

#[test]
fn fault_22_an_integer_that_passes_through_a_float() {
    let body = |call: &minitensor::op::Call<'_>| {
        let (x, k) = (call.tensor(0), i64::from_attr(&call.attrs()[0])? as f64);
        add::call(x, &Tensor::from_const(minitensor::kernels::Const::Int(k as i128), x.dtype(), x.device())?)
            .map(|y| vec![y])
    };
    let op = build(CustomOpBuilder::new("faulty", 1).attr("k", AttrKind::Int, Some(Attr::Int(1))).body(body));
    let mut sample = sample();
    sample.attrs = vec![Attr::Int(1)];
    found(&op, sample, "attributes", "loses digits above 2⁵³");
}

#[test]
fn fault_23_registering_twice_fails_whole_and_again_works() -> Result<()> {
    let make = || CustomOpBuilder::new("registered_twice", 1).forward(|x| x[0].copied()).build();
    registry::register(make()?)?;
    let before = registry::list().len();
    let error = registry::register(make()?).unwrap_err();
    assert!(error.message().contains("is already registered"), "{error}");
    assert_eq!(registry::list().len(), before);
    registry::unregister("registered_twice")?;
    registry::register(make()?)?;
    registry::unregister("registered_twice")?;
    assert!(!registry::contains("registered_twice"));
    Ok(())
}

#[test]
fn fault_24_wrong_arguments_never_reach_the_kernel() {
    let x = t(&[1.0], &[1]);
    let op = registry::get("swish").expect("a built-in");
    let error = dispatch(&op, &[Arg::Tensor(&x), Arg::Tensor(&x)], &[]).unwrap_err();
    assert!(error.message().contains("op 'swish' takes 1 tensor (x), got 2"), "{error}");
    let error = minitensor::op::slots(&registry::get("clamp").expect("a built-in"), 1, &["l0"]).unwrap_err();
    assert!(error.message().contains("did you mean 'lo'"), "{error}");
    let _ = divide::op();
}

/// The sum of squares, which is said to be that of means.
#[custom_op(name = "faulty::power", shape = (x: [.., n]) -> [..], axis = None, combine = average)]
pub fn power<R: Row>(x: R) -> R {
    x.square().sum()
}

/// The mean of squares.
#[custom_op(name = "correct::mean_square", shape = (x: [.., n]) -> [..], axis = None, combine = average)]
pub fn mean_square<R: Row>(x: R) -> R {
    x.square().mean()
}

#[test]
fn fault_27_parts_that_do_not_combine() {
    let report = opcheck(&power::op(), &[]);
    let said = |f: &minitensor::testing::Finding| f.check == "combine" && f.message.contains("`combine = average`");
    assert!(report.findings.iter().any(said), "{report}");
    let report = opcheck(&mean_square::op(), &[]);
    assert!(report.findings.is_empty(), "{report}");
}
